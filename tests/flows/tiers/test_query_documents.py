"""Retrieval sets whose queries are documents: the query's own id leaves the ranking, and nothing else's does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import PAGE, evaluate, load, passages, question, rows_of, value
from tests.support.llm_server import JSON, FakeLLMServer, http
from yarus.db.importers import beir
from yarus.db.loading.fill import fill

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


def write_set(at: Path) -> Path:
    """ArguAna in small: every document is a query, and its counterpart is relevant."""
    (at / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": f"arg-{i}", "text": text}) for i, text in enumerate(TEXTS)]
    for name in ("corpus", "queries"):
        (at / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pairs = "".join(f"arg-{i}\targ-{i ^ 1}\t1\n" for i in range(len(TEXTS)))
    (at / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{pairs}arg-0\targ-4\t-1\n", encoding="utf-8")
    return at


def rank_self_first(number: int, request: Document) -> bytes:
    """The query's own document, its counterpart, then the others; as many as were asked for."""
    own = TEXTS.index(request["question"])
    order = [own, own ^ 1, *(i for i in range(len(TEXTS)) if i not in (own, own ^ 1))]
    found = [{"id": f"arg-{i}", "distance": place / 10} for place, i in enumerate(order)]
    return http(200, json.dumps({"results": found[: int(request["k"])]}), JSON)


@pytest.fixture
def retriever(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    with FakeLLMServer(script=rank_self_first) as server:
        monkeypatch.setenv("YARUS_RETRIEVER", server.url)
        yield server


@pytest.fixture
def source(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    at = CASE if CASE.exists() else write_set(tmp_path / "set")
    fill(engine, "query_documents", beir.read(at), language="en", origin="test")
    return "query_documents"


@pytest.mark.parametrize("unit", ["auto", "page"])
def test_own_document_leaves_the_ranking(retriever: FakeLLMServer, source: str, unit: str) -> None:
    summary = evaluate("tier1", source=source, unit=unit)
    assert (value(summary, "hit_rate@1"), value(summary, "mrr")) == (1.0, 1.0)
    assert {"note": "own documents", "n": 6} in summary["notes"]
    assert summary["system"]["own_documents"] == "left out"


def test_one_more_is_fetched_so_that_k_remain(retriever: FakeLLMServer, source: str) -> None:
    summary = evaluate("tier1", source=source)
    assert {request["k"] for request in retriever.requests} == {11}
    for row in rows_of(summary):
        assert len(row["retrieved"]) == 5
        assert row["own_document"] == row["question_id"] not in row["retrieved"]


def test_twins_of_the_question_stay_in_the_ranking(retriever: FakeLLMServer, engine: Engine, tmp_path: Path) -> None:
    """A duplicate of the query is what such a set asks for: it must not go with the query that it repeats."""
    at = write_set(tmp_path / "twins")
    for name, n in (("corpus", 6), ("queries", 1)):
        texts = [TEXTS[0], TEXTS[0], *TEXTS[2:]][:n]
        lines = [json.dumps({"_id": f"arg-{i}", "text": text}) for i, text in enumerate(texts)]
        (at / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (at / "qrels" / "test.tsv").write_text("arg-0\targ-1\t1\n", encoding="utf-8")
    fill(engine, "query_twins", beir.read(at), language="en", origin="test")
    summary = evaluate("tier1", source="query_twins")
    assert (value(summary, "hit_rate@1"), value(summary, "recall@10")) == (1.0, 1.0)


def test_equal_ids_of_other_sources_stay(at_home: Path, tmp_path: Path) -> None:
    chunks = [row | {"id": str(i)} for i, row in enumerate(passages(10))]
    asked = [
        question(i, question=chunks[i]["text"], relevant_chunk_ids=[str(i)], confluence_url=PAGE.format(i))
        for i in range(5)
    ]
    summary = evaluate("tier1", source=load(tmp_path, "equal_ids", asked, chunks), retriever="fulltext")
    assert value(summary, "hit_rate@1") == 1.0
    assert "own_documents" not in summary["system"] and "own documents" not in str(summary["notes"])
