"""Pages as the unit: each at the rank of its best chunk, once, and as many as requested."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.steps import open_run
from yarus.db.loading.load_rows import ImportedRows, IncomingRow, load_rows
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.steps.finish import note_unknown_ids
from yarus.tasks.steps.retrieval import score_rankings
from yarus.tasks.steps.search import rank_pages, rank_results, retrieve
from yarus.tasks.systems.retrievers.protocol import Ranking

PAGE = "https://wiki.example/pages/viewpage.action?pageId="
CROWD = 170  # chunks of page 0, all of them nearer to the question than any other page's
PAGES = {"a1": "A", "a2": "A", "b1": "B", "c1": "C", "none": None}


@pytest.mark.parametrize(
    ("chunks", "k", "pages", "distances"),
    [
        (["a2", "b1", "a1", "c1"], 3, ["A", "B", "C"], [0, 1, 3]),
        (["a2", "b1", "a1", "c1"], 2, ["A", "B"], [0, 1]),
        (["none", "b1"], 2, ["B"], [1]),
        ([], 2, [], []),
        # an id that is not a chunk may be a page's address in any form
        ([f"{PAGE}7&preview=x", f"{PAGE}7#top", "b1"], 3, [f"{PAGE}7", "B"], [0, 2]),
        (["", "b1"], 2, ["B"], [1]),
    ],
)
def test_rank_pages_uses_rank_of_best_chunk(
    chunks: list[str], k: int, pages: list[str], distances: list[float]
) -> None:
    ranking = Ranking(chunks, [float(rank) for rank in range(len(chunks))], latency_ms=5.0)
    assert rank_pages(ranking, PAGES, k) == Ranking(pages, distances, latency_ms=5.0)


def test_rank_pages_keeps_errors() -> None:
    assert rank_pages(Ranking([], [], error="down"), PAGES, 3).error == "down"


@pytest.fixture(scope="module")
def crowded(engine: Engine) -> str:
    """Load a source of 15 pages, one of which has almost all chunks, under three addresses."""
    forms = ("", "&preview=/0/a.png", "#anchor")
    crowd = [(f"crowd {n}", f"{PAGE}0{forms[n % 3]}", f"стипендия стипендия номер{n}") for n in range(CROWD)]
    other_pages = [(f"page {n}", f"{PAGE}{n}", f"общежитие номер {n} и стипендия") for n in range(1, 15)]
    columns = ("id", "confluence_url", "text")
    rows = ImportedRows(
        chunks=[IncomingRow(values[0], dict(zip(columns, values, strict=True))) for values in (*crowd, *other_pages)],
        questions=[
            IncomingRow(
                "1", {"id": "1", "question": "стипендия", "confluence_url": f"{PAGE}14&preview=/14/b.png", "score": 5}
            ),
            IncomingRow("2", {"id": "2", "question": "стипендия номер", "confluence_url": f"{PAGE}99", "score": 5}),
        ],
    )
    load_rows(engine, "crowded", rows, language="ru", origin="a test")
    return "crowded"


@pytest.mark.parametrize("retriever", ["dense", "fulltext", "hybrid", "pgvector"])
def test_rank_fetches_chunks_until_k_pages(at_home: Path, crowded: str, retriever: str) -> None:
    run = open_run(source=crowded, retriever=retriever)
    assert run.config.unit == "page"
    [ranking] = rank_results(run, ["стипендия"], 10, unit="page", timed=1)
    assert len(ranking.ids) == len(set(ranking.ids)) == 10
    assert ranking.ids[0] == f"{PAGE}0"
    assert ranking.distances == sorted(ranking.distances)
    assert ranking.latency_ms is not None


def test_rank_returns_all_pages_of_small_corpus(at_home: Path, crowded: str) -> None:
    run = open_run(source=crowded, retriever="dense")
    [ranking] = rank_results(run, ["стипендия"], 50, unit="page", timed=0)
    assert set(ranking.ids) == {f"{PAGE}{n}" for n in range(15)}


def test_ranking_metrics_stay_below_1_with_page_aliases(at_home: Path, crowded: str) -> None:
    run = open_run(source=crowded, retriever="dense", k=20)
    cases = score_rankings(run, retrieve(run, read_cases(run)))
    first, second = cases.to_pylist()
    assert (first["status"], first["relevant"]) == ("ok", [f"{PAGE}14"])
    assert first["recall@10"] <= first["hit_rate@10"] <= 1
    assert 0 < first["mrr"] <= 1
    assert len(first["retrieved"]) == 15
    assert (second["status"], second["mrr"]) == ("stale_label", None)


COUNTING = """
def note(k):
    with open("asked", "a") as file:
        print(k, file=file)
def crowd(question, k):  # knows nothing but one page, of which it has ever more chunks
    note(k)
    return [(f"crowd {number}" if number < 170 else f"made up {number}", number) for number in range(k)]
def one_page(question, k):
    note(k)
    return [(f"crowd {number % 170}", number) for number in range(min(k, 170))]
def lazy(question, k):
    note(k)
    return [("crowd 0", 0.1), ("page 3", 0.2), ("page 77", 0.3)]
"""


@pytest.fixture
def counting(at_home: Path) -> str:
    """Write a module into the current folder that counts its calls."""
    (at_home / "counting_retriever.py").write_text(COUNTING, encoding="utf-8")
    (at_home / "asked").unlink(missing_ok=True)
    return "counting_retriever"


@pytest.mark.parametrize(
    ("function", "fetched", "n_pages"),
    [
        ("one_page", [40, 160, 640], 1),  # asked until it has given all that it has
        ("crowd", [40, 160, 640], 10),
        ("lazy", [40], 3),  # too few: there are no more
    ],
)
def test_rank_stops_fetching_from_short_callable(
    counting: str, crowded: str, function: str, fetched: list[int], n_pages: int
) -> None:
    run = open_run(source=crowded, retriever=f"{counting}:{function}")
    [ranking] = rank_results(run, ["стипендия"], 10, unit="page", timed=0)
    requested = [int(k) for k in Path("asked").read_text().split()]
    assert (requested, len(ranking.ids)) == (fetched, n_pages)


def test_note_unknown_ids_counts_ids_outside_corpus(counting: str, crowded: str) -> None:
    run = open_run(source=crowded, retriever=f"{counting}:lazy")
    cases = retrieve(run, read_cases(run))
    assert cases["retrieved"].to_pylist() == [[f"{PAGE}0", f"{PAGE}3", "page 77"]] * 2
    assert note_unknown_ids(run, cases) == [{"note": "unknown ids", "n": 2}]
    dense_run = open_run(source=crowded, retriever="dense")
    assert note_unknown_ids(dense_run, retrieve(dense_run, read_cases(dense_run))) == []
