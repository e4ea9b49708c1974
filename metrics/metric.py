"""The declaration of a metric, next to its formula; the metrics themselves are in `metrics.table`."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Direction = Literal["higher", "lower", "neither"]
GradeName = Literal["excellent", "good", "attention", "strong", "reasonable", "weak", "absent"]
UNBOUNDED = float("inf")
REFERENCE_PROMPTS = ("answer_correctness", "e2e_score")
"""The judged prompts that include a reference."""
RUBRIC_PREFIX = "rubric_"
"""Prefix of the columns of user-defined judged metrics, which avoids clashes with other columns."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One stored value: its definition, its computation, and how far a reader may trust it."""

    name: str
    """The stored name, e.g. 'ndcg@10', 'avg_bleu', 'retrieval_latency_ms_p95'."""
    tiers: tuple[str, ...]
    function: str = ""
    """The function in the package metrics: 'retrieval.ndcg'. Empty for counts and values that a step measures."""
    column: str | None = None
    """The per-case column that it aggregates (the name without avg_); None if a single case has no value."""
    measures: str
    formula: str
    low: float = 0.0
    high: float = 1.0
    better: Direction = "higher"
    unit: str = "share"
    kind: Literal["algorithmic", "judged", "hybrid"] = "algorithmic"
    aggregate: Literal["mean", "p50", "p95", "whole"] = "mean"
    """Aggregation of the column; 'whole': computed over the set, not from a column."""
    interval: Literal["wilson", "bca", "order", "posterior", "percentile", "student", "none"] = "bca"
    """Method of the interval for cases without groups and not on few levels: docs/metrics.md lists all methods."""
    signature: str
    """Everything that changes the value, with the version of its definition: 'ndcg@10|gain:binary|v:1'."""
    equals: str = ""
    """The tool whose values it equals."""
    source: str = ""
    undefined: str
    trust: str
    reading: str
    opinion: str = ""
    """The judged prompt that it comes from, if any: it is as reliable as that judge."""
    checked: bool = False
    """Whether a judged metric was compared with known truth, so that it needs no exam."""
    thresholds: tuple[float, ...] | None = None
    """Ascending bounds of the grades: two (attention, good, excellent) or three (absent, weak, reasonable, strong)."""
    asked: str = ""
    """Parameter that an evaluation must set to measure it, or `streams`; with `=a,b` the parameter must have one of
    these values."""
    later: bool = False
    """Whether it was added when evaluations were already stored, and changes no other value."""

    @property
    def of_relevance(self) -> bool:
        """Return whether it measures relevance, so that it is as reliable as the labels."""
        return self.function.startswith("retrieval.") or self.function in ("incomplete.bpref", "incomplete.inf_ap")

    @property
    def needs(self) -> Literal["", "relevant", "reference", "nuggets"]:
        """Return the labels without which no case has a value, however good the system; empty if none are needed."""
        if self.function.startswith(("retrieval.", "incomplete.")):
            return "relevant"
        if self.function == "claims.nugget_recall":
            return "nuggets"
        overlaps = self.function.startswith("text.") and self.function != "text.perplexity"
        return "reference" if overlaps or "no reference" in self.undefined or self.opinion in REFERENCE_PROMPTS else ""

    @property
    def in_key(self) -> bool:
        """Return whether evaluations are comparable only with the same signature; false if added later, at v:1."""
        return not (self.later and self.signature.endswith("|v:1"))

    def signature_with(self, **options: object) -> str:
        """Return the signature with other options: `signature_with(gain="linear", tok="13a", depth=20)`.

        Options that this metric does not have are ignored, so that an evaluation can pass all of its options to each.
        """
        _, *parts = self.signature.split("|")
        pairs = (part.partition(":") for part in parts)
        return "|".join([self.name, *(f"{key}:{options.get(key, value)}" for key, _, value in pairs)])


QUANTILES = {"p50": 0.5, "p95": 0.95}
"""The quantile of each aggregate that is a quantile."""
GRADE_LADDERS: dict[int, tuple[GradeName, ...]] = {
    2: ("attention", "good", "excellent"),
    3: ("absent", "weak", "reasonable", "strong"),
}
BAD_GRADES = ("attention", "absent", "weak")
"""Grades below good or reasonable."""


class UserQuestion(NamedTuple):
    """A question of users, and the metrics that answer it."""

    key: str
    metrics: tuple[str, ...]


GOALS = (
    UserQuestion("retrieval", ("hit_rate@1", "mrr", "ndcg@10")),
    UserQuestion("generation", ("avg_faithfulness", "avg_answer_relevance")),
    UserQuestion("end_to_end", ("avg_e2e_score", "avg_semantic_similarity")),
    UserQuestion("gate", ("accuracy", "precision", "recall", "f1_score")),
    UserQuestion("judge", ("consistency_score",)),
    UserQuestion("cache", ("cache_hit_rate",)),
)


def bounds_of_mean(mean: float, n: int, missing: int, *, low: float, high: float) -> tuple[float, float]:
    """Return the mean if all missing cases had the worst value, and if they had the best.

    Args:
        mean: of the measured cases; any value if there are none.
        n: number of measured cases.
        missing: number of missing cases; n + missing is at least 1.
        low, high: the metric's range.

    Reference: Manski 1989, Anatomy of the selection problem.

    Example:
        >>> from yarus.metrics.metric import bounds_of_mean
        >>> bounds_of_mean(0.8, 90, 10, low=0, high=1)
        (0.72, 0.82)
    """
    return (mean * n + low * missing) / (n + missing), (mean * n + high * missing) / (n + missing)
