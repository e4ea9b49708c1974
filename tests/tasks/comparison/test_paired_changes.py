"""What an evaluation stores of the nights before, and what a trend makes of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import source_name, with_cases
from yarus.db import journal
from yarus.metrics.statistics.ewma import LAMBDA
from yarus.metrics.statistics.paired_chart import LAG
from yarus.metrics.table import metrics_of
from yarus.tasks.comparison.common_cases import read_cases
from yarus.tasks.comparison.paired_changes import PairedChanges, paired_changes
from yarus.tasks.comparison.trend import trend

CHANCE = np.random.default_rng(11)
OLD_HITS = (CHANCE.random(400) < 0.8).astype(float)


def changes_of(engine: Engine, name: str) -> PairedChanges | None:
    row = journal.find(engine, name)
    return paired_changes(engine, row, row["comparability_key"], read_cases(row), metrics_of(row["tier"]))


def night_of(engine: Engine, folder: Path, source: str, night: int, questions: range, **more: Any) -> str:
    """An evaluation of these questions of a log, with what its flow would have stored."""
    columns = {"case_id": [f"q{number}" for number in questions], "hit_rate@1": more.pop("hits", OLD_HITS)[questions]}
    name = with_cases(engine, folder, source, columns, night=night, **more)
    if found := changes_of(engine, name):
        journal.describe(engine, name, resolved={"paired": found} | more.get("resolved", {}))
    return name


def test_a_night_is_compared_on_the_cases_that_both_have(engine: Engine, tmp_path: Path) -> None:
    source = source_name()
    first = night_of(engine, tmp_path, source, 0, range(100))
    worse = OLD_HITS.copy()
    worse[np.flatnonzero(worse[:100])[20:25]] = 0
    second = night_of(engine, tmp_path, source, 1, range(10, 110), hits=worse)
    assert changes_of(engine, first) is None
    found = changes_of(engine, second)
    assert found is not None
    assert (found["since"], found["share"]) == (first, 0.9)
    change = found["changes"]["hit_rate@1"]
    assert change["difference"] == pytest.approx(-5 / 90)
    assert change["lag"] == 1
    assert change["far_variance"] == change["variance"] > 0
    assert (change["n_new"], change["new_value"]) == (10, pytest.approx(worse[100:110].mean()))
    assert "retrieval_latency_ms_p95" not in found["changes"]


def test_what_lasts_is_told_from_noise_by_an_earlier_night(engine: Engine, tmp_path: Path) -> None:
    source, hits = source_name(), OLD_HITS.copy()
    night_of(engine, tmp_path, source, 0, range(100))
    for night in range(1, LAG + 2):
        hits[night] = 1 - hits[night]  # a case more, for good
        name = night_of(engine, tmp_path, source, night, range(100), hits=hits)
    found = changes_of(engine, name)
    assert found is not None
    change = found["changes"]["hit_rate@1"]
    assert change["lag"] == LAG
    assert change["far_variance"] == pytest.approx(LAG * change["variance"], rel=0.1)


def test_an_earlier_night_counts_as_if_it_shared_as_many_cases(engine: Engine, tmp_path: Path) -> None:
    """Of 100 cases 20 are new each night: two nights ago 60 were the same, five nights ago none."""
    source, noise = source_name(), np.random.default_rng(12)
    for night in range(8):
        hits = np.abs(OLD_HITS - (noise.random(400) < 0.2))  # they come out otherwise in that night alone
        name = night_of(engine, tmp_path, source, night, range(20 * night, 20 * night + 100), hits=hits)
    found = changes_of(engine, name)
    assert found is not None
    change = found["changes"]["hit_rate@1"]
    assert (change["lag"], change["n"], change["n_new"]) == (3, 80, 20)
    assert change["far_variance"] == pytest.approx(change["variance"], rel=0.5)


def test_a_repeated_evaluation_is_no_night_and_an_anchor_follows_its_own(engine: Engine, tmp_path: Path) -> None:
    source = source_name()
    live = night_of(engine, tmp_path, source, 0, range(100))
    again = night_of(engine, tmp_path, source, 1, range(100), resolved={"again": live})
    kept = [night_of(engine, tmp_path, source, n, range(100), resolved={"anchor": live}) for n in (2, 3)]
    after = night_of(engine, tmp_path, source, 4, range(100))
    found = [changes_of(engine, name) for name in (again, *kept, after)]
    assert [one and one["since"] for one in found] == [None, None, kept[0], live]


def test_where_the_file_of_the_night_before_is_gone_the_chart_begins_anew(engine: Engine, tmp_path: Path) -> None:
    source = source_name()
    first = night_of(engine, tmp_path, source, 0, range(100))
    Path(journal.find(engine, first)["parquet"]).unlink()
    assert changes_of(engine, night_of(engine, tmp_path, source, 1, range(100))) is None


def test_a_log_that_grows_stays_within_its_band_although_new_questions_are_harder(
    engine: Engine, tmp_path: Path
) -> None:
    """Its mean falls by 15 points, the system is the same; then the system loses 5 points."""
    source, hits = source_name(), OLD_HITS.copy()
    hits[100:] *= CHANCE.random(300) < 0.5
    for night in range(26):
        night_of(engine, tmp_path, source, night, range(100 + 8 * night), hits=hits)
    calm = trend(engine, "hit_rate@1", source=source)
    assert calm["nights"][-1]["value"] < calm["nights"][0]["value"] - 0.1
    assert [night["paired"] for night in calm["nights"]] == [False] + [True] * 25
    assert [night["band_low"] is None for night in calm["nights"]] == [True] * 8 + [False] * 18
    assert calm["first_out"] is None
    last = calm["nights"][-1]
    assert last["band_low"] < last["smoothed"] < last["band_high"]
    assert last["smoothed"] == pytest.approx(last["value"])
    worse = hits.copy()
    worse[np.flatnonzero(hits[:300])[:15]] = 0
    bad = night_of(engine, tmp_path, source, 26, range(308), hits=worse)
    found = trend(engine, "hit_rate@1", source=source)
    assert (found["first_out"], found["side"]) == (bad, "below")
    assert found["accepted"] == {
        "evaluation_id": calm["nights"][0]["evaluation_id"],
        "value": pytest.approx(hits[:100].mean()),
    }


def test_an_evaluation_that_was_resumed_after_the_next_night_leaves_the_chart_as_it_is(
    engine: Engine, tmp_path: Path
) -> None:
    source, hits = source_name(), OLD_HITS.copy()
    for night in (*range(10), 11):
        hits[night] = 1 - hits[night]
        night_of(engine, tmp_path, source, night, range(100), hits=hits)
    night_of(engine, tmp_path, source, 10, range(100), hits=hits)
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [night["paired"] for night in nights] == [False] + [True] * 11
    # On a frozen set the level is the value: the middle of the band moves by as much as the values do.
    assert [night["smoothed"] for night in nights][1:] == pytest.approx(
        smoothed([night["value"] for night in nights])[1:]
    )


def smoothed(values: list[float]) -> list[float]:
    found = values[:1]
    for value in values[1:]:
        found.append(LAMBDA * value + (1 - LAMBDA) * found[-1])
    return found


def test_nights_of_mostly_new_questions_are_charted_by_their_values(engine: Engine, tmp_path: Path) -> None:
    source = source_name()
    for night in range(12):
        night_of(engine, tmp_path, source, night, range(25 * night, 25 * night + 40))
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [night["paired"] for night in nights] == [False] * 12
    assert nights[-1]["band_low"] is not None


def test_a_part_of_the_cases_that_nothing_is_stored_of_is_charted_by_its_values(engine: Engine, tmp_path: Path) -> None:
    source = source_name()
    for night in range(3):
        columns = {"hit_rate@1": OLD_HITS[:100], "stratum": ["confirmed"] * 50 + ["rejected"] * 50}
        name = with_cases(engine, tmp_path, source, columns, tier="real_users", night=night)
        if found := changes_of(engine, name):
            journal.describe(engine, name, resolved={"paired": found})
    for stratum, paired in ((None, [False, True, True]), ("all", [False] * 3)):
        nights = trend(engine, "hit_rate@1", tier="real_users", source=source, stratum=stratum)["nights"]
        assert [night["paired"] for night in nights] == paired


def test_the_first_case_that_ever_fails_does_not_leave_the_band(engine: Engine, tmp_path: Path) -> None:
    source, hits = source_name(), np.ones(400)
    for night in range(14):
        night_of(engine, tmp_path, source, night, range(100), hits=hits)
    hits[7] = 0
    for night in (14, 15):
        night_of(engine, tmp_path, source, night, range(100), hits=hits)
    found = trend(engine, "hit_rate@1", source=source)
    assert found["nights"][-1]["value"] == 0.99
    assert found["first_out"] is None
