"""What every metric of the table must keep: a golden value, its range, its best value, the order of cases, its edges.

A metric that is added to the table without a row here fails the suite.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import agreement, answers, classification, dialogue, embedding, retrieval, text
from metrics.table import METRICS

NAN = math.nan
Columns = tuple[Sequence[Any], ...]


@dataclass(frozen=True)
class Contract:
    """What is known of one function, as a function of columns of cases of equal length."""

    compute: Callable[..., Any]
    """The columns to one value a case, or to one value of all."""
    golden: tuple[Columns, Any]
    cases: st.SearchStrategy[tuple[Any, ...]]
    """One case: what stands in each column."""
    edges: list[tuple[Columns, Any]]
    """Input at the border of what is defined, with its value, NaN, or the error that it must raise."""
    best: tuple[Columns, Any] | None = None
    """Perfect input and its value; None where neither direction is better."""
    scale: float = 1.0
    """Of the stored value: 100 for what is stored in percent."""


def on_gains(metric: Callable[..., Any], *, counted: bool = False, **options: int) -> Callable[..., Any]:
    def compute(rankings: Sequence[Any], relevant: Sequence[Any]) -> Any:
        gains, found = retrieval.gain_matrix(rankings, relevant, depth=5)
        return metric(gains, found, **options) if counted else metric(gains, **options)

    return compute


def on_counts(metric: Callable[..., Any]) -> Callable[..., Any]:
    return lambda predicted, actual: metric(classification.confusion(predicted, actual))


def ranked(compute: Callable[..., Any], golden: float) -> Contract:
    """Two relevant of which one stands at rank 2 of three."""
    return Contract(
        compute,
        golden=(([["a", "b", "c"]], [{"b", "z"}]), [golden]),
        cases=st.tuples(
            st.permutations("abcdef").map(lambda ids: ids[:5]),
            st.dictionaries(st.sampled_from("abcxyz"), st.sampled_from([0, 1])),
        ),
        best=(([["a", "b"]], [{"a"}]), [1])
        if compute is not PRECISION
        else (([["a", "b", "c"]], [{"a", "b", "c"}]), [1]),
        edges=[
            (([], []), []),
            (([[]], [{"a"}]), [0]),  # answered with nothing
            (([None], [{"a"}]), [NAN]),  # failed
            (([["a"]], [set()]), [NAN]),  # unlabelled
            (([["да", "猫", "😀"]], [{"да", "猫", "😀"}]), [1]),
            (([["a", "a"]], [{"a"}]), ValueError),
            (([["a"]], []), ValueError),
        ],
    )


PRECISION = on_gains(retrieval.precision, k=3)
WORDS = st.lists(st.sampled_from(["да", "нет", "猫", "e\u0301", "😀", "три", ".", " ", "ё"]), max_size=6).map(" ".join)


def compared(
    compute: Callable[..., Any], golden: tuple[str, str, float], best: float = 1, scale: float = 1, *, worst: float = 0
) -> Contract:
    one, other, value = golden
    same = ["Ректор подписал приказ о стипендии.", "猫が 好き です か", "да да нет нет"]
    return Contract(
        compute,
        golden=(([one], [other]), [value]),
        cases=st.tuples(WORDS, WORDS),
        best=((same, same), [best] * 3),
        scale=scale,
        edges=[
            (([], []), []),
            (([""], ["да нет"]), [worst]),
            ((["да нет"], [""]), [NAN]),
            ((["да нет"], [None]), [NAN]),
            (([None], ["да нет"]), [NAN]),
            ((["\u0438\u0306 да"], ["й да"]), [best]),  # the same letter, composed and not
            (([1], ["да"]), TypeError),
            ((["да"], []), ValueError),
        ],
    )


def corpus_bleu(hypotheses: Sequence[Any], references: Sequence[Any]) -> float:
    return text.corpus_bleu(hypotheses, references)[0]


CORPUS_EDGES: list[tuple[Columns, Any]] = [
    (([], []), NAN),
    (([""], ["да нет"]), 0),
    ((["да нет"], [None]), NAN),
    ((["да", "нет"], ["да", None]), 1),  # what has no reference is left out
    (([1], ["да"]), TypeError),
    ((["да"], []), ValueError),
]
SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def judged(compute: Callable[..., Any], golden: float, best: float, *, alike: float) -> Contract:
    """Scores 0, 0.5, 1 judged again as 0, 1, 0; `alike` is the value where all scores are the same."""
    return Contract(
        compute,
        golden=(([0, 0.5, 1], [0, 1, 0]), golden),
        cases=st.tuples(SCORES, SCORES),
        best=(([0, 0.5, 1], [0, 0.5, 1]), best),
        edges=[
            (([], []), NAN),
            (([NAN, 1], [1, NAN]), NAN),  # no complete pair
            (([0.5, 0.5], [0.5, 0.5]), alike),
            (([0.5], [0.5, 1]), ValueError),
            (([math.inf], [0.5]), ValueError),
        ],
    )


def decided(compute: Callable[..., Any], golden: float, *, no_truth: float, no_lie: float) -> Contract:
    """Three hits, two false alarms, one miss, four rightly refused."""
    predicted, actual = [True] * 5 + [False] * 5, [True] * 3 + [False] * 2 + [True] + [False] * 4
    return Contract(
        on_counts(compute),
        golden=((predicted, actual), golden),
        cases=st.tuples(st.booleans(), st.booleans()),
        best=(([True, False], [True, False]), 1),
        edges=[
            (([], []), NAN),
            (([False, False], [False, False]), no_truth),
            (([True, True], [True, True]), no_lie),
            (([None], [True]), ValueError),
            (([True], []), ValueError),
        ],
    )


VECTOR = st.tuples(*[st.floats(-3, 3).map(lambda x: round(x, 2))] * 3).filter(lambda v: sum(x * x for x in v) > 0.01)
LABELLED = st.tuples(VECTOR, st.sampled_from("abc"))
APART = ([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], list("aabb"))
BAD_VECTORS: list[tuple[Columns, Any]] = [
    (([[1.0, NAN], [1.0, 0.0]], ["a", "a"]), ValueError),
    (([[1.0, math.inf], [1.0, 0.0]], ["a", "a"]), ValueError),
    (([[1.0, 0.0]], ["a", "b"]), ValueError),
]


def cloud(compute: Callable[..., Any], golden: float, *edges: tuple[Columns, Any]) -> Contract:
    """The four corners of a square around the point (3, 3)."""
    corners = [[2.0, 2.0], [2.0, 4.0], [4.0, 2.0], [4.0, 4.0]]
    bad = [(columns[:1], error) for columns, error in BAD_VECTORS[:2]]
    return Contract(compute, golden=((corners,), golden), cases=st.tuples(VECTOR), edges=[*edges, *bad])


# Cosine between (2, 2) or (4, 4) and (2, 4) or (4, 2): 12 / sqrt(160); between (2, 4) and (4, 2): 16 / 20.
NEAR, FAR = 1 - 12 / math.sqrt(160), 1 - 0.8
PAIRWISE = (0 + 4 * NEAR + FAR) / 6
NEAREST = (2 * (0 + 2 * NEAR) / 3 + 2 * (FAR + 2 * NEAR) / 3) / 4
DIALOG = ([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]], ["d", "d", "d"])
ONE_TURN: tuple[Columns, Any] = (([[1.0, 0.0]], ["d"]), NAN)
NEITHER = (([], []), NAN)

CONTRACTS = {
    "retrieval.hit_rate": ranked(on_gains(retrieval.hit_rate, k=3), 1),
    "retrieval.precision": ranked(PRECISION, 1 / 3),
    "retrieval.recall": ranked(on_gains(retrieval.recall, counted=True, k=3), 1 / 2),
    "retrieval.reciprocal_rank": ranked(on_gains(retrieval.reciprocal_rank), 1 / 2),
    "retrieval.ndcg": ranked(on_gains(retrieval.ndcg, counted=True, k=3), 1 / (math.log2(3) + 1)),
    "text.bleu": compared(text.bleu, ("Кошка сидела на коврике.", "Кошка сидит на коврике.", 0.5), scale=100),
    "text.rouge1": compared(text.rouge1, ("в доме тихо", "тихо в лесу", 2 / 3)),
    "text.rouge2": compared(text.rouge2, ("в доме тихо", "тихо в доме", 1 / 2)),
    "text.rougeL": compared(text.rougeL, ("в доме тихо", "тихо в доме", 2 / 3)),
    "text.chrf": compared(text.chrf, ("аб", "ав", 1 / 4), scale=100),  # one of two letters, none of one pair
    "text.wer": compared(text.wer, ("в доме", "в лесу тихо", 2 / 3), best=0, worst=1),
    "text.string_similarity": compared(text.string_similarity, ("МАРТА", "МАРФА", 0.9066666666666667)),
    "text.corpus_bleu": Contract(
        corpus_bleu,
        golden=((["Кошка сидела на коврике."], ["Кошка сидит на коврике."]), 0.5),
        cases=st.tuples(WORDS, WORDS),
        best=((["да нет", "猫"], ["да нет", "猫"]), 1),
        scale=100,
        edges=CORPUS_EDGES,
    ),
    "text.perplexity": Contract(
        text.perplexity,
        golden=(([[math.log(0.1)] * 10],), [10]),
        cases=st.tuples(st.lists(st.floats(-20, 0), max_size=5)),
        best=(([[0.0, 0.0]],), [1]),
        edges=[
            (([],), []),
            (([None, []],), [NAN, NAN]),
            (([[0.1]],), ValueError),
            (([[NAN]],), ValueError),
            ((["да"],), TypeError),
        ],
    ),
    "answers.semantic_similarity": Contract(
        answers.semantic_similarity,
        golden=(([[3, 4]], [[4, 3]]), [24 / 25]),
        cases=st.tuples(VECTOR, VECTOR),
        best=(([[1, 2]], [[2, 4]]), [1]),
        edges=[
            (([[0, 0]], [[1, 0]]), [NAN]),
            (([[NAN, 0]], [[1, 0]]), [NAN]),
            (([[math.inf, 0]], [[1, 0]]), ValueError),
            (([[1, 0]], [[1]]), ValueError),
        ],
    ),
    "answers.exact_match": Contract(
        answers.exact_match,
        golden=(([["да", "да", "нет"]],), [1 / 3]),
        cases=st.tuples(st.lists(st.sampled_from(["да", "Да", "😀", None]), max_size=4)),
        best=(([["да", "да"]],), [1]),
        edges=[(([],), []), (([[], ["да"], ["да", None]],), [NAN, NAN, NAN]), ((["да"],), TypeError)],
    ),
    "embedding.cluster_similarities": Contract(
        lambda vectors, labels: float(np.nanmean(embedding.cluster_similarities(vectors, labels))),
        golden=(([[1, 0], [1, 0], [0, 1]], list("aaa")), 1 / 3),
        cases=st.tuples(VECTOR, st.just("a")),
        best=(APART, 1),
        edges=[*BAD_VECTORS, (([[0.0, 0.0], [1.0, 0.0]], ["a", "a"]), ValueError)],
    ),
    "embedding.intra_cluster_similarity": Contract(
        embedding.intra_cluster_similarity,
        golden=(([[1, 0], [1, 0], [0, 1], [1, 0], [0, 1]], list("aaabb")), (1 / 3 + 0) / 2),
        cases=LABELLED,
        best=(APART, 1),
        edges=[
            *BAD_VECTORS,
            (([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]), NAN),
            (([[0.0, 0.0]] * 2, ["a", "a"]), ValueError),
        ],
    ),
    "embedding.inter_cluster_distance": Contract(
        embedding.inter_cluster_distance,
        golden=(APART, math.sqrt(2)),
        cases=LABELLED,
        edges=[*BAD_VECTORS, (([[1.0, 0.0], [0.0, 1.0]], ["a", "a"]), NAN)],
    ),
    "embedding.silhouette": Contract(
        embedding.silhouette,
        golden=(([[1, 0], [0, 1], [-1, 0]], list("aab")), (0.5 + 0 + 0) / 3),  # a = 1, b = 2; a = 1, b = 1; alone
        cases=LABELLED,
        best=(APART, 1),
        edges=[*BAD_VECTORS, (([[1.0, 0.0], [0.0, 1.0]], ["a", "a"]), NAN), (([[1.0, 0.0]] * 3, list("aab")), 0)],
    ),
    "embedding.nearest_neighbour_distance": cloud(
        embedding.nearest_neighbour_distance, NEAREST, (([[1.0, 2.0]],), NAN)
    ),
    "embedding.density_score": cloud(
        lambda vectors: embedding.density_score(embedding.nearest_neighbour_distance(vectors)),
        1 / NEAREST,
        (([[1.0, 2.0]] * 3,), NAN),
    ),
    "embedding.spread": cloud(embedding.spread, math.sqrt(2), (([[1.0, 2.0]],), 0)),
    "embedding.effective_dimensionality": cloud(embedding.effective_dimensionality, 2, (([[1.0, 2.0]] * 3,), NAN)),
    "embedding.mean_pairwise_distance": cloud(embedding.mean_pairwise_distance, PAIRWISE, (([[1.0, 2.0]],), NAN)),
    "agreement.consistency": judged(agreement.consistency, 2 / 3, 1, alike=1),
    # Of the nine combinations |0-0|, |0.5-0|, |0.5-1|, |1-1| and so on, three lie further apart than 0.5.
    "agreement.chance_consistency": judged(agreement.chance_consistency, 6 / 9, 7 / 9, alike=1),
    "agreement.mean_abs_difference": judged(agreement.mean_abs_difference, 1.5 / 3, 0, alike=0),
    # mean (0, 0.25, 1) = 5 / 12; over all i, j: (0 + 1 + 0 + 0.25 + 0.25 + 0.25 + 1 + 0 + 1) / 9 = 5 / 12.
    "agreement.weighted_kappa": judged(agreement.weighted_kappa, 0, 1, alike=NAN),
    "agreement.spearman": judged(agreement.spearman, 0, 1, alike=NAN),
    "classification.accuracy": decided(classification.accuracy, 7 / 10, no_truth=1, no_lie=1),
    "classification.precision": decided(classification.precision, 3 / 5, no_truth=NAN, no_lie=1),
    "classification.recall": decided(classification.recall, 3 / 4, no_truth=NAN, no_lie=1),
    "classification.specificity": decided(classification.specificity, 4 / 6, no_truth=1, no_lie=NAN),
    "classification.f1": decided(classification.f1, 6 / 9, no_truth=NAN, no_lie=1),
    "classification.mcc": decided(classification.mcc, 10 / math.sqrt(5 * 4 * 6 * 5), no_truth=NAN, no_lie=NAN),
    "classification.confusion": Contract(
        lambda predicted, actual: list(classification.confusion(predicted, actual)),
        golden=(([True, True, False, False, True], [True, False, True, False, True]), [2, 1, 1, 1]),
        cases=st.tuples(st.booleans(), st.booleans()),
        edges=[(([], []), [0, 0, 0, 0]), (([None], [True]), ValueError), (([True], []), ValueError)],
    ),
    "dialogue.cache_hit_rate": Contract(
        lambda questions: dialogue.cache_hit_rate(questions, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        golden=(([[1.0, 0.1, 0.0], [1.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]],), 1 / 2),
        cases=st.tuples(VECTOR),
        best=(([[3.0, 0.0, 0.0]],), 1),
        edges=[((np.empty((0, 3)),), NAN), (([[0.0, 0.0, 0.0]],), ValueError), (([[1.0, NAN, 0.0]],), ValueError)],
    ),
    "dialogue.cache_wrong_hit_rate": Contract(
        dialogue.cache_wrong_hit_rate,
        golden=(([0.9, 0.99, 0.5, 0.86], [1, 0, 0, NAN]), 1 / 2),
        cases=st.tuples(st.floats(-1, 1), st.sampled_from([0.0, 1.0, NAN])),
        best=(([0.9], [1]), 0),
        edges=[NEITHER, (([0.85], [0]), NAN), (([NAN, 0.9], [0, NAN]), NAN), (([0.9], [1, 0]), ValueError)],
    ),
    "dialogue.context_preservation": Contract(
        dialogue.context_preservation,
        golden=(DIALOG, (0.6 - 0.8) / 2),
        cases=st.tuples(VECTOR, st.just("d")),
        best=(([[1.0, 2.0], [2.0, 4.0]], ["d", "d"]), 1),
        edges=[
            ONE_TURN,
            (([[1.0, 0.0], [0.0, 0.0]], ["d", "d"]), ValueError),
            (([[1.0, 0.0]], ["d", "e"]), ValueError),
        ],
    ),
    "dialogue.multi_turn_consistency": Contract(
        dialogue.multi_turn_consistency,
        golden=(DIALOG, 0.6 / 3),
        cases=st.tuples(VECTOR, st.sampled_from("de")),
        best=(([[1.0, 2.0], [2.0, 4.0]], ["d", "d"]), 1),
        edges=[
            ONE_TURN,
            (([[1.0, 0.0], [0.0, 0.0]], ["d", "d"]), ValueError),
            (([[1.0, 0.0]], ["d", "e"]), ValueError),
        ],
    ),
}
ROWS = {row.function: row for row in reversed(METRICS.values()) if row.function}
ORDERED = {"dialogue.context_preservation"}  # the turns of a dialog have an order
EVERY = pytest.mark.parametrize("function", CONTRACTS)


def test_every_metric_has_a_contract() -> None:
    assert set(CONTRACTS) == set(ROWS), "a metric of the table needs a golden value, edges and properties here"


@EVERY
def test_golden_value(function: str) -> None:
    columns, value = CONTRACTS[function].golden
    assert CONTRACTS[function].compute(*columns) == pytest.approx(value, rel=0, abs=1e-9)


@EVERY
def test_perfect_input_gives_the_best_value(function: str) -> None:
    contract, row = CONTRACTS[function], ROWS[function]
    if contract.best is None:
        assert row.better == "neither" or math.isinf(row.high)
        return
    columns, value = contract.best
    assert contract.compute(*columns) == pytest.approx(value, rel=0, abs=1e-9)
    if function != "agreement.chance_consistency":  # which has no better direction
        bound = row.high if row.better == "higher" else row.low
        assert np.all(np.multiply(value, contract.scale) == bound)


@EVERY
def test_edges(function: str) -> None:
    contract = CONTRACTS[function]
    assert len(contract.edges) >= 3
    for columns, expected in contract.edges:
        if isinstance(expected, type):
            with pytest.raises(expected):
                contract.compute(*columns)
        else:
            assert contract.compute(*columns) == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True), columns


@EVERY
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_values_lie_in_the_declared_range_and_do_not_depend_on_the_order_of_cases(
    function: str, data: st.DataObject
) -> None:
    contract, row = CONTRACTS[function], ROWS[function]
    cases = data.draw(st.lists(contract.cases, min_size=2, max_size=8))
    columns = [list(column) for column in zip(*cases, strict=True)]
    given_columns = copy.deepcopy(columns)
    values = np.atleast_1d(contract.compute(*columns)) * contract.scale
    assert repr(columns) == repr(given_columns), "the caller's values were changed"
    measured = values[~np.isnan(values)]
    assert ((row.low - 1e-9 <= measured) & (measured <= row.high + 1e-9)).all()
    if function in ORDERED:
        return
    order = data.draw(st.permutations(range(len(cases))))
    again = np.atleast_1d(contract.compute(*[[column[i] for i in order] for column in columns])) * contract.scale
    expected = (
        values[list(order)] if len(values) == len(cases) and row.aggregate != "whole" and len(values) > 1 else values
    )
    np.testing.assert_allclose(again, expected, rtol=1e-9, atol=1e-9)
