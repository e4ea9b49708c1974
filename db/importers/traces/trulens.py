"""Parse records of TruLens: rows of its table of records, or records as JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from yarus.db.importers.literals import parse_object
from yarus.db.importers.traces.extraction import (
    as_list,
    extract_answer,
    extract_passages,
    extract_question,
    extract_reference,
)
from yarus.db.importers.traces.langfuse import TRACE_SPAN_ID, parse_user_vote
from yarus.db.importers.traces.otlp import parse_amount, parse_token_usage, parse_usd
from yarus.db.importers.traces.plain_values import MissingIds
from yarus.db.importers.traces.spans import Span, add_seconds_ns, parse_time_ns
from yarus.db.loading.recorded import Record, text_or_none
from yarus.db.messages import Words

RETRIEVAL_METHODS = ("retriev", "relevant_documents", "similarity_search")
"""Substrings in names of methods that retrieve."""


def parse_record(raw: Mapping[str, Any]) -> Span:
    """Return a record as the span of a whole request.

    Raises:
        MissingIds: the record has no id.
    """
    record = _find_record(raw)
    trace_id = text_or_none(raw.get("record_id")) or text_or_none(record.get("record_id"))
    if trace_id is None:
        raise MissingIds(Words("a record without an id"))
    span = Span(trace_id, TRACE_SPAN_ID, kind="chain")
    span.question, span.history = _first_question(raw.get("input"), record.get("main_input"))
    span.answer = extract_answer(raw.get("output")) or extract_answer(record.get("main_output"))
    span.error = text_or_none(record.get("main_error"))
    perf = parse_object(raw.get("perf_json")) or parse_object(record.get("perf"))
    span.start_ns = (
        parse_time_ns(perf.get("start_time")) or parse_time_ns(raw.get("ts")) or parse_time_ns(record.get("ts"))
    )
    span.end_ns = parse_time_ns(perf.get("end_time")) or add_seconds_ns(span.start_ns, parse_amount(raw.get("latency")))
    cost = parse_object(raw.get("cost_json")) or parse_object(record.get("cost"))
    usage = {"input": cost.get("n_prompt_tokens"), "output": cost.get("n_completion_tokens")}
    span.tokens_in, span.tokens_out = parse_token_usage(usage)
    span.cost_usd = parse_usd(raw.get("total_cost") if raw.get("total_cost") is not None else cost.get("cost"))
    metadata = [parse_object(source) for source in (raw.get("meta"), record.get("meta"), raw.get("record_metadata"))]
    span.reference = extract_reference(*metadata, raw)
    span.score = parse_user_vote([{"name": name, "value": value} for name, value in raw.items()])
    return span


def find_retrievals(raw: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the retrieval calls of a record, each with the id of the record."""
    record = _find_record(raw)
    trace_id = text_or_none(raw.get("record_id")) or text_or_none(record.get("record_id"))
    for number, call in enumerate(as_list(record.get("calls"))):
        if isinstance(call, dict) and any(part in _method_name(call).casefold() for part in RETRIEVAL_METHODS):
            yield {"record_id": trace_id, "number": number, "call": call}


def parse_call(raw: Mapping[str, Any]) -> Span:
    """Return a call from `find_retrievals` as the span of a retriever."""
    call, trace_id = raw["call"], text_or_none(raw["record_id"])
    if trace_id is None:
        raise MissingIds(Words("a record without an id"))
    name = text_or_none(call.get("call_id")) or f"call {raw['number']}"
    span = Span(trace_id, name, TRACE_SPAN_ID, kind="retriever")
    span.question, _ = extract_question({"args": call.get("args")})
    span.passages = extract_passages(call.get("rets"))
    perf = parse_object(call.get("perf"))
    span.start_ns, span.end_ns = parse_time_ns(perf.get("start_time")), parse_time_ns(perf.get("end_time"))
    span.error = text_or_none(call.get("error"))
    return span


def _find_record(raw: Mapping[str, Any]) -> Record:
    """Return the record itself, from any part of a row; {} if the row has only its columns."""
    record = parse_object(raw.get("record_json"))
    return record or (dict(raw) if "main_input" in raw else {})


def _method_name(call: Record) -> str:
    stack = as_list(call.get("stack"))
    method = stack[-1].get("method") if stack and isinstance(stack[-1], dict) else None
    return str(method.get("name") if isinstance(method, dict) else method)


def _first_question(*inputs: Any) -> tuple[str | None, list[Any]]:
    parsed = [extract_question(value) for value in inputs]
    return next((pair for pair in parsed if pair[0] is not None), (None, []))
