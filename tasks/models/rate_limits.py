"""How fast a server may be asked: calls at once, calls and tokens a minute, and when to leave it alone.

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

Kind = Literal["busy", "fault", "unreachable", "timeout"]


def may_pass(kind: str) -> TypeIs[Kind]:
    """Whether an error of this kind may pass by itself, so that the call is tried again."""
    return kind in get_args(Kind)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a call is tried. A server that fails everybody is waited for; a call that fails alone is given up."""

    attempts: int = 5
    timeouts: int = 2  # a model that takes too long once will do so again, and each try is paid for
    first_s: float = 0.5  # the wait after the first fault, doubled each time
    longest_s: float = 20.0
    outage_s: float = 60.0  # nothing but faults for so long, after it has worked: the server is down
    unreached_s: float = 30.0  # the same where nothing has worked yet
    wrong_s: float = 15.0  # nothing but errors and rubbish: it is there, and waiting will not mend it
    busy_s: float = 120.0  # nothing but 'too many requests'
    probe_s: float = 1.0  # longest pause between two probes

    def backoff_s(self, fault: int) -> float:
        """The wait before the next try after the n-th fault, with jitter so that calls do not return together."""
        return min(self.longest_s, self.first_s * 2.0 ** min(fault - 1, 60)) * random.uniform(0.5, 1.5)

    def wait_s(self, kind: str, faults: int, breaker: "CircuitBreaker") -> float:
        """The wait of a call before its next try; where nothing answers anybody, until the next probe."""
        wait_s = self.backoff_s(faults)
        return min(wait_s, self.probe_s) if kind == "unreachable" and breaker.is_open else wait_s

    def gives_up(self, kind: str, faults: int, waited_s: float, breaker: "CircuitBreaker") -> bool:
        """Whether a call has had its tries. Where the server fails everybody, the breaker decides instead.

        Args:
            kind: of its last fault; what is no `Kind` is no fault of the server's, and not mended by trying.
            faults: how many it has met.
            waited_s: how long it has waited after them.
            breaker: what guards the server.
        """
        if kind == "timeout":
            return faults >= self.timeouts
        if kind == "busy":
            return waited_s > self.busy_s
        if kind == "unreachable" and breaker.is_open:
            return breaker.is_given_up  # the last call has no other that probes for it
        return faults >= self.attempts


class RateLimiter:
    """Spreads calls or tokens evenly, so that no minute has more than its share, nor any second."""

    def __init__(self, per_minute: int | None) -> None:
        self._seconds_each = 60 / per_minute if per_minute else 0.0
        self._next_at = 0.0

    def wait_s(self, amount: int) -> float:
        """Books so many and says how long to wait before."""
        now = time.monotonic()
        starts_at = max(now, self._next_at)
        self._next_at = starts_at + amount * self._seconds_each
        return starts_at - now

    def correct(self, amount: int) -> None:
        """Books the difference between what was expected and what it came to."""
        self._next_at += amount * self._seconds_each


class AdaptiveConcurrency:
    """Calls in flight at once: halved when the server says 'too many requests', won back one round at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = 0.0
        self.limit = float(most)

    async def take(self, *, first: bool = False) -> None:
        """Waits for a place, at the front of the queue or at its end."""
        if self._used < int(self.limit) and not self._waiting:
            self._used += 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if first else self._waiting.append)(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):  # passed over already
                    self._waiting.remove(turn)
            else:  # it was given the place in the moment of its end
                self.give()
            raise

    def give(self) -> None:
        """Gives a place back."""
        self._used -= 1
        while self._waiting and self._used < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._used += 1
                turn.set_result(None)

    def grow(self) -> None:
        """A call went well."""
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def shrink(self, started_at: float) -> None:
        """A call that began at that time was one too many; calls from before the last halving say nothing new."""
        if started_at > self._shrunk_at:
            self._shrunk_at = time.monotonic()
            self.limit = max(1.0, self.limit / 2)


class CircuitBreaker:
    """Opens after faults in a row; then one call at a time probes the server while the others wait.

    Calls that fail by themselves are not an outage: the probes go through the calls in turn, and only a long row of
    faults, over a long time, without one success between them, gives the server up.
    """

    FAULTS = 5
    GIVEN_UP = 20

    def __init__(self, retries: RetryPolicy) -> None:
        self._retries = retries
        self._faults = 0
        self._probes = 0.0  # the faults; a pause that the server asks for counts as the probes that it prevents
        self._failing_since = 0.0
        self._failed_at = 0.0
        self._worked = False
        self._probing = False
        self._next_probe_at = 0.0
        self._paused_until = 0.0
        self._kind: Kind = "fault"
        self._reason = ""

    @property
    def is_open(self) -> bool:
        """Whether the server fails everybody."""
        return self._faults >= self.FAULTS

    @property
    def is_given_up(self) -> bool:
        """Whether it has failed everybody for longer than the retry policy allows."""
        return self._probes >= self.GIVEN_UP and self._failing_s > self._longest_s()

    @property
    def waits(self) -> str | None:
        """What calls wait for, and how long they will at most; None where the server works."""
        if not self.is_open:
            return None
        left_s = self._longest_s() - (time.monotonic() - self._failing_since)
        tries = max(1, self.GIVEN_UP - int(self._probes))
        return f"{self._reason}; given up in {left_s:.0f} s" if left_s > 0 else f"{self._reason}; {tries} more tries"

    @property
    def kind(self) -> Kind:
        """Return the kind of the last fault."""
        return self._kind

    @property
    def reason(self) -> str:
        """Return the reason of the last fault."""
        return self._reason

    @property
    def _failing_s(self) -> float:
        return self._failed_at - self._failing_since

    async def ready(self, ends_at: float) -> str | None:
        """Waits until a call may be sent, or until that time.

        Returns:
            None, or why none is sent: the server has failed for longer than the retry policy allows.
        """
        while (now := time.monotonic()) < ends_at and (now < self._paused_until or self.is_open):
            if self._paused_until - now > self._retries.busy_s:
                return f"not asked: the server wants us to wait {self._paused_until - now:.0f} s ({self._reason})"
            due = now >= max(self._next_probe_at, self._paused_until)
            if due and not self._probing:
                self._probing = True
                return None
            # Not while a probe is due or under way: what failed long ago may work again.
            if self.is_given_up and not due and not self._probing:
                return f"not asked: the server has failed for {self._failing_s:.0f} s ({self._reason})"
            await asyncio.sleep(0.05)
        return None

    def worked(self) -> None:
        """The server answered."""
        self._faults, self._probes, self._worked, self._probing = 0, 0.0, True, False

    def failed(self, kind: Kind, reason: str, *, pause_s: float = 0.0) -> None:
        """The server did not answer; `pause_s` is what it asked for by Retry-After."""
        now = time.monotonic()
        if self._faults == 0:
            self._failing_since = now
        self._failed_at = now
        self._faults += 1
        self._probes += max(1.0, pause_s / self._retries.probe_s)
        self._kind, self._reason, self._probing = kind, reason, False
        self._paused_until = max(self._paused_until, now + pause_s)
        self._next_probe_at = now + min(self._retries.probe_s, self._retries.backoff_s(self._faults))

    def abandoned(self) -> None:
        """A call ended without telling anything about the server."""
        self._probing = False

    def _longest_s(self) -> float:
        retries = self._retries
        if self._kind == "busy":
            return retries.busy_s
        if self._kind == "fault":
            return retries.wrong_s
        return retries.outage_s if self._worked else retries.unreached_s


log = logging.getLogger("yarus")
EVERY_S = 10.0
UNUSUAL = 3
"""Multiple of the longest silence so far from which a wait is logged; a server that is only slow is not."""


class Waiting:
    """The calls that wait for one server; entered by each of them."""

    def __init__(self, who: str, breaker: CircuitBreaker, timeout_s: float) -> None:
        """Takes what the server is called, what guards it, and how long one reply may take."""
        self._who, self._breaker, self._timeout_s = who, breaker, timeout_s
        self._calls = 0
        self._since = self._said_at = 0.0
        self._usual_s = 0.0  # the longest silence that an answer has ended
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._calls += 1
        if self._timer is None:
            self._since = time.monotonic()
            self._wait()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._calls -= 1
        if not self._calls and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def answered(self) -> None:
        """The server answered."""
        now = time.monotonic()
        silent_s, told = now - self._since, self._said_at > self._since
        self._usual_s, self._since = max(self._usual_s, silent_s), now
        if told:
            log.info("%s answers again, after %.0f s", self._who, silent_s)

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._say)

    def _say(self) -> None:
        now = time.monotonic()
        waited_s = now - self._since
        is_long = waited_s >= max(EVERY_S, UNUSUAL * self._usual_s) or (waited_s >= EVERY_S and self._breaker.waits)
        if is_long and now - max(self._said_at, self._since) >= waited_s / 2:  # 10, 20, 40, 80 s
            self._said_at = now
            why = self._breaker.waits or f"no reply yet, which may take {self._timeout_s:.0f} s"
            log.info("%.0f s without a reply of %s: %s. Ctrl-C stops, nothing is lost", waited_s, self._who, why)
        self._wait()
