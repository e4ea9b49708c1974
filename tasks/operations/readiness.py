"""What can be measured with what a source has: tier by tier, for how many questions, and what is missing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Text, cast, func, inspect, select

from db import tables
from db.source_rows import RECORDED, has_annotations
from db.sources import Source, snapshot
from db.urls import canonical_url
from tasks.cases.labels import BAD, GOOD, graded

ORDER = ("tier1", "real_users", "tier2", "tier3", "ux", "judge", "judge_pipeline", "tier0")
"""What a beginner would ask first."""

Missing = Literal["questions", "chunks", "pages", "pages in the corpus", "references", "answers", "scores", "times"]


@dataclass(frozen=True, slots=True)
class Ready:
    """Whether a tier can be measured."""

    tier: str
    questions: int
    """That it can measure, before anything fails; of tier 0 passages."""
    missing: Missing | None
    """What to add where it can measure none, as a word of tasks/texts; null where it can."""
    command: str | None
    values: dict[str, str] = field(default_factory=dict)
    """Of that word."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a source has, counted."""

    questions: int = 0
    chunks: int = 0
    answers: int = 0
    timed: int = 0
    found: int = 0
    """Questions whose page, the bot's or an annotator's, is in the corpus; or whose chunks are labelled."""
    shown: int = 0
    """Those whose page in the log is in the corpus."""
    named: int = 0
    """Those that name a page at all."""
    answered: int = 0
    """Answers whose page is in the corpus, or what they were made from is recorded."""
    rated: int = 0
    """Of these, rated 5 or 1."""
    references: int = 0
    """Answers rated 5, and references of annotators."""
    stray: str | None = None
    """A page that the log names and the corpus has not."""


def holdings(source: Source) -> Holdings:
    """Counts what a source has; its texts stay where they are.

    Raises:
        DatabaseUnavailable: it cannot be reached.
    """
    with snapshot(source) as connection:
        question, chunk = source.tables["question_answer"].c, source.tables["chunk"].c
        url = cast(question.confluence_url, Text)
        said, good, bad = question.answer.is_not(None), question.score == GOOD, question.score == BAD
        rows = connection.execute(
            select(
                url,
                func.count(question.question),
                func.count().filter(said),
                func.count().filter(said & (good | bad)),
                func.count().filter(said & good),
                func.count(question.created_at),
            ).group_by(url)
        ).all()
        chunks = connection.scalar(select(func.count(chunk.text))) or 0
        pages = {canonical_url(one) for one in connection.scalars(select(cast(chunk.confluence_url, Text)).distinct())}
        annotated = _annotated(connection, source, pages)
        traced, traced_rated = _traced(connection, source, said, said & (good | bad))
    named = [(canonical_url(row[0]), row) for row in rows]
    there = [row for page, row in named if page is not None and page in pages]
    stray = next((row[0] for page, row in named if page is not None and page not in pages), None)
    shown = sum(row[1] for row in there)
    return Holdings(
        questions=sum(row[1] for row in rows),
        chunks=chunks,
        answers=sum(row[2] for row in rows),
        timed=sum(row[5] for row in rows),
        found=max(shown, annotated["found"]),
        shown=shown,
        named=sum(row[1] for page, row in named if page is not None),
        answered=max(traced, sum(row[2] for row in there)),
        rated=max(traced_rated, sum(row[3] for row in there)),
        references=max(sum(row[4] for row in rows), annotated["references"]),
        stray=stray,
    )


def _traced(connection: Connection, source: Source, *wanted: ColumnElement[bool]) -> Sequence[int]:
    """How many rows of each kind have the passages recorded that they were answered from."""
    question = source.tables["question_answer"]
    columns = {one["name"] for one in inspect(connection).get_columns(question.name, schema=question.schema)}
    if source.kind != "loaded" or RECORDED not in columns:
        return [0 for _ in wanted]
    passages = question.c.recorded["contexts"].is_not(None)
    return connection.execute(select(*(func.count().filter(one & passages) for one in wanted))).one()


def _annotated(connection: Connection, source: Source, pages: set[str | None]) -> Counter[str]:
    if not has_annotations(connection, source):
        return Counter()
    annotation = source.tables[tables.ANNOTATION].c
    columns = select(
        annotation.question_id, annotation.ground_truth_answer, annotation.relevant_chunk_ids, annotation.relevant_urls
    )
    counted: Counter[str] = Counter()
    for row in connection.execute(columns):
        label: dict[str, Any] = row._asdict()
        counted["references"] += bool(label["ground_truth_answer"])
        urls = {canonical_url(url) for url in graded(label, "relevant_urls")}
        counted["found"] += bool(graded(label, "relevant_chunk_ids") or urls & pages)
    return counted


def readiness(source: Source) -> list[Ready]:
    """What each tier can measure, the first to run first.

    Raises:
        DatabaseUnavailable: the source cannot be reached.
    """
    has = holdings(source)
    return [_ready(tier, has, source.name) for tier in ORDER]


def _ready(tier: str, has: Holdings, name: str) -> Ready:
    measured = {
        "tier0": has.chunks,
        "tier1": has.found,
        "real_users": has.shown,
        "tier2": has.found,
        "tier3": has.references,
        "judge": has.answered,
        "judge_pipeline": has.rated,
        "ux": has.timed,
    }[tier]
    options = ""
    if not has.chunks and tier != "ux":
        measured = 0
    if tier == "tier3" and not measured and has.answers:  # what was answered is judged without a passage, too
        measured, options = has.answers, " --sut recorded"
    if measured:
        return Ready(tier, measured, None, f"yarus run {tier} --source {name}{options}")
    return Ready(tier, 0, _missing(tier, has), None, {"source": name, "url": has.stray or ""})


MISSING: dict[str, Missing] = {"tier3": "references", "judge_pipeline": "scores", "ux": "times"}


def _missing(tier: str, has: Holdings) -> Missing:
    if not has.questions and tier != "tier0":
        return "questions"
    if not has.chunks and tier != "ux":
        return "chunks"
    if tier in ("tier1", "real_users", "tier2"):
        return "pages in the corpus" if has.named else "pages"
    if tier in ("judge", "judge_pipeline") and has.answers and not has.answered:
        return "pages in the corpus" if has.named else "pages"
    if tier in ("judge", "judge_pipeline") and not has.answers:
        return "answers"
    return MISSING[tier]
