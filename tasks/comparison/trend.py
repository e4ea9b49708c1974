"""The history of a metric: comparable evaluations joined, breaks shown, and the first night out of the band named."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Engine, Select, null, select, true
from sqlalchemy.engine import RowMapping

from yarus.db.errors import InputError, unknown
from yarus.db.journal import FINISHED, LIVE
from yarus.db.tables import config_at, evaluation, evaluation_metric
from yarus.db.words import Words
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.ewma import HISTORY, LAMBDA
from yarus.metrics.table import metric as declared
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM, tier_of_stratum
from yarus.tasks.comparison.bands import NO_BAND, AcceptedLevel, NoiseFloor, Trend, TrendNight, bands
from yarus.tasks.comparison.corrected_means import is_corrected
from yarus.tasks.comparison.noise_floor import floors
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.dataset.labelling.corrected import correct_all

NIGHT: tuple[str, ...] = ("id", "tier", "source", "state", "started_at", "name", "tags", "sut_label")
NIGHT += ("comparability_key",)
LAST = HISTORY
"""Nights that are shown where nobody asks for more."""


def trend(
    engine: Engine,
    metric: str,
    *,
    tier: str | None = None,
    source: str | None = None,
    stratum: str | None = None,
    last: int = LAST,
    anchor: bool = False,
    tags: Sequence[str] = (),
) -> Trend:
    """The history of a metric, oldest night first.

    Evaluations are joined where their comparability keys are equal, also past others in between; a night whose key
    differs from the one before it is a break. The band is that of `yarus.metrics.statistics.ewma.chart`, over completed
    evaluations of one key. Repeated evaluations and those of stored answers are no nights of the system: they are left
    out, and those of the newest anchor are a history of their own.

    Args:
        engine: of our own database.
        metric: its stored name.
        tier: default: the first in the order of the tiers that has a history of it.
        source: default: that of the tier's newest evaluation.
        stratum: of real users' cases; default: the confirmed ones.
        last: how many nights to show, the newest; the bands know those before too.
        anchor: show the anchor, whose answers never change: what moves is the judge.
        tags: show only evaluations that have all of them, as if there were no others.

    Raises:
        InputError: no such metric, tier, source or stratum; the nearest is named.
    """
    known = _metric(metric)
    _check(known, tier, stratum)
    line = _line(engine, known, stratum, tier, source, anchor=anchor, tags=tags)
    if is_corrected(metric) and line.source:
        correct_all(engine, line.source, line.tier)  # by the labels that there are now
    measured = _measured(metric, stratum, line.tier, line.source, anchor=line.anchor or anchor, tags=tags)
    rows, before = _history(engine, measured, last)
    shown = _nights(rows, before)[-last:]
    out = [night for night in shown if night["out"] and night["comparability_key"] == shown[-1]["comparability_key"]]
    return {
        "metric": metric,
        "tier": line.tier,
        "source": line.source,
        "stratum": rows[-1]["stratum"] if rows else stratum,
        "anchor": line.anchor,
        "better": known.better,
        "nights": shown,
        "more": len(rows) > last,
        "first_out": out[0]["evaluation_id"] if out else None,
        "side": out[0]["side"] if out else None,
        "accepted": _accepted(engine, measured, rows),
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
        raise InputError(
            "{tier} has no metric {metric!r}; it is measured by: {tiers}",
            tier=tier,
            metric=metric.name,
            tiers=", ".join(metric.tiers),
        )
    owner = tier_of_stratum(stratum)
    if owner not in (None, tier or owner):
        raise InputError(
            "{tier} has no stratum {stratum!r}, {owner} has; leave out --stratum {stratum}",
            tier=tier,
            stratum=stratum,
            owner=owner,
        )


class Line(NamedTuple):
    """The evaluations that are joined: of one tier and source, or of one anchor."""

    tier: str
    source: str | None
    anchor: str | None


def _line(
    engine: Engine,
    metric: Metric,
    stratum: str | None,
    tier: str | None,
    source: str | None,
    *,
    anchor: bool,
    tags: Sequence[str],
) -> Line:
    """The line that is asked for: that of the newest evaluation which has the metric.

    Raises:
        InputError: the source has no history of it.
    """
    first = tier or metric.tiers[0]
    for one in (tier,) if tier else (None,) if anchor else metric.tiers:
        newest = _measured(metric.name, stratum, one, source, anchor=anchor, tags=tags).limit(1)
        with engine.connect() as connection:
            if row := connection.execute(newest).mappings().first():
                return Line(row["tier"], row["source"], row["anchor"])
    if source is not None:
        anywhere = _measured(metric.name, stratum, tier, None, anchor=anchor, tags=tags).order_by(None)
        of_tier = select(anywhere.subquery().c.source)
        with engine.connect() as connection:
            sources = set(connection.scalars(of_tier.distinct()))
        if sources:
            if tier:
                of = {"metric": metric.name, "tier": tier}
                raise unknown(Words("source with a history of {metric} in {tier}:", **of), source, sources)
            raise unknown(Words("source with a history of {metric}:", metric=metric.name), source, sources)
    return Line(first, source, None)


def _measured(
    metric: str, stratum: str | None, tier: str | None, source: str | None, *, anchor: bool | str, tags: Sequence[str]
) -> Select[Any]:
    """The finished evaluations that have the metric, newest first: those of the system, or of anchors, or of one."""
    of = evaluation.c
    change = config_at("paired", "changes", metric) if stratum in (None, HEADLINE_STRATUM) else null()
    measured = ("metric", "stratum", "value", "ci_low", "ci_high", "n_scored", "n_total")
    found = (
        select(
            *(of[name] for name in NIGHT),
            config_at("anchor").astext.label("anchor"),
            *(config_at("paired", part).label(part) for part in ("since", "share")),
            change.label("change"),
            *(evaluation_metric.c[name] for name in measured),
        )
        .join(evaluation_metric, evaluation_metric.c.evaluation_id == of.id)
        .where(evaluation_metric.c.metric == metric, of.state.in_(FINISHED), of.tags.contains(list(tags)))
        .where(evaluation_metric.c.stratum.in_([stratum] if stratum else ["", HEADLINE_STRATUM]))
        .where(*(column == asked for column, asked in ((of.tier, tier), (of.source, source)) if asked is not None))
        .order_by(of.started_at.desc(), of.id.desc())
    )
    if not anchor:
        return found.where(LIVE)
    which = config_at("anchor").astext
    return found.where(which.is_not(None) if anchor is True else which == anchor)


def _history(engine: Engine, measured: Select[Any], last: int) -> tuple[list[RowMapping], list[RowMapping]]:
    """The newest nights, with one more than are shown, and what their bands are made of; both oldest first.

    Whatever the length of the history: nights that no shown band knows are not read.
    """
    shown = measured.limit(last + 1)
    keys = select(shown.subquery().c.comparability_key).distinct().subquery()
    of = measured.selected_columns
    calm = measured.where(of.comparability_key == keys.c.comparability_key, of.state == "completed")
    before = calm.where(of.value.is_not(None)).limit(last + HISTORY + round(1 / LAMBDA)).lateral()
    with engine.connect() as connection:
        nights = connection.execute(shown).mappings().all()
        known = connection.execute(select(before).select_from(keys.join(before, true()))).mappings().all()
    return list(reversed(nights)), sorted(known, key=lambda row: (row["started_at"], row["id"]))


def _nights(rows: Sequence[RowMapping], known: Sequence[RowMapping]) -> list[TrendNight]:
    lines: dict[str, list[RowMapping]] = {}
    for row in known:
        lines.setdefault(row["comparability_key"], []).append(row)
    found = {name: band for line in lines.values() for name, band in bands(line).items()}
    before = [None, *(row["comparability_key"] for row in rows)]
    return [
        {
            "evaluation_id": row["id"],
            "started_at": row["started_at"].isoformat(),
            "value": row["value"],
            "ci_low": row["ci_low"],
            "ci_high": row["ci_high"],
            "n_scored": row["n_scored"],
            "n_total": row["n_total"],
            "name": row["name"],
            "tags": row["tags"],
            "sut_label": row["sut_label"],
            "comparability_key": row["comparability_key"],
            "state": row["state"],
            "break": last is not None and last != row["comparability_key"],
            **found.get(row["id"], NO_BAND),
        }
        for row, last in zip(rows, before, strict=False)
    ]


def _accepted(engine: Engine, measured: Select[Any], rows: Sequence[RowMapping]) -> AcceptedLevel | None:
    if not rows:
        return None
    of, accepted_at = measured.selected_columns, evaluation.c.accepted_at
    alike = measured.where(of.comparability_key == rows[-1]["comparability_key"], of.value.is_not(None))
    newest = alike.where(accepted_at.is_not(None)).order_by(None).order_by(accepted_at.desc()).limit(1)
    with engine.connect() as connection:
        row = connection.execute(newest).mappings().first()
    return None if row is None else {"evaluation_id": row["id"], "value": row["value"]}


def _noise(engine: Engine, metric: str, rows: Sequence[RowMapping]) -> NoiseFloor | None:
    key = rows[-1]["comparability_key"] if rows else None
    found = floors(engine, key).get(metric) if key else None
    return {"band": found.band, "pairs": found.pairs, "n": found.n} if found else None
