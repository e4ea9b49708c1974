"""Traces and observations of Langfuse, as its pages, its API, its SDKs and its export to storage write them."""

from collections.abc import Mapping
from typing import Any

from yarus.db.importers.said import parsed, parsed_object
from yarus.db.importers.traces.otlp import KINDS, amount, retrieves, snake, usage_of, usd
from yarus.db.importers.traces.plain_values import MissingIds
from yarus.db.importers.traces.spans import Span, later_ns, moment_ns
from yarus.db.importers.traces.values import answer_in, listed, passages_in, question_in, reference_in
from yarus.db.importers.votes import is_of_users, read_named_vote
from yarus.db.loading.recorded import Record, word
from yarus.db.words import Words

TRACE = ""
"""The id of a trace among its own spans."""


def split_trace(given: Mapping[str, Any]) -> tuple[Record, list[Any]]:
    """Return a trace without its observations, and its observations, each with the id of the trace."""
    inner = given.get("trace")
    about: Mapping[str, Any] = inner if isinstance(inner, Mapping) else given
    found = {name: value for name, value in about.items() if name != "observations"}
    scores = next((of["scores"] for of in (given, about) if "scores" in of), None)
    observations = next((seen for of in (given, about) if (seen := listed(of.get("observations")))), [])
    trace_id = _get(about, "id")
    return found | {"scores": scores}, [
        {**one, "traceId": trace_id} if isinstance(one, Mapping) else one for one in observations
    ]


def parse_trace(given: Mapping[str, Any]) -> Span:
    """A trace without its observations.

    Raises:
        MissingIds: it has no id.
    """
    trace_id = word(_get(given, "id"))
    if trace_id is None:
        raise MissingIds(Words("an observation or a trace without ids"))
    found = Span(trace_id, TRACE, kind="chain", start_ns=moment_ns(_get(given, "timestamp")))
    found.end_ns = later_ns(found.start_ns, amount(_get(given, "latency")))
    _said(found, given)
    found.cost_usd = usd(_get(given, "totalCost"))
    return found


def parse_observation(given: Mapping[str, Any]) -> Span:
    """An observation.

    Raises:
        MissingIds: it has no ids.
    """
    trace_id, span_id = word(_get(given, "traceId")), word(_get(given, "id"))
    if not trace_id or not span_id:
        raise MissingIds(Words("an observation without ids"))
    kind = str(given.get("type") or "").casefold()
    found = Span(trace_id, span_id, word(_get(given, "parentObservationId")), KINDS.get(kind, kind))
    found.start_ns, found.end_ns = moment_ns(_get(given, "startTime")), moment_ns(_get(given, "endTime"))
    if found.end_ns is None:
        found.end_ns = later_ns(found.start_ns, amount(_get(given, "latency")))
    _said(found, given)
    if retrieves(found.kind, str(given.get("name") or "")):
        found.passages = passages_in(given.get("output"))
        found.kind = "retriever" if found.passages is not None else found.kind
    usage = parsed_object(_get(given, "usageDetails")) or parsed_object(given.get("usage"))
    usage = usage or {name: _get(given, name) for name in ("promptTokens", "completionTokens")}
    found.tokens_in, found.tokens_out = usage_of(usage)
    total = parsed_object(_get(given, "costDetails")).get("total")
    found.cost_usd = usd(total if total is not None else _get(given, "calculatedTotalCost", "totalCost"))
    if str(given.get("level")).upper() == "ERROR":
        found.error = word(_get(given, "statusMessage")) or "the observation ended in an error"
    found.first_token_ns = moment_ns(_get(given, "completionStartTime"))
    if found.first_token_ns is None and found.start_ns is not None:
        found.first_token_ns = later_ns(found.start_ns, amount(_get(given, "timeToFirstToken")))
    return found


def feedback(scores: list[Record]) -> int | None:
    """Return the vote of the user: 5 for the answer, 1 against it; None if there is none, or both."""
    votes = set()
    for score in scores:
        value = next(
            (score[name] for name in ("value", "stringValue", "string_value") if score.get(name) is not None), None
        )
        votes.add(read_named_vote(str(score.get("name")), value))
    votes.discard(None)
    return votes.pop() if len(votes) == 1 else None


def _scores(given: Mapping[str, Any]) -> list[Record]:
    """Return the scores of a trace: objects, or a column each that holds a list, as pages export them to CSV."""
    scores = [one for one in listed(given.get("scores")) if isinstance(one, dict)]
    for name, value in given.items():
        if is_of_users(name):
            value = parsed(value)
            scores += [{"name": name, "value": one} for one in (value if isinstance(value, list) else [value])]
    return scores


def _said(found: Span, given: Mapping[str, Any]) -> None:
    """Fills in what traces and observations both have."""
    found.question, found.history = question_in(given.get("input"))
    found.answer = answer_in(given.get("output"))
    found.user, found.session = word(_get(given, "userId")), word(_get(given, "sessionId"))
    found.score = feedback(_scores(given))
    found.reference = reference_in(given.get("metadata"), given)


def _get(given: Mapping[str, Any], *names: str) -> Any:
    return next(
        (given[form] for name in names for form in (name, snake(name)) if given.get(form) not in (None, "")), None
    )
