"""Traces as tools write them: a request with retriever and model, in every format that is read. Imported by full name.

`turn` says what happened; `otlp`, `sdk` and `langfuse` write it down.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from yarus.db.importers import reader
from yarus.db.loading.staging import Row

Document = dict[str, Any]
NS = 10**9
START_NS = 1_772_000_000 * NS


def turn(i: int, **more: Any) -> Document:
    """A question about page i, what was retrieved for it, what was answered, and what that took."""
    passages = [
        {"id": f"c{n}", "text": f"Правило {n} велит сдать книгу {n} до мая.", "url": f"https://wiki.example/{n}"}
        for n in (i % 10, (i + 1) % 10)
    ]
    return {
        "trace_id": hashlib.md5(f"trace {i}".encode()).hexdigest(),  # noqa: S324 - ids of 16 bytes
        "question": f"Что велит правило {i}?",
        "answer": f"Правило {i} велит сдать книгу {i} до мая.",
        "passages": passages,
        "start_ns": START_NS + i * 60 * NS,
        "latency_ns": 1_500_000_000 + i * 1_000_000,
        "first_token_ns": 900_000_000,
        "tokens_in": 300 + i,
        "tokens_out": 20 + i,
        "cost_usd": 0.001 * (i + 1),
        "user": f"u{i % 3}",
        "session": f"s{i % 4}",
    } | more


def span_id(said: Document, name: str) -> str:
    return hashlib.md5(f"{said['trace_id']} {name}".encode()).hexdigest()[:16]  # noqa: S324


def steps(said: Document) -> list[Document]:
    """The three steps of a request: name, kind, parent, times, and attributes of OpenInference."""
    start, end = said["start_ns"], said["start_ns"] + said["latency_ns"]
    documents = {
        f"retrieval.documents.{place}.document.{name}": value
        for place, one in enumerate(said["passages"])
        for name, value in {
            "id": one["id"],
            "content": one["text"],
            "score": 1 / (place + 1),
            "metadata": json.dumps({"url": one["url"]}),
        }.items()
    }
    prompt = "Ответь по тексту.\n" + "\n".join(one["text"] for one in said["passages"]) + "\n" + said["question"]
    return [
        {
            "name": "rag",
            "kind": "CHAIN",
            "parent": None,
            "start": start,
            "end": end,
            "attributes": {
                "input.value": json.dumps({"question": said["question"]}, ensure_ascii=False),
                "input.mime_type": "application/json",
                "output.value": said["answer"],
                "session.id": said["session"],
                "user.id": said["user"],
            },
        },
        {
            "name": "retriever",
            "kind": "RETRIEVER",
            "parent": "rag",
            "start": start + 1_000_000,
            "end": start + 200_000_000,
            "attributes": {"input.value": said["question"], **documents},
        },
        {
            "name": "ChatOpenAI",
            "kind": "LLM",
            "parent": "rag",
            "start": start + 210_000_000,
            "end": end - 1_000_000,
            "first": start + said["first_token_ns"],
            "attributes": {
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": prompt,
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": said["answer"],
                "llm.token_count.prompt": said["tokens_in"],
                "llm.token_count.completion": said["tokens_out"],
                "llm.cost.total": said["cost_usd"],
            },
        },
    ]


def otlp(said: Document, *, ids: str = "hex", plain: bool = False) -> list[Document]:
    """The spans of a request as OTLP's JSON has them.

    Args:
        said: from `turn`.
        ids: `hex`, or `base64` as plain protobuf libraries write them.
        plain: attributes as a map instead of keys and typed values.
    """
    coded = (lambda text: base64.b64encode(bytes.fromhex(text)).decode()) if ids == "base64" else str
    spans = []
    for step in steps(said):
        attributes = {"openinference.span.kind": step["kind"], **step["attributes"]}
        span = {
            "traceId": coded(said["trace_id"]),
            "spanId": coded(span_id(said, step["name"])),
            "parentSpanId": coded(span_id(said, step["parent"])) if step["parent"] else "",
            "name": step["name"],
            "kind": 1,
            "startTimeUnixNano": str(step["start"]),
            "endTimeUnixNano": str(step["end"]),
            "attributes": attributes
            if plain
            else [{"key": key, "value": typed(value)} for key, value in attributes.items()],
            "status": {"code": 1},
        }
        if "first" in step:
            span["events"] = [{"timeUnixNano": str(step["first"]), "name": "First Token Stream Event"}]
        spans.append(span)
    return spans


def typed(value: Any) -> Document:
    """A value as OTLP writes it: 64-bit integers as text."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def request(spans: Iterable[Document]) -> Document:
    """Spans as one request to export traces."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "bot"}}]}
    return {
        "resourceSpans": [
            {"resource": resource, "scopeSpans": [{"scope": {"name": "openinference"}, "spans": list(spans)}]}
        ]
    }


def sdk(said: Document) -> list[Document]:
    """The spans of a request as Python's SDK prints them, attributes as a map."""
    return [
        {
            "name": step["name"],
            "context": {
                "trace_id": f"0x{said['trace_id']}",
                "span_id": f"0x{span_id(said, step['name'])}",
                "trace_state": "[]",
            },
            "kind": "SpanKind.INTERNAL",
            "parent_id": f"0x{span_id(said, step['parent'])}" if step["parent"] else None,
            "start_time": iso(step["start"]),
            "end_time": iso(step["end"]),
            "status": {"status_code": "OK"},
            "attributes": {"openinference.span.kind": step["kind"], **step["attributes"]},
            "events": [{"name": "First Token Stream Event", "timestamp": iso(step["first"])}]
            if "first" in step
            else [],
        }
        for step in steps(said)
    ]


def langfuse(said: Document, **more: Any) -> Document:
    """A trace with its observations, as Langfuse's pages and API give it."""
    start, end = said["start_ns"], said["start_ns"] + said["latency_ns"]
    documents = [
        {"page_content": one["text"], "id": one["id"], "metadata": {"url": one["url"]}} for one in said["passages"]
    ]
    return {
        "id": said["trace_id"],
        "timestamp": iso(start),
        "name": "rag",
        "userId": said["user"],
        "sessionId": said["session"],
        "input": {"question": said["question"]},
        "output": {"answer": said["answer"]},
        "latency": said["latency_ns"] / NS,
        "scores": [],
        "observations": [
            {
                "id": span_id(said, "retriever"),
                "type": "RETRIEVER",
                "name": "retriever",
                "parentObservationId": None,
                "startTime": iso(start),
                "endTime": iso(start + 200_000_000),
                "input": said["question"],
                "output": documents,
                "level": "DEFAULT",
            },
            {
                "id": span_id(said, "model"),
                "type": "GENERATION",
                "name": "ChatOpenAI",
                "parentObservationId": None,
                "startTime": iso(start + 210_000_000),
                "endTime": iso(end),
                "completionStartTime": iso(start + said["first_token_ns"]),
                "input": [{"role": "user", "content": said["question"]}],
                "output": {"role": "assistant", "content": said["answer"]},
                "usageDetails": {
                    "input": said["tokens_in"],
                    "output": said["tokens_out"],
                    "total": said["tokens_in"] + said["tokens_out"],
                },
                "costDetails": {"total": said["cost_usd"]},
                "level": "DEFAULT",
            },
        ],
    } | more


def row(said: Document) -> Document:
    """The same as a row of a table of questions."""
    return {
        "id": said["trace_id"],
        "question": said["question"],
        "answer": said["answer"],
        "user_id": said["user"],
        "created_at": iso(said["start_ns"]),
        "dialog_id": said["session"],
        "contexts": said["passages"],
        "latency_ms": said["latency_ns"] / 1e6,
        "first_token_ms": said["first_token_ns"] / 1e6,
        "tokens_in": said["tokens_in"],
        "tokens_out": said["tokens_out"],
        "cost_usd": said["cost_usd"],
        "trace_id": said["trace_id"],
        "span_id": span_id(said, "rag"),
    }


def iso(ns: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1_000)).isoformat()


def write(path: Path, documents: Sequence[Any]) -> Path:
    """One JSON document a line."""
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in documents), encoding="utf-8")
    return path


def read_rows(*paths: Path) -> tuple[list[Row], list[Row], list[tuple[str, Document]], list[str]]:
    """What the importer reads: chunks by id, questions and dialogs in their order, problems."""
    stream = reader.read_traces(paths)
    chunks = sorted(cast("list[Row]", list(stream.chunks)), key=lambda row: str(row.values["id"]))
    questions = cast("list[Row]", list(stream.questions))
    dialogs = [(row.place, row.values) for row in cast("list[Row]", list(stream.annotations))]
    return chunks, questions, dialogs, stream.problems
