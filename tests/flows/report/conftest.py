"""Browser for report tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.browser import open_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_chromium() as chromium_browser:
        yield chromium_browser
