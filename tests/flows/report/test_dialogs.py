"""Dialogs in the report in Chromium: the turn of a question, and the history before it."""

from pathlib import Path

import pytest
from playwright.sync_api import expect
from sqlalchemy import Engine

from tests.support.browser import PATIENCE_MS, open_chromium, page_of
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from yarus.tasks.report.write import write_report

expect.set_options(timeout=PATIENCE_MS)
HOSTILE = "<img src=x onerror='window.planted = 1'>"
HISTORY = [
    {"role": "user", "content": f"Когда пересдача {HOSTILE}?"},
    {"role": "assistant", "content": "С 12 по 20 января."},
    {"role": "user", "content": "А где?"},
]


@pytest.mark.slow("browser: an evaluation with dialogs")
def test_case_shows_turn_and_history(
    engine: Engine, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"answer": ["Да."] * 3, "dialog": ["d", "d", None], "turn": [1, 3, None], "history": [None, HISTORY, None]}
    values |= {"e2e_score": [0.5] * 3, "question": ["Когда?", "А кто?", "А кто?"]}
    name = write_evaluation_with_cases(
        engine, tmp_path, make_source_name(), values, tier="tier3", statuses={"ok": 3}, coverage=1.0
    )
    monkeypatch.setenv("YARUS_HOME", str(home))
    path = write_report(engine, [name], tmp_path / "dialogs.html", "ru").path
    with open_chromium() as browser, page_of(browser, path.as_uri()) as page:
        page.evaluate("location.hash = '#tier3/cases'")
        cells = page.locator("#tier3 .list td.q")
        expect(cells).to_have_count(3)  # a follow-up question is a separate case, even with equal words
        expect(page.locator("#tier3 .list td.q small")).to_have_text([" вопрос диалога № 3"])
        cells.nth(1).locator("a").click()
        history = page.locator("dialog details", has_text="Реплик диалога, которые система получила до вопроса: 3")
        history.locator("summary").click()
        expect(history.locator(".block")).to_have_text([message["content"] for message in HISTORY])
        expect(history.locator("p.soft")).to_have_text(["Пользователь", "Система", "Пользователь"])
        assert page.evaluate("window.planted") is None, "a planted script has run"
