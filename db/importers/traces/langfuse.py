"""Traces and observations of Langfuse, as its pages, its API, its SDKs and its export to storage write them."""

from collections.abc import Iterator, Mapping
from typing import Any

from db.importers.said import parsed
from db.importers.traces.otlp import KINDS, amount, retrieves, snake, usage_of, word
from db.importers.traces.spans import Span, moment_ns
from db.importers.traces.values import answer_in, listed, passages_in, question_in

FEEDBACK = ("feedback", "thumb")
"""In the name of a score that a user gave; others are of judges and annotators."""
GOOD, BAD = 5, 1
VOTES: dict[Any, int] = {
    **dict.fromkeys((1, True, "up", "thumbs_up", "thumbs-up", "positive", "good", "like", "👍"), GOOD),
    **dict.fromkeys((0, -1, False, "down", "thumbs_down", "thumbs-down", "negative", "bad", "dislike", "👎"), BAD),
}
"""What users say of an answer by a thumb; stars have a scale that nobody knows, and say nothing here."""
TRACE = ""
"""The id of a trace among its own spans."""


def trace_of(given: Mapping[str, Any]) -> Iterator[Span | None]:
    """A trace with its observations; None for what has no id."""
    inner = given.get("trace")
    about = inner if isinstance(inner, dict) else given
    observations = [
        one for one in listed(given.get("observations") or about.get("observations")) if isinstance(one, dict)
    ]
    scores = [one for one in listed(given.get("scores") or about.get("scores")) if isinstance(one, dict)]
    trace_id = word(_get(about, "id")) or ""
    if not trace_id:
        yield None
        return
    found = Span(trace_id, TRACE, kind="chain", start_ns=moment_ns(_get(about, "timestamp")))
    seconds = amount(_get(about, "latency"))
    if found.start_ns is not None and seconds is not None:
        found.end_ns = found.start_ns + int(seconds * 1e9)
    _said(found, about)
    found.cost_usd = amount(_get(about, "totalCost"))
    found.score = feedback(scores)
    yield found
    for observation in observations:
        yield observation_of(observation | {"traceId": trace_id})


def observation_of(given: Mapping[str, Any]) -> Span | None:
    """An observation; None where it has no ids."""
    trace_id, span_id = word(_get(given, "traceId")), word(_get(given, "id"))
    if not trace_id or not span_id:
        return None
    kind = str(given.get("type") or "").casefold()
    found = Span(trace_id, span_id, word(_get(given, "parentObservationId")), KINDS.get(kind, kind))
    found.start_ns, found.end_ns = moment_ns(_get(given, "startTime")), moment_ns(_get(given, "endTime"))
    _said(found, given)
    if retrieves(found.kind, str(given.get("name") or "")):
        found.passages = passages_in(given.get("output"))
        found.kind = "retriever" if found.passages is not None else found.kind
    usage, cost = (parsed(_get(given, name)) for name in ("usageDetails", "costDetails"))
    usage = (
        usage
        or parsed(given.get("usage"))
        or {name: _get(given, name) for name in ("promptTokens", "completionTokens")}
    )
    found.tokens_in, found.tokens_out = usage_of(usage) if isinstance(usage, dict) else (None, None)
    total = cost.get("total") if isinstance(cost, dict) else None
    found.cost_usd = amount(total if total is not None else _get(given, "calculatedTotalCost", "totalCost"))
    if str(given.get("level")).upper() == "ERROR":
        found.error = word(_get(given, "statusMessage")) or "the observation ended in an error"
    found.first_token_ns = moment_ns(_get(given, "completionStartTime"))
    if found.first_token_ns is None and found.start_ns is not None:
        seconds = amount(_get(given, "timeToFirstToken"))
        found.first_token_ns = None if seconds is None else found.start_ns + int(seconds * 1e9)
    return found


def feedback(scores: list[dict[str, Any]]) -> int | None:
    """What the user said of the answer: 5 good, 1 bad; None where nobody did, or both were said."""
    said = set()
    for score in scores:
        if any(word in str(score.get("name")).casefold() for word in FEEDBACK):
            value = next(
                (score[name] for name in ("value", "stringValue", "string_value") if score.get(name) is not None), None
            )
            value = value.casefold() if isinstance(value, str) else value
            said.add(VOTES.get(value) if isinstance(value, str | int | float) else None)
    votes = said - {None}
    return votes.pop() if len(votes) == 1 else None


def _said(found: Span, given: Mapping[str, Any]) -> None:
    found.question, found.history = question_in(given.get("input"))
    found.answer = answer_in(given.get("output"))
    found.user, found.session = word(_get(given, "userId")), word(_get(given, "sessionId"))


def _get(given: Mapping[str, Any], *names: str) -> Any:
    return next(
        (given[form] for name in names for form in (name, snake(name)) if given.get(form) not in (None, "")), None
    )
