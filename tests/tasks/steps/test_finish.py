"""Data stored at the end of an evaluation in addition to its metrics."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, question
from yarus.db import journal
from yarus.tasks.comparison.trend import trend

N = 40


def test_finish_stores_changes_since_previous_night(at_home: Path, engine: Engine, tmp_path: Path) -> None:
    source = load(tmp_path, "nights", [question(i) for i in range(N)])
    first = evaluate("tier1", source=source)
    second = evaluate("tier1", source=source)
    assert "paired" not in journal.find_evaluation(engine, first["evaluation_id"])["resolved"]
    paired = journal.find_evaluation(engine, second["evaluation_id"])["resolved"]["paired"]
    assert (paired["since"], paired["share"]) == (first["evaluation_id"], 1.0)
    change = paired["changes"]["hit_rate@1"]
    assert (change["difference"], change["variance"], change["lag"]) == (0, 0, 1)
    assert change["step"] == pytest.approx(1 / N)
    assert "paired" not in second["system"]
    nights = trend(engine, "hit_rate@1", tier="tier1", source=source)["nights"]
    assert [night["paired"] for night in nights] == [False, True]


def test_finish_sorts_questions_of_rolling_log_into_kinds(
    at_home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = evaluate("tier1", source="sample", limit=60)
    monkeypatch.setattr("yarus.tasks.steps.finish.is_rolling", lambda run: True)
    rolling = evaluate("tier1", source="sample", limit=60)
    assert "mix" not in journal.find_evaluation(engine, fixed["evaluation_id"])["resolved"]
    cells = journal.find_evaluation(engine, rolling["evaluation_id"])["resolved"]["mix"]["cells"]
    assert [*cells] == ["mrr", "ndcg@10", "hit_rate@1"]
    counts = [n for n, _ in cells["mrr"].values()]
    metric = rolling["metrics"]["mrr"]
    assert sum(counts) == metric["n_scored"]
    assert sum(total for _, total in cells["mrr"].values()) == pytest.approx(metric["value"] * metric["n_scored"])
    assert len(counts) > 2
    assert "mix" not in rolling["system"]
