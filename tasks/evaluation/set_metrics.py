"""Metrics of a set of cases that are not the mean of a column: totals over cases, and statistics of these."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from yarus.metrics import agreement, classification, text
from yarus.metrics.metric import Metric
from yarus.metrics.statistics import Interval, bootstrap_statistic, bootstrap_totals, posterior_interval, share_interval
from yarus.metrics.statistics.differences.draws import Statistic
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.intervals import NO_INTERVAL
from yarus.tasks.cases.outcomes import unmeasurable_reasons
from yarus.tasks.cases.table import column_values, float_column, iterate_rows

Groups = Sequence[Hashable]
TEXTS_AT_ONCE = 10_000
EXTREME_PAIRS = agreement.kappa_parts([0, 1, 0, 1], [0, 1, 1, 0])
"""Pairs of scores that are always possible: full agreement and full disagreement."""
PRIOR_OF_EXTREMES = 0.125
"""Prior weight in cases of each pair, for the interval of a kappa of scores in 0..1: half a case in total."""


class SetValue(NamedTuple):
    """Value of a metric over a set of cases, not the mean of a column; NaN if undefined."""

    value: float
    interval: Interval
    n_scored: int
    n_total: int | None = None
    """Units that could have been measured, if these are not cases but calls."""
    reason: str | None = None
    """Why there is no value, if more is known than the metric's own reason."""


def unmeasured_value(reason: str) -> SetValue:
    """Return an undefined value with its reason; for a metric that is a mean over cases, only the reason counts."""
    return SetValue(math.nan, NO_INTERVAL, 0, reason=reason)


class SetMetric(NamedTuple):
    """A metric over totals: contributions of each case, and a statistic of their sums."""

    needs: tuple[str, ...]
    """Columns that it needs."""
    parts: Callable[[pa.Table], Floats]
    """Cases -> (n, p), or (n,) for a mean of one value per case; NaN if not measured."""
    statistic: Statistic | None
    """Sums (..., p) -> values (...), NaN if undefined; None for the mean."""
    measure: Callable[[Floats, Groups, int], SetValue] | None
    """(parts of the measured cases, their groups, seed) -> stored value; None if a step measures it."""


def metric_columns(metric: Metric) -> tuple[str, ...]:
    """Return the columns that a metric needs."""
    return (metric.column,) if metric.column is not None else SET_METRICS[metric.name].needs


def metric_parts(metric: Metric, cases: pa.Table) -> Floats:
    """Return (n,) the value of each case, or (n, p) its contribution to the metric's totals; NaN if not measured."""
    return float_column(cases, metric.column) if metric.column is not None else SET_METRICS[metric.name].parts(cases)


def measure_set(names: Iterable[str], cases: pa.Table, seed: int) -> dict[str, SetValue]:
    """Compute those of the metrics that are over the set of cases, each with its 95 % interval.

    Args:
        names: of metrics; unknown ones are skipped.
        cases: with the columns that they need.
        seed: of the bootstrap.

    Returns:
        Name -> value, without metrics that a step measures.
    """
    groups = column_values(cases, "group")
    tables: dict[Callable[[pa.Table], Floats], Floats] = {}  # computed once: nine metrics use the outcomes
    measured = {}
    for name in names:
        definition = SET_METRICS.get(name)
        if definition is None or definition.measure is None:
            continue
        if definition.parts not in tables:
            tables[definition.parts] = definition.parts(cases)
        parts = tables[definition.parts]
        is_measured = np.asarray(~np.isnan(np.column_stack([parts])).any(axis=1))
        kept_groups = [group for group, is_kept in zip(groups, is_measured, strict=True) if is_kept]
        measured[name] = definition.measure(parts[is_measured], kept_groups, seed)
    return measured


def share_of_yes(flags: Sequence[bool | None] | Floats, groups: Groups) -> SetValue:
    """Compute the share of yes among the cases that have an answer (not None, not NaN), with a grouped interval."""
    values = np.asarray(flags, dtype=np.float64)
    n = int(np.count_nonzero(~np.isnan(values)))
    return SetValue(float(np.nanmean(values)) if n else math.nan, share_interval(values, groups=groups), n)


def measure_agreement(
    measure: Callable[[Floats, Floats], float], first: Floats, second: Floats, groups: Groups, seed: int
) -> SetValue:
    """Compute a measure of agreement over the complete pairs of scores; at least two."""
    a, b = agreement.complete_pairs(first, second)
    if len(a) < 2:
        return SetValue(math.nan, NO_INTERVAL, len(a))
    kept_groups = [group for group, is_missing in zip(groups, np.isnan(first + second), strict=True) if not is_missing]
    interval = bootstrap_statistic(
        lambda rows: measure(a[rows], b[rows]), len(a), seed=seed, resamples=1_000, groups=kept_groups
    )
    return SetValue(measure(a, b), interval, len(a))


def _share_metric(parts: Callable[[pa.Table], Floats], *needs: str) -> SetMetric:
    return SetMetric(needs, parts, None, lambda values, groups, seed: share_of_yes(values, groups))


def _totals_metric(
    parts: Callable[[pa.Table], Floats], statistic: Statistic, interval: Callable[..., Interval], *needs: str
) -> SetMetric:
    """Define a number over totals; `interval` gets the rows, the statistic, a seed and the groups."""

    def measure(rows: Floats, groups: Groups, seed: int) -> SetValue:
        if not len(rows):
            return SetValue(math.nan, NO_INTERVAL, 0)
        value = float(statistic(rows.sum(axis=0)))
        return SetValue(value, interval(rows, statistic, seed=seed, groups=groups), len(rows))

    return SetMetric(needs, parts, statistic, measure)


def _count(parts: Callable[[pa.Table], Floats], position: int, *needs: str) -> SetMetric:
    return _totals_metric(parts, lambda totals: np.asarray(totals[..., position]), lambda *_, **__: NO_INTERVAL, *needs)


def _outcome_metric(name: str) -> SetMetric:
    return _count(_decision_outcomes, classification.OUTCOMES.index(name), "decision", "shown")


def _score_of_outcomes(score: Callable[[classification.ConfusionCounts], Any]) -> SetMetric:
    def statistic(totals: Floats) -> Floats:
        return np.asarray(score(classification.counts_from_totals(totals)))

    # The prior of the interval includes outcomes that no case may show.
    interval = partial(posterior_interval, unseen=np.eye(len(classification.OUTCOMES)), prior=0.5)
    return _totals_metric(_decision_outcomes, statistic, interval, "decision", "shown")


def _share_of_outcomes(score: Callable[[classification.ConfusionCounts], Any], hit: str, miss: str) -> SetMetric:
    """Define a score of outcomes that is hits / (hits + misses): its interval is that of a share."""
    definition = _score_of_outcomes(score)
    hits, misses = (classification.OUTCOMES.index(name) for name in (hit, miss))

    def measure(rows: Floats, groups: Groups, seed: int) -> SetValue:
        return share_of_yes(np.where(rows[:, hits] + rows[:, misses] > 0, rows[:, hits], np.nan), groups)

    return definition._replace(measure=measure)


def _kappa_metric(second: str) -> SetMetric:
    """Define weighted kappa of the judge's first scores and another column."""

    def parts(cases: pa.Table) -> Floats:
        return agreement.kappa_parts(float_column(cases, "faithfulness"), float_column(cases, second))

    interval = partial(posterior_interval, unseen=EXTREME_PAIRS, prior=PRIOR_OF_EXTREMES, draws=2_000)
    return _totals_metric(parts, agreement.kappa_from_totals, interval, "faithfulness", second)


def _has_status(status: str, cases: pa.Table) -> Floats:
    return np.array([case_status == status for case_status in column_values(cases, "status")], dtype=np.float64)


def _has_label_status(status: str, cases: pa.Table) -> Floats:
    """Return 1 for each case that lacks labels in this way, whatever the system did."""
    return np.array([label_status == status for label_status in unmeasurable_reasons(cases)], dtype=np.float64)


def find_failures(cases: pa.Table) -> Floats:
    """Return 1 for each case at which the system failed, 0 for the others that it was asked, labelled or not."""
    if "outcome" not in cases.column_names:  # written by an earlier version, which asked all
        return _has_status("sut_error", cases)
    return _outcome_flags(cases, lambda outcome: outcome == "failed")


def _refusal_flags(cases: pa.Table) -> Floats:
    """Return 1 for each refusal, 0 for each other answer, NaN for cases without an answer."""
    if "outcome" not in cases.column_names:
        answered = np.array(pc.is_valid(cases["answer"]).to_pylist(), dtype=bool)
        return np.where(answered, _has_status("sut_refusal", cases), np.nan)
    return _outcome_flags(cases, lambda outcome: None if outcome == "failed" else outcome == "refused")


def _outcome_flags(cases: pa.Table, classify: Callable[[str], bool | None]) -> Floats:
    return np.array(
        [None if value is None else classify(value) for value in column_values(cases, "outcome")], dtype=np.float64
    )


def _answerability_flags(answerable: bool, refused: bool, cases: pa.Table) -> Floats:
    """Return a cell of the answerable x answered matrix, by case."""
    labels = column_values(cases, "answerable")
    is_labelled = np.array([label is not None for label in labels], dtype=bool)
    in_cell = np.array([label is answerable for label in labels], dtype=bool)
    declined = _refusal_flags(cases)
    in_cell &= declined == refused
    return _mask_unmeasured(~np.isnan(declined) & is_labelled, in_cell[:, None].astype(np.float64))


def _bleu_counts(cases: pa.Table) -> Floats:
    """Count what every case adds to corpus BLEU (`yarus.metrics.text.bleu_counts`), few texts in memory at a time."""
    slices = (cases.slice(start, TEXTS_AT_ONCE) for start in range(0, max(len(cases), 1), TEXTS_AT_ONCE))
    counts = [text.bleu_counts(column_values(part, "answer"), column_values(part, "reference")) for part in slices]
    table = np.vstack(counts)
    return _mask_unmeasured(table[:, 1] > 0, table.astype(np.float64))


def _corpus_bleu(totals: Floats) -> Floats:
    """Compute corpus BLEU, 0 to 100."""
    return np.asarray(100 * text.score_bleu(totals).score)


def _decision_outcomes(cases: pa.Table) -> Floats:
    """Return the cell of each case in the table of decisions, in the order of `OUTCOMES`."""
    pairs = list(iterate_rows(cases, "decision", "shown"))
    is_known = np.array([None not in pair for pair in pairs], dtype=bool)
    decisions, labels = ([bool(pair[side]) for pair in pairs] for side in (0, 1))
    return _mask_unmeasured(is_known, classification.outcome_indicators(decisions, labels))


def _invalid_replies(cases: pa.Table) -> Floats:
    invalid = _has_status("parse_error", cases)
    has_decision = np.array(pc.is_valid(cases["decision"]).to_pylist(), dtype=bool)
    return np.where(has_decision | (invalid > 0), invalid, np.nan)


def _count_calls(cases: pa.Table) -> Floats:
    """Count the judge's calls without a usable score, and all its calls; calls of the gate are skipped."""
    statuses_by_case = [
        [reply["status"] for reply in stored or [] if not reply["metric"].startswith("gate")]
        for stored in column_values(cases, "judge_raw")
    ]
    n_bad = [sum(status != "ok" for status in stored) for stored in statuses_by_case]
    return np.column_stack([n_bad, [len(stored) for stored in statuses_by_case]]).astype(np.float64)


def _error_rate(rows: Floats, groups: Groups, seed: int) -> SetValue:
    """Compute the share of failed calls; calls are grouped by case, and by user."""
    n_bad, n_calls = rows.T
    flags = np.repeat(np.tile([1.0, 0.0], len(rows)), np.column_stack([n_bad, n_calls - n_bad]).astype(np.intp).ravel())
    keys = ((number,) if group is None else group for number, group in enumerate(groups))
    call_groups = [group for group, n in zip(keys, n_calls.astype(np.intp).tolist(), strict=True) for _ in range(n)]
    result = share_of_yes(flags, call_groups)
    return result._replace(n_total=result.n_scored)


def _neighbour_distances(cases: pa.Table) -> Floats:
    return np.column_stack([float_column(cases, "nn_distance"), np.ones(len(cases))])


def _ratio_of_totals(above: int, below: int, totals: Floats) -> Floats:
    return np.asarray(totals[..., above] / np.where(totals[..., below] > 0, totals[..., below], np.nan))


def _mask_unmeasured(measured: NDArray[np.bool_], table: Floats) -> Floats:
    return np.where(measured[:, None], table, np.nan)


SET_METRICS: dict[str, SetMetric] = {
    "sut_error_rate": _share_metric(find_failures, "status"),
    "unlabelled_rate": _share_metric(partial(_has_label_status, "unlabelled"), "status"),
    "stale_label_rate": _share_metric(partial(_has_label_status, "stale_label"), "status"),
    "refusal_rate": _share_metric(_refusal_flags, "answer", "status"),
    "answerable_answered": _count(partial(_answerability_flags, True, False), 0, "answer", "status", "answerable"),
    "answerable_refused": _count(partial(_answerability_flags, True, True), 0, "answer", "status", "answerable"),
    "unanswerable_answered": _count(partial(_answerability_flags, False, False), 0, "answer", "status", "answerable"),
    "unanswerable_refused": _count(partial(_answerability_flags, False, True), 0, "answer", "status", "answerable"),
    "corpus_bleu": _totals_metric(
        _bleu_counts, _corpus_bleu, partial(bootstrap_totals, method="bca"), "answer", "reference"
    ),
    "true_positives": _outcome_metric("true_positives"),
    "true_negatives": _outcome_metric("true_negatives"),
    "false_positives": _outcome_metric("false_positives"),
    "false_negatives": _outcome_metric("false_negatives"),
    "precision": _share_of_outcomes(classification.precision, "true_positives", "false_positives"),
    "recall": _share_of_outcomes(classification.recall, "true_positives", "false_negatives"),
    "specificity": _share_of_outcomes(classification.specificity, "true_negatives", "false_positives"),
    "f1_score": _score_of_outcomes(classification.f1),
    "mcc": _score_of_outcomes(classification.mcc),
    "invalid_rate": _share_metric(_invalid_replies, "status", "decision"),
    "weighted_kappa": _kappa_metric("faithfulness_again"),
    "user_votes_weighted_kappa": _kappa_metric("human_score"),
    "error_rate": SetMetric(("judge_raw",), _count_calls, partial(_ratio_of_totals, 0, 1), _error_rate),
    "density_score": SetMetric(("nn_distance",), _neighbour_distances, partial(_ratio_of_totals, 1, 0), None),
}
"""Name -> definition: scoring stores `measure`, comparisons resample totals and apply `statistic` to them."""
