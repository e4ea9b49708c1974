"""Test traces as table rows: spans, observations, runs and records from CSV, Parquet and spreadsheets."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine, text

from yarus.db.importers import reader, traces
from yarus.db.loading.load_rows import RowStream, load_rows
from yarus.db.loading.staging import IncomingRow

QUESTION, ANSWER = "Как продлить билет?", "В окне номер три."
BOT = "<bot.Bot object at 0x7f3a5c1d2e50>"
TEXTS = ["Билет продлевают в окне номер три.", "Окно открыто с девяти."]
PROMPT = [{"role": "user", "content": f"Ответь по тексту: {TEXTS[0]} Вопрос: {QUESTION}"}]


def read_rows(*rows: dict[Any, Any]) -> RowStream:
    return traces.read_documents((f"row {number}", row) for number, row in enumerate(rows, start=1))


def read_only_question(*rows: dict[Any, Any]) -> tuple[dict[str, Any], dict[str, Any] | None, list[str]]:
    """Return the only question of rows, its annotation, and the problems."""
    stream = read_rows(*rows)
    list(stream.chunks)
    (row,) = stream.questions
    assert isinstance(row, IncomingRow), row
    labels = [label_row.values for label_row in stream.annotations if isinstance(label_row, IncomingRow)]
    return row.values, labels[0] if labels else None, stream.problems


def phoenix(documents: Any) -> list[dict[str, Any]]:
    """Return two spans in the columns of Phoenix's data frame."""
    empty = {"attributes.input.value": None, "attributes.output.value": None, "attributes.retrieval.documents": None}
    start_time = datetime(2026, 3, 1, 10, tzinfo=UTC)
    root = {
        "name": "chain", "span_kind": "CHAIN", "parent_id": None, "start_time": start_time, "status_code": "OK",
        "end_time": start_time.replace(second=1), "context.span_id": "a0", "context.trace_id": "t0",
        "attributes.input.value": json.dumps({"question": QUESTION, "k": 3}), "attributes.output.value": ANSWER,
        "attributes.llm.token_count.prompt": float("nan"), "attributes.session.id": "s0",
    }  # fmt: skip
    retriever = {
        "name": "retrieve", "span_kind": "RETRIEVER", "parent_id": "a0", "start_time": start_time,
        "end_time": start_time, "status_code": "OK", "context.span_id": "b0", "context.trace_id": "t0",
        "attributes.input.value": QUESTION, "attributes.retrieval.documents": documents, "attributes.session.id": "s0",
    }  # fmt: skip
    return [empty | root, empty | retriever]


FLAT = [{"document.content": content, "document.id": f"d{n}", "document.score": 0.9} for n, content in enumerate(TEXTS)]
NESTED = [{"document": {"content": content, "id": f"d{n}"}} for n, content in enumerate(TEXTS)]


@pytest.mark.parametrize(
    "documents",
    [FLAT, NESTED, np.array(FLAT, dtype=object), json.dumps(FLAT), repr(FLAT), str(np.array(FLAT, dtype=object)),
     repr(FLAT).replace("0.9", "nan")],
    ids=["flat", "nested", "numpy", "JSON", "Python", "numpy's text", "with NaN"],
)  # fmt: skip
def test_phoenix_rows_are_one_trace(documents: Any) -> None:
    values, label, problems = read_only_question(*phoenix(documents))
    assert (values["question"], values["answer"], problems) == (QUESTION, ANSWER, [])
    record = values["recorded"]
    assert [(passage["id"], passage["text"]) for passage in record["contexts"]] == [("d0", TEXTS[0]), ("d1", TEXTS[1])]
    assert (record["latency_ms"], record["span_id"], "tokens_in" in record) == (1000.0, "a0", False)
    assert label == {"question_id": "t0", "dialog_id": "s0"}


def test_phoenix_rows_are_the_same_in_every_container(tmp_path: Path) -> None:
    frame = pd.DataFrame(phoenix(FLAT))
    frame.to_parquet(tmp_path / "a.parquet")
    frame.set_index("context.span_id").to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        csv_rows = list(csv.DictReader(file))
    columns = {**phoenix(FLAT)[0], **{f"context.{name}": name for name in ("span_id", "trace_id")}}
    assert traces.is_trace_row(columns)
    expected = read_only_question(*phoenix(FLAT))
    for rows in (frame.to_dict("records"), pd.read_parquet(tmp_path / "a.parquet").to_dict("records"), csv_rows):
        assert traces.is_trace_row(rows[0])
        assert read_only_question(*rows) == expected


def test_langfuse_observations_of_observe_are_unwrapped() -> None:
    trace_fields = {"trace_id": "t0", "user_id": "u0", "session_id": "s0", "metadata": {}, "level": "DEFAULT"}
    rows = [
        trace_fields | {"id": "a", "type": "SPAN", "parent_observation_id": "", "name": "answer",
                 "start_time": "2026-03-01 10:00:00.000000", "end_time": "2026-03-01 10:00:00.900000",
                 "input": json.dumps({"args": [BOT, QUESTION], "kwargs": {}}), "output": json.dumps(ANSWER)},
        trace_fields | {"id": "b", "type": "RETRIEVER", "parent_observation_id": "a", "name": "search",
                 "start_time": "2026-03-01 10:00:00.100000", "end_time": "2026-03-01 10:00:00.200000",
                 "input": json.dumps(QUESTION), "output": json.dumps([{"content": content} for content in TEXTS])},
        trace_fields | {"id": "c", "type": "GENERATION", "parent_observation_id": "a", "name": "llm",
                 "start_time": "2026-03-01 10:00:00.200000", "end_time": "2026-03-01 10:00:00.800000",
                 "input": json.dumps(PROMPT), "output": ANSWER, "usage_details": '{"input": 50, "output": 12}'},
    ]  # fmt: skip
    values, label, problems = read_only_question(*rows)
    assert (values["question"], values["answer"], values["user_id"], problems) == (QUESTION, ANSWER, "u0", [])
    assert (values["recorded"]["latency_ms"], values["recorded"]["tokens_in"]) == (900.0, 50)
    assert [passage["text"] for passage in values["recorded"]["contexts"]] == TEXTS
    assert label == {"question_id": "t0", "dialog_id": "s0"}


@pytest.mark.parametrize("silent", ["output", "input", "both"])
def test_question_is_that_of_the_root_span(silent: str) -> None:
    root = {"id": "a", "traceId": "t", "type": "SPAN", "input": {"args": [QUESTION], "kwargs": {}}, "output": ANSWER}
    root |= {"output": None} if silent in ("output", "both") else {}
    inner = {"id": "b", "traceId": "t", "type": "CHAIN", "parentObservationId": "a", "input": PROMPT[0]["content"]}
    model = {"id": "c", "traceId": "t", "type": "GENERATION", "parentObservationId": "b", "output": ANSWER}
    model |= {"input": PROMPT} if silent != "input" else {}
    for steps in ([inner, model], [inner | {"output": ANSWER}, model], [model]):
        values, _, _ = read_only_question(root, *steps)
        assert (values["question"], values["answer"]) == (QUESTION, ANSWER)


def langfuse_csv(**scores: str) -> dict[str, Any]:
    """Return a row as Langfuse's page of traces exports it to CSV."""
    names = (
        "id",
        "timestamp",
        "name",
        "userId",
        "sessionId",
        "release",
        "version",
        "environment",
        "tags",
        "bookmarked",
    )
    values = ("t1", "2026-03-02T09:15:00.000Z", "chat", "u17", "s-u17", "", "", "production", "[]", "false")
    row = dict(zip(names, values, strict=True)) | {"bookmarked": "false"}
    row |= {"input": json.dumps({"args": [], "kwargs": {"question": QUESTION}}), "output": json.dumps(ANSWER)}
    return row | {"metadata": '{"resourceAttributes": {}}', "comments": "[]"} | scores


@pytest.mark.parametrize(
    ("scores", "stored"),
    [
        ({"user-feedback": "[1]"}, 5),
        ({"user-feedback": "[0]"}, 1),
        ({"User thumbs": '["up"]'}, 5),
        ({"user_feedback": "0"}, 1),
        ({"user-feedback": "[1, 0]"}, None),
        ({"user-feedback": ""}, None),
        ({"user-feedback": "[4]"}, None),
        ({"correctness": "[1]"}, None),
    ],
)
def test_langfuse_trace_csv_has_votes_in_columns(scores: dict[str, str], stored: int | None) -> None:
    file = io.StringIO()
    row = langfuse_csv(**scores)
    writer = csv.DictWriter(file, list(row), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerow(row)
    (csv_row,) = csv.DictReader(io.StringIO(file.getvalue()))
    assert traces.is_trace_row(csv_row)
    values, label, _ = read_only_question(csv_row)
    assert (values["question"], values["answer"], values["score"]) == (QUESTION, ANSWER, stored)
    assert (values["user_id"], values["created_at"]) == ("u17", datetime(2026, 3, 2, 9, 15, tzinfo=UTC))
    assert label == {"question_id": "t1", "dialog_id": "s-u17"}


def langsmith(**more: Any) -> list[dict[str, Any]]:
    """Return a chain, a retriever and a model run of LangSmith."""
    run = {"trace_id": "r1", "session_id": "a-project", "start_time": "2026-03-01T10:00:00", "error": None}
    chain = run | {"id": "r1", "run_type": "chain", "parent_run_id": None, "end_time": "2026-03-01T10:00:02"}
    chain |= {"inputs": {"question": QUESTION}, "outputs": {"output": ANSWER}}
    chain |= {"extra": {"metadata": {"thread_id": "s1", "user_id": "u1"}}}
    chain |= {"feedback_stats": {"user_score": {"n": 1, "avg": 1.0}, "correctness": {"n": 1, "avg": 0}}}
    retriever = run | {"id": "r2", "run_type": "retriever", "parent_run_id": "r1", "end_time": run["start_time"]}
    documents = [{"page_content": text, "metadata": {"source": f"https://wiki.example/{text[:4]}"}} for text in TEXTS]
    retriever |= {"inputs": {"query": QUESTION}, "outputs": {"documents": documents}}
    model = run | {"id": "r3", "run_type": "llm", "parent_run_id": "r1", "end_time": "2026-03-01T10:00:01"}
    model |= {"inputs": {"messages": [[{"kwargs": {"type": "human", "content": PROMPT[0]["content"]}}]]}}
    usage = {"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62}
    model |= {"outputs": {"generations": [[{"text": ANSWER}]], "llm_output": {"token_usage": usage}}}
    return [chain | more, retriever, model | {"total_cost": "0.0002"}]


def test_langsmith_runs_are_one_trace() -> None:
    values, label, problems = read_only_question(*langsmith())
    assert (values["question"], values["answer"], values["score"], problems) == (QUESTION, ANSWER, 5, [])
    recorded = values["recorded"]
    assert [passage["text"] for passage in recorded["contexts"]] == TEXTS
    assert (recorded["latency_ms"], recorded["tokens_in"], recorded["cost_usd"]) == (2000.0, 50, 0.0002)
    assert (label, values["user_id"]) == ({"question_id": "r1", "dialog_id": "s1"}, "u1")


def test_langsmith_runs_as_json_and_flat_give_same_rows() -> None:
    expected = read_only_question(*langsmith())
    text_rows = [{name: json.dumps(value) if isinstance(value, dict) else value for name, value in row.items()}
             for row in langsmith()]  # fmt: skip
    assert read_only_question(*text_rows) == expected
    flat_rows = pd.json_normalize(langsmith()).to_dict("records")
    assert read_only_question(*flat_rows) == expected
    assert all(map(traces.is_trace_row, (langsmith()[0], text_rows[0], flat_rows[0])))


@pytest.mark.parametrize(
    "inputs", [{"args": [QUESTION]}, {"input": {"question": QUESTION}}, {"self": BOT, "q": QUESTION}]
)
def test_langsmith_traceable_inputs_are_unwrapped(inputs: Any) -> None:
    assert read_only_question(*langsmith(inputs=inputs, outputs={"answer": ANSWER}))[0]["question"] == QUESTION


def test_trulens_record_is_a_trace() -> None:
    call = {"stack": [{"method": {"name": "ask"}}, {"method": {"name": "retrieve"}}], "call_id": "c1"}
    call |= {"args": {"query": QUESTION}, "rets": TEXTS}
    row = {
        "record_id": "record_hash_1", "app_id": "bot", "input": json.dumps(QUESTION), "output": json.dumps(ANSWER),
        "ts": "2026-03-01 10:00:00.000000", "latency": 1.5, "total_tokens": 62, "total_cost": 0.0002,
        "cost_json": '{"n_prompt_tokens": 50, "n_completion_tokens": 12}', "Groundedness": 0.7,
    }  # fmt: skip
    assert traces.is_trace_row(row)
    values, _, problems = read_only_question(row)
    assert (values["question"], values["answer"], problems) == (QUESTION, ANSWER, [])
    recorded = {"latency_ms": 1500.0, "tokens_in": 50, "tokens_out": 12, "cost_usd": 0.0002}
    assert values["recorded"] == recorded | {"trace_id": "record_hash_1"}
    with_calls = row | {"record_json": json.dumps({"record_id": "x", "main_input": "другое", "calls": [call]})}
    assert [passage["text"] for passage in read_only_question(with_calls)[0]["recorded"]["contexts"]] == TEXTS


def test_trulens_record_as_json_and_as_span() -> None:
    record = {"record_id": "r", "main_input": QUESTION, "main_output": ANSWER, "meta": {"reference": "Эталон."}}
    assert traces.is_trace_row(record)
    values, label, _ = read_only_question(
        record | {"perf": {"start_time": "2026-03-01T10:00:00", "end_time": "2026-03-01T10:00:01"}}
    )
    assert (values["question"], values["answer"], values["recorded"]["latency_ms"]) == (QUESTION, ANSWER, 1000.0)
    assert label == {"question_id": "r", "dialog_id": None, "ground_truth_answer": "Эталон."}
    root_attributes = {
        "span_type": "record_root", "record_root.input": QUESTION, "record_root.output": ANSWER,
        "record_root.ground_truth_output": "Эталон.",
    }  # fmt: skip
    retrieval = {"span_type": "retrieval", "retrieval.query_text": QUESTION, "retrieval.retrieved_contexts": TEXTS}
    spans = [
        {"traceId": "t", "spanId": str(number), "parentSpanId": "0" if number else "",
         "attributes": {f"ai.observability.{name}": value for name, value in attributes.items()}}
        for number, attributes in enumerate(
            (root_attributes, retrieval, {"span_type": "eval_root", "record_root.input": "иное"})
        )
    ]  # fmt: skip
    values, label, _ = read_only_question(*spans)
    assert (values["question"], values["answer"]) == (QUESTION, ANSWER)
    assert [passage["text"] for passage in values["recorded"]["contexts"]] == TEXTS
    assert label == {"question_id": "t", "dialog_id": None, "ground_truth_answer": "Эталон."}


REFERENCE_FIELDS: dict[str, dict[str, Any]] = {
    "metadata": {"metadata": {"reference": "Эталон."}},
    "metadata as JSON": {"metadata": '{"expected_output": {"answer": "Эталон."}}'},
    "a column": {"expectedOutput": "Эталон."},
}


@pytest.mark.parametrize("more", REFERENCE_FIELDS.values(), ids=REFERENCE_FIELDS)
def test_references_are_annotations(more: dict[str, Any]) -> None:
    trace = {"id": "t1", "timestamp": "2026-03-01", "input": QUESTION, "output": ANSWER, "sessionId": "s"}
    other_traces = [trace | {"id": f"t{n}", "sessionId": session} for n, session in ((2, "s"), (3, None))]
    stream = read_rows(trace | more, *other_traces)
    list(stream.chunks), list(stream.questions)
    labels = [label_row.values for label_row in stream.annotations if isinstance(label_row, IncomingRow)]
    assert labels == [
        {"question_id": "t1", "dialog_id": "s", "ground_truth_answer": "Эталон."},
        {"question_id": "t2", "dialog_id": "s", "ground_truth_answer": None},
    ]
    (label,) = (label_row.values for label_row in read_labels(trace) if isinstance(label_row, IncomingRow))
    assert label == {"question_id": "t1", "dialog_id": "s"}


def read_labels(*rows: dict[str, Any]) -> list[Any]:
    stream = read_rows(*rows)
    list(stream.chunks), list(stream.questions)
    return list(stream.annotations)


def test_references_of_attributes_are_annotations() -> None:
    for attributes in (
        {"metadata": '{"ground_truth": "Эталон."}'},
        {"metadata.reference": "Эталон."},
        {"ground_truth": "Эталон."},
        {"langfuse.trace.metadata.expected_output": "Эталон."},
    ):
        all_attributes = {"input.value": QUESTION, "output.value": ANSWER} | attributes
        _, label, _ = read_only_question({"traceId": "t", "spanId": "a", "attributes": all_attributes})
        assert label == {"question_id": "t", "dialog_id": None, "ground_truth_answer": "Эталон."}


def test_references_are_stored_and_labels_are_kept(engine: Engine) -> None:
    trace = {"id": "t1", "timestamp": "2026-03-01", "input": QUESTION, "output": ANSWER, "sessionId": "s"}
    stored = text("SELECT dialog_id, ground_truth_answer FROM source_references.annotation")
    for rows in ([trace | {"metadata": {"reference": "Эталон."}}], [trace]):
        load_rows(engine, "references", read_rows(*rows), language="ru", origin="rows")
        with engine.connect() as connection:
            assert connection.execute(stored).all() == [("s", "Эталон.")]


@pytest.mark.parametrize(
    "names",
    [
        ["question", "answer", "user_id", "created_at"],
        ["id", "timestamp", "question", "answer", "trace_id", "span_id", "contexts", "latency_ms"],
        ["id", "timestamp", "input", "output", "user_id"],
        ["user_input", "response", "reference", "retrieved_contexts"],
        ["input", "actual_output", "expected_output", "retrieval_context", "context", "name"],
        ["id", "input", "expectedOutput", "metadata", "datasetId", "datasetName", "sourceTraceId", "status"],
        ["id", "timestamp", "input", "output", "tags", "version", "expectedOutput", "datasetId"],
        ["id", "inputs", "outputs", "metadata", "dataset_id", "source_run_id", "created_at"],
        ["id", "node_id", "input.question", "output.answer", "metadata.x", "splits"],
        ["inputs", "outputs", "expectations", "trace_id"],
        ["record_id", "input", "output", "latency"],
        ["id", "context", "question", "answers", "title"],
        ["data"], [], [None, 7],
    ],
)  # fmt: skip
def test_is_trace_row_rejects_ordinary_tables(names: list[Any]) -> None:
    assert not traces.is_trace_row(names)


@pytest.mark.parametrize(
    "names",
    [
        ["resourceSpans"],
        ["name", "context", "parent_id", "start_time", "attributes"],
        ["traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano"],
        ["trace_id", "span_id", "attributes.input.value"],
        ["context.trace_id", "context.span_id", "name", "span_kind"],
        ["id", "trace_id", "type", "start_time", "input", "output"],
        ["id", "traceId", "parentObservationId", "input"],
        ["id", "timestamp", "name", "observations"],
        ["trace", "observations"],
        ["id", "trace_id", "run_type", "inputs", "outputs"],
        ["run_id", "run_type", "inputs.question", "outputs.answer"],
        ["id", "trace_id", "parent_run_id", "inputs", "outputs"],
        ["record_id", "record_json"],
    ],
)
def test_is_trace_row_accepts_each_store(names: list[str]) -> None:
    assert traces.is_trace_row(names)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_read_traces_accepts_tables(suffix: str, tmp_path: Path) -> None:
    path, frame = tmp_path / f"traces.{suffix}", pd.DataFrame([langfuse_csv()])
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    stream = reader.read_traces([path])
    list(stream.chunks)
    (question,) = stream.questions
    assert isinstance(question, IncomingRow)
    assert (question.values["question"], question.values["answer"]) == (QUESTION, ANSWER)
