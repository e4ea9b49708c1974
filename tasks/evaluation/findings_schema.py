"""JSON types of findings, as stored and printed."""

from typing import Literal

from typing_extensions import TypedDict

Outcome = Literal[
    "sound",
    "weak",
    "scale",
    "blind",
    "obeys",
    "chance",
    "inverted",
    "constant",
    "length",
    "unreadable",
    "incomplete",
    "few",
]


class KindOutcome(TypedDict):
    """How a prompt scored the answers of one kind."""

    kind: str
    """A key of `yarus.metrics.exam_kinds.KINDS`."""
    damaged: bool
    """Whether these answers must score low; otherwise they must get the full score."""
    right: int
    """Answers with the score that the kind requires."""
    n: int
    """Answers with a score."""
    failed: int
    """Answers without a score."""


class Mistake(TypedDict):
    """An answer whose score is more than 0.5 away from the required one."""

    case_id: str
    kind: str
    score: float


class PromptExam(TypedDict):
    """Exam result of one prompt."""

    outcome: Outcome
    """`sound`: the judge tells damaged answers from sound ones; `blind`: it does, except in the slices of `blind_to`;
    `scale`: it orders them well, but too many damaged answers get full scores, or too many sound ones do not; `weak`:
    better than chance, but under 0.7; `chance`: not better than chance; `inverted`: worse than chance; `obeys`: it
    follows instructions in the judged texts; `constant`: it gives all answers one score; `length`: its scores depend on
    the length of the answer; `unreadable`: too many of its replies cannot be read; `incomplete`: too few answers have a
    score; `few`: too few cases to decide.
    """
    cases: int
    """Examined cases with a score."""
    scored: int
    """Answers with a score; those with planted instructions do not count."""
    asked: int
    """Answers that the judge had to score; those with planted instructions do not count."""
    score: float | None
    """The only score that the judge gave; null if scores differ."""
    length_correlation: float | None
    """Mean of the Spearman correlations of score and length among sound and among damaged answers; null if score or
    length does not vary within either group."""
    blind_to: list[str]
    """Slices in which the judge does not tell damaged answers from sound ones: kinds of damage, scripts of the
    questions (`cyrillic`, `latin`, `other`), halves by answer length (`short`, `long`). Filled only for the outcomes
    `obeys`, `weak`, `scale` and `blind`."""
    kinds: list[KindOutcome]
    worst: list[Mistake]
    """Up to five mistakes, at most one per kind of answer, the worst first."""


Exam = dict[str, PromptExam]
"""Prompt -> exam result."""


class Failures(TypedDict):
    """Stages at which cases failed, and cases to fix first."""

    counts: dict[str, int]
    """Stage -> number of cases that failed there."""
    fix_first: list[str]
    """Ids of up to five cases."""


FeatureName = Literal["length", "score", "lead", "time", "topic"]


class FeatureDifference(TypedDict):
    """Difference between questions with a label and the others in one feature."""

    labelled: float | None
    """Mean relative rank of the labelled questions among all, 0 (smallest) to 1; null for `topic`."""
    others: float | None
    """The same for the other questions."""
    p: float
    """p-value with Holm's adjustment over all features."""


class ReweightedMetric(TypedDict):
    """A mean, reweighted to estimate it over all questions."""

    value: float
    """Mean over the labelled questions, as stored."""
    reweighted: float
    ci_low: float | None
    ci_high: float | None


class LabelledQuestions(TypedDict):
    """Comparison of questions with a label and questions without one."""

    n: int
    n_others: int
    differ_in: list[FeatureName]
    """Features in which the two groups differ by more than chance."""
    features: dict[FeatureName, FeatureDifference]
    """`length`: in words; `score`: of the first result, 1 is the most certain; `lead`: over the second result; `time`:
    of the question; `topic`: page of the first result. Empty if either group is too small."""
    reweighted: dict[str, ReweightedMetric]
    """Headline metric -> reweighted mean; empty if the questions do not differ."""


class Incomplete(TypedDict):
    """Possible effect of missing labels, in tiers that rank."""

    if_right: dict[str, float]
    """Metric -> its mean if every unjudged result were relevant. The stored mean counts all of them as not relevant."""
    questions: LabelledQuestions | None
    """Null if every question has a label, or if none has one."""


class DifferenceBounds(TypedDict):
    """Lowest and highest difference that the unjudged results allow."""

    low: float
    """The difference if all unjudged results of `a` were relevant and all of `b` were not."""
    high: float
    """The difference if all unjudged results of `b` were relevant and all of `a` were not."""


class JudgedShareDifference(TypedDict):
    """Shares of judged results among the first ten, for two evaluations whose shares differ by more than chance."""

    a: float
    b: float
    p: float
    bounds: dict[str, DifferenceBounds]
    """Headline metric of rankings -> bounds of its difference."""


class AgreementWithProduction(TypedDict):
    """Agreement over the questions for which the log records the behaviour of production."""

    value: float
    """Share of these questions in which the evaluated system behaves the same, 0 to 1."""
    ci_low: float
    """Lower end of the 95 % confidence interval."""
    ci_high: float
    """Upper end."""
    n: int
    """Number of these questions."""


class Production(TypedDict):
    """Agreement of the evaluated system and production on the same questions."""

    page: AgreementWithProduction | None
    """Agreement on the first page; null if it is not known for any question."""
    decision: AgreementWithProduction | None
    """Agreement on whether to answer; declining and hiding count as one. Null if it is not known for any question."""
    unlike: bool
    """Whether one of the two agreements is below 80 %, by more than chance."""
    differ: list[str]
    """Ids of the first five cases that differ."""


class PersistedMetric(TypedDict):
    """Persistence of the changes of one headline metric."""

    n: int
    """Questions with a changed value."""
    persisted: int
    """Changed questions whose repeated value is nearer to the changed value than to the earlier one. About half of the
    changes by chance persist, because the earlier value is as often the outlier."""
    unmeasured: int
    """Changed questions without a value when asked again."""


class Persistence(TypedDict):
    """Result of asking the changed questions of an evaluation again; stored with the evaluation that asks again."""

    confirms: str
    """Id of the evaluation whose changed questions were asked again."""
    asked_again: str
    """Id of the evaluation that asked them."""
    since: str
    """Id of the earlier evaluation from which the values had changed."""
    metrics: dict[str, PersistedMetric]
    """Headline metric -> counts; only metrics with changed values."""


class FailedAgain(TypedDict):
    """Result of evaluating the failed cases of another evaluation again."""

    of: str
    """Id of the other evaluation."""
    n: int
    """Cases that failed in it because of the system, the judge or the budget."""
    asked: int
    """Failed cases that the source still contains."""
    succeeded: int
    """Repeated cases that did not fail this time."""


class ThresholdPoint(TypedDict):
    """Coverage, risk and cost of one threshold."""

    threshold: float | None
    """Lowest score of shown answers, 0 to 1; null if no answer is shown."""
    coverage: float
    """Share of answers that are shown, 0 to 1."""
    risk: float | None
    """Share of wrong answers among the shown ones, 0 to 1; null if no answer is shown."""
    cost: float
    """Mean cost per answer, in the unit of `wrong_shown` and `right_hidden`."""


class GateDecisions(TypedDict):
    """Coverage, risk and cost of the gate's actual decisions."""

    coverage: float
    risk: float | None
    cost: float
    ci_low: float | None
    """Lower end of the 95 % confidence interval of `cost`."""
    ci_high: float | None


class CheapestThreshold(ThresholdPoint):
    """The threshold of least mean cost; its figures come from the cases on which it was chosen."""

    threshold_low: float
    """Lower end of a 95 % confidence interval of the threshold with the least true cost."""
    threshold_high: float
    saved: float
    """Saving per answer compared with the gate's decisions, measured on other cases than those used to choose it."""
    saved_low: float
    saved_high: float


class ShowingCosts(TypedDict):
    """Cost of showing answers, by threshold of the score."""

    n: int
    """Labelled answers with a score."""
    wrong_shown: float
    """YARUS_COST_FALSE_POSITIVE."""
    right_hidden: float
    """YARUS_COST_FALSE_NEGATIVE."""
    decided: GateDecisions
    cheapest: CheapestThreshold | None
    """Null with fewer than ten right answers or fewer than ten wrong ones."""
    curve: list[ThresholdPoint]
    """Ascending by threshold: the first entry shows all answers, the last none."""


class Findings(TypedDict, total=False):
    """Findings on the cases of an evaluation, in addition to its metrics; each tier has some of these keys."""

    exam: Exam
    """Prompt -> exam result; only of the tier `judge`."""
    failures: Failures
    """Only of tiers that attribute failures to stages."""
    doubtful: int
    """Number of cases to read first, such as the least useful answers or wrong decisions."""
    incomplete: Incomplete
    showing: ShowingCosts
    production: Production
    persistence: Persistence
    """Only if changed questions were asked again: in the evaluation that changed and in the one that asked again."""
    failed_again: FailedAgain
    """Only of an evaluation of failed cases of another one."""
