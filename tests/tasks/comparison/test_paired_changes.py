"""Changes since earlier nights that an evaluation stores, and the trends made of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from yarus.db import journal
from yarus.metrics.statistics.ewma import SMOOTHING
from yarus.metrics.statistics.paired_chart import COMPARISON_LAG
from yarus.metrics.table import metrics_for_tier
from yarus.tasks.comparison.common_cases import read_cases
from yarus.tasks.comparison.paired_changes import PairedChanges, paired_changes
from yarus.tasks.comparison.trend import trend

CHANCE = np.random.default_rng(11)
OLD_HITS = (CHANCE.random(400) < 0.8).astype(float)


def read_changes(engine: Engine, name: str) -> PairedChanges | None:
    row = journal.find_evaluation(engine, name)
    return paired_changes(engine, row, row["comparability_key"], read_cases(row), metrics_for_tier(row["tier"]))


def store_night(engine: Engine, folder: Path, source: str, night: int, questions: range, **more: Any) -> str:
    """Store an evaluation of these questions of a log, with what its flow would have stored."""
    columns = {"case_id": [f"q{number}" for number in questions], "hit_rate@1": more.pop("hits", OLD_HITS)[questions]}
    name = write_evaluation_with_cases(engine, folder, source, columns, night=night, **more)
    if changes := read_changes(engine, name):
        journal.update_evaluation(engine, name, resolved={"paired": changes} | more.get("resolved", {}))
    return name


def test_paired_changes_compare_common_cases(engine: Engine, tmp_path: Path) -> None:
    source = make_source_name()
    first = store_night(engine, tmp_path, source, 0, range(100))
    worse = OLD_HITS.copy()
    worse[np.flatnonzero(worse[:100])[20:25]] = 0
    second = store_night(engine, tmp_path, source, 1, range(10, 110), hits=worse)
    assert read_changes(engine, first) is None
    changes = read_changes(engine, second)
    assert changes is not None
    assert (changes["since"], changes["share"]) == (first, 0.9)
    change = changes["changes"]["hit_rate@1"]
    assert change["difference"] == pytest.approx(-5 / 90)
    assert change["lag"] == 1
    assert change["far_variance"] == change["variance"] > 0
    assert (change["n_new"], change["new_value"]) == (10, pytest.approx(worse[100:110].mean()))
    assert "retrieval_latency_ms_p95" not in changes["changes"]


def test_paired_changes_estimate_lasting_variance(engine: Engine, tmp_path: Path) -> None:
    source, hits = make_source_name(), OLD_HITS.copy()
    store_night(engine, tmp_path, source, 0, range(100))
    for night in range(1, COMPARISON_LAG + 2):
        hits[night] = 1 - hits[night]  # one more case, permanently
        name = store_night(engine, tmp_path, source, night, range(100), hits=hits)
    changes = read_changes(engine, name)
    assert changes is not None
    change = changes["changes"]["hit_rate@1"]
    assert change["lag"] == COMPARISON_LAG
    assert change["far_variance"] == pytest.approx(COMPARISON_LAG * change["variance"], rel=0.1)


def test_far_variance_is_scaled_to_common_cases(engine: Engine, tmp_path: Path) -> None:
    """Replace 20 of 100 cases per night: 60 are shared with two nights ago, none with five nights ago."""
    source, noise = make_source_name(), np.random.default_rng(12)
    for night in range(8):
        hits = np.abs(OLD_HITS - (noise.random(400) < 0.2))  # different results in that night only
        name = store_night(engine, tmp_path, source, night, range(20 * night, 20 * night + 100), hits=hits)
    changes = read_changes(engine, name)
    assert changes is not None
    change = changes["changes"]["hit_rate@1"]
    assert (change["lag"], change["n"], change["n_new"]) == (3, 80, 20)
    assert change["far_variance"] == pytest.approx(change["variance"], rel=0.5)


def test_paired_changes_skip_repeats_and_separate_anchors(engine: Engine, tmp_path: Path) -> None:
    source = make_source_name()
    live = store_night(engine, tmp_path, source, 0, range(100))
    again = store_night(engine, tmp_path, source, 1, range(100), resolved={"again": live})
    anchors = [store_night(engine, tmp_path, source, n, range(100), resolved={"anchor": live}) for n in (2, 3)]
    after = store_night(engine, tmp_path, source, 4, range(100))
    all_changes = [read_changes(engine, name) for name in (again, *anchors, after)]
    assert [changes and changes["since"] for changes in all_changes] == [None, None, anchors[0], live]


def test_paired_changes_restart_when_earlier_file_is_missing(engine: Engine, tmp_path: Path) -> None:
    source = make_source_name()
    first = store_night(engine, tmp_path, source, 0, range(100))
    Path(journal.find_evaluation(engine, first)["parquet"]).unlink()
    assert read_changes(engine, store_night(engine, tmp_path, source, 1, range(100))) is None


def test_trend_of_growing_log_ignores_harder_new_questions(engine: Engine, tmp_path: Path) -> None:
    """Grow a log so that its mean falls by 15 points with the same system; then the system loses 5 points."""
    source, hits = make_source_name(), OLD_HITS.copy()
    hits[100:] *= CHANCE.random(300) < 0.5
    for night in range(26):
        store_night(engine, tmp_path, source, night, range(100 + 8 * night), hits=hits)
    calm = trend(engine, "hit_rate@1", source=source)
    assert calm["nights"][-1]["value"] < calm["nights"][0]["value"] - 0.1
    assert [night["paired"] for night in calm["nights"]] == [False] + [True] * 25
    assert [night["band_low"] is None for night in calm["nights"]] == [True] * 8 + [False] * 18
    assert calm["first_out_of_band"] is None
    newest = calm["nights"][-1]
    assert newest["band_low"] < newest["smoothed"] < newest["band_high"]
    assert newest["smoothed"] == pytest.approx(newest["value"])
    worse = hits.copy()
    worse[np.flatnonzero(hits[:300])[:15]] = 0
    bad = store_night(engine, tmp_path, source, 26, range(308), hits=worse)
    history = trend(engine, "hit_rate@1", source=source)
    assert (history["first_out_of_band"], history["side"]) == (bad, "below")
    assert history["accepted"] == {
        "evaluation_id": calm["nights"][0]["evaluation_id"],
        "value": pytest.approx(hits[:100].mean()),
    }


def test_trend_ignores_late_resumed_evaluation(engine: Engine, tmp_path: Path) -> None:
    source, hits = make_source_name(), OLD_HITS.copy()
    for night in (*range(10), 11):
        hits[night] = 1 - hits[night]
        store_night(engine, tmp_path, source, night, range(100), hits=hits)
    store_night(engine, tmp_path, source, 10, range(100), hits=hits)
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [night["paired"] for night in nights] == [False] + [True] * 11
    # With a fixed case set the level equals the value: the middle of the band moves like the values.
    assert [night["smoothed"] for night in nights][1:] == pytest.approx(
        smoothed([night["value"] for night in nights])[1:]
    )


def smoothed(values: list[float]) -> list[float]:
    averages = values[:1]
    for value in values[1:]:
        averages.append(SMOOTHING * value + (1 - SMOOTHING) * averages[-1])
    return averages


def test_trend_charts_values_of_mostly_new_questions(engine: Engine, tmp_path: Path) -> None:
    source = make_source_name()
    for night in range(12):
        store_night(engine, tmp_path, source, night, range(25 * night, 25 * night + 40))
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [night["paired"] for night in nights] == [False] * 12
    assert nights[-1]["band_low"] is not None


def test_trend_charts_values_of_strata_without_changes(engine: Engine, tmp_path: Path) -> None:
    source = make_source_name()
    for night in range(3):
        columns = {"hit_rate@1": OLD_HITS[:100], "stratum": ["confirmed"] * 50 + ["rejected"] * 50}
        name = write_evaluation_with_cases(engine, tmp_path, source, columns, tier="real_users", night=night)
        if changes := read_changes(engine, name):
            journal.update_evaluation(engine, name, resolved={"paired": changes})
    for stratum, paired in ((None, [False, True, True]), ("all", [False] * 3)):
        nights = trend(engine, "hit_rate@1", tier="real_users", source=source, stratum=stratum)["nights"]
        assert [night["paired"] for night in nights] == paired


def test_trend_tolerates_first_failing_case(engine: Engine, tmp_path: Path) -> None:
    source, hits = make_source_name(), np.ones(400)
    for night in range(14):
        store_night(engine, tmp_path, source, night, range(100), hits=hits)
    hits[7] = 0
    for night in (14, 15):
        store_night(engine, tmp_path, source, night, range(100), hits=hits)
    history = trend(engine, "hit_rate@1", source=source)
    assert history["nights"][-1]["value"] == 0.99
    assert history["first_out_of_band"] is None
