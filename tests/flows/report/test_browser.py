"""The report in Chromium, from a local file without network; one report is shared by all tests."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from tests.support.browser import LAYOUT_CHECK_SCRIPT, PATIENCE_MS, page_of
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from yarus.tasks.report.write import write_report

expect.set_options(timeout=PATIENCE_MS)
PLANTED = "</script><script>window.planted = 1</script><img src=x onerror='window.planted = 2'>"
RIGHT_TO_LEFT = "متى يبدأ التسجيل\u202eabc"
LONG = "слово " * 180_000
N_QUESTIONS = 120
WIDE = {"width": 1280, "height": 800}
INVENTED = "\U0001f600\u202e Справка до 31.02.2025 стоит 500 рублей <img src=x onerror='window.planted = 3'>."
FACTS = [
    {"kind": kind, "text": text, "start": start, "end": start + len(text)}
    for kind, text in (
        ("money", "500 рублей"),
        ("date", "31.02.2025"),
        ("code", "<img src=x onerror='window.planted = 3'>"),
    )
    for start in (INVENTED.index(text),)
] + [
    {"kind": "number", "text": "17", "start": 3, "end": 5},
    {"kind": "phone", "text": None, "start": None, "end": None},
]


class BrowserReport(NamedTuple):
    """The report and its evaluations."""

    path: Path
    before: str
    after: str


@pytest.fixture(scope="module")
def browser_report(engine: Engine, home: Path, tmp_path_factory: pytest.TempPathFactory) -> BrowserReport:
    """Write a report of two evaluations of tier 3 and one each of tiers 1 and 2; the file of tier 2 is missing."""
    folder = tmp_path_factory.mktemp("report")
    source = make_source_name()
    questions = [f"Как получить справку номер {i}?" for i in range(N_QUESTIONS)]
    questions[1], questions[2], questions[3] = f"Вопрос {PLANTED}", RIGHT_TO_LEFT, f"\x00\x07Звонок\x1b[31m {LONG}"
    failure = [None if i % 3 else "retrieval" for i in range(N_QUESTIONS)]
    reply = {"metric": "e2e_score", "repeat": 0, "reply": f'{{"reason": "{PLANTED}", "score": 1}}', "status": "ok"}
    columns = {
        "question": questions,
        "answer": [f"Справку {i} выдаёт деканат {PLANTED}" for i in range(N_QUESTIONS)],
        "unsupported_facts": [FACTS if i == 9 else [] for i in range(N_QUESTIONS)],
        "fact_precision": [0.25 if i == 9 else 1.0 for i in range(N_QUESTIONS)],
        "reference": ["Справку выдаёт деканат в течение трёх дней."] * N_QUESTIONS,
        "context": ["Деканат выдаёт справки три дня."] * N_QUESTIONS,
        "relevant": [["10", "11"]] * N_QUESTIONS,
        "retrieved": [["10"] if i % 3 else ["99"] for i in range(N_QUESTIONS)],
        "failure": failure,
        "judge_raw": [[reply]] * N_QUESTIONS,
        "judge_reasons": [[f"e2e_score: {PLANTED}"]] * N_QUESTIONS,
        "status": ["sut_error" if i == 7 else "ok" for i in range(N_QUESTIONS)],
        "reason": [PLANTED if i == 7 else None for i in range(N_QUESTIONS)],
        "e2e_score": [None if i == 7 else 0.2 + 0.4 * (i % 3 > 0) for i in range(N_QUESTIONS)],
        "latency_ms": [100.0 + i for i in range(N_QUESTIONS)],
    }
    columns["answer"][9] = INVENTED
    valid_values = {"statuses": {"ok": N_QUESTIONS - 1, "sut_error": 1}, "coverage": 0.99, "sut_label": f"v1 {PLANTED}"}
    valid_values |= {"resolved": {"failures": {"counts": {"retrieval": N_QUESTIONS // 3}, "fix_first": []}}}
    before = columns | {
        "answer": [f"Справку {i} выдаёт бухгалтерия." for i in range(N_QUESTIONS)],
        "e2e_score": [None if i == 7 else 0.2 + 0.1 * (i % 7 == 0) for i in range(N_QUESTIONS)],
    }
    older = write_evaluation_with_cases(engine, folder, source, before, tier="tier3", night=0, **valid_values)
    newer = write_evaluation_with_cases(engine, folder, source, columns, tier="tier3", night=1, **valid_values)
    rank_columns = {
        "hit_rate@1": [float(i % 3 > 0) for i in range(N_QUESTIONS)],
        "mrr": [1.0 if i % 3 else 0.1 for i in range(N_QUESTIONS)],
    }
    tier1 = write_evaluation_with_cases(
        engine, folder, source, rank_columns, tier="tier1", night=1, statuses={"ok": N_QUESTIONS}, coverage=1.0
    )
    faithfulness = {"faithfulness": [0.95] * N_QUESTIONS}
    tier2 = write_evaluation_with_cases(
        engine, folder, source, faithfulness, tier="tier2", night=1, statuses={"ok": N_QUESTIONS}, coverage=1.0
    )
    _remove_case_file(engine, tier2, folder / "lost.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        path = write_report(engine, [older, newer, tier1, tier2], folder / "Отчёт, первый.html", "ru").path
    return BrowserReport(path, older, newer)


def _remove_case_file(engine: Engine, evaluation: str, path: Path) -> None:
    from sqlalchemy import update

    from yarus.db import tables

    with engine.begin() as connection:
        connection.execute(
            update(tables.evaluation).where(tables.evaluation.c.id == evaluation).values(parquet=str(path))
        )


@pytest.fixture(scope="module")
def opened_report(browser: Browser, browser_report: BrowserReport) -> Iterator[Page]:
    """Open the report from a local file at 1280 pixels."""
    with page_of(browser, browser_report.path.as_uri(), viewport=WIDE) as page:
        yield page


@pytest.fixture
def page(opened_report: Page) -> Iterator[Page]:
    """Return the report in its initial state, for tests that change neither language nor theme."""
    go_to(opened_report, "#tier3/cases")
    expect(opened_report.locator("#tier3 [role=status]")).to_have_text(f"Найдено {N_QUESTIONS} из {N_QUESTIONS}")
    go_to(opened_report, "#overview")
    expect(opened_report.locator("#overview")).to_be_visible()
    yield opened_report
    assert opened_report.evaluate("window.planted") is None, "a planted script has run"


@pytest.fixture
def own_page(browser: Browser, browser_report: BrowserReport) -> Iterator[Page]:
    """Open the report for a test that changes language or theme."""
    with page_of(browser, browser_report.path.as_uri(), viewport=WIDE) as page:
        yield page
        assert page.evaluate("window.planted") is None, "a planted script has run"


def go_to(page: Page, address: str) -> None:
    page.evaluate("address => { location.hash = address }", address)


def test_overview_shows_weakest_tier_and_changes(page: Page) -> None:
    expect(page.locator("#overview h1 span[lang=ru]")).to_be_in_viewport()
    expect(page.locator("#overview h1")).to_contain_text("Слабее всего вся система: avg_e2e_score 0.466")
    statements = page.locator("#overview .statements")
    expect(statements).to_contain_text(re.compile(r"Стало лучше.*avg_e2e_score.*\+0\.2", re.DOTALL))
    expect(page.locator(".row.weakest")).to_contain_text("Уровень 3")
    expect(page.locator(".is-next a")).to_have_attribute("href", "#tier3")
    expect(page.locator("section.page:visible")).to_have_count(1)


def test_case_is_found_and_opened_with_its_details(page: Page) -> None:
    go_to(page, "#tier3")
    page.locator("#tier3 input[type=search]").fill("номер 42?")
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено 1 из {N_QUESTIONS}")
    page.locator("#tier3 .list td.q a").click()
    case = page.locator("dialog")
    expect(case.locator("h2")).to_have_text("Как получить справку номер 42?")
    for part in ("выдаёт деканат", "в течение трёх дней", "Деканат выдаёт справки три дня.", "e2e_score:"):
        expect(case).to_contain_text(part)
    expect(case.locator(".ranking")).to_contain_text("99")
    expect(case.locator(".missing")).to_contain_text("10, 11")
    case.locator("summary", has_text="Ответ как получен").click()
    expect(case.locator("pre")).to_contain_text(PLANTED)
    page.keyboard.press("Escape")
    expect(case).not_to_be_visible()
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено 1 из {N_QUESTIONS}")


def test_unsupported_facts_are_marked_and_listed(page: Page) -> None:
    go_to(page, "#tier3/cases?metric=fact_precision&max=0.9")
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено 1 из {N_QUESTIONS}")
    page.locator("#tier3 .list td.q a").click()
    case = page.locator("dialog")
    expect(case.locator(".block").first).to_contain_text("‹202e› Справка до 31.02.2025 стоит 500 рублей <img")
    marks = case.locator(".block mark")
    expect(marks).to_have_text(["31.02.2025", "500 рублей", FACTS[2]["text"]])
    expect(marks.first).to_have_attribute("title", "Этого нет ни в контексте, ни в вопросе: дата")
    expect(case.locator("ul.lost li")).to_have_text([re.compile(f"{a}.*{b}") for a, b in FACT_ITEMS])
    go_to(page, "#tier3/cases")
    page.locator("#tier3 .list td.q a").first.click()
    expect(case.locator("mark")).to_have_count(0)


FACT_ITEMS = (
    ("500 рублей", "сумма"),
    ("31.02.2025", "дата"),
    ("<img", "номер документа"),
    ("17", "число"),
    ("—", "телефон"),
)


def test_cases_are_filtered_sorted_and_linked(page: Page, browser_report: BrowserReport) -> None:
    go_to(page, "#tier3")
    failures = N_QUESTIONS // 3
    page.locator("#tier3 .bars a", has_text="нужное не найдено").click()
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено {failures} из {N_QUESTIONS}")
    go_to(page, "#tier3/cases?status=sut_error")
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено 1 из {N_QUESTIONS}")
    go_to(page, "#tier3/cases?metric=e2e_score&min=0.5&max=1")
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено {N_QUESTIONS - failures - 1} из {N_QUESTIONS}")
    head = page.locator("#tier3 .list th", has_text="latency_ms")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    expect(page.locator("#tier3 .list tbody tr").first).to_contain_text("219")
    assert "sort=latency_ms" in page.url


def test_comparison_shows_word_changes_of_answers(page: Page, browser_report: BrowserReport) -> None:
    go_to(page, "#tier3/compare")
    table = page.locator("#tier3 table.compare").first
    expect(table.locator("tr", has_text="avg_e2e_score")).to_contain_text("лучше")
    page.locator("#tier3 .lists button", has_text="починилось").click()
    page.locator("#tier3 .changed-cases a").first.click()
    case = page.locator("dialog")
    expect(case.locator("del").first).to_contain_text("бухгалтерия")
    expect(case.locator("ins").first).to_contain_text("деканат")
    page.keyboard.press("Escape")
    expect(case).not_to_be_visible()
    expect(page.locator(f'[data-page="{browser_report.before}"]')).to_have_count(1)


@pytest.mark.slow("browser: a page of its own")
def test_language_and_theme_can_be_switched(own_page: Page) -> None:
    background = own_page.evaluate("getComputedStyle(document.body).backgroundColor")
    own_page.locator("[data-choice=theme] [data-value=dark]").click()
    assert own_page.evaluate("getComputedStyle(document.body).backgroundColor") != background
    own_page.locator("[data-choice=lang] [data-value=en]").click()
    expect(own_page.locator("#overview h1 span[lang=en]")).to_be_visible()
    expect(own_page.locator("#overview h1 span[lang=ru]")).not_to_be_visible()
    go_to(own_page, "#tier3")
    expect(own_page.locator("#tier3 [role=status]")).to_have_text(f"{N_QUESTIONS} of {N_QUESTIONS} found")
    assert own_page.locator("html").get_attribute("lang") == "en"
    assert own_page.title().startswith("Report")


def test_hostile_texts_are_escaped(page: Page) -> None:
    go_to(page, "#tier3")
    expect(page.locator("#tier3 .list tbody tr").nth(1)).to_contain_text("</script><script>")
    expect(page.locator("#tier3 .list tbody tr").nth(2)).to_contain_text("‹202e›")
    expect(page.locator("#tier3 .list tbody tr").nth(3)).to_contain_text("␀␇Звонок␛[31m")
    page.locator("#tier3 .list td.q a").nth(3).click()
    case = page.locator("dialog")
    case.get_by_role("button", name=re.compile("Показать всё")).click()
    assert len(case.locator(".block").first.inner_text()) > 1_000_000


@pytest.mark.slow("browser: a page of its own")
def test_charts_are_drawn_when_visible(own_page: Page) -> None:
    go_to(own_page, "#tier3/charts")
    expect(own_page.locator("#tier3 .chart .main-svg").first).to_be_visible()
    before = own_page.locator("#tier3 .chart .bars path").first.evaluate("one => getComputedStyle(one).fill")
    own_page.locator("[data-choice=theme] [data-value=dark]").click()
    own_page.wait_for_function(
        "was => getComputedStyle(document.querySelector('#tier3 .chart .bars path')).fill !== was", arg=before
    )


def test_missing_case_file_is_reported_with_metrics(page: Page) -> None:
    go_to(page, "#tier2")
    expect(page.locator("#tier2 .says .problem")).to_contain_text("lost.parquet")
    expect(page.locator("#tier2 .cases .problem")).to_be_visible()
    expect(page.locator("#tier2 table.metrics").first).to_contain_text("0.950")


def test_link_opens_case_and_keyboard_navigates(browser: Browser, browser_report: BrowserReport) -> None:
    source = browser_report.after.split("-")[1]
    with page_of(browser, f"{browser_report.path.as_uri()}#tier3/case/{source}%3A5") as page:
        case = page.locator("dialog")
        expect(case.locator("h2")).to_have_text("Как получить справку номер 5?")
        next_button = case.get_by_role("button", name="Следующий")
        next_button.focus()
        page.keyboard.press("Enter")
        expect(case.locator("h2")).to_have_text("Как получить справку номер 6?")
        page.keyboard.press("Escape")
        expect(case).not_to_be_visible()
        page.locator("nav.tabs a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#overview")).to_be_visible()


def test_report_fits_telephone_width(browser: Browser, browser_report: BrowserReport) -> None:
    """Nothing is covered or cut off either; test_layout.py checks all pages."""
    faults: list[str] = []
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with page_of(browser, browser_report.path.as_uri(), viewport={"width": 390, "height": 844}) as page:
        for address in ("#overview", "#tier3", "#tier3/cases", "#trends", "#about"):
            go_to(page, address)
            expect(page.locator(f"section.page.open{address.partition('/')[0]} h1").first).to_be_visible()
            faults += [f"{address}: {fault}" for fault in page.evaluate(LAYOUT_CHECK_SCRIPT)]
            if page.evaluate(overflow):
                faults.append(f"{address} is wider")
    assert faults == []


@pytest.mark.slow("browser: a page of its own")
def test_print_shows_sections_without_controls(own_page: Page) -> None:
    own_page.emulate_media(media="print")
    expect(own_page.locator("#tier3 h1")).to_be_visible()
    expect(own_page.locator("#about h1")).to_be_visible()
    expect(own_page.locator("header.top")).not_to_be_visible()


def test_controls_have_accessible_names(page: Page) -> None:
    go_to(page, "#tier3")
    expect(page.locator("#tier3 .list table")).to_be_visible()
    nameless = """[...document.querySelectorAll("button, input, select, a[href], dialog")].filter((one) =>
        !(one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.textContent.trim()
          || one.closest("label")?.textContent.trim())).map((one) => one.outerHTML.slice(0, 200))"""
    assert page.evaluate(nameless) == []
