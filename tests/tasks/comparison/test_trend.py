"""The history of a metric: what is joined, where it breaks, and which night left the band."""

import numpy as np
import pytest
from sqlalchemy import Engine, event

from tests.support.evaluation_history import source_name, write
from yarus.db.errors import InputError
from yarus.metrics.statistics.ewma import HISTORY
from yarus.tasks.comparison.trend import trend


def calm(n: int, seed: int = 0, mean: float = 0.8) -> list[float]:
    return (mean + 0.01 * np.random.default_rng(seed).normal(size=n)).tolist()


def test_the_first_night_of_a_planted_drop_is_named_and_its_direction(engine: Engine) -> None:
    source = source_name()
    ids = write(engine, source, [*calm(20), *calm(5, 1, mean=0.7)])
    found = trend(engine, "hit_rate@1", tier="tier1", source=source)
    assert (found["first_out"], found["side"]) == (ids[20], "below")
    assert [night["evaluation_id"] for night in found["nights"]] == ids
    assert [night["band_low"] is None for night in found["nights"]] == [True] * 8 + [False] * 17
    first = found["nights"][20]
    assert (first["out"], first["side"]) == (True, "below")
    assert first["smoothed"] < first["band_low"]
    assert not any(night["out"] for night in found["nights"][:20])


def test_only_equal_keys_are_joined_and_a_break_is_shown(engine: Engine) -> None:
    source = source_name()
    write(engine, source, calm(10), key="before")
    write(engine, source, calm(5, mean=0.3), key="after", first_night=10)
    found = trend(engine, "hit_rate@1", source=source)
    assert [n for n, night in enumerate(found["nights"]) if night["break"]] == [10]
    assert [night["band_low"] is None for night in found["nights"]] == [True] * 8 + [False] * 2 + [True] * 5
    assert found["first_out"] is None  # 0.3 after 0.8 is another measurement, not a drop


def test_a_line_goes_on_past_an_evaluation_of_another_key(engine: Engine) -> None:
    source = source_name()
    write(engine, source, calm(8), key="nightly")
    write(engine, source, [0.1], key="forty cases", first_night=8)
    write(engine, source, calm(1, 7), key="nightly", first_night=9)
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [night["break"] for night in nights] == [False] * 8 + [True, True]
    assert nights[9]["band_low"] is not None
    assert not nights[9]["out"]


def test_invalid_nights_are_shown_and_count_for_nothing(engine: Engine) -> None:
    source = source_name()
    write(engine, source, calm(9))
    write(engine, source, [0.1], first_night=9, state="invalid")
    write(engine, source, [None], first_night=10)
    write(engine, source, calm(1, 3), first_night=11)
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [night["state"] for night in nights[8:]] == ["completed", "invalid", "completed", "completed"]
    assert [night["value"] for night in nights[9:11]] == [0.1, None]
    assert [night["out"] for night in nights] == [False] * 12
    assert [night["band_low"] is None for night in nights[9:]] == [True, True, False]


def test_evaluations_that_did_not_finish_are_no_nights(engine: Engine) -> None:
    source = source_name()
    write(engine, source, [0.8, 0.8])
    write(engine, source, [0.1], first_night=2, state="failed")
    assert len(trend(engine, "hit_rate@1", source=source)["nights"]) == 2


def test_the_last_nights_know_those_before(engine: Engine) -> None:
    source = source_name()
    ids = write(engine, source, [*calm(12), 0.2, *calm(3, 2)])
    shown = trend(engine, "hit_rate@1", source=source, last=4)
    assert [night["evaluation_id"] for night in shown["nights"]] == ids[-4:]
    assert shown["nights"][0]["band_low"] is not None
    assert shown["first_out"] == ids[12]
    assert trend(engine, "hit_rate@1", source=source, last=1)["nights"][0]["evaluation_id"] == ids[-1]


def test_labels_of_the_system_are_no_breaks(engine: Engine) -> None:
    source = source_name()
    write(engine, source, [0.8], sut_label="v1")
    write(engine, source, [0.9], sut_label="v2", first_night=1)
    nights = trend(engine, "hit_rate@1", source=source)["nights"]
    assert [(night["sut_label"], night["break"]) for night in nights] == [("v1", False), ("v2", False)]


def test_real_users_are_followed_by_their_headline(engine: Engine) -> None:
    source = source_name()
    for stratum, value in (("confirmed", 0.9), ("all", 0.5)):
        write(engine, source, [value], tier="real_users", stratum=stratum)
    for asked, expected in ((None, 0.9), ("all", 0.5)):
        found = trend(engine, "hit_rate@1", tier="real_users", source=source, stratum=asked)
        assert [night["value"] for night in found["nights"]] == [expected]
        assert found["stratum"] == (asked or "confirmed")


def test_tier_and_source_are_found(engine: Engine) -> None:
    source = source_name()
    metric = "avg_rubric_of_this_test"
    write(engine, source, [0.5], tier="tier2", metric=metric)
    newer = source_name()
    write(engine, newer, [0.6], tier="tier2", metric=metric, first_night=1)
    found = trend(engine, metric)
    assert (found["tier"], found["source"]) == ("tier2", newer)


def test_repeats_replays_and_arms_are_no_nights_and_an_anchor_is_a_line_of_its_own(engine: Engine) -> None:
    source, metric = source_name(), "avg_e2e_score"
    live = write(engine, source, calm(3), tier="tier3", metric=metric)
    more = {"tier": "tier3", "metric": metric, "key": f"key of {source}"}
    write(engine, source, [0.1], resolved={"again": live[0]}, first_night=3, **more)
    write(engine, source, [0.2], resolved={"answers_of": live[0]}, first_night=4, **more)
    write(engine, source, [0.2], resolved={"part_of": "sweep-1"}, first_night=4, **more)
    anchored = {"anchor": live[0], "answers_of": live[0]}
    kept = write(engine, source, [0.3, 0.4], resolved=anchored, first_night=5, **more)
    assert [night["evaluation_id"] for night in trend(engine, metric, source=source)["nights"]] == live
    found = trend(engine, metric, source=source, tier="tier3", anchor=True)
    assert found["anchor"] == live[0]
    assert [night["evaluation_id"] for night in found["nights"]] == kept


def test_nothing_is_a_history_too(engine: Engine) -> None:
    found = trend(engine, "avg_rubric_of_nobody", tier="tier3", source=source_name())
    assert (found["nights"], found["first_out"], found["noise"]) == ([], None, None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"metric": "hitrate@1"}, "did you mean 'hit_rate@1'"),
        ({"metric": "mrr", "tier": "tier_1"}, "no tier 'tier_1'; did you mean 'tier1'"),
        ({"metric": "mrr", "tier": "tier0"}, "tier0 has no metric 'mrr'; it is measured by: tier1, tier3, real_users"),
        ({"metric": "mrr", "tier": "tier1", "stratum": "all"}, "tier1 has no stratum 'all', real_users has"),
        ({"metric": "mrr", "tier": "real_users", "stratum": "follow_up"}, "no stratum 'follow_up', tier3 has"),
        ({"metric": "mrr", "stratum": "confirmd"}, "no stratum 'confirmd'; did you mean 'confirmed'"),
    ],
)
def test_a_wrong_word_is_told_with_the_nearest(engine: Engine, words: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        trend(engine, **words)


def test_a_source_without_a_history_is_told_with_the_nearest(engine: Engine) -> None:
    source = source_name()
    write(engine, source, [0.5])
    with pytest.raises(InputError, match=f"{source}x'; did you mean '{source}'"):
        trend(engine, "hit_rate@1", tier="tier1", source=f"{source}x")


def test_what_is_read_does_not_grow_with_the_history(engine: Engine) -> None:
    source, taken = source_name(), []

    def count(connection, cursor, *more: object) -> None:
        taken.append(cursor.rowcount)

    event.listen(engine, "after_cursor_execute", count)
    try:
        for written in (400, 400):
            write(engine, source, calm(written), first_night=len(taken))
            taken.clear()
            nights = trend(engine, "hit_rate@1", tier="tier1", source=source, last=10)["nights"]
    finally:
        event.remove(engine, "after_cursor_execute", count)
    assert len(nights) == 10
    assert sum(taken) <= 1 + 11 + 10 + HISTORY + 5
    assert len(taken) == 5  # which line, its newest nights, those of their bands, the accepted one, the noise floor


def test_the_bands_are_the_same_however_many_nights_are_shown(engine: Engine) -> None:
    source = source_name()
    values = calm(HISTORY + 60, 5)
    for number in (50, 51, 300):  # nights without a value are passed over, not counted
        values[number] = None
    write(engine, source, values[:200])
    write(engine, source, [0.1] * 3, key="another", first_night=200)
    write(engine, source, values[200:], first_night=203)
    many = trend(engine, "hit_rate@1", source=source, last=1_000)
    few = trend(engine, "hit_rate@1", source=source, last=20)
    assert (many["more"], few["more"], len(few["nights"])) == (False, True, 20)
    for one, other in zip(many["nights"][-20:], few["nights"], strict=True):
        parts = ("smoothed", "band_low", "band_high")
        assert [one.pop(part) for part in parts] == pytest.approx([other.pop(part) for part in parts], rel=1e-12)
        assert one == other
