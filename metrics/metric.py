"""What is declared about a metric, once, beside its formula. The metrics themselves stand in `metrics.table`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Direction = Literal["higher", "lower", "neither"]
Grade = Literal["excellent", "good", "attention", "strong", "reasonable", "weak", "absent"]
INFINITE = float("inf")
REFERENCED = ("answer_correctness", "e2e_score")
"""The judged prompts that show a reference."""
RUBRIC = "rubric_"
"""What the columns of the user's own judged metrics begin with, so that none bears the name of another column."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One stored number: what it is, how it is computed, and how far a reader may trust it."""

    name: str
    """As stored, e.g. 'ndcg@10', 'avg_bleu', 'retrieval_latency_ms_p95'."""
    tiers: tuple[str, ...]
    function: str = ""
    """What computes it, in the package metrics: 'retrieval.ndcg'. Empty for counts and what only a step can measure."""
    column: str | None = None
    """The per-case column it is made of (the name without avg_); None where a single case has no value."""
    measures: str
    formula: str
    low: float = 0.0
    high: float = 1.0
    better: Direction = "higher"
    unit: str = "share"
    kind: Literal["algorithmic", "judged", "hybrid"] = "algorithmic"
    aggregate: Literal["mean", "p50", "p95", "whole"] = "mean"
    """How the column becomes the value; 'whole': computed over the set, not from a column."""
    interval: Literal["wilson", "bca", "order", "posterior", "percentile", "student", "none"] = "bca"
    """How the interval is made where cases stand alone and are not on few levels: docs/metrics.md has all of them."""
    signature: str
    """Everything that changes the number, with the version of its definition: 'ndcg@10|gain:binary|v:1'."""
    equals: str = ""
    """The tool whose numbers it equals."""
    source: str = ""
    undefined: str
    trust: str
    reading: str
    opinion: str = ""
    """The judged prompt whose word it is: it is worth what that judge is worth. Empty for what no model says."""
    checked: bool = False
    """Of an opinion: it was held against what is known to be right, so that it needs no exam."""
    thresholds: tuple[float, ...] | None = None
    """Ascending bounds of the grades: two (attention, good, excellent) or three (absent, weak, reasonable, strong)."""
    asked: str = ""
    """What an evaluation must have so that it is measured: the parameter that asks for it, or `streams`; with `=a,b` it
    must be one of these.
    """
    later: bool = False
    """It was added when evaluations were stored already, and changes no number beside it."""

    @property
    def of_relevance(self) -> bool:
        """Whether it says how much of what is relevant was found, and how far up: it is worth what the labels are."""
        return self.function.startswith("retrieval.") or self.function in ("incomplete.bpref", "incomplete.inf_ap")

    @property
    def needs(self) -> Literal["", "relevant", "reference", "nuggets"]:
        """The labels without which no case has a value of it, however well the system does; empty where any has."""
        if self.function.startswith(("retrieval.", "incomplete.")):
            return "relevant"
        if self.function == "claims.nugget_recall":
            return "nuggets"
        of_overlap = self.function.startswith("text.") and self.function != "text.perplexity"
        return "reference" if of_overlap or "no reference" in self.undefined or self.opinion in REFERENCED else ""

    @property
    def in_key(self) -> bool:
        """Whether evaluations are compared only under the same signature of it: not of one added later, at v:1."""
        return not (self.later and self.signature.endswith("|v:1"))

    def signature_with(self, **options: object) -> str:
        """The signature where an evaluation chose otherwise: `signature_with(gain="linear", tok="13a", depth=20)`.

        An option that this metric does not have is passed over, so that an evaluation can hand all of its own to each.
        """
        _, *parts = self.signature.split("|")
        pairs = (part.partition(":") for part in parts)
        return "|".join([self.name, *(f"{key}:{options.get(key, value)}" for key, _, value in pairs)])


QUANTILES = {"p50": 0.5, "p95": 0.95}
"""Of the aggregates that are one."""
LADDERS: dict[int, tuple[Grade, ...]] = {
    2: ("attention", "good", "excellent"),
    3: ("absent", "weak", "reasonable", "strong"),
}


class Goal(NamedTuple):
    """A question that people bring, and the metrics that answer it."""

    key: str
    metrics: tuple[str, ...]


GOALS = (
    Goal("retrieval", ("hit_rate@1", "mrr", "ndcg@10")),
    Goal("generation", ("avg_faithfulness", "avg_answer_relevance")),
    Goal("end_to_end", ("avg_e2e_score", "avg_semantic_similarity")),
    Goal("gate", ("accuracy", "precision", "recall", "f1_score")),
    Goal("judge", ("consistency_score",)),
    Goal("cache", ("cache_hit_rate",)),
)


def bounds_of_mean(mean: float, n: int, missing: int, *, low: float, high: float) -> tuple[float, float]:
    """The mean if all missing cases had had the worst value, and if they had had the best.

    Args:
        mean: of the measured cases; of none, any.
        n: how many were measured.
        missing: how many were not; n + missing is at least 1.
        low, high: the metric's range.

    Reference: Manski 1989, Anatomy of the selection problem.

    Example:
        >>> from yarus.metrics.metric import bounds_of_mean
        >>> bounds_of_mean(0.8, 90, 10, low=0, high=1)
        (0.72, 0.82)
    """
    return (mean * n + low * missing) / (n + missing), (mean * n + high * missing) / (n + missing)
