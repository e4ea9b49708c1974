"""What is found about incomplete labels, as JSON has it."""

from typing import Literal

from typing_extensions import TypedDict

FeatureName = Literal["length", "score", "lead", "time", "topic"]


class FeatureDifference(TypedDict):
    """How questions with a label differ from the others in something that is known of all."""

    labelled: float | None
    """Mean place of those with a label among all questions, 0 (the least) to 1; null of a topic."""
    others: float | None
    p: float
    """Holm's, over all features."""


class ReweightedMetric(TypedDict):
    """A mean as it would be over all questions, as far as features tell."""

    value: float
    """Over the questions with a label, as it is stored."""
    reweighted: float
    ci_low: float | None
    ci_high: float | None


class LabelledQuestions(TypedDict):
    """Questions with a label against those without."""

    n: int
    n_others: int
    differ_in: list[FeatureName]
    """In what they differ by more than chance."""
    features: dict[FeatureName, FeatureDifference]
    """`length` in words, `score` of the first result (1 is the surest), its `lead` over the second, `time` of the
    question, `topic`: the page that the retriever names first. Empty where there are too few of either kind."""
    reweighted: dict[str, ReweightedMetric]
    """Headline metric -> the mean; empty where the questions do not differ."""


class Incomplete(TypedDict):
    """How far missing labels could change what was measured; of tiers that rank."""

    if_right: dict[str, float]
    """Metric -> its mean if every result that nobody has judged were relevant. If none were, it is as stored."""
    questions: LabelledQuestions | None
    """Null where every question has a label, or none."""


class Bounds(TypedDict):
    """Between these a difference lies, whatever the unjudged results are."""

    low: float
    """If those of the side before were all right, and those of the side after all wrong."""
    high: float


class UnequallyJudged(TypedDict):
    """Shares of the first ten results that anybody has judged, of both sides, that differ by more than chance."""

    a: float
    b: float
    p: float
    bounds: dict[str, Bounds]
    """Headline metric of rankings -> its difference."""
