"""Traces as tools write them: one request says the same in every format."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.traces.files import (
    START_NS,
    iso,
    langfuse,
    otlp,
    read_rows,
    request,
    sdk,
    span_id,
    steps,
    turn,
    typed,
    write,
)
from yarus.db.importers import reader

TURNS = [turn(i) for i in range(4)]
AS_OTLP = [request(otlp(said)) for said in TURNS]


@pytest.fixture
def plain(tmp_path: Path) -> Any:
    return read_rows(write(tmp_path / "plain.jsonl", AS_OTLP))


def test_a_collectors_file_is_questions_with_their_answers_passages_times_and_costs(plain: Any) -> None:
    chunks, questions, dialogs, problems = plain
    said = TURNS[1]
    values = next(row.values for row in questions if row.values["id"] == said["trace_id"])
    assert (values["question"], values["answer"], values["user_id"]) == (said["question"], said["answer"], said["user"])
    assert values["created_at"].isoformat() == iso(said["start_ns"])
    assert values["recorded"] == {
        "contexts": said["passages"],
        "latency_ms": 1501.0,
        "first_token_ms": 900.0,
        "tokens_in": 301,
        "tokens_out": 21,
        "cost_usd": 0.002,
        "trace_id": said["trace_id"],
        "span_id": span_id(said, "rag"),
    }
    assert {row.values["id"]: row.values["text"] for row in chunks} == {
        one["id"]: one["text"] for said in TURNS for one in said["passages"]
    }
    assert {values["question_id"]: values["dialog_id"] for _, values in dialogs} == {
        said["trace_id"]: said["session"] for said in TURNS
    }
    assert (len(questions), values["score"], problems) == (4, None, [])


def test_ids_in_base64_attributes_as_maps_and_what_an_sdk_prints_are_the_same(plain: Any, tmp_path: Path) -> None:
    spans = [span for said in TURNS for span in otlp(said)]
    nested = [{**span, "attributes": tree(span["attributes"])} for said in TURNS for span in sdk(said)]
    for number, documents in enumerate(
        (
            [request(otlp(said, ids="base64")) for said in TURNS],
            [request(otlp(said, plain=True)) for said in TURNS],
            [request([span]) for span in spans],
            spans,
            [span for said in TURNS for span in sdk(said)],
            [{"data": nested}],
        )
    ):
        assert read_rows(write(tmp_path / f"{number}.jsonl", documents)) == plain, number


def tree(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as Phoenix's API nests them; documents and messages are lists."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        place: Any = found
        *path, last = name.split(".")
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value

    def listed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        inner = {key: listed(one) for key, one in value.items()}
        return list(inner.values()) if inner and all(key.isdigit() for key in inner) else inner

    nested: dict[str, Any] = listed(found)
    return nested


def test_a_document_of_its_own_a_list_and_a_packed_file_are_the_same(plain: Any, tmp_path: Path) -> None:
    whole = {"resourceSpans": [one for document in AS_OTLP for one in document["resourceSpans"]]}
    for name, text in {
        "pretty.json": json.dumps(whole, indent=2),
        "line.json": json.dumps(whole),
        "list.json": json.dumps(AS_OTLP, indent=1),
        "marked.json": "\ufeff" + json.dumps(whole, indent=2),
        "blank.jsonl": "\n\n" + "\n\n".join(map(json.dumps, AS_OTLP)) + "\n\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_rows(tmp_path / name) == plain, name
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        assert read_rows(tmp_path / f"{name}.gz") == plain, name


def test_langfuse_says_the_same_but_for_the_span(plain: Any, tmp_path: Path) -> None:
    chunks, questions, dialogs, _ = plain
    for row in questions:
        row.values["recorded"].pop("span_id")
    documents = [langfuse(said) for said in TURNS]
    inner = [{"trace": {k: v for k, v in one.items() if k != "observations"}, **one} for one in documents]
    for number, form in enumerate((documents, [documents], [{"data": documents, "meta": {}}], inner)):
        assert read_rows(write(tmp_path / f"{number}.jsonl", form)) == (chunks, questions, dialogs, []), number


def test_langfuses_observations_alone_with_the_names_of_its_storage_export(tmp_path: Path) -> None:
    rows = []
    for said in TURNS[:2]:
        retriever, model = langfuse(said)["observations"]
        root = span_id(said, "rag")
        about = {"trace_id": said["trace_id"], "user_id": said["user"], "session_id": said["session"]}
        rows.append(
            about
            | {
                "id": root,
                "type": "SPAN",
                "name": "rag",
                "parent_observation_id": "",
                "start_time": iso(said["start_ns"]).replace("T", " ").removesuffix("+00:00"),
                "end_time": iso(said["start_ns"] + said["latency_ns"]).replace("T", " ").removesuffix("+00:00"),
                "input": json.dumps({"question": said["question"]}),
                "output": json.dumps(said["answer"]),
            }
        )
        rows += [
            about
            | {
                "id": one["id"],
                "type": one["type"],
                "name": one["name"],
                "parent_observation_id": root,
                "start_time": one["startTime"],
                "end_time": one["endTime"],
                "completion_start_time": one.get("completionStartTime"),
                "input": json.dumps(one["input"]),
                "output": json.dumps(one["output"]),
                "usage_details": one.get("usageDetails"),
                "cost_details": one.get("costDetails"),
            }
            for one in (retriever, model)
        ]
    expected = read_rows(write(tmp_path / "otlp.jsonl", AS_OTLP[:2]))
    assert read_rows(write(tmp_path / "observations.jsonl", rows)) == expected


@pytest.mark.parametrize(
    ("scores", "stored"),
    [
        ([{"name": "user-feedback", "value": 1, "dataType": "BOOLEAN"}], 5),
        ([{"name": "thumbs", "value": 0}], 1),
        ([{"name": "user_feedback", "value": -1}], 1),
        ([{"name": "User Feedback", "stringValue": "Thumbs_Up"}], 5),
        ([{"name": "user-feedback", "value": 4}], None),  # of five stars, or of ten
        ([{"name": "user_rating", "value": 1}], None),
        ([{"name": "thumbs_down", "value": 1}], 1),
        ([{"name": "user-feedback", "value": 0.5}], None),
        ([{"name": "user-feedback", "value": 1}, {"name": "user-feedback", "value": 0}], None),
        ([{"name": "hallucination", "value": 0}, {"name": "correctness", "value": 1}], None),  # no user's
        ([], None),
    ],
)
def test_only_what_a_user_clearly_said_is_a_score(scores: list[Any], stored: int | None, tmp_path: Path) -> None:
    _, (row,), _, _ = read_rows(write(tmp_path / "a.jsonl", [langfuse(TURNS[0], scores=scores)]))
    assert row.values["score"] == stored


def test_the_attributes_of_opentelemetry_itself(tmp_path: Path) -> None:
    said = TURNS[0]
    talk = [
        {"role": "system", "parts": [{"type": "text", "content": "Отвечай кратко."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Здравствуйте"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Спрашивайте."}]},
        {"role": "user", "parts": [{"type": "text", "content": said["question"]}]},
    ]
    reply = [{"role": "assistant", "parts": [{"type": "text", "content": said["answer"]}], "finish_reason": "stop"}]
    documents = [{"id": one["id"], "score": 0.9, "content": one["text"], "url": one["url"]} for one in said["passages"]]
    start, end = said["start_ns"], said["start_ns"] + said["latency_ns"]

    def span(name: str, parent: str | None, begin: int, finish: int, **attributes: Any) -> dict[str, Any]:
        return {
            "traceId": said["trace_id"],
            "spanId": span_id(said, name),
            "parentSpanId": span_id(said, parent) if parent else "",
            "name": name,
            "startTimeUnixNano": begin,
            "endTimeUnixNano": finish,
            "attributes": [{"key": f"gen_ai.{k}", "value": typed(v)} for k, v in attributes.items()],
        }

    spans = [
        span("POST /ask", None, start, end, **{"conversation.id": "s0"}),
        span(
            "invoke_agent",
            "POST /ask",
            start,
            end,
            **{
                "operation.name": "invoke_agent",
                "input.messages": json.dumps(talk),
                "output.messages": json.dumps(reply),
                "usage.input_tokens": 9_999,
            },
        ),
        span(
            "retrieval",
            "invoke_agent",
            start,
            start + 1,
            **{"operation.name": "retrieval", "retrieval.documents": json.dumps(documents)},
        ),
        span(
            "chat",
            "invoke_agent",
            start + 10**8,
            end,
            **{
                "operation.name": "chat",
                "input.messages": json.dumps(talk),
                "output.messages": json.dumps(reply),
                "usage.input_tokens": said["tokens_in"],
                "usage.output_tokens": said["tokens_out"],
                "response.time_to_first_chunk": 0.8,
            },
        ),
    ]
    _, (row,), ((_, dialog),), problems = read_rows(write(tmp_path / "a.jsonl", [request(spans)]))
    assert (row.values["question"], row.values["answer"]) == (said["question"], said["answer"])
    recorded = row.values["recorded"]
    assert recorded["contexts"] == said["passages"]
    assert recorded["history"] == [
        {"role": "user", "content": "Здравствуйте"},
        {"role": "assistant", "content": "Спрашивайте."},
    ]
    assert (recorded["latency_ms"], recorded["first_token_ms"]) == (1500.0, 900.0)
    assert (recorded["tokens_in"], recorded["tokens_out"], "cost_usd" in recorded) == (300, 20, False)
    assert (recorded["span_id"], dialog["dialog_id"], problems) == (span_id(said, "POST /ask"), "s0", [])


def test_a_reranker_decides_what_the_answer_was_given(tmp_path: Path) -> None:
    said = TURNS[0]
    spans = otlp(said, plain=True)
    first, second = said["passages"]
    ranked = {
        "openinference.span.kind": "RERANKER",
        "reranker.output_documents.0.document.id": second["id"],
        "reranker.output_documents.0.document.content": second["text"],
        "reranker.output_documents.0.document.metadata": json.dumps({"source": second["url"]}),
    }
    spans.append({**spans[1], "spanId": span_id(said, "reranker"), "name": "reranker", "attributes": ranked})
    chunks, (row,), _, _ = read_rows(write(tmp_path / "a.jsonl", [request(spans)]))
    assert row.values["recorded"]["contexts"] == [second]
    assert [one.values["id"] for one in chunks] == [second["id"]]
    assert first["id"] != second["id"]


def test_times_in_any_unit_are_the_same(plain: Any, tmp_path: Path) -> None:
    for number, write_down in enumerate((iso, int, lambda ns: ns // 1_000, lambda ns: ns / 1e6)):
        spans = []
        for said in TURNS:
            for span, step in zip(otlp(said), steps(said), strict=True):
                span |= {"startTimeUnixNano": write_down(step["start"]), "endTimeUnixNano": write_down(step["end"])}
                spans.append(span)
        assert read_rows(write(tmp_path / f"{number}.jsonl", [request(spans)])) == plain, number
    assert START_NS > 10**17


def test_what_is_read_streams(tmp_path: Path) -> None:
    stream = reader.read_traces([write(tmp_path / "a.jsonl", AS_OTLP)])
    assert stream.new_chunks_only
    assert not isinstance(stream.questions, list)
