"""Nothing that a reader needs lies under something else, or is cut off: every page, in the fonts that people have."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import chromium, page_of
from tests.support.command_line import CommandLine, Document

FAULTS = (Path(__file__).parents[2] / "support" / "layout.js").read_text(encoding="utf-8")
FONTS = ("DejaVu Sans", "Liberation Sans", "system-ui")
"""The widest of all that people have, one as wide as Arial (Segoe lies between the two), and the machine's own."""
WIDTHS = (390, 768, 1280, 1920)
PAPER = 720
"""Pixels of A4 between its margins."""
PUT_ON = """font => {
    document.getElementById("put-on")?.remove();
    const style = document.createElement("style");
    style.id = "put-on";
    style.textContent = `body, .chart text { font-family: "${font}" !important }`;
    document.head.append(style);
}"""
OPEN_ALL = "for (const one of document.querySelectorAll('section.page.open details')) one.open = true"
CHARTS = "[...document.querySelectorAll('section.page.open .chart')].map((one) => one.dataset.figure)"
DRAWN = """async () => {
    for (const chart of document.querySelectorAll("section.page.open .chart")) {
        chart.scrollIntoView();
        while (!chart.querySelector(".main-svg")) await new Promise((done) => setTimeout(done, 20));
    }
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    scrollTo(0, 0);
}"""


@pytest.fixture(scope="module")
def written(yarus: CommandLine, night: dict[str, Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a whole night with an evaluation to compare, a sweep, probes and the corpus."""
    other = yarus("run", "tier1", "--retriever", "fulltext", "--json").json["evaluation_id"]
    yarus("sweep", "--tier", "tier1", "--retrievers", "dense,fulltext", "--limit", "40", "--json")
    yarus("robustness", "--tiers", "tier1", "--kinds", "lower,typos", "--limit", "40", "--json")
    path = tmp_path_factory.mktemp("layout") / "report.html"
    yarus("report", *(one["evaluation_id"] for one in night.values()), other, "--out", str(path))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def faults_of(page: Page, place: str) -> list[str]:
    """What is wrong on the page that is open, with everything on it unfolded and drawn."""
    page.evaluate(OPEN_ALL)
    page.evaluate(DRAWN)
    return [f"{place}: {fault}" for fault in page.evaluate(FAULTS)]


def pages_of(page: Page) -> list[str]:
    found: list[str] = page.evaluate("[...document.querySelectorAll('section.page')].map((one) => one.dataset.page)")
    return found


@pytest.mark.parametrize(("theme", "font"), [("light", FONTS[0]), ("dark", FONTS[1])])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_can_be_read(browser: Browser, written: Path, width: int, theme: str, font: str) -> None:
    found: list[str] = []
    with page_of(browser, written.as_uri(), viewport={"width": width, "height": 900}) as page:
        page.locator(f"[data-choice=theme] [data-value={theme}]").click()
        page.evaluate(PUT_ON, font)
        for language in ("ru", "en"):
            page.locator(f"[data-choice=lang] [data-value={language}]").click()
            for name in pages_of(page):
                page.evaluate("name => { location.hash = name }", name)
                page.locator(f'section.page.open[data-page="{name}"]').wait_for()
                found += faults_of(page, f"{name}, {language}")
    assert found == []


@pytest.mark.parametrize("language", ["ru", "en"])
def test_every_page_can_be_read_on_paper(browser: Browser, written: Path, language: str) -> None:
    with page_of(browser, written.as_uri(), viewport={"width": 1280, "height": 1000}) as page:
        page.locator(f"[data-choice=lang] [data-value={language}]").click()
        page.evaluate(PUT_ON, FONTS[0])
        for name in pages_of(page):
            page.evaluate("name => { location.hash = name }", name)
            page.locator(f'section.page.open[data-page="{name}"]').wait_for()
            page.evaluate(DRAWN)
        page.emulate_media(media="print")
        page.set_viewport_size({"width": PAPER, "height": 1000})
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.evaluate("() => new Promise((done) => setTimeout(done, 500))")
        assert page.evaluate(FAULTS) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_every_case_can_be_read(browser: Browser, written: Path, width: int) -> None:
    found: list[str] = []
    still = {"reduced_motion": "reduce", "viewport": {"width": width, "height": 900}}
    with page_of(browser, written.as_uri(), **still) as page:
        page.evaluate(PUT_ON, FONTS[0])
        for language in ("ru", "en"):
            page.locator(f"[data-choice=lang] [data-value={language}]").click()
            for name in (name for name in pages_of(page) if page.locator(f'[data-page="{name}"] .list').count()):
                page.evaluate("name => { location.hash = `${name}/cases` }", name)
                page.locator(f'[data-page="{name}"] .list td.q a').first.click()
                page.locator("dialog h2").wait_for()
                found += [f"{name}, {language}: {fault}" for fault in page.evaluate(FAULTS)]
                page.keyboard.press("Escape")
                page.locator("dialog").wait_for(state="hidden")
    assert found == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_that_grows_in_a_window_that_does_not_is_read(
    browser: Browser, written: Path, home: Path, width: int
) -> None:
    with page_of(browser, (home / "reports" / "index.html").as_uri(), viewport={"width": width, "height": 900}) as page:
        page.evaluate(
            "() => { document.querySelector('tbody tr').cells[3].textContent = 'a_source_of_a_long_name'.repeat(12); }"
        )
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.evaluate(FAULTS) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_index_can_be_read(browser: Browser, written: Path, home: Path, width: int) -> None:
    with page_of(browser, (home / "reports" / "index.html").as_uri(), viewport={"width": width, "height": 900}) as page:
        for font in FONTS:
            page.evaluate(PUT_ON, font)
            for language in ("ru", "en"):
                page.locator(f"[data-choice=lang] [data-value={language}]").click()
                page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                assert page.evaluate(FAULTS) == [], f"{language}, {font}"


@pytest.mark.parametrize("language", ["ru", "en"])
def test_why_something_was_not_measured_is_said_in_the_language_of_the_page(
    browser: Browser, written: Path, language: str
) -> None:
    with page_of(browser, written.as_uri()) as page:
        page.locator(f"[data-choice=lang] [data-value={language}]").click()
        page.evaluate("location.hash = 'tier1'")
        page.locator("section.page.open[data-page=tier1]").wait_for()
        page.evaluate(OPEN_ALL)
        said = page.locator("section.page.open .reasons .text").all_inner_texts()
        page.evaluate("location.hash = 'tier1/cases?status=unlabelled'")
        page.locator("[data-page=tier1] .list td.q a").first.click()
        said.append(page.locator("dialog .problem").inner_text())
    assert len(said) > 2
    assert {bool(re.search("[а-яё]", text)) for text in said} == {language == "ru"}


def test_no_part_of_a_page_is_empty(browser: Browser, written: Path) -> None:
    with page_of(browser, written.as_uri()) as page:
        for name in pages_of(page):
            page.evaluate("name => { location.hash = name }", name)
            page.locator(f'section.page.open[data-page="{name}"]').wait_for()
            charts = page.locator("section.page.open .charts").evaluate_all(
                "all => all.map((one) => one.childElementCount)"
            )
            assert 0 not in charts, name


def test_texts_are_not_called_questions(browser: Browser, written: Path) -> None:
    with page_of(browser, written.as_uri()) as page:
        page.locator("[data-choice=lang] [data-value=ru]").click()
        for name, facts, head in (("tier0", "Тексты: 148", "Текст"), ("tier2", "Вопросы: 374", "Вопрос")):
            page.evaluate("name => { location.hash = `${name}/cases` }", name)
            page.locator(f'[data-page="{name}"] .list td.q a').first.wait_for()
            assert facts in page.locator(f'[data-page="{name}"] header .facts').inner_text()
            assert page.locator(f'[data-page="{name}"] .list th').first.inner_text() == head


def test_a_row_of_links_is_one_row(browser: Browser, written: Path) -> None:
    tops = (
        "[...document.querySelectorAll('nav.tabs .tiers a')].map((one) => Math.round(one.getBoundingClientRect().top))"
    )
    with page_of(browser, written.as_uri(), viewport={"width": 1280, "height": 900}) as page:
        for font in FONTS:
            page.evaluate(PUT_ON, font)
            for language in ("ru", "en"):
                page.locator(f"[data-choice=lang] [data-value={language}]").click()
                assert len(set(page.evaluate(tops))) == 1, f"{language}, {font}"


@pytest.mark.parametrize(
    ("fault", "content"),
    [
        (
            "one over the other",
            "<p style='position:absolute;top:300px'>первое слово</p><p style='position:absolute;top:305px'>другое</p>",
        ),
        (
            "cut at the side",
            "<div style='overflow:hidden;width:90px;white-space:nowrap'>очень длинное предложение</div>",
        ),
        ("cut above or below", "<div style='overflow:hidden;height:9px'>слово</div>"),
        ("beyond the window", "<p style='position:absolute;left:-40px;top:300px'>слово за краем окна</p>"),
    ],
)
def test_what_cannot_be_read_is_found(browser: Browser, tmp_path: Path, fault: str, content: str) -> None:
    sound = (
        "<p>слово</p><div style='width:90px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis'>одно слово</div>"
    )
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8><main>{sound}</main>", encoding="utf-8")
    with page_of(browser, (tmp_path / "page.html").as_uri()) as page:
        assert page.evaluate(FAULTS) == []
        page.evaluate("content => { document.querySelector('main').innerHTML = content }", content)
        assert [fault in found for found in page.evaluate(FAULTS)] == [True]
