"""What supports an answer, in the report: claims, nuggets and named pages of an opened case, in Chromium."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from tasks.report.write import report
from tests.support.browser import PATIENCE_MS, chromium, page_of
from tests.support.evaluation_history import source_name, with_cases

expect.set_options(timeout=PATIENCE_MS)
HOSTILE = "<img src=x onerror='window.planted = 1'>"
MADE_UP = f"Приём закончился 12 января {HOSTILE}."
ANSWER = f"\U0001f600 Документы носят в деканат. {MADE_UP} Нужен паспорт."
CLAIMS = [
    {"of": of, "claim": claim, "sentence": sentence, "supported_by": by}
    for of, claim, sentence, by in (
        ("answer", "Носят в деканат", "\U0001f600 Документы носят в деканат.", ["passage_1", "reference", "page_1"]),
        ("answer", f"Приём закончился {HOSTILE}", MADE_UP, []),
        ("answer", "Закончился 12 января", MADE_UP, ["reference"]),
        ("answer", "Нужен паспорт", "Нужен паспорт.", None),
        ("answer", "Ниоткуда", None, []),
        ("reference", "Нужна справка", "Нужна справка.", ["passage_12"]),
    )
]
NUGGETS = [
    {"nugget": f"паспорт {HOSTILE}", "vital": True, "support": 1.0},
    {"nugget": "справка", "vital": True, "support": 0.0},
    {"nugget": "копия", "vital": False, "support": 0.5},
    {"nugget": "фото", "vital": False, "support": None},
]
PAGES = [
    {"page": f"https://wiki.example/{HOSTILE}", "in_corpus": True, "retrieved": True, "supports": True},
    {"page": "https://wiki.example/2", "in_corpus": True, "retrieved": False, "supports": False},
    {"page": "https://wiki.example/3", "in_corpus": False, "retrieved": True, "supports": None},
    {"page": "https://wiki.example/4", "in_corpus": True, "retrieved": True, "supports": None},
]


@pytest.fixture(scope="module")
def path(engine: Engine, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One case with everything, one whose claims were held against pages only."""
    folder = tmp_path_factory.mktemp("support")
    start = ANSWER[1:].index("12 января") + 1
    columns = {
        "answer": [ANSWER, MADE_UP],
        "context": ["Деканат."] * 2,
        "claims": [CLAIMS, [CLAIMS[1]]],
        "nuggets": [NUGGETS, None],
        "citations": [PAGES, None],
        "unsupported_facts": [[{"kind": "date", "text": "12 января", "start": start, "end": start + 9}], []],
        "claim_faithfulness": [0.2, None],
        "e2e_score": [0.5, 0.5],
        "nugget_recall": [0.5, None],
    }
    name = with_cases(engine, folder, source_name(), columns, tier="tier3", statuses={"ok": 2}, coverage=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        return report(engine, [name], folder / "support.html", "ru")


@pytest.fixture(scope="module")
def page(path: Path) -> Iterator[Page]:
    with chromium() as browser, page_of(browser, path.as_uri(), viewport={"width": 390, "height": 800}) as opened:
        yield opened
        assert opened.evaluate("window.planted") is None, "a planted script has run"


TOLD = (
    (("✓", "эталон", "фрагмент 1"), ("✗", "ничем не"), ("✓", "эталон"), ("?", "судья не сказал"), ("✗",)),
    (("1", "подтверждает ответ"), ("2", "не подтверждает", "адрес из"), ("3", "нет в корпусе"), ("4", "не проверено")),
    (("✓", "Нужна справка", "фрагмент 12"),),
    (("✓", "обязательно", "есть"), ("✗", "обязательно", "нет"), ("½", "желательно", "отчасти"), ("?", "фото")),
)
"""What stands in the lists: claims of the answer, named pages, claims of the reference, nuggets."""
CUT_OFF = """
[...document.querySelectorAll('dialog ul.checked *')].filter((one) =>
  one.getBoundingClientRect().right > innerWidth || (one.clientWidth && one.scrollWidth > one.clientWidth + 1)).length
"""


def opened(page: Page, n: int) -> None:
    page.evaluate("location.hash = '#tier3/cases'")
    page.locator("#tier3 .list td.q a").nth(n).click()


def test_the_sentence_that_no_passage_supports_is_marked_and_its_facts_in_it(page: Page) -> None:
    opened(page, 0)
    case = page.locator("dialog")
    expect(case.locator(".block").first).to_have_text(ANSWER)
    marked = case.locator(".block .invented")
    expect(marked).to_have_text([MADE_UP])
    expect(marked).to_have_attribute(
        "title", f"Ни один фрагмент этого не подтверждает: Приём закончился {HOSTILE}; Закончился 12 января"
    )
    expect(marked.locator("mark.lost")).to_have_text(["12 января"])


def test_everything_is_listed_with_what_supports_it(page: Page) -> None:
    opened(page, 0)
    lists = page.locator("dialog ul.checked")
    expect(lists).to_have_count(len(TOLD))
    for place, rows in enumerate(TOLD):
        expect(lists.nth(place).locator("li")).to_have_count(len(rows))
        for number, parts in enumerate(rows):
            row = lists.nth(place).locator("li").nth(number)
            for part in parts:
                expect(row).to_contain_text(part)
    expect(page.locator("dialog ul.checked li.missed b")).to_have_text(["✗", "✓", "✗", "2", "3", "✗"])


def test_nothing_is_cut_off_at_390_pixels(page: Page) -> None:
    opened(page, 0)
    expect(page.locator("dialog ul.checked").first).to_be_visible()
    page.wait_for_function(f"() => {CUT_OFF.strip()} === 0")  # the dialog slides in


def test_claims_that_no_passage_was_held_against_mark_nothing(page: Page) -> None:
    opened(page, 1)
    expect(page.locator("dialog .block").first).to_have_text(re.compile("Приём"))
    expect(page.locator("dialog .invented")).to_have_count(0)
    expect(page.locator("dialog ul.checked li")).to_have_count(1)
