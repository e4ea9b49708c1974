"""What alarms may cost, and what to expect of them here."""

import numpy as np
import pytest

from tests.support.evaluation_history import N_WATCHED, History, share, with_cases
from yarus.db.errors import InputError
from yarus.deployments.alarms.expected import alarm_budget
from yarus.metrics.statistics.alarms import expectation


def test_a_change_below_the_least_that_was_set_never_rings(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIT_RATE@1", "MRR", "NDCG@10"):
        monkeypatch.setenv(f"YARUS_LEAST_CHANGE__{name}", "0.2")
    history.night(share(0.9))
    assert [history.night(share(0.8)) for _ in range(3)] == ["good"] * 3
    assert history.night(share(0.5)) == "regressed"


def test_a_smaller_budget_asks_for_more_evidence(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_FALSE_ALARMS_A_YEAR", "0.001")
    chance = np.random.default_rng(0)
    for _ in range(8):
        history.night(np.array(share(0.9)) ^ (chance.random(N_WATCHED) < 0.05))
    assert history.night(np.array(share(0.83)) ^ (chance.random(N_WATCHED) < 0.05)) == "good"
    monkeypatch.setenv("YARUS_FALSE_ALARMS_A_YEAR", "10")
    assert history.night(np.array(share(0.83)) ^ (chance.random(N_WATCHED) < 0.05)) == "regressed"


def test_looks_are_counted_around_the_newest_evaluation_of_all(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectation, "YEARS", 1)  # what to expect is drawn for the numbers that are not read here
    monkeypatch.setattr(expectation, "RUNS", 1)
    for _ in range(8):
        history.night(share(0.9))
    before = alarm_budget(history.engine, history.source)["looks_a_year"]
    columns = {"mrr": [0.5] * N_WATCHED}  # no metric of that tier
    old = with_cases(history.engine, history.folder, history.source, columns, tier="tier0", night=-700)
    budget = alarm_budget(history.engine, history.source)
    assert budget["looks_a_year"] == before > 0
    assert budget["unwatched"] == [old]


@pytest.mark.slow("simulation: ten years are drawn")
def test_what_to_expect_is_told_of_each_tier(history: History) -> None:
    chance = np.random.default_rng(0)
    history.night(share(0.8))
    (one,) = alarm_budget(history.engine, history.source)["tiers"]
    assert (one["nights"], one["night_by_itself"], one["nights_to_notice_5_points"]) == (1, None, None)
    for _ in range(10):
        history.night(np.array(share(0.8)) ^ (chance.random(N_WATCHED) < 0.02))
    found = alarm_budget(history.engine, history.source)
    (one,) = found["tiers"]
    assert (one["metric"], one["cases"], one["nights"], one["least_change"]) == ("hit_rate@1", N_WATCHED, 11, 0.005)
    assert one["night_by_itself"] == pytest.approx((0.0196 / N_WATCHED) ** 0.5, rel=0.3)
    assert one["false_alarms_a_year"] is not None
    assert one["false_alarms_a_year"] <= 0.5
    at_once, less = one["nights_to_notice_5_points"], one["nights_to_notice_2_points"]
    assert at_once is not None
    assert less is not None
    assert at_once <= 2 < less
    assert found["looks_a_year"] >= 365
    with pytest.raises(InputError, match="no evaluated source 'nowhere'"):
        alarm_budget(history.engine, "nowhere")
