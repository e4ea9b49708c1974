"""Recorded answers as the system under test: from the source or an earlier evaluation, without generation."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.loading.recorded import Record, parse_passage
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import is_judged, is_reviewed, page_by_chunk
from yarus.tasks.cases.outcomes import CaseOutcome, add_outcomes, refusal_reason, set_failures
from yarus.tasks.cases.table import CASE_COLUMNS, Case, column_values, iterate_rows, make_cases, set_columns
from yarus.tasks.cases.text import CONTEXT_SEPARATOR, join_within_limit, text_offsets
from yarus.tasks.cases.vocabulary import Note, Status, Unit
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.run import EvaluationRun

ANSWER_COLUMNS: tuple[str, ...] = ("answer", "answers", "logprobs", "context", "truncated", "retrieved", "path")
ANSWER_COLUMNS += ("passage_starts", "latency_ms", "first_token_ms", "retrieval_latency_ms", "history", "trace_id")
ANSWER_COLUMNS += ("span_id", "sut_tokens_in", "sut_tokens_out", "sut_cost_usd")
"""Columns of the system's answers, actions and costs that are taken over."""
RECORDED_SYSTEM: Final = "recorded"
"""The system under test whose answers are in the source."""
SYSTEM_PARAMETERS: tuple[str, ...] = ("sut", "unit", "k", "retriever", "embedder", "embedder_identity", "vectors")
SYSTEM_PARAMETERS += ("generator", "context_tokens", "takes_history", "reranker", "reranker_identity", "rerank_depth")
SYSTEM_PARAMETERS += ("generator_prompt",)
"""Keys of the configuration that the answers were made with."""


def has_stored_answers(run: EvaluationRun) -> bool:
    """Return whether the answers of an evaluation existed before it."""
    return bool(run.config.answers_of) or run.config.sut == RECORDED_SYSTEM


def copy_answers(run: EvaluationRun, evaluation_id: str) -> EvaluationConfig:
    """Copy the answers of an evaluation into the working folder of this one.

    Args:
        run: the evaluation that scores them.
        evaluation_id: of the one that got them, or the beginning or end of its id.

    Returns:
        The configuration that they were made with, which becomes part of this evaluation's.

    Raises:
        InputError: no such evaluation, of another tier or source, not finished, or with changed questions or contexts.
        ResultsUnavailable: its file cannot be read.
    """
    row = journal.find_evaluation(database(), evaluation_id)
    source_option = f"--{'anchor' if getattr(run.parameters, 'anchor', None) else 'reuse-answers'} {evaluation_id}"
    for subject, other_value, own_value in (
        (Words("tier"), row["tier"], run.tier),
        (Words("source"), row["source"], run.parameters.source),
    ):
        if other_value != own_value:
            raise InputError(
                "{place}: its {what} is {theirs!r}, not {ours!r}; name an evaluation of {ours!r}",
                place=source_option,
                what=subject,
                theirs=other_value,
                ours=own_value,
            )
    if row["parquet"] is None:
        raise InputError(
            "{place}: evaluation {id} is {state} and has no file; finish it: --resume",
            place=source_option,
            id=row["id"],
            state=row["state"],
        )
    reused_config = EvaluationConfig.of(row)
    for option, subject in (("perturbation", Words("questions")), ("context_perturbation", Words("contexts"))):
        if value := getattr(reused_config, option):
            raise InputError(
                "{place}: evaluation {id} was run with --{option} {value}: its answers are to changed {what}; name "
                "an evaluation that asked the questions as they are",
                place=source_option,
                id=row["id"],
                option=option.replace("_", "-"),
                value=value,
                what=subject,
            )
    cases = result_files.read_results(row["parquet"])
    columns = [
        name for name in ("case_id", "question", "status", "reason", *ANSWER_COLUMNS) if name in cases.column_names
    ]
    pq.write_table(cases.select(columns), run.work / "answers.parquet")
    journal.update_evaluation(database(), run.id, sut_label=row["sut_label"])
    first_id = reused_config.answers_of or row["id"]
    # Recorded answers are judged as recorded ones again.
    sut = RECORDED_SYSTEM if reused_config.sut == RECORDED_SYSTEM else f"answers of {first_id}"
    return reused_config.only(SYSTEM_PARAMETERS) | EvaluationConfig(answers_of=first_id, sut=sut)


def reuse_answers(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the stored answers of the system under test.

    A question that it was not asked then, or that has changed since, is `not_applicable`.
    """
    stored_answers = result_files.read_parquet(run.work / "answers.parquet")
    questions = dict(iterate_rows(cases, "case_id", "question"))
    answers_by_case = {row["case_id"]: row for row in stored_answers.to_pylist() if row["case_id"] in questions}
    changed_ids = {case_id for case_id, row in answers_by_case.items() if row["question"] != questions[case_id]}
    rows = [{"changed": True} if case_id in changed_ids else answers_by_case.get(case_id, {}) for case_id in questions]
    refusals = effective_settings(run).refusal_phrases
    cases = add_outcomes(_mark_unanswered(run, cases, rows), [_reused_outcome(row, refusals) for row in rows])
    columns = {name: [row.get(name) for row in rows] for name in ANSWER_COLUMNS if name in stored_answers.column_names}
    nothing = [None] * len(cases)  # stored answers cost nothing now
    return set_columns(cases, **columns, tokens_in=nothing, tokens_out=nothing, cost_usd=nothing)


def _reused_outcome(row: Case, refusals: list[str]) -> CaseOutcome:
    if row.get("answer") is not None:
        why = refusal_reason(row["answer"], refusals, row.get("path"))
        return CaseOutcome("refused", why) if why else CaseOutcome("answered")
    return (
        CaseOutcome("failed", row["reason"])
        if row.get("status") == "sut_error" and not row.get("changed")
        else CaseOutcome()
    )


def _mark_unanswered(run: EvaluationRun, cases: pa.Table, rows: list[Case]) -> pa.Table:
    """Give measurable cases without an answer their status, since no answer is requested."""
    states = enumerate(zip(column_values(cases, "status"), rows, strict=True))
    unasked = (
        (number, row)
        for number, (status, row) in states
        if status == "ok" and row.get("answer") is None and row.get("status") != "sut_error"
    )
    return set_failures(cases, ((number, *_explain_missing(run, row)) for number, row in unasked))


def _explain_missing(run: EvaluationRun, row: Case) -> tuple[Status, str | None]:
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
"""Text, whether it was cut, and the starts of its passages."""


def drop_log_labels(questions: Sequence[QuestionRow]) -> list[QuestionRow]:
    """Return the questions with people's labels only: an answer is not its own reference.

    Nor is the page that the answer came from, unless people have judged relevance: then that page is the retrieved one.
    """
    return [_drop_log_labels(question) for question in questions]


def _drop_log_labels(question: QuestionRow) -> QuestionRow:
    keep_by_column = {"score": is_reviewed(question), "confluence_url": is_judged(question)}
    return question | {name: None for name, is_kept in keep_by_column.items() if not is_kept}


def find_contexts(questions: Sequence[QuestionRow], corpus: Corpus, tokens: int | None) -> list[Context | None]:
    """Return the context of each recorded answer; None if it is not recorded, or a passage has no text.

    Args:
        questions: rows of the log.
        corpus: texts of chunks that the records may name without their text.
        tokens: longest context; None for no limit.
    """
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    return [_build_context(_recorded_passages(question), texts, tokens) for question in questions]


def has_context(question: QuestionRow, chunks: Collection[str]) -> bool:
    """Return whether the context of an answer is recorded, with the text of every passage.

    Args:
        question: a row of the log, or its outline.
        chunks: ids of the corpus, of which the record may name some without their text.
    """
    passages = _recorded_passages(question)
    return bool(passages) and all(
        passage.get("text") is not None or passage["id"] in chunks for passage in passages or ()
    )


def is_answered(question: QuestionRow) -> bool:
    """Return whether an answer is recorded that can be scored, or that the system failed to give one."""
    return question["answer"] is not None or bool(_read_record(question).get("error"))


def find_trace_ids(questions: Sequence[QuestionRow]) -> dict[str, list[Any]]:
    """Return the trace and span ids of recorded answers, as columns; empty if there are none."""
    records = [_read_record(question) for question in questions]
    columns = {
        name: [str(record[name]) if record.get(name) else None for record in records]
        for name in ("trace_id", "span_id")
    }
    return columns if any(map(any, columns.values())) else {}


def use_recorded_contexts(cases: pa.Table, contexts: Sequence[Context | None]) -> pa.Table:
    """Replace the labelled chunks of tier 2's cases by the recorded contexts; all cases become measurable."""
    earlier = iterate_rows(cases, "context", "truncated", "passage_starts")
    current = [old if context is None else context for old, context in zip(earlier, contexts, strict=True)]
    return set_columns(
        cases.drop_columns(["context"]),  # labelled texts are stored in a shared dictionary type
        status=["ok"] * len(cases),
        reason=[None] * len(cases),
        context=[context for context, _, _ in current],
        truncated=[is_cut for _, is_cut, _ in current],
        passage_starts=[starts for _, _, starts in current],
    )


def save_recorded(
    run: EvaluationRun, cases: pa.Table, questions: Sequence[QuestionRow], corpus: Corpus, unit: Unit | None
) -> None:
    """Store the recorded answers for the cases, to be scored like reused answers.

    Args:
        run: the evaluation.
        cases: as they are loaded; their context, if they have one, is what the answers are judged against.
        questions: of the cases, in their order.
        corpus: texts of chunks that the records may name without their text.
        unit: of the retrieved results; None if retrieval is not measured.
    """
    records = [_read_record(question) for question in questions]
    states = [_record_state(question, record) for question, record in zip(questions, records, strict=True)]
    answers = make_cases(
        **{name: column_values(cases, name) for name in ("case_id", "question")},
        status=[status for status, _ in states],
        reason=[reason for _, reason in states],
        answer=[
            None if record.get("error") else question["answer"]
            for question, record in zip(questions, records, strict=True)
        ],
        answers=[None] * len(questions),
        **{
            f"sut_{name}": [_read_number(record, name) for record in records]
            for name in ("tokens_in", "tokens_out", "cost_usd")
        },
        **find_trace_ids(questions),
        latency_ms=[_read_number(record, "latency_ms") for record in records],
        **_other_columns(records),
    )
    if unit is None:
        answers = set_columns(
            answers, **{name: cases[name].to_pylist() for name in ("context", "truncated", "passage_starts")}
        )
    else:
        contexts = [context or (None, None, None) for context in find_contexts(questions, corpus, None)]
        corpus_pages = page_by_chunk(corpus)
        answers = set_columns(
            answers,
            retrieved=[_read_results(question, corpus_pages, unit) for question in questions],
            context=[context or None for context, _, _ in contexts],
            passage_starts=[starts for _, _, starts in contexts],
        )
    pq.write_table(answers, run.work / "answers.parquet")


def note_missing_contexts(questions: Sequence[QuestionRow], contexts: Sequence[Context | None]) -> list[Note]:
    """Return a note on answers without a recorded context."""
    missing = sum(context is None for context, question in zip(contexts, questions, strict=True) if question["answer"])
    return [{"note": "contexts not recorded", "n": missing}] if missing else []


def _record_state(question: QuestionRow, record: Mapping[str, Any]) -> tuple[str, str | None]:
    answer = question["answer"]
    if record.get("error"):  # a partial answer does not count
        return "sut_error", str(record["error"]) + (f"; until then it had said {answer[:200]!r}" if answer else "")
    if answer is not None:
        return "ok", None
    return "not_applicable", Words("no answer is recorded")


def _read_record(question: QuestionRow) -> Mapping[str, Any]:
    """Return the record of an answer; in other tables, whatever has the form of one."""
    record = question.get("recorded")
    return record if isinstance(record, dict) else {}


def _recorded_passages(question: QuestionRow) -> list[Record] | None:
    raw = _read_record(question).get("contexts")
    return [passage for passage in map(parse_passage, raw) if passage is not None] if isinstance(raw, list) else None


def _other_columns(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return further columns of recorded answers that cases have."""
    columns: dict[str, list[Any]] = {
        "first_token_ms": [_read_number(record, "first_token_ms") for record in records],
        "history": [_read_history(record) for record in records],
    }
    return {name: values for name, values in columns.items() if name in CASE_COLUMNS}


def _read_history(record: Mapping[str, Any]) -> list[dict[str, str]] | None:
    history = record.get("history")
    messages = [message for message in history if isinstance(message, dict)] if isinstance(history, list) else []
    return [{name: str(message.get(name)) for name in ("role", "content")} for message in messages] or None


def _read_number(record: Mapping[str, Any], name: str) -> float | None:
    value = record.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _build_context(passages: list[Record] | None, texts: Mapping[str, str], tokens: int | None) -> Context | None:
    if not passages:
        return None
    texts_or_missing = [
        passage["text"] if passage.get("text") is not None else texts.get(passage.get("id", "")) for passage in passages
    ]
    parts = [text for text in texts_or_missing if text is not None]
    if len(parts) < len(texts_or_missing):
        return None
    context, is_cut = (CONTEXT_SEPARATOR.join(parts), False) if tokens is None else join_within_limit(parts, tokens)
    return context, is_cut, text_offsets(parts, context)


def _read_results(question: QuestionRow, pages: Mapping[str, str | None], unit: Unit) -> list[str] | None:
    """Return the retrieved results of an answer, best first; None if they are not recorded.

    A passage of the corpus belongs to its page there; without a page it is not a possible result.
    """
    passages, by_chunk = _recorded_passages(question), unit == "chunk"
    if passages is None:
        urls = [] if by_chunk else _read_record(question).get("urls") or [question["confluence_url"]]
        pages_of_urls = [page for page in map(canonical_url, urls) if page is not None]
        return list(dict.fromkeys(pages_of_urls)) or None
    if by_chunk:
        return list(dict.fromkeys(passage["id"] for passage in passages))
    results = (canonical_url(passage.get("url")) or pages.get(passage["id"], passage["id"]) for passage in passages)
    return list(dict.fromkeys(page for page in results if page is not None))
