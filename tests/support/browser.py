"""Chromium for tests of pages: the installed one, with its network off."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FAULTS = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")
"""A script: what cannot be read on a page."""
PATIENCE_MS = 60_000
"""Longest wait for anything, on a slow and busy machine."""


def executable() -> str:
    """The path of an installed Chromium; the test is skipped where there is none."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"needs Chromium ({', '.join(NAMES)}): apt-get install chromium")
    return path


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """A headless Chromium, for the tests of one module at most.

    While it runs, this thread has an event loop running, in which no test can call asyncio.run.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(), args=["--no-sandbox", "--disable-gpu", *arguments]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Browser, url: str, *, offline: bool = True, **context: Any) -> Iterator[Page]:
    """A page at an address; whatever it complains of, and whatever it asks the network for, fails the test."""
    opened = browser.new_context(offline=offline, **context)
    opened.set_default_timeout(PATIENCE_MS)
    page = opened.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    if offline:
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else complaints.append(asked.url),
        )
    try:
        page.goto(url)
        yield page
        assert complaints == []
    finally:
        opened.close()
