"""Spans that no tracer should write, but some do. Imported by full name."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

TRACE, SPAN = "ab" * 16, "cd" * 8
DEEP = 3_000


def make_deep_list(levels: int = DEEP) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def deep_object(levels: int = DEEP) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def endless(kind: str) -> Any:
    """Return a value that contains itself."""
    if kind == "list":
        value: list[Any] = []
        value += [value, value]
        return value
    recursive: dict[str, Any] = {}
    recursive["input"] = recursive
    return recursive


def make_span(attributes: Any = None, **more: Any) -> dict[str, Any]:
    """Return a span with a question and an answer, and these changes."""
    defaults = {"openinference.span.kind": "CHAIN", "input.value": "Как пройти?", "output.value": "Прямо."}
    span = {"traceId": TRACE, "spanId": SPAN, "startTimeUnixNano": "1772000000000000000", "attributes": defaults}
    return span | ({} if attributes is None else {"attributes": attributes}) | more


def make_observation(**more: Any) -> dict[str, Any]:
    return {"id": SPAN, "traceId": TRACE, "type": "SPAN", "input": "Как пройти?", "output": "Прямо."} | more


def make_trace(**more: Any) -> dict[str, Any]:
    return {"id": TRACE, "timestamp": "2026-03-01T10:00:00Z", "input": "Как пройти?", "output": "Прямо."} | more


def make_langsmith_run(**more: Any) -> dict[str, Any]:
    default_run = {"id": SPAN, "trace_id": TRACE, "run_type": "chain", "inputs": {"question": "Как пройти?"}}
    return default_run | {"outputs": {"answer": "Прямо."}} | more


def make_trulens_record(**more: Any) -> dict[str, Any]:
    return {"record_id": TRACE, "input": "Как пройти?", "output": "Прямо.", "ts": "2026-03-01", "total_cost": 0} | more


def retrieval(*passages: Any) -> dict[str, Any]:
    """Return a span with a retriever's attributes."""
    kind = {"openinference.span.kind": "RETRIEVER", "input.value": "Как пройти?"}
    return make_span(kind | {"retrieval.documents": list(passages)})


def query(value: Any, **more: Any) -> dict[str, Any]:
    return make_span({"openinference.span.kind": "CHAIN", "input.value": value, "output.value": "Прямо.", **more})


HOSTILE_DOCUMENTS: dict[str, Any] = {
    "numbered keys": make_span({"retrieval.documents.0.document.content": "а", "retrieval.documents.999999999.x": "б"}),
    "numbered keys of digits that are no numbers": retrieval({"²": 1}, {"①": {"content": "а"}}),
    "numbered key with thousands of digits": make_span({f"retrieval.documents.{'9' * 5_000}.document.content": "а"}),
    "scalar, then an object": query("Как?", **{"a": 1, "a.b": 2, "a.b.c": 3, "llm": "x", "llm.token_count.prompt": 1}),
    "object, then a scalar": query("Как?", **{"input.value.x": 1, "output.value.y": {"z": 1}, "metadata.a": 1}),
    "object against a list": query("Как?", **{"metadata": [1], "metadata.reference": "Прямо", "metadata.0": {}}),
    "huge seconds": make_span(startTimeUnixNano=1e305, endTimeUnixNano=1e308),
    "huge seconds as text": make_span(startTimeUnixNano="1e305", endTimeUnixNano="9" * 5_000),
    "huge seconds to the first token": query("Как?", **{"gen_ai.response.time_to_first_chunk": 1e305}),
    "huge latency": make_trace(latency=1e305),
    "huge latency of an observation": make_observation(startTime="2026-03-01", latency=1e15, timeToFirstToken=1e300),
    "huge latency of a record": make_trulens_record(latency=float("1e290")),
    "numbers that are none": query("Как?", **{"llm.token_count.prompt": float("nan"), "llm.cost.total": float("inf")}),
    "negative numbers": query("Как?", **{"llm.token_count.prompt": -5, "llm.cost.total": -1}),
    "huge costs": make_observation(type="GENERATION", costDetails={"total": 1e305}, usageDetails={"input": 1e300}),
    "costs whose sum is infinite": make_trace(
        observations=[{"id": str(n), "type": "GENERATION", "totalCost": 1.7e308} for n in range(4)]
    ),
    "NaN ids": make_span(traceId=float("nan"), spanId=float("nan")),
    "NaT and NA": make_span(parentSpanId=pd.NA, startTimeUnixNano=pd.NaT, status=float("nan")),
    "surrogate in the trace id": make_span(traceId="t\ud800"),
    "surrogate in the span id": make_span(spanId="s\udfff"),
    "surrogate in the parent": make_span(parentSpanId="p\ud800"),
    "surrogate in the question": query("Как \ud83d?"),
    "surrogate in the answer": make_span({"input.value": "Как?", "output.value": "\udc00"}),
    "surrogate in a name": query("Как?", **{"\ud800.x": 1, "user.id": "u\ud800", "session.id": "s\ud800"}),
    "surrogate in a passage": retrieval({"document": {"content": "текст \ud800", "id": "d\ud800"}}),
    "surrogate in JSON": make_observation(input='{"question": "\\ud800"}'),
    "surrogate in an error": make_span({"input.value": "Как?"}, status={"code": 2, "message": "\ud800"}),
    "NUL in the id": make_span(traceId="a\0b"),
    "NUL in the question": query("Как\0?"),
    "date after the last": make_span(startTimeUnixNano="9999-12-31T23:59:59-14:00"),
    "date before the first": make_span(startTimeUnixNano="0001-01-01T00:00:00+14:00", endTimeUnixNano=-1),
    "date of another calendar": make_trace(timestamp="2026-13-45T99:99:99Z"),
    "date that is a date": make_span(startTimeUnixNano=date.max, endTimeUnixNano=datetime.max),
    "date with an odd zone": make_span(startTimeUnixNano=datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=-23)))),
    "date of pandas": make_span(startTimeUnixNano=pd.Timestamp.max, endTimeUnixNano=np.datetime64("NaT")),
    "long hexadecimal ids": make_span(traceId="a" * 100_000, spanId="b" * 100_000),
    "long id of an observation": make_observation(id="я" * 4_000),
    "long id of a passage": retrieval({"document": {"id": "d" * 10_000, "content": "текст"}}),
    "long id of a session": query("Как?", **{"session.id": "s" * 100_000, "user.id": "u" * 100_000}),
    "deep attributes": make_span({"input.value": "Как?", "x": deep_object()}),
    "deep list": make_span({"input.value": make_deep_list()}),
    "deep names": query("Как?", **{".".join("a" * DEEP): 1}),
    "deep JSON": make_observation(input="[" * DEEP + "]" * DEEP, output='{"a":' * DEEP + "1" + "}" * DEEP),
    "JSON almost too deep": make_observation(input='{"input":' * 60 + '"Как?"' + "}" * 60),
    "deep document": make_deep_list(),
    "deep object": deep_object() | {"spanId": SPAN, "traceId": TRACE},
    "deep requests": {"data": {"data": make_deep_list()}},
    "endless list": make_span({"input.value": endless("list")}),
    "endless object": make_observation(input=endless("object")),
    "bytes": query(b"\xff\xfe", output=b"\x00"),
    "bytes as ids": make_span(traceId=b"\xab" * 16, spanId=bytearray(b"\xcd" * 8)),
    "names that are no texts": make_span({1: "x", None: 2, (1, 2): 3, b"input.value": "Как?", float("nan"): 4})
    | {7: 8},
    "row with a name that is none": {None: ["x"], **make_observation()},
    "huge whole numbers": query("Как?", **{"llm.token_count.prompt": 10**5_000, "user.id": 10**400}),
    "huge number as an id": make_span(traceId=10**400),
    "huge number in JSON": make_observation(usage='{"input": 0x' + "f" * 5_000 + "}"),
    "numbers of other kinds": query("Как?", x=Decimal("sNaN"), y=1j, z=np.float32("inf"), w=np.longdouble(1)),
    "lists for objects": make_span([], status=[], context=[], events={}, resource=[], name=[], kind=[]),
    "objects for lists": {"resourceSpans": {}, "x": 1},
    "requests that are none": {"resourceSpans": 5},
    "requests of nothing": {"resourceSpans": [None, 7, {"scopeSpans": [{"spans": [None, 7, "x", []]}]}]},
    "attributes that are a text": make_span("none"),
    "attributes without values": make_span(
        [{"key": None}, {"value": 1}, 7, {"key": "input.value", "value": {"x": {}}}]
    ),
    "events that are none": make_span(events=[None, {"name": "first token", "timeUnixNano": {}}, 7]),
    "context of nothing": make_span(context={"trace_id": [], "span_id": {}}),
    "messages that are none": query([{"role": [], "content": {}}, {"message": {"kwargs": []}}, {"kwargs": 7}]),
    "arguments that are none": make_observation(
        input={"args": {}, "kwargs": []}, output={"choices": [{}], "messages": 7}
    ),
    "passages that are none": retrieval({"kwargs": []}, {"document": []}, {"metadata": 7, "content": 7}, [], 7, None),
    "observations that are none": make_trace(observations={"0": 7}, scores=[7, {"name": None}], metadata=[]),
    "scores that are none": make_trace(**{"user-feedback": [float("nan"), {}, [1], "up"], "thumbs": "{"}),
    "run of nothing": make_langsmith_run(
        inputs=[], outputs=7, extra=[], feedback_stats={"thumb": 1}, id=None, run_id=7
    ),
    "run without an id": make_langsmith_run(id="", run_id=None),
    "run with a usage that is none": make_langsmith_run(run_type="llm", outputs={"llm_output": {"token_usage": [1]}}),
    "record of nothing": make_trulens_record(record_json='{"calls": [7, {"stack": [7]}, {"stack": [{"method": []}]}]}'),
    "record with a call of nothing": make_trulens_record(
        record_json={"calls": [{"stack": [{"method": {"name": "retrieve"}}], "args": 7, "rets": [[]], "perf": 1}]}
    ),
    "parents in a circle": [make_span(parentSpanId="ef" * 8), make_span(spanId="ef" * 8, parentSpanId=SPAN)],
    "own parent": make_span(parentSpanId=SPAN),
    "parent of another kind": make_span(parentSpanId={"span_id": []}),
    "arrays": make_span({"input.value": np.array([["x"]], dtype=object), "output.value": np.array(7)}),
    "array of spans": np.array([make_span(), None, 7], dtype=object),
    "dates as names": make_span({datetime(2026, 3, 1, tzinfo=UTC): 1}),
    "object of another kind": query(object()),
    "a text": "[]",
    "nothing": None,
}
"""Name -> a document."""
