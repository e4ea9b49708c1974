"""Log what calls wait for if a server takes longer than usual; then ever more rarely."""

import asyncio
import logging
import time
from types import TracebackType

from yarus.tasks.models.rate_limits import CircuitBreaker

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
