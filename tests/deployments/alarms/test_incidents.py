"""What a night says of an evaluation beside the accepted one, and what it tells where it can say nothing."""

from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, delete, update

from tests.support.evaluation_history import N_WATCHED, History, share
from yarus.db import journal
from yarus.db.tables import evaluation
from yarus.deployments.alarms.incidents import accept, incidents
from yarus.deployments.prefect.artifacts import changes_since, night_changes, night_text, verdict_text
from yarus.tasks.comparison.compare import compare
from yarus.tasks.evaluation.summary import summary, together


def test_a_night_of_other_questions_is_judged_as_a_draw_of_questions(history: History) -> None:
    assert history.night(share(0.9)) == "good"
    assert history.night(share(0.86), cases="other") == "good"
    assert history.night(share(0.3), cases="a third") == "regressed"
    assert history.open == ["regressed"]
    assert history.night(share(0.9)) == "good"  # compared with the first, with which it shares its questions
    assert history.open == []


def test_a_night_of_other_questions_in_between_leaves_the_level_as_it_is(history: History) -> None:
    for _ in range(3):
        assert history.night(share(0.9)) == "good"
    assert history.night(share(0.88), cases="other") == "good"
    assert history.night(share(0.85)) == "regressed"
    nights = [history.night(share(0.9)) for _ in range(3)]
    assert nights == ["regressed", "regressed", "good"]  # weekdays are unknown


def test_a_night_after_a_small_one_is_compared_with_the_one_before_that(history: History) -> None:
    history.night(share(0.9))
    assert history.night(share(0.9)[:30]) == "good"
    assert history.night(share(0.8)) == "regressed"


def test_five_common_cases_that_are_all_lost_are_inconclusive(history: History, caplog: Any) -> None:
    history.night(share(1.0))
    assert history.night([False] * 5) == "inconclusive"
    assert "измерено слишком мало вопросов" in caplog.text
    assert history.open == []
    assert history.night(share(0.5)) == "regressed"
    assert history.night([True] * 5) == "inconclusive"
    assert history.open == ["regressed"]


def test_where_the_file_of_the_accepted_one_is_lost_its_value_is_left(history: History) -> None:
    history.night(share(0.9), parquet=str(history.folder / "lost.parquet"))
    assert history.night(share(0.88)) == "good"
    assert history.night(share(0.1)) == "regressed"


def test_a_slow_decline_opens_an_incident_though_no_night_is_worse_than_the_one_before(
    history: History, engine: Engine
) -> None:
    """0.2 points a night, of which every fifth is looked at; how soon: benchmarks/simulations/baselines.py."""
    chance = np.random.default_rng(0)
    verdicts = []
    for night in range(0, 51, 5):
        hits = np.array(share(0.8 - 0.002 * night))
        verdicts.append(history.night(hits ^ (chance.random(N_WATCHED) < 0.02)))
        if night:
            before = compare(engine, "previous", history.last, only=["hit_rate@1"])["metrics"]["hit_rate@1"]
            assert before["verdict"] != "regressed"
    assert (verdicts[0], verdicts[-1], history.open) == ("good", "regressed", ["regressed"])


def test_a_bad_night_does_not_become_the_baseline_where_the_accepted_one_is_removed(history: History) -> None:
    history.night(share(0.9))
    accepted = history.last
    assert history.night(share(0.5)) == "regressed"
    with history.engine.begin() as connection:
        connection.execute(delete(evaluation).where(evaluation.c.id == accepted))
    assert history.night(share(0.5)) == "inconclusive"
    assert journal.baseline(history.engine, history.last) is None
    journal.accept(history.engine, history.last)
    assert history.night(share(0.5)) == "good"


def test_an_inconclusive_night_ends_those_that_failed(history: History, caplog: Any) -> None:
    history.night(share(0.9))
    history.night(share(0.9), state="failed", comparability_key=None, error="no model")
    assert history.open == ["failed"]
    assert history.night(share(0.9)[:5]) == "inconclusive"
    assert history.open == []


@pytest.mark.parametrize(("language", "said"), [("ru", "неясно"), ("en", "inconclusive")])
def test_what_cannot_be_compared_is_told_in_the_artifacts(
    history: History, engine: Engine, language: str, said: str
) -> None:
    history.night(share(0.9))
    history.night(share(0.0), cases="other")
    document = summary(engine, history.last)
    changes = changes_since(engine, document)
    assert changes["problem"][language] in verdict_text(document, changes, language, None)
    night = together([document])
    text = night_text(night, night_changes(engine, night), language, "")
    assert f"**{said}**" in text
    assert history.last in text.replace("\\", "")


def test_the_first_is_the_one_that_ended_first(engine: Engine, history: History) -> None:
    """One that had begun before, and was resumed later, may be as bad as what comes later."""
    history.night(share(0.2), state="failed", comparability_key=None)
    early = history.last
    history.night(share(0.9))
    first = history.last
    with engine.begin() as connection:
        resumed = update(evaluation).where(evaluation.c.id == early)
        connection.execute(resumed.values(state="running", accepted_at=None))
    assert journal.close(engine, early, "completed", comparability_key=f"key of {history.source}")
    assert history.night(share(0.9)) == "good"
    assert journal.baseline(engine, history.last) == first


def test_an_arm_of_a_sweep_is_no_baseline(engine: Engine, history: History) -> None:
    history.night(share(0.2), resolved={"part_of": "sweep-1"})
    with pytest.raises(Exception, match="is a part of sweep-1: it cannot be a baseline"):
        journal.accept(engine, history.last)
    assert history.night(share(0.9)) == "good"
    assert journal.baseline(engine, history.last) is None


def test_what_judges_stored_answers_has_a_baseline_of_its_own(engine: Engine, history: History) -> None:
    history.night(share(0.9))
    live = history.last
    history.night(share(0.5), resolved={"answers_of": live})
    anchor = history.last
    history.night(share(0.5), resolved={"answers_of": live})
    assert journal.baseline(engine, history.last) == anchor
    history.night(share(0.9))
    assert journal.baseline(engine, history.last) == live


def test_what_nights_lack_leaves_the_level_as_it_is(history: History) -> None:
    """A night is missing, two have one start, one is invalid, a week measures nothing: then five points are gone."""
    for hit in (0.9, 0.9):
        assert history.night(share(hit)) == "good"
    history.n += 3
    assert history.night(share(0.9)) == "good"
    history.n -= 1
    assert history.night(share(0.9)) == "good"
    assert history.night(share(0.2), state="invalid") == "invalid"
    assert history.night(share(0.9)) == "good"
    for _ in range(6):
        assert history.night([None] * N_WATCHED) == "inconclusive"
    assert history.night(share(0.85)) == "regressed"
    assert [history.night(share(0.9)) for _ in range(2)] == ["regressed", "good"]  # the weekday is unknown
    assert history.open == []


def test_a_clock_that_was_set_back_is_inconclusive(history: History) -> None:
    history.n = 10
    assert history.night(share(0.9)) == "good"
    history.n = 3
    assert history.night(share(0.2)) == "inconclusive"
    assert history.open == []


def test_a_key_that_changes_and_comes_back_finds_its_incident_open(history: History) -> None:
    """A good night under another key says nothing of what was measured in this way; a person may."""
    history.night(share(0.9))
    assert history.night(share(0.7)) == "regressed"
    assert history.night(share(0.9), key=f"another of {history.source}") == "good"
    assert history.open == ["regressed"]
    assert history.night(share(0.7)) == "regressed"
    (incident,) = (one for one in incidents(history.engine) if one["source"] == history.source)
    assert incident["nights"] == 2
    assert history.night(share(0.9)) == "good"
    assert history.open == []
    assert history.night(share(0.7)) == "regressed"
    assert history.night(share(0.9), key=f"another of {history.source}") == "good"
    accept(history.engine, history.last)
    assert history.open == []


def test_what_is_told_of_a_loss(history: History, caplog: Any) -> None:
    history.night(share(0.9))
    history.night(share(0.9))
    before = history.last
    history.night(share(0.8))
    (incident,) = (one for one in incidents(history.engine) if one["source"] == history.source)
    change = incident["changes"][0]
    assert (change["metric"], change["since"]) == ("hit_rate@1", history.last)
    assert change["a"] == pytest.approx(0.9)
    assert change["b"] == pytest.approx(0.8)
    assert change["difference"] == pytest.approx(-0.1)
    assert change["low"] < 0.1 < change["high"]
    assert "hit_rate@1 0.900 → 0.800" in caplog.text
    accept(history.engine, history.last)
    assert history.night(share(0.8)) == "good"
    assert journal.baseline(history.engine, history.last) != before


def test_a_level_that_is_accepted_at_the_gate_ends_the_incident_with_the_next_night(history: History) -> None:
    history.night(share(0.9))
    assert [history.night(share(0.8)) for _ in range(2)] == ["regressed"] * 2
    journal.accept(history.engine, history.last)
    assert history.night(share(0.8)) == "good"
    assert history.open == []
    assert history.night(share(0.7)) == "regressed"


def test_a_night_whose_clock_was_ahead_ends_once(history: History, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(8):
        history.night(share(0.9))
    history.n += 12
    assert history.night(share(0.3)) == "regressed"
    history.n -= 13
    assert [history.night(share(0.9)) for _ in range(3)] == ["good"] * 3
    assert history.open == []
    assert caplog.text.count("снова в порядке") == 1
