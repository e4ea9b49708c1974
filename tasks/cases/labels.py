"""Labels of questions, from annotations or else from the log, and the cases made from them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow
from yarus.db.urls import canonical_url
from yarus.tasks.cases.table import make_cases, set_columns
from yarus.tasks.cases.vocabulary import Duplicates, Note, Unit

Grades = dict[str, float]
GOOD, BAD = 5, 1
CASES_PER_BLOCK = 5_000
"""Number of cases made at a time, because Python objects take several times the memory of a table."""
NO_DUPLICATES: Duplicates = {}
UNITS: tuple[Unit, Unit] = ("page", "chunk")
RELEVANCE_COLUMNS = ("relevant_chunk_ids", "relevant_urls", "answerable")
"""Labels that state what is relevant, or that nothing is."""


def annotated_cases(
    source: str, questions: Sequence[QuestionRow], corpus: Corpus, unit: Unit, twins: Duplicates = NO_DUPLICATES
) -> tuple[pa.Table, list[Note]]:
    """Return tier 1's cases: labels from annotations, or else the page that the bot showed.

    Args:
        source: name of the source, for the case ids.
        questions: rows of `question_answer` with their annotation, if they have one.
        corpus: the chunks, to detect labels that match none.
        unit: `chunk` or `page`.
        twins: duplicates; a label of one is a label of all.

    Returns:
        The table of cases, and a note for every fallback used and every label left out.
    """
    pages = page_by_chunk(corpus)
    labels = [relevance_grades(question, unit, pages) for question in questions]
    fallbacks = sum(
        bool(grades) and not _annotated_labels(question, unit, pages)
        for grades, question in zip(labels, questions, strict=True)
    )
    notes: list[Note] = [{"note": "page from the log", "n": fallbacks}] if fallbacks else []
    rejected = [dict.fromkeys(_rejected_ids(question, unit), 0.0) for question in questions]
    all_labels = [irrelevant | relevant for irrelevant, relevant in zip(rejected, labels, strict=True)]
    cases, stale = _make_cases(source, questions, all_labels, unit, pages, twins)
    return cases, notes + stale


def logged_cases(
    source: str, groups: Sequence[list[QuestionRow]], corpus: Corpus, twins: Duplicates = NO_DUPLICATES
) -> tuple[pa.Table, list[Note]]:
    """Return the real users' cases: the page that the bot showed is the label; duplicate questions are one case.

    Args:
        source: name of the source, for the case ids.
        groups: duplicate questions, as `group_duplicate_questions` returns them; the pages of all count.
        corpus: the chunks, to detect labels that match none.
        twins: duplicate pages; a label of one is a label of all.

    Returns:
        The table of cases with their stratum, and notes.
    """
    first_questions = [rows[0] for rows in groups]
    cases, notes = _make_cases(
        source, first_questions, [shown_pages(rows) for rows in groups], "page", page_by_chunk(corpus), twins
    )
    if (n_repeated := sum(map(len, groups)) - len(groups)) > 0:
        notes.append({"note": "duplicates merged", "n": n_repeated})
    return set_columns(cases, stratum=[stratum_of_scores(row["score"] for row in rows) for rows in groups]), notes


def stratum_of_scores(scores: Iterable[int | None]) -> str:
    """Return the users' verdict on the answer: `confirmed` (5 only), `contradicted` (1 only), else `agreement`.

    Scores 2 to 4 are unclear and count as missing; 5 and 1 for the same question contradict each other.
    """
    clear_scores = {score for score in scores if score in (GOOD, BAD)}
    return "agreement" if len(clear_scores) != 1 else "confirmed" if clear_scores == {GOOD} else "contradicted"


def page_by_chunk(corpus: Corpus) -> dict[str, str | None]:
    """Return the page of every chunk."""
    return dict(zip(corpus.ids, map(canonical_url, corpus.urls), strict=True))


class LabelCounts(NamedTuple):
    """How many questions of a source have any label, and how many have one of chunks."""

    labelled: int
    chunks: int

    @property
    def unit(self) -> Unit:
        """Return the default unit: chunks if at least half of the labelled questions have such labels, else pages."""
        return "chunk" if self.chunks and 2 * self.chunks >= self.labelled else "page"

    def note(self, unit: Unit) -> list[Note]:
        """Return notes on labels that an evaluation by this unit leaves out or converts."""
        if unit == "chunk" and self.labelled > self.chunks:
            return [{"note": "pages only", "n": self.labelled - self.chunks, "of": self.labelled}]
        as_pages = unit == "page" and self.chunks
        return [{"note": "chunks as pages", "n": self.chunks, "of": self.labelled}] if as_pages else []


def count_labels(questions: Sequence[QuestionRow]) -> LabelCounts:
    """Count the labels of all questions of a source, not of a sample; a chunk's label also counts for its page."""
    return LabelCounts(*(sum(bool(relevance_grades(question, unit, {})) for question in questions) for unit in UNITS))


def default_unit(questions: Sequence[QuestionRow]) -> Unit:
    """Return the unit of most labelled questions, so that a few chunk labels do not exclude the others."""
    return count_labels(questions).unit


def _make_cases(
    source: str,
    questions: Sequence[QuestionRow],
    labels: Sequence[Grades],
    unit: Unit,
    pages: dict[str, str | None],
    twins: Duplicates,
) -> tuple[pa.Table, list[Note]]:
    corpus_names = set(pages) if unit == "chunk" else set(pages.values())
    groups = _group_duplicates(twins)

    def make_block(rows: slice) -> pa.Table:
        matched = [{name: grade for name, grade in grades.items() if name in corpus_names} for grades in labels[rows]]
        return _make_labelled(source, questions[rows], labels[rows], matched, unit, pages, groups)

    starts = range(0, max(len(questions), 1), CASES_PER_BLOCK)
    cases = pa.concat_tables([make_block(slice(start, start + CASES_PER_BLOCK)) for start in starts])
    if pc.all(pc.equal(pc.list_flatten(cases["grades"]), 1.0), min_count=0).as_py():
        cases = set_columns(cases, grades=[None] * len(cases))
    stale = sum(name not in corpus_names for grades in labels for name in grades)
    return cases, [{"note": "stale labels", "n": stale}] if stale else []


def _group_duplicates(twins: Duplicates) -> dict[str, list[str]]:
    """Return id -> all its duplicates, itself included."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, first in twins.items():
        groups[first].append(name)
    return {name: groups[first] for name, first in twins.items()}


def _make_labelled(
    source: str,
    questions: Sequence[QuestionRow],
    labels: Sequence[Grades],
    matched: Sequence[Grades],
    unit: Unit,
    pages: dict[str, str | None],
    groups: Mapping[str, list[str]],
) -> pa.Table:
    """Return cases with all their labels, and with the matched ones, which the corpus has."""
    relevant = [_spread({name: grade for name, grade in grades.items() if grade > 0}, groups) for grades in matched]
    irrelevant = [_spread({name: 0.0 for name, grade in grades.items() if grade <= 0}, groups) for grades in matched]
    states = [_label_state(*arguments, unit) for arguments in zip(labels, relevant, questions, strict=True)]
    ids = [question["question_id"] for question in questions]
    first_pages = [_first_page(grades, unit, pages) for grades in relevant]
    users = [question["user_id"] for question in questions]
    return make_cases(
        case_id=[f"{source}:{question_id}" for question_id in ids],
        question_id=ids,
        question=[question["question"] for question in questions],
        status=[status for status, _ in states],
        reason=[reason for _, reason in states],
        group=[page if user is None else f"user {user}" for user, page in zip(users, first_pages, strict=True)],
        topic=[question.get("cluster") for question in questions],
        asked_at=[question.get("created_at") for question in questions],
        page=first_pages,
        labelled=[[f"{name}={grade:g}" for name, grade in grades.items()] for grades in labels],
        relevant=[list(grades) for grades in relevant],
        irrelevant=[
            [name for name in rejected if name not in grades]
            for rejected, grades in zip(irrelevant, relevant, strict=True)
        ],
        grades=[list(grades.values()) for grades in relevant],
    )


def _spread(labels: Grades, groups: Mapping[str, list[str]]) -> Grades:
    """Return the labels followed by those of duplicates, which get the highest grade among them."""
    if groups.keys().isdisjoint(labels):
        return labels
    spread: Grades = {}
    for name, grade in labels.items():
        for duplicate in (name, *groups.get(name, ())):
            spread[duplicate] = max(grade, spread.get(duplicate, grade))
    return spread


def shown_pages(rows: Iterable[QuestionRow]) -> Grades:
    """Return the pages that the bot showed for a question or its duplicates."""
    pages = (canonical_url(row["confluence_url"]) for row in rows)
    return {page: 1.0 for page in pages if page is not None}


def labelled_page(question: QuestionRow, pages: dict[str, str | None]) -> str | None:
    """Return the first page labelled relevant for a question, whether or not the corpus has it.

    Args:
        question: row with its annotation, if it has one.
        pages: page of every chunk.
    """
    return next(iter(relevance_grades(question, "page", pages)), None)


def relevance_grades(question: QuestionRow, unit: Unit, pages: dict[str, str | None]) -> Grades:
    """Return id -> grade of the relevant results: as annotated, or else, for pages, the page that the bot showed."""
    annotated = _annotated_labels(question, unit, pages)
    return annotated if annotated or unit == "chunk" or is_judged(question) else shown_pages([question])


def is_judged(question: QuestionRow) -> bool:
    """Return whether an annotator decided what is relevant, even if nothing is; then the log's page is not a label."""
    labelled = parse_grades(question, "relevant_chunk_ids") or parse_grades(question, "relevant_urls")
    return bool(labelled) or question.get("answerable") is False or is_reviewed(question)


def is_reviewed(question: QuestionRow) -> bool:
    """Return whether an annotator reviewed the whole question, so that a missing label was left out on purpose.

    That is so if the annotation has an `origin`. An imported file need not have a column for every label; without a
    column of relevance, only the labels that it has were reviewed.
    """
    origin = question.get("origin")
    return bool(origin) and (origin != "imported" or any(question.get(name) is not None for name in RELEVANCE_COLUMNS))


def _rejected_ids(question: QuestionRow, unit: Unit) -> list[str]:
    """Return the ids labelled not relevant; a page must be labelled itself, not by one of its chunks."""
    if unit == "chunk":
        return [chunk for chunk, grade in parse_grades(question, "relevant_chunk_ids").items() if grade <= 0]
    urls = (canonical_url(url) for url, grade in parse_grades(question, "relevant_urls").items() if grade <= 0)
    return [page for page in urls if page is not None]


def _annotated_labels(question: QuestionRow, unit: Unit, pages: dict[str, str | None]) -> Grades:
    """Return id -> grade, above 0, of the results annotated as relevant, in the given unit."""
    chunks = parse_grades(question, "relevant_chunk_ids")
    if unit == "chunk":
        return {chunk: grade for chunk, grade in chunks.items() if grade > 0}
    page_grades = [(canonical_url(url), grade) for url, grade in parse_grades(question, "relevant_urls").items()]
    # A missing chunk stays, as a stale label.
    page_grades += [(pages.get(chunk, chunk), grade) for chunk, grade in chunks.items()]
    labels: Grades = {}
    for page, grade in page_grades:  # a page is as relevant as its most relevant chunk
        if page is not None and grade > 0:
            labels[page] = max(grade, labels.get(page, 0))
    return labels


def parse_grades(question: Mapping[str, Any], column: str) -> Grades:
    """Parse the labels in a column of an annotation: grade 1 for each id of a list, or the grades of an object.

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


def _label_state(labels: Grades, relevant: Grades, question: QuestionRow, unit: Unit) -> tuple[str, str | None]:
    if relevant:
        return "ok", None
    if missing := [name for name, grade in labels.items() if grade > 0]:
        return "stale_label", Words(
            "the {unit} that is labelled relevant is not in the corpus: {ids}", unit=unit, ids=", ".join(missing)
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


def _first_page(labels: Grades, unit: Unit, pages: dict[str, str | None]) -> str | None:
    """Return the page of the first relevant result."""
    name = next(iter(labels), None)
    return pages.get(name) if name is not None and unit == "chunk" else name
