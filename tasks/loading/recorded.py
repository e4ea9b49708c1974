"""Answers that are recorded in the source, as the system under test: what was asked, found and said then."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from yarus.db.loading.recorded import passage
from yarus.db.source_rows import Corpus
from yarus.db.urls import canonical_url
from yarus.db.words import Words
from yarus.tasks.cases.labels import Row, is_judged, is_reviewed, pages_of
from yarus.tasks.cases.table import COLUMNS, table, with_columns
from yarus.tasks.cases.text import BETWEEN, fit, starts
from yarus.tasks.cases.vocabulary import Note, Unit
from yarus.tasks.evaluation.run import Run

Context = tuple[str, bool, list[int]]
"""The text, whether it was cut, and where its passages begin."""


def without_log_labels(questions: Sequence[Row]) -> list[Row]:
    """The questions with labels that people gave and no others: an answer is no reference for itself, and the page
    that it came from none. Where people have said what is relevant, that page is what was found.
    """
    return [_without_log_labels(question) for question in questions]


def _without_log_labels(question: Row) -> Row:
    dropped = {"score": is_reviewed(question), "confluence_url": is_judged(question)}
    return question | {name: None for name, kept in dropped.items() if not kept}


def contexts_of(questions: Sequence[Row], corpus: Corpus, tokens: int | None) -> list[Context | None]:
    """What each recorded answer was given; None where that is not recorded, or one of its passages has no text.

    Args:
        questions: rows of the log.
        corpus: of which the record may name chunks without their text.
        tokens: longest context; None for no limit.
    """
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    return [_context(_contexts(question), texts, tokens) for question in questions]


def has_context(question: Row, chunks: Collection[str]) -> bool:
    """Return whether it is recorded what an answer was given, with the text of every passage.

    Args:
        question: a row of the log, or its outline.
        chunks: ids of the corpus, of which the record may name some without their text.
    """
    passages = _contexts(question)
    return bool(passages) and all(one.get("text") is not None or one["id"] in chunks for one in passages or ())


def is_answered(question: Row) -> bool:
    """Return whether an answer is recorded that can be scored, or that the system failed to give one."""
    return question["answer"] is not None or bool(_recorded(question).get("error"))


def traced(questions: Sequence[Row]) -> dict[str, list[Any]]:
    """Where each recorded answer stands in a store of traces; no columns where none is in one."""
    records = [_recorded(question) for question in questions]
    found = {name: [str(one[name]) if one.get(name) else None for one in records] for name in ("trace_id", "span_id")}
    return found if any(map(any, found.values())) else {}


def on_recorded_contexts(cases: pa.Table, contexts: Sequence[Context | None]) -> pa.Table:
    """Tier 2's cases with the recorded contexts in the place of the labelled chunks; all of them can be measured."""
    before = zip(*(cases[name].to_pylist() for name in ("context", "truncated", "passage_starts")), strict=True)
    now = [old if known is None else known for old, known in zip(before, contexts, strict=True)]
    return with_columns(
        cases.drop_columns(["context"]),  # the texts of labels are shared, by another type
        status=["ok"] * len(cases),
        reason=[None] * len(cases),
        context=[context for context, _, _ in now],
        truncated=[cut for _, cut, _ in now],
        passage_starts=[begins for _, _, begins in now],
    )


def keep_recorded(run: Run, cases: pa.Table, questions: Sequence[Row], corpus: Corpus, unit: Unit | None) -> None:
    """Keeps what was answered beside the cases, as answers that are scored again.

    Args:
        run: the evaluation.
        cases: as they are loaded; their context, where they have one, is what the answers are judged against.
        questions: of the cases, in their order.
        corpus: of which the record may name chunks without their text.
        unit: of what was retrieved; None where that is not measured.
    """
    records = [_recorded(question) for question in questions]
    states = [_state(question, record) for question, record in zip(questions, records, strict=True)]
    answers = table(
        **{name: cases[name].to_pylist() for name in ("case_id", "question")},
        status=[status for status, _ in states],
        reason=[reason for _, reason in states],
        answer=[
            None if record.get("error") else question["answer"]
            for question, record in zip(questions, records, strict=True)
        ],
        answers=[None] * len(questions),
        **{
            f"sut_{name}": [_number(record, name) for record in records]
            for name in ("tokens_in", "tokens_out", "cost_usd")
        },
        **traced(questions),
        latency_ms=[_number(record, "latency_ms") for record in records],
        **_told(records),
    )
    if unit is None:
        answers = with_columns(answers, **{n: cases[n].to_pylist() for n in ("context", "truncated", "passage_starts")})
    else:
        found = [known or (None, None, None) for known in contexts_of(questions, corpus, None)]
        corpus_pages = pages_of(corpus)
        answers = with_columns(
            answers,
            retrieved=[_retrieved(question, corpus_pages, unit) for question in questions],
            context=[context or None for context, _, _ in found],
            passage_starts=[begins for _, _, begins in found],
        )
    pq.write_table(answers, run.work / "answers.parquet")


def recorded_notes(questions: Sequence[Row], contexts: Sequence[Context | None]) -> list[Note]:
    """What of the answers is not recorded."""
    without = sum(known is None for known, question in zip(contexts, questions, strict=True) if question["answer"])
    return [{"note": "contexts not recorded", "n": without}] if without else []


def _state(question: Row, record: Mapping[str, Any]) -> tuple[str, str | None]:
    said = question["answer"]
    if record.get("error"):  # what had come until then is no answer
        return "sut_error", str(record["error"]) + (f"; until then it had said {said[:200]!r}" if said else "")
    if said is not None:
        return "ok", None
    return "not_applicable", Words("no answer is recorded")


def _recorded(question: Row) -> Mapping[str, Any]:
    """The record of an answer; of a table of somebody else's what can be one."""
    found = question.get("recorded")
    return found if isinstance(found, dict) else {}


def _contexts(question: Row) -> list[dict[str, Any]] | None:
    found = _recorded(question).get("contexts")
    return [one for one in map(passage, found) if one is not None] if isinstance(found, list) else None


def _told(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """What else of the answers the cases have columns for."""
    known: dict[str, list[Any]] = {
        "first_token_ms": [_number(record, "first_token_ms") for record in records],
        "history": [_history(record) for record in records],
    }
    return {name: values for name, values in known.items() if name in COLUMNS}


def _history(record: Mapping[str, Any]) -> list[dict[str, str]] | None:
    found = record.get("history")
    messages = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [{name: str(one.get(name)) for name in ("role", "content")} for one in messages] or None


def _number(record: Mapping[str, Any], name: str) -> float | None:
    value = record.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _context(passages: list[dict[str, Any]] | None, texts: Mapping[str, str], tokens: int | None) -> Context | None:
    if not passages:
        return None
    found = [one["text"] if one.get("text") is not None else texts.get(one.get("id", "")) for one in passages]
    known = [text for text in found if text is not None]
    if len(known) < len(found):
        return None
    context, cut = (BETWEEN.join(known), False) if tokens is None else fit(known, tokens)
    return context, cut, starts(known, context)


def _retrieved(question: Row, pages: Mapping[str, str | None], unit: Unit) -> list[str] | None:
    """What was retrieved for an answer, best first; None where that is not recorded.

    A passage of the corpus is of the page that it has there; where that is none, it is no page that could be found.
    """
    passages, by_chunk = _contexts(question), unit == "chunk"
    if passages is None:
        named = [] if by_chunk else _recorded(question).get("urls") or [question["confluence_url"]]
        shown = [page for page in map(canonical_url, named) if page is not None]
        return list(dict.fromkeys(shown)) or None
    if by_chunk:
        return list(dict.fromkeys(one["id"] for one in passages))
    found = (canonical_url(one.get("url")) or pages.get(one["id"], one["id"]) for one in passages)
    return list(dict.fromkeys(page for page in found if page is not None))
