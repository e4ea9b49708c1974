"""The budget of alarms, and the alarms to expect."""

import numpy as np
import pytest

from tests.support.evaluation_history import N_WATCHED, NightHistory, make_hit_flags, write_evaluation_with_cases
from yarus.db.errors import InputError
from yarus.deployments.alarms.expected_alarms import alarm_budget
from yarus.metrics.statistics.change_detection import expectation


def test_changes_below_least_change_raise_no_alarm(history: NightHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIT_RATE@1", "MRR", "NDCG@10"):
        monkeypatch.setenv(f"YARUS_MIN_CHANGE__{name}", "0.2")
    history.night(make_hit_flags(0.9))
    assert [history.night(make_hit_flags(0.8)) for _ in range(3)] == ["good"] * 3
    assert history.night(make_hit_flags(0.5)) == "regressed"


def test_smaller_budget_requires_more_evidence(history: NightHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_MAX_FALSE_ALARMS_PER_YEAR", "0.001")
    chance = np.random.default_rng(0)
    for _ in range(8):
        history.night(np.array(make_hit_flags(0.9)) ^ (chance.random(N_WATCHED) < 0.05))
    assert history.night(np.array(make_hit_flags(0.83)) ^ (chance.random(N_WATCHED) < 0.05)) == "good"
    monkeypatch.setenv("YARUS_MAX_FALSE_ALARMS_PER_YEAR", "10")
    assert history.night(np.array(make_hit_flags(0.83)) ^ (chance.random(N_WATCHED) < 0.05)) == "regressed"


def test_alarm_budget_counts_looks_near_newest_evaluation(
    history: NightHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectation, "SIMULATED_YEARS", 1)  # draws for the numbers that this test does not use
    monkeypatch.setattr(expectation, "SIMULATED_RUNS", 1)
    for _ in range(8):
        history.night(make_hit_flags(0.9))
    before = alarm_budget(history.engine, history.source)["checks_per_year"]
    columns = {"mrr": [0.5] * N_WATCHED}  # not a metric of that tier
    old = write_evaluation_with_cases(history.engine, history.folder, history.source, columns, tier="tier0", night=-700)
    budget = alarm_budget(history.engine, history.source)
    assert budget["checks_per_year"] == before > 0
    assert budget["unmonitored_evaluations"] == [old]


@pytest.mark.slow("simulation: ten years are drawn")
def test_alarm_budget_estimates_each_tier(history: NightHistory) -> None:
    chance = np.random.default_rng(0)
    history.night(make_hit_flags(0.8))
    (tier,) = alarm_budget(history.engine, history.source)["tiers"]
    assert (tier["nights"], tier["night_noise_sd"], tier["detection_delay_5_points"]) == (1, None, None)
    for _ in range(10):
        history.night(np.array(make_hit_flags(0.8)) ^ (chance.random(N_WATCHED) < 0.02))
    budget = alarm_budget(history.engine, history.source)
    (tier,) = budget["tiers"]
    assert (tier["metric"], tier["cases"], tier["nights"], tier["min_change"]) == ("hit_rate@1", N_WATCHED, 11, 0.005)
    assert tier["night_noise_sd"] == pytest.approx((0.0196 / N_WATCHED) ** 0.5, rel=0.3)
    assert tier["false_alarms_per_year"] is not None
    assert tier["false_alarms_per_year"] <= 0.5
    delay_5_points, delay_2_points = tier["detection_delay_5_points"], tier["detection_delay_2_points"]
    assert delay_5_points is not None
    assert delay_2_points is not None
    assert delay_5_points <= 2 < delay_2_points
    assert budget["checks_per_year"] >= 365
    with pytest.raises(InputError, match="no evaluated source 'nowhere'"):
        alarm_budget(history.engine, "nowhere")
