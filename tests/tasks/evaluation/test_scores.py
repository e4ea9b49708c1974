"""Exported scores for OpenTelemetry and Langfuse: their field names, joined by id; unmeasured cases have no score."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from yarus.tasks.evaluation.scores import (
    MAX_REASON_LENGTH,
    REQUEST_SIZE,
    TraceScore,
    format_langfuse,
    format_otlp,
    otlp_ids,
)

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"


def make_score(**more: Any) -> TraceScore:
    values: dict[str, Any] = {
        "id": "7d7c1d0e-0000-5000-8000-000000000000",
        "evaluation_id": "tier3-1",
        "case_id": "bot:1",
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "trace_id": TRACE,
        "span_id": SPAN,
        "name": "faithfulness",
        "value": 0.75,
        "status": "ok",
        "why": "Две трети верны.",
    }
    return TraceScore(**values | more)


def read_events(*scores: TraceScore) -> list[dict[str, Any]]:
    return [
        record
        for line in format_otlp(scores)
        for record in json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    ]


def test_otlp_event_has_standard_names_and_types() -> None:
    (event,) = read_events(make_score())
    attributes = {attribute["key"]: attribute["value"] for attribute in event.pop("attributes")}
    assert event == {
        "timeUnixNano": "1767225600000000000",
        "observedTimeUnixNano": "1767225600000000000",
        "severityNumber": 9,
        "eventName": "gen_ai.evaluation.result",
        "traceId": TRACE,
        "spanId": SPAN,
    }
    assert attributes == {
        "gen_ai.evaluation.name": {"stringValue": "faithfulness"},
        "gen_ai.evaluation.score.value": {"doubleValue": 0.75},
        "gen_ai.evaluation.explanation": {"stringValue": "Две трети верны."},
        "yarus.evaluation.id": {"stringValue": "tier3-1"},
        "yarus.case.id": {"stringValue": "bot:1"},
        "yarus.score.id": {"stringValue": "7d7c1d0e-0000-5000-8000-000000000000"},
    }
    assert "spanId" not in read_events(make_score(span_id=None))[0]


@pytest.mark.parametrize(
    ("status", "error"), [("judge_error", "judge_error"), ("sut_error", "sut_error"), ("sut_refusal", None)]
)
def test_otlp_event_of_unmeasured_case_has_label_and_reason(status: str, error: str | None) -> None:
    unmeasured = make_score(value=None, status=status, why="HTTP 500")
    (event,) = read_events(unmeasured)
    attributes = {attribute["key"]: next(iter(attribute["value"].values())) for attribute in event["attributes"]}
    assert "gen_ai.evaluation.score.value" not in attributes
    assert attributes["gen_ai.evaluation.score.label"] == status
    assert (attributes["gen_ai.evaluation.explanation"], attributes.get("error.type")) == ("HTTP 500", error)
    assert list(format_langfuse([unmeasured])) == []


def test_langfuse_event_has_standard_names() -> None:
    (line,) = format_langfuse([make_score()])
    ((event,),) = json.loads(line).values()
    assert event == {
        "id": "7d7c1d0e-0000-5000-8000-000000000000",
        "timestamp": "2026-01-01T00:00:00+00:00",
        "type": "score-create",
        "body": {
            "id": "7d7c1d0e-0000-5000-8000-000000000000",
            "traceId": TRACE,
            "observationId": SPAN,
            "name": "faithfulness",
            "value": 0.75,
            "dataType": "NUMERIC",
            "comment": "Две трети верны.",
            "metadata": {"evaluation": "tier3-1", "case": "bot:1"},
        },
    }


def test_requests_stay_below_size_limit() -> None:
    scores = [make_score(why="ы" * 10 * MAX_REASON_LENGTH)] * (2 * REQUEST_SIZE + 1)
    for form in (format_otlp, format_langfuse):
        lines = list(form(iter(scores)))
        assert len(lines) == 3
        assert all(len(line.encode()) < 3_500_000 for line in lines)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ((TRACE, SPAN), (TRACE, SPAN)),
        ((TRACE.upper(), None), (TRACE, None)),
        (("5b8efff7-9803-8103-d269-b633813fc60c", "root"), (TRACE, None)),  # Langfuse's own ids were UUIDs
        (("run-17", SPAN), (None, SPAN)),
        ((None, None), (None, None)),
    ],
)
def test_otlp_ids_normalises_or_drops_ids(ids: Any, expected: Any) -> None:
    assert otlp_ids(*ids) == expected
