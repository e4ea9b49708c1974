"""The judge judged: steady, random, fond of long answers, half unreadable; asked anew, but not after a stop."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sqlalchemy import Engine

from tests.support.command_line import here
from tests.support.evaluations import (
    cases_of,
    evaluate,
    load,
    metric_of,
    question,
    rows_of,
    steady,
    texts,
    value,
)
from tests.support.llm_server import FakeLLMServer, http, says, scores
from yarus.db import journal
from yarus.db.errors import ModelUnavailable
from yarus.flows.terminal.summary import print_summary

Document = dict[str, Any]
PROBES = ("padded", "reordered", "own_model", "plea")


def printed(summary: Document, capsys: pytest.CaptureFixture[str], language: str = "en") -> str:
    print_summary(summary, language)
    return capsys.readouterr().out


def test_agreement_with_people_is_scipys(night: dict[str, Document]) -> None:
    cases = cases_of(night["judge"])
    score, people = (cases[name].to_numpy() for name in ("faithfulness", "human_score"))
    both = ~np.isnan(score) & ~np.isnan(people)
    metrics = night["judge"]["metrics"]
    a, b = score[both], people[both]
    assert metrics["user_votes_spearman"]["value"] == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
    by_chance = np.mean((a[:, None] - b[None, :]) ** 2)
    assert metrics["user_votes_weighted_kappa"]["value"] == pytest.approx(
        1 - np.mean((a - b) ** 2) / by_chance, abs=1e-12
    )
    assert metrics["user_votes_spearman"]["n_scored"] == both.sum() > 100


def test_means_and_probes_are_those_of_the_stored_replies(night: dict[str, Document]) -> None:
    shifts: dict[str, list[float]] = {probe: [] for probe in PROBES}
    for row in rows_of(night["judge"]):
        of_answers = [r for r in row["judge_raw"] if not r["metric"].startswith("exam:")]
        given = {(r["metric"], r["repeat"]): json.loads(r["reply"])["score"] for r in of_answers}
        assert row["faithfulness"] == given.get(("faithfulness", 0))
        assert row["faithfulness_again"] == given.get(("faithfulness", 1))
        for probe in PROBES:
            if (f"bias_{probe}", 0) in given:
                shifts[probe].append(given[f"bias_{probe}", 0] - given["faithfulness", 0])
    for probe, found in shifts.items():
        assert value(night["judge"], f"bias_{probe}") == pytest.approx(np.mean(found), abs=1e-12)
        assert night["judge"]["metrics"][f"bias_{probe}"]["n_scored"] == len(found) > 0
    # The stand-in compares words, and what is added stands in no context.
    assert value(night["judge"], "bias_padded") < 0


@pytest.mark.slow("simulation: 300 questions of a random judge")
def test_a_judge_that_answers_at_random_is_found_out(
    judge: FakeLLMServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sklearn.metrics import cohen_kappa_score

    dice = random.Random(7)
    judge.script = lambda number, request: scores(dice.randrange(5) / 4)
    source = load(tmp_path, "at_random", [question(i) for i in range(300)])
    summary = evaluate("judge", source=source, probes=False)
    rows = rows_of(summary)
    first, second = ([round(4 * row[name]) for row in rows] for name in ("faithfulness", "faithfulness_again"))
    kappa = summary["metrics"]["weighted_kappa"]
    theirs = cohen_kappa_score(first, second, weights="quadratic", labels=range(5))
    assert kappa["value"] == pytest.approx(theirs, abs=1e-12)
    assert abs(kappa["value"]) < 0.15
    assert kappa["ci_low"] < 0 < kappa["ci_high"]
    # Of 25 pairs of five equally likely grades 19 lie within 0.5.
    assert value(summary, "consistency_score_expected") == pytest.approx(19 / 25, abs=0.03)
    assert value(summary, "consistency_score") == pytest.approx(value(summary, "consistency_score_expected"), abs=0.07)
    assert summary["metrics"]["bias_padded"]["value"] is None
    assert "The judge is no better than chance" in printed(summary, capsys)
    assert "Судья не лучше случая" in printed(summary, capsys, "ru")


def test_a_steady_judge_is_above_chance(
    judge: FakeLLMServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = load(tmp_path, "steadily", [question(i) for i in range(40)])
    summary = evaluate("judge", source=source, probes=False)
    names = ("consistency_score", "consistency_score@0.125", "weighted_kappa", "mean_abs_difference", "error_rate")
    assert [value(summary, name) for name in names] == [1, 1, 1, 0, 0]
    assert value(summary, "consistency_score_expected") < 0.9
    assert value(summary, "avg_latency_ms") > 0
    shown = printed(summary, capsys)
    assert "repeats itself better than chance" in shown
    assert "move the judge" not in shown


def test_a_judge_of_one_score_has_no_kappa(
    judge: FakeLLMServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge.script = lambda number, request: scores(1.0)
    summary = evaluate("judge", source=load(tmp_path, "mild", [question(i) for i in range(10)]), probes=False)
    assert (value(summary, "consistency_score"), value(summary, "consistency_score_expected")) == (1, 1)
    assert value(summary, "weighted_kappa") is None
    assert "gives all answers the same score" in printed(summary, capsys)


@pytest.mark.slow("breadth: another judge")
def test_a_judge_that_likes_long_answers_is_caught(
    judge: FakeLLMServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(number: int, request: Document) -> Any:
        if metric_of(request) == "generation":
            return says("Сдать книгу.")
        return scores(min(1.0, len(texts(request)["answer"]) / 250))

    judge.script = script
    long = question(1, answer="Правило велит. Книгу сдать. До мая.")
    summary = evaluate("judge", source=load(tmp_path, "long_winded", [long, *(question(i) for i in range(2, 25))]))
    padded = summary["metrics"]["bias_padded"]
    assert padded["value"] > 0.2
    assert padded["ci_low"] > 0
    assert value(summary, "bias_own_model") < 0
    assert (value(summary, "bias_reordered"), summary["metrics"]["bias_reordered"]["n_scored"]) == (0, 1)
    shown = printed(summary, capsys)
    assert "move the judge (padding at the end): +0." in shown
    assert "reordered sentences" not in shown


def test_the_own_models_answers_are_paid_for_too(judge: FakeLLMServer, engine: Engine, tmp_path: Path) -> None:
    source = load(tmp_path, "counted", [question(i) for i in range(20)])
    summary = evaluate("judge", source=source, exam=0)
    asked = len(judge.requests)
    wrote = 20  # of 10 and 5 tokens, see `steady`; verdicts are of 100 and 20
    expected = {"tokens_in": 100 * (asked - wrote) + 10 * wrote, "tokens_out": 20 * (asked - wrote) + 5 * wrote}
    paid = journal.find(engine, summary["evaluation_id"])
    for name, tokens in expected.items():
        assert sum(row[name] for row in rows_of(summary)) == paid[name] == tokens, name


@pytest.mark.slow("breadth: another judge")
def test_every_evaluation_asks_anew_but_not_after_a_stop(judge: FakeLLMServer, tmp_path: Path) -> None:
    source = load(tmp_path, "anew", [question(i) for i in range(15)])
    whole = 15 * (2 + 2 + 1 + 1)  # twice, padded and plea, the own model's answer and its verdict
    first = evaluate("judge", source=source, exam=0)
    assert len(judge.requests) == whole
    second = evaluate("judge", source=source, exam=0)
    assert len(judge.requests) == 2 * whole - 15  # the own model's answers are no measurement: bought once
    assert first["comparability_key"] == second["comparability_key"]

    good: list[int] = []

    def stops(number: int, request: Document) -> Any:
        if len(good) >= 30:
            return http(401, "no such key")
        good.append(number)
        return steady(number, request)

    judge.script = stops
    with pytest.raises(ModelUnavailable, match="401"):
        evaluate("judge", source=source, exam=0)
    stopped = here("runs", "--json").json[0]
    assert (stopped["tier"], stopped["state"]) == ("judge", "failed")
    asked = len(judge.requests)
    judge.script = steady
    resumed = evaluate("judge", resume=stopped["evaluation_id"])
    assert 0 <= len(judge.requests) - asked - (whole - 15 - 30) <= 16  # those in flight at the stop are asked again
    same = ("avg_faithfulness", "weighted_kappa", "bias_padded", "consistency_score", "user_votes_spearman")
    assert [value(resumed, name) for name in same] == [value(first, name) for name in same]


def test_half_the_replies_broken(judge: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        which = int(texts(request)["question"].split()[3].strip(","))
        return says("не могу оценить") if which % 2 else scores(which / 100)

    judge.script = script
    summary = evaluate(
        "judge", source=load(tmp_path, "unreadable", [question(i) for i in range(40)]), probes=False, exam=0
    )
    assert (summary["state"], summary["statuses"]) == ("invalid", {"ok": 20, "parse_error": 20})
    assert value(summary, "avg_faithfulness") == pytest.approx(np.mean(np.arange(0, 40, 2) / 100))
    # Of a broken case all four calls are without a score: each reply is asked for once more.
    rate = summary["metrics"]["error_rate"]
    assert (rate["value"], rate["n_scored"], rate["n_total"]) == (pytest.approx(80 / 120), 120, 120)
    assert summary["metrics"]["consistency_score"]["n_scored"] == 20
