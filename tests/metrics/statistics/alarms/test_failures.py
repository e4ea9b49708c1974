"""More failures than before: the exact test, and the nights in which it rings."""

import numpy as np
import pytest
from scipy.stats import fisher_exact

from metrics.statistics.alarms.failures import FailureLevel, Failures, p_of_more_failures
from metrics.statistics.alarms.noise import Night
from metrics.statistics.alarms.watch import Watch

N = 300
LOOKS = 2_920.0


def make_night(failed: int, before: int | None = None) -> Night:
    """Return a night of the same cases as the one before it, at which other cases failed."""
    share = failed / N
    sampling = max(1 / N, (share * (1 - share) / N) ** 0.5) ** 2
    if before is None:
        return Night(share, sampling, N)
    moved = (failed - before) / N
    variance = max(1, abs(failed - before)) / N**2
    return Night(share, sampling, N, moved, N, variance, variance, 1, 1 / N)


def watch_nights(counts: list[int]) -> list[str | None]:
    """Return what each night tells."""
    watch = Watch({"sut_error_rate": FailureLevel(0.005)})
    nights = [make_night(now, before) for now, before in zip(counts, [None, *counts[:-1]], strict=True)]
    return [watch.look({"sut_error_rate": night}, LOOKS) for night in nights]


@pytest.mark.parametrize("seed", range(30))
def test_p_equals_scipy(seed: int) -> None:
    chance = np.random.default_rng(seed)
    asked = chance.integers(1, 400, 2)
    before, after = (Failures(int(chance.integers(0, n + 1)), int(n)) for n in asked)
    table = [[after.failed, after.asked - after.failed], [before.failed, before.asked - before.failed]]
    expected = fisher_exact(table, alternative="greater").pvalue
    assert p_of_more_failures(before, after) == pytest.approx(expected, rel=1e-9)


def test_new_failures_ring_in_their_first_night() -> None:
    assert watch_nights([0, 12]) == [None, "rings"]


def test_failures_that_were_there_before_do_not_ring() -> None:
    assert watch_nights([12, 12, 14, 10, 13]) == [None] * 5


def test_failures_that_end_are_over() -> None:
    told = watch_nights([0] * 10 + [15] * 3 + [0] * 10)
    assert told[10] == "rings"
    assert "over" in told[13:]


def test_nights_of_an_incident_are_no_reference() -> None:
    told = watch_nights([0] * 10 + [15] * 3 + [0] * 20 + [15])
    assert told.count("rings") == 2
