"""Check the real users' tier as a flow: strata of the log, each recomputed from the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, CommandResult
from tests.support.evaluations import evaluate, load, question
from tests.support.steps import evaluate_real_users
from yarus.db.loading.load_rows import ImportedRows, IncomingRow, load_rows
from yarus.db.urls import canonical_url
from yarus.flows.terminal.summary import print_summary

Document = dict[str, Any]
PAGE = "https://wiki.example/pages/viewpage.action?pageId="
RANKING = ("hit_rate@1", "hit_rate@10", "mrr", "recall@10", "precision@10", "ndcg@10")


@pytest.fixture(scope="module")
def without_labels(yarus: CommandLine, engine: Engine) -> CommandResult:
    """Evaluate a log in which no page was shown, from the command line."""
    store_log(engine, "no_labels", None, "", "None", score=None)
    return yarus("run", "real_users", "--source", "no_labels", "--json", ok=False)


@pytest.fixture(scope="module")
def on_sample(night: dict[str, Document]) -> Document:
    return night["real_users"]


@pytest.fixture(scope="module")
def cases(on_sample: Document) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.ParquetFile(on_sample["parquet"]).read().to_pylist()
    return rows


def test_strata_are_means_over_their_cases(on_sample: Document, cases: list[dict[str, Any]]) -> None:
    assert set(on_sample["strata"]) == {"all", "confirmed", "agreement", "contradicted"}
    for name, metrics in on_sample["strata"].items():
        stratum_cases = [case for case in cases if name in ("all", case["stratum"])]
        scored = [case for case in stratum_cases if case["status"] == "ok"]
        hits = [bool(set(case["relevant"]) & set(case["retrieved"][:5])) for case in scored]
        ranks = [
            next((1 / rank for rank, page in enumerate(case["retrieved"], 1) if page in case["relevant"]), 0)
            for case in scored
        ]
        assert metrics["hit_rate@5"]["value"] == pytest.approx(np.mean(hits)), name
        assert metrics["mrr"]["value"] == pytest.approx(np.mean(ranks)), name
        assert (metrics["mrr"]["n_scored"], metrics["mrr"]["n_total"]) == (len(scored), len(stratum_cases))
        for status in ("unlabelled", "stale_label"):
            share = sum(case["status"] == status for case in stratum_cases) / len(stratum_cases)
            assert metrics[f"{status}_rate"]["value"] == pytest.approx(share), (name, status)


def test_headline_is_confirmed_stratum(on_sample: Document) -> None:
    assert on_sample["metrics"] == on_sample["strata"]["confirmed"]
    assert on_sample["system"]["unit"] == "page"
    assert 0.5 < on_sample["metrics"]["hit_rate@1"]["value"] < 1
    assert on_sample["strata"]["contradicted"]["mrr"]["value"] < on_sample["metrics"]["mrr"]["value"]


def test_terminal_prints_strata_with_all_only(on_sample: Any, capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(on_sample, "en")
    brief = capsys.readouterr().out
    assert "Headline: confirmed by the user (score 5)" in brief and "Part of the log" not in brief
    print_summary(on_sample, "en", show_all=True)
    complete = capsys.readouterr().out
    assert complete.index("95 % interval") < complete.index("Part of the log")


def test_pages_are_canonical_and_unique(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        all_pages = [*case["relevant"], *case["retrieved"]]
        assert all_pages == [canonical_url(page) for page in all_pages]
        assert len(set(case["retrieved"])) == len(case["retrieved"])
        assert case["question_id"] not in all_pages
    assert len({" ".join(case["question"].casefold().split()) for case in cases}) == len(cases)


def test_left_out_cases_are_noted(on_sample: Document) -> None:
    notes = {note["note"]: note["n"] for note in on_sample["notes"]}
    assert notes.keys() == {"stale labels", "duplicates merged"}
    assert on_sample["n_cases"] + notes["duplicates merged"] == 374


def store_log(engine: Engine, name: str, *urls: str | None, score: int | None = 5) -> str:
    """Store a source of three pages, and a log that shows these."""
    columns = ("id", "confluence_url", "text")
    texts = ("Стипендия и приказ", "Общежитие и заселение", "Библиотека и книги")
    chunks = [(str(n), f"{PAGE}{n}", passage) for n, passage in enumerate(texts)]
    questions = [
        {"id": str(n), "question": f"Стипендия {n}", "confluence_url": url, "score": score}
        for n, url in enumerate(urls)
    ]
    rows = ImportedRows(
        chunks=[IncomingRow(values[0], dict(zip(columns, values, strict=True))) for values in chunks],
        questions=[IncomingRow(question["id"], question) for question in questions],
    )
    load_rows(engine, name, rows, language="ru", origin="a test")
    return name


def test_log_of_one_row(at_home: Path, engine: Engine) -> None:
    name = store_log(engine, "one_row", f"{PAGE}0&preview=/0/a.png")
    document = evaluate_real_users(source=name, retriever="hybrid", limit=10)
    assert (document["state"], document["n_cases"]) == ("completed", 1)
    assert (document["metrics"]["mrr"]["value"], document["metrics"]["recall@10"]["value"]) == (1, 1)
    assert document["strata"]["agreement"]["mrr"]["value"] is None
    assert document["strata"]["agreement"]["mrr"]["n_total"] == 0


def test_unlabelled_log_gives_null_metrics(without_labels: CommandResult) -> None:
    document = without_labels.json
    assert (without_labels.code, document["state"], document["coverage"]) == (1, "invalid", None)
    assert "no page is labelled relevant" in document["error"]
    for stratum in ("all", "agreement"):
        metrics = document["strata"][stratum]
        assert metrics["unlabelled_rate"]["value"] == 1
        for metric in RANKING:
            assert (metrics[metric]["value"], metrics[metric]["reason"]) == (None, "3 of 3 cases are unlabelled")


def test_dead_service_is_system_error(at_home: Path, engine: Engine) -> None:
    name = store_log(engine, "dead_service", f"{PAGE}0", f"{PAGE}1", f"{PAGE}9")
    document = evaluate_real_users(source=name, retriever="http://127.0.0.1:1/search")
    assert (document["state"], document["coverage"]) == ("invalid", 0)
    assert document["statuses"] == {"sut_error": 3}  # regardless of labels
    assert document["metrics"]["sut_error_rate"]["value"] == 1
    assert document["metrics"]["stale_label_rate"]["value"] == pytest.approx(1 / 3)
    assert {document["metrics"][metric]["value"] for metric in RANKING} == {None}
    reasons = pq.ParquetFile(document["parquet"]).read(["reason"])["reason"].to_pylist()
    assert "ConnectError" in reasons[0]


def test_retrieval_is_timed_in_headline_stratum(at_home: Path, tmp_path: Path) -> None:
    """Let the first hundred questions have no feedback, and the confirmed twenty come last."""
    rows = [question(i, origin=None, score=None if i < 150 else 5) for i in range(170)]
    summary = evaluate("real_users", source=load(tmp_path, "confirmed_last", rows))
    latencies = {name: metrics["retrieval_latency_ms_p50"] for name, metrics in summary["strata"].items()}
    assert (latencies["confirmed"]["n_scored"], latencies["confirmed"]["n_total"]) == (20, 20)
    assert 100 <= latencies["agreement"]["n_scored"] < 150
