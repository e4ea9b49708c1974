"""Check tier 3 of the local system, on the sample too: its figures, and where answers fail first."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import paired_cosine_distances

from tests.support.command_line import CommandLine
from tests.support.evaluations import (
    evaluate,
    get_requested_metric,
    get_value,
    load,
    make_role_variables,
    question,
    read_rows,
    set_variables,
    texts,
)
from tests.support.llm_server import FakeLLMServer
from yarus.db.errors import InputError
from yarus.flows.terminal.summary import print_summary
from yarus.metrics.facts import facts
from yarus.tasks.models.embedding.embedders import get_embedder
from yarus.tasks.steps.failures import find_failure

Document = dict[str, Any]
ANSWER = "Сбор 500 рублей, платить в кассе 3."
FEE_FACT = [{"kind": fact.kind, "text": fact.text, "start": fact.start, "end": fact.end} for fact in facts(ANSWER)[:1]]


def test_unknown_chunk_id_keeps_its_rank(judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stranger.py").write_text(UNKNOWN_RETRIEVER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = load(tmp_path, "strange", [question(i) for i in range(10)])
    summary = evaluate("tier3", source=source, retriever="stranger:retrieve", k=2)
    assert summary["state"] == "completed"
    for row in read_rows(summary):
        assert row["retrieved"] == ["gone", "c1"]
        assert row["context"].startswith("Правило 1 ")
    assert {"note": "unknown ids", "n": 10} in summary["notes"]


UNKNOWN_RETRIEVER = """
def retrieve(question, k):
    return [("gone", 0.1), ("c1", 0.2)]
"""


@pytest.fixture(scope="module")
def sample_rows(night: dict[str, Document]) -> list[Document]:
    return read_rows(night["tier3"])


def test_semantic_similarity_matches_scikit_learn(
    night: dict[str, Document], sample_rows: list[Document], at_home: Path
) -> None:
    rows = [row for row in sample_rows if row["semantic_similarity"] is not None]
    model = get_embedder("lexical")
    answer_vectors, reference_vectors = (model.encode([row[name] for row in rows]) for name in ("answer", "reference"))
    expected = 1 - paired_cosine_distances(answer_vectors.astype(np.float64), reference_vectors.astype(np.float64))
    assert [row["semantic_similarity"] for row in rows] == pytest.approx(expected.tolist(), abs=1e-6)
    assert get_value(night["tier3"], "avg_semantic_similarity") == pytest.approx(expected.mean(), abs=1e-6)
    assert len(rows) == sum(bool(row["answer"] and row["reference"]) for row in sample_rows)


def test_answerable_and_answered_matrix_matches_rows(night: dict[str, Document], sample_rows: list[Document]) -> None:
    cells = Counter(
        (row["answerable"], row["status"] == "sut_refusal") for row in sample_rows if row["answer"] is not None
    )
    names = {(True, False): "answerable_answered", (True, True): "answerable_refused"}
    names |= {(False, False): "unanswerable_answered", (False, True): "unanswerable_refused"}
    assert {cell: get_value(night["tier3"], name) for cell, name in names.items()} == {
        cell: cells[cell] for cell in names
    }
    assert min(cells[cell] for cell in names) > 0
    refused = sum(n for (_, refusal), n in cells.items() if refusal)
    assert get_value(night["tier3"], "refusal_rate") == pytest.approx(refused / sum(cells.values()))


def test_refusal_scores_zero_or_none(sample_rows: list[Document]) -> None:
    refused = [row for row in sample_rows if row["status"] == "sut_refusal"]
    assert {row["faithfulness"] for row in refused} == {None}
    assert {row["e2e_score"] for row in refused if row["answerable"]} == {0}
    assert {row["e2e_score"] for row in refused if row["answerable"] is False} == {None}
    assert {row["failure"] for row in refused if row["answerable"] is False} == {None}


def test_retrieval_matches_tier1(night: dict[str, Document]) -> None:
    for name in ("hit_rate@1", "precision@1", "recall@1"):
        assert night["tier3"]["metrics"][name]["value"] == night["tier1"]["metrics"][name]["value"]


def test_failures_are_counted_and_prioritised(night: dict[str, Document], sample_rows: list[Document]) -> None:
    failures = night["tier3"]["failures"]
    assert failures["counts"] == {key: sum(row["failure"] == key for row in sample_rows) for key in failures["counts"]}
    assert sum(failures["counts"].values()) == sum(row["failure"] is not None for row in sample_rows)
    assert len(failures["fix_first"]) == 5
    for row in sample_rows:
        if row["case_id"] in failures["fix_first"]:
            assert set(row["relevant"]) & set(row["retrieved"])
            assert row["e2e_score"] == 0


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({}, None),
        ({"e2e_score": 0.59}, "generation"),
        ({"faithfulness": 0.69}, "generation"),
        ({"faithfulness": None}, None),
        ({"retrieved": ["b"], "e2e_score": 0.2}, "retrieval"),
        ({"retrieved": [], "e2e_score": 0.0, "status": "sut_refusal"}, "retrieval"),
        ({"retrieved": ["b"]}, "label"),
        ({"retrieved": ["b"], "path": "hidden", "status": "sut_refusal", "e2e_score": 0.0}, "retrieval"),
        ({"path": "hidden", "status": "sut_refusal", "e2e_score": 0.0}, "gate"),
        ({"status": "sut_refusal", "e2e_score": 0.0, "faithfulness": None}, "refusal"),
        ({"relevant": [], "answerable": False, "e2e_score": None}, "refusal"),
        ({"relevant": [], "answerable": False, "e2e_score": None, "status": "sut_refusal"}, None),
        ({"relevant": [], "e2e_score": 0.1}, "generation"),
        ({"retrieved": None, "e2e_score": 0.1}, "generation"),
        ({"unsupported_facts": FEE_FACT}, "generation"),
        ({"unsupported_facts": FEE_FACT, "e2e_score": None, "faithfulness": None}, "generation"),
        ({"unsupported_facts": FEE_FACT, "reference": "Нет."}, "generation"),
        ({"unsupported_facts": FEE_FACT, "reference": "Сбор 500 рублей."}, None),
        ({"unsupported_facts": FEE_FACT, "retrieved": ["b"]}, "label"),
        ({"unsupported_facts": []}, None),
        ({"unsupported_facts": None}, None),
        ({"status": "sut_error", "e2e_score": None}, None),
        ({"status": "parse_error", "e2e_score": None}, None),
        ({"status": "unlabelled", "e2e_score": None, "answerable": None}, None),
    ],
)
def test_failure_of_case(changes: Document, failure: str | None) -> None:
    good = {"status": "ok", "answerable": True, "relevant": ["a"], "retrieved": ["a"], "path": None}
    good |= {"answer": ANSWER, "reference": None}
    assert find_failure({**good, "e2e_score": 0.9, "faithfulness": 1.0, **changes}) == failure


def test_show_omits_quality_without_a_model(yarus: CommandLine, night: dict[str, Document]) -> None:
    output = yarus("show", night["tier3"]["evaluation_id"], env={"YARUS_LANGUAGE": "en"}).out
    assert output.strip().startswith("Quality was not measured: no language model judged.")
    assert "as useful as the references" not in output and "Where answers fail first" not in output
    assert len(output.splitlines()) <= 40


def test_failures_are_named_if_a_model_judged(night: dict[str, Document], capsys: pytest.CaptureFixture[str]) -> None:
    metrics = {name: metric | {"judge": "passed"} for name, metric in night["tier3"]["metrics"].items()}
    summary: Any = night["tier3"] | {"metrics": metrics}
    print_summary(summary, "en")
    output = " ".join(capsys.readouterr().out.split())
    assert f"retrieval missed {night['tier3']['failures']['counts']['retrieval']}" in output
    assert night["tier3"]["failures"]["fix_first"][0] in output


def test_external_system_refuses_chunk_unit(at_home: Path) -> None:
    with pytest.raises(InputError, match="leave out --unit"):
        evaluate("tier3", sut="http://127.0.0.1:1", unit="chunk")


def test_local_system_answers_from_retrieved_chunks(
    judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, make_role_variables(judge.url, "generator"))
    source = load(tmp_path, "own", [question(i) for i in range(10)])
    summary = evaluate("tier3", source=source, retriever="fulltext", k=2)
    generator_texts = [texts(request) for request in judge.requests if get_requested_metric(request) == "generation"]
    assert len(generator_texts) == 10
    assert all(len(prompt_texts["context"].split("\n\n")) <= 2 for prompt_texts in generator_texts)
    rows = read_rows(summary)
    assert all(row["context"].startswith(f"Правило {row['retrieved'][0][1:]} ") for row in rows if row["retrieved"])
    assert summary["state"] == "completed"


def test_batch_without_labels_is_skipped(at_home: Path, tmp_path: Path) -> None:
    rows = [question(i) | ({"answer": None} if i < 100 else {}) for i in range(103)]
    for row in rows[:100]:
        row.pop("ground_truth_answer", None)
    summary = evaluate("tier3", source=load(tmp_path, "sparse", rows))
    assert summary["statuses"] == {"unlabelled": 100, "ok": 3}
