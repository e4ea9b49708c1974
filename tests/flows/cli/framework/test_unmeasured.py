"""Check that the terminal groups unmeasured metrics by reason; JSON has the reason per metric."""

import logging
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, make_passages, question
from tests.support.sources import store_source
from yarus.flows.terminal.summary import print_overview, print_summary

LABELLED = ("hit_rate@1", "hit_rate@5", "hit_rate@10", "mrr")


@pytest.fixture
def unmatched(at_home: Path, engine: Engine) -> str:
    """Store questions whose labels name the passages of another corpus."""
    rows = [question(i, relevant_chunk_ids=[f"doc-{i}"], confluence_url=None) for i in range(25)]
    return store_source(engine, "unmatched", rows, make_passages(10))


def print_lines(capsys: pytest.CaptureFixture[str], summary: Any, language: str = "en", **options: bool) -> list[str]:
    capsys.readouterr()
    print_summary(summary, language, **options)
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("tier", "names"), [("tier1", "hit_rate@1, mrr, ndcg@10"), ("tier3", "hit_rate@1, hit_rate@5, hit_rate@10")]
)
def test_unmatched_labels_take_one_line(
    unmatched: str, tier: str, names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = evaluate(tier, source=unmatched, retriever="fulltext")
    reasons = {summary["metrics"][name]["reason"] for name in LABELLED}
    assert reasons == {"no label matches a chunk of the corpus"}  # JSON has it per metric
    lines = print_lines(capsys, summary)
    [line] = [line for line in lines if "no label matches a chunk" in line]
    assert f"metrics not measured: no label matches a chunk of the corpus ({names}, …)" in line
    [finding] = [line for line in lines if line.startswith("Labels that match no chunk of the corpus: 25 of 25.")]
    assert finding.endswith("The labels have doc-0, doc-1, doc-10; the corpus has c0, c1, c2.")
    assert not any(line.startswith("mrr") for line in lines)
    assert not any("the question has no relevant label" in line for line in lines)


def test_unmeasured_lines_are_translated(unmatched: str, capsys: pytest.CaptureFixture[str]) -> None:
    summary = evaluate("tier1", source=unmatched, retriever="fulltext")
    output = "\n".join(print_lines(capsys, summary, "ru"))
    assert "Не измерено метрик" in output and "ни одна метка не соответствует корпусу" in output
    assert "В метках doc-0, doc-1, doc-10; в корпусе c0, c1, c2." in output


@pytest.mark.parametrize(
    ("language", "verdict", "advice"),
    [
        ("en", "The evaluation is invalid: no case could be measured: ", "There is nothing to measure: "),
        ("ru", "Прогон недействителен: измерить не удалось ни одного вопроса: ", "Измерить нечего: "),
    ],
)
def test_invalid_evaluation_begins_with_verdict_then_action(
    unmatched: str, capsys: pytest.CaptureFixture[str], language: str, verdict: str, advice: str
) -> None:
    summary = evaluate("tier1", source=unmatched, retriever="fulltext")
    first, second = [line for line in print_lines(capsys, summary, language) if line][:2]
    assert first.startswith(verdict) and first.endswith(".")
    assert second.startswith(advice)
    share = {"error": "only 21.7% of the cases that could be measured were; 95% are needed (YARUS_MIN_COVERAGE)"}
    share |= {"coverage": 0.217, "statuses": {"ok": 5, "sut_error": 18}}
    first, second = [line for line in print_lines(capsys, summary | share, language) if line][:2]
    expected = {
        "en": (f"The evaluation is invalid: {share['error']}.", "See why the other questions were not measured. "),
        "ru": ("Прогон недействителен: из вопросов, которые можно измерить, измерено ", "Посмотрите, почему не "),
    }[language]
    assert first.startswith(expected[0]) and first.endswith("(YARUS_MIN_COVERAGE).")
    assert second.startswith(expected[1])


def test_overview_has_a_line_per_reason(unmatched: str, capsys: pytest.CaptureFixture[str]) -> None:
    summary = evaluate("tier1", source=unmatched, retriever="fulltext")
    capsys.readouterr()
    print_overview({"state": "invalid", "evaluations": [summary]}, "en")  # type: ignore[typeddict-item]
    out = capsys.readouterr().out
    assert out.count("not measured") == 1
    assert "Retrieval: 3 metrics not measured: no label matches a chunk of the corpus (hit_rate@1, mrr, ndcg@10)" in out


def test_measured_metrics_keep_their_rows(at_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = evaluate("tier1", source=load(tmp_path, "matched", map(question, range(10))), retriever="fulltext")
    lines = print_lines(capsys, summary, show_all=True)
    assert sum(line.startswith(LABELLED) for line in lines) == 4
    assert not any("not measured" in line for line in lines)


def test_progress_names_tier_and_source(
    unmatched: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("yarus"), "propagate", True)
    with caplog.at_level(logging.INFO, "yarus"):
        evaluate("tier1", source=unmatched, retriever="fulltext")
    assert "tier1, unmatched: вопросов 25, фрагментов 10" in caplog.text


@pytest.mark.parametrize("language", ["en", "ru"])
def test_first_screen_has_answer_then_headlines(
    at_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    summary = evaluate("tier1", source=load(tmp_path, "answered", map(question, range(10))), retriever="fulltext")
    lines = [line for line in print_lines(capsys, summary, language) if line]
    assert len(lines) <= 40
    assert lines[0].startswith({"en": "The right passage comes first for ", "ru": "Нужное стоит первым у "}[language])
    assert {"en": " % (95 % interval ", "ru": " % (95 % интервал "}[language] in lines[0]
    [hint] = [line for line in lines if line.endswith(f"yarus show {summary['evaluation_id']} --all")]
    metrics = [line.split()[0] for line in lines if line.startswith(("hit_rate", "mrr", "ndcg", "recall"))]
    assert metrics == ["hit_rate@1", "mrr", "ndcg@10"], hint
    assert len(print_lines(capsys, summary, language, show_all=True)) > len(lines)
