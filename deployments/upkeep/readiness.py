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
from yarus.db.sources import Source, snapshot
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
    """Whether a tier can be measured."""

    tier: str
    questions: int
    """That it can measure, before anything fails; of tier 0 passages."""
    missing: Missing | None
    """What to add where it can measure none, as a word of tasks/config/texts; null where it can."""
    command: str | None
    values: dict[str, str] = field(default_factory=dict)
    """Of that word."""


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
        """Return the unit of labels; a chunk label also counts as one of its page
        (`yarus.tasks.cases.labels.count_labels`).
        """
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
    with snapshot(source) as connection:
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
        connection: a connection in a snapshot of the source, open while the holdings are counted.
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
    name: str, has: SourceContent, tiers: Iterable[str] = TIER_ORDER, *, as_set: bool = False
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
    return [_count_tier(tier, has, name, as_set=as_set) for tier in tiers]


def _count_tier(tier: str, holdings: SourceContent, name: str, *, as_set: bool) -> TierReadiness:
    count, options = _COUNTS[tier](holdings), ""
    if isinstance(count, Lack) and tier == "tier3" and (n_answered := _count_answered(holdings)):
        # Recorded answers can be judged without passages.
        count, options = Lack("recorded only") if as_set else n_answered, f" --sut {RECORDED_SYSTEM}"
    if isinstance(count, Lack):
        examples = {"theirs": ", ".join(count.theirs), "ours": ", ".join(count.ours)}
        return TierReadiness(tier, 0, count.missing, None, {"source": name, **examples})
    return TierReadiness(tier, count, None, f"yarus run {tier} --source {name}{options}")


def _count_tier0(holdings: SourceContent) -> int | Lack:
    sizes = Counter(page for page in holdings.pages.values() if page is not None)
    if not holdings.corpus.ids:
        return Lack("chunks")
    if not sizes:
        return Lack("addresses")
    return sizes.total() if max(sizes.values()) > 1 else Lack("one passage per page")


def _count_tier1(holdings: SourceContent) -> int | Lack:
    return _find_lack_of_input(holdings) or sum(holdings.find_labelled(holdings.unit)) or _explain_unmatched(holdings)


def _count_real_users(holdings: SourceContent) -> int | Lack:
    groups = group_duplicate_questions(holdings.questions)
    n_found = sum(not holdings.known_pages.isdisjoint(shown_pages(rows)) for rows in groups)
    return (
        _find_lack_of_input(holdings)
        or n_found
        or _explain_unmatched_pages(holdings, map(shown_pages, groups), "shown pages")
    )


def _count_tier2(holdings: SourceContent) -> int | Lack:
    if holdings.sut == RECORDED_SYSTEM:
        return _count_recorded(holdings)
    n_found = sum(map(or_, holdings.find_labelled("chunk"), holdings.find_labelled("page")))
    return _find_lack_of_input(holdings) or n_found or _explain_unmatched(holdings)


def _count_tier3(holdings: SourceContent) -> int | Lack:
    if holdings.sut == RECORDED_SYSTEM:
        return _count_recorded(holdings)
    if not holdings.questions:
        return Lack("questions")
    n_found = sum(
        reference_answer(row) is not None
        or row.get("answerable") is False
        or (holdings.nuggets and bool(row.get("nuggets")))
        for row in holdings.questions
    )
    if not n_found:
        return Lack("references")
    return Lack("system") if holdings.sut == "local" and not holdings.corpus.ids else n_found


def _count_judge(holdings: SourceContent) -> int | Lack:
    first_pages = [next(iter(labels), None) for labels in holdings.labels["page"]]
    positions = draw_subjects(
        holdings.questions, first_pages, holdings.known_pages, JudgeQuality().exam, JudgeQuality().seed
    )
    exam_rows = [holdings.questions[position] for position in positions]
    exam_ids = {row["question_id"] for row in exam_rows if reference_answer(row)} | _find_quotable(holdings, exam_rows)
    return len(exam_ids | {row["question_id"] for row in holdings.judged}) or _explain_unjudged(holdings)


def _count_judge_pipeline(holdings: SourceContent) -> int | Lack:
    n_found = sum(should_be_shown(row) is not None for row in holdings.judged)
    return n_found or (Lack("scores") if holdings.judged else _explain_unjudged(holdings))


def _count_ux(holdings: SourceContent) -> int | Lack:
    if not holdings.questions:
        return Lack("questions")
    if all(row["created_at"] is not None for row in holdings.questions):
        return len(holdings.questions)
    log = sort_by_time(holdings.questions)
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


def _find_lack_of_input(holdings: SourceContent) -> Lack | None:
    """Return the lack of questions or chunks, if both are needed."""
    if not holdings.questions:
        return Lack("questions")
    return None if holdings.corpus.ids else Lack("chunks")


def _count_answered(holdings: SourceContent) -> int:
    """Return the number of recorded answers."""
    return sum(map(is_answered, holdings.questions))


def _count_recorded(holdings: SourceContent) -> int | Lack:
    if not holdings.questions:
        return Lack("questions")
    return _count_answered(holdings) or Lack("answers")


def _find_quotable(holdings: SourceContent, exam_rows: Sequence[QuestionRow]) -> set[str]:
    """Return the ids of examined questions without a reference whose page has a sentence that can be an answer."""
    chunks = {
        row["question_id"]: ideal_context(row, holdings.corpus, holdings.pages)
        for row in exam_rows
        if not reference_answer(row)
    }
    texts = holdings.read_texts({chunk for ids in chunks.values() for chunk in ids}) if chunks else {}
    tokens = JudgeQuality().context_tokens
    return {
        name
        for name, ids in chunks.items()
        if has_sentence(join_within_limit([texts[chunk] for chunk in ids], tokens)[0])
    }


def _explain_unmatched(holdings: SourceContent) -> Lack:
    """Return why no label names anything in the corpus."""
    if holdings.unit == "chunk":
        label_examples = _take_examples(label for labels in holdings.labels["chunk"] for label in labels)
        return (
            Lack("chunks in the corpus", label_examples, _take_examples(holdings.corpus.ids))
            if label_examples
            else Lack("pages")
        )
    return _explain_unmatched_pages(holdings, holdings.labels["page"], "pages")


def _explain_unmatched_pages(holdings: SourceContent, labels: Iterable[Iterable[str]], without_labels: Missing) -> Lack:
    """Return why no label names a page of the corpus: there are no labels, or the addresses differ."""
    label_examples = _take_examples(label for question_labels in labels for label in question_labels)
    if not label_examples:
        return Lack(without_labels)
    page_examples = _take_examples(page for page in holdings.pages.values() if page is not None)
    return Lack("pages in the corpus", label_examples, page_examples) if page_examples else Lack("addresses")


def _explain_unjudged(holdings: SourceContent) -> Lack:
    """Return why no answer can be judged against its context."""
    if not holdings.questions:
        return Lack("questions")
    answered = [row for row in holdings.questions if (row["answer"] or "").strip()]
    if not answered:
        return Lack("answers")
    return (
        _explain_unmatched_pages(holdings, (shown_pages([row]) for row in answered), "contexts")
        if holdings.corpus.ids
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
