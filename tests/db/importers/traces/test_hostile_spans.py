"""One broken span costs at most itself: no traceback, and whatever else is there is loaded."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from tests.support.traces.files import langfuse, otlp, read_rows, request, turn, write
from tests.support.traces.hostile import HOSTILE, TRACE, deep_list, observation, record, run, span, trace
from yarus.db.errors import InputError
from yarus.db.importers import traces
from yarus.db.loading.fill import LoadReport, fill
from yarus.db.loading.staging import Rejected, Row

GOOD = turn(0)
LONGEST_PROBLEM = 1_500


def read(*documents: Any) -> traces.Stream:
    return traces.read_documents((f"row {number}", one) for number, one in enumerate(documents, start=1))


def load(engine: Engine, documents: Iterable[Any], name: str = "hostile") -> LoadReport:
    return fill(engine, name, read(*documents), language="ru", origin="rows")


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
def test_read_documents_keeps_others_beside_hostile_span(document: Any) -> None:
    stream = read(document, *otlp(GOOD))
    list(stream.chunks)
    rows = list(stream.questions)
    list(stream.annotations)
    kept = [row for row in rows if isinstance(row, Row) and row.values["id"] == GOOD["trace_id"]]
    assert [(row.values["question"], row.values["answer"]) for row in kept] == [(GOOD["question"], GOOD["answer"])]
    json.dumps([row.values["recorded"] for row in rows if isinstance(row, Row)], allow_nan=False)
    assert len(rows) > 1 or stream.problems
    assert all(problem.encode() and len(problem) < LONGEST_PROBLEM for problem in stream.problems)


@pytest.mark.slow("breadth: every hostile span is stored")
def test_fill_stores_others_beside_every_hostile_span(engine: Engine) -> None:
    assert len(HOSTILE) >= 40
    for number, (name, document) in enumerate(HOSTILE.items(), start=1):
        good = turn(number)
        report = load(engine, [document, *otlp(good)])
        assert report.questions.added >= 1, name
        assert all(problem.encode() for problem in report.problems), name


def test_fill_stores_all_hostile_spans_at_once(engine: Engine) -> None:
    apart = [
        one | {key: f"{number:032x}" for key in ("traceId", "trace_id", "record_id") if one.get(key) == TRACE}
        for number, one in enumerate(one for one in HOSTILE.values() if isinstance(one, dict))
    ]
    report = load(engine, [*apart, *otlp(GOOD)], "hostile_together")
    assert report.questions.added > 30
    assert any("spans cannot be read, not loaded: row " in problem for problem in report.problems)
    assert any("objects are no traces, not loaded: row " in problem for problem in report.problems)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (span(traceId="a" * 301), "the trace id has 301 characters, at most 300 can be stored; is it another field?"),
        (span(spanId="\ud800"), "the span id '\\ud800' has half of a surrogate pair, which PostgreSQL cannot store"),
        (observation(id="a\0"), "the span id 'a\\x00' has a NUL character, which PostgreSQL cannot store"),
        (span({"x": deep_list()}), "nested in more than 64 levels, or without end"),
        (span({"x": 10**5_000}), "a number with thousands of digits, or nested too deeply to be read"),
    ],
)
def test_broken_span_is_counted_with_place_and_reason(document: Any, reason: str) -> None:
    assert read(*otlp(GOOD), document, document).problems == [f"2 spans cannot be read, not loaded: row 4: {reason}"]


def test_rejected_document_is_counted_with_its_place() -> None:
    stream = read(*otlp(GOOD), Rejected("sheet 1, row 7", "no cells"))
    assert stream.problems == ["1 spans cannot be read, not loaded: sheet 1, row 7: no cells"]


def test_only_broken_spans_are_an_error_with_the_reason() -> None:
    with pytest.raises(InputError, match=r"^x\.csv: no traces: .*; row 1: the trace id has 400 characters"):
        traces.read_documents([("row 1", span(traceId="a" * 400))], "x.csv")


def test_line_that_is_too_deep_does_not_end_the_load(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [request(otlp(GOOD))])
    path.write_text(path.read_text() + "[" * 100_000 + "]" * 100_000 + "\n" + '{"x": ' + "9" * 5_000 + "}\n")
    _, questions, _, problems = read_rows(path)
    assert len(questions) == 1
    assert problems == [
        "2 spans cannot be read, not loaded: a.jsonl:2: a number with thousands of digits, or nested too deeply to be "
        "read"
    ]


def test_broken_observation_leaves_the_rest_of_its_trace() -> None:
    document = langfuse(GOOD)
    document["observations"] += [{"id": "x", "input": deep_list()}, 7, {"id": "a" * 400}]
    stream = read(document)
    list(stream.chunks)
    (row,) = stream.questions
    assert isinstance(row, Row)
    assert row.values["recorded"]["contexts"] == GOOD["passages"]
    assert [problem.split(":")[0] for problem in stream.problems] == [
        "1 objects are no traces, not loaded",
        "2 spans cannot be read, not loaded",
    ]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=9) | st.datetimes()
SCALARS |= st.text(st.characters(), max_size=9)
SCALARS |= st.sampled_from(
    ["\ud800", "[", '{"args": [', '{"args": ["Как?"]}', "1e305", "9" * 40, "<a.B object at 0x7f>"]
)
NAMES = st.sampled_from([
    "input.value", "output.value", "input", "output", "args", "kwargs", "question", "messages", "role", "content",
    "retrieval.documents", "documents", "document.content", "id", "metadata", "reference", "0", "999999999", "", ".",
    "llm.token_count.prompt", "latency", "timestamp", "startTime", "start_time", "endTime", "user.id", "session.id",
    "status", "events", "context", "attributes", "choices", "generations", "kwargs.x", "traceId", "span_id",
    "openinference.span.kind", "usage", "total", "user-feedback", "scores", "observations", "rets", "calls", "value",
]) | st.text(max_size=4)  # fmt: skip
VALUES = st.recursive(
    SCALARS | st.decimals(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | SCALARS, inner, max_size=5),
    max_leaves=12,
)
FIELDS = st.dictionaries(NAMES, VALUES | VALUES.map(repr), max_size=6)
FORMS = st.sampled_from([span, observation, trace, run, record])


ANY_SPAN = st.builds(lambda form, fields: form() | fields, FORMS, FIELDS)
ANY_ATTRIBUTES = st.builds(lambda fields: span(fields), FIELDS)


@pytest.mark.slow("simulation: 150 examples")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANY_SPAN | ANY_ATTRIBUTES | VALUES, max_size=4))
def test_read_documents_never_fails_whatever_is_given(documents: list[Any]) -> None:
    stream = read(*documents, *otlp(GOOD))
    list(stream.chunks)
    rows = list(stream.questions)
    labels = list(stream.annotations)
    assert GOOD["trace_id"] in [row.values["id"] for row in rows if isinstance(row, Row)]
    recorded = [row.values["recorded"] for row in rows if isinstance(row, Row)]
    json.dumps(recorded, allow_nan=False)
    assert len({tuple(row.values) for row in labels if isinstance(row, Row)}) <= 1


@pytest.mark.slow("simulation: 25 examples are stored")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents=st.lists(ANY_SPAN | ANY_ATTRIBUTES, max_size=8))
def test_fill_never_fails_whatever_is_given(engine: Engine, documents: list[Any]) -> None:
    report = load(engine, [*documents, *otlp(GOOD)], "anything")
    assert report.questions.read >= 1
