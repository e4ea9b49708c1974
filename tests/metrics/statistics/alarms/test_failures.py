"""More failures than before, and the nights in which they raise an alarm."""

from yarus.metrics.statistics.alarms.failures import FailureLevel, Failures, dispersion
from yarus.metrics.statistics.alarms.noise import Night
from yarus.metrics.statistics.alarms.watch import Watch

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


def test_failures_that_come_in_bursts_are_no_alarm() -> None:
    """A night of 12 failures is nothing new where earlier ones had 20, and hardly where they had 9 or none."""
    assert watch_nights([0, 20, 0, 0, 12])[-1] is None
    bursts = [0, 9, 0, 1, 8, 0, 0, 7]
    assert watch_nights([*bursts, 12])[-1] is None
    assert watch_nights([3] * 8 + [16])[-1] == "rings"
    assert dispersion([Failures(count, N) for count in [3] * 8]) == 1.0
    assert dispersion([Failures(count, N) for count in bursts]) > 5
