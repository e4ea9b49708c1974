"""Times that a system under test reports: valid ones are kept, others are errors."""

import math

import pytest

from yarus.tasks.systems.sut import LONGEST_MS, validate_answer


@pytest.mark.parametrize("reported", [1e308, LONGEST_MS + 1, 10**400, math.inf, math.nan, -1, True, "12"])
def test_invalid_latency_is_rejected(reported: object) -> None:
    with pytest.raises(ValueError, match="not a number of milliseconds from 0 to a day"):
        validate_answer({"answer": "yes", "latency_ms": reported}, 5.0)


def test_first_token_time_and_tokens_are_checked() -> None:
    answer = validate_answer({"answer": "yes", "first_token_ms": 3, "tokens_in": 7, "tokens_out": "many"}, 5.0)
    assert (answer.first_token_ms, answer.latency_ms, answer.tokens_in, answer.tokens_out) == (3.0, 5.0, 7, None)
    with pytest.raises(ValueError, match="'first_token_ms' is -1, not a number of milliseconds"):
        validate_answer({"answer": "yes", "first_token_ms": -1}, 5.0)


@pytest.mark.parametrize(
    ("reported", "expected"), [(None, 5.0), (0, 0.0), (12.5, 12.5), (LONGEST_MS, float(LONGEST_MS))]
)
def test_valid_latency_replaces_the_measured_one(reported: object, expected: float) -> None:
    assert validate_answer({"answer": "yes", "latency_ms": reported}, 5.0).latency_ms == expected
