"""Support of an answer in the report in Chromium: claims, nuggets and pages of an opened case."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from tests.support.browser import PATIENCE_MS, open_chromium, page_of
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from yarus.tasks.cases.text import CONTEXT_SEPARATOR, text_offsets
from yarus.tasks.report.write import write_report

expect.set_options(timeout=PATIENCE_MS)
pytestmark = pytest.mark.slow("browser: claims and their support")
HOSTILE = "<img src=x onerror='window.planted = 1'>"
INVENTED_SENTENCE = f"Приём закончился 12 января {HOSTILE}."
ANSWER = f"\U0001f600 Документы носят в деканат. {INVENTED_SENTENCE} Нужен паспорт."
CLAIMS = [
    {"of": subject, "claim": claim, "sentence": sentence, "supported_by": supported_by}
    for subject, claim, sentence, supported_by in (
        ("answer", "Носят в деканат", "\U0001f600 Документы носят в деканат.", ["passage_1", "reference", "page_1"]),
        ("answer", f"Приём закончился {HOSTILE}", INVENTED_SENTENCE, []),
        ("answer", "Закончился 12 января", INVENTED_SENTENCE, ["reference"]),
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

NUMBERED = "Да. Нет. Этаж 12.\n2. Да. Лёд тёплый."
PASSAGES = ["Да, это так.", " ", "Нет, это не так."]
MANY_CLAIMS = [
    {"of": "answer", "claim": claim, "sentence": sentence, "supported_by": supported_by}
    for claim, sentence, supported_by in (
        ("Да", "Да.", ["passage_1"]),
        ("Нет", "Нет.", ["passage_1"]),
        ("Второе", "2.", []),
        ("Снова да", "Да.", ["reference"]),
        ("Лёд тёплый", "Лёд тёплый.", ["page_1", *sorted(f"passage_{n}" for n in range(1, 31)), "reference"]),
        *((f"Ещё {n}", None, None) for n in range(5)),
    )
]


@pytest.fixture(scope="module")
def path(engine: Engine, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report with a complete case, one with claims checked against pages only, and one with many claims."""
    folder = tmp_path_factory.mktemp("support")
    start = ANSWER[1:].index("12 января") + 1
    columns = {
        "answer": [ANSWER, INVENTED_SENTENCE, NUMBERED],
        "context": ["Деканат.", "Деканат.", CONTEXT_SEPARATOR.join(PASSAGES)],
        "passage_starts": [[0], None, text_offsets(PASSAGES, CONTEXT_SEPARATOR.join(PASSAGES))],
        "claims": [CLAIMS, [CLAIMS[1]], MANY_CLAIMS],
        "nuggets": [NUGGETS, None, None],
        "citations": [PAGES, None, None],
        "unsupported_facts": [[{"kind": "date", "text": "12 января", "start": start, "end": start + 9}], [], []],
        "claim_faithfulness": [0.2, None, 0.6],
        "e2e_score": [0.5] * 3,
        "nugget_recall": [0.5, None, None],
    }
    name = write_evaluation_with_cases(
        engine, folder, make_source_name(), columns, tier="tier3", statuses={"ok": 3}, coverage=1.0
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        return write_report(engine, [name], folder / "support.html", "ru").path


@pytest.fixture(scope="module")
def page(path: Path) -> Iterator[Page]:
    with open_chromium() as browser, page_of(browser, path.as_uri(), viewport={"width": 390, "height": 800}) as opened:
        yield opened
        assert opened.evaluate("window.planted") is None, "a planted script has run"


EXPECTED_LISTS = (
    (
        ("✓", "эталон, фрагмент 1, страница 1"),
        ("✗", "ничем не"),
        ("✓", "эталон · в контексте нет"),
        ("?", "судья не сказал"),
        ("✗",),
    ),
    (("1", "подтверждает ответ"), ("2", "не подтверждает", "адрес из"), ("3", "нет в корпусе"), ("4", "не проверено")),
    (("✓", "Нужна справка", "фрагмент 12"),),
    (("✓", "обязательно", "есть"), ("✗", "обязательно", "нет"), ("½", "желательно", "отчасти"), ("?", "фото")),
)
"""Expected lists: claims of the answer, named pages, claims of the reference, nuggets."""
CUT_OFF = """
[...document.querySelectorAll('dialog ul.checked *')].filter((one) =>
  one.getBoundingClientRect().right > innerWidth || (one.clientWidth && one.scrollWidth > one.clientWidth + 1)).length
"""


def open_case(page: Page, n: int) -> None:
    page.evaluate("location.hash = '#tier3/cases'")
    page.locator("#tier3 .list td.q a").nth(n).click()


def test_unsupported_sentence_and_its_facts_are_marked(page: Page) -> None:
    open_case(page, 0)
    case = page.locator("dialog")
    expect(case.locator(".block").first).to_have_text(ANSWER)
    marked = case.locator(".block .invented")
    expect(marked).to_have_text([INVENTED_SENTENCE])
    expect(marked).to_have_attribute(
        "title", f"Ни один фрагмент этого не подтверждает: Приём закончился {HOSTILE}; Закончился 12 января"
    )
    expect(marked.locator("mark.lost")).to_have_text(["12 января"])
    expect(case.locator("p .invented")).to_have_text("Ни один фрагмент этого не подтверждает")


def test_lists_show_support_of_each_item(page: Page) -> None:
    open_case(page, 0)
    lists = page.locator("dialog ul.checked")
    expect(lists).to_have_count(len(EXPECTED_LISTS))
    for index, rows in enumerate(EXPECTED_LISTS):
        expect(lists.nth(index).locator("li")).to_have_count(len(rows))
        for number, parts in enumerate(rows):
            row = lists.nth(index).locator("li").nth(number)
            for part in parts:
                expect(row).to_contain_text(part)
    expect(page.locator("dialog ul.checked li.missed b")).to_have_text(["✗", "✓", "✗", "2", "3", "✗"])


def test_lists_fit_390_pixels(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    open_case(page, 0)
    expect(page.locator("dialog ul.checked").first).to_be_visible()
    page.wait_for_function(f"() => {CUT_OFF.strip()} === 0")  # the dialog slides in


def test_claims_without_checked_passages_mark_nothing(page: Page) -> None:
    open_case(page, 1)
    expect(page.locator("dialog .block").first).to_have_text(re.compile("Приём"))
    expect(page.locator("dialog .invented")).to_have_count(0)
    expect(page.locator("dialog ul.checked li")).to_have_count(1)


def test_repeated_sentence_is_marked_at_its_position(page: Page) -> None:
    open_case(page, 2)
    answer, context = (page.locator("dialog .block").nth(n) for n in (0, 1))
    expect(answer.locator(".invented")).to_have_text(["2.", "Да."])
    before = "node => node.previousSibling.textContent"
    assert answer.locator(".invented").first.evaluate(before).endswith("Этаж 12.\n")
    expect(context).to_have_text("фрагмент 1 Да, это так. фрагмент 2 Нет, это не так.")


@pytest.mark.parametrize("width", [390, 1280])
def test_long_list_opens_on_demand_and_fits(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    open_case(page, 2)
    summary = page.locator("dialog details.checked summary")
    expect(summary).to_have_text(f"Утверждения ответа: {len(MANY_CLAIMS)} ✗ 2")
    expect(page.locator("dialog ul.checked")).not_to_be_visible()
    summary.click()
    row = page.locator("dialog ul.checked li").nth(4)
    expect(row).to_contain_text(f"эталон, фрагмент {', '.join(map(str, range(1, 31)))}, страница 1")
    page.wait_for_function(f"() => {CUT_OFF.strip()} === 0")
    assert row.locator("span").bounding_box()["width"] > width / 5  # type: ignore[index]
