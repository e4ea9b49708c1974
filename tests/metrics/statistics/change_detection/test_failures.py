"""Alarms about failures that have increased."""

from yarus.metrics.statistics.change_detection.failures import FailureCounts, FailureDetector, overdispersion_bound
from yarus.metrics.statistics.change_detection.noise import NightlyValue
from yarus.metrics.statistics.change_detection.watch import ChangeMonitor

N = 300
LOOKS = 2_920.0


def make_night(failed: int, before: int | None = None) -> NightlyValue:
    """Return a night of the same cases as the night before, on which other cases failed."""
    share = failed / N
    sampling = max(1 / N, (share * (1 - share) / N) ** 0.5) ** 2
    if before is None:
        return NightlyValue(share, sampling, N)
    moved = (failed - before) / N
    variance = max(1, abs(failed - before)) / N**2
    return NightlyValue(share, sampling, N, moved, N, variance, variance, 1, 1 / N)


def watch_nights(counts: list[int]) -> list[str | None]:
    """Return the event of each night."""
    watch = ChangeMonitor({"sut_error_rate": FailureDetector(0.005)})
    nights = [make_night(now, before) for now, before in zip(counts, [None, *counts[:-1]], strict=True)]
    return [watch.look({"sut_error_rate": night}, LOOKS) for night in nights]


def test_new_failures_alarm_in_first_night() -> None:
    assert watch_nights([0, 12]) == [None, "rings"]


def test_constant_failures_do_not_alarm() -> None:
    assert watch_nights([12, 12, 14, 10, 13]) == [None] * 5


def test_incident_ends_with_failures() -> None:
    events = watch_nights([0] * 10 + [15] * 3 + [0] * 10)
    assert events[10] == "rings"
    assert "over" in events[13:]


def test_incident_nights_are_not_reference() -> None:
    events = watch_nights([0] * 10 + [15] * 3 + [0] * 20 + [15])
    assert events.count("rings") == 2


def test_bursts_of_failures_do_not_alarm() -> None:
    """A night of 12 failures is not an alarm if earlier ones had 20, and hardly if they had 9 or none."""
    assert watch_nights([0, 20, 0, 0, 12])[-1] is None
    bursts = [0, 9, 0, 1, 8, 0, 0, 7]
    assert watch_nights([*bursts, 12])[-1] is None
    assert watch_nights([3] * 8 + [16])[-1] == "rings"
    assert overdispersion_bound([FailureCounts(count, N) for count in [3] * 8]) == 1.0
    assert overdispersion_bound([FailureCounts(count, N) for count in bursts]) > 5
