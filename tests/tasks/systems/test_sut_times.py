"""What a system under test says of its own time: a figure that can be one, or the question was not answered."""

import math

import pytest

from yarus.tasks.systems.sut import LONGEST_MS, checked


@pytest.mark.parametrize("own", [1e308, LONGEST_MS + 1, 10**400, math.inf, math.nan, -1, True, "12"])
def test_what_is_no_time(own: object) -> None:
    with pytest.raises(ValueError, match="not a number of milliseconds from 0 to a day"):
        checked({"answer": "yes", "latency_ms": own}, 5.0)


def test_what_a_system_says_of_its_first_word_and_its_tokens() -> None:
    found = checked({"answer": "yes", "first_token_ms": 3, "tokens_in": 7, "tokens_out": "many"}, 5.0)
    assert (found.first_token_ms, found.latency_ms, found.tokens_in, found.tokens_out) == (3.0, 5.0, 7, None)
    with pytest.raises(ValueError, match="'first_token_ms' is -1, not a number of milliseconds"):
        checked({"answer": "yes", "first_token_ms": -1}, 5.0)


@pytest.mark.parametrize(("own", "kept"), [(None, 5.0), (0, 0.0), (12.5, 12.5), (LONGEST_MS, float(LONGEST_MS))])
def test_what_is_one(own: object, kept: float) -> None:
    assert checked({"answer": "yes", "latency_ms": own}, 5.0).latency_ms == kept
