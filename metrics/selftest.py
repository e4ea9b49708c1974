"""Self-test of the metrics on known values; it takes milliseconds, and runs at the start of every evaluation.

It detects problems that a test suite elsewhere cannot see: another version of a library, a tokenizer that drops
Cyrillic letters, a partly broken installation.
"""

from collections.abc import Callable
from math import log, log2
from typing import Any, NamedTuple

import numpy as np

from yarus.metrics import agreement, classification, dialogue, embedding, retrieval, statistics, text

SENTENCE = ["Стипендию назначают приказом ректора"]
REVERSED = ["ректора приказом назначают стипендию"]
# The hits are at ranks 2 and 3; two of the four relevant ids are never retrieved.
GAINS, N_RELEVANT = retrieval.gain_matrix([["a", "b", "c"]], [{"b", "c", "y", "z"}], depth=3)
VECTORS = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
TOLERANCE = 1e-9


class KnownValue(NamedTuple):
    """A known value of a metric."""

    metric: str
    example: str
    expected: float
    compute: Callable[[], Any]


class Mismatch(NamedTuple):
    """A metric with a wrong value."""

    metric: str
    example: str
    expected: float
    got: float

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.metric} of {self.example} must be {self.expected:.6g}, is {self.got:.6g}"


CHECKS = (
    KnownValue("bleu", "identical Russian text", 1, lambda: text.bleu(SENTENCE, SENTENCE)),
    KnownValue("rouge1", "identical Russian text", 1, lambda: text.rouge1(SENTENCE, SENTENCE)),
    KnownValue("rouge2", "identical Russian text", 1, lambda: text.rouge2(SENTENCE, SENTENCE)),
    KnownValue("rougeL", "identical Russian text", 1, lambda: text.rougeL(SENTENCE, SENTENCE)),
    KnownValue("chrf", "identical Russian text", 1, lambda: text.chrf(SENTENCE, SENTENCE)),
    KnownValue("string_similarity", "identical Russian text", 1, lambda: text.string_similarity(SENTENCE, SENTENCE)),
    KnownValue("wer", "identical Russian text", 0, lambda: text.wer(SENTENCE, SENTENCE)),
    # N-grams found: 4 of 4 words, 0 of 3 pairs, 0 of 2 triples, 0 of 1 of four words; 1 is added from the pairs on.
    KnownValue("bleu", "the reversed text", (1 / 4 / 3 / 2) ** 0.25, lambda: text.bleu(REVERSED, SENTENCE)),
    KnownValue("rouge1", "the reversed text", 1, lambda: text.rouge1(REVERSED, SENTENCE)),
    KnownValue("rouge2", "the reversed text", 0, lambda: text.rouge2(REVERSED, SENTENCE)),
    KnownValue("rougeL", "the reversed text", 1 / 4, lambda: text.rougeL(REVERSED, SENTENCE)),
    # As in sacreBLEU.
    KnownValue("chrf", "the reversed text", 0.7109754585421993, lambda: text.chrf(REVERSED, SENTENCE)),
    KnownValue("wer", "the reversed text", 1, lambda: text.wer(REVERSED, SENTENCE)),
    KnownValue("rouge1", "й written with a combining mark", 1, lambda: text.rouge1(["\u0438\u0306 да"], ["й да"])),
    KnownValue("perplexity", "ten equally likely words", 10, lambda: text.perplexity([[-log(10)]])),
    KnownValue("hit_rate@1", "a first hit at rank 2", 0, lambda: retrieval.hit_rate(GAINS, k=1)),
    KnownValue("hit_rate@3", "a first hit at rank 2", 1, lambda: retrieval.hit_rate(GAINS, k=3)),
    KnownValue("mrr", "a first hit at rank 2", 1 / 2, lambda: retrieval.reciprocal_rank(GAINS)),
    KnownValue("recall@3", "two found of four", 1 / 2, lambda: retrieval.recall(GAINS, N_RELEVANT, k=3)),
    KnownValue("precision@3", "two relevant of three", 2 / 3, lambda: retrieval.precision(GAINS, k=3)),
    # All but the first rank: its gain would be 1, the others' are 1/log2(3) and 1/2.
    KnownValue(
        "ndcg@3", "hits at ranks 2 and 3", 1 - 1 / (1.5 + 1 / log2(3)), lambda: retrieval.ndcg(GAINS, N_RELEVANT, k=3)
    ),
    KnownValue("silhouette_score", "separate clusters", 1, lambda: embedding.silhouette(VECTORS, list("aabb"))),
    KnownValue("silhouette_score", "mixed clusters", -1 / 2, lambda: embedding.silhouette(VECTORS, list("abab"))),
    KnownValue(
        "inter_cluster_dist", "sides 1", 2**0.5, lambda: embedding.inter_cluster_distance(VECTORS, list("aabb"))
    ),
    KnownValue("weighted_kappa", "equal scores", 1, lambda: agreement.weighted_kappa([0, 0.5, 1], [0, 0.5, 1])),
    KnownValue(
        "mcc", "five right of seven", 5 / 12, lambda: classification.mcc(classification.ConfusionCounts(3, 1, 2, 1))
    ),
    KnownValue(
        "context_preservation", "a question repeated", 1, lambda: dialogue.context_preservation(VECTORS[:2], "dd")
    ),
    # As in statsmodels; five signs that agree are 2 patterns in 32.
    KnownValue("wilson_interval", "8 of 10", 0.49016247153664, lambda: statistics.wilson_interval(8, 10).low),
    KnownValue("permutation_p", "five equal differences", 2 / 32, lambda: statistics.permutation_p([1] * 5, seed=0)),
)


def self_test() -> list[Mismatch]:
    """Return all mismatches; an evaluation must not start if there are any.

    Returns:
        The mismatches, an empty list if all is well.

    Example:
        >>> from yarus.metrics.selftest import self_test
        >>> self_test()
        []
    """
    computed = ((check, float(np.asarray(check.compute()).item())) for check in CHECKS)
    # A NaN compares as False, and so is a mismatch.
    wrong = ((check, got) for check, got in computed if not abs(got - check.expected) <= TOLERANCE)
    return [Mismatch(check.metric, check.example, check.expected, got) for check, got in wrong]
