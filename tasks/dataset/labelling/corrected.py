"""Store corrected means with the judged means of an evaluation, if the same judge's scores have labels."""

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
from yarus.metrics.table import get_metric, grades
from yarus.metrics.table.corrected import CORRECTED_SUFFIX, corrected_metric
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.dataset.labelling.answers import JudgedAnswers, answers_from_row, judged_metrics
from yarus.tasks.dataset.labelling.estimate import (
    CorrectedEstimate,
    count_missing_labels,
    estimate_corrected_mean,
    estimate_from_labelled,
    select_labels,
)
from yarus.tasks.dataset.labelling.relevance.estimate import estimate_inputs, load_result_labels
from yarus.tasks.dataset.labelling.relevance.pools import Pools, has_llm_labels, people_judgements, pools_from_row

log = logging.getLogger("yarus")
STORED_FIELDS = ("n_labels", "n_others", "judge_error", "weight", "shares", "width_after_ten", "enough")
"""Fields of an estimate that are stored with the corrected value."""


def store_corrections(engine: Engine, evaluation_id: str) -> None:
    """Store the corrected means of an evaluation if its labels have changed."""
    row = journal.find_evaluation(engine, evaluation_id)
    judge_keys = judged_metrics(row) if row["parquet"] else {}
    if has_llm_labels(row):
        _update_filled(engine, row)
    elif judge_keys:
        labels = store.read_labels_by_judge(engine, row["source"], row["tier"], set(judge_keys.values()))
        _update_corrected(engine, row, judge_keys, labels)


def store_all_corrections(engine: Engine, source: str, tier: str) -> None:
    """Store the corrected means of all evaluations of a tier over a source if their labels have changed."""
    rows = [(row, judged_metrics(row)) for row in store.find_finished_evaluations(engine, source, tier)]
    keys = {key for _, judge_keys in rows for key in judge_keys.values()}
    labels = store.read_labels_by_judge(engine, source, tier, keys) if keys else []
    for row, judge_keys in rows:
        try:
            if has_llm_labels(row):
                _update_filled(engine, row)
            else:
                _update_corrected(engine, row, judge_keys, labels)
        except ResultsUnavailable as error:  # an old evaluation without its file keeps its values
            log.debug("%s", error)


def _update_corrected(engine: Engine, row: RowMapping, judge_keys: Mapping[str, str], labels: Sequence[Label]) -> None:
    stored = {metric["metric"]: metric["labels"] for metric in journal.read_metrics(engine, row["id"])}
    for name, key in judge_keys.items():
        metric_labels = select_metric_labels(labels, name, key)
        stored_labels = stored.get(f"{name}{CORRECTED_SUFFIX}")
        if (stored_labels or {}).get("stamp") != _labels_stamp(metric_labels):
            store_corrected(engine, answers_from_row(row, get_metric(name), key, texts=False), metric_labels)


def _update_filled(engine: Engine, row: RowMapping) -> None:
    stored = [metric["labels"] for metric in journal.read_metrics(engine, row["id"]) if metric["labels"]]
    labels = load_result_labels(engine, row["source"])
    if (stored[0]["stamp"] if stored else None) != _labels_stamp(labels):
        store_filled_corrections(engine, pools_from_row(row), labels)


def store_filled_corrections(engine: Engine, pools: Pools, labels: Sequence[Label]) -> None:
    """Store the corrected means of an evaluation with filled labels; remove them if there are no labels.

    Args:
        engine: engine of Yarus's own database.
        pools: pools of the evaluation.
        labels: people's labels of results over its source.
    """
    rows: dict[str, MetricColumns | None] = {f"{metric.name}{CORRECTED_SUFFIX}": None for metric in pools.metrics}
    if n_results := sum(map(len, people_judgements(pools, labels))):
        stratum = HEADLINE_STRATUM if pools.tier == "real_users" else ""
        details = {"n_results": n_results, "stamp": _labels_stamp(labels)}
        by_column = estimate_inputs(pools, labels)
        for metric in pools.metrics:
            result = estimate_from_labelled(by_column[metric.column or ""])
            rows[f"{metric.name}{CORRECTED_SUFFIX}"] = _metric_columns(
                metric, result, result["n_own"], len(pools.ids), details, stratum
            )
    store.replace_corrected_metrics(engine, pools.evaluation_id, rows)


def select_metric_labels(labels: Sequence[Label], name: str, key: str) -> list[Label]:
    """Return the labels of a judge's scores by a metric."""
    return [label for label in labels if label.metric == name and label.judge_key == key and label.value is not None]


def store_corrected(engine: Engine, answers: JudgedAnswers, labels: Sequence[Label]) -> None:
    """Store one corrected mean; remove it if there are no labels."""
    row = None
    if labels and len(answers.cases):
        n_own, selected_labels = select_labels(answers, labels)
        result = estimate_corrected_mean(answers, selected_labels)
        row = _metric_columns(
            answers.metric, result, n_own, len(answers.cases) + result["n_others"], {"stamp": _labels_stamp(labels)}
        )
    store.replace_corrected_metrics(engine, answers.evaluation_id, {f"{answers.metric.name}{CORRECTED_SUFFIX}": row})


def _labels_stamp(labels: Sequence[Label]) -> str | None:
    return f"{len(labels)} {max(label.at for label in labels).isoformat()}" if labels else None


def _metric_columns(
    metric: Metric, result: CorrectedEstimate, n_own: int, n_total: int, details: Mapping[str, Any], stratum: str = ""
) -> MetricColumns:
    declared, is_used = corrected_metric(metric), not count_missing_labels(n_own)
    value_columns = (declared.name, result["value"], result["ci_low"], result["ci_high"], result["n_labels"])
    graded = grades(*value_columns) if is_used else None
    return {
        "stratum": stratum,
        "value": result["value"],
        "reason": None if result["value"] is not None else f"{result['n_labels']} label; two are needed",
        "ci_low": result["ci_low"],
        "ci_high": result["ci_high"],
        "n_scored": result["n_labels"],
        "n_total": n_total,
        "grade": graded.low if graded else None,
        "direction": declared.better,
        "signature": declared.signature,
        "labels": {name: value for name, value in result.items() if name in STORED_FIELDS}
        | {"n_own": n_own, "acted_on": is_used, **details},
    }
