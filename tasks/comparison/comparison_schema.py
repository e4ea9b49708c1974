"""JSON types of `compare`, `gate` and `trend`, printed with `--json`."""

from typing import Any, Literal, final

from typing_extensions import TypedDict

from yarus.metrics.statistics.differences.comparison import ComparisonVerdict
from yarus.tasks.config.texts import TranslatedText
from yarus.tasks.evaluation.config import ConfigDocument, EvaluationState
from yarus.tasks.evaluation.findings_schema import JudgedShareDifference


class ChangedMetric(TypedDict):
    """A metric with a large change in one case."""

    metric: str
    before: float
    after: float


class ChangedCase(TypedDict):
    """A case with a large change of some metrics."""

    case_id: str
    question: str | None
    metric_changes: list[ChangedMetric]
    """Changed metrics in the order of comparison; the first decides whether the case regressed or improved."""
    n: int
    """Number of cases with the same question and direction; the entry shows the one with the largest change."""


class ChangedStatus(TypedDict):
    """A case with different statuses in the two evaluations."""

    case_id: str
    question: str | None
    before: str
    """Status in the evaluation before."""
    after: str
    """Status in the evaluation after."""
    n: int
    """Number of cases with the same question and the same change."""


class ChangedCases(TypedDict):
    """Cases that changed, the largest changes first; scores of a stand-in judge are left out."""

    regressed_cases: list[ChangedCase]
    """One entry per question."""
    improved_cases: list[ChangedCase]
    """One entry per question."""
    changed_status: list[ChangedStatus]


class SliceDifference(TypedDict):
    """Difference of a metric within a slice. p is not adjusted for the number of slices: use it to locate a change, not
    to prove it.
    """

    difference: float
    ci_low: float
    ci_high: float
    p: float
    n: int
    """Cases measured on both sides."""


class SmallSlices(TypedDict):
    """Slices that are too small to be compared."""

    values: int
    """Number of these slices."""
    cases: int
    """Number of cases in all of them."""


Slice = dict[str, int | SliceDifference]
"""`n`: number of cases; metric -> its difference."""


class Side(TypedDict):
    """One of the two compared evaluations."""

    evaluation_id: str
    name: str | None
    started_at: str
    tier: str
    source: str
    sut_label: str | None
    state: EvaluationState
    error: str | None
    """Why it is invalid; null if it is not."""
    comparability_key: str | None
    system: ConfigDocument


class KeyDifference(TypedDict):
    """A part of the comparability key in which two evaluations differ."""

    part: str
    """Its dotted name."""
    a: Any
    b: Any


class SettingDifference(TypedDict):
    """A setting, model, prompt, corpus or version that differs between the evaluated systems."""

    name: str
    """Dotted name, `versions.…` for a package."""
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
    "not judged",
    "alone",
    "not compared",
    "reach",
]


class Statement(TypedDict):
    """One statement of a comparison."""

    kind: StatementKind
    """`invalid`: the invalid evaluations with their reasons, then the only statement; `regressed`, `improved`: metrics
    with a proven change, under Holm's adjustment; `nothing`: no metric has one; `failures`: number of
    cases in which the system failed; `settings`: changed settings; `measured otherwise`: parts of the key that differ;
    `labels changed`: number of questions omitted because their labels changed; `not judged`: metrics of a stand-in
    judge, which do not measure quality; `alone`: other metrics with a change by their unadjusted p; `not compared`: why
    evaluations were not compared; `reach`: detectable difference for this many cases."""
    label: TranslatedText
    """Language -> heading."""
    text: TranslatedText
    """Language -> statement."""


class MetricComparison(TypedDict):
    """Comparison of one metric."""

    a: float | None
    """Value of the evaluation before on the cases that both measured; a failure of the system counts as the worst
    value."""
    b: float | None
    """The same for the evaluation after."""
    difference: float | None
    """b - a."""
    ci_low: float | None
    """Lower end of the 95 % confidence interval of `difference`."""
    ci_high: float | None
    p: float | None
    """Two-sided p-value of no difference."""
    p_holm: float | None
    """p-value with Holm's adjustment over the tier's headline metrics and those shown with them (`hit_rate@1` of
    tier 3). Null for other metrics, whose verdict follows their unadjusted p, and for `sut_error_rate` if the system
    never failed."""
    verdict: ComparisonVerdict
    min_detectable_effect: float | None
    """True difference that a comparison of this size detects four times in five. With groups, it assumes that all cases
    of a group change alike."""
    margin: float | None
    """Largest difference that counts as negligible."""
    n: int
    """Cases measured on both sides."""
    groups: int | None
    """Number of users, dialogs or pages that group the cases; null if the cases are independent."""
    n_missing: int
    """Common cases that are omitted because one side was not measured."""
    method: str
    """Name of the test."""
    reason: str | None
    """Why the metric was not compared; null if it was."""


class AnsweredMeans(TypedDict):
    """Means of a metric over the common cases in which neither side failed."""

    a: float
    b: float


class FailedCases(TypedDict):
    """Common cases in which the system failed."""

    a: int
    """Failures in the evaluation before."""
    b: int
    """Failures in the evaluation after."""
    are_losses: bool
    """Whether one side failed more often by more than chance. Then a failure counts as the worst value if the other
    side has a value."""
    answered: dict[str, AnsweredMeans]
    """Headline metric -> means without the failures."""


class Changes(TypedDict):
    """Changes by metric, case and slice; of a tier with strata, in the headline stratum."""

    metrics: dict[str, MetricComparison]
    failed_cases: FailedCases | None
    """Null if the system never failed, or if the cases are not paired."""
    cases: ChangedCases
    slices: dict[str, dict[str, Slice]]
    """Kind of slice -> slice -> differences; slices with at least five cases, the largest first."""
    small_slices: dict[str, SmallSlices]
    """Kind of slice -> number of smaller slices."""
    judged_share_difference: JudgedShareDifference | None
    """Null if the shares of judged results do not differ by more than chance, if they are unknown, or if no headline
    metric depends on them."""


class Beside(TypedDict):
    """Two evaluations and their differences in configuration."""

    a: Side
    """The evaluation before."""
    b: Side
    """The evaluation after."""
    key_differences: list[KeyDifference]
    """Parts of the comparability key that differ; empty if the evaluations are comparable."""
    changed_settings: list[SettingDifference]
    """Differences between the evaluated systems."""


@final
class NotCompared(Beside):
    """Two evaluations that cannot be compared."""

    reason: str | None
    """Null if `key_differences` is the reason."""


class LabelsChanged(TypedDict):
    """Overlap of two case sets; only cases with the same labels on both sides are compared."""

    n: int
    """Common cases with changed labels or questions."""
    n_common: int
    only_a: int
    """Cases that only the evaluation before contains."""
    only_b: int
    """Cases that only the evaluation after contains."""


class Sides(Beside):
    """The compared evaluations and their common cases."""

    comparable: bool
    paired: bool
    """Whether the comparison is case by case; otherwise it is over all cases of each side."""
    n_common: int
    """Common cases with the same labels."""
    labels_changed: LabelsChanged | None
    """Null if both have the same cases and labels, or with `force`."""
    noise: dict[str, float]
    """Metric -> its variation between repeats of an evaluation; only if there are repeats."""


@final
class EvaluationComparison(Sides, Changes):
    """Two evaluations of one tier on the cases that both have."""

    statements: list[Statement]
    """The result in sentences."""


Compared = EvaluationComparison | NotCompared
