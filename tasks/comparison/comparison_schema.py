"""What `compare`, `gate` and `trend` find: their documents, as `--json` prints them."""

from typing import Any, Literal, final

from typing_extensions import TypedDict

from yarus.metrics.statistics.differences.comparison import ComparisonVerdict
from yarus.tasks.config.texts import TranslatedText
from yarus.tasks.evaluation.config import ConfigDocument, EvaluationState
from yarus.tasks.evaluation.findings_schema import UnequallyJudged


class MovedMetric(TypedDict):
    """A metric whose value of a case went up or down by much."""

    metric: str
    before: float
    after: float


class ChangedCase(TypedDict):
    """A case of which metrics went up or down by much."""

    case_id: str
    question: str | None
    moved: list[MovedMetric]
    """Of the metrics that were looked at, in their order; the first decides whether it broke or was fixed."""
    n: int
    """Cases that ask the same and moved the same way; of several, this one moved farthest."""


class ChangedStatus(TypedDict):
    """A case that could be measured once and not the other time, for example."""

    case_id: str
    question: str | None
    before: str
    """Its status in the evaluation before."""
    after: str
    n: int
    """Cases that ask the same and changed alike."""


class ChangedCases(TypedDict):
    """Cases that changed, the largest changes first."""

    broke: list[ChangedCase]
    """An entry a question."""
    fixed: list[ChangedCase]
    changed_status: list[ChangedStatus]


class SliceDifference(TypedDict):
    """The difference of a metric within a slice; p is not adjusted for the number of slices: it says where to look."""

    difference: float
    ci_low: float
    ci_high: float
    p: float
    n: int
    """Cases measured on both sides."""


class SmallSlices(TypedDict):
    """Slices that are too small to be compared."""

    values: int
    """How many there are."""
    cases: int
    """How many cases they have together."""


Slice = dict[str, int | SliceDifference]
"""`n`, the number of its cases, and by metric the difference."""


class Side(TypedDict):
    """One of the evaluations that are compared."""

    evaluation_id: str
    name: str | None
    started_at: str
    tier: str
    source: str
    sut_label: str | None
    state: EvaluationState
    error: str | None
    """Why it is invalid."""
    comparability_key: str | None
    system: ConfigDocument


class KeyDifference(TypedDict):
    """A part of the comparability key in which two evaluations differ."""

    part: str
    """Its dotted name."""
    a: Any
    b: Any


class SettingDifference(TypedDict):
    """A setting, model, prompt, corpus or version in which the systems differ that were evaluated."""

    name: str
    """Its dotted name; `versions.…` of a package."""
    a: Any
    b: Any


StatementKind = Literal[
    "invalid",
    "regressed",
    "improved",
    "nothing",
    "failures",
    "settings",
    "measured otherwise",
    "labels changed",
    "alone",
    "not compared",
    "reach",
]


class Statement(TypedDict):
    """One thing that a comparison says."""

    kind: StatementKind
    """`invalid`: which evaluation is, and why: nothing else is said then; `regressed`, `improved`: proven by headline
    metrics, under Holm's adjustment; `nothing`: none is; `failures`: at how many cases the system failed; `settings`:
    what was changed; `measured otherwise`: parts of the key that differ; `labels changed`: how many questions are left
    out for that; `alone`: by a p of its own, not adjusted; `reach`: what this many cases could have shown."""
    label: TranslatedText
    """Language -> what is said of."""
    text: TranslatedText
    """Language -> what is said."""


class MetricComparison(TypedDict):
    """What the evaluations say about one metric."""

    a: float | None
    """Of the evaluation before, on the cases that both measured; where the system failed, with the worst value."""
    b: float | None
    difference: float | None
    """b - a."""
    ci_low: float | None
    """Of the 95 % confidence interval of the difference."""
    ci_high: float | None
    p: float | None
    """Two-sided, for no difference at all."""
    p_holm: float | None
    """Holm's p over the tier's headline metrics; null for any other: its verdict is of its own p, not adjusted for how
    many there are. Null for `sut_error_rate` too, if the system never failed."""
    verdict: ComparisonVerdict
    smallest_detectable: float | None
    """The true difference that a comparison of this size, under that p, finds four times in five; where cases come in
    groups, one that falls on all of them alike."""
    margin: float | None
    """A difference up to this one is taken as none that matters."""
    n: int
    """Cases measured on both sides."""
    groups: int | None
    """Users, dialogs or pages that they come in; null where each case stands alone."""
    n_missing: int
    """Common cases left out because a side was not measured."""
    method: str
    """Of the test."""
    reason: str | None
    """Why the metric was not compared."""


class AnsweredMeans(TypedDict):
    """Means of a metric over the common cases at which neither side failed."""

    a: float
    b: float


class FailedCases(TypedDict):
    """Common cases at which the system failed."""

    a: int
    """In the evaluation before."""
    b: int
    are_losses: bool
    """Whether one side failed more often beyond chance: then each counts as the worst value where the other has one."""
    answered: dict[str, AnsweredMeans]
    """Headline metric -> means without them."""


class Changes(TypedDict):
    """What changed, by metric, case and slice; where a tier has strata, over the headline stratum."""

    metrics: dict[str, MetricComparison]
    failed_cases: FailedCases | None
    """Null where the system never failed, and where the cases are not the same."""
    cases: ChangedCases
    slices: dict[str, dict[str, Slice]]
    """Kind of slice -> slice -> the differences in it; slices of five cases or more, the largest first."""
    small_slices: dict[str, SmallSlices]
    """Kind of slice -> how many smaller ones there are."""
    unequally_judged: UnequallyJudged | None
    """Null where both sides' results are judged equally far, but for chance, or that is not known."""


class Beside(TypedDict):
    """Two evaluations and in what they differ."""

    a: Side
    """The evaluation before."""
    b: Side
    """The evaluation after."""
    differs: list[KeyDifference]
    """Empty where the evaluations are comparable."""
    changed_settings: list[SettingDifference]
    """In what the systems differ that were evaluated."""


@final
class NotCompared(Beside):
    """Two evaluations that cannot be compared."""

    reason: str | None
    """Null where what differs says it."""


class LabelsChanged(TypedDict):
    """What two evaluations have in common whose case sets differ; only what is labelled alike is compared."""

    n: int
    """Common cases whose labels or question changed."""
    n_common: int
    only_a: int
    """Cases that only the evaluation before has."""
    only_b: int


class Sides(Beside):
    """Which evaluations are compared, and on what."""

    comparable: bool
    paired: bool
    """Case by case; else all cases of each side."""
    n_common: int
    """Cases that both have, labelled alike."""
    labels_changed: LabelsChanged | None
    """Null where both evaluated the same cases with the same labels, and where `force` set them side by side."""
    noise: dict[str, float]
    """Metric -> how far it moves by repeating alone; where an evaluation was repeated."""


@final
class EvaluationComparison(Sides, Changes):
    """Two evaluations of one tier on the cases that both have."""

    statements: list[Statement]
    """What it says, in words."""


Compared = EvaluationComparison | NotCompared
