"""JSON types of `yarus explain`, printed with `--json`."""

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
    """Lower end of the 95 % confidence interval."""
    ci_high: float
    """Upper end."""


class PartOfPages(ExplainedPart):
    """Effect of changed answers on questions whose relevant pages changed in the same way."""

    n: int
    """Questions measured after."""
    pages: int
    """Pages that are relevant to them and changed in this way."""
    topics: list[str]
    """Up to three topics that add most to the part."""


class ExplainedTopic(TypedDict):
    """Contribution of one topic to a difference."""

    topic: str
    n_a: int
    """Questions measured before."""
    n_b: int
    questions: float
    """Contribution of how often the topic is asked about."""
    answers: float
    """Contribution of changed answers."""


class ExplainedPage(TypedDict):
    """Contribution of changed answers to questions about one page."""

    page: str
    page_change: PageChange | None
    """Change of the page; null if a version of the corpus is unknown."""
    n: int
    """Questions measured after."""
    answers: float
    """Contribution to `answers` of the metric."""


class ExplainedCase(TypedDict):
    """A question that contributes much to the effect of changed answers."""

    case_id: str
    question: str | None
    before: float | None
    """Null if the question was not measured before; then it is compared with questions of its kind."""
    after: float
    answers: float
    """Contribution to `answers` of the metric."""


class ExplainedMetric(TypedDict):
    """Difference of one metric, split into `questions` and `answers`."""

    a: float
    """Mean before, over all measured questions."""
    b: float
    """Mean after."""
    difference: float
    """b - a."""
    n_a: int
    n_b: int
    n_common: int
    """Questions measured on both sides, with the same labels."""
    n_question_kinds: int
    """Number of kinds of questions: combinations of topic, length, script and change of the page."""
    questions: ExplainedPart
    """Part caused by other questions than before."""
    answers: ExplainedPart | None
    """Part caused by other answers to the same questions or kinds of questions; null if no kind is on both sides."""
    stages: dict[str, ExplainedPart] | None
    """Parts of `answers` by stage: retrieval, generation, refusal, gate, label, or no failure; null if the tier has no
    stages."""
    page_changes: dict[PageChange, PartOfPages] | None
    """Parts of `answers` by change of the relevant pages; null if a version of the corpus is unknown."""
    topics: list[ExplainedTopic]
    """The five topics that contribute most."""
    pages: list[ExplainedPage]
    """The five pages that contribute most to `answers`."""
    cases: list[ExplainedCase]
    """The five questions that contribute most to `answers`."""


class NewTopic(TypedDict):
    """A topic with few questions before and few served questions after."""

    topic: str
    n: int
    served: int
    """Its questions with a headline metric above the lowest value."""
    examples: list[str]


class LostMeasure(TypedDict):
    """Questions that were measured before, but not after, with the same status and change of their pages."""

    status: Status
    page_change: PageChange | None
    n: int
    topics: list[str]


class Explanation(TypedDict):
    """Causes of the differences between two evaluations of one tier."""

    a: Side
    b: Side
    key_differences: list[KeyDifference]
    """Parts of the comparability key that differ; with `force` also others than the questions."""
    changed_settings: list[SettingDifference]
    """Differences between the evaluated systems."""
    topic_source: TopicsBy
    """`annotation`: annotated topics; otherwise `page`: the relevant page, if the questions are the same, or `words`:
    words of the questions."""
    n_relabelled: int
    """Common questions with changed labels; they count as other questions."""
    corpus: dict[PageChange, int] | None
    """Kind of change -> number of pages; null if a version of the corpus is unknown."""
    no_longer_measured: list[LostMeasure]
    new_topics: list[NewTopic]
    metrics: dict[str, ExplainedMetric]
    not_decomposed: dict[str, str]
    """Headline metric -> why it could not be split."""
