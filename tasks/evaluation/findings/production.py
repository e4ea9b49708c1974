"""Agreement with production: figures, JSON and sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from yarus.metrics.statistics.intervals import share_interval
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.config.texts import LANGUAGES, Text, texts
from yarus.tasks.evaluation.findings.finding import Evaluated
from yarus.tasks.evaluation.findings_schema import AgreementWithProduction, Production
from yarus.tasks.evaluation.numbers import percent

LIKE = 0.8
"""Least agreement of an evaluation that is about what users meet."""
SHOWN = 5
COLUMNS = ("same_page", "same_decision")


def find(evaluated: Evaluated) -> Mapping[str, Production]:
    """See `Feature`."""
    cases = evaluated.cases
    page, decision = (_agreement(cases, name) for name in COLUMNS)
    found = [one for one in (page, decision) if one is not None]
    if not found:
        return {}
    differs = np.any([floats(cases, name) == 0 for name in COLUMNS], axis=0)
    production: Production = {
        "page": page,
        "decision": decision,
        "unlike": any(one["ci_high"] < LIKE for one in found),
        "differ": cases["case_id"].take(pa.array(np.flatnonzero(differs)[:SHOWN])).to_pylist(),
    }
    return {"production": production}


def _agreement(cases: pa.Table, name: str) -> AgreementWithProduction | None:
    values = floats(cases, name)
    measured = values[~np.isnan(values)]
    if not len(measured):
        return None
    low, high = share_interval(values, groups=values_of(cases, "group"))
    return {"value": float(measured.mean()), "ci_low": low, "ci_high": high, "n": len(measured)}


def sentences(summary: Mapping[str, Any]) -> Iterator[Text]:
    """Yield how far the system does what production did; and that it does not, where that is so."""
    if found := summary.get("production"):
        yield {language: _said(found, language) for language in LANGUAGES}


def _said(found: Production, language: str) -> str:
    words = texts("production", language)
    parts = [
        words[what].format(agreement=_interval(one), n=one["n"])
        for what, one in (("page", found["page"]), ("decision", found["decision"]))
        if one is not None
    ]
    said = words["like"].format(parts="; ".join(parts))
    if found["unlike"]:
        said += " " + words["unlike"]
    return said + (" " + words["differ"].format(cases=", ".join(found["differ"])) if found["differ"] else "")


def _interval(one: AgreementWithProduction) -> str:
    return f"{percent(one['value'])} ({percent(one['ci_low'])} … {percent(one['ci_high'])})"
