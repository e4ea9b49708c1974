"""The one table of all metrics: every stored name, its range, direction, source, thresholds and how to read it.

The rows stand by family in this package. Each names the function that computes it (`retrieval.ndcg` stands in
metrics/retrieval.py), whose docstring ends with the names of its rows.
"""

import math
from difflib import get_close_matches
from typing import NamedTuple

from yarus.metrics.metric import GOALS, LADDERS, RUBRIC, Goal, Grade, Metric
from yarus.metrics.table.citations import CITATIONS
from yarus.metrics.table.claims import CLAIMS
from yarus.metrics.table.contexts import CONTEXTS
from yarus.metrics.table.corrected import SUFFIX, corrected_metric
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
    "Goal",
    "Grade",
    "Grades",
    "Metric",
    "grade",
    "grades",
    "known",
    "metric",
    "metrics_of",
]

CERTAIN = 1.2
"""As much further than the 95 % interval reaches a bound must lie away, for a grade to be said alone."""
FEW = 30
"""Cases below which the interval of scores is not trusted with a grade."""
_FOUND = (*FACTS, *CLAIMS, *NUGGETS, *CITATIONS, *CONTEXTS)
METRICS: dict[str, Metric] = {
    row.name: row
    for row in (*EMBEDDING, *RETRIEVAL, *INCOMPLETE, *GENERATION, *JUDGE, *EXAM, *JUDGE_PIPELINE, *_FOUND, *UX)
}


def metric(name: str) -> Metric:
    """The row of a stored name.

    Args:
        name: exactly as stored, e.g. "ndcg@10", or "avg_rubric_politeness" for a rubric of the user's own, or
            "avg_faithfulness_corrected" for a judged mean that people's labels have corrected.

    Raises:
        ValueError: no such metric; names the nearest: `no metric 'NDCG'; did you mean 'ndcg@10'?`

    Example:
        >>> from yarus.metrics.table import metric
        >>> metric("ndcg@10").function
        'retrieval.ndcg'
        >>> metric("NDCG")
        Traceback (most recent call last):
            ...
        ValueError: no metric 'NDCG'; did you mean 'ndcg@10'?
    """
    if name in METRICS:
        return METRICS[name]
    if name.endswith(SUFFIX) and _is_corrected(of := name.removesuffix(SUFFIX)):
        return corrected_metric(metric(of))
    if name.startswith(f"avg_{RUBRIC}"):
        return rubric_metric(name)
    if f"_{RUBRIC}" in name and name.startswith("exam_"):
        return exam_metric(name)
    wanted = name.lower()
    names = {known.lower(): known for known in METRICS}
    near = [known for known in names if wanted and wanted in known]
    # Of several that fit, the one that people set goals for: of ndcg@5 and ndcg@10 the latter.
    near.sort(key=lambda known: (known != wanted, METRICS[names[known]].thresholds is None))
    near += get_close_matches(wanted, names, cutoff=0.5)
    hint = f"did you mean {names[near[0]]!r}?" if near else f"there are: {', '.join(METRICS)}"
    raise ValueError(f"no metric {name!r}; {hint}")


def known(name: str) -> Metric | None:
    """The row of a name that this table has, or corrects; None of a rubric of the user's own, or what is no metric.

    Example:
        >>> from yarus.metrics.table import known
        >>> known("avg_faithfulness_corrected").unit, known("avg_rubric_politeness")
        ('share', None)
    """
    found = METRICS.get(name.removesuffix(SUFFIX))
    return corrected_metric(found) if found and name.endswith(SUFFIX) else found


def _is_corrected(name: str) -> bool:
    """Whether people's labels correct it: the mean of a judged prompt's scores, or of what labels call relevant."""
    if name not in METRICS:
        return name.startswith(f"avg_{RUBRIC}")
    return name == f"avg_{METRICS[name].opinion}" or METRICS[name].of_relevance


def metrics_of(tier: str) -> tuple[Metric, ...]:
    """The metrics of a tier, in the order in which they are shown.

    Example:
        >>> from yarus.metrics.table import metrics_of
        >>> [row.name for row in metrics_of("ux")][:2]
        ['cache_hit_rate', 'cache_hit_rate@0.8']
    """
    return tuple(row for row in METRICS.values() if tier in row.tiers)


def grade(name: str, value: float | None) -> Grade | None:
    """The grade of a value: "excellent", "good" or "attention" ("strong" to "absent" for the silhouette).

    A value on the lowest bound has passed it, on a higher one not: 0.5 and 0.8 are both good where 0.5 to 0.8 is.

    Args:
        name: a metric of the table.
        value: the stored value; None or NaN where it was not measured.

    Returns:
        The grade; None without a value or for a metric without thresholds.

    Raises:
        ValueError: no such metric.

    Example:
        >>> from yarus.metrics.table import grade
        >>> grade("mrr", 0.5), grade("mrr", 0.9), grade("avg_bleu", 60)
        ('good', 'excellent', None)
    """
    bounds = metric(name).thresholds
    value = value if value is None else round(value, 9)  # the mean of three times 0.7 is a little less than 0.7
    if bounds is None or value is None or math.isnan(value):
        return None
    passed = (value >= bounds[0]) + sum(value > bound for bound in bounds[1:])
    return LADDERS[len(bounds)][passed]


class Grades(NamedTuple):
    """The grades that the interval of a value leaves possible; the same where it leaves only one."""

    low: Grade
    high: Grade


def grades(name: str, value: float | None, ci_low: float | None, ci_high: float | None, n_scored: int) -> Grades | None:
    """The lowest and the highest grade that a value with its interval leaves possible.

    One grade alone is said where no bound lies within CERTAIN times the reach of the 95 % interval, and of fewer than
    FEW cases not within that of a share of as many, so that what is not better than a bound is called so in at most 3
    of 100 evaluations, of however few cases.

    Args:
        name: a metric of the table.
        value: the stored value; None or NaN where it was not measured.
        ci_low, ci_high: its 95 % interval; None at one end: it is open there, at both: there are too few cases for one.
        n_scored: how many cases it is made of.

    Returns:
        The grades; None without a value, for a metric without thresholds, and where every grade is possible, from the
        lowest to the highest: then nothing is decided. Of a metric that has no interval by nature the grade of the
        value.

    Raises:
        ValueError: no such metric.

    Example:
        >>> from yarus.metrics.table import grades
        >>> grades("mrr", 0.9, 0.84, 0.94, 120)
        Grades(low='excellent', high='excellent')
        >>> grades("mrr", 0.82, 0.7, 0.9, 40)
        Grades(low='good', high='excellent')
        >>> grades("hit_rate@1", 0.0, 0.0, 0.793, 1) is None
        True
    """
    of_value = grade(name, value)
    if of_value is None or value is None:
        return None
    row = metric(name)
    if row.interval == "none":
        return Grades(of_value, of_value)
    low = -math.inf if ci_low is None else value - CERTAIN * (value - ci_low)
    high = math.inf if ci_high is None else value + CERTAIN * (ci_high - value)
    if n_scored < FEW and (row.low, row.high) == (0, 1):
        from yarus.metrics.statistics.intervals import wilson_interval  # here, because it imports NumPy

        share = wilson_interval(value * n_scored, n_scored)
        low, high = min(low, share.low), max(high, share.high)
    found = Grades(grade(name, low) or of_value, grade(name, high) or of_value)
    ladder = LADDERS[len(row.thresholds or ())]
    return None if found == (ladder[0], ladder[-1]) else found
