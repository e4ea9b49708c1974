"""Spans that no tracer should write, and some do. Imported by full name."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

TRACE, SPAN = "ab" * 16, "cd" * 8
DEEP = 3_000


def deep_list(levels: int = DEEP) -> list[Any]:
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
    """A value that contains itself."""
    if kind == "list":
        value: list[Any] = []
        value += [value, value]
        return value
    found: dict[str, Any] = {}
    found["input"] = found
    return found


def span(attributes: Any = None, **more: Any) -> dict[str, Any]:
    """A span that asks and answers, unless told otherwise."""
    asked = {"openinference.span.kind": "CHAIN", "input.value": "Как пройти?", "output.value": "Прямо."}
    known = {"traceId": TRACE, "spanId": SPAN, "startTimeUnixNano": "1772000000000000000", "attributes": asked}
    return known | ({} if attributes is None else {"attributes": attributes}) | more


def observation(**more: Any) -> dict[str, Any]:
    return {"id": SPAN, "traceId": TRACE, "type": "SPAN", "input": "Как пройти?", "output": "Прямо."} | more


def trace(**more: Any) -> dict[str, Any]:
    return {"id": TRACE, "timestamp": "2026-03-01T10:00:00Z", "input": "Как пройти?", "output": "Прямо."} | more


def run(**more: Any) -> dict[str, Any]:
    known = {"id": SPAN, "trace_id": TRACE, "run_type": "chain", "inputs": {"question": "Как пройти?"}}
    return known | {"outputs": {"answer": "Прямо."}} | more


def record(**more: Any) -> dict[str, Any]:
    return {"record_id": TRACE, "input": "Как пройти?", "output": "Прямо.", "ts": "2026-03-01", "total_cost": 0} | more


def documents(*given: Any) -> dict[str, Any]:
    """A retriever's attributes."""
    kind = {"openinference.span.kind": "RETRIEVER", "input.value": "Как пройти?"}
    return span(kind | {"retrieval.documents": list(given)})


def asks(value: Any, **more: Any) -> dict[str, Any]:
    return span({"openinference.span.kind": "CHAIN", "input.value": value, "output.value": "Прямо.", **more})


HOSTILE: dict[str, Any] = {
    "numbered keys": span({"retrieval.documents.0.document.content": "а", "retrieval.documents.999999999.x": "б"}),
    "numbered keys of digits that are no numbers": documents({"²": 1}, {"①": {"content": "а"}}),
    "numbered key with thousands of digits": span({f"retrieval.documents.{'9' * 5_000}.document.content": "а"}),
    "scalar, then an object": asks("Как?", **{"a": 1, "a.b": 2, "a.b.c": 3, "llm": "x", "llm.token_count.prompt": 1}),
    "object, then a scalar": asks("Как?", **{"input.value.x": 1, "output.value.y": {"z": 1}, "metadata.a": 1}),
    "object against a list": asks("Как?", **{"metadata": [1], "metadata.reference": "Прямо", "metadata.0": {}}),
    "huge seconds": span(startTimeUnixNano=1e305, endTimeUnixNano=1e308),
    "huge seconds as text": span(startTimeUnixNano="1e305", endTimeUnixNano="9" * 5_000),
    "huge seconds to the first token": asks("Как?", **{"gen_ai.response.time_to_first_chunk": 1e305}),
    "huge latency": trace(latency=1e305),
    "huge latency of an observation": observation(startTime="2026-03-01", latency=1e15, timeToFirstToken=1e300),
    "huge latency of a record": record(latency=float("1e290")),
    "numbers that are none": asks("Как?", **{"llm.token_count.prompt": float("nan"), "llm.cost.total": float("inf")}),
    "negative numbers": asks("Как?", **{"llm.token_count.prompt": -5, "llm.cost.total": -1}),
    "huge costs": observation(type="GENERATION", costDetails={"total": 1e305}, usageDetails={"input": 1e300}),
    "costs whose sum is infinite": trace(
        observations=[{"id": str(n), "type": "GENERATION", "totalCost": 1.7e308} for n in range(4)]
    ),
    "NaN ids": span(traceId=float("nan"), spanId=float("nan")),
    "NaT and NA": span(parentSpanId=pd.NA, startTimeUnixNano=pd.NaT, status=float("nan")),
    "surrogate in the trace id": span(traceId="t\ud800"),
    "surrogate in the span id": span(spanId="s\udfff"),
    "surrogate in the parent": span(parentSpanId="p\ud800"),
    "surrogate in the question": asks("Как \ud83d?"),
    "surrogate in the answer": span({"input.value": "Как?", "output.value": "\udc00"}),
    "surrogate in a name": asks("Как?", **{"\ud800.x": 1, "user.id": "u\ud800", "session.id": "s\ud800"}),
    "surrogate in a passage": documents({"document": {"content": "текст \ud800", "id": "d\ud800"}}),
    "surrogate in JSON": observation(input='{"question": "\\ud800"}'),
    "surrogate in an error": span({"input.value": "Как?"}, status={"code": 2, "message": "\ud800"}),
    "NUL in the id": span(traceId="a\0b"),
    "NUL in the question": asks("Как\0?"),
    "date after the last": span(startTimeUnixNano="9999-12-31T23:59:59-14:00"),
    "date before the first": span(startTimeUnixNano="0001-01-01T00:00:00+14:00", endTimeUnixNano=-1),
    "date of another calendar": trace(timestamp="2026-13-45T99:99:99Z"),
    "date that is a date": span(startTimeUnixNano=date.max, endTimeUnixNano=datetime.max),
    "date with an odd zone": span(startTimeUnixNano=datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=-23)))),
    "date of pandas": span(startTimeUnixNano=pd.Timestamp.max, endTimeUnixNano=np.datetime64("NaT")),
    "long hexadecimal ids": span(traceId="a" * 100_000, spanId="b" * 100_000),
    "long id of an observation": observation(id="я" * 4_000),
    "long id of a passage": documents({"document": {"id": "d" * 10_000, "content": "текст"}}),
    "long id of a session": asks("Как?", **{"session.id": "s" * 100_000, "user.id": "u" * 100_000}),
    "deep attributes": span({"input.value": "Как?", "x": deep_object()}),
    "deep list": span({"input.value": deep_list()}),
    "deep names": asks("Как?", **{".".join("a" * DEEP): 1}),
    "deep JSON": observation(input="[" * DEEP + "]" * DEEP, output='{"a":' * DEEP + "1" + "}" * DEEP),
    "JSON almost too deep": observation(input='{"input":' * 60 + '"Как?"' + "}" * 60),
    "deep document": deep_list(),
    "deep object": deep_object() | {"spanId": SPAN, "traceId": TRACE},
    "deep requests": {"data": {"data": deep_list()}},
    "endless list": span({"input.value": endless("list")}),
    "endless object": observation(input=endless("object")),
    "bytes": asks(b"\xff\xfe", output=b"\x00"),
    "bytes as ids": span(traceId=b"\xab" * 16, spanId=bytearray(b"\xcd" * 8)),
    "names that are no texts": span({1: "x", None: 2, (1, 2): 3, b"input.value": "Как?", float("nan"): 4}) | {7: 8},
    "row with a name that is none": {None: ["x"], **observation()},
    "huge whole numbers": asks("Как?", **{"llm.token_count.prompt": 10**5_000, "user.id": 10**400}),
    "huge number as an id": span(traceId=10**400),
    "huge number in JSON": observation(usage='{"input": 0x' + "f" * 5_000 + "}"),
    "numbers of other kinds": asks("Как?", x=Decimal("sNaN"), y=1j, z=np.float32("inf"), w=np.longdouble(1)),
    "lists for objects": span([], status=[], context=[], events={}, resource=[], name=[], kind=[]),
    "objects for lists": {"resourceSpans": {}, "x": 1},
    "requests that are none": {"resourceSpans": 5},
    "requests of nothing": {"resourceSpans": [None, 7, {"scopeSpans": [{"spans": [None, 7, "x", []]}]}]},
    "attributes that are a text": span("none"),
    "attributes without values": span([{"key": None}, {"value": 1}, 7, {"key": "input.value", "value": {"x": {}}}]),
    "events that are none": span(events=[None, {"name": "first token", "timeUnixNano": {}}, 7]),
    "context of nothing": span(context={"trace_id": [], "span_id": {}}),
    "messages that are none": asks([{"role": [], "content": {}}, {"message": {"kwargs": []}}, {"kwargs": 7}]),
    "arguments that are none": observation(input={"args": {}, "kwargs": []}, output={"choices": [{}], "messages": 7}),
    "passages that are none": documents({"kwargs": []}, {"document": []}, {"metadata": 7, "content": 7}, [], 7, None),
    "observations that are none": trace(observations={"0": 7}, scores=[7, {"name": None}], metadata=[]),
    "scores that are none": trace(**{"user-feedback": [float("nan"), {}, [1], "up"], "thumbs": "{"}),
    "run of nothing": run(inputs=[], outputs=7, extra=[], feedback_stats={"thumb": 1}, id=None, run_id=7),
    "run without an id": run(id="", run_id=None),
    "run with a usage that is none": run(run_type="llm", outputs={"llm_output": {"token_usage": [1]}}),
    "record of nothing": record(record_json='{"calls": [7, {"stack": [7]}, {"stack": [{"method": []}]}]}'),
    "record with a call of nothing": record(
        record_json={"calls": [{"stack": [{"method": {"name": "retrieve"}}], "args": 7, "rets": [[]], "perf": 1}]}
    ),
    "parents in a circle": [span(parentSpanId="ef" * 8), span(spanId="ef" * 8, parentSpanId=SPAN)],
    "own parent": span(parentSpanId=SPAN),
    "parent of another kind": span(parentSpanId={"span_id": []}),
    "arrays": span({"input.value": np.array([["x"]], dtype=object), "output.value": np.array(7)}),
    "array of spans": np.array([span(), None, 7], dtype=object),
    "dates as names": span({datetime(2026, 3, 1, tzinfo=UTC): 1}),
    "object of another kind": asks(object()),
    "a text": "[]",
    "nothing": None,
}  # fmt: skip
"""Name -> a document."""
