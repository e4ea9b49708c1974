"""Show on stderr what a command is doing: a line that changes, or plain lines if stderr is not a terminal."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.status import Status
from rich.text import Text

from yarus.tasks.config.redaction import escape_control_characters, redact_urls
from yarus.tasks.config.secrets import install_log_redaction
from yarus.tasks.config.settings import get_settings
from yarus.tasks.models.progress import format_progress_line, get_current_progress

REFRESHES_PER_SECOND = 4
"""How often the line is drawn."""
NEWS_S = 15.0
"""Seconds for which the last message is shown below the progress."""


@contextmanager
def show_progress(level: int) -> Iterator[None]:
    """Show what the command is doing, as long as the context lasts.

    Args:
        level: log level: from WARNING on no progress is shown, at DEBUG every step and failure.
    """
    install_log_redaction()
    log = logging.getLogger("yarus")
    previous_level, console = log.level, Console(stderr=True, highlight=False)
    progress_line = _ProgressLine() if sys.stderr.isatty() and level < logging.WARNING else None
    handler = _ProgressHandler(console, progress_line)
    log.addHandler(handler)
    log.setLevel(min(level, logging.INFO))  # Prefect's log of the run gets all messages, whatever the screen shows
    handler.setLevel(level)
    status = Status(progress_line, console=console, refresh_per_second=REFRESHES_PER_SECOND) if progress_line else None
    try:
        if status:
            status.start()
        yield
    finally:
        if status:
            status.stop()
        log.removeHandler(handler)
        log.setLevel(previous_level)


class _ProgressLine:
    """Progress of the evaluation, and the last message; Rich's own thread draws it."""

    message, message_time = "", 0.0

    def show_message(self, message: str) -> None:
        self.message, self.message_time = message, time.monotonic()

    def __rich__(self) -> RenderableType:
        if (progress := get_current_progress()) is None:
            return Text(self.message)
        lines = [Text(escape_control_characters(format_progress_line(progress, get_settings().language)))]
        if self.message_time > progress.began and time.monotonic() - self.message_time < NEWS_S:
            lines.append(Text(self.message, style="dim"))
        return Group(*lines)


class _ProgressHandler(logging.Handler):
    """Hand log records to the progress line; warnings and details stay on the screen."""

    def __init__(self, console: Console, progress_line: _ProgressLine | None) -> None:
        super().__init__()
        self._console, self._progress_line = console, progress_line

    def emit(self, record: logging.LogRecord) -> None:
        message = redact_urls(record.getMessage())
        if self._progress_line is None or record.levelno != logging.INFO:
            self._console.print(message, markup=False, soft_wrap=True)
        elif not hasattr(record, "progress"):  # the line shows progress anyway
            self._progress_line.show_message(message)
