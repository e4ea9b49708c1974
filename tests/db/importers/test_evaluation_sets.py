"""Test sets of ragas and Langfuse, in the forms that they are exported in."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, value
from yarus.db.errors import InputError
from yarus.db.importers import table
from yarus.db.loading.fill import Rows, fill

CONTEXTS = ["Стипендию назначают приказом.", "Её платят раз в месяц."]
RAGAS = [
    {"user_input": "Кто назначает стипендию?", "reference_contexts": CONTEXTS[:1], "reference": "Приказ.",
     "synthesizer_name": "single_hop_specifc_query_synthesizer"},
    {"user_input": "Когда её платят?", "reference_contexts": CONTEXTS, "reference": "Раз в месяц.",
     "synthesizer_name": "multi_hop_abstract_query_synthesizer"},
]  # fmt: skip
OLD = [{"question": "Кто назначает?", "contexts": CONTEXTS, "ground_truth": "Приказ.", "evolution_type": "simple",
        "metadata": [{}], "episode_done": True}]  # fmt: skip


def read(path: Path, tool: str) -> Rows:
    """The rows of an export, which is told as the tool's."""
    found = table.look(path)
    assert found.shape is not None and found.shape.tool == tool
    stream = found.stream()
    chunks, questions = list(stream.chunks), list(stream.questions)
    return Rows(questions, chunks, list(stream.annotations), stream.problems)


def written(path: Path, items: list[dict[str, Any]]) -> Path:
    """The items in the format that the name ends in, as pandas and the SDKs write it."""
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
            writer.writerows(items)  # a list as Python writes it
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet"])
def test_ragas(tmp_path: Path, suffix: str) -> None:
    rows = read(written(tmp_path / f"testset{suffix}", RAGAS), "ragas")
    assert [row.values["question"] for row in rows.questions] == [item["user_input"] for item in RAGAS]
    assert [row.values["text"] for row in rows.chunks] == CONTEXTS  # each once
    ids = [row.values["id"] for row in rows.chunks]
    assert [row.values["relevant_chunk_ids"] for row in rows.annotations] == [ids[:1], ids]
    assert [row.values["ground_truth_answer"] for row in rows.annotations] == ["Приказ.", "Раз в месяц."]
    assert rows.annotations[1].values["review"] == {"made_by": RAGAS[1]["synthesizer_name"]}
    assert rows.problems == []


def test_ragas_before_0_2_and_by_columns(tmp_path: Path) -> None:
    (old,) = read(written(tmp_path / "old.json", OLD), "ragas").annotations
    assert old.values["ground_truth_answer"] == "Приказ." and len(old.values["relevant_chunk_ids"]) == 2
    columns = {name: {str(i): item[name] for i, item in enumerate(RAGAS)} for name in RAGAS[0]}
    (tmp_path / "pandas.json").write_text(json.dumps(columns), encoding="utf-8")
    assert len(read(tmp_path / "pandas.json", "ragas").questions) == 2


def test_contexts_that_were_retrieved_are_no_labels(tmp_path: Path) -> None:
    """An evaluation data set of ragas has what the system found; that is not what is relevant."""
    item = {"user_input": "Кто?", "retrieved_contexts": CONTEXTS, "response": "Он.", "reference": "Приказ."}
    rows = read(written(tmp_path / "evaluated.jsonl", [item]), "ragas")
    assert [row.values["text"] for row in rows.chunks] == CONTEXTS
    assert rows.questions[0].values["answer"] == "Он."
    assert "relevant_chunk_ids" not in rows.annotations[0].values


LANGFUSE: list[tuple[Any, Any, str | None, str | None]] = [
    ("Где?", "Тут.", "Где?", "Тут."),
    ({"question": "Где?"}, {"answer": "Тут."}, "Где?", "Тут."),
    ({"input": {"query": "Где?"}, "user": "7"}, {"output": "Тут."}, "Где?", "Тут."),
    ({"messages": [{"role": "system", "content": "Кратко."}, {"role": "user", "content": "Где?"}]}, None, "Где?", None),
    ([{"role": "user", "content": "Где?"}], [{"role": "assistant", "content": "Тут."}], "Где?", "Тут."),
    ({"вопрос": "Где?"}, {"ответ": "Тут."}, "Где?", "Тут."),
    ({"a": 1, "b": 2}, "Тут.", None, None),
    (None, "Тут.", None, None),
    ("{{}}", "{{1}}", "{{}}", "{{1}}"),  # templates, no values of Python's
    ("{[1]: 2}", "{1}", "{[1]: 2}", "{1}"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected", "question", "answer"), LANGFUSE)
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_langfuse(
    tmp_path: Path, suffix: str, given: Any, expected: Any, question: str | None, answer: str | None
) -> None:
    good = {"id": "good", "status": "ACTIVE", "input": "Кто?", "expectedOutput": "Он.", "metadata": None}
    item = good | {"id": "item", "input": given, "expectedOutput": expected}
    items = [good, item]
    if suffix == ".csv":
        items = [{name: _cell(of) for name, of in one.items()} for one in items]
    rows = read(written(tmp_path / f"items{suffix}", items), "langfuse")
    labels = {row.values["question_id"]: row.values["ground_truth_answer"] for row in rows.annotations}
    asked = {row.values["id"]: row.values["question"] for row in rows.questions}
    if question is None:
        assert asked == {"good": "Кто?", "item": None}  # which has no question and is skipped when it is stored
    else:
        assert asked == {"good": "Кто?", "item": question} and labels["item"] == answer


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def test_langfuse_metadata_pages_and_archived_items(tmp_path: Path) -> None:
    metadata = {"contexts": CONTEXTS, "relevant_urls": ["https://wiki.example/1"], "relevant_chunk_ids": ["c1"]}
    items = [
        {"id": "1", "input": "Где?", "expectedOutput": "Тут.", "metadata": metadata},
        {"id": "2", "input": "Где?", "status": "ARCHIVED"},
    ]
    document = {"data": items, "meta": {"page": 1, "totalItems": 2}}
    (tmp_path / "api.json").write_text(json.dumps(document), encoding="utf-8")
    rows = read(tmp_path / "api.json", "langfuse")
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
def test_what_is_no_export(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)):
        read(tmp_path / name, "ragas")


def test_it_can_be_evaluated(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    rows = read(written(tmp_path / "testset.jsonl", RAGAS), "ragas")
    assert fill(engine, "from_ragas", rows, language="ru", origin="ragas testset.jsonl").problems == []
    ran = evaluate("tier1", source="from_ragas")
    assert (ran["n_cases"], ran["system"]["unit"], value(ran, "hit_rate@10")) == (2, "chunk", 1.0)
