"""Test the test sets of ragas and Langfuse in their export formats."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, get_value
from yarus.db.errors import InputError
from yarus.db.importers import table
from yarus.db.loading.load_rows import ImportedRows, load_rows

CONTEXTS = ["Стипендию назначают приказом.", "Её платят раз в месяц."]
RAGAS_ITEMS = [
    {"user_input": "Кто назначает стипендию?", "reference_contexts": CONTEXTS[:1], "reference": "Приказ.",
     "synthesizer_name": "single_hop_specifc_query_synthesizer"},
    {"user_input": "Когда её платят?", "reference_contexts": CONTEXTS, "reference": "Раз в месяц.",
     "synthesizer_name": "multi_hop_abstract_query_synthesizer"},
]  # fmt: skip
OLD_RAGAS_ITEMS = [
    {"question": "Кто назначает?", "contexts": CONTEXTS, "ground_truth": "Приказ.", "evolution_type": "simple",
     "metadata": [{}], "episode_done": True},
]  # fmt: skip


def read_export(path: Path, tool: str) -> ImportedRows:
    """Read the rows of an export, after its tool is recognised."""
    inspected = table.inspect_table(path)
    assert inspected.shape is not None and inspected.shape.tool == tool
    stream = inspected.stream()
    chunks, questions = list(stream.chunks), list(stream.questions)
    return ImportedRows(questions, chunks, list(stream.annotations), stream.problems)


def write_items(path: Path, items: list[dict[str, Any]]) -> Path:
    """Write items in the format of the path's suffix, as pandas and the SDKs do."""
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(item, ensure_ascii=False) for item in items), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(items), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(items[0]))
            writer.writeheader()
            writer.writerows(items)  # lists in Python notation
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet"])
def test_ragas_test_set_is_read_from_every_format(tmp_path: Path, suffix: str) -> None:
    rows = read_export(write_items(tmp_path / f"testset{suffix}", RAGAS_ITEMS), "ragas")
    assert [row.values["question"] for row in rows.questions] == [item["user_input"] for item in RAGAS_ITEMS]
    assert [row.values["text"] for row in rows.chunks] == CONTEXTS  # each once
    ids = [row.values["id"] for row in rows.chunks]
    assert [row.values["relevant_chunk_ids"] for row in rows.annotations] == [ids[:1], ids]
    assert [row.values["ground_truth_answer"] for row in rows.annotations] == ["Приказ.", "Раз в месяц."]
    assert rows.annotations[1].values["review"] == {"made_by": RAGAS_ITEMS[1]["synthesizer_name"]}
    assert rows.problems == []


def test_old_ragas_and_column_oriented_json_are_read(tmp_path: Path) -> None:
    (old,) = read_export(write_items(tmp_path / "old.json", OLD_RAGAS_ITEMS), "ragas").annotations
    assert old.values["ground_truth_answer"] == "Приказ." and len(old.values["relevant_chunk_ids"]) == 2
    columns = {name: {str(index): item[name] for index, item in enumerate(RAGAS_ITEMS)} for name in RAGAS_ITEMS[0]}
    (tmp_path / "pandas.json").write_text(json.dumps(columns), encoding="utf-8")
    assert len(read_export(tmp_path / "pandas.json", "ragas").questions) == 2


def test_retrieved_contexts_are_not_labels(tmp_path: Path) -> None:
    """Read an evaluation data set of ragas: retrieved passages are not relevant ones."""
    item = {"user_input": "Кто?", "retrieved_contexts": CONTEXTS, "response": "Он.", "reference": "Приказ."}
    rows = read_export(write_items(tmp_path / "evaluated.jsonl", [item]), "ragas")
    assert [row.values["text"] for row in rows.chunks] == CONTEXTS
    assert rows.questions[0].values["answer"] == "Он."
    assert "relevant_chunk_ids" not in rows.annotations[0].values


LANGFUSE_ITEMS: list[tuple[Any, Any, str | None, str | None]] = [
    ("Где?", "Тут.", "Где?", "Тут."),
    ({"question": "Где?"}, {"answer": "Тут."}, "Где?", "Тут."),
    ({"input": {"query": "Где?"}, "user": "7"}, {"output": "Тут."}, "Где?", "Тут."),
    ({"messages": [{"role": "system", "content": "Кратко."}, {"role": "user", "content": "Где?"}]}, None, "Где?", None),
    ([{"role": "user", "content": "Где?"}], [{"role": "assistant", "content": "Тут."}], "Где?", "Тут."),
    ({"вопрос": "Где?"}, {"ответ": "Тут."}, "Где?", "Тут."),
    ({"a": 1, "b": 2}, "Тут.", None, None),
    (None, "Тут.", None, None),
    ("{{}}", "{{1}}", "{{}}", "{{1}}"),  # templates, not Python values
    ("{[1]: 2}", "{1}", "{[1]: 2}", "{1}"),
]  # fmt: skip


@pytest.mark.parametrize(("input_value", "expected_output", "question", "answer"), LANGFUSE_ITEMS)
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_langfuse_items_are_read(
    tmp_path: Path, suffix: str, input_value: Any, expected_output: Any, question: str | None, answer: str | None
) -> None:
    good = {"id": "good", "status": "ACTIVE", "input": "Кто?", "expectedOutput": "Он.", "metadata": None}
    item = good | {"id": "item", "input": input_value, "expectedOutput": expected_output}
    items = [good, item]
    if suffix == ".csv":
        items = [{name: _to_csv_cell(cell) for name, cell in row_item.items()} for row_item in items]
    rows = read_export(write_items(tmp_path / f"items{suffix}", items), "langfuse")
    labels = {row.values["question_id"]: row.values["ground_truth_answer"] for row in rows.annotations}
    questions = {row.values["id"]: row.values["question"] for row in rows.questions}
    if question is None:
        assert questions == {"good": "Кто?", "item": None}  # without a question, the row is skipped when it is stored
    else:
        assert questions == {"good": "Кто?", "item": question} and labels["item"] == answer


def _to_csv_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def test_langfuse_metadata_and_archived_items_are_handled(tmp_path: Path) -> None:
    metadata = {"contexts": CONTEXTS, "relevant_urls": ["https://wiki.example/1"], "relevant_chunk_ids": ["c1"]}
    items = [
        {"id": "1", "input": "Где?", "expectedOutput": "Тут.", "metadata": metadata},
        {"id": "2", "input": "Где?", "status": "ARCHIVED"},
    ]
    document = {"data": items, "meta": {"page": 1, "totalItems": 2}}
    (tmp_path / "api.json").write_text(json.dumps(document), encoding="utf-8")
    rows = read_export(tmp_path / "api.json", "langfuse")
    (label,) = rows.annotations
    assert label.values["relevant_chunk_ids"][-1] == "c1" and len(label.values["relevant_chunk_ids"]) == 3
    assert label.values["relevant_urls"] == ["https://wiki.example/1"]
    assert rows.problems == ["archived items that are left out: 1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "not valid JSON"),
        ("a.json", '"text"', "no row"),
        ("a.json", "[1]", "no list of objects in it (a list of int)"),
        ("a.json", "[]", "no list of objects in it (an empty list)"),
        ("a.jsonl", "{}\nнет", "line 2"),
        ("a.csv", "x,y\n1,2", "neither questions nor texts of pages by its columns: x (1), y (2)"),
        ("a.parquet", "PAR1", "not a complete Parquet file"),
    ],
)
def test_read_rejects_files_that_are_not_exports(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)):
        read_export(tmp_path / name, "ragas")


def test_imported_ragas_set_can_be_evaluated(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    rows = read_export(write_items(tmp_path / "testset.jsonl", RAGAS_ITEMS), "ragas")
    assert load_rows(engine, "from_ragas", rows, language="ru", origin="ragas testset.jsonl").problems == []
    result = evaluate("tier1", source="from_ragas")
    assert (result["n_cases"], result["system"]["unit"], get_value(result, "hit_rate@10")) == (2, "chunk", 1.0)
