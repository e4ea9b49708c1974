"""The history of a metric: comparable evaluations joined, breaks shown, and the first night out of the band named."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from db.errors import InputError, unknown
from db.journal import ASIDE, FINISHED
from db.tables import evaluation, evaluation_metric
from metrics.ewma import chart
from metrics.metric import Metric
from metrics.table import metric as declared
from tasks.cases import STRATA
from tasks.noise import floors
from tasks.parameters import TIERS
from tasks.report import HEADLINE, Document

SIDES = {-1: "below", 0: None, 1: "above"}


def trend(
    engine: Engine,
    metric: str,
    *,
    tier: str | None = None,
    source: str | None = None,
    stratum: str | None = None,
    last: int | None = None,
    anchor: bool = False,
) -> Document:
    """The history of a metric, oldest night first.

    Evaluations are joined where their comparability keys are equal, also past others in between; a night whose key
    differs from the one before it is a break. The band is that of `metrics.ewma.chart`, over completed evaluations of
    one key. Repeated evaluations and those of stored answers are no nights of the system: they are left out, and those
    of the newest anchor are a history of their own.

    Args:
        engine: of our own database.
        metric: its stored name.
        tier: default: the first in the order of the tiers that has a history of it.
        source: default: that of the tier's newest evaluation.
        stratum: of real users' cases; default: the confirmed ones.
        last: how many nights to show; the band knows those before too.
        anchor: show the anchor, whose answers never change: what moves is the judge.

    Returns:
        metric, tier, source, stratum, anchor (id or None), better, nights (evaluation_id, started_at, value, ci_low,
        ci_high, n_scored, n_total, sut_label, comparability_key, state, break, smoothed, band_low, band_high, out,
        side), first_out (the first shown night out of the band that is comparable with the newest, or None), its side
        (below, above), and noise (band, pairs, n; None without a repeated evaluation).

    Raises:
        InputError: no such metric, tier, source or stratum; the nearest is named.
    """
    known = _metric(metric)
    _check(known, tier, stratum)
    tier, source, rows = _chosen(_history(engine, metric, stratum), known, tier, source, anchor=anchor)
    nights = _nights(rows)
    shown = nights[-last:] if last else nights
    out = [night for night in shown if night["out"] and night["comparability_key"] == shown[-1]["comparability_key"]]
    return {
        "metric": metric,
        "tier": tier,
        "source": source,
        "stratum": rows[-1]["stratum"] if rows else stratum,
        "anchor": rows[-1]["anchor"] if rows else None,
        "better": known.better,
        "nights": shown,
        "first_out": out[0]["evaluation_id"] if out else None,
        "side": out[0]["side"] if out else None,
        "noise": _noise(engine, metric, rows),
    }


def _metric(name: str) -> Metric:
    try:
        return declared(name)
    except ValueError as error:
        raise InputError(str(error)) from None


def _check(metric: Metric, tier: str | None, stratum: str | None) -> None:
    if tier is not None and tier not in TIERS:
        raise unknown("tier", tier, TIERS)
    if tier is not None and tier not in metric.tiers:
        raise InputError(f"{tier} has no metric {metric.name!r}; it is measured by: {', '.join(metric.tiers)}")
    if stratum is not None and stratum not in ("all", *STRATA):
        raise unknown("stratum", stratum, ("all", *STRATA))
    if stratum is not None and (tier or "real_users") != "real_users":
        raise InputError(f"{tier} has no strata, only real_users has; leave out --stratum {stratum}")


def _history(engine: Engine, metric: str, stratum: str | None) -> Sequence[RowMapping]:
    """Every finished evaluation that has the metric, oldest first: one query, whatever their number."""
    of = evaluation.c
    measured = ("stratum", "value", "ci_low", "ci_high", "n_scored", "n_total")
    found = (
        select(
            *(of[name] for name in ("id", "tier", "source", "state", "started_at", "sut_label", "comparability_key")),
            *(of.resolved[name].astext.label(name) for name in ASIDE),
            *(evaluation_metric.c[name] for name in measured),
        )
        .join(evaluation_metric, evaluation_metric.c.evaluation_id == of.id)
        .where(evaluation_metric.c.metric == metric, of.state.in_(FINISHED))
        .where(evaluation_metric.c.stratum.in_([stratum] if stratum else ["", HEADLINE]))
        .order_by(of.started_at, of.id)
    )
    with engine.connect() as connection:
        return connection.execute(found).mappings().all()


def _chosen(
    rows: Sequence[RowMapping], metric: Metric, tier: str | None, source: str | None, *, anchor: bool
) -> tuple[str, str | None, list[RowMapping]]:
    """Tier, source and the evaluations of one line."""
    asked = [row for row in rows if tier in (None, row["tier"]) and source in (None, row["source"])]
    anchors = [row["anchor"] for row in asked if row["anchor"]]
    if anchor:
        rows = [row for row in rows if anchors and row["anchor"] == anchors[-1]]
    else:
        rows = [row for row in rows if not any(row[mark] for mark in ASIDE)]
    having = {row["tier"] for row in rows}
    tier = tier or next((name for name in metric.tiers if name in having), metric.tiers[0])
    rows = [row for row in rows if row["tier"] == tier]
    sources = {row["source"] for row in rows}
    if source is not None and rows and source not in sources:
        raise unknown(f"source with a history of {metric.name} in {tier}:", source, sources)
    source = source or (rows[-1]["source"] if rows else None)
    return tier, source, [row for row in rows if row["source"] == source]


def _nights(rows: Sequence[RowMapping]) -> list[Document]:
    bands: dict[str, Document] = {}
    for key in {row["comparability_key"] for row in rows}:
        calm = [row for row in rows if row["comparability_key"] == key and row["state"] == "completed"]
        charted = chart([np.nan if row["value"] is None else row["value"] for row in calm])
        for row, smoothed, low, high, side in zip(calm, *charted, strict=True):
            band = {"smoothed": _number(smoothed), "band_low": _number(low), "band_high": _number(high)}
            bands[row["id"]] = band | {"out": bool(side), "side": SIDES[int(side)]}
    none = {"smoothed": None, "band_low": None, "band_high": None, "out": False, "side": None}
    before = [None, *(row["comparability_key"] for row in rows)]
    return [
        {
            "evaluation_id": row["id"],
            "started_at": row["started_at"].isoformat(),
            **{name: row[name] for name in ("value", "ci_low", "ci_high", "n_scored", "n_total")},
            **{name: row[name] for name in ("sut_label", "comparability_key", "state")},
            "break": last is not None and last != row["comparability_key"],
            **bands.get(row["id"], none),
        }
        for row, last in zip(rows, before, strict=False)
    ]


def _noise(engine: Engine, metric: str, rows: Sequence[RowMapping]) -> dict[str, Any] | None:
    key = rows[-1]["comparability_key"] if rows else None
    found = floors(engine, key).get(metric) if key else None
    return found._asdict() if found else None


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
