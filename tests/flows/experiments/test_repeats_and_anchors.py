"""Check repeats: A/A pairs and their noise floor, anchors and the judge's drift, and unsuitable pairs."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, run_here
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from tests.support.evaluations import evaluate, get_value, load, make_role_variables, question, read_rows, set_variables
from tests.support.llm_server import FakeLLMServer, make_completion, make_score_completion
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.noise_floor import estimate_noise_floors, noise_bands
from yarus.tasks.comparison.trend import trend
from yarus.tasks.config.parameters import Tier2, Tier3
from yarus.tasks.evaluation.repeats import resolve_repeated_parameters

Document = dict[str, Any]
N = 40


class Judge:
    """A judge with random scores from 0.2 to 0.8, lowered by a drift."""

    def __init__(self) -> None:
        self.random, self.drift = random.Random(0), 0.0

    def __call__(self, number: int, request: Document) -> bytes:
        return make_score_completion(round(self.random.uniform(0.2, 0.8) + self.drift, 3))


@pytest.fixture
def judge(judge: FakeLLMServer) -> FakeLLMServer:
    judge.script = Judge()
    return judge


def test_repeat_asks_again_and_measures_noise(judge: FakeLLMServer, engine: Engine, tmp_path: Path) -> None:
    source = load(tmp_path, "again", [question(i) for i in range(N)])
    first = evaluate("tier3", source=source, k=2)
    n_requests = len(judge.requests)
    evaluate("tier3", source=source, k=2)
    assert len(judge.requests) == n_requests  # bought once
    again = evaluate("tier3", repeat_of=first["evaluation_id"])
    assert len(judge.requests) == 2 * n_requests
    assert again["comparability_key"] == first["comparability_key"]
    assert (again["system"]["again"], again["system"]["k"]) == (first["evaluation_id"], 2)
    differences = [b["e2e_score"] - a["e2e_score"] for a, b in zip(read_rows(first), read_rows(again), strict=True)]
    assert np.count_nonzero(differences) > N / 2
    bands = noise_bands(engine, first["comparability_key"])
    sums: Counter[str] = Counter()
    for row, difference in zip(read_rows(first), differences, strict=True):
        sums[row["group"] or row["case_id"]] += difference
    assert bands["avg_e2e_score"] == pytest.approx(1.96 * np.sqrt(sum(s * s for s in sums.values())) / N, rel=1e-3)
    assert bands["avg_rouge1_f"] == bands["hit_rate@1"] == 0.0
    assert compare(engine, first["evaluation_id"], again["evaluation_id"])["noise"] == bands
    history = trend(engine, "avg_e2e_score", tier="tier3", source=source)
    assert history["nights"][0]["evaluation_id"] == first["evaluation_id"]
    assert again["evaluation_id"] not in [night["evaluation_id"] for night in history["nights"]]
    assert history["noise"] == {"band": bands["avg_e2e_score"], "pairs": 1, "n": N}


def test_evaluation_of_before_renaming_is_repeated(
    judge: FakeLLMServer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Journal rows have the former names of parameters and settings, as in a home of before."""
    source = load(tmp_path, "before", [question(i) for i in range(5)])
    set_variables(monkeypatch, {"YARUS_REFUSALS": '["не знаю"]'})  # as in an older .env
    first = evaluate("tier3", source=source, merge_duplicates=False)
    row = journal.find_evaluation(engine, first["evaluation_id"])
    assert (row["parameters"]["twins"], row["parameters"]["again"], row["settings"]["refusals"]) == (
        False,
        None,
        ["не знаю"],
    )
    monkeypatch.delenv("YARUS_REFUSALS")
    set_variables(monkeypatch, {"YARUS_REFUSAL_PHRASES": '["не знаю"]'})
    second = evaluate("tier3", repeat_of=first["evaluation_id"])
    assert second["comparability_key"] == first["comparability_key"]
    assert (second["system"]["twins"], second["system"]["again"]) == ("apart", first["evaluation_id"])
    assert "metrics" in compare(engine, first["evaluation_id"], second["evaluation_id"])


@pytest.mark.slow("breadth: an anchor's evaluations")
def test_anchor_shows_judge_drift(judge: FakeLLMServer, engine: Engine, tmp_path: Path) -> None:
    source = load(tmp_path, "anchored", [question(i) for i in range(N)])
    first = evaluate("tier3", source=source)
    n_requests = len(judge.requests)
    judge.script.drift = -0.2  # type: ignore[attr-defined]
    nights = [evaluate("tier3", anchor=first["evaluation_id"]) for _ in range(2)]
    assert len(judge.requests) == 3 * n_requests
    for night in nights:
        assert [row["answer"] for row in read_rows(night)] == [row["answer"] for row in read_rows(first)]
        assert (night["system"]["anchor"], night["source"]) == (first["evaluation_id"], source)
        assert night["comparability_key"] == first["comparability_key"]
        assert get_value(night, "avg_e2e_score") < get_value(first, "avg_e2e_score") - 0.1
    anchors = trend(engine, "avg_e2e_score", tier="tier3", source=source, anchor=True)
    assert [night["evaluation_id"] for night in anchors["nights"]] == [night["evaluation_id"] for night in nights]
    assert [journal.find_previous(engine, n["evaluation_id"]) for n in nights] == [None, nights[0]["evaluation_id"]]
    history = trend(engine, "avg_e2e_score", tier="tier3", source=source)
    assert [night["evaluation_id"] for night in history["nights"]] == [first["evaluation_id"]]


def test_gate_can_be_repeated(judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, make_role_variables(judge.url, "gate"))
    judge.script = lambda number, request: make_completion("да")
    first = evaluate(
        "judge_pipeline", source=load(tmp_path, "gate_again", [question(i, ground_truth_show=True) for i in range(12)])
    )
    assert first["state"] == "completed", (first["error"], first["statuses"])
    again = evaluate("judge_pipeline", repeat_of=first["evaluation_id"])
    assert again["comparability_key"] == first["comparability_key"]
    assert (again["source"], len(judge.requests)) == ("gate_again", 24)


def test_unsuitable_repeat_is_refused(
    judge: FakeLLMServer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "no_pair", [question(i) for i in range(6)])
    first = evaluate("tier3", source=source)
    name = first["evaluation_id"]
    for parameters, message in (
        (Tier3(repeat_of=name, k=5), "whose k is 1; leave out --k 5"),
        (Tier3(repeat_of=name, source="helpdesk"), "leave out --source helpdesk"),
        (Tier2(repeat_of=name), f"it is of tier3: yarus run tier3 --repeat-of {name}"),
        (Tier2(anchor=name), f"it is of tier3: yarus run tier3 --anchor {name}"),
        (Tier3(repeat_of="tier3-nothing"), "--repeat-of tier3-nothing: no evaluation"),
    ):
        with pytest.raises(InputError, match=message):
            resolve_repeated_parameters(engine, parameters)
    same, repeated = resolve_repeated_parameters(engine, Tier3(repeat_of=name, source=source))
    assert (same.source, same.repeat_of, repeated["id"]) == (source, name, name)
    monkeypatch.setenv("YARUS_RETRIEVER", "fulltext")
    with pytest.raises(InputError, match="started with YARUS_RETRIEVER='dense', but it is now 'fulltext'"):
        evaluate("tier3", repeat_of=name)


@pytest.mark.slow("prefect: two nights")
def test_night_runs_with_anchor(at_home: Path, yarus: CommandLine, night: dict[str, Document]) -> None:
    anchor = night["tier3"]["evaluation_id"]
    document = yarus("run", "nightly", "--tiers", "ux", "--anchor", anchor, "--json").json
    assert [evaluation["tier"] for evaluation in document["evaluations"]] == ["ux", "tier3"]
    assert document["evaluations"][1]["system"]["anchor"] == anchor
    refused = run_here("run", "nightly", "--tiers", "ux", "--anchor", night["tier1"]["evaluation_id"], env=ENGLISH)
    assert (refused.code, "name one of tier2 or tier3" in refused.err) == (2, True)


# The noise floor itself, on pairs written into the journal.


def write_pair(engine: Engine, folder: Path, before: list[float], after: list[float], **more: Any) -> str:
    """Write an A/A pair of tier 2, and return its comparability key."""
    source = make_source_name()
    shared = {"tier": "tier2"}
    first = write_evaluation_with_cases(engine, folder, source, {"faithfulness": before, **more}, **shared)
    repeated = {"resolved": {"again": first}}
    write_evaluation_with_cases(engine, folder, source, {"faithfulness": after, **more}, night=1, **shared, **repeated)
    return f"key of {source}"


def test_noise_band_covers_repeats(engine: Engine, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n, noise_sd = 400, 0.1
    truth = rng.uniform(0.3, 0.7, n)
    before, after = (truth + noise_sd * rng.normal(size=n) for _ in range(2))
    band = noise_bands(engine, write_pair(engine, tmp_path, before.tolist(), after.tolist()))["avg_faithfulness"]
    simulated = [noise_sd * np.mean(rng.normal(size=n) - rng.normal(size=n)) for _ in range(2_000)]
    assert 0.92 <= np.mean(np.abs(simulated) <= band) <= 0.98


def test_grouped_cases_widen_noise_band(engine: Engine, tmp_path: Path) -> None:
    groups = [f"user {number // 10}" for number in range(100)]
    changes = [0.1 if number // 10 % 2 else -0.1 for number in range(100)]
    alone = noise_bands(engine, write_pair(engine, tmp_path, [0.5] * 100, [0.5 + x for x in changes]))
    grouped = noise_bands(engine, write_pair(engine, tmp_path, [0.5] * 100, [0.5 + x for x in changes], group=groups))
    assert alone["avg_faithfulness"] == pytest.approx(1.96 * 0.1 / np.sqrt(100), rel=1e-3)
    assert grouped["avg_faithfulness"] == pytest.approx(1.96 * 0.1 / np.sqrt(10), rel=1e-3)


def test_noise_averages_pairs_and_skips_lost_file(engine: Engine, tmp_path: Path) -> None:
    source = make_source_name()
    shared = {"tier": "tier2"}
    first = write_evaluation_with_cases(engine, tmp_path, source, {"faithfulness": [0.5] * 50}, **shared)
    for night, value_then in enumerate((0.6, 0.8, 0.9), 1):
        lost = {"parquet": str(tmp_path / "lost.parquet")} if night == 3 else {}
        columns = {"faithfulness": [value_then] * 50}
        write_evaluation_with_cases(
            engine, tmp_path, source, columns, night=night, resolved={"again": first}, **shared, **lost
        )
    noise_floor = estimate_noise_floors(engine, f"key of {source}")["avg_faithfulness"]
    assert noise_floor.band == pytest.approx(1.96 * np.sqrt((0.1**2 + 0.3**2) / 2 / 50), rel=1e-3)
    assert (noise_floor.pairs, noise_floor.n) == (2, 100)


def test_noise_is_empty_without_pairs(engine: Engine) -> None:
    assert noise_bands(engine, "no such key") == {}
