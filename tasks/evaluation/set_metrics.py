"""The metrics of a set of cases that are no mean of a column: what each case adds to totals, what follows from them."""

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
from yarus.tasks.cases.outcomes import unmeasurable
from yarus.tasks.cases.table import floats, rows_of, values_of

Groups = Sequence[Hashable]
TEXTS_AT_ONCE = 10_000
EXTREMES = agreement.kappa_parts([0, 1, 0, 1], [0, 1, 1, 0])
"""Pairs of scores that are always possible: full agreement, and none."""
PRIOR_OF_EXTREMES = 0.125
"""How many cases each of them counts for in the interval of a kappa of scores between 0 and 1: half a case in all."""


class Whole(NamedTuple):
    """A metric that is computed over the set, not from a column: NaN where it has no value."""

    value: float
    interval: Interval
    n_scored: int
    n_total: int | None = None
    """What it could have rested on, where that is not the cases: calls."""
    reason: str | None = None
    """Why there is no value, where more is known than what the metric says of itself."""


def not_measured(reason: str) -> Whole:
    """A metric without a value, for that reason; of a metric that is a mean over cases it gives the reason alone."""
    return Whole(math.nan, NO_INTERVAL, 0, reason=reason)


class SetMetric(NamedTuple):
    """A metric over totals: what each case adds to them, and what follows from their sums."""

    needs: tuple[str, ...]
    """Columns that it is made from."""
    parts: Callable[[pa.Table], Floats]
    """Cases -> (n, p); (n,) where it is a mean of one value a case. NaN where it was not measured."""
    statistic: Statistic | None
    """Sums (..., p) -> values (...), NaN where it has none; None: the mean."""
    measure: Callable[[Floats, Groups, int], Whole] | None
    """(parts of the measured cases, their groups, seed) -> as it is stored; None where a step measures it."""


def columns_of(metric: Metric) -> tuple[str, ...]:
    """The columns that a metric is made from."""
    return (metric.column,) if metric.column is not None else SET_METRICS[metric.name].needs


def parts_of(metric: Metric, cases: pa.Table) -> Floats:
    """(n,) the value of each case, or (n, p) what it adds to the metric's totals; NaN where it was not measured."""
    return floats(cases, metric.column) if metric.column is not None else SET_METRICS[metric.name].parts(cases)


def measure_set(names: Iterable[str], cases: pa.Table, seed: int) -> dict[str, Whole]:
    """The metrics among these that are of the set of cases, each with its 95 % interval.

    Args:
        names: of metrics; those that the table does not have are passed over.
        cases: with the columns that they are made from.
        seed: of the bootstrap.

    Returns:
        By name; without what a step measures.
    """
    groups = values_of(cases, "group")
    tables: dict[Callable[[pa.Table], Floats], Floats] = {}  # of outcomes, for one, nine metrics are made
    found = {}
    for name in names:
        made = SET_METRICS.get(name)
        if made is None or made.measure is None:
            continue
        if made.parts not in tables:
            tables[made.parts] = made.parts(cases)
        table = tables[made.parts]
        kept = np.asarray(~np.isnan(np.column_stack([table])).any(axis=1))
        own = [group for group, keep in zip(groups, kept, strict=True) if keep]
        found[name] = made.measure(table[kept], own, seed)
    return found


def share(flags: Sequence[bool | None] | Floats, groups: Groups) -> Whole:
    """The share of yes among the cases that have an answer (not None, not NaN); its interval knows of groups."""
    values = np.asarray(flags, dtype=np.float64)
    n = int(np.count_nonzero(~np.isnan(values)))
    return Whole(float(np.nanmean(values)) if n else math.nan, share_interval(values, groups=groups), n)


def over_pairs(
    measure: Callable[[Floats, Floats], float], first: Floats, second: Floats, groups: Groups, seed: int
) -> Whole:
    """A measure of agreement over the pairs of scores that are complete; at least two."""
    a, b = agreement.complete_pairs(first, second)
    if len(a) < 2:
        return Whole(math.nan, NO_INTERVAL, len(a))
    own = [group for group, missing in zip(groups, np.isnan(first + second), strict=True) if not missing]
    interval = bootstrap_statistic(
        lambda rows: measure(a[rows], b[rows]), len(a), seed=seed, resamples=1_000, groups=own
    )
    return Whole(measure(a, b), interval, len(a))


def _share(parts: Callable[[pa.Table], Floats], *needs: str) -> SetMetric:
    return SetMetric(needs, parts, None, lambda values, groups, seed: share(values, groups))


def _of_totals(
    parts: Callable[[pa.Table], Floats], statistic: Statistic, interval: Callable[..., Interval], *needs: str
) -> SetMetric:
    """A number over totals; `interval` is asked for it with the rows, the statistic, a seed and the groups."""

    def measure(rows: Floats, groups: Groups, seed: int) -> Whole:
        if not len(rows):
            return Whole(math.nan, NO_INTERVAL, 0)
        value = float(statistic(rows.sum(axis=0)))
        return Whole(value, interval(rows, statistic, seed=seed, groups=groups), len(rows))

    return SetMetric(needs, parts, statistic, measure)


def _count(parts: Callable[[pa.Table], Floats], place: int, *needs: str) -> SetMetric:
    return _of_totals(parts, lambda totals: np.asarray(totals[..., place]), lambda *_, **__: NO_INTERVAL, *needs)


def _outcome(name: str) -> SetMetric:
    return _count(_outcomes, classification.OUTCOMES.index(name), "decision", "shown")


def _score_of_outcomes(score: Callable[[classification.Counts], Any]) -> SetMetric:
    def statistic(totals: Floats) -> Floats:
        return np.asarray(score(classification.counts_of(totals)))

    # In the interval outcomes have their place that no case may show.
    interval = partial(posterior_interval, unseen=np.eye(len(classification.OUTCOMES)), prior=0.5)
    return _of_totals(_outcomes, statistic, interval, "decision", "shown")


def _share_of_outcomes(score: Callable[[classification.Counts], Any], hit: str, miss: str) -> SetMetric:
    """A score of outcomes that is hits / (hits + misses): its interval is a share's."""
    made = _score_of_outcomes(score)
    hits, misses = (classification.OUTCOMES.index(name) for name in (hit, miss))

    def measure(rows: Floats, groups: Groups, seed: int) -> Whole:
        return share(np.where(rows[:, hits] + rows[:, misses] > 0, rows[:, hits], np.nan), groups)

    return made._replace(measure=measure)


def _kappa(second: str) -> SetMetric:
    """Weighted kappa of the judge's first scores and another column."""

    def parts(cases: pa.Table) -> Floats:
        return agreement.kappa_parts(floats(cases, "faithfulness"), floats(cases, second))

    interval = partial(posterior_interval, unseen=EXTREMES, prior=PRIOR_OF_EXTREMES, draws=2_000)
    return _of_totals(parts, agreement.kappa_of, interval, "faithfulness", second)


def _status(status: str, cases: pa.Table) -> Floats:
    return np.array([has == status for has in values_of(cases, "status")], dtype=np.float64)


def _lacking(status: str, cases: pa.Table) -> Floats:
    """Of all cases, whatever the system did."""
    return np.array([lacks == status for lacks in unmeasurable(cases)], dtype=np.float64)


def find_failures(cases: pa.Table) -> Floats:
    """Return 1 for each case at which the system failed, 0 for the others that it was asked, labelled or not."""
    if "outcome" not in cases.column_names:  # of an earlier version, which asked all
        return _status("sut_error", cases)
    return _flags(cases, lambda done: done == "failed")


def _refused(cases: pa.Table) -> Floats:
    """Of the cases with an answer; a refusal is one too."""
    if "outcome" not in cases.column_names:
        answered = np.array(pc.is_valid(cases["answer"]).to_pylist(), dtype=bool)
        return np.where(answered, _status("sut_refusal", cases), np.nan)
    return _flags(cases, lambda done: None if done == "failed" else done == "refused")


def _flags(cases: pa.Table, of: Callable[[str], bool | None]) -> Floats:
    return np.array([None if done is None else of(done) for done in values_of(cases, "outcome")], dtype=np.float64)


def _answerable(answerable: bool, refused: bool, cases: pa.Table) -> Floats:
    """A cell of the answerable x answered matrix."""
    can = values_of(cases, "answerable")
    labelled = np.array([value is not None for value in can], dtype=bool)
    here = np.array([value is answerable for value in can], dtype=bool)
    declined = _refused(cases)
    here &= declined == refused
    return _where(~np.isnan(declined) & labelled, here[:, None].astype(np.float64))


def _bleu_counts(cases: pa.Table) -> Floats:
    """Count what every case adds to corpus BLEU (`yarus.metrics.text.bleu_counts`), few texts in memory at a time."""
    some = (cases.slice(start, TEXTS_AT_ONCE) for start in range(0, max(len(cases), 1), TEXTS_AT_ONCE))
    counts = [text.bleu_counts(values_of(part, "answer"), values_of(part, "reference")) for part in some]
    table = np.vstack(counts)
    return _where(table[:, 1] > 0, table.astype(np.float64))


def _bleu(totals: Floats) -> Floats:
    """Corpus BLEU, 0 to 100."""
    return np.asarray(100 * text.score_bleu(totals).score)


def _outcomes(cases: pa.Table) -> Floats:
    """Where in the table of decisions each case stands, in the order of `OUTCOMES`."""
    pairs = list(rows_of(cases, "decision", "shown"))
    known = np.array([None not in pair for pair in pairs], dtype=bool)
    decided, shown = ([bool(pair[side]) for pair in pairs] for side in (0, 1))
    return _where(known, classification.outcomes(decided, shown))


def _invalid_replies(cases: pa.Table) -> Floats:
    invalid = _status("parse_error", cases)
    decided = np.array(pc.is_valid(cases["decision"]).to_pylist(), dtype=bool)
    return np.where(decided | (invalid > 0), invalid, np.nan)


def _calls(cases: pa.Table) -> Floats:
    """Calls of the judge without a usable score, and all; the gate, which is examined too, is another model."""
    replies = [
        [reply["status"] for reply in given or [] if not reply["metric"].startswith("gate")]
        for given in values_of(cases, "judge_raw")
    ]
    bad = [sum(status != "ok" for status in given) for given in replies]
    return np.column_stack([bad, [len(given) for given in replies]]).astype(np.float64)


def _error_rate(rows: Floats, groups: Groups, seed: int) -> Whole:
    """Of the calls, which come in groups: those of a case, and those of a user's cases."""
    bad, calls = rows.T
    failed = np.repeat(np.tile([1.0, 0.0], len(rows)), np.column_stack([bad, calls - bad]).astype(np.intp).ravel())
    cases = ((number,) if group is None else group for number, group in enumerate(groups))
    own = [group for group, n in zip(cases, calls.astype(np.intp).tolist(), strict=True) for _ in range(n)]
    found = share(failed, own)
    return found._replace(n_total=found.n_scored)


def _neighbours(cases: pa.Table) -> Floats:
    return np.column_stack([floats(cases, "nn_distance"), np.ones(len(cases))])


def _ratio(above: int, below: int, totals: Floats) -> Floats:
    return np.asarray(totals[..., above] / np.where(totals[..., below] > 0, totals[..., below], np.nan))


def _where(measured: NDArray[np.bool_], table: Floats) -> Floats:
    return np.where(measured[:, None], table, np.nan)


SET_METRICS: dict[str, SetMetric] = {
    "sut_error_rate": _share(find_failures, "status"),
    "unlabelled_rate": _share(partial(_lacking, "unlabelled"), "status"),
    "stale_label_rate": _share(partial(_lacking, "stale_label"), "status"),
    "refusal_rate": _share(_refused, "answer", "status"),
    "answerable_answered": _count(partial(_answerable, True, False), 0, "answer", "status", "answerable"),
    "answerable_refused": _count(partial(_answerable, True, True), 0, "answer", "status", "answerable"),
    "unanswerable_answered": _count(partial(_answerable, False, False), 0, "answer", "status", "answerable"),
    "unanswerable_refused": _count(partial(_answerable, False, True), 0, "answer", "status", "answerable"),
    "corpus_bleu": _of_totals(_bleu_counts, _bleu, partial(bootstrap_totals, method="bca"), "answer", "reference"),
    "true_positives": _outcome("true_positives"),
    "true_negatives": _outcome("true_negatives"),
    "false_positives": _outcome("false_positives"),
    "false_negatives": _outcome("false_negatives"),
    "precision": _share_of_outcomes(classification.precision, "true_positives", "false_positives"),
    "recall": _share_of_outcomes(classification.recall, "true_positives", "false_negatives"),
    "specificity": _share_of_outcomes(classification.specificity, "true_negatives", "false_positives"),
    "f1_score": _score_of_outcomes(classification.f1),
    "mcc": _score_of_outcomes(classification.mcc),
    "invalid_rate": _share(_invalid_replies, "status", "decision"),
    "weighted_kappa": _kappa("faithfulness_again"),
    "user_votes_weighted_kappa": _kappa("human_score"),
    "error_rate": SetMetric(("judge_raw",), _calls, partial(_ratio, 0, 1), _error_rate),
    "density_score": SetMetric(("nn_distance",), _neighbours, partial(_ratio, 1, 0), None),
}
"""The one definition of each: scoring stores `measure`, a comparison draws totals and takes `statistic` of them."""
