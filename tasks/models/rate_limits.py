"""Pace of calls to a server: calls at once, calls and tokens per minute, and pauses after faults.

All times are of `time.monotonic`.
"""

import asyncio
import logging
import random
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, get_args

from typing_extensions import TypeIs

FaultKind = Literal["busy", "fault", "unreachable", "timeout"]


def may_pass(kind: str) -> TypeIs[FaultKind]:
    """Return whether an error of this kind may pass by itself, so that the call is tried again."""
    return kind in get_args(FaultKind)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of the tries of a call.

    Calls wait for a server that fails all of them; a call that fails alone is given up.
    """

    attempts: int = 5
    timeouts: int = 2  # a model that takes too long once will do so again, and each try is paid for
    first_s: float = 0.5  # the wait after the first fault, doubled each time
    longest_s: float = 20.0
    outage_s: float = 60.0  # only faults for so long after a success: the server is down
    unreached_s: float = 30.0  # the same before the first success
    wrong_s: float = 15.0  # only errors and unreadable replies: the server runs, and waiting does not help
    busy_s: float = 120.0  # only 'too many requests'
    probe_s: float = 1.0  # longest pause between two probes

    def backoff_s(self, fault: int) -> float:
        """Return the wait before the next try after the n-th fault, with jitter that spreads the calls."""
        return min(self.longest_s, self.first_s * 2.0 ** min(fault - 1, 60)) * random.uniform(0.5, 1.5)

    def wait_s(self, kind: str, faults: int, breaker: "CircuitBreaker") -> float:
        """Return the wait of a call before its next try; during an outage, until the next probe."""
        wait_s = self.backoff_s(faults)
        return min(wait_s, self.probe_s) if kind == "unreachable" and breaker.is_open else wait_s

    def gives_up(self, kind: str, faults: int, waited_s: float, breaker: "CircuitBreaker") -> bool:
        """Return whether a call has used up its tries. If the server fails all calls, the breaker decides instead.

        Args:
            kind: of its last fault; other kinds than those of `FaultKind` do not pass by trying again.
            faults: number of its faults so far.
            waited_s: how long it has waited after them.
            breaker: of the server.
        """
        if kind == "timeout":
            return faults >= self.timeouts
        if kind == "busy":
            return waited_s > self.busy_s
        if kind == "unreachable" and breaker.is_open:
            return breaker.is_given_up  # the last call has no other that probes for it
        return faults >= self.attempts


class RateLimiter:
    """Spreads calls or tokens evenly, so that no minute and no second has more than its share."""

    def __init__(self, per_minute: int | None) -> None:
        self._seconds_each = 60 / per_minute if per_minute else 0.0
        self._next_at = 0.0

    def wait_s(self, amount: int) -> float:
        """Book an amount and return the seconds to wait before using it."""
        now = time.monotonic()
        starts_at = max(now, self._next_at)
        self._next_at = starts_at + amount * self._seconds_each
        return starts_at - now

    def correct(self, amount: int) -> None:
        """Book the difference between the actual and the expected amount."""
        self._next_at += amount * self._seconds_each


class AdaptiveConcurrency:
    """Limit of calls in flight: halved after 'too many requests', raised again by successes."""

    def __init__(self, max_limit: int) -> None:
        self._max_limit = max_limit
        self._used = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = 0.0
        self.limit = float(max_limit)

    async def acquire(self, *, first: bool = False) -> None:
        """Wait for a slot, at the front of the queue or at its end."""
        if self._used < int(self.limit) and not self._waiting:
            self._used += 1
            return
        waiter = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                with suppress(ValueError):  # already skipped
                    self._waiting.remove(waiter)
            else:  # it got the slot at the moment of its cancellation
                self.release()
            raise

    def release(self) -> None:
        """Release a slot."""
        self._used -= 1
        while self._waiting and self._used < int(self.limit):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._used += 1
                waiter.set_result(None)

    def grow(self) -> None:
        """Raise the limit after a successful call."""
        self.limit = min(self._max_limit, self.limit + 1 / self.limit)

    def shrink(self, started_at: float) -> None:
        """Halve the limit after a call that was one too many; calls started before the last halving do not count."""
        if started_at > self._shrunk_at:
            self._shrunk_at = time.monotonic()
            self.limit = max(1.0, self.limit / 2)


class CircuitBreaker:
    """Guard of a server: opens after faults in a row, then one call at a time probes while the others wait.

    Calls that fail by themselves are not an outage: the probes go through the calls in turn. The breaker gives the
    server up only after many faults over a long time without one success between them.
    """

    FAULTS = 5
    GIVEN_UP = 20

    def __init__(self, retries: RetryPolicy) -> None:
        self._retries = retries
        self._faults = 0
        self._probes = 0.0  # faults; a pause that the server asks for counts as the probes that it replaces
        self._failing_since = 0.0
        self._failed_at = 0.0
        self._has_worked = False
        self._probing = False
        self._next_probe_at = 0.0
        self._paused_until = 0.0
        self._kind: FaultKind = "fault"
        self._reason = ""

    @property
    def is_open(self) -> bool:
        """Return whether the server fails all calls."""
        return self._faults >= self.FAULTS

    @property
    def is_given_up(self) -> bool:
        """Return whether it has failed all calls for longer than the retry policy allows."""
        return self._probes >= self.GIVEN_UP and self._failing_s > self._longest_s()

    @property
    def wait_reason(self) -> str | None:
        """Return why calls wait, and how long they will at most; None if the server works."""
        if not self.is_open:
            return None
        left_s = self._longest_s() - (time.monotonic() - self._failing_since)
        tries = max(1, self.GIVEN_UP - int(self._probes))
        return f"{self._reason}; given up in {left_s:.0f} s" if left_s > 0 else f"{self._reason}; {tries} more tries"

    @property
    def kind(self) -> FaultKind:
        """Return the kind of the last fault."""
        return self._kind

    @property
    def reason(self) -> str:
        """Return the reason of the last fault."""
        return self._reason

    @property
    def _failing_s(self) -> float:
        return self._failed_at - self._failing_since

    async def wait_until_ready(self, ends_at: float) -> str | None:
        """Wait until a call may be sent, or until `ends_at`.

        Returns:
            None, or why the call is not sent: the server has failed for longer than the retry policy allows.
        """
        while (now := time.monotonic()) < ends_at and (now < self._paused_until or self.is_open):
            if self._paused_until - now > self._retries.busy_s:
                return f"not asked: the server wants us to wait {self._paused_until - now:.0f} s ({self._reason})"
            is_due = now >= max(self._next_probe_at, self._paused_until)
            if is_due and not self._probing:
                self._probing = True
                return None
            # Not while a probe is due or under way: the server may work again.
            if self.is_given_up and not is_due and not self._probing:
                return f"not asked: the server has failed for {self._failing_s:.0f} s ({self._reason})"
            await asyncio.sleep(0.05)
        return None

    def record_success(self) -> None:
        """Close the breaker after an answer."""
        self._faults, self._probes, self._has_worked, self._probing = 0, 0.0, True, False

    def record_failure(self, kind: FaultKind, reason: str, *, pause_s: float = 0.0) -> None:
        """Count a fault; `pause_s` is the pause that the server asks for by Retry-After."""
        now = time.monotonic()
        if self._faults == 0:
            self._failing_since = now
        self._failed_at = now
        self._faults += 1
        self._probes += max(1.0, pause_s / self._retries.probe_s)
        self._kind, self._reason, self._probing = kind, reason, False
        self._paused_until = max(self._paused_until, now + pause_s)
        self._next_probe_at = now + min(self._retries.probe_s, self._retries.backoff_s(self._faults))

    def release_probe(self) -> None:
        """End a probe that showed nothing about the server."""
        self._probing = False

    def _longest_s(self) -> float:
        retries = self._retries
        if self._kind == "busy":
            return retries.busy_s
        if self._kind == "fault":
            return retries.wrong_s
        return retries.outage_s if self._has_worked else retries.unreached_s


log = logging.getLogger("yarus")
CHECK_INTERVAL_S = 10.0
UNUSUAL_FACTOR = 3
"""Multiple of the longest silence so far from which a wait is logged, so that slow servers are not reported."""


class WaitReporter:
    """Log of long waits for one server; each waiting call enters it."""

    def __init__(self, server_name: str, breaker: CircuitBreaker, timeout_s: float) -> None:
        """Take the name of the server, its breaker, and the time limit of one reply."""
        self._server, self._breaker, self._timeout_s = server_name, breaker, timeout_s
        self._calls = 0
        self._silent_since = self._reported_at = 0.0
        self._usual_s = 0.0  # longest silence before an answer
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._calls += 1
        if self._timer is None:
            self._silent_since = time.monotonic()
            self._wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._calls -= 1
        if not self._calls and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def record_reply(self) -> None:
        """End the silence, and log it if it was reported."""
        now = time.monotonic()
        silent_s, was_reported = now - self._silent_since, self._reported_at > self._silent_since
        self._usual_s, self._silent_since = max(self._usual_s, silent_s), now
        if was_reported:
            log.info("%s answers again, after %.0f s", self._server, silent_s)

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(CHECK_INTERVAL_S, self._report)

    def _report(self) -> None:
        now = time.monotonic()
        waited_s = now - self._silent_since
        is_long = waited_s >= max(CHECK_INTERVAL_S, UNUSUAL_FACTOR * self._usual_s) or (
            waited_s >= CHECK_INTERVAL_S and self._breaker.wait_reason
        )
        if is_long and now - max(self._reported_at, self._silent_since) >= waited_s / 2:  # 10, 20, 40, 80 s
            self._reported_at = now
            reason = self._breaker.wait_reason or f"no reply yet, which may take {self._timeout_s:.0f} s"
            log.info("%.0f s without a reply of %s: %s. Ctrl-C stops, nothing is lost", waited_s, self._server, reason)
        self._wait()
