"""Corrected means beside the judged ones of an evaluation, as soon as there are labels of the same judge's scores."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import ResultsUnavailable
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.db.tables import MetricColumns
from yarus.metrics.metric import Metric
from yarus.metrics.table import grades, metric
from yarus.metrics.table.corrected import SUFFIX, corrected_metric
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.dataset.labelling.answers import Answers, judged, of_row
from yarus.tasks.dataset.labelling.estimate import Estimate, estimate, estimate_of, lacking, telling
from yarus.tasks.dataset.labelling.relevance.estimate import known as known_results
from yarus.tasks.dataset.labelling.relevance.estimate import results_labelled
from yarus.tasks.dataset.labelling.relevance.pools import Pools, heard, is_filled
from yarus.tasks.dataset.labelling.relevance.pools import of_row as of_filled

log = logging.getLogger("yarus")
TOLD = ("n_labels", "n_others", "judge_error", "weight", "shares", "width_after_ten", "enough")
"""What of an estimate stands beside the corrected value."""


def correct(engine: Engine, evaluation_id: str) -> None:
    """Stores the corrected means of an evaluation, where labels have come or gone since that was done."""
    row = journal.find(engine, evaluation_id)
    known = judged(row) if row["parquet"] else {}
    if is_filled(row):
        _correct_filled(engine, row)
    elif known:
        said = store.labels_by_judge(engine, row["source"], row["tier"], set(known.values()))
        _correct(engine, row, known, said)


def correct_all(engine: Engine, source: str, tier: str) -> None:
    """The same of all evaluations of a tier over a source, which labels of any of them may correct."""
    rows = [(row, judged(row)) for row in store.evaluations_of(engine, source, tier)]
    keys = {key for _, known in rows for key in known.values()}
    said = store.labels_by_judge(engine, source, tier, keys) if keys else []
    for row, known in rows:
        try:
            if is_filled(row):
                _correct_filled(engine, row)
            else:
                _correct(engine, row, known, said)
        except ResultsUnavailable as error:  # of an old evaluation whose file is gone: it keeps its values
            log.debug("%s", error)


def _correct(engine: Engine, row: RowMapping, known: Mapping[str, str], said: Sequence[Label]) -> None:
    stored = {metric["metric"]: metric["labels"] for metric in journal.metrics_of(engine, row["id"])}
    for name, key in known.items():
        of = labels_for(said, name, key)
        before = stored.get(f"{name}{SUFFIX}")
        if (before or {}).get("stamp") != _stamp(of):
            store_corrected(engine, of_row(row, metric(name), key, texts=False), of)


def _correct_filled(engine: Engine, row: RowMapping) -> None:
    stored = [metric["labels"] for metric in journal.metrics_of(engine, row["id"]) if metric["labels"]]
    said = results_labelled(engine, row["source"])
    if (stored[0]["stamp"] if stored else None) != _stamp(said):
        store_filled(engine, of_filled(row), said)


def store_filled(engine: Engine, pools: Pools, said: Sequence[Label]) -> None:
    """Stores the corrected means of an evaluation with filled labels; removes them where there are no labels any more.

    Args:
        engine: of our own database.
        pools: of the evaluation.
        said: what people have said of results over its source.
    """
    rows: dict[str, MetricColumns | None] = {f"{of.name}{SUFFIX}": None for of in pools.metrics}
    if n_results := sum(map(len, heard(pools, said))):
        stratum = HEADLINE_STRATUM if pools.tier == "real_users" else ""
        told = {"n_results": n_results, "stamp": _stamp(said)}
        by_column = known_results(pools, said)
        for of in pools.metrics:
            found = estimate_of(by_column[of.column or ""])
            rows[f"{of.name}{SUFFIX}"] = _stored(of, found, found["n_own"], len(pools.ids), told, stratum)
    store.correct(engine, pools.evaluation_id, rows)


def labels_for(said: Sequence[Label], name: str, key: str) -> list[Label]:
    """Those that say something of a judge's scores by a metric."""
    return [label for label in said if label.metric == name and label.judge_key == key and label.value is not None]


def store_corrected(engine: Engine, answers: Answers, said: Sequence[Label]) -> None:
    """Stores one corrected mean; removes it where there are no labels any more."""
    row = None
    if said and len(answers.cases):
        n_own, used = telling(answers, said)
        found = estimate(answers, used)
        row = _stored(answers.metric, found, n_own, len(answers.cases) + found["n_others"], {"stamp": _stamp(said)})
    store.correct(engine, answers.evaluation_id, {f"{answers.metric.name}{SUFFIX}": row})


def _stamp(said: Sequence[Label]) -> str | None:
    return f"{len(said)} {max(label.at for label in said).isoformat()}" if said else None


def _stored(
    of: Metric, found: Estimate, n_own: int, n_total: int, told: Mapping[str, Any], stratum: str = ""
) -> MetricColumns:
    declared, acted_on = corrected_metric(of), not lacking(n_own)
    of_value = (declared.name, found["value"], found["ci_low"], found["ci_high"], found["n_labels"])
    graded = grades(*of_value) if acted_on else None
    return {
        "stratum": stratum,
        "value": found["value"],
        "reason": None if found["value"] is not None else f"{found['n_labels']} label; two are needed",
        "ci_low": found["ci_low"],
        "ci_high": found["ci_high"],
        "n_scored": found["n_labels"],
        "n_total": n_total,
        "grade": graded.low if graded else None,
        "direction": declared.better,
        "signature": declared.signature,
        "labels": {name: value for name, value in found.items() if name in TOLD}
        | {"n_own": n_own, "acted_on": acted_on, **told},
    }
