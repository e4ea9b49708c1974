"""Check that the everyday suite stays short, and that slow tests give a reason."""

import pytest

from tests.support.durations import COLLECTED, KINDS, LONGEST_EVERYDAY_S, get_slow_reasons, read_durations


def test_slow_tests_have_reason(pytestconfig: pytest.Config) -> None:
    seconds = read_durations()
    assert seconds
    collected = pytestconfig.stash[COLLECTED]
    assert [
        f"{item.nodeid}: {seconds[item.nodeid]} s"
        for item in collected
        if seconds.get(item.nodeid, 0) > LONGEST_EVERYDAY_S and not get_slow_reasons(item)
    ] == []


def test_slow_reasons_have_documented_kind(pytestconfig: pytest.Config) -> None:
    collected = pytestconfig.stash[COLLECTED]
    pairs = {(item.nodeid, reason) for item in collected for reason in get_slow_reasons(item)}
    assert [pair for pair in pairs if pair[1].partition(": ")[0] not in KINDS or not pair[1].partition(": ")[2]] == []
