"""Check judges: steady, random, with a preference for long answers, half unreadable; repeated, resumed."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sqlalchemy import Engine

from tests.support.command_line import run_here
from tests.support.evaluations import (
    answer_steadily,
    evaluate,
    get_requested_metric,
    get_value,
    load,
    question,
    read_cases,
    read_rows,
    texts,
)
from tests.support.llm_server import FakeLLMServer, make_completion, make_response, make_score_completion
from yarus.db import journal
from yarus.db.errors import ModelUnavailable
from yarus.flows.terminal.summary import print_summary
from yarus.tasks.config.texts import translations

Document = dict[str, Any]
PROBES = ("padded", "reordered", "own_model", "plea")


def print_to_text(summary: Document, capsys: pytest.CaptureFixture[str], language: str = "en") -> str:
    print_summary(summary, language)
    return capsys.readouterr().out


def test_stand_in_has_no_answers_of_its_own_model(
    night: dict[str, Document], capsys: pytest.CaptureFixture[str]
) -> None:
    judged = copy.deepcopy(night["judge"])
    judged["metrics"]["bias_own_model"] |= {"value": 0.03, "ci_low": 0.02, "ci_high": 0.04}
    phrase = translations("biases", "bias_own_model")["en"]
    assert phrase not in " ".join(print_to_text(judged, capsys).split())
    for metric in judged["metrics"].values():
        metric["judge"] = metric["judge"] and "passed"
    assert phrase in " ".join(print_to_text(judged, capsys).split())


def test_agreement_with_people_matches_scipy(night: dict[str, Document]) -> None:
    cases = read_cases(night["judge"])
    score, people = (cases[name].to_numpy() for name in ("faithfulness", "human_score"))
    has_both = ~np.isnan(score) & ~np.isnan(people)
    metrics = night["judge"]["metrics"]
    scores, votes = score[has_both], people[has_both]
    assert metrics["user_votes_spearman"]["value"] == pytest.approx(spearmanr(scores, votes).statistic, abs=1e-12)
    expected_distance = np.mean((scores[:, None] - votes[None, :]) ** 2)
    assert metrics["user_votes_weighted_kappa"]["value"] == pytest.approx(
        1 - np.mean((scores - votes) ** 2) / expected_distance, abs=1e-12
    )
    assert metrics["user_votes_spearman"]["n_scored"] == has_both.sum() > 100


def test_means_and_probes_match_stored_replies(night: dict[str, Document]) -> None:
    shifts: dict[str, list[float]] = {probe: [] for probe in PROBES}
    for row in read_rows(night["judge"]):
        replies = [reply for reply in row["judge_raw"] if not reply["metric"].startswith("exam:")]
        scores = {(reply["metric"], reply["repeat"]): json.loads(reply["reply"])["score"] for reply in replies}
        assert row["faithfulness"] == scores.get(("faithfulness", 0))
        assert row["faithfulness_again"] == scores.get(("faithfulness", 1))
        for probe in PROBES:
            if (f"bias_{probe}", 0) in scores:
                shifts[probe].append(scores[f"bias_{probe}", 0] - scores["faithfulness", 0])
    for probe, probe_shifts in shifts.items():
        assert get_value(night["judge"], f"bias_{probe}") == pytest.approx(np.mean(probe_shifts), abs=1e-12)
        assert night["judge"]["metrics"][f"bias_{probe}"]["n_scored"] == len(probe_shifts) > 0
    # The stand-in compares words, and the added words are in no context.
    assert get_value(night["judge"], "bias_padded") < 0


@pytest.mark.slow("simulation: 300 questions of a random judge")
def test_random_judge_is_detected(judge: FakeLLMServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sklearn.metrics import cohen_kappa_score

    dice = random.Random(7)
    judge.script = lambda number, request: make_score_completion(dice.randrange(5) / 4)
    source = load(tmp_path, "at_random", [question(i) for i in range(300)])
    summary = evaluate("judge", source=source, bias_probes=False)
    rows = read_rows(summary)
    first, second = ([round(4 * row[name]) for row in rows] for name in ("faithfulness", "faithfulness_again"))
    kappa = summary["metrics"]["weighted_kappa"]
    expected = cohen_kappa_score(first, second, weights="quadratic", labels=range(5))
    assert kappa["value"] == pytest.approx(expected, abs=1e-12)
    assert abs(kappa["value"]) < 0.15
    assert kappa["ci_low"] < 0 < kappa["ci_high"]
    # Of 25 pairs of five equally likely grades 19 lie within 0.5.
    assert get_value(summary, "consistency_score_expected") == pytest.approx(19 / 25, abs=0.03)
    assert get_value(summary, "consistency_score") == pytest.approx(
        get_value(summary, "consistency_score_expected"), abs=0.07
    )
    assert summary["metrics"]["bias_padded"]["value"] is None
    assert "The judge does no better than chance" in print_to_text(summary, capsys)
    assert "Судья не лучше случая" in print_to_text(summary, capsys, "ru")


def test_steady_judge_is_above_chance(judge: FakeLLMServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = load(tmp_path, "steadily", [question(i) for i in range(40)])
    summary = evaluate("judge", source=source, bias_probes=False)
    names = ("consistency_score", "consistency_score@0.125", "weighted_kappa", "mean_abs_difference", "error_rate")
    assert [get_value(summary, name) for name in names] == [1, 1, 1, 0, 0]
    assert get_value(summary, "consistency_score_expected") < 0.9
    assert get_value(summary, "avg_latency_ms") > 0
    output = print_to_text(summary, capsys)
    assert "repeats itself better than chance" in output
    assert "shift the judge" not in output


def test_constant_judge_has_no_kappa(judge: FakeLLMServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge.script = lambda number, request: make_score_completion(1.0)
    summary = evaluate("judge", source=load(tmp_path, "mild", [question(i) for i in range(10)]), bias_probes=False)
    assert (get_value(summary, "consistency_score"), get_value(summary, "consistency_score_expected")) == (1, 1)
    assert get_value(summary, "weighted_kappa") is None
    assert "gives all answers the same score" in print_to_text(summary, capsys)


@pytest.mark.slow("breadth: another judge")
def test_judge_that_prefers_length_is_detected(
    judge: FakeLLMServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(number: int, request: Document) -> Any:
        if get_requested_metric(request) == "generation":
            return make_completion("Сдать книгу.")
        return make_score_completion(min(1.0, len(texts(request)["answer"]) / 250))

    judge.script = script
    long = question(1, answer="Правило велит. Книгу сдать. До мая.")
    summary = evaluate("judge", source=load(tmp_path, "long_winded", [long, *(question(i) for i in range(2, 25))]))
    padded = summary["metrics"]["bias_padded"]
    assert padded["value"] > 0.2
    assert padded["ci_low"] > 0
    assert get_value(summary, "bias_own_model") < 0
    assert (get_value(summary, "bias_reordered"), summary["metrics"]["bias_reordered"]["n_scored"]) == (0, 1)
    output = print_to_text(summary, capsys)
    assert "shift the judge's scores (padding at the end): +0." in output
    assert "reordered sentences" not in output


def test_own_model_answers_are_counted(judge: FakeLLMServer, engine: Engine, tmp_path: Path) -> None:
    source = load(tmp_path, "counted", [question(i) for i in range(20)])
    summary = evaluate("judge", source=source, exam=0)
    n_all = len(judge.requests)
    n_own = 20  # 10 and 5 tokens each, see `answer_steadily`; verdicts have 100 and 20
    expected = {"tokens_in": 100 * (n_all - n_own) + 10 * n_own, "tokens_out": 20 * (n_all - n_own) + 5 * n_own}
    journal_row = journal.find_evaluation(engine, summary["evaluation_id"])
    for name, tokens in expected.items():
        assert sum(row[name] for row in read_rows(summary)) == journal_row[name] == tokens, name


@pytest.mark.slow("breadth: another judge")
def test_judge_is_asked_again_except_after_stop(judge: FakeLLMServer, tmp_path: Path) -> None:
    source = load(tmp_path, "anew", [question(i) for i in range(15)])
    n_expected = 15 * (2 + 2 + 1 + 1)  # twice, padded and plea, the own model's answer and its verdict
    first = evaluate("judge", source=source, exam=0)
    assert len(judge.requests) == n_expected
    second = evaluate("judge", source=source, exam=0)
    assert len(judge.requests) == 2 * n_expected - 15  # the own model's answers measure nothing: bought once
    assert first["comparability_key"] == second["comparability_key"]

    answered: list[int] = []

    def stops(number: int, request: Document) -> Any:
        if len(answered) >= 30:
            return make_response(401, "no such key")
        answered.append(number)
        return answer_steadily(number, request)

    judge.script = stops
    with pytest.raises(ModelUnavailable, match="401"):
        evaluate("judge", source=source, exam=0)
    stopped = run_here("runs", "--json").json[0]
    assert (stopped["tier"], stopped["state"]) == ("judge", "failed")
    before = len(judge.requests)
    judge.script = answer_steadily
    resumed = evaluate("judge", resume=stopped["evaluation_id"])
    assert 0 <= len(judge.requests) - before - (n_expected - 15 - 30) <= 16  # those in flight are asked again
    same = ("avg_faithfulness", "weighted_kappa", "bias_padded", "consistency_score", "user_votes_spearman")
    assert [get_value(resumed, name) for name in same] == [get_value(first, name) for name in same]


def test_unreadable_replies_are_counted(judge: FakeLLMServer, tmp_path: Path) -> None:
    def script(_: int, request: Document) -> Any:
        number = int(texts(request)["question"].split()[3].strip(","))
        return make_completion("не могу оценить") if number % 2 else make_score_completion(number / 100)

    judge.script = script
    summary = evaluate(
        "judge", source=load(tmp_path, "unreadable", [question(i) for i in range(40)]), bias_probes=False, exam=0
    )
    assert (summary["state"], summary["statuses"]) == ("invalid", {"ok": 20, "parse_error": 20})
    assert get_value(summary, "avg_faithfulness") == pytest.approx(np.mean(np.arange(0, 40, 2) / 100))
    # An unreadable case has four calls without a score, because each reply is requested once more.
    rate = summary["metrics"]["error_rate"]
    assert (rate["value"], rate["n_scored"], rate["n_total"]) == (pytest.approx(80 / 120), 120, 120)
    assert summary["metrics"]["consistency_score"]["n_scored"] == 20
