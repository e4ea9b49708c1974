"""Do the metrics compute what they should, here and now? In milliseconds, at the start of every evaluation.

It guards against what a test suite elsewhere cannot see: another version of a library, a tokenizer that drops Cyrillic
letters, an installation that is broken in part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log2

import numpy as np

from metrics import agreement, classification, dialogue, embedding, retrieval, statistics, text

SENTENCE = ["Стипендию назначают приказом ректора дважды в год, после каждой сессии."]
SHUFFLED = ["Сессии каждой после, год в дважды ректора приказом назначают стипендию."]
# The answers stand at rank 2; one of the two relevant ids is never found.
GAINS, FOUND = retrieval.gain_matrix([["a", "b", "c"]], [{"b", "z"}], depth=3)
VECTORS = np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [0.01, 1.0]])
CLUSTERS = ["a", "a", "b", "b"]
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Check:
    """A value that must lie between two bounds, which are equal where it is known exactly."""

    metric: str
    of: str
    compute: Callable[[], float]
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Finding:
    """A metric that does not give what it must."""

    metric: str
    of: str
    expected: str
    got: float

    def __str__(self) -> str:
        """One line for a person."""
        return f"{self.metric} of {self.of} must be {self.expected}, is {self.got:.6g}"


def _exactly(metric: str, of: str, compute: Callable[[], float], value: float) -> Check:
    return Check(metric, of, compute, value, value)


CHECKS = (
    _exactly("bleu", "identical Russian text", lambda: text.bleu(SENTENCE, SENTENCE)[0], 1),
    _exactly("rouge1", "identical Russian text", lambda: text.rouge1(SENTENCE, SENTENCE)[0], 1),
    _exactly("rouge2", "identical Russian text", lambda: text.rouge2(SENTENCE, SENTENCE)[0], 1),
    _exactly("rougeL", "identical Russian text", lambda: text.rougeL(SENTENCE, SENTENCE)[0], 1),
    _exactly("chrf", "identical Russian text", lambda: text.chrf(SENTENCE, SENTENCE)[0], 1),
    _exactly("string_similarity", "identical Russian text", lambda: text.string_similarity(SENTENCE, SENTENCE)[0], 1),
    _exactly("wer", "identical Russian text", lambda: text.wer(SENTENCE, SENTENCE)[0], 0),
    _exactly("rouge1", "the same words shuffled", lambda: text.rouge1(SHUFFLED, SENTENCE)[0], 1),
    Check("bleu", "the same words shuffled", lambda: text.bleu(SHUFFLED, SENTENCE)[0], 0.0, 0.5),
    Check("rouge2", "the same words shuffled", lambda: text.rouge2(SHUFFLED, SENTENCE)[0], 0.0, 0.5),
    Check("rougeL", "the same words shuffled", lambda: text.rougeL(SHUFFLED, SENTENCE)[0], 0.0, 0.5),
    Check("chrf", "the same words shuffled", lambda: text.chrf(SHUFFLED, SENTENCE)[0], 0.5, 0.95),
    Check("wer", "the same words shuffled", lambda: text.wer(SHUFFLED, SENTENCE)[0], 0.5, 1.0),
    _exactly("rouge1", "й written with a combining mark", lambda: text.rouge1(["\u0438\u0306 да"], ["й да"])[0], 1),
    _exactly("perplexity", "ten equally likely words", lambda: text.perplexity([np.log([0.1] * 5)])[0], 10),
    _exactly("hit_rate@1", "a first hit at rank 2", lambda: retrieval.hit_rate(GAINS, k=1)[0], 0),
    _exactly("hit_rate@3", "a first hit at rank 2", lambda: retrieval.hit_rate(GAINS, k=3)[0], 1),
    _exactly("mrr", "a first hit at rank 2", lambda: retrieval.reciprocal_rank(GAINS)[0], 1 / 2),
    _exactly("recall@3", "one found of two", lambda: retrieval.recall(GAINS, FOUND, k=3)[0], 1 / 2),
    _exactly("precision@3", "one relevant of three", lambda: retrieval.precision(GAINS, k=3)[0], 1 / 3),
    _exactly("ndcg@3", "a hit at rank 2 of two", lambda: retrieval.ndcg(GAINS, FOUND, k=3)[0], 1 / (log2(3) + 1)),
    Check("silhouette_score", "two separate clusters", lambda: embedding.silhouette(VECTORS, CLUSTERS), 0.999, 1.0),
    Check("silhouette_score", "mixed clusters", lambda: embedding.silhouette(VECTORS, list("abab")), -1.0, 0.0),
    _exactly("weighted_kappa", "equal scores", lambda: agreement.weighted_kappa([0, 0.5, 1], [0, 0.5, 1]), 1),
    _exactly("mcc", "right decisions", lambda: _mcc([True, False, True]), 1),
    _exactly("context_preservation", "one question asked twice", lambda: _dialog([[3.0, 4.0], [3.0, 4.0]]), 1),
    # Wilson's interval of 8 in 10, as statsmodels gives it; five signs that agree have a p of 2 in 32.
    _exactly(
        "wilson_interval", "8 of 10, lower bound", lambda: statistics.wilson_interval(8, 10).low, 0.49016247153664
    ),
    _exactly("permutation_p", "five equal differences", lambda: statistics.permutation_p([1.0] * 5, seed=0), 2 / 32),
)


def self_test() -> list[Finding]:
    """Compute every check; an evaluation must not start if this returns anything.

    Returns:
        The problems, none if all is well.
    """
    computed = ((check, float(check.compute())) for check in CHECKS)
    # A NaN compares as False, and so is a finding.
    wrong = ((check, got) for check, got in computed if not check.low - TOLERANCE <= got <= check.high + TOLERANCE)
    return [Finding(check.metric, check.of, _bounds(check), got) for check, got in wrong]


def _mcc(decisions: list[bool]) -> float:
    return float(classification.mcc(classification.confusion(decisions, decisions)))


def _dialog(vectors: list[list[float]]) -> float:
    return dialogue.context_preservation(np.array(vectors), ["dialog"] * len(vectors))


def _bounds(check: Check) -> str:
    return f"{check.low:.6g}" if check.low == check.high else f"{check.low:.6g} to {check.high:.6g}"
