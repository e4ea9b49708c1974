"""Read the history of a metric: comparable evaluations joined, breaks marked, the first night out of the band named."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Engine, Select, null, select, true
from sqlalchemy.engine import RowMapping

from yarus.db.errors import InputError, unknown
from yarus.db.journal import FINISHED_STATES, IS_LIVE
from yarus.db.messages import Words
from yarus.db.tables import config_value, evaluation, evaluation_metric
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.ewma import MAX_HISTORY, SMOOTHING
from yarus.metrics.table import get_metric
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM, tier_of_stratum
from yarus.tasks.comparison.bands import NO_BAND, AcceptedLevel, NoiseFloor, Trend, TrendNight, compute_bands
from yarus.tasks.comparison.corrected_means import is_corrected
from yarus.tasks.comparison.noise_floor import estimate_noise_floors
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.dataset.labelling.corrected import store_all_corrections

NIGHT_COLUMNS: tuple[str, ...] = ("id", "tier", "source", "state", "started_at", "name", "tags", "sut_label")
NIGHT_COLUMNS += ("comparability_key",)
DEFAULT_NIGHTS = MAX_HISTORY
"""How many nights are shown by default."""


def trend(
    engine: Engine,
    metric: str,
    *,
    tier: str | None = None,
    source: str | None = None,
    stratum: str | None = None,
    last: int = DEFAULT_NIGHTS,
    anchor: bool = False,
    tags: Sequence[str] = (),
) -> Trend:
    """Return the history of a metric, oldest night first.

    Evaluations with equal comparability keys are joined, even if others lie in between. A night whose key differs from
    that of the night before is a break. The band is that of `yarus.metrics.statistics.ewma.ewma_chart`, over completed
    evaluations of one key. Repeated evaluations and those of stored answers are left out, because they do not measure
    the system that night. Those of the newest anchor form a separate history.

    Args:
        engine: the engine of Yarus's database.
        metric: its stored name.
        tier: default: the first in the order of the tiers that has a history of it.
        source: default: that of the tier's newest evaluation.
        stratum: the stratum of real users' cases; default: the confirmed ones.
        last: how many nights to show, the newest; the bands are computed from earlier ones too.
        anchor: show the anchor, whose answers never change, so that only the judge can move it.
        tags: show only evaluations that have all of them, as if there were no others.

    Raises:
        InputError: the metric, tier, source or stratum does not exist; the nearest name is given.
    """
    declared = _find_metric(metric)
    _check_selection(declared, tier, stratum)
    series = _find_series(engine, declared, stratum, tier, source, anchor=anchor, tags=tags)
    if is_corrected(metric) and series.source:
        store_all_corrections(engine, series.source, series.tier)  # uses the current labels
    query = _select_evaluations(metric, stratum, series.tier, series.source, anchor=series.anchor or anchor, tags=tags)
    rows, band_rows = _read_history(engine, query, last)
    nights = _describe_nights(rows, band_rows)[-last:]
    out = [
        night
        for night in nights
        if night["is_out_of_band"] and night["comparability_key"] == nights[-1]["comparability_key"]
    ]
    return {
        "metric": metric,
        "tier": series.tier,
        "source": series.source,
        "stratum": rows[-1]["stratum"] if rows else stratum,
        "anchor": series.anchor,
        "better_direction": declared.better,
        "nights": nights,
        "has_earlier": len(rows) > last,
        "first_out_of_band": out[0]["evaluation_id"] if out else None,
        "side": out[0]["side"] if out else None,
        "accepted": _read_accepted(engine, query, rows),
        "noise": _read_noise(engine, metric, rows),
    }


def _find_metric(name: str) -> Metric:
    try:
        return get_metric(name)
    except ValueError as error:
        raise InputError(str(error)) from None


def _check_selection(metric: Metric, tier: str | None, stratum: str | None) -> None:
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


class TrendSeries(NamedTuple):
    """The evaluations that are joined: those of one tier and source, or of one anchor."""

    tier: str
    source: str | None
    anchor: str | None


def _find_series(
    engine: Engine,
    metric: Metric,
    stratum: str | None,
    tier: str | None,
    source: str | None,
    *,
    anchor: bool,
    tags: Sequence[str],
) -> TrendSeries:
    """Return the requested series: that of the newest evaluation that has the metric.

    Raises:
        InputError: the source has no history of the metric.
    """
    first = tier or metric.tiers[0]
    for candidate in (tier,) if tier else (None,) if anchor else metric.tiers:
        newest = _select_evaluations(metric.name, stratum, candidate, source, anchor=anchor, tags=tags).limit(1)
        with engine.connect() as connection:
            if row := connection.execute(newest).mappings().first():
                return TrendSeries(row["tier"], row["source"], row["anchor"])
    if source is not None:
        anywhere = _select_evaluations(metric.name, stratum, tier, None, anchor=anchor, tags=tags).order_by(None)
        source_column = select(anywhere.subquery().c.source)
        with engine.connect() as connection:
            sources = set(connection.scalars(source_column.distinct()))
        if sources:
            if tier:
                fields = {"metric": metric.name, "tier": tier}
                raise unknown(Words("source with a history of {metric} in {tier}:", **fields), source, sources)
            raise unknown(Words("source with a history of {metric}:", metric=metric.name), source, sources)
    return TrendSeries(first, source, None)


def _select_evaluations(
    metric: str, stratum: str | None, tier: str | None, source: str | None, *, anchor: bool | str, tags: Sequence[str]
) -> Select[Any]:
    """Return the query for finished evaluations that have the metric: the system's or of anchors, newest first."""
    columns = evaluation.c
    change = config_value("paired", "changes", metric) if stratum in (None, HEADLINE_STRATUM) else null()
    metric_columns = ("metric", "stratum", "value", "ci_low", "ci_high", "n_scored", "n_total")
    statement = (
        select(
            *(columns[name] for name in NIGHT_COLUMNS),
            config_value("anchor").astext.label("anchor"),
            *(config_value("paired", part).label(part) for part in ("since", "share")),
            change.label("change"),
            *(evaluation_metric.c[name] for name in metric_columns),
        )
        .join(evaluation_metric, evaluation_metric.c.evaluation_id == columns.id)
        .where(
            evaluation_metric.c.metric == metric, columns.state.in_(FINISHED_STATES), columns.tags.contains(list(tags))
        )
        .where(evaluation_metric.c.stratum.in_([stratum] if stratum else ["", HEADLINE_STRATUM]))
        .where(
            *(
                column == value
                for column, value in ((columns.tier, tier), (columns.source, source))
                if value is not None
            )
        )
        .order_by(columns.started_at.desc(), columns.id.desc())
    )
    if not anchor:
        return statement.where(IS_LIVE)
    anchor_id = config_value("anchor").astext
    return statement.where(anchor_id.is_not(None) if anchor is True else anchor_id == anchor)


def _read_history(engine: Engine, statement: Select[Any], last: int) -> tuple[list[RowMapping], list[RowMapping]]:
    """Return the newest nights, plus one more than are shown, and the rows that their bands need, both oldest first.

    The rows read do not grow with the history: nights that no shown band depends on are not read.
    """
    newest = statement.limit(last + 1)
    keys = select(newest.subquery().c.comparability_key).distinct().subquery()
    columns = statement.selected_columns
    completed = statement.where(columns.comparability_key == keys.c.comparability_key, columns.state == "completed")
    before = completed.where(columns.value.is_not(None)).limit(last + MAX_HISTORY + round(1 / SMOOTHING)).lateral()
    with engine.connect() as connection:
        nights = connection.execute(newest).mappings().all()
        band_rows = connection.execute(select(before).select_from(keys.join(before, true()))).mappings().all()
    return list(reversed(nights)), sorted(band_rows, key=lambda row: (row["started_at"], row["id"]))


def _describe_nights(rows: Sequence[RowMapping], band_rows: Sequence[RowMapping]) -> list[TrendNight]:
    rows_by_key: dict[str, list[RowMapping]] = {}
    for row in band_rows:
        rows_by_key.setdefault(row["comparability_key"], []).append(row)
    bands_by_id = {name: band for key_rows in rows_by_key.values() for name, band in compute_bands(key_rows).items()}
    previous_keys = [None, *(row["comparability_key"] for row in rows)]
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
            "is_break": previous_key is not None and previous_key != row["comparability_key"],
            **bands_by_id.get(row["id"], NO_BAND),
        }
        for row, previous_key in zip(rows, previous_keys, strict=False)
    ]


def _read_accepted(engine: Engine, statement: Select[Any], rows: Sequence[RowMapping]) -> AcceptedLevel | None:
    if not rows:
        return None
    columns, accepted_at = statement.selected_columns, evaluation.c.accepted_at
    comparable = statement.where(columns.comparability_key == rows[-1]["comparability_key"], columns.value.is_not(None))
    newest = comparable.where(accepted_at.is_not(None)).order_by(None).order_by(accepted_at.desc()).limit(1)
    with engine.connect() as connection:
        row = connection.execute(newest).mappings().first()
    return None if row is None else {"evaluation_id": row["id"], "value": row["value"]}


def _read_noise(engine: Engine, metric: str, rows: Sequence[RowMapping]) -> NoiseFloor | None:
    key = rows[-1]["comparability_key"] if rows else None
    noise_floor = estimate_noise_floors(engine, key).get(metric) if key else None
    return {"band": noise_floor.band, "pairs": noise_floor.pairs, "n": noise_floor.n} if noise_floor else None
