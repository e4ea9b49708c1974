"""The numbers of two evaluations as a comparison needs them: what each case adds to each metric."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metrics import agreement, classification
from metrics.metric import QUANTILES, Metric
from metrics.statistics.draws import Statistic
from metrics.statistics.numbers import Number
from tasks.results.set_metrics import answered, bleu_counts, bleu_of

Floats = NDArray[np.float64]
POINTS = ("share", "correlation", "kappa")
"""Units of which five points are taken as a difference that may matter."""
NEEDS_VECTORS = "its vectors are not in the file of the evaluation, so it cannot be computed for the common cases"
NOT_COMPARED = dict.fromkeys(
    (
        "avg_intra_cluster_sim",
        "avg_inter_cluster_dist",
        "effective_dimensionality",
        "avg_pairwise_distance",
        "context_preservation",
        "multi_turn_consistency",
    ),
    NEEDS_VECTORS,
)
NOT_COMPARED |= dict.fromkeys(("total_texts", "total_pairs", "n_clusters"), "it counts the texts, which both share")
NOT_COMPARED["consistency_score_expected"] = "it is the level of chance, which consistency_score is read against"
NOT_COMPARED["human_spearman"] = "ranks change with every draw of cases; human_weighted_kappa is compared instead"


class Made(NamedTuple):
    """A metric over totals: what each case adds to them, NaN where it was not measured, and what follows from them."""

    parts: Callable[[pa.Table], Floats]
    """Cases -> (n, p); (n,) where it is a mean of one value a case."""
    statistic: Statistic | None
    needs: tuple[str, ...]
    """Columns that it is made from."""


def numbers(declared: Iterable[Metric], a: pa.Table, b: pa.Table) -> tuple[dict[str, Number], dict[str, str]]:
    """What can be compared of the metrics, and why the others cannot.

    Args:
        declared: the metrics.
        a, b: the cases of both sides.

    Returns:
        Numbers by metric, and reasons by metric.
    """
    found: dict[str, Number] = {}
    reasons: dict[str, str] = {}
    for metric in declared:
        if metric.name in NOT_COMPARED:
            reasons[metric.name] = NOT_COMPARED[metric.name]
        elif missing := [side for side, cases in (("a", a), ("b", b)) if not _there(metric, cases)]:
            reasons[metric.name] = f"it was not measured in {' and '.join(missing)}"
        else:
            found[metric.name] = _number(metric, a, b)
    return found, reasons


def column_of(cases: pa.Table, name: str) -> Floats:
    """A numeric column, NaN where it has no value."""
    return np.asarray(cases[name].to_numpy(), dtype=np.float64)


def _number(metric: Metric, a: pa.Table, b: pa.Table) -> Number:
    if metric.column is not None:
        sides = column_of(a, metric.column), column_of(b, metric.column)
        quantile = QUANTILES.get(metric.aggregate)
        return Number(a=sides[0], b=sides[1], quantile=quantile, better=metric.better)
    made = WHOLE[metric.name]
    margin = 0.05 if metric.unit in POINTS else None
    return Number(a=made.parts(a), b=made.parts(b), statistic=made.statistic, better=metric.better, margin=margin)


def needs(metric: Metric) -> tuple[str, ...]:
    """The columns that a metric is compared by; none for what is not compared."""
    if metric.name in NOT_COMPARED:
        return ()
    return (metric.column,) if metric.column is not None else WHOLE[metric.name].needs


def _there(metric: Metric, cases: pa.Table) -> bool:
    return set(needs(metric)) <= set(cases.column_names)


def _ratio(totals: Floats) -> Floats:
    """Of the first two totals."""
    return np.asarray(totals[..., 0] / np.where(totals[..., 1] > 0, totals[..., 1], np.nan))


def _columns(*columns: Any) -> Floats:
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


def _share_of_status(status: str) -> Made:
    def parts(cases: pa.Table) -> Floats:
        return np.array([has == status for has in cases["status"].to_pylist()], dtype=np.float64)

    return Made(parts, None, ("status",))


def _refused(cases: pa.Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which cases were answered or refused, and which refused."""
    said = np.array(answered(cases), dtype=bool)
    return said, np.array([status == "sut_refusal" for status in cases["status"].to_pylist()], dtype=bool)


def _refusals(cases: pa.Table) -> Floats:
    said, refused = _refused(cases)
    return np.where(said, refused.astype(np.float64), np.nan)


def _answerable_answered(answerable: bool, was_refused: bool) -> Made:
    """A cell of the answerable x answered matrix."""

    def parts(cases: pa.Table) -> Floats:
        said, refused = _refused(cases)
        can = cases["answerable"].to_pylist()
        labelled = np.array([value is not None for value in can], dtype=bool)
        here = np.array([value is answerable for value in can], dtype=bool) & (refused == was_refused)
        return _where(said & labelled, _columns(here))

    return Made(parts, partial(_total, 0), ("answer", "status", "answerable"))


def _corpus_bleu(cases: pa.Table) -> Floats:
    counts = bleu_counts(cases)
    return _where(counts[:, 1] > 0, counts.astype(np.float64))


def _cells(cases: pa.Table) -> Floats:
    """Where in the table of decisions each case stands, in the order of `OUTCOMES`."""
    pairs = list(zip(cases["decision"].to_pylist(), cases["shown"].to_pylist(), strict=True))
    known = np.array([None not in pair for pair in pairs], dtype=bool)
    decided, shown = ([bool(pair[side]) for pair in pairs] for side in (0, 1))
    return _where(known, classification.outcomes(decided, shown))


def _of_cells(measure: Callable[[classification.Counts], Any]) -> Made:
    def statistic(totals: Floats) -> Floats:
        return np.asarray(measure(classification.counts_of(totals)))

    return Made(_cells, statistic, ("decision", "shown"))


def _total(place: int, totals: Floats) -> Floats:
    return np.asarray(totals[..., place])


def _invalid_replies(cases: pa.Table) -> Floats:
    invalid = np.array([status == "parse_error" for status in cases["status"].to_pylist()], dtype=bool)
    decided = np.array([decision is not None for decision in cases["decision"].to_pylist()], dtype=bool)
    return np.where(invalid | decided, invalid.astype(np.float64), np.nan)


def _kappa_of(second: str) -> Made:
    """Weighted kappa of the judge's first scores and another column."""

    def parts(cases: pa.Table) -> Floats:
        return agreement.kappa_parts(column_of(cases, "faithfulness"), column_of(cases, second))

    return Made(parts, agreement.kappa_of, ("faithfulness", second))


def _calls(cases: pa.Table) -> Floats:
    """Calls of the judge without a usable score, and all."""
    replies = [[reply["status"] for reply in given or []] for given in cases["judge_raw"].to_pylist()]
    return _columns([sum(status != "ok" for status in given) for given in replies], [len(given) for given in replies])


def _density(totals: Floats) -> Floats:
    return np.asarray(totals[..., 1] / np.where(totals[..., 0] > 0, totals[..., 0], np.nan))


def _neighbours(cases: pa.Table) -> Floats:
    return _columns(column_of(cases, "nn_distance"), np.ones(len(cases)))


def _where(measured: NDArray[np.bool_], table: Floats) -> Floats:
    return np.where(measured[:, None], table, np.nan)


WHOLE: dict[str, Made] = {
    "sut_error_rate": _share_of_status("sut_error"),
    "unlabelled_rate": _share_of_status("unlabelled"),
    "stale_label_rate": _share_of_status("stale_label"),
    "refusal_rate": Made(_refusals, None, ("answer", "status")),
    "answerable_answered": _answerable_answered(True, False),
    "answerable_refused": _answerable_answered(True, True),
    "unanswerable_answered": _answerable_answered(False, False),
    "unanswerable_refused": _answerable_answered(False, True),
    "corpus_bleu": Made(_corpus_bleu, bleu_of, ("answer", "reference")),
    "precision": _of_cells(classification.precision),
    "recall": _of_cells(classification.recall),
    "f1_score": _of_cells(classification.f1),
    "specificity": _of_cells(classification.specificity),
    "mcc": _of_cells(classification.mcc),
    **{
        name: Made(_cells, partial(_total, place), ("decision", "shown"))
        for place, name in enumerate(classification.OUTCOMES)
    },
    "invalid_rate": Made(_invalid_replies, None, ("status", "decision")),
    "weighted_kappa": _kappa_of("faithfulness_again"),
    "human_weighted_kappa": _kappa_of("human_score"),
    "error_rate": Made(_calls, _ratio, ("judge_raw",)),
    "density_score": Made(_neighbours, _density, ("nn_distance",)),
}
"""How the metrics that no single case has follow from what the cases add; equal to what the tiers store of them."""
