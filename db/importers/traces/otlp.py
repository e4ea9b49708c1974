"""Parse OpenTelemetry spans: OTLP JSON and SDK output, with attributes of OpenInference, `gen_ai.*` and Langfuse."""

import base64
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from yarus.db.importers.literals import parse_if_literal, parse_object
from yarus.db.importers.traces.extraction import (
    Attributes,
    as_list,
    extract_answer,
    extract_passages,
    extract_question,
    extract_reference,
    first_attribute,
    nest_attributes,
    parse_messages,
)
from yarus.db.importers.traces.plain_values import MissingIds
from yarus.db.importers.traces.spans import Span, add_seconds_ns, parse_time_ns
from yarus.db.loading.recorded import Record, text_or_none
from yarus.db.messages import Words

SPAN_KINDS = {
    "chat": "llm",
    "text_completion": "llm",
    "generate_content": "llm",
    "generation": "llm",
    "embeddings": "embedding",
    "retrieval": "retriever",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "invoke_workflow": "chain",
    "record_root": "chain",
    "eval": "evaluator",
    "eval_root": "evaluator",
    "parser": "prompt",
    "span": "",
    "unknown": "",
}
"""Kinds of OpenTelemetry, Langfuse, TruLens and LangSmith -> kinds of OpenInference; other names stay unchanged."""
KIND_ATTRIBUTES = (
    "openinference.span.kind", "langfuse.observation.type", "ai.observability.span_type", "gen_ai.operation.name",
)  # fmt: skip
INPUT_ATTRIBUTES = (
    "gen_ai.retrieval.query.text", "input.value", "langfuse.observation.input", "langfuse.trace.input",
    "ai.observability.record_root.input", "ai.observability.retrieval.query_text", "ai.observability.call.kwargs",
)  # fmt: skip
OUTPUT_ATTRIBUTES = (
    "output.value", "langfuse.observation.output", "langfuse.trace.output", "ai.observability.record_root.output",
    "ai.observability.call.return",
)  # fmt: skip
DOCUMENT_ATTRIBUTES = (
    "reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents",
    "ai.observability.retrieval.retrieved_contexts",
)  # fmt: skip
INPUT_TOKEN_ATTRIBUTES = (
    "llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
    "ai.observability.cost.num_prompt_tokens",
)  # fmt: skip
OUTPUT_TOKEN_ATTRIBUTES = (
    "llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
    "ai.observability.cost.num_completion_tokens",
)  # fmt: skip
COST_ATTRIBUTES = ("llm.cost.total", "gen_ai.usage.cost", "ai.observability.cost.cost")
METADATA_ATTRIBUTES = ("metadata", "langfuse.trace.metadata", "langfuse.observation.metadata")
REFERENCE_ATTRIBUTES = ("ai.observability.record_root.ground_truth_output", "langfuse.experiment.item.expected_output")
MAX_NUMBER = 2.0**53
"""Limit for numbers of tokens, seconds and dollars; beyond it sums would be infinite."""
MAX_USD = 1e6
"""Limit for the cost of an answer, which a column of costs can hold."""
FIRST_TOKEN_EVENT = "first token"  # noqa: S105 - in the name of OpenInference's event


def iter_spans(requests: Any) -> Iterator[Any]:
    """Yield the raw spans of a request to export traces."""
    for resource in _as_dicts(requests):
        for scope in (*_as_dicts(get_field(resource, "scopeSpans")), *_as_dicts(get_field(resource, "ilSpans"))):
            yield from as_list(scope.get("spans"))
        yield from as_list(resource.get("spans"))


def parse_span(raw: Mapping[str, Any]) -> Span:
    """Parse a span.

    Raises:
        MissingIds: the span has no ids.
        UnusableSpan: its attributes are nested too deeply.
    """
    context = parse_object(raw.get("context")) or raw
    trace_id, span_id = (_parse_id(get_field(context, name), size) for name, size in (("traceId", 16), ("spanId", 8)))
    if not trace_id or not span_id:
        raise MissingIds(Words("a span without ids"))
    attributes = nest_attributes(_attribute_map(raw.get("attributes")))
    span = Span(trace_id, span_id, _parse_id(_parent_id(raw), 8) or None)
    span.start_ns = parse_time_ns(get_field(raw, "startTimeUnixNano", "startTime"))
    span.end_ns = parse_time_ns(get_field(raw, "endTimeUnixNano", "endTime"))
    span.error = _parse_error(raw)
    _read_attributes(span, attributes, str(raw.get("name") or ""), str(get_field(raw, "spanKind") or ""))
    if (first_token_ns := _first_token_ns(raw, attributes, span.start_ns)) is not None:
        span.first_token_ns = first_token_ns
    return span


def _read_attributes(span: Span, attributes: Attributes, name: str, kind: str) -> None:
    """Fill in a span from its attributes."""
    kind_name = first_attribute(attributes, *KIND_ATTRIBUTES) or kind
    span.kind = SPAN_KINDS.get(str(kind_name).casefold(), str(kind_name).casefold())
    inputs, outputs = (first_attribute(attributes, *INPUT_ATTRIBUTES), first_attribute(attributes, *OUTPUT_ATTRIBUTES))
    input_messages = first_attribute(attributes, "llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
    output_messages = first_attribute(attributes, "llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
    if span.kind == "llm":  # its input is a JSON request; the messages have the texts
        inputs, outputs = (
            (input_messages if parse_messages(input_messages) else inputs),
            (output_messages if parse_messages(output_messages) else outputs),
        )
    span.question, span.history = extract_question(inputs if inputs is not None else input_messages)
    span.answer = extract_answer(outputs if outputs is not None else output_messages)
    span.passages = _find_passages("retriever" if is_retriever(span.kind, name) else span.kind, attributes, outputs)
    if not span.kind and span.passages is not None:
        span.kind = "retriever"
    span.tokens_in, span.tokens_out = (
        next((count for name in names if (count := _parse_count(first_attribute(attributes, name))) is not None), None)
        for names in (INPUT_TOKEN_ATTRIBUTES, OUTPUT_TOKEN_ATTRIBUTES)
    )
    if usage := parse_object(first_attribute(attributes, "langfuse.observation.usage_details")):
        span.tokens_in, span.tokens_out = parse_token_usage(usage)
    span.cost_usd = parse_usd(first_attribute(attributes, *COST_ATTRIBUTES))
    if span.cost_usd is None:
        span.cost_usd = parse_usd(
            parse_object(first_attribute(attributes, "langfuse.observation.cost_details")).get("total")
        )
    span.user = text_or_none(
        first_attribute(attributes, "user.id", "enduser.id", "langfuse.user.id", "langfuse.trace.user_id")
    )
    span.session = text_or_none(
        first_attribute(attributes, "session.id", "gen_ai.conversation.id", "langfuse.session.id")
    )
    span.reference = extract_answer(first_attribute(attributes, *REFERENCE_ATTRIBUTES))
    if span.reference is None:
        span.reference = extract_reference(
            *(first_attribute(attributes, name) for name in METADATA_ATTRIBUTES), attributes
        )


def _find_passages(kind: str, attributes: Attributes, output: Any) -> list[Record] | None:
    """Return the passages in an attribute, else those that a retriever or re-ranker returned."""
    documents = first_attribute(attributes, *DOCUMENT_ATTRIBUTES)
    if documents is not None and (passages := extract_passages(documents)) is not None:
        return passages
    return extract_passages(output) if kind in ("retriever", "reranker") else None


def is_retriever(kind: str, name: str) -> bool:
    """Return whether a step is a retriever, by its kind, or by its name if it has no kind."""
    return kind == "retriever" or (not kind and "retriev" in name.casefold())


def parse_token_usage(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the input and output tokens, summed over separately counted parts such as `input_cached_tokens`."""
    counts = {str(name): _parse_count(value) for name, value in usage.items()}
    counts_by_side = [
        [count for name, count in counts.items() if count is not None and name.startswith(prefixes)]
        for prefixes in (("input", "prompt"), ("output", "completion"))
    ]
    tokens_in, tokens_out = (sum(part_counts) if part_counts else None for part_counts in counts_by_side)
    return tokens_in, tokens_out


def parse_amount(value: Any) -> float | None:
    """Return a number that is at least 0; None for other values."""
    try:
        number = None if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and 0 <= number < MAX_NUMBER else None


def parse_usd(value: Any) -> float | None:
    """Return an amount of money; None for other values."""
    number = parse_amount(value)
    return number if number is not None and number < MAX_USD else None


def _parse_count(value: Any) -> int | None:
    number = parse_amount(value)
    return int(number) if number is not None and number.is_integer() else None


def _parse_id(value: Any, size: int) -> str:
    """Return an id in hexadecimal digits, written so or in base64; other texts unchanged."""
    text = str(value).strip() if isinstance(value, str | int) else ""
    digits = text.removeprefix("0x")
    if re.fullmatch(rf"[0-9a-fA-F]{{{2 * size}}}", digits):
        return digits.lower() if digits.strip("0") else ""
    if len(text) == -(-size // 3) * 4 and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex().replace("0" * 2 * size, "")
        except ValueError:
            pass
    return text


def _parent_id(raw: Mapping[str, Any]) -> Any:
    parent = get_field(raw, "parentSpanId", "parentId")
    return get_field(parent, "spanId") if isinstance(parent, dict) else parent


def _attribute_map(raw: Any) -> Record:
    """Return attributes as a map, which they are already or which pairs of key and typed value become."""
    raw = parse_if_literal(raw)
    if isinstance(raw, dict):
        return raw
    return {str(pair.get("key")): _parse_value(pair.get("value")) for pair in _as_dicts(raw)}


def _parse_value(raw: Any) -> Any:
    """Return an OTLP value without its type."""
    if not isinstance(raw, dict) or len(raw) != 1:
        return raw
    ((kind, value),) = raw.items()
    entries = _as_dicts(value.get("values")) if isinstance(value, dict) else []
    if kind in ("arrayValue", "array_value"):
        return [_parse_value(entry) for entry in entries]
    if kind in ("kvlistValue", "kvlist_value"):
        return {str(entry.get("key")): _parse_value(entry.get("value")) for entry in entries}
    if kind in ("intValue", "int_value") and isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        return int(value)
    return value if str(kind).endswith(("Value", "_value")) else raw


def _parse_error(raw: Mapping[str, Any]) -> str | None:
    status = parse_if_literal(raw.get("status"))
    fields = {"code": status or get_field(raw, "statusCode"), "message": get_field(raw, "statusMessage")}
    details = status if isinstance(status, dict) else fields
    code = str(get_field(details, "code", "statusCode") or "").upper()
    if code != "2" and "ERROR" not in code:
        return None
    return text_or_none(details.get("message") or details.get("description")) or "the span ended in an error"


def _first_token_ns(raw: Mapping[str, Any], attributes: Attributes, start: int | None) -> int | None:
    """Return when the first part of the answer came, from an attribute or an event."""
    for event in _as_dicts(raw.get("events")):
        if FIRST_TOKEN_EVENT in str(event.get("name")).casefold():
            return parse_time_ns(get_field(event, "timeUnixNano", "timestamp"))
    if (completion_start := first_attribute(attributes, "langfuse.observation.completion_start_time")) is not None:
        return parse_time_ns(parse_if_literal(completion_start))
    seconds = parse_amount(
        first_attribute(attributes, "gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token")
    )
    return add_seconds_ns(start, seconds)


def _as_dicts(value: Any) -> list[Record]:
    return [item for item in as_list(value) if isinstance(item, dict)]


def get_field(raw: Mapping[str, Any], *names: str) -> Any:
    """Return the value of the first name that is present, in camel or snake case: `traceId`, `trace_id`."""
    spellings = (spelling for name in names for spelling in (name, to_snake_case(name)))
    return next((raw[spelling] for spelling in spellings if raw.get(spelling) not in (None, "")), None)


@cache
def to_snake_case(name: str) -> str:
    """Convert a name to snake case: `traceId` to `trace_id`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
