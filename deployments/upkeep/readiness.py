"""Count what can be measured with a source: per tier, for how many cases, and what is missing.

A tier is counted by the rules that load its cases (`yarus.tasks.steps`), on rows without their long texts. The count is
the number of cases that the tier will have and can measure, before any failures.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import or_
from typing import Literal, NamedTuple, get_args

from sqlalchemy import Connection

from yarus.db.source_rows import Corpus, QuestionRow, outline_corpus, outline_questions, read_chunk_texts
from yarus.db.sources import Source, open_snapshot
from yarus.db.urls import canonical_url
from yarus.tasks.cases.dialogs import dialog_turns, sort_by_time
from yarus.tasks.cases.labels import Grades, LabelCounts, page_by_chunk, relevance_grades, shown_pages
from yarus.tasks.cases.outcomes import ideal_context, reference_answer, should_be_shown
from yarus.tasks.cases.sampling import group_duplicate_questions
from yarus.tasks.cases.text import join_within_limit
from yarus.tasks.cases.vocabulary import Unit
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.config.settings import get_settings
from yarus.tasks.steps.exam.paper import draw_subjects, has_sentence
from yarus.tasks.steps.recorded import RECORDED_SYSTEM, has_context, is_answered

TIER_ORDER = ("tier1", "real_users", "tier2", "tier3", "ux", "judge", "judge_pipeline", "tier0")
"""The tiers in the order of a beginner's questions."""
N_EXAMPLES = 3

Missing = Literal[
    "questions",
    "chunks",
    "addresses",
    "one passage per page",
    "pages",
    "pages in the corpus",
    "chunks in the corpus",
    "shown pages",
    "references",
    "recorded only",
    "system",
    "answers",
    "contexts",
    "scores",
    "times",
]


@dataclass(frozen=True, slots=True)
class TierReadiness:
    """Whether a source has data for a tier."""

    tier: str
    questions: int
    """Number of questions that the tier can measure if nothing fails; of tier 0 passages."""
    missing: Missing | None
    """Key in tasks/config/texts of the missing data; null if the tier can be measured."""
    command: str | None
    values: dict[str, str] = field(default_factory=dict)
    """Values for the text of `missing`."""


class Lack(NamedTuple):
    """The reason why a tier can measure nothing."""

    missing: Missing
    theirs: tuple[str, ...] = ()
    """Examples of names in the questions."""
    ours: tuple[str, ...] = ()
    """Examples of names in the corpus."""


@dataclass
class SourceContent:
    """The content of a source, without its long texts.

    Args:
        questions: rows of the log with their labels, or their outlines.
        corpus: the corpus, of which only ids and addresses are used.
        read_texts: returns the texts of some chunks, by id.
        sut: the system under test, as in YARUS_SUT.
        nuggets: whether nuggets are searched for in answers.
    """

    questions: Sequence[QuestionRow]
    corpus: Corpus
    read_texts: Callable[[Iterable[str]], dict[str, str]]
    sut: str
    nuggets: bool = False

    @cached_property
    def pages(self) -> dict[str, str | None]:
        """Return the page of every chunk."""
        return page_by_chunk(self.corpus)

    @cached_property
    def known_pages(self) -> set[str]:
        """Return the pages of the corpus."""
        return {page for page in self.pages.values() if page is not None}

    @cached_property
    def labels(self) -> dict[Unit, list[Grades]]:
        """Return the relevant chunks and pages of every question."""
        units: tuple[Unit, ...] = get_args(Unit)
        return {unit: [relevance_grades(row, unit, self.pages) for row in self.questions] for unit in units}

    @property
    def unit(self) -> Unit:
        """Return the unit of labels; a chunk label also counts as one of its page (see `count_labels`)."""
        chunks, pages = self.labels["chunk"], self.labels["page"]
        return LabelCounts(sum(map(bool, map(or_, chunks, pages))), sum(map(bool, chunks))).unit

    def find_labelled(self, unit: Unit) -> list[bool]:
        """Return whether the corpus has anything that is relevant, for each question."""
        corpus_names = self.pages.keys() if unit == "chunk" else self.known_pages
        return [not corpus_names.isdisjoint(labels) for labels in self.labels[unit]]

    @cached_property
    def judged(self) -> list[QuestionRow]:
        """Return the questions whose answer can be judged against its context."""
        return [
            row
            for row in self.questions
            if (row["answer"] or "").strip()
            and (has_context(row, self.pages) or canonical_url(row["confluence_url"]) in self.known_pages)
        ]


def read_readiness(source: Source, *, sut: str | None = None) -> list[TierReadiness]:
    """Count what each tier can measure, in the order in which to run them.

    Args:
        source: the source.
        sut: the system under test; None for that of the settings.

    Raises:
        InputError: a table or column is missing, or a label cannot be read.
        DatabaseUnavailable: the source cannot be reached.
    """
    with open_snapshot(source) as connection:
        return count_tiers(source.name, read_source_content(connection, source, sut=sut))


def read_source_content(
    connection: Connection,
    source: Source,
    *,
    questions: Sequence[QuestionRow] | None = None,
    sut: str | None = None,
    nuggets: bool = False,
) -> SourceContent:
    """Read the content of a source.

    Args:
        connection: a connection in a snapshot of the source, open while the content is counted.
        source: the source to read.
        questions: those of a frozen case set; None for the source's own.
        sut: the system under test; None for that of the settings.
        nuggets: whether nuggets are searched for.

    Raises:
        InputError: a table or column is missing.
    """

    def read_texts(ids: Iterable[str]) -> dict[str, str]:
        return read_chunk_texts(connection, source, ids)

    rows = outline_questions(connection, source) if questions is None else questions
    return SourceContent(rows, outline_corpus(connection, source), read_texts, sut or get_settings().sut, nuggets)


def count_tiers(
    name: str, content: SourceContent, tiers: Iterable[str] = TIER_ORDER, *, as_set: bool = False
) -> list[TierReadiness]:
    """Count the cases that tiers can measure.

    Args:
        name: the name of the source, for commands.
        has: the content of the source.
        tiers: the tiers to count.
        as_set: count only the system of the settings; else tier 3 may use recorded answers if that system cannot be
            measured.

    Raises:
        InputError: a label cannot be read.
    """
    return [_count_tier(tier, content, name, as_set=as_set) for tier in tiers]


def _count_tier(tier: str, content: SourceContent, name: str, *, as_set: bool) -> TierReadiness:
    count, options = _COUNTS[tier](content), ""
    if isinstance(count, Lack) and tier == "tier3" and (n_answered := _count_answered(content)):
        # Recorded answers can be judged without passages.
        count, options = Lack("recorded only") if as_set else n_answered, f" --sut {RECORDED_SYSTEM}"
    if isinstance(count, Lack):
        examples = {"theirs": ", ".join(count.theirs), "ours": ", ".join(count.ours)}
        return TierReadiness(tier, 0, count.missing, None, {"source": name, **examples})
    return TierReadiness(tier, count, None, f"yarus run {tier} --source {name}{options}")


def _count_tier0(content: SourceContent) -> int | Lack:
    sizes = Counter(page for page in content.pages.values() if page is not None)
    if not content.corpus.ids:
        return Lack("chunks")
    if not sizes:
        return Lack("addresses")
    return sizes.total() if max(sizes.values()) > 1 else Lack("one passage per page")


def _count_tier1(content: SourceContent) -> int | Lack:
    return _find_lack(content) or sum(content.find_labelled(content.unit)) or _explain_unmatched(content)


def _count_real_users(content: SourceContent) -> int | Lack:
    groups = group_duplicate_questions(content.questions)
    count = sum(not content.known_pages.isdisjoint(shown_pages(rows)) for rows in groups)
    return _find_lack(content) or count or _explain_unmatched_pages(content, map(shown_pages, groups), "shown pages")


def _count_tier2(content: SourceContent) -> int | Lack:
    if content.sut == RECORDED_SYSTEM:
        return _count_recorded(content)
    count = sum(map(or_, content.find_labelled("chunk"), content.find_labelled("page")))
    return _find_lack(content) or count or _explain_unmatched(content)


def _count_tier3(content: SourceContent) -> int | Lack:
    if content.sut == RECORDED_SYSTEM:
        return _count_recorded(content)
    if not content.questions:
        return Lack("questions")
    count = sum(
        reference_answer(row) is not None
        or row.get("answerable") is False
        or (content.nuggets and bool(row.get("nuggets")))
        for row in content.questions
    )
    if not count:
        return Lack("references")
    return Lack("system") if content.sut == "local" and not content.corpus.ids else count


def _count_judge(content: SourceContent) -> int | Lack:
    pages = [next(iter(labels), None) for labels in content.labels["page"]]
    picks = draw_subjects(content.questions, pages, content.known_pages, JudgeQuality().exam, JudgeQuality().seed)
    rows = [content.questions[position] for position in picks]
    ids = {row["question_id"] for row in rows if reference_answer(row)} | _find_quotable(content, rows)
    return len(ids | {row["question_id"] for row in content.judged}) or _explain_unjudged(content)


def _count_judge_pipeline(content: SourceContent) -> int | Lack:
    count = sum(should_be_shown(row) is not None for row in content.judged)
    return count or (Lack("scores") if content.judged else _explain_unjudged(content))


def _count_ux(content: SourceContent) -> int | Lack:
    if not content.questions:
        return Lack("questions")
    if all(row["created_at"] is not None for row in content.questions):
        return len(content.questions)
    log = sort_by_time(content.questions)
    turn_places = dialog_turns(log)
    has_time = [row["created_at"] is not None for row in log]
    if not any(has_time) and not any(turn.turn == 2 for turn in turn_places):
        return Lack("times")
    return sum(is_timed or turn.dialog is not None for is_timed, turn in zip(has_time, turn_places, strict=True))


_COUNTS: dict[str, Callable[[SourceContent], int | Lack]] = {
    "tier0": _count_tier0,
    "tier1": _count_tier1,
    "real_users": _count_real_users,
    "tier2": _count_tier2,
    "tier3": _count_tier3,
    "judge": _count_judge,
    "judge_pipeline": _count_judge_pipeline,
    "ux": _count_ux,
}


def _find_lack(content: SourceContent) -> Lack | None:
    """Return the lack of questions or chunks, if both are needed."""
    if not content.questions:
        return Lack("questions")
    return None if content.corpus.ids else Lack("chunks")


def _count_answered(content: SourceContent) -> int:
    """Return the number of recorded answers."""
    return sum(map(is_answered, content.questions))


def _count_recorded(content: SourceContent) -> int | Lack:
    if not content.questions:
        return Lack("questions")
    return _count_answered(content) or Lack("answers")


def _find_quotable(content: SourceContent, rows: Sequence[QuestionRow]) -> set[str]:
    """Return the ids of examined questions without a reference whose page has a sentence that can be an answer."""
    chunks = {
        row["question_id"]: ideal_context(row, content.corpus, content.pages)
        for row in rows
        if not reference_answer(row)
    }
    texts = content.read_texts({chunk for ids in chunks.values() for chunk in ids}) if chunks else {}
    tokens = JudgeQuality().context_tokens
    return {
        name
        for name, ids in chunks.items()
        if has_sentence(join_within_limit([texts[chunk] for chunk in ids], tokens)[0])
    }


def _explain_unmatched(content: SourceContent) -> Lack:
    """Return why no label names anything in the corpus."""
    if content.unit == "chunk":
        examples = _take_examples(label for labels in content.labels["chunk"] for label in labels)
        return Lack("chunks in the corpus", examples, _take_examples(content.corpus.ids)) if examples else Lack("pages")
    return _explain_unmatched_pages(content, content.labels["page"], "pages")


def _explain_unmatched_pages(content: SourceContent, labels: Iterable[Iterable[str]], without_labels: Missing) -> Lack:
    """Return why no label names a page of the corpus: there are no labels, or the addresses differ."""
    examples = _take_examples(label for group in labels for label in group)
    if not examples:
        return Lack(without_labels)
    page_examples = _take_examples(page for page in content.pages.values() if page is not None)
    return Lack("pages in the corpus", examples, page_examples) if page_examples else Lack("addresses")


def _explain_unjudged(content: SourceContent) -> Lack:
    """Return why no answer can be judged against its context."""
    if not content.questions:
        return Lack("questions")
    answered = [row for row in content.questions if (row["answer"] or "").strip()]
    if not answered:
        return Lack("answers")
    return (
        _explain_unmatched_pages(content, (shown_pages([row]) for row in answered), "contexts")
        if content.corpus.ids
        else Lack("contexts")
    )


def _take_examples(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first few distinct names."""
    examples: dict[str, None] = {}
    for name in names:
        examples[name] = None
        if len(examples) == N_EXAMPLES:
            break
    return tuple(examples)
