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
    """Of `yarus.metrics.exam_kinds.KINDS`."""
    damaged: bool
    """Whether the score must be low."""
    right: int
    """Answers that got a score of the kind that they deserve."""
    n: int
    """Answers that got a score."""
    failed: int
    """Answers without one."""


class Mistake(TypedDict):
    """An answer whose score is farthest from what it deserves."""

    case_id: str
    kind: str
    score: float


class PromptExam(TypedDict):
    """What the exam says of one prompt."""

    outcome: Outcome
    """`sound`: it tells damaged answers from sound ones. `weak`: above chance, but under 0.7. `scale`: in their order,
    but on another scale: too many damaged ones get full scores, or sound ones low ones. `blind`: all but those of
    `blind_to`. `obeys`: it follows instructions in what it judges. `chance`: no better than it;
    `inverted`: worse. `constant`: it gives one score; `length`: it goes by the length of the answer.
    `unreadable`: too many of its replies cannot be read; `incomplete`: too few answers have a score; `few`: too few
    cases to tell.
    """
    cases: int
    """Examined cases with a score."""
    scored: int
    """Answers that got a score."""
    asked: int
    score: float | None
    """The one score of a judge that is `constant`."""
    length_correlation: float | None
    """Of the score with the length of the answer, among answers of equal worth; null where either does not vary."""
    blind_to: list[str]
    """Kinds of damage, scripts of the questions (`cyrillic`, `latin`, `other`) and halves by length of the answer
    (`short`, `long`) in which it does not tell damaged answers from sound ones; of a judge that is better than chance
    as a whole."""
    kinds: list[KindOutcome]
    worst: list[Mistake]


Exam = dict[str, PromptExam]
"""Prompt -> what its exam says."""


class Failures(TypedDict):
    """Where cases failed, and which to mend first."""

    counts: dict[str, int]
    """Stage -> cases that failed there."""
    fix_first: list[str]
    """Ids of up to five cases."""


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


class DifferenceBounds(TypedDict):
    """Between these a difference lies, whatever the unjudged results are."""

    low: float
    """If those of the side before were all right, and those of the side after all wrong."""
    high: float


class UnequallyJudged(TypedDict):
    """Shares of the first ten results that anybody has judged, of both sides, that differ by more than chance."""

    a: float
    b: float
    p: float
    bounds: dict[str, DifferenceBounds]
    """Headline metric of rankings -> its difference."""


class AgreementWithProduction(TypedDict):
    """Over the questions of which the log says what production did."""

    value: float
    """Share of them in which the evaluated system does the same."""
    ci_low: float
    """Of the 95 % confidence interval."""
    ci_high: float
    n: int


class Production(TypedDict):
    """What the evaluated system and production did with the same questions."""

    page: AgreementWithProduction | None
    """The first page is the one that production showed; null where neither is known."""
    decision: AgreementWithProduction | None
    """Both answer, or both decline or hide; null where it is not known."""
    unlike: bool
    """Whether one of the two agrees in fewer than four of five questions, beyond chance."""
    differ: list[str]
    """Ids of the first five cases that differ."""


class PersistedMetric(TypedDict):
    """Of one headline metric."""

    n: int
    """Questions whose value had changed."""
    persisted: int
    """Of these, those that are nearer to the changed value than to the one before when they are asked again. Of changes
    by chance about half are: of as many the value before was the odd one."""
    unmeasured: int
    """Of these, those that gave no value when they were asked again: nothing is said of them."""


class Persistence(TypedDict):
    """Of an evaluation that asks again what changed in another one, and of that other one."""

    confirms: str
    """The evaluation whose changes were asked about."""
    asked_again: str
    """The evaluation that asked."""
    since: str
    """The evaluation before, beside which they had changed."""
    metrics: dict[str, PersistedMetric]


class FailedAgain(TypedDict):
    """Of an evaluation of the cases that failed in another one."""

    of: str
    """That evaluation."""
    n: int
    """Cases that failed in it: the system, the judge or the budget stood in the way."""
    asked: int
    """Of these, those that the source still has."""
    succeeded: int
    """Of these, those that nothing stood in the way of now."""


class ThresholdPoint(TypedDict):
    """What showing from a threshold on comes to."""

    threshold: float | None
    """Answers are shown from this score on, 0..1; null: none is."""
    coverage: float
    """Share of the answers that is shown."""
    risk: float | None
    """Share of the shown answers that are wrong; null where none is shown."""
    cost: float
    """Mean over all answers."""


class GateDecisions(TypedDict):
    """What the gate's decisions came to."""

    coverage: float
    risk: float | None
    cost: float
    ci_low: float | None
    """Of the 95 % confidence interval of the cost."""
    ci_high: float | None


class CheapestThreshold(ThresholdPoint):
    """The threshold of least expected cost; its figures are of the cases that it was chosen on."""

    threshold_low: float
    """It holds the threshold that is truly the cheapest, in 95 % of such intervals at least."""
    threshold_high: float
    saved: float
    """What it saves of each answer against the decisions, where it was chosen on other cases."""
    saved_low: float
    saved_high: float


class ShowingCosts(TypedDict):
    """What showing answers costs, by the score from which on they are shown."""

    n: int
    """Labelled answers with a score."""
    wrong_shown: float
    """YARUS_COST_WRONG_SHOWN."""
    right_hidden: float
    """YARUS_COST_RIGHT_HIDDEN."""
    decided: GateDecisions
    cheapest: CheapestThreshold | None
    """Null where fewer than ten answers are right, or fewer than ten are wrong."""
    curve: list[ThresholdPoint]
    """Upward by threshold: the first shows everything, the last nothing."""


class Findings(TypedDict, total=False):
    """What the cases of an evaluation tell beside its metrics; each tier has some of these."""

    exam: Exam
    """Prompt -> what its exam says, of tier `judge`."""
    failures: Failures
    """Of tiers that tell where a case failed."""
    doubtful: int
    """How many cases the tier would have read next: the least useful answers, wrong decisions and so on."""
    incomplete: Incomplete
    showing: ShowingCosts
    production: Production
    persistence: Persistence
    """Of an evaluation that asks again what changed in another one, and of that other one."""
    failed_again: FailedAgain
    """Of an evaluation of the cases that failed in another one."""
