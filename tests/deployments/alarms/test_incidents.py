"""Verdicts of nights against the accepted level, and incidents."""

from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, delete, update

from tests.support.evaluation_history import N_WATCHED, NightHistory, make_hit_flags
from yarus.db import journal
from yarus.db.tables import evaluation
from yarus.deployments.alarms.incidents import accept_evaluation, list_incidents
from yarus.deployments.prefect.artifacts import night_changes, night_text, read_changes, verdict_text
from yarus.tasks.comparison.compare import compare
from yarus.tasks.evaluation.summary import combine_summaries, read_summary


def test_night_of_other_questions_is_a_new_sample(history: NightHistory) -> None:
    assert history.night(make_hit_flags(0.9)) == "good"
    assert history.night(make_hit_flags(0.86), cases="other") == "good"
    assert history.night(make_hit_flags(0.3), cases="a third") == "regressed"
    assert history.open == ["regressed"]
    assert history.night(make_hit_flags(0.9)) == "good"  # compared with the first night, which has the same questions
    assert history.open == []


def test_night_of_other_questions_keeps_the_level(history: NightHistory) -> None:
    for _ in range(3):
        assert history.night(make_hit_flags(0.9)) == "good"
    assert history.night(make_hit_flags(0.88), cases="other") == "good"
    assert history.night(make_hit_flags(0.85)) == "regressed"
    nights = [history.night(make_hit_flags(0.9)) for _ in range(3)]
    assert nights == ["regressed", "regressed", "good"]  # weekdays are unknown


def test_night_after_a_small_one_uses_an_earlier_reference(history: NightHistory) -> None:
    history.night(make_hit_flags(0.9))
    assert history.night(make_hit_flags(0.9)[:30]) == "good"
    assert history.night(make_hit_flags(0.8)) == "regressed"


def test_five_lost_cases_are_inconclusive(history: NightHistory, caplog: Any) -> None:
    history.night(make_hit_flags(1.0))
    assert history.night([False] * 5) == "inconclusive"
    assert "измерено слишком мало вопросов" in caplog.text
    assert history.open == []
    assert history.night(make_hit_flags(0.5)) == "regressed"
    assert history.night([True] * 5) == "inconclusive"
    assert history.open == ["regressed"]


def test_level_uses_value_when_accepted_file_is_lost(history: NightHistory) -> None:
    history.night(make_hit_flags(0.9), parquet=str(history.folder / "lost.parquet"))
    assert history.night(make_hit_flags(0.88)) == "good"
    assert history.night(make_hit_flags(0.1)) == "regressed"


def test_slow_decline_opens_an_incident(history: NightHistory, engine: Engine) -> None:
    """Lose 0.2 points per night, judged every fifth night; delays: benchmarks/simulations/baselines.py."""
    chance = np.random.default_rng(0)
    verdicts = []
    for night in range(0, 51, 5):
        hits = np.array(make_hit_flags(0.8 - 0.002 * night))
        verdicts.append(history.night(hits ^ (chance.random(N_WATCHED) < 0.02)))
        if night:
            before = compare(engine, "previous", history.last, only=["hit_rate@1"])["metrics"]["hit_rate@1"]
            assert before["verdict"] != "regressed"
    assert (verdicts[0], verdicts[-1], history.open) == ("good", "regressed", ["regressed"])


def test_bad_night_is_no_baseline_after_accepted_is_removed(history: NightHistory) -> None:
    history.night(make_hit_flags(0.9))
    accepted = history.last
    assert history.night(make_hit_flags(0.5)) == "regressed"
    with history.engine.begin() as connection:
        connection.execute(delete(evaluation).where(evaluation.c.id == accepted))
    assert history.night(make_hit_flags(0.5)) == "inconclusive"
    assert journal.find_baseline(history.engine, history.last) is None
    journal.accept_baseline(history.engine, history.last)
    assert history.night(make_hit_flags(0.5)) == "good"


def test_inconclusive_night_ends_failed_incident(history: NightHistory, caplog: Any) -> None:
    history.night(make_hit_flags(0.9))
    history.night(make_hit_flags(0.9), state="failed", comparability_key=None, error="no model")
    assert history.open == ["failed"]
    assert history.night(make_hit_flags(0.9)[:5]) == "inconclusive"
    assert history.open == []


@pytest.mark.parametrize(("language", "verdict_word"), [("ru", "неясно"), ("en", "inconclusive")])
def test_artifacts_explain_incomparable_evaluations(
    history: NightHistory, engine: Engine, language: str, verdict_word: str
) -> None:
    history.night(make_hit_flags(0.9))
    history.night(make_hit_flags(0.0), cases="other")
    document = read_summary(engine, history.last)
    changes = read_changes(engine, document)
    assert changes["problem"][language] in verdict_text(document, changes, language, None)
    night = combine_summaries([document])
    text = night_text(night, night_changes(engine, night), language, "")
    assert f"**{verdict_word}**" in text
    assert history.last in text.replace("\\", "")


def test_first_baseline_is_the_first_to_end(engine: Engine, history: NightHistory) -> None:
    """Resume an evaluation that began earlier; it may be as bad as later ones."""
    history.night(make_hit_flags(0.2), state="failed", comparability_key=None)
    early = history.last
    history.night(make_hit_flags(0.9))
    first_to_end = history.last
    with engine.begin() as connection:
        resumed = update(evaluation).where(evaluation.c.id == early)
        connection.execute(resumed.values(state="running", accepted_at=None))
    assert journal.finish_evaluation(engine, early, "completed", comparability_key=f"key of {history.source}")
    assert history.night(make_hit_flags(0.9)) == "good"
    assert journal.find_baseline(engine, history.last) == first_to_end


def test_sweep_arm_cannot_be_a_baseline(engine: Engine, history: NightHistory) -> None:
    history.night(make_hit_flags(0.2), resolved={"part_of": "sweep-1"})
    with pytest.raises(Exception, match="is a part of sweep-1: it cannot be a baseline"):
        journal.accept_baseline(engine, history.last)
    assert history.night(make_hit_flags(0.9)) == "good"
    assert journal.find_baseline(engine, history.last) is None


def test_anchor_has_its_own_baseline(engine: Engine, history: NightHistory) -> None:
    history.night(make_hit_flags(0.9))
    live = history.last
    history.night(make_hit_flags(0.5), resolved={"answers_of": live})
    anchor = history.last
    history.night(make_hit_flags(0.5), resolved={"answers_of": live})
    assert journal.find_baseline(engine, history.last) == anchor
    history.night(make_hit_flags(0.9))
    assert journal.find_baseline(engine, history.last) == live


def test_missing_and_invalid_nights_keep_the_level(history: NightHistory) -> None:
    """Skip nights, repeat a start, add an invalid night and a week without values; then lose five points."""
    for hit in (0.9, 0.9):
        assert history.night(make_hit_flags(hit)) == "good"
    history.n += 3
    assert history.night(make_hit_flags(0.9)) == "good"
    history.n -= 1
    assert history.night(make_hit_flags(0.9)) == "good"
    assert history.night(make_hit_flags(0.2), state="invalid") == "invalid"
    assert history.night(make_hit_flags(0.9)) == "good"
    for _ in range(6):
        assert history.night([None] * N_WATCHED) == "inconclusive"
    assert history.night(make_hit_flags(0.85)) == "regressed"
    assert [history.night(make_hit_flags(0.9)) for _ in range(2)] == ["regressed", "good"]  # the weekday is unknown
    assert history.open == []


def test_night_before_the_accepted_one_is_inconclusive(history: NightHistory) -> None:
    history.n = 10
    assert history.night(make_hit_flags(0.9)) == "good"
    history.n = 3
    assert history.night(make_hit_flags(0.2)) == "inconclusive"
    assert history.open == []


def test_incident_stays_open_while_key_changes(history: NightHistory) -> None:
    """Keep an incident open during a good night of another key; only a person can end it then."""
    history.night(make_hit_flags(0.9))
    assert history.night(make_hit_flags(0.7)) == "regressed"
    assert history.night(make_hit_flags(0.9), key=f"another of {history.source}") == "good"
    assert history.open == ["regressed"]
    assert history.night(make_hit_flags(0.7)) == "regressed"
    (incident,) = (candidate for candidate in list_incidents(history.engine) if candidate["source"] == history.source)
    assert incident["nights"] == 2
    assert history.night(make_hit_flags(0.9)) == "good"
    assert history.open == []
    assert history.night(make_hit_flags(0.7)) == "regressed"
    assert history.night(make_hit_flags(0.9), key=f"another of {history.source}") == "good"
    accept_evaluation(history.engine, history.last)
    assert history.open == []


def test_incident_describes_the_loss(history: NightHistory, caplog: Any) -> None:
    history.night(make_hit_flags(0.9))
    history.night(make_hit_flags(0.9))
    before = history.last
    history.night(make_hit_flags(0.8))
    (incident,) = (candidate for candidate in list_incidents(history.engine) if candidate["source"] == history.source)
    change = incident["changes"][0]
    assert (change["metric"], change["since"]) == ("hit_rate@1", history.last)
    assert change["a"] == pytest.approx(0.9)
    assert change["b"] == pytest.approx(0.8)
    assert change["difference"] == pytest.approx(-0.1)
    assert change["low"] < 0.1 < change["high"]
    assert "hit_rate@1 0.900 → 0.800" in caplog.text
    accept_evaluation(history.engine, history.last)
    assert history.night(make_hit_flags(0.8)) == "good"
    assert journal.find_baseline(history.engine, history.last) != before


def test_level_accepted_at_the_gate_ends_the_incident(history: NightHistory) -> None:
    history.night(make_hit_flags(0.9))
    assert [history.night(make_hit_flags(0.8)) for _ in range(2)] == ["regressed"] * 2
    journal.accept_baseline(history.engine, history.last)
    assert history.night(make_hit_flags(0.8)) == "good"
    assert history.open == []
    assert history.night(make_hit_flags(0.7)) == "regressed"


def test_incident_with_future_start_ends_once(history: NightHistory, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(8):
        history.night(make_hit_flags(0.9))
    history.n += 12
    assert history.night(make_hit_flags(0.3)) == "regressed"
    history.n -= 13
    assert [history.night(make_hit_flags(0.9)) for _ in range(3)] == ["good"] * 3
    assert history.open == []
    assert caplog.text.count("снова в порядке") == 1
