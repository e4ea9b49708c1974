"""Records of TruLens: a row each of its table of records, or a record as JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from yarus.db.importers.said import parsed_object
from yarus.db.importers.traces.langfuse import TRACE, feedback
from yarus.db.importers.traces.otlp import amount, usage_of, usd
from yarus.db.importers.traces.plain_values import MissingIds
from yarus.db.importers.traces.spans import Span, later_ns, moment_ns
from yarus.db.importers.traces.values import answer_in, listed, passages_in, question_in, reference_in
from yarus.db.loading.recorded import Record, word
from yarus.db.words import Words

RETRIEVERS = ("retriev", "relevant_documents", "similarity_search")
"""In the names of methods that retrieve."""


def parse_record(given: Mapping[str, Any]) -> Span:
    """Return a record as the span of a whole request.

    Raises:
        MissingIds: it has no id.
    """
    record = _record(given)
    trace_id = word(given.get("record_id")) or word(record.get("record_id"))
    if trace_id is None:
        raise MissingIds(Words("a record without an id"))
    found = Span(trace_id, TRACE, kind="chain")
    found.question, found.history = _first_question(given.get("input"), record.get("main_input"))
    found.answer = answer_in(given.get("output")) or answer_in(record.get("main_output"))
    found.error = word(record.get("main_error"))
    perf = parsed_object(given.get("perf_json")) or parsed_object(record.get("perf"))
    found.start_ns = moment_ns(perf.get("start_time")) or moment_ns(given.get("ts")) or moment_ns(record.get("ts"))
    found.end_ns = moment_ns(perf.get("end_time")) or later_ns(found.start_ns, amount(given.get("latency")))
    cost = parsed_object(given.get("cost_json")) or parsed_object(record.get("cost"))
    usage = {"input": cost.get("n_prompt_tokens"), "output": cost.get("n_completion_tokens")}
    found.tokens_in, found.tokens_out = usage_of(usage)
    found.cost_usd = usd(given.get("total_cost") if given.get("total_cost") is not None else cost.get("cost"))
    metadata = [parsed_object(one) for one in (given.get("meta"), record.get("meta"), given.get("record_metadata"))]
    found.reference = reference_in(*metadata, given)
    found.score = feedback([{"name": name, "value": value} for name, value in given.items()])
    return found


def find_retrievals(given: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the calls of a record that retrieved something, each with the id of the record."""
    record = _record(given)
    trace_id = word(given.get("record_id")) or word(record.get("record_id"))
    for number, call in enumerate(listed(record.get("calls"))):
        if isinstance(call, dict) and any(word in _method(call).casefold() for word in RETRIEVERS):
            yield {"record_id": trace_id, "number": number, "call": call}


def parse_call(given: Mapping[str, Any]) -> Span:
    """Return a call that `find_retrievals` yields as the span of a retriever."""
    call, trace_id = given["call"], word(given["record_id"])
    if trace_id is None:
        raise MissingIds(Words("a record without an id"))
    name = word(call.get("call_id")) or f"call {given['number']}"
    found = Span(trace_id, name, TRACE, kind="retriever")
    found.question, _ = question_in({"args": call.get("args")})
    found.passages = passages_in(call.get("rets"))
    perf = parsed_object(call.get("perf"))
    found.start_ns, found.end_ns = moment_ns(perf.get("start_time")), moment_ns(perf.get("end_time"))
    found.error = word(call.get("error"))
    return found


def _record(given: Mapping[str, Any]) -> Record:
    """Return the record itself, wherever it stands in a row; {} if the row has only its columns."""
    record = parsed_object(given.get("record_json"))
    return record or (dict(given) if "main_input" in given else {})


def _method(call: Record) -> str:
    stack = listed(call.get("stack"))
    method = stack[-1].get("method") if stack and isinstance(stack[-1], dict) else None
    return str(method.get("name") if isinstance(method, dict) else method)


def _first_question(*inputs: Any) -> tuple[str | None, list[Any]]:
    read = [question_in(one) for one in inputs]
    return next((one for one in read if one[0] is not None), (None, []))
