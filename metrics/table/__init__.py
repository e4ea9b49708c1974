"""The table of all metrics: every stored name, its range, direction, source, thresholds and interpretation.

The rows are grouped by family in this package. Each names the function that computes it (`retrieval.ndcg` is in
metrics/retrieval.py), whose docstring ends with the names of its rows.
"""

import math
from difflib import get_close_matches
from typing import NamedTuple

from yarus.metrics.metric import GOALS, GRADE_LADDERS, RUBRIC_PREFIX, GradeName, Metric, UserQuestion
from yarus.metrics.table.citations import CITATIONS
from yarus.metrics.table.claims import CLAIMS
from yarus.metrics.table.contexts import CONTEXTS
from yarus.metrics.table.corrected import CORRECTED_SUFFIX, corrected_metric
from yarus.metrics.table.embedding import EMBEDDING
from yarus.metrics.table.exam import EXAM, exam_metric
from yarus.metrics.table.facts import FACTS
from yarus.metrics.table.generation import GENERATION, rubric_metric
from yarus.metrics.table.incomplete import INCOMPLETE
from yarus.metrics.table.judge import JUDGE
from yarus.metrics.table.judge_pipeline import JUDGE_PIPELINE
from yarus.metrics.table.nuggets import NUGGETS
from yarus.metrics.table.retrieval import RETRIEVAL
from yarus.metrics.table.ux import UX

__all__ = [
    "GOALS",
    "METRICS",
    "GradeName",
    "GradeRange",
    "Metric",
    "UserQuestion",
    "find_metric",
    "get_metric",
    "grade",
    "grades",
    "metrics_for_tier",
]

SINGLE_GRADE_FACTOR = 1.2
"""Factor by which a bound must lie further away than the 95 % interval reaches, for a single grade."""
FEW_CASES = 30
"""Cases below which the interval of scores is too unreliable for a grade."""
_CONTENT = (*FACTS, *CLAIMS, *NUGGETS, *CITATIONS, *CONTEXTS)
METRICS: dict[str, Metric] = {
    row.name: row
    for row in (*EMBEDDING, *RETRIEVAL, *INCOMPLETE, *GENERATION, *JUDGE, *EXAM, *JUDGE_PIPELINE, *_CONTENT, *UX)
}


def get_metric(name: str) -> Metric:
    """Return the metric with a stored name.

    Args:
        name: exactly as stored, e.g. "ndcg@10", or "avg_rubric_politeness" for a user-defined rubric, or
            "avg_faithfulness_corrected" for a judged mean that is corrected by people's labels.

    Raises:
        ValueError: no such metric; the message names the nearest: `no metric 'NDCG'; did you mean 'ndcg@10'?`

    Example:
        >>> from yarus.metrics.table import get_metric
        >>> get_metric("ndcg@10").function
        'retrieval.ndcg'
        >>> get_metric("NDCG")
        Traceback (most recent call last):
            ...
        ValueError: no metric 'NDCG'; did you mean 'ndcg@10'?
    """
    if name in METRICS:
        return METRICS[name]
    if name.endswith(CORRECTED_SUFFIX) and _is_corrected(base_name := name.removesuffix(CORRECTED_SUFFIX)):
        return corrected_metric(get_metric(base_name))
    if name.startswith(f"avg_{RUBRIC_PREFIX}"):
        return rubric_metric(name)
    if f"_{RUBRIC_PREFIX}" in name and name.startswith("exam_"):
        return exam_metric(name)
    lowered = name.lower()
    names = {candidate.lower(): candidate for candidate in METRICS}
    near = [candidate for candidate in names if lowered and lowered in candidate]
    # Of several matches the one with thresholds comes first: of ndcg@5 and ndcg@10 the latter.
    near.sort(key=lambda candidate: (candidate != lowered, METRICS[names[candidate]].thresholds is None))
    near += get_close_matches(lowered, names, cutoff=0.5)
    hint = f"did you mean {names[near[0]]!r}?" if near else f"there are: {', '.join(METRICS)}"
    raise ValueError(f"no metric {name!r}; {hint}")


def find_metric(name: str) -> Metric | None:
    """Return the metric with a name, corrected or not; None for a user-defined rubric or an unknown name.

    Example:
        >>> from yarus.metrics.table import find_metric
        >>> find_metric("avg_faithfulness_corrected").unit, find_metric("avg_rubric_politeness")
        ('share', None)
    """
    base = METRICS.get(name.removesuffix(CORRECTED_SUFFIX))
    return corrected_metric(base) if base and name.endswith(CORRECTED_SUFFIX) else base


def _is_corrected(name: str) -> bool:
    """Return whether people's labels correct it: the mean of a judged prompt's scores, or a metric of relevance."""
    if name not in METRICS:
        return name.startswith(f"avg_{RUBRIC_PREFIX}")
    return name == f"avg_{METRICS[name].opinion}" or METRICS[name].of_relevance


def metrics_for_tier(tier: str) -> tuple[Metric, ...]:
    """Return the metrics of a tier, in display order.

    Example:
        >>> from yarus.metrics.table import metrics_for_tier
        >>> [row.name for row in metrics_for_tier("ux")][:2]
        ['cache_hit_rate', 'cache_hit_rate@0.8']
    """
    return tuple(row for row in METRICS.values() if tier in row.tiers)


def grade(name: str, value: float | None) -> GradeName | None:
    """Return the grade of a value: "excellent", "good" or "attention" ("strong" to "absent" for the silhouette).

    A value equal to the lowest bound has passed it, equal to a higher one not: if 0.5 to 0.8 is good, both 0.5 and 0.8
    are.

    Args:
        name: a metric of the table.
        value: the stored value; None or NaN if it was not measured.

    Returns:
        The grade; None without a value or for a metric without thresholds.

    Raises:
        ValueError: no such metric.

    Example:
        >>> from yarus.metrics.table import grade
        >>> grade("mrr", 0.5), grade("mrr", 0.9), grade("avg_bleu", 60)
        ('good', 'excellent', None)
    """
    bounds = get_metric(name).thresholds
    value = value if value is None else round(value, 9)  # the mean of three times 0.7 is a little less than 0.7
    if bounds is None or value is None or math.isnan(value):
        return None
    passed = (value >= bounds[0]) + sum(value > bound for bound in bounds[1:])
    return GRADE_LADDERS[len(bounds)][passed]


class GradeRange(NamedTuple):
    """The grades within the interval of a value; equal if there is only one."""

    low: GradeName
    high: GradeName


def grades(
    name: str, value: float | None, ci_low: float | None, ci_high: float | None, n_scored: int
) -> GradeRange | None:
    """Return the lowest and the highest grade within the interval of a value.

    There is a single grade if no bound lies within SINGLE_GRADE_FACTOR times the reach of the 95 % interval and, with
    fewer than FEW_CASES cases, none within the interval of a share of as many cases. Then a value that is not better
    than a bound is called better in at most 3 of 100 evaluations, however few the cases.

    Args:
        name: a metric of the table.
        value: the stored value; None or NaN if it was not measured.
        ci_low, ci_high: its 95 % interval; one of them None: it is open there; both: too few cases for an interval.
        n_scored: number of measured cases.

    Returns:
        The grades; None without a value, for a metric without thresholds, and if every grade is possible, from the
        lowest to the highest. For a metric without an interval the grade of the value.

    Raises:
        ValueError: no such metric.

    Example:
        >>> from yarus.metrics.table import grades
        >>> grades("mrr", 0.9, 0.84, 0.94, 120)
        GradeRange(low='excellent', high='excellent')
        >>> grades("mrr", 0.82, 0.7, 0.9, 40)
        GradeRange(low='good', high='excellent')
        >>> grades("hit_rate@1", 0.0, 0.0, 0.793, 1) is None
        True
    """
    value_grade = grade(name, value)
    if value_grade is None or value is None:
        return None
    row = get_metric(name)
    if row.interval == "none":
        return GradeRange(value_grade, value_grade)
    low = -math.inf if ci_low is None else value - SINGLE_GRADE_FACTOR * (value - ci_low)
    high = math.inf if ci_high is None else value + SINGLE_GRADE_FACTOR * (ci_high - value)
    if n_scored < FEW_CASES and (row.low, row.high) == (0, 1):
        from yarus.metrics.statistics.intervals import wilson_interval  # here, because it imports NumPy

        share = wilson_interval(value * n_scored, n_scored)
        low, high = min(low, share.low), max(high, share.high)
    possible = GradeRange(grade(name, low) or value_grade, grade(name, high) or value_grade)
    ladder = GRADE_LADDERS[len(row.thresholds or ())]
    return None if possible == (ladder[0], ladder[-1]) else possible
