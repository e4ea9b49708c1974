"""What corpus analytics finds: its document, as `yarus corpus --json` prints it."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

NonQuestionKind = Literal["empty", "link", "command", "small_talk", "noise", "fragment", "spam", "other_language"]
"""What a text is that no page could answer."""


class CorpusItem(TypedDict):
    """A chunk, or a page."""

    page: str | None
    id: NotRequired[str]
    """Of a chunk."""
    text: NotRequired[str]
    """The beginning of a chunk."""


class OverRetrieved(CorpusItem):
    """One that is retrieved much more often than others."""

    questions: int
    """That it was retrieved for."""
    times: float
    """As many as for a retrieved one on average."""


class RetrievalUsage(TypedDict):
    """How many chunks or pages are used."""

    total: int
    retrieved: int | None
    """Null where no evaluation tells."""
    share: float | None
    dead: list[CorpusItem]
    """Never retrieved, the first ones."""
    n_dead: int | None
    over_used: list[OverRetrieved]


class CorpusUsage(TypedDict):
    """What of the corpus was ever retrieved."""

    evaluations: list[str]
    """Whose rankings count."""
    k: int | None
    """The depth of the deepest rankings."""
    n_questions: int
    reason: str | None
    """Why nothing is known."""
    chunks: RetrievalUsage
    pages: RetrievalUsage


class PageCount(TypedDict):
    """A page and for how many questions it counts."""

    page: str
    n: int


class ContentGap(TypedDict):
    """A topic that something should be written for, and what says so."""

    topic: int
    label: str
    """The words that set it apart; its most typical question where its questions share no words."""
    representative: str
    """Its most typical question."""
    n: int
    """Questions."""
    n_distinct: int
    """Of them that are worded differently."""
    n_missing: int
    """Questions whose page is not in the corpus."""
    n_unanswered: int
    """Questions that were answered badly, and of which no page is known."""
    n_downvoted: int
    """Questions whose user found the answer bad."""
    gain: float
    """What a new page is expected to gain, in questions: `n_missing` + `n_unanswered` / 2."""
    missing_pages: list[PageCount]
    examples_unserved: list[str]


class Topic(ContentGap):
    """A cluster of questions that hold together better than chance, and how well it is served."""

    words: list[str]
    """That set it apart, best first."""
    cohesion: float
    """The mean cosine of two of its questions, as it was found; above `cohesion_by_chance`."""
    share: float
    """Of all questions that a page could answer."""
    hit_rate: float | None
    n_hit_known: int
    failure_rate: float | None
    n_failure_known: int
    n_not_found: int
    """Questions whose page is in the corpus and was not found: to be made findable, not written."""
    missing_rate: float
    pages: list[PageCount]
    """That its questions are labelled with, the commonest."""
    examples: list[str]


class TopicAnalysis(TypedDict):
    """The topics of the questions."""

    topics: list[Topic]
    """The largest first."""
    cohesion_by_chance: float | None
    """What 95 % of the topics stay below that clustering finds where nothing belongs together; null for one topic."""
    without_topic: int
    """Questions that have nothing in common with others, or in which the embedder sees nothing."""
    without_topic_or_page: int
    """Of them those that a new page could gain something for."""
    examples_unserved: list[str]
    """Of those, for people to read."""
    next: list[ContentGap]
    """What to write next, the largest gain first."""


class NonQuestions(TypedDict):
    """What is written to the bot and is no question that a page could answer."""

    kind: NonQuestionKind
    n: int
    examples: list[str]
    """The commonest."""


class TextLengths(TypedDict):
    """min, p5, median, p95 and max of lengths; null without texts."""

    question_characters: dict[str, float] | None
    question_words: dict[str, float] | None
    chunk_characters: dict[str, float] | None


class Abbreviation(TypedDict):
    """An abbreviation that people use."""

    abbreviation: str
    questions: int
    chunks: int
    """0: nothing explains it."""


class Seasonality(TypedDict):
    """When people ask; null without times."""

    by_month: dict[str, int] | None
    """1 to 12."""
    by_weekday: dict[str, int] | None
    """0 is Monday."""
    reason: str | None


class MonthlyCount(TypedDict):
    """The questions of a month."""

    month: str
    """Such as 2026-01."""
    n: int


class QuestionGrowth(TypedDict):
    """Whether people ask more."""

    months: list[MonthlyCount]
    monthly: float | None
    """By how much a month has grown on the one before, on average; 0.1 is ten percent."""


class LogProfile(TypedDict):
    """What the log is like, without any model."""

    n_questions: int
    n_users: int | None
    n_chunks: int
    lengths: TextLengths
    scripts: dict[str, float]
    """Share of questions in cyrillic, latin, mixed, neither."""
    abbreviations: list[Abbreviation]
    seasons: Seasonality
    growth: QuestionGrowth


class CorpusMap(TypedDict):
    """A point of each question and chunk; one list a column."""

    x: list[float]
    y: list[float]
    kind: list[Literal["question", "chunk"]]
    id: list[str]
    text: list[str]
    topic: list[int | None]
    """Of questions; -1: none."""
    outcome: list[Literal["missing", "miss", "hit", "unknown"] | None]
    """Of questions: the page is missing, it was not found, it was found, not known."""
    uses: list[int | None]
    """Of chunks: questions that it was retrieved for."""
    n_total: int
    """Questions and chunks, of which so many as asked are shown."""
    explained: float | None
    """Share of the variance that the map shows."""


class _Used(TypedDict):
    source: str
    embedder: str
    utilisation: CorpusUsage


class CorpusAnalytics(_Used, TopicAnalysis):
    """What of a corpus is used, what people ask about, what to write next."""

    chatter: list[NonQuestions]
    """Counted apart, and in no topic; the commonest kind first."""
    profile: LogProfile
    map: CorpusMap
