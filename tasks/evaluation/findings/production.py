"""Agreement with production: figures, JSON and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from yarus.tasks.config.texts import LANGUAGES, Text, texts
from yarus.tasks.evaluation.numbers import percent

if TYPE_CHECKING:
    import pyarrow as pa


class AgreementWithProduction(TypedDict):
    """Over the questions of which the log says what production did."""

    value: float
    """Share of them in which the evaluated system does the same."""
    ci_low: float
    """Of the 95 % confidence interval."""
    ci_high: float
    n: int


class Production(TypedDict):
    """What the evaluated system and production did with the same questions."""

    page: AgreementWithProduction | None
    """The first page is the one that production showed; null where neither is known."""
    decision: AgreementWithProduction | None
    """Both answer, or both decline or hide; null where it is not known."""
    unlike: bool
    """Whether one of the two agrees in fewer than four of five questions, beyond chance."""
    differ: list[str]
    """Ids of the first five cases that differ."""


LIKE = 0.8
"""Least agreement of an evaluation that is about what users meet."""
SHOWN = 5
COLUMNS = ("same_page", "same_decision")


def agreement_with_production(cases: pa.Table) -> Production | None:
    """How far the evaluated system did what production did; None where the log does not say what that was.

    Args:
        cases: with `same_page` or `same_decision`.
    """

    import numpy as np
    import pyarrow as pa

    from yarus.tasks.cases.table import floats

    page, decision = (_agreement(cases, name) for name in COLUMNS)
    found = [one for one in (page, decision) if one is not None]
    if not found:
        return None
    differs = np.any([floats(cases, name) == 0 for name in COLUMNS], axis=0)
    return {
        "page": page,
        "decision": decision,
        "unlike": any(one["ci_high"] < LIKE for one in found),
        "differ": cases["case_id"].take(pa.array(np.flatnonzero(differs)[:SHOWN])).to_pylist(),
    }


def _agreement(cases: pa.Table, name: str) -> AgreementWithProduction | None:
    import numpy as np

    from yarus.metrics.statistics.intervals import share_interval
    from yarus.tasks.cases.table import floats

    values = floats(cases, name)
    measured = values[~np.isnan(values)]
    if not len(measured):
        return None
    low, high = share_interval(values, groups=cases["group"].to_pylist())
    return {"value": float(measured.mean()), "ci_low": low, "ci_high": high, "n": len(measured)}


def production_sentences(found: Production | None) -> Iterator[Text]:
    """How far the system does what production did; and that it does not, where that is so."""
    if found:
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
