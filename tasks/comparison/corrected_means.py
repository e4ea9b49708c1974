"""Compare corrected means, and rankings of which people have judged unequal shares."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db.messages import Words
from yarus.db.stores.labels import read_labels
from yarus.metrics.metric import Direction, Metric
from yarus.metrics.statistics.corrected import LabelledScores
from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic, StatisticComparison
from yarus.metrics.statistics.differences.corrected import compare_corrected
from yarus.metrics.statistics.differences.paired import compare_statistics
from yarus.metrics.table import get_metric
from yarus.metrics.table.corrected import CORRECTED_SUFFIX
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.comparison.common_cases import CommonCases, match_cases
from yarus.tasks.dataset.labelling.answers import JudgedAnswers, answers_from_row, judged_metrics
from yarus.tasks.dataset.labelling.estimate import align_labels, count_missing_labels
from yarus.tasks.dataset.labelling.relevance.estimate import estimate_inputs as labelled_results
from yarus.tasks.dataset.labelling.relevance.estimate import load_result_labels
from yarus.tasks.dataset.labelling.relevance.pools import Pools, has_llm_labels, pools_from_row
from yarus.tasks.evaluation.findings_schema import DifferenceBounds, JudgedShareDifference

L = TypeVar("L", JudgedAnswers, Pools)
FEW_LABELS = Words("too few labels of people")
OTHER_JUDGE = Words("other judges have scored the two, and labels hold for one")


def is_corrected(name: str) -> bool:
    """Return whether the metric is a mean that labels of people correct."""
    return name.endswith(CORRECTED_SUFFIX)


class MissingLabels(NamedTuple):
    """Missing labels, which keep a corrected mean from being used."""

    labels: int
    reason: str = FEW_LABELS


def compare_means(engine: Engine, a: RowMapping, b: RowMapping, name: str) -> StatisticComparison | MissingLabels | str:
    """Return the difference of a corrected mean over the common cases of two evaluations, or why it is unknown.

    Each side is corrected by labels of its own answers. Labels of other answers would only repeat the judge's opinion
    of the difference.

    Args:
        engine: the engine of Yarus's database.
        a, b: rows of the journal: before and after.
        name: the name of the corrected metric.
    """
    metric_name = name.removesuffix(CORRECTED_SUFFIX)
    if has_llm_labels(a) and has_llm_labels(b):
        return _compare_filled(engine, a, b, get_metric(metric_name))
    judge_keys = [judged_metrics(row).get(metric_name) for row in (a, b)]
    if judge_keys[0] is None or judge_keys[0] != judge_keys[1]:
        return OTHER_JUDGE
    answer_sets = [answers_from_row(row, get_metric(metric_name), judge_keys[0], texts=False) for row in (a, b)]
    pairs = match_cases(*(answers.cases for answers in answer_sets))
    sides = [_select_cases(answers, cases) for answers, cases in zip(answer_sets, pairs, strict=True)]
    labelled = [align_labels(answers, read_labels(engine, answers.evaluation_id, metric_name)) for answers in sides]
    return _compare_sides(labelled, get_metric(name).better)


def _compare_filled(
    engine: Engine, a: RowMapping, b: RowMapping, metric: Metric
) -> StatisticComparison | MissingLabels | str:
    """Compare two evaluations whose labels a judge has filled up, by labels of people for the results of both."""
    pools = [pools_from_row(row) for row in (a, b)]
    if pools[0].judge_key != pools[1].judge_key:
        return OTHER_JUDGE
    labels = load_result_labels(engine, pools[0].source)
    pairs = match_cases(*(side.cases for side in pools))
    sides = [_select_cases(side, cases) for side, cases in zip(pools, pairs, strict=True)]
    return _compare_sides([labelled_results(side, labels)[metric.column or ""] for side in sides], metric.better)


def _compare_sides(sides: Sequence[LabelledScores], better: Direction) -> StatisticComparison | MissingLabels:
    if missing := sum(count_missing_labels(int((~np.isnan(side.labels)).sum())) for side in sides):
        return MissingLabels(missing)
    return compare_corrected(*sides, better=better)


def _select_cases(side: L, cases: pa.Table) -> L:
    is_common = pc.is_in(side.cases["case_id"], value_set=cases["case_id"].combine_chunks())
    return replace(side, cases=side.cases.filter(is_common))


JUDGED_SHARE = "judged@10"
SHARE_ALPHA = 0.05


def find_unequal_judging(pairs: CommonCases, headlines: Sequence[Metric], seed: int) -> JudgedShareDifference | None:
    """Return the bounds of differences if the sides' shares of judged results differ by more than chance.

    Args:
        pairs: the common cases.
        headlines: the metrics to bound.
        seed: the seed of the draws.

    Returns:
        None if the shares do not differ by more than chance or are unknown, or if no headline metric depends on them.
    """
    a, b = (float_column(side, JUDGED_SHARE) for side in pairs)
    share = SampleStatistic(a=a, b=b, better="neither")
    change = compare_statistics({JUDGED_SHARE: share}, seed=seed, groups=column_values(pairs.a, "group"))[JUDGED_SHARE]
    if not change.comparison.p < SHARE_ALPHA or any("if_right" not in side.column_names for side in pairs):
        return None
    bounded = set.intersection(*({field.name for field in side["if_right"].type} for side in pairs))
    by_name = {metric.name: _bound_difference(metric.name, *pairs) for metric in headlines if metric.name in bounded}
    bounds = {name: limits for name, limits in by_name.items() if limits}
    return {"a": change.a, "b": change.b, "p": change.comparison.p, "bounds": bounds} if bounds else None


def _bound_difference(name: str, a: pa.Table, b: pa.Table) -> DifferenceBounds | None:
    """Return the extremes of the difference: unjudged results all wrong on one side, all right on the other."""
    lowest = [float_column(side, name) for side in (a, b)]
    highest = [
        pc.struct_field(side["if_right"].combine_chunks(), name).to_numpy(zero_copy_only=False) for side in (a, b)
    ]
    is_measured = ~np.isnan(lowest[0] + lowest[1])
    if not is_measured.any():
        return None
    return {
        "low": float((lowest[1] - highest[0])[is_measured].mean()),
        "high": float((highest[1] - lowest[0])[is_measured].mean()),
    }
