"""Test that a broken span costs at most itself: no traceback, and everything else is loaded."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from tests.support.traces.files import (
    make_export_request,
    make_langfuse_trace,
    make_otlp_spans,
    make_turn,
    read_rows,
    write_json_lines,
)
from tests.support.traces.hostile import (
    HOSTILE_DOCUMENTS,
    TRACE,
    make_deep_list,
    make_langsmith_run,
    make_observation,
    make_span,
    make_trace,
    make_trulens_record,
)
from yarus.db.errors import InputError
from yarus.db.importers import traces
from yarus.db.loading.load_rows import LoadReport, load_rows
from yarus.db.loading.staging import IncomingRow, Rejected

GOOD = make_turn(0)
MAX_PROBLEM_LENGTH = 1_500


def read_stream(*documents: Any) -> traces.RowStream:
    return traces.read_documents((f"row {number}", document) for number, document in enumerate(documents, start=1))


def load_documents(engine: Engine, documents: Iterable[Any], name: str = "hostile") -> LoadReport:
    return load_rows(engine, name, read_stream(*documents), language="ru", origin="rows")


@pytest.mark.parametrize("document", HOSTILE_DOCUMENTS.values(), ids=HOSTILE_DOCUMENTS)
def test_read_documents_keeps_others_beside_hostile_span(document: Any) -> None:
    stream = read_stream(document, *make_otlp_spans(GOOD))
    list(stream.chunks)
    rows = list(stream.questions)
    list(stream.annotations)
    good_rows = [row for row in rows if isinstance(row, IncomingRow) and row.values["id"] == GOOD["trace_id"]]
    assert [(row.values["question"], row.values["answer"]) for row in good_rows] == [(GOOD["question"], GOOD["answer"])]
    json.dumps([row.values["recorded"] for row in rows if isinstance(row, IncomingRow)], allow_nan=False)
    assert len(rows) > 1 or stream.problems
    assert all(problem.encode() and len(problem) < MAX_PROBLEM_LENGTH for problem in stream.problems)


@pytest.mark.slow("breadth: every hostile span is stored")
def test_fill_stores_others_beside_each_hostile_span(engine: Engine) -> None:
    assert len(HOSTILE_DOCUMENTS) >= 40
    for number, (name, document) in enumerate(HOSTILE_DOCUMENTS.items(), start=1):
        good = make_turn(number)
        report = load_documents(engine, [document, *make_otlp_spans(good)])
        assert report.questions.added >= 1, name
        assert all(problem.encode() for problem in report.problems), name


def test_fill_stores_all_hostile_spans_at_once(engine: Engine) -> None:
    documents = [
        document | {key: f"{number:032x}" for key in ("traceId", "trace_id", "record_id") if document.get(key) == TRACE}
        for number, document in enumerate(
            document for document in HOSTILE_DOCUMENTS.values() if isinstance(document, dict)
        )
    ]
    report = load_documents(engine, [*documents, *make_otlp_spans(GOOD)], "hostile_together")
    assert report.questions.added > 30
    assert any("spans cannot be read, not loaded: row " in problem for problem in report.problems)
    assert any("objects are no traces, not loaded: row " in problem for problem in report.problems)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (
            make_span(traceId="a" * 301),
            "the trace id has 301 characters, at most 300 can be stored; is it another field?",
        ),
        (
            make_span(spanId="\ud800"),
            "the span id '\\ud800' has half of a surrogate pair, which PostgreSQL cannot store",
        ),
        (make_observation(id="a\0"), "the span id 'a\\x00' has a NUL character, which PostgreSQL cannot store"),
        (make_span({"x": make_deep_list()}), "nested in more than 64 levels, or without end"),
        (make_span({"x": 10**5_000}), "a number with thousands of digits, or nested too deeply to be read"),
    ],
)
def test_broken_span_is_counted_with_place_and_reason(document: Any, reason: str) -> None:
    assert read_stream(*make_otlp_spans(GOOD), document, document).problems == [
        f"2 spans cannot be read, not loaded: row 4: {reason}"
    ]


def test_rejected_document_is_counted_with_its_place() -> None:
    stream = read_stream(*make_otlp_spans(GOOD), Rejected("sheet 1, row 7", "no cells"))
    assert stream.problems == ["1 spans cannot be read, not loaded: sheet 1, row 7: no cells"]


def test_only_broken_spans_are_an_error_with_the_reason() -> None:
    with pytest.raises(InputError, match=r"^x\.csv: no traces: .*; row 1: the trace id has 400 characters"):
        traces.read_documents([("row 1", make_span(traceId="a" * 400))], "x.csv")


def test_too_deep_line_does_not_end_the_load(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "a.jsonl", [make_export_request(make_otlp_spans(GOOD))])
    path.write_text(path.read_text() + "[" * 100_000 + "]" * 100_000 + "\n" + '{"x": ' + "9" * 5_000 + "}\n")
    _, questions, _, problems = read_rows(path)
    assert len(questions) == 1
    assert problems == [
        "2 spans cannot be read, not loaded: a.jsonl:2: a number with thousands of digits, or nested too deeply to be "
        "read"
    ]


def test_broken_observation_leaves_the_rest_of_its_trace() -> None:
    document = make_langfuse_trace(GOOD)
    document["observations"] += [{"id": "x", "input": make_deep_list()}, 7, {"id": "a" * 400}]
    stream = read_stream(document)
    list(stream.chunks)
    (row,) = stream.questions
    assert isinstance(row, IncomingRow)
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
FORMS = st.sampled_from([make_span, make_observation, make_trace, make_langsmith_run, make_trulens_record])


ANY_SPAN = st.builds(lambda form, fields: form() | fields, FORMS, FIELDS)
ANY_ATTRIBUTES = st.builds(lambda fields: make_span(fields), FIELDS)


@pytest.mark.slow("simulation: 150 examples")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANY_SPAN | ANY_ATTRIBUTES | VALUES, max_size=4))
def test_read_documents_never_fails_for_random_input(documents: list[Any]) -> None:
    stream = read_stream(*documents, *make_otlp_spans(GOOD))
    list(stream.chunks)
    rows = list(stream.questions)
    labels = list(stream.annotations)
    assert GOOD["trace_id"] in [row.values["id"] for row in rows if isinstance(row, IncomingRow)]
    recorded = [row.values["recorded"] for row in rows if isinstance(row, IncomingRow)]
    json.dumps(recorded, allow_nan=False)
    assert len({tuple(row.values) for row in labels if isinstance(row, IncomingRow)}) <= 1


@pytest.mark.slow("simulation: 25 examples are stored")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents=st.lists(ANY_SPAN | ANY_ATTRIBUTES, max_size=8))
def test_fill_never_fails_for_random_input(engine: Engine, documents: list[Any]) -> None:
    report = load_documents(engine, [*documents, *make_otlp_spans(GOOD)], "anything")
    assert report.questions.read >= 1
