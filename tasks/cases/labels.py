"""What is relevant for a question, from its annotation or else from the log; and which questions are evaluated."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus, Row
from yarus.db.urls import canonical_url
from yarus.db.words import Words
from yarus.tasks.cases.table import table, with_columns
from yarus.tasks.cases.vocabulary import Note, Twins, Unit

Labels = dict[str, float]
GOOD, BAD = 5, 1
AT_ONCE = 5_000
"""Cases made from rows at a time: as Python objects they take several times the memory of a table."""
NO_TWINS: Twins = {}
UNITS: tuple[Unit, Unit] = ("page", "chunk")
RELEVANCE = ("relevant_chunk_ids", "relevant_urls", "answerable")
"""The labels that say what is relevant, or that nothing is."""


def annotated_cases(
    source: str, questions: Sequence[Row], corpus: Corpus, unit: Unit, twins: Twins = NO_TWINS
) -> tuple[pa.Table, list[Note]]:
    """Tier 1's cases: labels from annotations; where there is none, the page that the bot showed.

    Args:
        source: its name, for the case ids.
        questions: rows of `question_answer` with their annotation, if they have one.
        corpus: the chunks, to tell labels that name nothing.
        unit: `chunk` or `page`.
        twins: a label on one of them is a label on all.

    Returns:
        The table of cases, and a note for every fallback used and every label left out.
    """
    pages = pages_of(corpus)
    labels = [labels_given(question, unit, pages) for question in questions]
    fallbacks = sum(
        bool(of) and not _annotated(question, unit, pages) for of, question in zip(labels, questions, strict=True)
    )
    notes: list[Note] = [{"note": "page from the log", "n": fallbacks}] if fallbacks else []
    rejected = [dict.fromkeys(_rejected(question, unit), 0.0) for question in questions]
    said = [no | yes for no, yes in zip(rejected, labels, strict=True)]
    cases, stale = _cases(source, questions, said, unit, pages, twins)
    return cases, notes + stale


def logged_cases(
    source: str, groups: Sequence[list[Row]], corpus: Corpus, twins: Twins = NO_TWINS
) -> tuple[pa.Table, list[Note]]:
    """The real users' cases: the page that the bot showed is the label, duplicate questions are one case.

    Args:
        source: its name, for the case ids.
        groups: duplicate questions together, as `merged` returns them; the pages of all count.
        corpus: the chunks, to tell labels that name nothing.
        twins: of pages; a label on one of them is a label on all.

    Returns:
        The table of cases with their stratum, and notes.
    """
    firsts = [rows[0] for rows in groups]
    cases, notes = _cases(source, firsts, [shown_page(rows) for rows in groups], "page", pages_of(corpus), twins)
    if (repeated := sum(map(len, groups)) - len(groups)) > 0:
        notes.append({"note": "duplicates merged", "n": repeated})
    return with_columns(cases, stratum=[stratum(row["score"] for row in rows) for rows in groups]), notes


def stratum(scores: Iterable[int | None]) -> str:
    """What users said of the answer: `confirmed` (5 only), `contradicted` (1 only), else `agreement`.

    Scores 2 to 4 say nothing clear and count as none; 5 and 1 for the same question contradict each other.
    """
    said = {score for score in scores if score in (GOOD, BAD)}
    return "agreement" if len(said) != 1 else "confirmed" if said == {GOOD} else "contradicted"


def pages_of(corpus: Corpus) -> dict[str, str | None]:
    """The page of every chunk."""
    return dict(zip(corpus.ids, map(canonical_url, corpus.urls), strict=True))


class LabelsOf(NamedTuple):
    """What the questions of a source are labelled with: how many have any label, and how many one of chunks."""

    labelled: int
    chunks: int

    @property
    def unit(self) -> Unit:
        """What is counted by default: chunks where at least half of the labelled questions have them, else pages."""
        return "chunk" if self.chunks and 2 * self.chunks >= self.labelled else "page"

    def note(self, unit: Unit) -> list[Note]:
        """What an evaluation by this unit leaves out, or takes otherwise than it was labelled."""
        if unit == "chunk" and self.labelled > self.chunks:
            return [{"note": "pages only", "n": self.labelled - self.chunks, "of": self.labelled}]
        as_pages = unit == "page" and self.chunks
        return [{"note": "chunks as pages", "n": self.chunks, "of": self.labelled}] if as_pages else []


def labels_of(questions: Sequence[Row]) -> LabelsOf:
    """Of all questions of a source, not of a sample: a chunk's label is one of its page, too."""
    return LabelsOf(*(sum(bool(labels_given(question, unit, {})) for question in questions) for unit in UNITS))


def default_unit(questions: Sequence[Row]) -> Unit:
    """The unit that most labelled questions have: a few labels of chunks do not leave the others out."""
    return labels_of(questions).unit


def _cases(
    source: str,
    questions: Sequence[Row],
    labels: Sequence[Labels],
    unit: Unit,
    pages: dict[str, str | None],
    twins: Twins,
) -> tuple[pa.Table, list[Note]]:
    there = set(pages) if unit == "chunk" else set(pages.values())
    together = _together(twins)

    def some(rows: slice) -> pa.Table:
        known = [{name: grade for name, grade in of.items() if name in there} for of in labels[rows]]
        return _labelled(source, questions[rows], labels[rows], known, unit, pages, together)

    starts = range(0, max(len(questions), 1), AT_ONCE)
    cases = pa.concat_tables([some(slice(start, start + AT_ONCE)) for start in starts])
    if pc.all(pc.equal(pc.list_flatten(cases["grades"]), 1.0), min_count=0).as_py():
        cases = with_columns(cases, grades=[None] * len(cases))
    stale = sum(name not in there for of in labels for name in of)
    return cases, [{"note": "stale labels", "n": stale}] if stale else []


def _together(twins: Twins) -> dict[str, list[str]]:
    """Id -> all that say the same, itself too."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, first in twins.items():
        groups[first].append(name)
    return {name: groups[first] for name, first in twins.items()}


def _labelled(
    source: str,
    questions: Sequence[Row],
    labels: Sequence[Labels],
    kept: Sequence[Labels],
    unit: Unit,
    pages: dict[str, str | None],
    together: Mapping[str, list[str]],
) -> pa.Table:
    """Cases with all of their labels and those kept, which the corpus has."""
    relevant = [_spread({name: grade for name, grade in of.items() if grade > 0}, together) for of in kept]
    irrelevant = [_spread({name: 0.0 for name, grade in of.items() if grade <= 0}, together) for of in kept]
    states = [_state(*of, unit) for of in zip(labels, relevant, questions, strict=True)]
    ids = [question["question_id"] for question in questions]
    named = [_page(known, unit, pages) for known in relevant]
    users = [question["user_id"] for question in questions]
    return table(
        case_id=[f"{source}:{question_id}" for question_id in ids],
        question_id=ids,
        question=[question["question"] for question in questions],
        status=[status for status, _ in states],
        reason=[reason for _, reason in states],
        group=[page if user is None else f"user {user}" for user, page in zip(users, named, strict=True)],
        topic=[question.get("cluster") for question in questions],
        asked_at=[question.get("created_at") for question in questions],
        page=named,
        labelled=[[f"{name}={grade:g}" for name, grade in of.items()] for of in labels],
        relevant=[list(known) for known in relevant],
        irrelevant=[[name for name in no if name not in yes] for no, yes in zip(irrelevant, relevant, strict=True)],
        grades=[list(known.values()) for known in relevant],
    )


def _spread(labels: Labels, together: Mapping[str, list[str]]) -> Labels:
    """The labels, and those of their twins after each: as relevant as the most relevant of them."""
    if together.keys().isdisjoint(labels):
        return labels
    found: Labels = {}
    for name, grade in labels.items():
        for twin in (name, *together.get(name, ())):
            found[twin] = max(grade, found.get(twin, grade))
    return found


def shown_page(rows: Iterable[Row]) -> Labels:
    """The pages that the bot showed for a question, or for its duplicates."""
    shown = (canonical_url(row["confluence_url"]) for row in rows)
    return {page: 1.0 for page in shown if page is not None}


def page_named(question: Row, pages: dict[str, str | None]) -> str | None:
    """The first page that is named as relevant for a question, whether the corpus has it or not.

    Args:
        question: with its annotation, if it has one.
        pages: of every chunk.
    """
    return next(iter(labels_given(question, "page", pages)), None)


def labels_given(question: Row, unit: Unit, pages: dict[str, str | None]) -> Labels:
    """Id -> grade of what is relevant, of the unit: as annotated, else for pages the one that the bot showed."""
    annotated = _annotated(question, unit, pages)
    return annotated if annotated or unit == "chunk" or is_judged(question) else shown_page([question])


def is_judged(question: Row) -> bool:
    """Return whether somebody has said what is relevant, be it nothing: the page in the log is then not a label."""
    named = graded(question, "relevant_chunk_ids") or graded(question, "relevant_urls")
    return bool(named) or question.get("answerable") is False or is_reviewed(question)


def is_reviewed(question: Row) -> bool:
    """Return whether somebody has looked at a question as a whole, so that a label that it lacks was left out.

    So it is where the annotation has an `origin`. A file that was imported need not have a column for every label:
    of those that have none for what is relevant, only what they have was looked at.
    """
    origin = question.get("origin")
    return bool(origin) and (origin != "imported" or any(question.get(name) is not None for name in RELEVANCE))


def _rejected(question: Row, unit: Unit) -> list[str]:
    """Ids of what the annotation calls not relevant; of a page it says so itself, not of one of its chunks."""
    if unit == "chunk":
        return [chunk for chunk, grade in graded(question, "relevant_chunk_ids").items() if grade <= 0]
    urls = (canonical_url(url) for url, grade in graded(question, "relevant_urls").items() if grade <= 0)
    return [page for page in urls if page is not None]


def _annotated(question: Row, unit: Unit, pages: dict[str, str | None]) -> Labels:
    """Id -> grade, above 0, of what the annotation names as relevant; of the unit."""
    chunks = graded(question, "relevant_chunk_ids")
    if unit == "chunk":
        return {chunk: grade for chunk, grade in chunks.items() if grade > 0}
    named = [(canonical_url(url), grade) for url, grade in graded(question, "relevant_urls").items()]
    named += [(pages.get(chunk, chunk), grade) for chunk, grade in chunks.items()]  # one that is gone stays, as stale
    labels: Labels = {}
    for page, grade in named:  # a page is as relevant as its most relevant chunk
        if page is not None and grade > 0:
            labels[page] = max(grade, labels.get(page, 0))
    return labels


def graded(question: Mapping[str, Any], column: str) -> Labels:
    """The labels in a column of an annotation: a list of ids has grade 1 each, an object gives the grade of each.

    Raises:
        InputError: the column holds something else.
    """
    if not (labels := question.get(column)):
        return {}
    try:
        if isinstance(labels, dict):
            return {name: float(grade) for name, grade in labels.items()}
        if isinstance(labels, list):
            return {str(name): 1.0 for name in labels}
    except (TypeError, ValueError):
        pass
    raise InputError(
        "annotation.{column} of question {question}: expected a list of ids, or an object of id and grade, not "
        "{labels!r}",
        column=column,
        question=question["question_id"],
        labels=labels,
    )


def _state(labels: Labels, relevant: Labels, question: Row, unit: Unit) -> tuple[str, str | None]:
    if relevant:
        return "ok", None
    if gone := [name for name, grade in labels.items() if grade > 0]:
        return "stale_label", Words(
            "the {unit} that is labelled relevant is not in the corpus: {ids}", unit=unit, ids=", ".join(gone)
        )
    if question.get("answerable") is False:
        return "unlabelled", Words(
            "no {unit} is labelled relevant: it is annotated that the corpus has no answer", unit=unit
        )
    if labels:
        return "unlabelled", Words(
            "no {unit} is labelled relevant: what was judged ({n}) is not relevant", unit=unit, n=len(labels)
        )
    return "unlabelled", Words("no {unit} is labelled relevant", unit=unit)


def _page(known: Labels, unit: Unit, pages: dict[str, str | None]) -> str | None:
    """The page of the first that is relevant."""
    name = next(iter(known), None)
    return pages.get(name) if name is not None and unit == "chunk" else name
