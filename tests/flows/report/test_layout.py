"""Layout: nothing is covered or cut off on any page, in common fonts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import LAYOUT_CHECK_SCRIPT, page_of
from tests.support.command_line import CommandLine, Document

FONTS = ("DejaVu Sans", "Liberation Sans", "system-ui")
"""The widest common font, one as wide as Arial (Segoe is between them), and the system's own."""
FULL_RUN = pytest.mark.slow("browser: a whole night; a small report is read in test_browser.py")
WIDTHS = (390, 768, 1280, 1920)
PAPER_WIDTH = 720
"""Width of A4 between its margins in pixels."""
APPLY_FONT = """font => {
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
"""Set a font, and cover the page, so that the browser does not paint what the tests do not see."""
OPEN_ALL = "for (const one of document.querySelectorAll('section.page.open details')) one.open = true"
DRAW_CHARTS = """async () => {
    const end = performance.now() + 20_000;
    const isReached = async (condition) => {
        while (!condition() && performance.now() < end) await new Promise((done) => setTimeout(done, 20));
        return condition();
    };
    const charts = [...document.querySelectorAll("section.page.open .chart")];
    const drawing = (chart) => chart.querySelector(".main-svg");
    for (const chart of charts) {
        const scrollUntilDrawn = () => {
            if (!drawing(chart)) chart.scrollIntoView();
            return drawing(chart) !== null;
        };
        if (!await isReached(scrollUntilDrawn)) return [`not drawn: ${chart.dataset.figure}`];
    }
    const isUnfit = (chart) => Math.abs(drawing(chart).getAttribute("width") - chart.clientWidth) > 1;
    await isReached(() => !charts.some(isUnfit));
    let isPainted = false;
    requestAnimationFrame(() => requestAnimationFrame(() => { isPainted = true; }));
    if (!await isReached(() => isPainted)) return ["the browser paints no frame"];
    scrollTo(0, 0);
    return charts.filter(isUnfit).map((chart) => `not as wide as its place: ${chart.dataset.figure}`);
}"""
"""Scroll to every chart that is not drawn, wait until all fit the window, and return what did not come within 20 s."""
WAIT_FOR_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def full_report(yarus: CommandLine, night: dict[str, Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of a full nightly run with a comparison, a sweep, probes and the corpus."""
    other = yarus("run", "tier1", "--retriever", "fulltext", "--json").json["evaluation_id"]
    yarus("sweep", "--tier", "tier1", "--retrievers", "dense,fulltext", "--limit", "40", "--json")
    yarus("robustness", "--tiers", "tier1", "--perturbations", "lower,typos", "--limit", "40", "--json")
    path = tmp_path_factory.mktemp("layout") / "report.html"
    yarus("report", *(evaluated["evaluation_id"] for evaluated in night.values()), other, "--out", str(path))
    return path


@pytest.fixture(scope="module")
def page(full_report: Path, browser: Browser) -> Iterator[Page]:
    """Open the report at 1280 pixels."""
    with page_of(browser, full_report.as_uri(), viewport={"width": 1280, "height": 900}) as opened:
        yield opened


def resize(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})


def set_language(page: Page, language: str) -> None:
    page.locator(f"[data-choice=lang] [data-value={language}]").click()


def page_names(page: Page) -> list[str]:
    names: list[str] = page.evaluate("[...document.querySelectorAll('section.page')].map((one) => one.dataset.page)")
    return names


def open_page(page: Page, name: str) -> None:
    page.evaluate("name => { location.hash = name }", name)
    page.locator(f'section.page.open[data-page="{name}"]').wait_for()


@FULL_RUN
@pytest.mark.parametrize("language", ["ru", "en"])
@pytest.mark.parametrize(("theme", "font"), [("light", FONTS[0]), ("dark", FONTS[1])])
def test_pages_are_readable(full_report: Path, browser: Browser, theme: str, font: str, language: str) -> None:
    """Everything is unfolded and drawn, and the window grows on one page and shrinks on the next."""
    widths = list(WIDTHS)
    with page_of(browser, full_report.as_uri(), viewport={"width": widths[0], "height": 900}) as page:
        page.locator(f"[data-choice=theme] [data-value={theme}]").click()
        page.evaluate(APPLY_FONT, font)
        set_language(page, language)
        for name in page_names(page):
            open_page(page, name)
            page.evaluate(OPEN_ALL)
            faults: dict[int, list[str]] = {}
            for width in widths:
                resize(page, width)
                faults[width] = page.evaluate(DRAW_CHARTS) + page.evaluate(LAYOUT_CHECK_SCRIPT)
            assert faults == {width: [] for width in widths}, name
            widths.reverse()


@FULL_RUN
def test_charts_fit_window_resized_while_page_was_closed(full_report: Path, browser: Browser) -> None:
    with page_of(browser, full_report.as_uri(), viewport={"width": 1280, "height": 900}) as page:
        open_page(page, "trends")
        assert page.evaluate(DRAW_CHARTS) == []
        open_page(page, "overview")
        resize(page, 390)
        open_page(page, "trends")
        assert page.evaluate(DRAW_CHARTS) + page.evaluate(LAYOUT_CHECK_SCRIPT) == []


@FULL_RUN
@pytest.mark.parametrize("language", ["ru", "en"])
def test_pages_are_readable_on_paper(full_report: Path, browser: Browser, language: str) -> None:
    with page_of(browser, full_report.as_uri(), viewport={"width": 1280, "height": 1000}) as page:
        page.evaluate(APPLY_FONT, FONTS[0])
        set_language(page, language)
        for name in page_names(page):
            open_page(page, name)
            assert page.evaluate(DRAW_CHARTS) == []
        page.emulate_media(media="print")
        page.set_viewport_size({"width": PAPER_WIDTH, "height": 1000})
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.evaluate("() => new Promise((done) => setTimeout(done, 500))")
        assert page.evaluate(LAYOUT_CHECK_SCRIPT) == []


@FULL_RUN
@pytest.mark.parametrize("language", ["ru", "en"])
def test_cases_are_readable(full_report: Path, browser: Browser, language: str) -> None:
    problems: list[str] = []
    with page_of(browser, full_report.as_uri(), reduced_motion="reduce") as page:
        page.evaluate(APPLY_FONT, FONTS[0])
        page.evaluate("for (const chart of document.querySelectorAll('.chart')) chart.remove()")  # behind what is read
        set_language(page, language)
        for name in (name for name in page_names(page) if page.locator(f'[data-page="{name}"] .list').count()):
            page.evaluate("name => { location.hash = `${name}/cases` }", name)
            page.locator(f'[data-page="{name}"] .list td.q a').first.click()
            page.locator("dialog h2").wait_for()
            for width in WIDTHS:
                resize(page, width)
                page.evaluate(WAIT_FOR_FRAMES)
                problems += [f"{name}, {width}: {fault}" for fault in page.evaluate(LAYOUT_CHECK_SCRIPT)]
            page.keyboard.press("Escape")
            page.locator("dialog").wait_for(state="hidden")
    assert problems == []


@FULL_RUN
def test_index_is_readable(full_report: Path, browser: Browser, home: Path) -> None:
    """This includes a table that grows in a window of constant size."""
    problems: list[str] = []
    with page_of(browser, (home / "reports" / "index.html").as_uri()) as page:
        for width in WIDTHS:
            resize(page, width)
            for font in FONTS:
                page.evaluate(APPLY_FONT, font)
                for language in ("ru", "en"):
                    set_language(page, language)
                    page.evaluate(WAIT_FOR_FRAMES)
                    problems += [
                        f"{width}, {font}, {language}: {fault}" for fault in page.evaluate(LAYOUT_CHECK_SCRIPT)
                    ]
        for width in WIDTHS:
            resize(page, width)
            page.reload()
            page.evaluate(
                "document.querySelector('tbody tr').cells[3].textContent = 'a_source_of_a_long_name'.repeat(12)"
            )
            page.evaluate(WAIT_FOR_FRAMES)
            problems += [f"{width}, grown: {fault}" for fault in page.evaluate(LAYOUT_CHECK_SCRIPT)]
    assert problems == []


@FULL_RUN
def test_reasons_are_in_language_of_page(page: Page) -> None:
    for language in ("ru", "en"):
        set_language(page, language)
        open_page(page, "tier1")
        page.evaluate(OPEN_ALL)
        reasons = page.locator("section.page.open .reasons .text").all_inner_texts()
        page.evaluate("location.hash = 'tier1/cases?status=unlabelled'")
        page.locator("[data-page=tier1] .list td.q a").first.click()
        reasons.append(page.locator("dialog .problem").inner_text())
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="hidden")
        assert len(reasons) > 2
        assert {bool(re.search("[а-яё]", text)) for text in reasons} == {language == "ru"}


@FULL_RUN
def test_chart_sections_are_not_empty(page: Page) -> None:
    count_empty = "[...document.querySelectorAll('.charts')].filter((one) => !one.childElementCount).length"
    assert page.locator(".charts").count()
    assert page.evaluate(count_empty) == 0


@FULL_RUN
def test_cases_of_tier0_are_called_texts(page: Page) -> None:
    set_language(page, "ru")
    for name, facts, head in (("tier0", "Тексты: 148", "Текст"), ("tier2", "Вопросы: 374", "Вопрос")):
        page.evaluate("name => { location.hash = `${name}/cases` }", name)
        page.locator(f'[data-page="{name}"] .list td.q a').first.wait_for()
        assert facts in page.locator(f'[data-page="{name}"] header .facts').inner_text()
        assert page.locator(f'[data-page="{name}"] .list th').first.inner_text() == head


@FULL_RUN
def test_tier_links_fit_one_row(page: Page) -> None:
    tops = (
        "[...document.querySelectorAll('nav.tabs .tiers a')].map((one) => Math.round(one.getBoundingClientRect().top))"
    )
    for font in FONTS:
        page.evaluate(APPLY_FONT, font)
        for language in ("ru", "en"):
            set_language(page, language)
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
def test_faults_are_detected(browser: Browser, tmp_path: Path, fault: str, content: str) -> None:
    valid = (
        "<p>слово</p><div style='width:90px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis'>одно слово</div>"
    )
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8><main>{valid}</main>", encoding="utf-8")
    with page_of(browser, (tmp_path / "page.html").as_uri()) as page:
        assert page.evaluate(LAYOUT_CHECK_SCRIPT) == []
        page.evaluate("content => { document.querySelector('main').innerHTML = content }", content)
        assert [fault in detected for detected in page.evaluate(LAYOUT_CHECK_SCRIPT)] == [True]
