"""The everyday suite stays one of minutes, and what it leaves out says why."""

import pytest

from tests.support.durations import COLLECTED, KINDS, LONGEST_EVERYDAY_S, kept, whys_of


def test_a_test_that_takes_long_says_why(pytestconfig: pytest.Config) -> None:
    seconds = kept()
    assert seconds
    collected = pytestconfig.stash[COLLECTED]
    assert [
        f"{item.nodeid}: {seconds[item.nodeid]} s"
        for item in collected
        if seconds.get(item.nodeid, 0) > LONGEST_EVERYDAY_S and not whys_of(item)
    ] == []


def test_every_reason_is_of_a_kind_that_the_docs_explain(pytestconfig: pytest.Config) -> None:
    collected = pytestconfig.stash[COLLECTED]
    whys = {(item.nodeid, why) for item in collected for why in whys_of(item)}
    assert [one for one in whys if one[1].partition(": ")[0] not in KINDS or not one[1].partition(": ")[2]] == []
