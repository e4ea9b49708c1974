"""The history of a metric: joined evaluations, breaks, and nights out of the band."""

import numpy as np
import pytest
from sqlalchemy import Engine, event

from tests.support.evaluation_history import make_source_name, write_evaluations
from yarus.db.errors import InputError
from yarus.metrics.statistics.ewma import MAX_HISTORY
from yarus.tasks.comparison.trend import trend


def calm(n: int, seed: int = 0, mean: float = 0.8) -> list[float]:
    return (mean + 0.01 * np.random.default_rng(seed).normal(size=n)).tolist()


def test_trend_names_first_night_of_a_drop(engine: Engine) -> None:
    source = make_source_name()
    ids = write_evaluations(engine, source, [*calm(20), *calm(5, 1, mean=0.7)])
    history = trend(engine, "hit_rate@1", tier="tier1", source=source)
    assert (history["first_out_of_band"], history["side"]) == (ids[20], "below")
    assert [night["evaluation_id"] for night in history["nights"]] == ids
    assert [night["band_low"] is None for night in history["nights"]] == [True] * 8 + [False] * 17
    first_low = history["nights"][20]
    assert (first_low["is_out_of_band"], first_low["side"]) == (True, "below")
    assert first_low["smoothed"] < first_low["band_low"]
    assert not any(night["is_out_of_band"] for night in history["nights"][:20])


def test_trend_breaks_at_another_key(engine: Engine) -> None:
    source = make_source_name()
    write_evaluations(engine, source, calm(10), key="before")
    write_evaluations(engine, source, calm(5, mean=0.3), key="after", first_night=10)
    history = trend(engine, "hit_rate@1", source=source)
    assert [n for n, night in enumerate(history["nights"]) if night["is_break"]] == [10]
    assert [night["band_low"] is None for night in history["nights"]] == [True] * 8 + [False] * 2 + [True] * 5
    assert history["first_out_of_band"] is None  # 0.3 after 0.8 is another measurement, not a drop


def test_trend_continues_after_another_key(engine: Engine) -> None:
    source = make_source_name()
    write_evaluations(engine, source, calm(8), key="nightly")
    write_evaluations(engine, source, [0.1], key="forty cases", first_night=8)
    write_evaluations(engine, source, calm(1, 7), key="nightly", first_night=9)
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [night["is_break"] for night in nights] == [False] * 8 + [True, True]
    assert nights[9]["band_low"] is not None
    assert not nights[9]["is_out_of_band"]


def test_trend_shows_invalid_nights_without_counting_them(engine: Engine) -> None:
    source = make_source_name()
    write_evaluations(engine, source, calm(9))
    write_evaluations(engine, source, [0.1], first_night=9, state="invalid")
    write_evaluations(engine, source, [None], first_night=10)
    write_evaluations(engine, source, calm(1, 3), first_night=11)
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [night["state"] for night in nights[8:]] == ["completed", "invalid", "completed", "completed"]
    assert [night["value"] for night in nights[9:11]] == [0.1, None]
    assert [night["is_out_of_band"] for night in nights] == [False] * 12
    assert [night["band_low"] is None for night in nights[9:]] == [True, True, False]


def test_trend_omits_unfinished_evaluations(engine: Engine) -> None:
    source = make_source_name()
    write_evaluations(engine, source, [0.8, 0.8])
    write_evaluations(engine, source, [0.1], first_night=2, state="failed")
    assert len(trend(engine, "hit_rate@1", source=source)["nights"]) == 2


def test_last_nights_have_bands_from_earlier_ones(engine: Engine) -> None:
    source = make_source_name()
    ids = write_evaluations(engine, source, [*calm(12), 0.2, *calm(3, 2)])
    newest = trend(engine, "hit_rate@1", source=source, last=4)
    assert [night["evaluation_id"] for night in newest["nights"]] == ids[-4:]
    assert newest["nights"][0]["band_low"] is not None
    assert newest["first_out_of_band"] == ids[12]
    assert trend(engine, "hit_rate@1", source=source, last=1)["nights"][0]["evaluation_id"] == ids[-1]


def test_system_labels_are_not_breaks(engine: Engine) -> None:
    source = make_source_name()
    write_evaluations(engine, source, [0.8], sut_label="v1")
    write_evaluations(engine, source, [0.9], sut_label="v2", first_night=1)
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [(night["sut_label"], night["is_break"]) for night in nights] == [("v1", False), ("v2", False)]


def test_trend_of_real_users_uses_headline_stratum(engine: Engine) -> None:
    source = make_source_name()
    for stratum, value in (("confirmed", 0.9), ("all", 0.5)):
        write_evaluations(engine, source, [value], tier="real_users", stratum=stratum)
    for requested, expected in ((None, 0.9), ("all", 0.5)):
        history = trend(engine, "hit_rate@1", tier="real_users", source=source, stratum=requested)
        assert [night["value"] for night in history["nights"]] == [expected]
        assert history["stratum"] == (requested or "confirmed")


def test_trend_defaults_to_newest_tier_and_source(engine: Engine) -> None:
    source = make_source_name()
    metric = "avg_rubric_of_this_test"
    write_evaluations(engine, source, [0.5], tier="tier2", metric=metric)
    newer = make_source_name()
    write_evaluations(engine, newer, [0.6], tier="tier2", metric=metric, first_night=1)
    history = trend(engine, metric)
    assert (history["tier"], history["source"]) == ("tier2", newer)


def test_trend_omits_repeats_and_separates_anchors(engine: Engine) -> None:
    source, metric = make_source_name(), "avg_e2e_score"
    live = write_evaluations(engine, source, calm(3), tier="tier3", metric=metric)
    more = {"tier": "tier3", "metric": metric, "key": f"key of {source}"}
    write_evaluations(engine, source, [0.1], resolved={"again": live[0]}, first_night=3, **more)
    write_evaluations(engine, source, [0.2], resolved={"answers_of": live[0]}, first_night=4, **more)
    write_evaluations(engine, source, [0.2], resolved={"part_of": "sweep-1"}, first_night=4, **more)
    anchored = {"anchor": live[0], "answers_of": live[0]}
    anchored_ids = write_evaluations(engine, source, [0.3, 0.4], resolved=anchored, first_night=5, **more)
    assert [night["evaluation_id"] for night in trend(engine, metric, source=source)["nights"]] == live
    history = trend(engine, metric, source=source, tier="tier3", anchor=True)
    assert history["anchor"] == live[0]
    assert [night["evaluation_id"] for night in history["nights"]] == anchored_ids


def test_trend_is_empty_without_evaluations(engine: Engine) -> None:
    history = trend(engine, "avg_rubric_of_nobody", tier="tier3", source=make_source_name())
    assert (history["nights"], history["first_out_of_band"], history["noise"]) == ([], None, None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"metric": "hitrate@1"}, "did you mean 'hit_rate@1'"),
        ({"metric": "mrr", "tier": "tier_1"}, "no tier 'tier_1'; did you mean 'tier1'"),
        ({"metric": "mrr", "tier": "tier0"}, "tier0 has no metric 'mrr'; it is measured by: tier1, tier3, real_users"),
        ({"metric": "mrr", "tier": "tier1", "stratum": "all"}, "tier1 has no stratum 'all', real_users has"),
        ({"metric": "mrr", "tier": "real_users", "stratum": "follow_up"}, "no stratum 'follow_up', tier3 has"),
        ({"metric": "mrr", "stratum": "confirmd"}, "no stratum 'confirmd'; did you mean 'confirmed'"),
    ],
)
def test_trend_suggests_nearest_name(engine: Engine, words: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trend(engine, **words)


def test_trend_suggests_nearest_source(engine: Engine) -> None:
    source = make_source_name()
    write_evaluations(engine, source, [0.5])
    with pytest.raises(InputError, match=f"{source}x'; did you mean '{source}'"):
        trend(engine, "hit_rate@1", tier="tier1", source=f"{source}x")


def test_trend_reads_a_bounded_number_of_rows(engine: Engine) -> None:
    source, counts = make_source_name(), []

    def count(connection, cursor, *more: object) -> None:
        counts.append(cursor.rowcount)

    event.listen(engine, "after_cursor_execute", count)
    try:
        for n_nights in (400, 400):
            write_evaluations(engine, source, calm(n_nights), first_night=len(counts))
            counts.clear()
            nights = trend(engine, "hit_rate@1", tier="tier1", source=source, last=10)["nights"]
    finally:
        event.remove(engine, "after_cursor_execute", count)
    assert len(nights) == 10
    assert sum(counts) <= 1 + 11 + 10 + MAX_HISTORY + 5
    assert len(counts) == 5  # the series, its newest nights, those of their bands, the accepted one, the noise floor


def test_bands_do_not_depend_on_number_of_nights(engine: Engine) -> None:
    source = make_source_name()
    values = calm(MAX_HISTORY + 60, 5)
    for number in (50, 51, 300):  # nights without a value are passed over, not counted
        values[number] = None
    write_evaluations(engine, source, values[:200])
    write_evaluations(engine, source, [0.1] * 3, key="another", first_night=200)
    write_evaluations(engine, source, values[200:], first_night=203)
    many = trend(engine, "hit_rate@1", source=source, last=1_000)
    few = trend(engine, "hit_rate@1", source=source, last=20)
    assert (many["has_earlier"], few["has_earlier"], len(few["nights"])) == (False, True, 20)
    for night, same_night in zip(many["nights"][-20:], few["nights"], strict=True):
        parts = ("smoothed", "band_low", "band_high")
        assert [night.pop(part) for part in parts] == pytest.approx([same_night.pop(part) for part in parts], rel=1e-12)
        assert night == same_night
