"""Chromium for tests of pages: the installed browser, with its network off."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM_COMMANDS = ("chromium", "chromium-browser", "google-chrome")
LAYOUT_CHECK_SCRIPT = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")
"""A script that lists what cannot be read on a page."""
PATIENCE_MS = 60_000
"""Longest wait for anything, on a slow and busy machine."""


def find_chromium() -> str:
    """Return the path of an installed Chromium; skip the test if there is none."""
    path = next((command_path for name in CHROMIUM_COMMANDS if (command_path := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"needs Chromium ({', '.join(CHROMIUM_COMMANDS)}): apt-get install chromium")
    return path


@contextmanager
def open_chromium(*arguments: str) -> Iterator[Browser]:
    """Open a headless Chromium, for the tests of one module at most.

    While it runs, this thread has an event loop running, in which no test can call asyncio.run.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu", *arguments]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Browser, url: str, *, offline: bool = True, **context: Any) -> Iterator[Page]:
    """Open a page at an address; the test fails if it logs a complaint or requests the network."""
    page_context = browser.new_context(offline=offline, **context)
    page_context.set_default_timeout(PATIENCE_MS)
    page = page_context.new_page()
    complaints: list[str] = []
    page.on("console", lambda entry: complaints.append(entry.text) if entry.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    if offline:
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:", "blob:")) else complaints.append(request.url)
            ),
        )
    try:
        page.goto(url)
        yield page
        assert complaints == []
    finally:
        page_context.close()
