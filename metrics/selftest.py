"""Do the metrics compute what they should, here and now? In milliseconds, at the start of every evaluation.

It guards against what a test suite elsewhere cannot see: another version of a library, a tokenizer that drops Cyrillic
letters, an installation that is broken in part.
"""

from collections.abc import Callable
from math import log, log2
from typing import Any, NamedTuple

import numpy as np

from yarus.metrics import agreement, classification, dialogue, embedding, retrieval, statistics, text

SENTENCE = ["Стипендию назначают приказом ректора"]
REVERSED = ["ректора приказом назначают стипендию"]
# The hits stand at ranks 2 and 3; two of the four relevant ids are never found.
GAINS, FOUND = retrieval.gain_matrix([["a", "b", "c"]], [{"b", "c", "y", "z"}], depth=3)
VECTORS = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
TOLERANCE = 1e-9


class Check(NamedTuple):
    """A value that is known."""

    metric: str
    of: str
    expected: float
    compute: Callable[[], Any]


class Mismatch(NamedTuple):
    """A metric that does not give what it must."""

    metric: str
    of: str
    expected: float
    got: float

    def __str__(self) -> str:
        """One line for a person."""
        return f"{self.metric} of {self.of} must be {self.expected:.6g}, is {self.got:.6g}"


CHECKS = (
    Check("bleu", "identical Russian text", 1, lambda: text.bleu(SENTENCE, SENTENCE)),
    Check("rouge1", "identical Russian text", 1, lambda: text.rouge1(SENTENCE, SENTENCE)),
    Check("rouge2", "identical Russian text", 1, lambda: text.rouge2(SENTENCE, SENTENCE)),
    Check("rougeL", "identical Russian text", 1, lambda: text.rougeL(SENTENCE, SENTENCE)),
    Check("chrf", "identical Russian text", 1, lambda: text.chrf(SENTENCE, SENTENCE)),
    Check("string_similarity", "identical Russian text", 1, lambda: text.string_similarity(SENTENCE, SENTENCE)),
    Check("wer", "identical Russian text", 0, lambda: text.wer(SENTENCE, SENTENCE)),
    # Of its runs: 4 of 4 words, 0 of 3 pairs, 0 of 2 triples, 0 of 1 run of four; 1 is added from the pairs on.
    Check("bleu", "the reversed text", (1 / 4 / 3 / 2) ** 0.25, lambda: text.bleu(REVERSED, SENTENCE)),
    Check("rouge1", "the reversed text", 1, lambda: text.rouge1(REVERSED, SENTENCE)),
    Check("rouge2", "the reversed text", 0, lambda: text.rouge2(REVERSED, SENTENCE)),
    Check("rougeL", "the reversed text", 1 / 4, lambda: text.rougeL(REVERSED, SENTENCE)),
    Check("chrf", "the reversed text", 0.7109754585421993, lambda: text.chrf(REVERSED, SENTENCE)),  # as in sacreBLEU
    Check("wer", "the reversed text", 1, lambda: text.wer(REVERSED, SENTENCE)),
    Check("rouge1", "й written with a combining mark", 1, lambda: text.rouge1(["\u0438\u0306 да"], ["й да"])),
    Check("perplexity", "ten equally likely words", 10, lambda: text.perplexity([[-log(10)]])),
    Check("hit_rate@1", "a first hit at rank 2", 0, lambda: retrieval.hit_rate(GAINS, k=1)),
    Check("hit_rate@3", "a first hit at rank 2", 1, lambda: retrieval.hit_rate(GAINS, k=3)),
    Check("mrr", "a first hit at rank 2", 1 / 2, lambda: retrieval.reciprocal_rank(GAINS)),
    Check("recall@3", "two found of four", 1 / 2, lambda: retrieval.recall(GAINS, FOUND, k=3)),
    Check("precision@3", "two relevant of three", 2 / 3, lambda: retrieval.precision(GAINS, k=3)),
    # All but the first rank, whose gain would be 1, the others' are 1/log2(3) and 1/2.
    Check("ndcg@3", "hits at ranks 2 and 3", 1 - 1 / (1.5 + 1 / log2(3)), lambda: retrieval.ndcg(GAINS, FOUND, k=3)),
    Check("silhouette_score", "separate clusters", 1, lambda: embedding.silhouette(VECTORS, list("aabb"))),
    Check("silhouette_score", "mixed clusters", -1 / 2, lambda: embedding.silhouette(VECTORS, list("abab"))),
    Check("inter_cluster_dist", "sides 1", 2**0.5, lambda: embedding.inter_cluster_distance(VECTORS, list("aabb"))),
    Check("weighted_kappa", "equal scores", 1, lambda: agreement.weighted_kappa([0, 0.5, 1], [0, 0.5, 1])),
    Check("mcc", "five right of seven", 5 / 12, lambda: classification.mcc(classification.Counts(3, 1, 2, 1))),
    Check("context_preservation", "a question repeated", 1, lambda: dialogue.context_preservation(VECTORS[:2], "dd")),
    # As statsmodels has it; five signs that agree are 2 patterns in 32.
    Check("wilson_interval", "8 of 10", 0.49016247153664, lambda: statistics.wilson_interval(8, 10).low),
    Check("permutation_p", "five equal differences", 2 / 32, lambda: statistics.permutation_p([1] * 5, seed=0)),
)


def self_test() -> list[Mismatch]:
    """Compute every check; an evaluation must not start if this returns anything.

    Returns:
        The problems, none if all is well.

    Example:
        >>> from yarus.metrics.selftest import self_test
        >>> self_test()
        []
    """
    computed = ((check, float(np.asarray(check.compute()).item())) for check in CHECKS)
    # A NaN compares as False, and so is a finding.
    wrong = ((check, got) for check, got in computed if not abs(got - check.expected) <= TOLERANCE)
    return [Mismatch(check.metric, check.of, check.expected, got) for check, got in wrong]
