"""Nothing that a reader needs lies under something else, or is cut off: every page, in the fonts that people have."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import FAULTS, page_of
from tests.support.command_line import CommandLine, Document

FONTS = ("DejaVu Sans", "Liberation Sans", "system-ui")
"""The widest of all that people have, one as wide as Arial (Segoe lies between the two), and the machine's own."""
WHOLE_NIGHT = pytest.mark.slow("browser: a whole night; a small report is read in test_browser.py")
WIDTHS = (390, 768, 1280, 1920)
PAPER = 720
"""Pixels of A4 between its margins."""
PUT_ON = """font => {
    document.getElementById("put-on")?.remove();
    const style = document.createElement("style");
    style.id = "put-on";
    style.textContent = `
        body, .chart text { font-family: "${font}" !important }
        html::after { content: ""; position: fixed; inset: 0; z-index: 9; background: white }
        html::after { pointer-events: none; will-change: transform }
    `;
    document.head.append(style);
}"""
"""A font; and a sheet over everything, so that nothing is painted that no test sees."""
OPEN_ALL = "for (const one of document.querySelectorAll('section.page.open details')) one.open = true"
DRAWN = """async () => {
    const end = performance.now() + 20_000;
    const reached = async (isReady) => {
        while (!isReady() && performance.now() < end) await new Promise((done) => setTimeout(done, 20));
        return isReady();
    };
    const charts = [...document.querySelectorAll("section.page.open .chart")];
    const drawing = (chart) => chart.querySelector(".main-svg");
    for (const chart of charts) {
        const isDrawn = () => drawing(chart) || (chart.scrollIntoView(), false);
        if (!await reached(isDrawn)) return [`not drawn: ${chart.dataset.figure}`];
    }
    const isUnfit = (chart) => Math.abs(drawing(chart).getAttribute("width") - chart.clientWidth) > 1;
    await reached(() => !charts.some(isUnfit));
    let frames = 0;
    requestAnimationFrame(() => requestAnimationFrame(() => { frames = 2; }));
    if (!await reached(() => frames)) return ["the browser paints no frame"];
    scrollTo(0, 0);
    return charts.filter(isUnfit).map((chart) => `not as wide as its place: ${chart.dataset.figure}`);
}"""
"""Scroll to every chart that is not drawn, wait until all fit the window, and return what did not come within 20 s."""
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


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
def page(written: Path, browser: Browser) -> Iterator[Page]:
    """The report at 1280 pixels."""
    with page_of(browser, written.as_uri(), viewport={"width": 1280, "height": 900}) as opened:
        yield opened


def resize(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})


def speak(page: Page, language: str) -> None:
    page.locator(f"[data-choice=lang] [data-value={language}]").click()


def pages_of(page: Page) -> list[str]:
    found: list[str] = page.evaluate("[...document.querySelectorAll('section.page')].map((one) => one.dataset.page)")
    return found


def open_page(page: Page, name: str) -> None:
    page.evaluate("name => { location.hash = name }", name)
    page.locator(f'section.page.open[data-page="{name}"]').wait_for()


@WHOLE_NIGHT
@pytest.mark.parametrize("language", ["ru", "en"])
@pytest.mark.parametrize(("theme", "font"), [("light", FONTS[0]), ("dark", FONTS[1])])
def test_every_page_can_be_read(written: Path, browser: Browser, theme: str, font: str, language: str) -> None:
    """With everything on it unfolded and drawn, in windows that grow on one page and shrink on the next."""
    widths = list(WIDTHS)
    with page_of(browser, written.as_uri(), viewport={"width": widths[0], "height": 900}) as page:
        page.locator(f"[data-choice=theme] [data-value={theme}]").click()
        page.evaluate(PUT_ON, font)
        speak(page, language)
        for name in pages_of(page):
            open_page(page, name)
            page.evaluate(OPEN_ALL)
            faults: dict[int, list[str]] = {}
            for width in widths:
                resize(page, width)
                faults[width] = page.evaluate(DRAWN) + page.evaluate(FAULTS)
            assert faults == {width: [] for width in widths}, name
            widths.reverse()


@WHOLE_NIGHT
def test_charts_fit_a_window_that_has_changed_while_their_page_was_closed(written: Path, browser: Browser) -> None:
    with page_of(browser, written.as_uri(), viewport={"width": 1280, "height": 900}) as page:
        open_page(page, "trends")
        assert page.evaluate(DRAWN) == []
        open_page(page, "overview")
        resize(page, 390)
        open_page(page, "trends")
        assert page.evaluate(DRAWN) + page.evaluate(FAULTS) == []


@WHOLE_NIGHT
@pytest.mark.parametrize("language", ["ru", "en"])
def test_every_page_can_be_read_on_paper(written: Path, browser: Browser, language: str) -> None:
    with page_of(browser, written.as_uri(), viewport={"width": 1280, "height": 1000}) as page:
        page.evaluate(PUT_ON, FONTS[0])
        speak(page, language)
        for name in pages_of(page):
            open_page(page, name)
            assert page.evaluate(DRAWN) == []
        page.emulate_media(media="print")
        page.set_viewport_size({"width": PAPER, "height": 1000})
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.evaluate("() => new Promise((done) => setTimeout(done, 500))")
        assert page.evaluate(FAULTS) == []


@WHOLE_NIGHT
@pytest.mark.parametrize("language", ["ru", "en"])
def test_every_case_can_be_read(written: Path, browser: Browser, language: str) -> None:
    found: list[str] = []
    with page_of(browser, written.as_uri(), reduced_motion="reduce") as page:
        page.evaluate(PUT_ON, FONTS[0])
        page.evaluate("for (const chart of document.querySelectorAll('.chart')) chart.remove()")  # behind what is read
        speak(page, language)
        for name in (name for name in pages_of(page) if page.locator(f'[data-page="{name}"] .list').count()):
            page.evaluate("name => { location.hash = `${name}/cases` }", name)
            page.locator(f'[data-page="{name}"] .list td.q a').first.click()
            page.locator("dialog h2").wait_for()
            for width in WIDTHS:
                resize(page, width)
                page.evaluate(FRAMES)
                found += [f"{name}, {width}: {fault}" for fault in page.evaluate(FAULTS)]
            page.keyboard.press("Escape")
            page.locator("dialog").wait_for(state="hidden")
    assert found == []


@WHOLE_NIGHT
def test_the_index_can_be_read(written: Path, browser: Browser, home: Path) -> None:
    """A table too that has grown in a window that has not."""
    found: list[str] = []
    with page_of(browser, (home / "reports" / "index.html").as_uri()) as page:
        for width in WIDTHS:
            resize(page, width)
            for font in FONTS:
                page.evaluate(PUT_ON, font)
                for language in ("ru", "en"):
                    speak(page, language)
                    page.evaluate(FRAMES)
                    found += [f"{width}, {font}, {language}: {fault}" for fault in page.evaluate(FAULTS)]
        for width in WIDTHS:
            resize(page, width)
            page.reload()
            page.evaluate(
                "document.querySelector('tbody tr').cells[3].textContent = 'a_source_of_a_long_name'.repeat(12)"
            )
            page.evaluate(FRAMES)
            found += [f"{width}, grown: {fault}" for fault in page.evaluate(FAULTS)]
    assert found == []


@WHOLE_NIGHT
def test_why_something_was_not_measured_is_said_in_the_language_of_the_page(page: Page) -> None:
    for language in ("ru", "en"):
        speak(page, language)
        open_page(page, "tier1")
        page.evaluate(OPEN_ALL)
        said = page.locator("section.page.open .reasons .text").all_inner_texts()
        page.evaluate("location.hash = 'tier1/cases?status=unlabelled'")
        page.locator("[data-page=tier1] .list td.q a").first.click()
        said.append(page.locator("dialog .problem").inner_text())
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="hidden")
        assert len(said) > 2
        assert {bool(re.search("[а-яё]", text)) for text in said} == {language == "ru"}


@WHOLE_NIGHT
def test_no_part_of_a_page_is_empty(page: Page) -> None:
    empty = "[...document.querySelectorAll('.charts')].filter((one) => !one.childElementCount).length"
    assert page.locator(".charts").count()
    assert page.evaluate(empty) == 0


@WHOLE_NIGHT
def test_texts_are_not_called_questions(page: Page) -> None:
    speak(page, "ru")
    for name, facts, head in (("tier0", "Тексты: 148", "Текст"), ("tier2", "Вопросы: 374", "Вопрос")):
        page.evaluate("name => { location.hash = `${name}/cases` }", name)
        page.locator(f'[data-page="{name}"] .list td.q a').first.wait_for()
        assert facts in page.locator(f'[data-page="{name}"] header .facts').inner_text()
        assert page.locator(f'[data-page="{name}"] .list th').first.inner_text() == head


@WHOLE_NIGHT
def test_a_row_of_links_is_one_row(page: Page) -> None:
    tops = (
        "[...document.querySelectorAll('nav.tabs .tiers a')].map((one) => Math.round(one.getBoundingClientRect().top))"
    )
    for font in FONTS:
        page.evaluate(PUT_ON, font)
        for language in ("ru", "en"):
            speak(page, language)
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
