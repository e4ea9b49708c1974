"""Says what calls wait for, where a server answers nothing for ten seconds; then more and more rarely."""

import asyncio
import logging
import time
from types import TracebackType

from tasks.models.rate_limits import CircuitBreaker

log = logging.getLogger("yarus")
EVERY_S = 10.0


class Waiting:
    """The calls that wait for one server; entered by each of them."""

    def __init__(self, who: str, breaker: CircuitBreaker, timeout_s: float) -> None:
        """Takes what the server is called, what guards it, and how long one reply may take."""
        self._who, self._breaker, self._timeout_s = who, breaker, timeout_s
        self._calls = 0
        self._since = self._said_at = 0.0
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
        self._since = time.monotonic()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._say)

    def _say(self) -> None:
        now = time.monotonic()
        waited_s = now - self._since
        if waited_s >= EVERY_S and now - self._said_at >= waited_s / 3:  # the longer, the rarer
            self._said_at = now
            why = self._breaker.waits or f"no reply yet, which may take {self._timeout_s:.0f} s"
            log.info("%.0f s without a reply of %s: %s. Ctrl-C stops, nothing is lost", waited_s, self._who, why)
        self._wait()
