"""What `yarus explain` finds, as `--json` prints it."""

from typing import Literal

from typing_extensions import TypedDict

from yarus.tasks.cases.vocabulary import Status
from yarus.tasks.comparison.comparison_schema import KeyDifference, SettingDifference, Side
from yarus.tasks.evaluation.corpus_versions import PageChange

TopicsBy = Literal["annotation", "page", "words"]


class ExplainedPart(TypedDict):
    """A part of a difference."""

    value: float
    ci_low: float
    ci_high: float
    """Of the 95 % confidence interval."""


class PartOfPages(ExplainedPart):
    """Of what answers changed: on questions whose relevant pages had one fate."""

    n: int
    """Questions measured after."""
    pages: int
    """Pages that are relevant to them and had that fate."""
    topics: list[str]
    """Up to three, by what they add to the part."""


class ExplainedTopic(TypedDict):
    """What one topic adds to a difference."""

    topic: str
    n_a: int
    """Questions measured before."""
    n_b: int
    questions: float
    """By how often it is asked."""
    answers: float


class ExplainedPage(TypedDict):
    """What the questions to which a page is relevant add to what answers changed."""

    page: str
    fate: PageChange | None
    """Null where a version of the corpus is not known."""
    n: int
    answers: float


class ExplainedCase(TypedDict):
    """A question that adds much to what answers changed."""

    case_id: str
    question: str | None
    before: float | None
    """Null where it was not measured before: then it stands against the questions of its kind."""
    after: float
    answers: float


class ExplainedMetric(TypedDict):
    """The difference of one metric, split; `questions` and `answers` add up to it."""

    a: float
    """Mean before, over all questions that were measured."""
    b: float
    difference: float
    n_a: int
    n_b: int
    n_common: int
    """Questions measured on both sides, with the same labels."""
    cells: int
    """Kinds of questions that were compared: topic, length, script, and what became of their pages."""
    questions: ExplainedPart
    """By other questions than before."""
    answers: ExplainedPart | None
    """By other answers to the same questions, or to the same kinds of them; null where no kind is on both sides."""
    stages: dict[str, ExplainedPart] | None
    """Of `answers`: retrieval, generation, refusal, gate, label, or no failure; null where a tier has no stages."""
    fates: dict[PageChange, PartOfPages] | None
    """Of `answers`, by what became of the relevant pages; null where a version of the corpus is not known."""
    topics: list[ExplainedTopic]
    """The five that add most."""
    pages: list[ExplainedPage]
    """The five that explain most of `answers`."""
    cases: list[ExplainedCase]
    """The five that explain most of `answers`."""


class NewTopic(TypedDict):
    """A topic that was hardly asked about before, and that hardly any question was served in."""

    topic: str
    n: int
    served: int
    """Questions of it whose headline metric is above its lowest value."""
    examples: list[str]


class LostMeasure(TypedDict):
    """Questions that were measured before and could not be after; by status and what became of their pages."""

    status: Status
    fate: PageChange | None
    n: int
    topics: list[str]


class Explanation(TypedDict):
    """What moved between two evaluations of one tier."""

    a: Side
    b: Side
    differs: list[KeyDifference]
    """In what they are not comparable, beside their questions."""
    changed_settings: list[SettingDifference]
    """In what the systems differ that were evaluated."""
    topics_by: TopicsBy
    """Annotated; else the relevant page where the questions are the same, or found by the questions' words."""
    n_relabelled: int
    """Questions of both whose labels changed: they count as other questions."""
    corpus: dict[PageChange, int] | None
    """Pages by what became of them; null where a version is not known."""
    lost: list[LostMeasure]
    new_topics: list[NewTopic]
    metrics: dict[str, ExplainedMetric]
    not_split: dict[str, str]
    """Headline metric -> why it could not be split."""
