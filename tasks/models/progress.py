"""What is counted while an evaluation runs; of a case it costs a microsecond.

The batches of an evaluation work in one process, within a context that knows its progress; elsewhere, as on a Dask
worker or in a notebook, nothing is counted.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.texts import texts

T = TypeVar("T")
log = logging.getLogger("yarus")


@dataclass(slots=True, eq=False)
class Progress:
    """How far an evaluation is."""

    tier: str
    source: str
    n_cases: int
    steps: tuple[str, ...]
    """Those that a case waits for, in their order."""
    place: tuple[int, int] | None = None
    """Which evaluation it is, of how many: of a night, a sweep or probes."""
    counts: Counter[str] = field(default_factory=Counter)
    """Step -> cases that have it behind them."""
    failed: int | None = 0
    """Cases that something stood in the way of; None where nobody counts them."""
    tokens: int = 0
    cost_usd: float | None = None
    """None: nothing that has a price was bought."""
    calls: int = 0
    """Calls of models so far."""
    replies: int = 0
    """Calls that have ended."""
    waited: int = 0
    """Replies of servers, not of the call store, since `calling_since`."""
    calling_since: float = 0.0
    """When calls were last started while none was under way, by `time.monotonic`."""
    done_before_calls: int = 0
    """Sum of the counts at that time."""
    before: int = 0
    """Of the counts, those of an earlier try."""
    began: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Cases that have all steps behind them."""
        return min(self.counts[step] for step in self.steps)

    @property
    def share(self) -> float:
        """Return the share of the work that is done, 0..1: of steps, each counting the same, but at most of calls."""
        of_cases = sum(self.counts.values()) / (len(self.steps) * self.n_cases)
        return min(of_cases, self.replies / self.calls) if self.replies < self.calls else of_cases

    @property
    def per_second(self) -> float | None:
        """Cases a second since this try began; None before anything was done."""
        passed = time.monotonic() - self.began
        made = (sum(self.counts.values()) - self.before) / len(self.steps)
        return made / passed if made > 0 and passed > 0 else None

    @property
    def left_s(self) -> float | None:
        """Return the seconds that the rest takes, at the pace of cases or of pending calls; None before there is one.

        If no case has been done since calls are pending, their pace alone counts: an exam asks for all of them at once.
        """
        speed = self.per_second
        by_cases = None if speed is None else (1 - self.share) * self.n_cases / speed
        if self.replies == self.calls:
            return by_cases
        if self.seconds_per_call is None:
            return None
        by_calls = (self.calls - self.replies) * self.seconds_per_call
        return max(by_cases or 0.0, by_calls) if sum(self.counts.values()) > self.done_before_calls else by_calls

    @property
    def seconds_per_call(self) -> float | None:
        """Return the seconds from one reply of a server to the next; None before the first."""
        return (time.monotonic() - self.calling_since) / self.waited if self.waited else None

    def add_call(self) -> None:
        """Count a call of a model."""
        if self.replies == self.calls:
            self.calling_since, self.waited = time.monotonic(), 0
            self.done_before_calls = sum(self.counts.values())
        self.calls += 1

    def add_reply(self, *, waited: bool) -> None:
        """Count the end of a call, and whether a server replied to it."""
        self.replies += 1
        self.waited += waited

    def bought(self, tokens: Sequence[float | None], cost_usd: float | None) -> None:
        """Counts what a reply has cost."""
        self.tokens += int(sum(count or 0 for count in tokens))
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd

    def skip(self, n: int) -> None:
        """Counts cases that an earlier try has finished."""
        self.before += n * len(self.steps)
        self.counts.update(dict.fromkeys(self.steps, n))


@dataclass(slots=True)
class Part:
    """The cases of one batch, which are on their way."""

    of: Progress
    size: int
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0

    def tick(self, step: str, n: int, failed: int) -> None:
        """Counts cases that have a step behind them."""
        if step in self.of.steps:
            n = min(n, self.size - self.counts[step])
            self.counts[step] += n
            self.of.counts[step] += n
        if failed and self.of.failed is not None:
            self.failed += failed
            self.of.failed += failed

    def end(self, failed: int | None) -> None:
        """Counts the whole batch as done, with as many failed cases as it has; None where nobody has counted them."""
        for step in self.of.steps:
            self.tick(step, self.size, 0)
        self.of.failed = None if failed is None or self.of.failed is None else self.of.failed - self.failed + failed


_PART: ContextVar[Part | None] = ContextVar("the batch that is worked on", default=None)
_PLACE: ContextVar[tuple[int, int] | None] = ContextVar("which evaluation of how many", default=None)
_SHOWN: list[Progress] = []


def shown() -> Progress | None:
    """How far the evaluation is that runs in this process; None where none does."""
    return _SHOWN[-1] if _SHOWN else None


@contextmanager
def showing(progress: Progress) -> Iterator[None]:
    """While it lasts, `shown` gives it."""
    progress.place = _PLACE.get()
    _SHOWN.append(progress)
    try:
        yield
    finally:
        _SHOWN.remove(progress)


def numbered(evaluations: Iterable[T]) -> Iterator[T]:
    """The evaluations of a night or a sweep, one after another, each knowing which of how many it is."""
    every = list(evaluations)
    for number, one in enumerate(every, 1):
        _PLACE.set((number, len(every)))
        yield one
    _PLACE.set(None)


def counting(part: Part) -> None:
    """Makes a batch the one that is worked on, for this task and what it starts."""
    _PART.set(part)


def tick(step: str, failed: str | None = None, n: int = 1) -> None:
    """A case has a step behind it, or n have.

    Args:
        step: the name of its function.
        failed: why it failed there; None where it did not.
        n: how many.
    """
    if (part := _PART.get()) is not None:
        part.tick(step, n, failed is not None)
    if failed is not None:
        note(f"{step} failed", failed)


def note(what: str, why: str) -> None:
    """Says in the log, to who wants to know everything, what went wrong with a case that is worked on."""
    part = _PART.get()
    if part is not None and log.isEnabledFor(logging.DEBUG):
        log.debug("%s: %s", what, pseudonyms.text(why, part.of.source))


@contextmanager
def track_call() -> Iterator[Callable[[], None]]:
    """Track a call of a model; call what this yields if a server has replied, not the call store."""
    part = _PART.get()
    if part is None:
        yield lambda: None
        return
    part.of.add_call()
    waited: list[None] = []
    try:
        yield lambda: waited.append(None)
    finally:
        part.of.add_reply(waited=bool(waited))


def bought(tokens: Sequence[int | None], cost_usd: float | None) -> None:
    """A reply was bought."""
    if (part := _PART.get()) is not None:
        part.of.bought(tokens, cost_usd)


async def gathered(
    step: str, cases: Iterable[Awaitable[T]], failed: Callable[[T], str | None] = lambda _: None
) -> list[T]:
    """What becomes of every case, in their order, each counted when it is there.

    Args:
        step: the name of its function.
        cases: what is done for each.
        failed: why a case failed in this step; None where it did not.
    """

    async def counted(case: Awaitable[T]) -> T:
        found = await case
        tick(step, failed(found))
        return found

    return await asyncio.gather(*map(counted, cases))


MINUTE, HOUR = 60, 3_600


def line(of: Progress, language: str) -> str:
    """Which evaluation, cases done, speed, time left, failures, tokens and cost; what is not known is left out."""
    words = texts("progress", language)
    place = words["place"].format(number=of.place[0], of=of.place[1]) if of.place else ""
    parts = [f"{place}{of.tier} {of.source}", words["done"].format(done=of.done, all=of.n_cases, percent=_percent(of))]
    if of.done < of.n_cases and len(of.steps) > 1:
        parts += [words[step].format(n=of.counts[step]) for step in of.steps[:-1] if of.counts[step] > of.done]
    if of.replies < of.calls:
        parts.append(words["calls"].format(done=of.replies, all=of.calls))
    if (speed := of.per_second) is not None:
        parts.append(words["a second" if speed >= 1 else "a minute"].format(n=speed if speed >= 1 else MINUTE * speed))
    if (left_s := of.left_s) is not None and of.share < 1:
        parts.append(words["left"].format(time=clock(left_s)))
    if of.failed:
        parts.append(words["failed"].format(n=of.failed))
    if of.tokens:
        parts.append(words["tokens"].format(n=of.tokens) if of.tokens < 10_000 else _thousands(of, words))
    if of.cost_usd is not None:
        parts.append(f"${of.cost_usd:.4f}" if of.cost_usd < 1 else f"${of.cost_usd:.2f}")
    return " · ".join(parts)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as on a clock: 0:07, 12:30, 1:05:00."""
    whole = round(seconds)
    hours, minutes, rest = whole // HOUR, whole % HOUR // MINUTE, whole % MINUTE
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _percent(of: Progress) -> int:
    return int(100 * of.share)


def _thousands(of: Progress, words: dict[str, str]) -> str:
    return words["thousands"].format(n=of.tokens / 1_000)
