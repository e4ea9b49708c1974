"""How scores are written: OpenTelemetry's event `gen_ai.evaluation.result`, and Langfuse's event `score-create`."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib.metadata import version
from typing import Any, NamedTuple

AT_ONCE = 200
"""Scores a request; of Langfuse none may have more than 3.5 MB."""
LONGEST = 4_000
"""Characters of a reason."""
FAILED = ("sut_error", "judge_error", "parse_error", "skipped_budget")
INFO = 9
"""OpenTelemetry's number of the severity."""


class Score(NamedTuple):
    """One value of one case, and what it belongs to; without a value, why there is none."""

    id: str
    """The same for the same value of the same evaluation, so that a second import changes nothing."""
    evaluation_id: str
    case_id: str
    at: datetime
    trace_id: str
    span_id: str | None
    name: str
    value: float | None
    status: str
    why: str | None
    """What the judge said, or why nothing was measured."""


def otlp_ids(trace_id: str | None, span_id: str | None) -> tuple[str | None, str | None]:
    """The ids as OpenTelemetry has them, 32 and 16 hexadecimal digits; None for what is of another form."""
    of_trace, of_span = ((text or "").replace("-", "").lower() for text in (trace_id, span_id))
    return (
        of_trace if re.fullmatch("[0-9a-f]{32}", of_trace) else None,
        of_span if re.fullmatch("[0-9a-f]{16}", of_span) else None,
    )


def otlp(scores: Iterable[Score]) -> Iterator[str]:
    """Requests to export logs, as a collector reads them from a file: one event a score, in the span that it is about.

    What was not measured has no score: its label is the status of the case, its explanation the reason.
    """
    scope = {"name": "yarus", "version": version("yarus")}
    resource = {"attributes": _attributes({"service.name": "yarus"})}
    for some in _portions(scores):
        records = [_event(score) for score in some]
        yield _line({"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": records}]}]})


def langfuse(scores: Iterable[Score]) -> Iterator[str]:
    """Requests to `POST /api/public/ingestion`: one event a score; what was not measured has none."""
    for some in _portions(score for score in scores if score.value is not None):
        yield _line({"batch": [_creation(score) for score in some]})


def _event(score: Score) -> dict[str, Any]:
    attributes = {
        "gen_ai.evaluation.name": score.name,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": None if score.value is not None else score.status,
        "gen_ai.evaluation.explanation": _cut(score.why),
        "error.type": score.status if score.value is None and score.status in FAILED else None,
        "yarus.evaluation.id": score.evaluation_id,
        "yarus.case.id": score.case_id,
        "yarus.score.id": score.id,
    }
    ns = str(int(score.at.timestamp() * 1_000_000) * 1_000)
    return {
        "timeUnixNano": ns,
        "observedTimeUnixNano": ns,
        "severityNumber": INFO,
        "eventName": "gen_ai.evaluation.result",
        "attributes": _attributes(attributes),
        "traceId": score.trace_id,
        **({"spanId": score.span_id} if score.span_id else {}),
    }


def _creation(score: Score) -> dict[str, Any]:
    body = {
        "id": score.id,
        "traceId": score.trace_id,
        "observationId": score.span_id,
        "name": score.name,
        "value": score.value,
        "dataType": "NUMERIC",
        "comment": _cut(score.why),
        "metadata": {"evaluation": score.evaluation_id, "case": score.case_id},
    }
    known = {name: value for name, value in body.items() if value is not None}
    return {"id": score.id, "timestamp": score.at.isoformat(), "type": "score-create", "body": known}


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP's JSON types them, without those that have no value."""
    return [
        {"key": key, "value": {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}}
        for key, value in values.items()
        if value is not None
    ]


def _portions(scores: Iterable[Score]) -> Iterator[list[Score]]:
    some: list[Score] = []
    for score in scores:
        some.append(score)
        if len(some) == AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _line(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
