"""The report as people use it: in Chromium, from the disk, with the network off. One report is made for all tests."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from tests.support.browser import FAULTS, PATIENCE_MS, page_of
from tests.support.evaluation_history import source_name, with_cases
from yarus.tasks.report.write import report

expect.set_options(timeout=PATIENCE_MS)
PLANTED = "</script><script>window.planted = 1</script><img src=x onerror='window.planted = 2'>"
RIGHT_TO_LEFT = "متى يبدأ التسجيل\u202eabc"
LONG = "слово " * 180_000
N = 120
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


class Shown(NamedTuple):
    """The report, and what it is about."""

    path: Path
    before: str
    after: str


@pytest.fixture(scope="module")
def shown(engine: Engine, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Two nights of tier 3 and one each of tiers 1 and 2; the file of tier 2 is gone."""
    folder = tmp_path_factory.mktemp("report")
    source = source_name()
    questions = [f"Как получить справку номер {i}?" for i in range(N)]
    questions[1], questions[2], questions[3] = f"Вопрос {PLANTED}", RIGHT_TO_LEFT, f"\x00\x07Звонок\x1b[31m {LONG}"
    failure = [None if i % 3 else "retrieval" for i in range(N)]
    reply = {"metric": "e2e_score", "repeat": 0, "reply": f'{{"reason": "{PLANTED}", "score": 1}}', "status": "ok"}
    columns = {
        "question": questions,
        "answer": [f"Справку {i} выдаёт деканат {PLANTED}" for i in range(N)],
        "unsupported_facts": [FACTS if i == 9 else [] for i in range(N)],
        "fact_precision": [0.25 if i == 9 else 1.0 for i in range(N)],
        "reference": ["Справку выдаёт деканат в течение трёх дней."] * N,
        "context": ["Деканат выдаёт справки три дня."] * N,
        "relevant": [["10", "11"]] * N,
        "retrieved": [["10"] if i % 3 else ["99"] for i in range(N)],
        "failure": failure,
        "judge_raw": [[reply]] * N,
        "judge_reasons": [[f"e2e_score: {PLANTED}"]] * N,
        "status": ["sut_error" if i == 7 else "ok" for i in range(N)],
        "reason": [PLANTED if i == 7 else None for i in range(N)],
        "e2e_score": [None if i == 7 else 0.2 + 0.4 * (i % 3 > 0) for i in range(N)],
        "latency_ms": [100.0 + i for i in range(N)],
    }
    columns["answer"][9] = INVENTED
    sound = {"statuses": {"ok": N - 1, "sut_error": 1}, "coverage": 0.99, "sut_label": f"v1 {PLANTED}"}
    sound |= {"resolved": {"failures": {"counts": {"retrieval": N // 3}, "fix_first": []}}}
    before = columns | {
        "answer": [f"Справку {i} выдаёт бухгалтерия." for i in range(N)],
        "e2e_score": [None if i == 7 else 0.2 + 0.1 * (i % 7 == 0) for i in range(N)],
    }
    older = with_cases(engine, folder, source, before, tier="tier3", night=0, **sound)
    newer = with_cases(engine, folder, source, columns, tier="tier3", night=1, **sound)
    ranks = {"hit_rate@1": [float(i % 3 > 0) for i in range(N)], "mrr": [1.0 if i % 3 else 0.1 for i in range(N)]}
    first = with_cases(engine, folder, source, ranks, tier="tier1", night=1, statuses={"ok": N}, coverage=1.0)
    faithful = {"faithfulness": [0.95] * N}
    gone = with_cases(engine, folder, source, faithful, tier="tier2", night=1, statuses={"ok": N}, coverage=1.0)
    _lose(engine, gone, folder / "lost.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        path = report(engine, [older, newer, first, gone], folder / "Отчёт, первый.html", "ru")
    return Shown(path, older, newer)


def _lose(engine: Engine, evaluation: str, path: Path) -> None:
    from sqlalchemy import update

    from yarus.db import tables

    with engine.begin() as connection:
        connection.execute(
            update(tables.evaluation).where(tables.evaluation.c.id == evaluation).values(parquet=str(path))
        )


@pytest.fixture(scope="module")
def opened(browser: Browser, shown: Shown) -> Iterator[Page]:
    """The report, opened from the disk at 1280 pixels."""
    with page_of(browser, shown.path.as_uri(), viewport=WIDE) as page:
        yield page


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    """The same as it opens, with nothing chosen: for tests that change neither its language nor its looks."""
    go(opened, "#tier3/cases")
    expect(opened.locator("#tier3 [role=status]")).to_have_text(f"Найдено {N} из {N}")
    go(opened, "#overview")
    expect(opened.locator("#overview")).to_be_visible()
    yield opened
    assert opened.evaluate("window.planted") is None, "a planted script has run"


@pytest.fixture
def own_page(browser: Browser, shown: Shown) -> Iterator[Page]:
    """Opened anew for a test that changes its language or looks."""
    with page_of(browser, shown.path.as_uri(), viewport=WIDE) as page:
        yield page
        assert page.evaluate("window.planted") is None, "a planted script has run"


def go(page: Page, address: str) -> None:
    page.evaluate("address => { location.hash = address }", address)


def test_the_first_screen_says_which_tier_is_the_weakest_and_what_changed(page: Page) -> None:
    expect(page.locator("#overview h1 span[lang=ru]")).to_be_in_viewport()
    expect(page.locator("#overview h1")).to_contain_text("Слабее всего вся система: полезность ответа 0.466")
    said = page.locator("#overview .statements")
    expect(said).to_contain_text(re.compile(r"Стало лучше.*avg_e2e_score.*\+0\.2", re.DOTALL))
    expect(page.locator(".row.weakest")).to_contain_text("Уровень 3")
    expect(page.locator(".is-next a")).to_have_attribute("href", "#tier3")
    expect(page.locator("section.page:visible")).to_have_count(1)


def test_a_case_is_searched_and_opened_with_everything_in_it(page: Page) -> None:
    go(page, "#tier3")
    page.locator("#tier3 input[type=search]").fill("номер 42?")
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено 1 из {N}")
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
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено 1 из {N}")


def test_unsupported_facts_are_marked_where_they_stand_and_listed(page: Page) -> None:
    go(page, "#tier3/cases?metric=fact_precision&max=0.9")
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено 1 из {N}")
    page.locator("#tier3 .list td.q a").click()
    case = page.locator("dialog")
    expect(case.locator(".block").first).to_contain_text("‹202e› Справка до 31.02.2025 стоит 500 рублей <img")
    marks = case.locator(".block mark")
    expect(marks).to_have_text(["31.02.2025", "500 рублей", FACTS[2]["text"]])
    expect(marks.first).to_have_attribute("title", "Этого нет ни в контексте, ни в вопросе: дата")
    expect(case.locator("ul.lost li")).to_have_text([re.compile(f"{a}.*{b}") for a, b in LISTED])
    go(page, "#tier3/cases")
    page.locator("#tier3 .list td.q a").first.click()
    expect(case.locator("mark")).to_have_count(0)


LISTED = (
    ("500 рублей", "сумма"),
    ("31.02.2025", "дата"),
    ("<img", "номер документа"),
    ("17", "число"),
    ("—", "телефон"),
)


def test_failures_are_filtered_sorted_and_linked_to(page: Page, shown: Shown) -> None:
    go(page, "#tier3")
    failures = N // 3
    page.locator("#tier3 .bars a", has_text="нужное не найдено").click()
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено {failures} из {N}")
    go(page, "#tier3/cases?status=sut_error")
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено 1 из {N}")
    go(page, "#tier3/cases?metric=e2e_score&min=0.5&max=1")
    expect(page.locator("#tier3 [role=status]")).to_have_text(f"Найдено {N - failures - 1} из {N}")
    head = page.locator("#tier3 .list th", has_text="latency_ms")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    expect(page.locator("#tier3 .list tbody tr").first).to_contain_text("219")
    assert "sort=latency_ms" in page.url


def test_two_evaluations_are_compared_down_to_the_words_of_an_answer(page: Page, shown: Shown) -> None:
    go(page, "#tier3/compare")
    table = page.locator("#tier3 table.compare").first
    expect(table.locator("tr", has_text="avg_e2e_score")).to_contain_text("лучше")
    page.locator("#tier3 .lists button", has_text="починилось").click()
    page.locator("#tier3 .changed-cases a").first.click()
    case = page.locator("dialog")
    expect(case.locator("del").first).to_contain_text("бухгалтерия")
    expect(case.locator("ins").first).to_contain_text("деканат")
    page.keyboard.press("Escape")
    expect(case).not_to_be_visible()
    expect(page.locator(f'[data-page="{shown.before}"]')).to_have_count(1)


@pytest.mark.slow("browser: a page of its own")
def test_language_and_theme_are_switched(own_page: Page) -> None:
    background = own_page.evaluate("getComputedStyle(document.body).backgroundColor")
    own_page.locator("[data-choice=theme] [data-value=dark]").click()
    assert own_page.evaluate("getComputedStyle(document.body).backgroundColor") != background
    own_page.locator("[data-choice=lang] [data-value=en]").click()
    expect(own_page.locator("#overview h1 span[lang=en]")).to_be_visible()
    expect(own_page.locator("#overview h1 span[lang=ru]")).not_to_be_visible()
    go(own_page, "#tier3")
    expect(own_page.locator("#tier3 [role=status]")).to_have_text(f"{N} of {N} found")
    assert own_page.locator("html").get_attribute("lang") == "en"
    assert own_page.title().startswith("Report")


def test_hostile_texts_are_shown_as_texts(page: Page) -> None:
    go(page, "#tier3")
    expect(page.locator("#tier3 .list tbody tr").nth(1)).to_contain_text("</script><script>")
    expect(page.locator("#tier3 .list tbody tr").nth(2)).to_contain_text("‹202e›")
    expect(page.locator("#tier3 .list tbody tr").nth(3)).to_contain_text("␀␇Звонок␛[31m")
    page.locator("#tier3 .list td.q a").nth(3).click()
    case = page.locator("dialog")
    case.get_by_role("button", name=re.compile("Показать всё")).click()
    assert len(case.locator(".block").first.inner_text()) > 1_000_000


@pytest.mark.slow("browser: a page of its own")
def test_charts_are_drawn_when_they_come_into_view(own_page: Page) -> None:
    go(own_page, "#tier3/charts")
    expect(own_page.locator("#tier3 .chart .main-svg").first).to_be_visible()
    before = own_page.locator("#tier3 .chart .bars path").first.evaluate("one => getComputedStyle(one).fill")
    own_page.locator("[data-choice=theme] [data-value=dark]").click()
    own_page.wait_for_function(
        "was => getComputedStyle(document.querySelector('#tier3 .chart .bars path')).fill !== was", arg=before
    )


def test_a_lost_file_is_said_in_its_place_and_the_rest_is_shown(page: Page) -> None:
    go(page, "#tier2")
    expect(page.locator("#tier2 .says .problem")).to_contain_text("lost.parquet")
    expect(page.locator("#tier2 .cases .problem")).to_be_visible()
    expect(page.locator("#tier2 table.metrics").first).to_contain_text("0.950")


def test_a_link_opens_its_case_and_the_keyboard_suffices(browser: Browser, shown: Shown) -> None:
    source = shown.after.split("-")[1]
    with page_of(browser, f"{shown.path.as_uri()}#tier3/case/{source}%3A5") as page:
        case = page.locator("dialog")
        expect(case.locator("h2")).to_have_text("Как получить справку номер 5?")
        later = case.get_by_role("button", name="Следующий")
        later.focus()
        page.keyboard.press("Enter")
        expect(case.locator("h2")).to_have_text("Как получить справку номер 6?")
        page.keyboard.press("Escape")
        expect(case).not_to_be_visible()
        page.locator("nav.tabs a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#overview")).to_be_visible()


def test_a_telephone_shows_it_without_scrolling_sideways(browser: Browser, shown: Shown) -> None:
    """Nor does anything lie under something else there, or is cut off: of every page, see test_layout.py."""
    found: list[str] = []
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with page_of(browser, shown.path.as_uri(), viewport={"width": 390, "height": 844}) as page:
        for address in ("#overview", "#tier3", "#tier3/cases", "#trends", "#about"):
            go(page, address)
            expect(page.locator(f"section.page.open{address.partition('/')[0]} h1").first).to_be_visible()
            found += [f"{address}: {fault}" for fault in page.evaluate(FAULTS)]
            if page.evaluate(wider):
                found.append(f"{address} is wider")
    assert found == []


@pytest.mark.slow("browser: a page of its own")
def test_paper_shows_every_section_and_no_controls(own_page: Page) -> None:
    own_page.emulate_media(media="print")
    expect(own_page.locator("#tier3 h1")).to_be_visible()
    expect(own_page.locator("#about h1")).to_be_visible()
    expect(own_page.locator("header.top")).not_to_be_visible()


def test_every_control_has_a_name(page: Page) -> None:
    go(page, "#tier3")
    expect(page.locator("#tier3 .list table")).to_be_visible()
    nameless = """[...document.querySelectorAll("button, input, select, a[href], dialog")].filter((one) =>
        !(one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.textContent.trim()
          || one.closest("label")?.textContent.trim())).map((one) => one.outerHTML.slice(0, 200))"""
    assert page.evaluate(nameless) == []
