"""Spans of OpenTelemetry: OTLP's JSON, and what SDKs print; with attributes of OpenInference, `gen_ai.*`, Langfuse."""

import base64
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from yarus.db.importers.said import parsed, parsed_object
from yarus.db.importers.traces.plain_values import MissingIds
from yarus.db.importers.traces.spans import Span, later_ns, moment_ns
from yarus.db.importers.traces.values import (
    Attributes,
    answer_in,
    at,
    listed,
    messages,
    nested,
    passages_in,
    question_in,
    reference_in,
)
from yarus.db.loading.recorded import Record, word
from yarus.db.words import Words

KINDS = {
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
"""What OpenTelemetry, Langfuse, TruLens and LangSmith call the kinds of OpenInference; other names stay as they are."""
KIND_NAMES = (
    "openinference.span.kind", "langfuse.observation.type", "ai.observability.span_type", "gen_ai.operation.name",
)  # fmt: skip
INPUTS = (
    "gen_ai.retrieval.query.text", "input.value", "langfuse.observation.input", "langfuse.trace.input",
    "ai.observability.record_root.input", "ai.observability.retrieval.query_text", "ai.observability.call.kwargs",
)  # fmt: skip
OUTPUTS = (
    "output.value", "langfuse.observation.output", "langfuse.trace.output", "ai.observability.record_root.output",
    "ai.observability.call.return",
)  # fmt: skip
DOCUMENTS = (
    "reranker.output_documents", "retrieval.documents", "gen_ai.retrieval.documents",
    "ai.observability.retrieval.retrieved_contexts",
)  # fmt: skip
READ = (
    "llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
    "ai.observability.cost.num_prompt_tokens",
)  # fmt: skip
WRITTEN = (
    "llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
    "ai.observability.cost.num_completion_tokens",
)  # fmt: skip
COSTS = ("llm.cost.total", "gen_ai.usage.cost", "ai.observability.cost.cost")
METADATA = ("metadata", "langfuse.trace.metadata", "langfuse.observation.metadata")
REFERENCES = ("ai.observability.record_root.ground_truth_output", "langfuse.experiment.item.expected_output")
LARGEST = 2.0**53
"""What no number of tokens, seconds or dollars reaches; beyond it sums would be infinite."""
LARGEST_USD = 1e6
"""What no answer costs, and what a column of costs holds."""
FIRST_TOKEN = "first token"  # noqa: S105 - in the name of OpenInference's event


def spans_in(requests: Any) -> Iterator[Any]:
    """The spans of a request to export traces, as they stand there."""
    for of_resource in _objects(requests):
        for of_scope in (*_objects(_either(of_resource, "scopeSpans")), *_objects(_either(of_resource, "ilSpans"))):
            yield from listed(of_scope.get("spans"))
        yield from listed(of_resource.get("spans"))


def parse_span(given: Mapping[str, Any]) -> Span:
    """A span as it is understood here.

    Raises:
        MissingIds: it has no ids.
        UnusableSpan: its attributes are nested too deeply.
    """
    where = parsed_object(given.get("context")) or given
    trace_id, span_id = (_id(_either(where, name), size) for name, size in (("traceId", 16), ("spanId", 8)))
    if not trace_id or not span_id:
        raise MissingIds(Words("a span without ids"))
    attributes = nested(_attributes(given.get("attributes")))
    found = Span(trace_id, span_id, _id(_parent(given), 8) or None)
    found.start_ns = moment_ns(_either(given, "startTimeUnixNano", "startTime"))
    found.end_ns = moment_ns(_either(given, "endTimeUnixNano", "endTime"))
    found.error = _error(given)
    _understand(found, attributes, str(given.get("name") or ""), str(_either(given, "spanKind") or ""))
    if (first := _first_token(given, attributes, found.start_ns)) is not None:
        found.first_token_ns = first
    return found


def _understand(found: Span, attributes: Attributes, name: str, kind: str) -> None:
    """Fills in what the attributes tell."""
    named = at(attributes, *KIND_NAMES) or kind
    found.kind = KINDS.get(str(named).casefold(), str(named).casefold())
    asked, said = at(attributes, *INPUTS), at(attributes, *OUTPUTS)
    talk = at(attributes, "llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
    reply = at(attributes, "llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
    if found.kind == "llm":  # its input is a request as JSON; what was said stands in the messages
        asked, said = (talk if messages(talk) else asked), (reply if messages(reply) else said)
    found.question, found.history = question_in(asked if asked is not None else talk)
    found.answer = answer_in(said if said is not None else reply)
    found.passages = _passages("retriever" if retrieves(found.kind, name) else found.kind, attributes, said)
    if not found.kind and found.passages is not None:
        found.kind = "retriever"
    found.tokens_in, found.tokens_out = (
        next((n for of in names if (n := _count(at(attributes, of))) is not None), None) for names in (READ, WRITTEN)
    )
    if usage := parsed_object(at(attributes, "langfuse.observation.usage_details")):
        found.tokens_in, found.tokens_out = usage_of(usage)
    found.cost_usd = usd(at(attributes, *COSTS))
    if found.cost_usd is None:
        found.cost_usd = usd(parsed_object(at(attributes, "langfuse.observation.cost_details")).get("total"))
    found.user = word(at(attributes, "user.id", "enduser.id", "langfuse.user.id", "langfuse.trace.user_id"))
    found.session = word(at(attributes, "session.id", "gen_ai.conversation.id", "langfuse.session.id"))
    found.reference = answer_in(at(attributes, *REFERENCES))
    if found.reference is None:
        found.reference = reference_in(*(at(attributes, name) for name in METADATA), attributes)


def _passages(kind: str, attributes: Attributes, output: Any) -> list[Record] | None:
    """What a step retrieved: named so by an attribute, else what a retriever or re-ranker returned."""
    named = at(attributes, *DOCUMENTS)
    if named is not None and (found := passages_in(named)) is not None:
        return found
    return passages_in(output) if kind in ("retriever", "reranker") else None


def retrieves(kind: str, name: str) -> bool:
    """Whether a step is a retriever, by its kind, or by its name where it has none."""
    return kind == "retriever" or (not kind and "retriev" in name.casefold())


def usage_of(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens read and written, by all parts that are counted apart: `input`, `input_cached_tokens` and so on."""
    counted = {str(name): _count(value) for name, value in usage.items()}
    sums = [
        [n for name, n in counted.items() if n is not None and name.startswith(of)]
        for of in (("input", "prompt"), ("output", "completion"))
    ]
    tokens_in, tokens_out = (sum(found) if found else None for found in sums)
    return tokens_in, tokens_out


def amount(value: Any) -> float | None:
    """A number from 0; None where it is none."""
    try:
        number = None if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and 0 <= number < LARGEST else None


def usd(value: Any) -> float | None:
    """A sum of money; None where it is none."""
    number = amount(value)
    return number if number is not None and number < LARGEST_USD else None


def _count(value: Any) -> int | None:
    number = amount(value)
    return int(number) if number is not None and number.is_integer() else None


def _id(value: Any, size: int) -> str:
    """An id in hexadecimal digits, whether it was written so or in base64; another stays as it is."""
    text = str(value).strip() if isinstance(value, str | int) else ""
    plain = text.removeprefix("0x")
    if re.fullmatch(rf"[0-9a-fA-F]{{{2 * size}}}", plain):
        return plain.lower() if plain.strip("0") else ""
    if len(text) == -(-size // 3) * 4 and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex().replace("0" * 2 * size, "")
        except ValueError:
            pass
    return text


def _parent(given: Mapping[str, Any]) -> Any:
    parent = _either(given, "parentSpanId", "parentId")
    return _either(parent, "spanId") if isinstance(parent, dict) else parent


def _attributes(given: Any) -> Record:
    """Attributes as a map: as they are, or key by key with a typed value."""
    given = parsed(given)
    if isinstance(given, dict):
        return given
    return {str(pair.get("key")): _value(pair.get("value")) for pair in _objects(given)}


def _value(given: Any) -> Any:
    """A value of OTLP without its type."""
    if not isinstance(given, dict) or len(given) != 1:
        return given
    ((kind, value),) = given.items()
    inner = _objects(value.get("values")) if isinstance(value, dict) else []
    if kind in ("arrayValue", "array_value"):
        return [_value(one) for one in inner]
    if kind in ("kvlistValue", "kvlist_value"):
        return {str(one.get("key")): _value(one.get("value")) for one in inner}
    if kind in ("intValue", "int_value") and isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        return int(value)
    return value if str(kind).endswith(("Value", "_value")) else given


def _error(given: Mapping[str, Any]) -> str | None:
    status = parsed(given.get("status"))
    plain = {"code": status or _either(given, "statusCode"), "message": _either(given, "statusMessage")}
    about = status if isinstance(status, dict) else plain
    code = str(_either(about, "code", "statusCode") or "").upper()
    if code != "2" and "ERROR" not in code:
        return None
    return word(about.get("message") or about.get("description")) or "the span ended in an error"


def _first_token(given: Mapping[str, Any], attributes: Attributes, start: int | None) -> int | None:
    """When the first part of the answer came, by an attribute or an event."""
    for event in _objects(given.get("events")):
        if FIRST_TOKEN in str(event.get("name")).casefold():
            return moment_ns(_either(event, "timeUnixNano", "timestamp"))
    if (at_once := at(attributes, "langfuse.observation.completion_start_time")) is not None:
        return moment_ns(parsed(at_once))
    seconds = amount(at(attributes, "gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token"))
    return later_ns(start, seconds)


def _objects(value: Any) -> list[Record]:
    return [one for one in listed(value) if isinstance(one, dict)]


def _either(given: Mapping[str, Any], *names: str) -> Any:
    """The value under the first name that is there, as JSON or as Python writes it: `traceId`, `trace_id`."""
    both = (form for name in names for form in (name, snake(name)))
    return next((given[form] for form in both if given.get(form) not in (None, "")), None)


@cache
def snake(name: str) -> str:
    """`traceId` as `trace_id`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
