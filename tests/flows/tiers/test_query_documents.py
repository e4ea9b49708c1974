"""Check retrieval sets whose queries are documents: only the query's own id leaves the ranking."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import PAGE_URL, evaluate, get_value, load, make_passages, question, read_rows
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from yarus.db.importers import beir
from yarus.db.loading.load_rows import load_rows

Document = dict[str, Any]
CASE = Path(__file__).parents[4] / "shared" / "cases" / "36_beir_self"
TEXTS = [
    "Ferries should run at night.",
    "Night ferries disturb residents.",
    "Bicycles belong on every deck.",
    "Bicycles block the exits.",
    "Tickets ought to be free.",
    "Free tickets cost the town money.",
]


def write_set(folder: Path) -> Path:
    """Write a small ArguAna: every document is a query, and its counterpart is relevant."""
    (folder / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": f"arg-{i}", "text": text}) for i, text in enumerate(TEXTS)]
    for name in ("corpus", "queries"):
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    tsv = "".join(f"arg-{i}\targ-{i ^ 1}\t1\n" for i in range(len(TEXTS)))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{tsv}arg-0\targ-4\t-1\n", encoding="utf-8")
    return folder


def rank_self_first(number: int, request: Document) -> bytes:
    """Return the query's own document, its counterpart, then the others, as many as requested."""
    own_index = TEXTS.index(request["question"])
    order = [own_index, own_index ^ 1, *(i for i in range(len(TEXTS)) if i not in (own_index, own_index ^ 1))]
    results = [{"id": f"arg-{i}", "distance": rank / 10} for rank, i in enumerate(order)]
    return make_response(200, json.dumps({"results": results[: int(request["k"])]}), JSON_HEADER)


@pytest.fixture
def retriever(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    with FakeLLMServer(script=rank_self_first) as server:
        monkeypatch.setenv("YARUS_RETRIEVER", server.url)
        yield server


@pytest.fixture
def source(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    folder = CASE if CASE.exists() else write_set(tmp_path / "set")
    load_rows(engine, "query_documents", beir.read_beir(folder), language="en", origin="test")
    return "query_documents"


@pytest.mark.parametrize("unit", ["auto", "page"])
def test_own_document_leaves_the_ranking(retriever: FakeLLMServer, source: str, unit: str) -> None:
    summary = evaluate("tier1", source=source, unit=unit)
    assert (get_value(summary, "hit_rate@1"), get_value(summary, "mrr")) == (1.0, 1.0)
    assert {"note": "own documents", "n": 6} in summary["notes"]
    assert summary["system"]["own_documents"] == "left out"


def test_one_more_result_is_fetched(retriever: FakeLLMServer, source: str) -> None:
    summary = evaluate("tier1", source=source)
    assert {request["k"] for request in retriever.requests} == {11}
    for row in read_rows(summary):
        assert len(row["retrieved"]) == 5
        assert row["own_document"] == row["question_id"] not in row["retrieved"]


def test_duplicates_of_question_stay_in_ranking(retriever: FakeLLMServer, engine: Engine, tmp_path: Path) -> None:
    """Keep a duplicate of the query, which such a set asks for, although the query itself is removed."""
    folder = write_set(tmp_path / "twins")
    for name, n in (("corpus", 6), ("queries", 1)):
        texts = [TEXTS[0], TEXTS[0], *TEXTS[2:]][:n]
        lines = [json.dumps({"_id": f"arg-{i}", "text": text}) for i, text in enumerate(texts)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("arg-0\targ-1\t1\n", encoding="utf-8")
    load_rows(engine, "query_twins", beir.read_beir(folder), language="en", origin="test")
    summary = evaluate("tier1", source="query_twins")
    assert (get_value(summary, "hit_rate@1"), get_value(summary, "recall@10")) == (1.0, 1.0)


def test_equal_ids_of_other_sources_stay(at_home: Path, tmp_path: Path) -> None:
    chunks = [row | {"id": str(i)} for i, row in enumerate(make_passages(10))]
    questions = [
        question(i, question=chunks[i]["text"], relevant_chunk_ids=[str(i)], confluence_url=PAGE_URL.format(i))
        for i in range(5)
    ]
    summary = evaluate("tier1", source=load(tmp_path, "equal_ids", questions, chunks), retriever="fulltext")
    assert get_value(summary, "hit_rate@1") == 1.0
    assert "own_documents" not in summary["system"] and "own documents" not in str(summary["notes"])
