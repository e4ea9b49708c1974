"""What can be measured with what a source has: tier by tier, for how many cases, and what is missing.

A tier is promised by the rules by which its cases are loaded (`yarus.tasks.steps`), on rows without their long texts:
the count is the number of cases that the tier will have and can measure, before anything fails.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import or_
from typing import Literal, NamedTuple, get_args

from sqlalchemy import Connection

from yarus.db.source_rows import Corpus, Row, outline_corpus, outline_questions, read_chunk_texts
from yarus.db.sources import Source, snapshot
from yarus.db.urls import canonical_url
from yarus.tasks.cases.dialogs import by_time, places
from yarus.tasks.cases.labels import Labels, LabelsOf, labels_given, pages_of, shown_page
from yarus.tasks.cases.outcomes import ideal_context, reference_of, shown_rightly
from yarus.tasks.cases.sampling import merged
from yarus.tasks.cases.text import fit
from yarus.tasks.cases.vocabulary import Unit
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.config.settings import settings
from yarus.tasks.steps.exam.paper import draw_subjects, has_sentence
from yarus.tasks.steps.recorded import RECORDED, has_context, is_answered

ORDER = ("tier1", "real_users", "tier2", "tier3", "ux", "judge", "judge_pipeline", "tier0")
"""What a beginner would ask first."""
EXAMPLES = 3

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
class Ready:
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
    """Why a tier can measure nothing."""

    missing: Missing
    theirs: tuple[str, ...] = ()
    """Examples of what the questions name."""
    ours: tuple[str, ...] = ()
    """Examples of what the corpus has."""


@dataclass
class Holdings:
    """What a source has, without its long texts.

    Args:
        questions: rows of the log with their labels, or their outlines.
        corpus: of which ids and addresses count.
        read_texts: the texts of some chunks, by id.
        sut: the system under test, as YARUS_SUT has it.
        nuggets: whether nuggets are looked for in answers.
    """

    questions: Sequence[Row]
    corpus: Corpus
    read_texts: Callable[[Iterable[str]], dict[str, str]]
    sut: str
    nuggets: bool = False

    @cached_property
    def pages(self) -> dict[str, str | None]:
        """The page of every chunk."""
        return pages_of(self.corpus)

    @cached_property
    def known_pages(self) -> set[str]:
        """The pages of the corpus."""
        return {page for page in self.pages.values() if page is not None}

    @cached_property
    def labels(self) -> dict[Unit, list[Labels]]:
        """The relevant chunks and pages of every question."""
        units: tuple[Unit, ...] = get_args(Unit)
        return {unit: [labels_given(row, unit, self.pages) for row in self.questions] for unit in units}

    @property
    def unit(self) -> Unit:
        """What counts as found; a label of a chunk is one of its page, too (`yarus.tasks.cases.labels.labels_of`)."""
        chunks, pages = self.labels["chunk"], self.labels["page"]
        return LabelsOf(sum(map(bool, map(or_, chunks, pages))), sum(map(bool, chunks))).unit

    def find_labelled(self, unit: Unit) -> list[bool]:
        """Whether the corpus has anything that is relevant for each question."""
        known = self.pages.keys() if unit == "chunk" else self.known_pages
        return [not known.isdisjoint(labels) for labels in self.labels[unit]]

    @cached_property
    def judged(self) -> list[Row]:
        """Questions whose answer can be judged against what it was given."""
        return [
            row
            for row in self.questions
            if (row["answer"] or "").strip()
            and (has_context(row, self.pages) or canonical_url(row["confluence_url"]) in self.known_pages)
        ]


def readiness(source: Source, *, sut: str | None = None) -> list[Ready]:
    """Count what each tier can measure, the first to run first.

    Args:
        source: as it is now.
        sut: the system under test; None for that of the settings.

    Raises:
        InputError: a table or column is missing, or a label cannot be read.
        DatabaseUnavailable: the source cannot be reached.
    """
    with snapshot(source) as connection:
        return count_ready(source.name, read_holdings(connection, source, sut=sut))


def read_holdings(
    connection: Connection,
    source: Source,
    *,
    questions: Sequence[Row] | None = None,
    sut: str | None = None,
    nuggets: bool = False,
) -> Holdings:
    """Read what a source has.

    Args:
        connection: in a snapshot of the source; it is used as long as the holdings are counted.
        source: where to read.
        questions: those of a frozen case set; None for the source's own.
        sut: the system under test; None for that of the settings.
        nuggets: whether nuggets are looked for.

    Raises:
        InputError: a table or column is missing.
    """

    def read_texts(ids: Iterable[str]) -> dict[str, str]:
        return read_chunk_texts(connection, source, ids)

    rows = outline_questions(connection, source) if questions is None else questions
    return Holdings(rows, outline_corpus(connection, source), read_texts, sut or settings().sut, nuggets)


def count_ready(name: str, has: Holdings, tiers: Iterable[str] = ORDER, *, as_set: bool = False) -> list[Ready]:
    """Count what tiers can measure.

    Args:
        name: of the source, for commands.
        has: what it has.
        tiers: which.
        as_set: with the system of the settings and no other; else tier 3 may have recorded answers where that one
            cannot be measured.

    Raises:
        InputError: a label cannot be read.
    """
    return [_ready(tier, has, name, as_set=as_set) for tier in tiers]


def _ready(tier: str, has: Holdings, name: str, *, as_set: bool) -> Ready:
    found, options = _COUNTS[tier](has), ""
    if isinstance(found, Lack) and tier == "tier3" and (answered := _answered(has)):
        # What was answered is judged without a passage, too.
        found, options = Lack("recorded only") if as_set else answered, f" --sut {RECORDED}"
    if isinstance(found, Lack):
        examples = {"theirs": ", ".join(found.theirs), "ours": ", ".join(found.ours)}
        return Ready(tier, 0, found.missing, None, {"source": name, **examples})
    return Ready(tier, found, None, f"yarus run {tier} --source {name}{options}")


def _tier0(has: Holdings) -> int | Lack:
    sizes = Counter(page for page in has.pages.values() if page is not None)
    if not has.corpus.ids:
        return Lack("chunks")
    if not sizes:
        return Lack("addresses")
    return sizes.total() if max(sizes.values()) > 1 else Lack("one passage per page")


def _tier1(has: Holdings) -> int | Lack:
    return _of_corpus(has) or sum(has.find_labelled(has.unit)) or _unmatched(has)


def _real_users(has: Holdings) -> int | Lack:
    groups = merged(has.questions)
    found = sum(not has.known_pages.isdisjoint(shown_page(rows)) for rows in groups)
    return _of_corpus(has) or found or _unmatched_pages(has, map(shown_page, groups), "shown pages")


def _tier2(has: Holdings) -> int | Lack:
    if has.sut == RECORDED:
        return _recorded(has)
    found = sum(map(or_, has.find_labelled("chunk"), has.find_labelled("page")))
    return _of_corpus(has) or found or _unmatched(has)


def _tier3(has: Holdings) -> int | Lack:
    if has.sut == RECORDED:
        return _recorded(has)
    if not has.questions:
        return Lack("questions")
    found = sum(
        reference_of(row) is not None or row.get("answerable") is False or (has.nuggets and bool(row.get("nuggets")))
        for row in has.questions
    )
    if not found:
        return Lack("references")
    return Lack("system") if has.sut == "local" and not has.corpus.ids else found


def _judge(has: Holdings) -> int | Lack:
    named = [next(iter(labels), None) for labels in has.labels["page"]]
    numbers = draw_subjects(has.questions, named, has.known_pages, JudgeQuality().exam, JudgeQuality().seed)
    examined = [has.questions[number] for number in numbers]
    with_paper = {row["question_id"] for row in examined if reference_of(row)} | _quoted(has, examined)
    return len(with_paper | {row["question_id"] for row in has.judged}) or _unjudged(has)


def _judge_pipeline(has: Holdings) -> int | Lack:
    found = sum(shown_rightly(row) is not None for row in has.judged)
    return found or (Lack("scores") if has.judged else _unjudged(has))


def _ux(has: Holdings) -> int | Lack:
    if not has.questions:
        return Lack("questions")
    if all(row["created_at"] is not None for row in has.questions):
        return len(has.questions)
    log = by_time(has.questions)
    found = places(log)
    timed = [row["created_at"] is not None for row in log]
    if not any(timed) and not any(place.turn == 2 for place in found):
        return Lack("times")
    return sum(known or place.dialog is not None for known, place in zip(timed, found, strict=True))


_COUNTS: dict[str, Callable[[Holdings], int | Lack]] = {
    "tier0": _tier0,
    "tier1": _tier1,
    "real_users": _real_users,
    "tier2": _tier2,
    "tier3": _tier3,
    "judge": _judge,
    "judge_pipeline": _judge_pipeline,
    "ux": _ux,
}


def _of_corpus(has: Holdings) -> Lack | None:
    """What is missing of questions and chunks, where both are needed."""
    if not has.questions:
        return Lack("questions")
    return None if has.corpus.ids else Lack("chunks")


def _answered(has: Holdings) -> int:
    """How many recorded answers there are."""
    return sum(map(is_answered, has.questions))


def _recorded(has: Holdings) -> int | Lack:
    if not has.questions:
        return Lack("questions")
    return _answered(has) or Lack("answers")


def _quoted(has: Holdings, examined: Sequence[Row]) -> set[str]:
    """The examined questions without a reference whose page has a sentence that can stand for an answer."""
    chunks = {
        row["question_id"]: ideal_context(row, has.corpus, has.pages) for row in examined if not reference_of(row)
    }
    texts = has.read_texts({chunk for ids in chunks.values() for chunk in ids}) if chunks else {}
    tokens = JudgeQuality().context_tokens
    return {name for name, ids in chunks.items() if has_sentence(fit([texts[chunk] for chunk in ids], tokens)[0])}


def _unmatched(has: Holdings) -> Lack:
    """Why no label names anything of the corpus."""
    if has.unit == "chunk":
        theirs = _examples(label for labels in has.labels["chunk"] for label in labels)
        return Lack("chunks in the corpus", theirs, _examples(has.corpus.ids)) if theirs else Lack("pages")
    return _unmatched_pages(has, has.labels["page"], "pages")


def _unmatched_pages(has: Holdings, labels: Iterable[Iterable[str]], none: Missing) -> Lack:
    """Why no label names a page of the corpus: there is none (`none`), or the addresses differ."""
    theirs = _examples(label for of in labels for label in of)
    if not theirs:
        return Lack(none)
    ours = _examples(page for page in has.pages.values() if page is not None)
    return Lack("pages in the corpus", theirs, ours) if ours else Lack("addresses")


def _unjudged(has: Holdings) -> Lack:
    """Why no answer can be judged against what it was given."""
    if not has.questions:
        return Lack("questions")
    answered = [row for row in has.questions if (row["answer"] or "").strip()]
    if not answered:
        return Lack("answers")
    return (
        _unmatched_pages(has, (shown_page([row]) for row in answered), "contexts")
        if has.corpus.ids
        else Lack("contexts")
    )


def _examples(names: Iterable[str]) -> tuple[str, ...]:
    """The first few different names."""
    found: dict[str, None] = {}
    for name in names:
        found[name] = None
        if len(found) == EXAMPLES:
            break
    return tuple(found)
