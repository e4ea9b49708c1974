"""Progress of a running evaluation, counted at a cost of a microsecond per case.

The batches of an evaluation work in one process, within a context that knows its progress. Elsewhere, as on a Dask
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
    """Progress of one evaluation."""

    tier: str
    source: str
    n_cases: int
    steps: tuple[str, ...]
    """Steps of a case, in their order."""
    place: tuple[int, int] | None = None
    """Number of the evaluation and the total: in a nightly run, a sweep or probes."""
    counts: Counter[str] = field(default_factory=Counter)
    """Step -> cases that have finished it."""
    failed: int | None = 0
    """Cases that have failed; None if they are not counted."""
    tokens: int = 0
    cost_usd: float | None = None
    """None: no call with a known price was bought."""
    calls: int = 0
    """Calls of models so far."""
    replies: int = 0
    """Calls that have ended."""
    waited: int = 0
    """Replies of servers, not of the call store, since `calling_since`."""
    calling_since: float = 0.0
    """Time of the last start of a call while none was under way, by `time.monotonic`."""
    done_before_calls: int = 0
    """Sum of the counts at that time."""
    before: int = 0
    """Counts of an earlier try, included in `counts`."""
    began: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Return the number of cases that have finished all steps."""
        return min(self.counts[step] for step in self.steps)

    @property
    def share(self) -> float:
        """Return the share of the work that is done, 0..1: of equally weighted steps, at most that of calls."""
        case_share = sum(self.counts.values()) / (len(self.steps) * self.n_cases)
        return min(case_share, self.replies / self.calls) if self.replies < self.calls else case_share

    @property
    def per_second(self) -> float | None:
        """Return cases per second since this try began; None before any step is done."""
        elapsed_s = time.monotonic() - self.began
        done_cases = (sum(self.counts.values()) - self.before) / len(self.steps)
        return done_cases / elapsed_s if done_cases > 0 and elapsed_s > 0 else None

    @property
    def left_s(self) -> float | None:
        """Return the seconds that the rest takes, at the pace of cases or of pending calls; None before there is one.

        If no case has been done since calls are pending, their pace alone counts: an exam asks for all of them at once.
        """
        cases_per_second = self.per_second
        cases_s = None if cases_per_second is None else (1 - self.share) * self.n_cases / cases_per_second
        if self.replies == self.calls:
            return cases_s
        if self.seconds_per_call is None:
            return None
        calls_s = (self.calls - self.replies) * self.seconds_per_call
        return max(cases_s or 0.0, calls_s) if sum(self.counts.values()) > self.done_before_calls else calls_s

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
        """Count the tokens and the cost of a reply."""
        self.tokens += int(sum(count or 0 for count in tokens))
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd

    def skip(self, n: int) -> None:
        """Count cases that an earlier try has finished."""
        self.before += n * len(self.steps)
        self.counts.update(dict.fromkeys(self.steps, n))


@dataclass(slots=True)
class BatchProgress:
    """Progress of one batch of cases."""

    of: Progress
    size: int
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0

    def tick(self, step: str, n: int, failed: int) -> None:
        """Count cases that have finished a step."""
        if step in self.of.steps:
            n = min(n, self.size - self.counts[step])
            self.counts[step] += n
            self.of.counts[step] += n
        if failed and self.of.failed is not None:
            self.failed += failed
            self.of.failed += failed

    def end(self, failed: int | None) -> None:
        """Count the whole batch as done, with its number of failed cases; None if they were not counted."""
        for step in self.of.steps:
            self.tick(step, self.size, 0)
        self.of.failed = None if failed is None or self.of.failed is None else self.of.failed - self.failed + failed


_PART: ContextVar[BatchProgress | None] = ContextVar("the batch that is worked on", default=None)
_PLACE: ContextVar[tuple[int, int] | None] = ContextVar("which evaluation of how many", default=None)
_SHOWN: list[Progress] = []


def get_current_progress() -> Progress | None:
    """Return the progress of the evaluation that runs in this process; None if none runs."""
    return _SHOWN[-1] if _SHOWN else None


@contextmanager
def track_progress(progress: Progress) -> Iterator[None]:
    """Make `get_current_progress` return this progress while the context lasts."""
    progress.place = _PLACE.get()
    _SHOWN.append(progress)
    try:
        yield
    finally:
        _SHOWN.remove(progress)


def number_evaluations(evaluations: Iterable[T]) -> Iterator[T]:
    """Yield the evaluations of a nightly run or a sweep, and set the number of each."""
    all_evaluations = list(evaluations)
    for number, evaluation in enumerate(all_evaluations, 1):
        _PLACE.set((number, len(all_evaluations)))
        yield evaluation
    _PLACE.set(None)


def set_current_batch(part: BatchProgress) -> None:
    """Make a batch the current one, for this task and the tasks that it starts."""
    _PART.set(part)


def count_step(step: str, failed: str | None = None, n: int = 1) -> None:
    """Count one or more cases that have finished a step.

    Args:
        step: the name of its function.
        failed: why it failed there; None if it did not.
        n: number of cases.
    """
    if (part := _PART.get()) is not None:
        part.tick(step, n, failed is not None)
    if failed is not None:
        log_failure(f"{step} failed", failed)


def log_failure(event: str, reason: str) -> None:
    """Log at DEBUG level why a step of a current case failed, with pseudonyms."""
    part = _PART.get()
    if part is not None and log.isEnabledFor(logging.DEBUG):
        log.debug("%s: %s", event, pseudonyms.mask_message(reason, part.of.source))


@contextmanager
def track_call() -> Iterator[Callable[[], None]]:
    """Track a call of a model; call what this yields if a server has replied, not the call store."""
    part = _PART.get()
    if part is None:
        yield lambda: None
        return
    part.of.add_call()
    replies: list[None] = []
    try:
        yield lambda: replies.append(None)
    finally:
        part.of.add_reply(waited=bool(replies))


def count_purchase(tokens: Sequence[int | None], cost_usd: float | None) -> None:
    """Count a bought reply."""
    if (part := _PART.get()) is not None:
        part.of.bought(tokens, cost_usd)


async def gather_cases(
    step: str, cases: Iterable[Awaitable[T]], failed: Callable[[T], str | None] = lambda _: None
) -> list[T]:
    """Await every case, in their order, and count each when it is done.

    Args:
        step: the name of its function.
        cases: the work on each.
        failed: returns why a case failed in this step; None if it did not.
    """

    async def count_when_done(case: Awaitable[T]) -> T:
        result = await case
        count_step(step, failed(result))
        return result

    return await asyncio.gather(*map(count_when_done, cases))


MINUTE, HOUR = 60, 3_600


def format_progress_line(progress: Progress, language: str) -> str:
    """Return one line of progress: evaluation, cases done, speed, time left, failures, tokens and cost.

    Unknown values are left out.
    """
    words = texts("progress", language)
    place = words["place"].format(number=progress.place[0], of=progress.place[1]) if progress.place else ""
    parts = [
        f"{place}{progress.tier} {progress.source}",
        words["done"].format(done=progress.done, all=progress.n_cases, percent=_percent_done(progress)),
    ]
    if progress.done < progress.n_cases and len(progress.steps) > 1:
        parts += [
            words[step].format(n=progress.counts[step])
            for step in progress.steps[:-1]
            if progress.counts[step] > progress.done
        ]
    if progress.replies < progress.calls:
        parts.append(words["calls"].format(done=progress.replies, all=progress.calls))
    if (speed := progress.per_second) is not None:
        parts.append(words["a second" if speed >= 1 else "a minute"].format(n=speed if speed >= 1 else MINUTE * speed))
    if (left_s := progress.left_s) is not None and progress.share < 1:
        parts.append(words["left"].format(time=format_duration(left_s)))
    if progress.failed:
        parts.append(words["failed"].format(n=progress.failed))
    if progress.tokens:
        parts.append(
            words["tokens"].format(n=progress.tokens) if progress.tokens < 10_000 else _thousands(progress, words)
        )
    if progress.cost_usd is not None:
        parts.append(f"${progress.cost_usd:.4f}" if progress.cost_usd < 1 else f"${progress.cost_usd:.2f}")
    return " · ".join(parts)


def format_duration(seconds: float) -> str:
    """Return hours, minutes and seconds as on a clock: 0:07, 12:30, 1:05:00."""
    total_s = round(seconds)
    hours, minutes, rest_s = total_s // HOUR, total_s % HOUR // MINUTE, total_s % MINUTE
    return f"{hours}:{minutes:02}:{rest_s:02}" if hours else f"{minutes}:{rest_s:02}"


def _percent_done(progress: Progress) -> int:
    return int(100 * progress.share)


def _thousands(progress: Progress, words: dict[str, str]) -> str:
    return words["thousands"].format(n=progress.tokens / 1_000)
