"""Agreement with production: figures, JSON and sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from yarus.metrics.statistics.intervals import share_interval
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts
from yarus.tasks.evaluation.findings.finding import MeasuredEvaluation
from yarus.tasks.evaluation.findings_schema import AgreementWithProduction, Production
from yarus.tasks.evaluation.number_format import format_percent

MIN_AGREEMENT = 0.8
"""Least agreement with production at which an evaluation represents it."""
MAX_LISTED = 5
COLUMNS = ("same_page", "same_decision")


def find(evaluated: MeasuredEvaluation) -> Mapping[str, Production]:
    """See `Feature`."""
    cases = evaluated.cases
    page, decision = (_measure_agreement(cases, name) for name in COLUMNS)
    agreements = [agreement for agreement in (page, decision) if agreement is not None]
    if not agreements:
        return {}
    differs = np.any([float_column(cases, name) == 0 for name in COLUMNS], axis=0)
    production: Production = {
        "page": page,
        "decision": decision,
        "unlike": any(agreement["ci_high"] < MIN_AGREEMENT for agreement in agreements),
        "differ": cases["case_id"].take(pa.array(np.flatnonzero(differs)[:MAX_LISTED])).to_pylist(),
    }
    return {"production": production}


def _measure_agreement(cases: pa.Table, name: str) -> AgreementWithProduction | None:
    values = float_column(cases, name)
    measured = values[~np.isnan(values)]
    if not len(measured):
        return None
    low, high = share_interval(values, groups=column_values(cases, "group"))
    return {"value": float(measured.mean()), "ci_low": low, "ci_high": high, "n": len(measured)}


def sentences(summary: Mapping[str, Any]) -> Iterator[TranslatedText]:
    """Yield how far the system does what production did, and a warning if it does not."""
    if document := summary.get("production"):
        yield {language: _production_sentence(document, language) for language in LANGUAGES}


def _production_sentence(document: Production, language: str) -> str:
    words = texts("production", language)
    parts = [
        words[key].format(agreement=_format_agreement(agreement), n=agreement["n"])
        for key, agreement in (("page", document["page"]), ("decision", document["decision"]))
        if agreement is not None
    ]
    sentence = words["like"].format(parts="; ".join(parts))
    if document["unlike"]:
        sentence += " " + words["unlike"]
    return sentence + (" " + words["differ"].format(cases=", ".join(document["differ"])) if document["differ"] else "")


def _format_agreement(agreement: AgreementWithProduction) -> str:
    value, low, high = (format_percent(agreement[key]) for key in ("value", "ci_low", "ci_high"))
    return f"{value} ({low} … {high})"
