"""The agreement with production: computed once, when an evaluation ends."""

import numpy as np
import pyarrow as pa

from yarus.metrics.statistics.intervals import share_interval
from yarus.tasks.cases.table import floats
from yarus.tasks.results.production.documents import AgreementWithProduction, Production

LIKE = 0.8
"""Least agreement of an evaluation that is about what users meet."""
SHOWN = 5
COLUMNS = ("same_page", "same_decision")


def agreement_with_production(cases: pa.Table) -> Production | None:
    """How far the evaluated system did what production did; None where the log does not say what that was.

    Args:
        cases: with `same_page` or `same_decision`.
    """
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
    values = floats(cases, name)
    measured = values[~np.isnan(values)]
    if not len(measured):
        return None
    low, high = share_interval(values, groups=cases["group"].to_pylist())
    return {"value": float(measured.mean()), "ci_low": low, "ci_high": high, "n": len(measured)}
