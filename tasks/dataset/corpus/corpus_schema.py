"""JSON types of corpus analytics, printed by `yarus corpus --json`."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

NonQuestionKind = Literal["empty", "link", "command", "small_talk", "noise", "fragment", "spam", "other_language"]
"""Kind of a message that no page could answer."""


class CorpusItem(TypedDict):
    """A chunk or a page."""

    page: str | None
    """Null if a chunk has no page."""
    id: NotRequired[str]
    """Only of chunks."""
    text: NotRequired[str]
    """Beginning of the chunk; only of chunks."""


class OverRetrieved(CorpusItem):
    """A chunk or page that is retrieved much more often than others."""

    questions: int
    """Number of questions that retrieved it."""
    ratio_to_mean: float
    """`questions`, divided by their mean over all retrieved chunks or pages."""


class RetrievalUsage(TypedDict):
    """Use of chunks or of pages."""

    total: int
    retrieved: int | None
    """Number of them that any question retrieved; null without rankings of this unit."""
    share: float | None
    """Share of them that any question retrieved, 0 to 1."""
    never_retrieved: list[CorpusItem]
    """Up to twenty chunks or pages that no question retrieved."""
    n_never_retrieved: int | None
    """Number of never retrieved chunks or pages."""
    over_retrieved: list[OverRetrieved]
    """Up to twenty, the most frequent first."""


class CorpusUsage(TypedDict):
    """Share of the corpus that was ever retrieved."""

    evaluations: list[str]
    """Ids of the evaluations whose rankings are counted."""
    k: int | None
    """Largest depth of their rankings; null without rankings."""
    n_questions: int
    """Questions with rankings."""
    reason: str | None
    """Why usage is unknown; null if it is known."""
    chunks: RetrievalUsage
    pages: RetrievalUsage


class PageCount(TypedDict):
    """A page and the number of questions with it."""

    page: str
    n: int


class ContentGap(TypedDict):
    """A topic that needs a new page, and the evidence for it."""

    topic: int
    label: str
    """Distinctive words of the topic; its most typical question if its questions share too few words."""
    representative: str
    """Most typical question of the topic."""
    n: int
    """Number of questions."""
    n_distinct: int
    """Number of questions with different wording."""
    n_missing: int
    """Questions without a page in the corpus."""
    n_unanswered: int
    """Questions with a bad answer and no known page."""
    n_downvoted: int
    """Questions whose user rated the answer as bad."""
    expected_gain: float
    """Expected gain of a new page, in questions: `n_missing` + `n_unanswered` / 2."""
    missing_pages: list[PageCount]
    """Up to five labelled pages that are not in the corpus, the most frequent first."""
    unserved_examples: list[str]
    """Up to three questions that a new page could help."""


class Topic(ContentGap):
    """A cluster of questions that are more similar than by chance, with the quality of their answers."""

    words: list[str]
    """Distinctive words, best first."""
    cohesion: float
    """Mean cosine of two of its questions, -1 to 1, when it was found; above `cohesion_threshold`."""
    share: float
    """Share of all questions that a page could answer, 0 to 1."""
    hit_rate: float | None
    """Share of questions with a relevant result, among those where this is known; null if it is known for none."""
    n_with_hit_rate: int
    """Questions with a known `hit_rate`."""
    failure_rate: float | None
    """Share of questions with a bad answer, among those where this is known; null if it is known for none."""
    n_with_failure_rate: int
    """Questions with a known `failure_rate`."""
    n_not_found: int
    """Questions whose page is in the corpus, but was not retrieved: improve retrieval instead of writing a page."""
    missing_rate: float
    """`n_missing` / `n`."""
    pages: list[PageCount]
    """Up to five pages that label its questions, the most frequent first."""
    examples: list[str]
    """Up to three typical questions."""


class TopicAnalysis(TypedDict):
    """Topics of the questions."""

    topics: list[Topic]
    """The largest first."""
    cohesion_threshold: float | None
    """95 % quantile of cohesion over topics of shuffled questions; null for fewer than two topics."""
    n_unclustered: int
    """Questions that are not similar to others, or that have no vector."""
    n_unclustered_without_page: int
    """Questions without a topic that a new page could help."""
    unserved_examples: list[str]
    """Up to three of these questions."""
    content_gaps: list[ContentGap]
    """Up to ten topics to write about next, the largest gain first."""


class NonQuestions(TypedDict):
    """Messages of one kind that no page could answer."""

    kind: NonQuestionKind
    n: int
    examples: list[str]
    """Up to three texts, the most frequent first."""


class TextLengths(TypedDict):
    """Quantiles of lengths: min, p5, median, p95 and max; null without texts."""

    question_characters: dict[str, float] | None
    question_words: dict[str, float] | None
    chunk_characters: dict[str, float] | None


class Abbreviation(TypedDict):
    """An abbreviation in questions."""

    abbreviation: str
    questions: int
    """Questions that contain it."""
    chunks: int
    """Chunks that contain it; with 0, the corpus does not explain it."""


class Seasonality(TypedDict):
    """Number of questions by month and by weekday."""

    by_month: dict[str, int] | None
    """Month, 1 to 12 -> questions; null without times."""
    by_weekday: dict[str, int] | None
    """Weekday, 0 is Monday -> questions; null without times."""
    reason: str | None
    """Why the counts are null."""


class MonthlyCount(TypedDict):
    """Number of questions in a month."""

    month: str
    """Year and month, such as 2026-01."""
    n: int


class QuestionGrowth(TypedDict):
    """Growth of the number of questions."""

    months: list[MonthlyCount]
    monthly_growth: float | None
    """Mean growth per month, 0.1 is 10 %; the first and last month do not count. Null with fewer than three complete
    months, or if one has no questions."""


class LogProfile(TypedDict):
    """Properties of the log that need no model."""

    n_questions: int
    n_users: int | None
    """Null without users."""
    n_chunks: int
    lengths: TextLengths
    scripts: dict[str, float]
    """Shares of questions in `cyrillic`, `latin`, `mixed` and `neither`, 0 to 1."""
    abbreviations: list[Abbreviation]
    """Up to thirty, the most frequent first."""
    seasonality: Seasonality
    growth: QuestionGrowth


class CorpusMap(TypedDict):
    """Map of questions and chunks: lists of equal length with one entry per point."""

    x: list[float]
    y: list[float]
    kind: list[Literal["question", "chunk"]]
    id: list[str]
    text: list[str]
    topic: list[int | None]
    """Topic of a question, -1 without one; null for chunks."""
    outcome: list[Literal["missing", "miss", "hit", "unknown"] | None]
    """`missing`: the corpus has no page for the question; `miss`: nothing relevant was retrieved; `hit`: something
    relevant was; `unknown`. Null for chunks."""
    retrieval_counts: list[int | None]
    """Number of questions that retrieved the chunk; null for questions."""
    n_total: int
    """All questions and chunks; the map shows a sample if there are too many."""
    explained_variance: float | None
    """Share of variance on the map, 0 to 1; null if there are no components."""


class _Used(TypedDict):
    source: str
    embedder: str
    utilisation: CorpusUsage


class CorpusAnalytics(_Used, TopicAnalysis):
    """Use of the corpus, topics of the questions, and content gaps."""

    non_questions: list[NonQuestions]
    """Messages that are not questions and belong to no topic; the most frequent kind first."""
    profile: LogProfile
    map: CorpusMap
