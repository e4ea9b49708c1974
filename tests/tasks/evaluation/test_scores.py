"""Scores as OpenTelemetry and Langfuse take them: by their names, joined by id; what was not measured is none."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from yarus.tasks.evaluation.scores import AT_ONCE, LONGEST, Score, langfuse, otlp, otlp_ids

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"


def score(**more: Any) -> Score:
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
    return Score(**values | more)


def events(*scores: Score) -> list[dict[str, Any]]:
    return [
        record for line in otlp(scores) for record in json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    ]


def test_an_event_of_opentelemetry_has_its_names_and_types() -> None:
    (event,) = events(score())
    attributes = {one["key"]: one["value"] for one in event.pop("attributes")}
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
    assert "spanId" not in events(score(span_id=None))[0]


@pytest.mark.parametrize(
    ("status", "error"), [("judge_error", "judge_error"), ("sut_error", "sut_error"), ("sut_refusal", None)]
)
def test_what_was_not_measured_is_a_label_with_its_reason_and_no_number(status: str, error: str | None) -> None:
    lost = score(value=None, status=status, why="HTTP 500")
    (event,) = events(lost)
    attributes = {one["key"]: next(iter(one["value"].values())) for one in event["attributes"]}
    assert "gen_ai.evaluation.score.value" not in attributes
    assert attributes["gen_ai.evaluation.score.label"] == status
    assert (attributes["gen_ai.evaluation.explanation"], attributes.get("error.type")) == ("HTTP 500", error)
    assert list(langfuse([lost])) == []


def test_a_score_of_langfuse_has_its_names() -> None:
    (line,) = langfuse([score()])
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


def test_requests_are_small_enough_to_be_taken() -> None:
    scores = [score(why="ы" * 10 * LONGEST)] * (2 * AT_ONCE + 1)
    for form in (otlp, langfuse):
        lines = list(form(iter(scores)))
        assert len(lines) == 3
        assert all(len(line.encode()) < 3_500_000 for line in lines)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((TRACE, SPAN), (TRACE, SPAN)),
        ((TRACE.upper(), None), (TRACE, None)),
        (("5b8efff7-9803-8103-d269-b633813fc60c", "root"), (TRACE, None)),  # Langfuse's own ids were UUIDs
        (("run-17", SPAN), (None, SPAN)),
        ((None, None), (None, None)),
    ],
)
def test_ids_are_those_of_opentelemetry_or_none(given: Any, expected: Any) -> None:
    assert otlp_ids(*given) == expected
