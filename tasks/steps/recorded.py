"""Recorded answers as the system under test: those in the source, or of an earlier evaluation; none is generated."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.loading.recorded import Record, passage
from yarus.db.source_rows import Corpus, Row
from yarus.db.urls import canonical_url
from yarus.db.words import Words
from yarus.tasks.cases.labels import is_judged, is_reviewed, pages_of
from yarus.tasks.cases.outcomes import Done, declined, fail, with_outcomes
from yarus.tasks.cases.table import COLUMNS, Case, rows_of, table, values_of, with_columns
from yarus.tasks.cases.text import BETWEEN, fit, starts
from yarus.tasks.cases.vocabulary import Note, Status, Unit
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.run import Run

ANSWERED: tuple[str, ...] = ("answer", "answers", "logprobs", "context", "truncated", "retrieved", "path")
ANSWERED += ("passage_starts", "latency_ms", "first_token_ms", "retrieval_latency_ms", "history", "trace_id", "span_id")
ANSWERED += ("sut_tokens_in", "sut_tokens_out", "sut_cost_usd")
"""What the system under test has said, done and taken: the columns that are taken over."""
RECORDED: Final = "recorded"
"""The system under test whose answers are in the source."""
SYSTEM: tuple[str, ...] = ("sut", "unit", "k", "retriever", "embedder", "embedder_identity", "vectors", "generator")
SYSTEM += ("context_tokens", "takes_history", "reranker", "reranker_identity", "rerank_depth", "generator_prompt")
"""What the answers were made with."""


def stored(run: Run) -> bool:
    """Whether the answers of an evaluation were there before it."""
    return bool(run.config.answers_of) or run.config.sut == RECORDED


def copy_answers(run: Run, evaluation_id: str) -> EvaluationConfig:
    """Copies the answers of an evaluation into the working folder of this one.

    Args:
        run: the evaluation that scores them.
        evaluation_id: the one that got them, or the beginning or end of its id.

    Returns:
        The configuration that they were made with, which is part of this evaluation's too.

    Raises:
        InputError: no such evaluation, of another tier or source, not finished, or it asked the questions otherwise.
        ResultsUnavailable: its file cannot be read.
    """
    row = journal.find(database(), evaluation_id)
    place = f"--{'anchor' if getattr(run.parameters, 'anchor', None) else 'reuse-answers'} {evaluation_id}"
    for what, theirs, ours in (
        (Words("tier"), row["tier"], run.tier),
        (Words("source"), row["source"], run.parameters.source),
    ):
        if theirs != ours:
            raise InputError(
                "{place}: its {what} is {theirs!r}, not {ours!r}; name an evaluation of {ours!r}",
                place=place,
                what=what,
                theirs=theirs,
                ours=ours,
            )
    if row["parquet"] is None:
        raise InputError(
            "{place}: evaluation {id} is {state} and has no file; finish it: --resume",
            place=place,
            id=row["id"],
            state=row["state"],
        )
    made_with = EvaluationConfig.of(row)
    for option, what in (("perturbation", Words("questions")), ("context_perturbation", Words("contexts"))):
        if value := getattr(made_with, option):
            raise InputError(
                "{place}: evaluation {id} was run with --{option} {value}: its answers are to changed {what}; name "
                "an evaluation that asked the questions as they are",
                place=place,
                id=row["id"],
                option=option.replace("_", "-"),
                value=value,
                what=what,
            )
    known = result_files.read(row["parquet"])
    kept = [name for name in ("case_id", "question", "status", "reason", *ANSWERED) if name in known.column_names]
    pq.write_table(known.select(kept), run.work / "answers.parquet")
    journal.describe(database(), run.id, sut_label=row["sut_label"])
    first = made_with.answers_of or row["id"]
    sut = RECORDED if made_with.sut == RECORDED else f"answers of {first}"  # which are judged as such again
    return made_with.only(SYSTEM) | EvaluationConfig(answers_of=first, sut=sut)


def reuse_answers(run: Run, cases: pa.Table) -> pa.Table:
    """Adds what the system under test had answered; a question that it was not asked then, or that was another one
    then, is `not_applicable`.
    """
    given = result_files.parquet(run.work / "answers.parquet")
    now = dict(rows_of(cases, "case_id", "question"))
    known = {row["case_id"]: row for row in given.to_pylist() if row["case_id"] in now}
    changed = {case_id for case_id, row in known.items() if row["question"] != now[case_id]}
    rows = [{"changed": True} if case_id in changed else known.get(case_id, {}) for case_id in now]
    refusals = configured(run).refusals
    cases = with_outcomes(_not_asked(run, cases, rows), [_done(row, refusals) for row in rows])
    taken = {name: [row.get(name) for row in rows] for name in ANSWERED if name in given.column_names}
    nothing = [None] * len(cases)  # is spent on what was paid for then
    return with_columns(
        cases,
        **taken,
        tokens_in=nothing,
        tokens_out=nothing,
        cost_usd=nothing,
    )


def _done(row: Case, refusals: list[str]) -> Done:
    if row.get("answer") is not None:
        why = declined(row["answer"], refusals, row.get("path"))
        return Done("refused", why) if why else Done("answered")
    return Done("failed", row["reason"]) if row.get("status") == "sut_error" and not row.get("changed") else Done()


def _not_asked(run: Run, cases: pa.Table, rows: list[Case]) -> pa.Table:
    """The cases, with those in their status that could be measured and have no answer, since none was asked for."""
    states = enumerate(zip(values_of(cases, "status"), rows, strict=True))
    unasked = (
        (number, row)
        for number, (status, row) in states
        if status == "ok" and row.get("answer") is None and row.get("status") != "sut_error"
    )
    return fail(cases, ((number, *_why_none(run, row)) for number, row in unasked))


def _why_none(run: Run, row: Case) -> tuple[Status, str | None]:
    if row.get("status") == "skipped_budget" or run.config.answers_of is None:
        return row["status"], row["reason"]
    if row.get("changed"):
        return "not_applicable", Words(
            "the question has changed since evaluation {evaluation} asked it", evaluation=run.config.answers_of
        )
    return "not_applicable", Words(
        "evaluation {evaluation} did not ask this question", evaluation=run.config.answers_of
    )


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
    before = rows_of(cases, "context", "truncated", "passage_starts")
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
        **{name: values_of(cases, name) for name in ("case_id", "question")},
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


def _contexts(question: Row) -> list[Record] | None:
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


def _context(passages: list[Record] | None, texts: Mapping[str, str], tokens: int | None) -> Context | None:
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
