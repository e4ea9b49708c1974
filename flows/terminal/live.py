"""What a command says on stderr while it works: a line that changes, or lines where it is no terminal."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.status import Status
from rich.text import Text

from yarus.tasks.config.redaction import harmless, redact_urls
from yarus.tasks.config.secrets import keep_logs_clean
from yarus.tasks.config.settings import settings
from yarus.tasks.models.progress import line, shown

A_SECOND = 4
"""Times that the line is drawn."""
NEWS_S = 15.0
"""How long what was said last stands below the progress."""


@contextmanager
def saying(level: int) -> Iterator[None]:
    """Shows what the command is doing, for as long as it lasts.

    Args:
        level: what is said, as `logging` has it: from WARNING on there is no progress, at DEBUG every step and failure.
    """
    keep_logs_clean()
    log = logging.getLogger("yarus")
    before, console = log.level, Console(stderr=True, highlight=False)
    now = _Now() if sys.stderr.isatty() and level < logging.WARNING else None
    handler = _Say(console, now)
    log.addHandler(handler)
    log.setLevel(min(level, logging.INFO))  # Prefect's log of the run has all words, whatever the screen shows
    handler.setLevel(level)
    status = Status(now, console=console, refresh_per_second=A_SECOND) if now else None
    try:
        if status:
            status.start()
        yield
    finally:
        if status:
            status.stop()
        log.removeHandler(handler)
        log.setLevel(before)


class _Now:
    """How far the evaluation is, and what was said last; looked up each time that it is drawn, by Rich's own thread."""

    said, at = "", 0.0

    def say(self, message: str) -> None:
        self.said, self.at = message, time.monotonic()

    def __rich__(self) -> RenderableType:
        if (progress := shown()) is None:
            return Text(self.said)
        lines = [Text(harmless(line(progress, settings().language)))]
        if self.at > progress.began and time.monotonic() - self.at < NEWS_S:
            lines.append(Text(self.said, style="dim"))
        return Group(*lines)


class _Say(logging.Handler):
    """Hands what is logged to the line; warnings, and what was asked for in detail, stay on the screen."""

    def __init__(self, console: Console, now: _Now | None) -> None:
        super().__init__()
        self._console, self._now = console, now

    def emit(self, record: logging.LogRecord) -> None:
        message = redact_urls(record.getMessage())
        if self._now is None or record.levelno != logging.INFO:
            self._console.print(message, markup=False, soft_wrap=True)
        elif not hasattr(record, "progress"):  # which the line shows anyway
            self._now.say(message)
