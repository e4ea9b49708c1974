"""Contracts of the metrics in the table: a golden value, the best value, edge cases, and generated cases."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from yarus.metrics import agreement, answers, classification, exam, facts, incomplete, retrieval, text

NAN = math.nan
Columns = tuple[Sequence[Any], ...]


@dataclass(frozen=True)
class Contract:
    """Contract of one function, as a function of columns of cases of equal length."""

    compute: Callable[..., Any]
    """Maps the columns to one value per case, or to one value for all cases."""
    golden: tuple[Columns, Any]
    cases: st.SearchStrategy[tuple[Any, ...]]
    """Generates one case: the value of each column."""
    edges: list[tuple[Columns, Any]]
    """Input at the border of the definition, with its value, NaN, or the error that it must raise."""
    best: tuple[Columns, Any] | None = None
    """Perfect input and its value; None if neither direction is better."""
    scale: float = 1.0
    """Scale of the stored value: 100 for percent."""


def compute_on_gains(metric: Callable[..., Any], *, with_counts: bool = False, **options: int) -> Callable[..., Any]:
    def compute(rankings: Sequence[Any], relevant: Sequence[Any]) -> Any:
        gains, n_relevant = retrieval.gain_matrix(rankings, relevant, depth=5)
        return metric(gains, n_relevant, **options) if with_counts else metric(gains, **options)

    return compute


def compute_on_counts(metric: Callable[..., Any]) -> Callable[..., Any]:
    return lambda predicted, actual: metric(classification.confusion(predicted, actual))


def ranking_contract(compute: Callable[..., Any], golden: float) -> Contract:
    """Return a contract for two relevant results, of which one is at rank 2 of three."""
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


def compute_on_labels(metric: Callable[..., Any], *, counts: int = 0, **options: int) -> Callable[..., Any]:
    def compute(rankings: Sequence[Any], labels: Sequence[Any]) -> Any:
        matrix, *label_counts = incomplete.judgement_matrix(rankings, labels, depth=5)
        return metric(matrix, *label_counts[:counts], **options)

    return compute


def incomplete_contract(compute: Callable[..., Any], golden: float, *, empty: float, best: bool) -> Contract:
    """Return a contract for four results: not relevant, unjudged, relevant, unjudged; one relevant is missing."""
    perfect = [["a", "b"]], [{"a": 2, "z": 0}]
    return Contract(
        compute,
        golden=(([["a", "b", "c", "d"]], [{"a": 0, "c": 1, "z": 1, "y": 0}]), [golden]),
        cases=st.tuples(
            st.permutations("abcdef").map(lambda ids: ids[:5]),
            st.dictionaries(st.sampled_from("abcxyz"), st.sampled_from([0, 1, 2])),
        ),
        best=(perfect, [1]) if best else None,
        edges=[
            (([], []), []),
            (([[]], [{"a": 1}]), [empty]),
            (([None], [{"a": 1}]), [NAN]),  # failed
            (([["a"]], [{}]), [NAN]),  # unlabelled
            (([["a"]], [{"a": 0}]), [NAN]),  # all labels negative
            (([["a", "a"]], [{"a": 1}]), ValueError),
            (([["a"]], [{"a": -1}]), ValueError),
            (([["a"]], [{"a"}]), TypeError),
            (([["a"]], []), ValueError),
        ],
    )


PRECISION = compute_on_gains(retrieval.precision, k=3)
WORDS = st.lists(st.sampled_from(["да", "нет", "猫", "e\u0301", "😀", "три", ".", " ", "ё"]), max_size=6).map(" ".join)


def text_pair_contract(
    compute: Callable[..., Any], golden: tuple[str, str, float], best: float = 1, scale: float = 1, *, worst: float = 0
) -> Contract:
    hypothesis, reference, value = golden
    same = ["Ректор подписал приказ о стипендии.", "猫が 好き です か", "да да нет нет"]
    return Contract(
        compute,
        golden=(([hypothesis], [reference]), [value]),
        cases=st.tuples(WORDS, WORDS),
        best=((same, same), [best] * 3),
        scale=scale,
        edges=[
            (([], []), []),
            (([""], ["да нет"]), [worst]),
            ((["да нет"], [""]), [NAN]),
            ((["да нет"], [None]), [NAN]),
            (([None], ["да нет"]), [NAN]),
            ((["\u0438\u0306 да"], ["й да"]), [best]),  # the same letter, composed and decomposed
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
    ((["да", "нет"], ["да", None]), 1),  # texts without a reference are left out
    (([1], ["да"]), TypeError),
    ((["да"], []), ValueError),
]
SCORES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def agreement_contract(compute: Callable[..., Any], golden: float, best: float, *, alike: float) -> Contract:
    """Return a contract for scores 0, 0.5, 1 that are judged again as 0, 1, 0.

    `alike` is the value if all scores are equal.
    """
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


def classification_contract(compute: Callable[..., Any], golden: float, *, no_truth: float, no_lie: float) -> Contract:
    """Return a contract for three hits, two false alarms, one miss and four correct refusals."""
    predicted, actual = [True] * 5 + [False] * 5, [True] * 3 + [False] * 2 + [True] + [False] * 4
    return Contract(
        compute_on_counts(compute),
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


SCORE_LISTS = st.lists(st.one_of(st.floats(0, 1), st.just(NAN)), max_size=5)


def exam_contract(part: Callable[..., float], golden: Columns, value: float, best: Columns) -> Contract:
    """Return a contract for a part of an exam, over cases with lists of scores."""

    def compute(*sides: Sequence[Any]) -> list[float]:
        return [part(*case) for case in zip(*sides, strict=True)]

    nothing: Columns = tuple([[]] for _ in best)
    return Contract(
        compute,
        golden=(golden, [value]),
        cases=st.tuples(*(SCORE_LISTS for _ in best)),
        best=(best, [1]),
        edges=[
            (tuple([] for _ in best), []),
            (nothing, [NAN]),
            (tuple([[NAN]] for _ in best), [NAN]),
            (tuple([[1.5]] for _ in best), ValueError),
        ],
    )


FACTS = st.lists(st.sampled_from(["взнос", "12,5", "7", "в 18:00", "12.05.2025", "猫"]), max_size=5).map(" ".join)


def facts_contract(compute: Callable[..., Any], golden: Columns, value: float, best: float) -> Contract:
    """Return a contract for facts in two texts; each may support the other."""
    statements, fee = ["Взнос 500 рублей.", "Приём 12.05.2025 в 18:00."], ["Взнос 500 рублей."]
    return Contract(
        compute,
        golden=(golden, [value]),
        cases=st.tuples(FACTS, FACTS),
        best=((statements, statements), [best] * 2),
        edges=[
            (([], []), []),
            ((["Взнос невелик.", None, "5"], ["Взноса нет.", "5", None]), [NAN] * 3),
            ((fee, []), ValueError),
        ],
    )


def has_unsupported(*texts: Sequence[Any]) -> list[float]:
    return [NAN if facts_of_case is None else len(facts_of_case) > 0 for facts_of_case in facts.unsupported(*texts)]


MORE, FIVE = ["Нужно 5 справок и 7 копий."], ["Нужно 5 справок."]
METRIC_CONTRACTS = {
    "facts.fact_precision": facts_contract(facts.fact_precision, (MORE, FIVE), 1 / 2, 1),
    "facts.fact_recall": facts_contract(facts.fact_recall, (FIVE, MORE), 1 / 2, 1),
    "facts.unsupported": facts_contract(has_unsupported, (MORE, FIVE), 1, 0),
    "exam.auc": exam_contract(exam.auc, ([[1.0, 0.9]], [[0.5, 0.9, NAN]]), 0.875, ([[1.0, 0.8]], [[0.7, 0.0]])),
    "exam.sensitivity": exam_contract(exam.sensitivity, ([[0.5, 0.0, 1.0, 0.7]],), 0.75, ([[0.0, 0.74]],)),
    "exam.specificity": exam_contract(exam.specificity, ([[1.0, 0.8, 0.7, NAN]],), 2 / 3, ([[0.75, 1.0]],)),
    "retrieval.hit_rate": ranking_contract(compute_on_gains(retrieval.hit_rate, k=3), 1),
    "retrieval.precision": ranking_contract(PRECISION, 1 / 3),
    "retrieval.recall": ranking_contract(compute_on_gains(retrieval.recall, with_counts=True, k=3), 1 / 2),
    "retrieval.reciprocal_rank": ranking_contract(compute_on_gains(retrieval.reciprocal_rank), 1 / 2),
    "incomplete.judged": incomplete_contract(compute_on_labels(incomplete.judged, k=4), 1 / 2, empty=NAN, best=False),
    "incomplete.unjudged_above": incomplete_contract(
        compute_on_labels(incomplete.unjudged_above), 1, empty=NAN, best=False
    ),
    "incomplete.bpref": incomplete_contract(compute_on_labels(incomplete.bpref, counts=2), 1 / 4, empty=0, best=True),
    "incomplete.inf_ap": incomplete_contract(
        compute_on_labels(incomplete.inf_ap, counts=1), (1 + 1e-5 / (1 + 2e-5)) / 6, empty=0, best=True
    ),
    "retrieval.ndcg": ranking_contract(compute_on_gains(retrieval.ndcg, with_counts=True, k=3), 1 / (math.log2(3) + 1)),
    "text.bleu": text_pair_contract(text.bleu, ("Кошка сидела на коврике.", "Кошка сидит на коврике.", 0.5), scale=100),
    "text.rouge1": text_pair_contract(text.rouge1, ("в доме тихо", "тихо в лесу", 2 / 3)),
    "text.rouge2": text_pair_contract(text.rouge2, ("в доме тихо", "тихо в доме", 1 / 2)),
    "text.rougeL": text_pair_contract(text.rougeL, ("в доме тихо", "тихо в доме", 2 / 3)),
    "text.chrf": text_pair_contract(text.chrf, ("аб", "ав", 1 / 4), scale=100),  # one of two letters, none of one pair
    "text.wer": text_pair_contract(text.wer, ("в доме", "в лесу тихо", 2 / 3), best=0, worst=1),
    "text.string_similarity": text_pair_contract(text.string_similarity, ("МАРТА", "МАРФА", 0.9066666666666667)),
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
    "answers.exact_match": Contract(
        answers.exact_match,
        golden=(([["да", "да", "нет"]],), [1 / 3]),
        cases=st.tuples(st.lists(st.sampled_from(["да", "Да", "😀", None]), max_size=4)),
        best=(([["да", "да"]],), [1]),
        edges=[(([],), []), (([[], ["да"], ["да", None]],), [NAN, NAN, NAN]), ((["да"],), TypeError)],
    ),
    "agreement.consistency": agreement_contract(agreement.consistency, 2 / 3, 1, alike=1),
    # Of the nine combinations |0-0|, |0.5-0|, |0.5-1|, |1-1| and so on, three differ by more than 0.5.
    "agreement.chance_consistency": agreement_contract(agreement.chance_consistency, 6 / 9, 7 / 9, alike=1),
    "agreement.mean_abs_difference": agreement_contract(agreement.mean_abs_difference, 1.5 / 3, 0, alike=0),
    # mean (0, 0.25, 1) = 5 / 12; over all i, j: (0 + 1 + 0 + 0.25 + 0.25 + 0.25 + 1 + 0 + 1) / 9 = 5 / 12.
    "agreement.weighted_kappa": agreement_contract(agreement.weighted_kappa, 0, 1, alike=NAN),
    "agreement.spearman": agreement_contract(agreement.spearman, 0, 1, alike=NAN),
    "classification.accuracy": classification_contract(classification.accuracy, 7 / 10, no_truth=1, no_lie=1),
    "classification.precision": classification_contract(classification.precision, 3 / 5, no_truth=NAN, no_lie=1),
    "classification.recall": classification_contract(classification.recall, 3 / 4, no_truth=NAN, no_lie=1),
    "classification.specificity": classification_contract(classification.specificity, 4 / 6, no_truth=1, no_lie=NAN),
    "classification.f1": classification_contract(classification.f1, 6 / 9, no_truth=NAN, no_lie=1),
    "classification.mcc": classification_contract(
        classification.mcc, 10 / math.sqrt(5 * 4 * 6 * 5), no_truth=NAN, no_lie=NAN
    ),
    "classification.confusion": Contract(
        lambda predicted, actual: list(classification.confusion(predicted, actual)),
        golden=(([True, True, False, False, True], [True, False, True, False, True]), [2, 1, 1, 1]),
        cases=st.tuples(st.booleans(), st.booleans()),
        edges=[(([], []), [0, 0, 0, 0]), (([None], [True]), ValueError), (([True], []), ValueError)],
    ),
}
