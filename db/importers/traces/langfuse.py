"""Parse traces and observations of Langfuse, as its pages, API, SDKs and storage export write them."""

from collections.abc import Mapping
from typing import Any

from yarus.db.importers.literals import parse_if_literal, parse_object
from yarus.db.importers.traces.extraction import (
    as_list,
    extract_answer,
    extract_passages,
    extract_question,
    extract_reference,
)
from yarus.db.importers.traces.otlp import (
    SPAN_KINDS,
    get_field,
    is_retriever,
    parse_amount,
    parse_token_usage,
    parse_usd,
)
from yarus.db.importers.traces.plain_values import MissingIds
from yarus.db.importers.traces.spans import Span, add_seconds_ns, parse_time_ns
from yarus.db.importers.votes import is_user_vote_name, parse_named_vote
from yarus.db.loading.recorded import Record, text_or_none
from yarus.db.messages import Words

TRACE_SPAN_ID = ""
"""The span id of the trace itself."""


def split_trace(raw: Mapping[str, Any]) -> tuple[Record, list[Any]]:
    """Return a trace without its observations, and its observations, each with the id of the trace."""
    inner = raw.get("trace")
    trace: Mapping[str, Any] = inner if isinstance(inner, Mapping) else raw
    fields = {name: value for name, value in trace.items() if name != "observations"}
    scores = next((part["scores"] for part in (raw, trace) if "scores" in part), None)
    observations = next((items for part in (raw, trace) if (items := as_list(part.get("observations")))), [])
    trace_id = get_field(trace, "id")
    return fields | {"scores": scores}, [
        {**observation, "traceId": trace_id} if isinstance(observation, Mapping) else observation
        for observation in observations
    ]


def parse_trace(raw: Mapping[str, Any]) -> Span:
    """Parse a trace without its observations.

    Raises:
        MissingIds: the trace has no id.
    """
    trace_id = text_or_none(get_field(raw, "id"))
    if trace_id is None:
        raise MissingIds(Words("an observation or a trace without ids"))
    span = Span(trace_id, TRACE_SPAN_ID, kind="chain", start_ns=parse_time_ns(get_field(raw, "timestamp")))
    span.end_ns = add_seconds_ns(span.start_ns, parse_amount(get_field(raw, "latency")))
    _read_common_fields(span, raw)
    span.cost_usd = parse_usd(get_field(raw, "totalCost"))
    return span


def parse_observation(raw: Mapping[str, Any]) -> Span:
    """Parse an observation.

    Raises:
        MissingIds: the observation has no ids.
    """
    trace_id, span_id = text_or_none(get_field(raw, "traceId")), text_or_none(get_field(raw, "id"))
    if not trace_id or not span_id:
        raise MissingIds(Words("an observation without ids"))
    kind = str(raw.get("type") or "").casefold()
    span = Span(trace_id, span_id, text_or_none(get_field(raw, "parentObservationId")), SPAN_KINDS.get(kind, kind))
    span.start_ns, span.end_ns = (
        parse_time_ns(get_field(raw, "startTime")),
        parse_time_ns(get_field(raw, "endTime")),
    )
    if span.end_ns is None:
        span.end_ns = add_seconds_ns(span.start_ns, parse_amount(get_field(raw, "latency")))
    _read_common_fields(span, raw)
    if is_retriever(span.kind, str(raw.get("name") or "")):
        span.passages = extract_passages(raw.get("output"))
        span.kind = "retriever" if span.passages is not None else span.kind
    usage = parse_object(get_field(raw, "usageDetails")) or parse_object(raw.get("usage"))
    usage = usage or {name: get_field(raw, name) for name in ("promptTokens", "completionTokens")}
    span.tokens_in, span.tokens_out = parse_token_usage(usage)
    total = parse_object(get_field(raw, "costDetails")).get("total")
    span.cost_usd = parse_usd(total if total is not None else get_field(raw, "calculatedTotalCost", "totalCost"))
    if str(raw.get("level")).upper() == "ERROR":
        span.error = text_or_none(get_field(raw, "statusMessage")) or "the observation ended in an error"
    span.first_token_ns = parse_time_ns(get_field(raw, "completionStartTime"))
    if span.first_token_ns is None and span.start_ns is not None:
        span.first_token_ns = add_seconds_ns(span.start_ns, parse_amount(get_field(raw, "timeToFirstToken")))
    return span


def parse_user_vote(scores: list[Record]) -> int | None:
    """Return the user's vote: 5 for the answer, 1 against it; None if there is no vote, or both."""
    votes = set()
    for score in scores:
        value = next(
            (score[name] for name in ("value", "stringValue", "string_value") if score.get(name) is not None), None
        )
        votes.add(parse_named_vote(str(score.get("name")), value))
    votes.discard(None)
    return votes.pop() if len(votes) == 1 else None


def _collect_scores(raw: Mapping[str, Any]) -> list[Record]:
    """Return the scores of a trace: objects, or columns that hold lists, as pages export them to CSV."""
    scores = [score for score in as_list(raw.get("scores")) if isinstance(score, dict)]
    for name, value in raw.items():
        if is_user_vote_name(name):
            value = parse_if_literal(value)
            scores += [{"name": name, "value": vote} for vote in (value if isinstance(value, list) else [value])]
    return scores


def _read_common_fields(span: Span, raw: Mapping[str, Any]) -> None:
    """Fill in the fields that traces and observations have in common."""
    span.question, span.history = extract_question(raw.get("input"))
    span.answer = extract_answer(raw.get("output"))
    span.user, span.session = text_or_none(get_field(raw, "userId")), text_or_none(get_field(raw, "sessionId"))
    span.score = parse_user_vote(_collect_scores(raw))
    span.reference = extract_reference(raw.get("metadata"), raw)
