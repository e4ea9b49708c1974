"""`yarus view` as people use it: a browser that opens, a list in which two are chosen, pages that stay current."""

import re
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from sqlalchemy import Engine

from tests.support.browser import PATIENCE_MS, chromium
from tests.support.command_line import environment, here
from tests.support.evaluation_history import with_cases

expect.set_options(timeout=PATIENCE_MS)
N = 40
JUDGED = {"tier2": "faithfulness", "tier3": "e2e_score"}
PLANTED = "<img src=x onerror='window.planted = 1'>"


class Viewed(NamedTuple):
    """A running `yarus view`, and what it and the browser that it has opened were told."""

    process: "subprocess.Popen[str]"
    address: str
    opened: str

    @property
    def server(self) -> str:
        return self.address.partition("/enter")[0]

    @property
    def entitled(self) -> dict[str, str]:
        password = unquote(self.address.partition("#")[2].partition("&")[0])
        return {"Authorization": f"Basic {b64encode(password.encode()).decode()}"}


def evaluated(engine: Engine, folder: Path, night: int, tier: str = "tier3", **more: object) -> str:
    columns = {"answer": [f"Ответ {night} {PLANTED}"] * N, JUDGED[tier]: [0.1 * night + 0.01 * i for i in range(N)]}
    return with_cases(
        engine, folder, "viewed", columns, tier=tier, night=night, statuses={"ok": N}, coverage=1.0, **more
    )


@pytest.fixture(scope="module")
def nights(journal_of: Engine, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three evaluations of tier 3, and one of tier 2."""
    folder = tmp_path_factory.mktemp("cases")
    ids = [evaluated(journal_of, folder, night, sut_label=f"v{night} {PLANTED}") for night in range(3)]
    return [*ids, evaluated(journal_of, folder, 3, tier="tier2")]


def start(home: Path, *words: str, browser: Path | None = None) -> Viewed:
    """Begins to view; by the browser that stands there, which keeps what it is told to open."""
    told = home / "opened"
    told.unlink(missing_ok=True)
    env = environment(home) | ({"BROWSER": f"{browser} %s &"} if browser else {})
    process = subprocess.Popen(
        [sys.executable, "-m", "yarus", "view", "--port", "0", *words], env=env, cwd=home, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    address = re.search(r"http://\S+", line)
    assert address, (line, process.stderr and process.stderr.read())
    while browser and not told.exists():
        time.sleep(0.05)
    return Viewed(process, address[0], told.read_text(encoding="utf-8").strip() if browser else "")


def stop(viewed: Viewed) -> int:
    viewed.process.send_signal(signal.SIGINT)
    viewed.process.communicate(timeout=60)
    return viewed.process.returncode


@pytest.fixture(scope="module")
def viewed(own_home: Path, nights: list[str]) -> Iterator[Viewed]:
    script = own_home / "browser"
    script.write_text(
        f'#!/bin/sh\necho "$1" > "{own_home}/opened.part"; mv "{own_home}/opened.part" "{own_home}/opened"\n'
    )
    script.chmod(0o755)
    found = start(own_home, browser=script)
    yield found
    assert stop(found) in (0, 130)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, viewed: Viewed) -> Iterator[Page]:
    """The list, by the address that was printed, at 1280 pixels; nothing is asked of any other server."""
    with entered(browser, viewed.address) as (_, opened):
        yield opened


class entered:  # noqa: N801 - a context manager
    """A page of a browser of its own at an address, which complains of nothing."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.context: BrowserContext = browser.new_context(viewport={"width": 1280, "height": 800})
        self.context.set_default_timeout(PATIENCE_MS)
        self.page, self.complaints = self.context.new_page(), list[str]()
        said = self.complaints.append
        self.page.on("console", lambda one: said(one.text) if one.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: said(str(error)))
        own = address.partition("/enter")[0]
        self.page.on("request", lambda one: None if one.url.startswith((own, "data:", "blob:")) else said(one.url))
        self.page.goto(address)
        self.page.wait_for_selector("main")

    def __enter__(self) -> tuple[BrowserContext, Page]:
        return self.context, self.page

    def __exit__(self, *_: object) -> None:
        planted = self.page.evaluate("window.planted ?? null")
        self.context.close()
        assert (planted, self.complaints) == (None, [])


def choose(page: Page, *ids: str) -> None:
    for name in ids:
        page.locator(f"td.pick input[value='{name}']").check()


@pytest.mark.slow("browser: pages that are served")
def test_any_two_are_chosen_in_the_list_and_compared(page: Page, nights: list[str]) -> None:
    choose(page, nights[0])
    expect(page.locator(".chosen")).to_contain_text("Выберите ещё один прогон")
    choose(page, nights[2])
    page.reload()
    expect(page.locator(".chosen b")).to_have_text("Выбрано: 2")  # what was chosen stays
    page.get_by_role("button", name="Сравнить").click()
    table = page.locator("#tier3 table.compare").first
    expect(table.locator("tr", has_text="avg_e2e_score")).to_contain_text("лучше")
    expect(page.locator("#tier3 [data-part=compare]")).to_contain_text(nights[0])
    page.get_by_role("link", name="Все прогоны").click()
    expect(page.locator("td.pick input:checked")).to_have_count(2)
    page.get_by_role("button", name="Снять выбор").click()
    expect(page.locator(".chosen")).to_be_hidden()


@pytest.mark.slow("browser: another choice")
def test_of_different_tiers_nothing_is_compared_and_it_is_said(page: Page, nights: list[str]) -> None:
    choose(page, nights[0], nights[3])
    expect(page.locator(".chosen")).to_contain_text("Уровни разные")
    page.get_by_role("button", name="Показать рядом").click()
    expect(page.locator("nav.tabs a[href='#tier2']")).to_be_visible()
    expect(page.locator("nav.tabs a[href='#tier3']")).to_be_visible()


@pytest.mark.slow("wait: for the page to look again")
def test_pages_stay_current(page: Page, nights: list[str], journal_of: Engine, tmp_path: Path) -> None:
    newest = page.context.new_page()
    newest.goto(page.url + "newest.html#tier3/cases?q=Вопрос+37")
    expect(newest.locator("#tier3 [role=status]").first).to_contain_text("Найдено 1 из")
    later = evaluated(journal_of, tmp_path, 9)
    expect(page.locator(f"td.pick input[value='{later}']")).to_be_visible()  # by itself, without a restart
    expect(newest.locator(".news")).to_contain_text("появилось новое")
    newest.get_by_role("button", name="Обновить").click()
    expect(newest.locator("meta[name=yarus-evaluations]")).to_have_attribute("content", re.compile(later))
    expect(newest.locator("#tier3 [role=status]").first).to_contain_text("Найдено 1 из")  # the reader's place is kept
    expect(newest.locator(".news")).to_be_hidden()


@pytest.mark.slow("browser: two of their own")
def test_the_browser_is_let_in_once_by_what_others_may_see(browser: Browser, viewed: Viewed) -> None:
    assert viewed.opened.startswith(f"{viewed.server}/enter#")
    secret = unquote(viewed.address.partition("#")[2])
    assert secret not in viewed.opened
    with entered(browser, viewed.opened) as (_, page):
        expect(page.locator("h1")).to_contain_text("Все прогоны")
    with_another = browser.new_context().new_page()
    with_another.goto(viewed.opened)
    expect(with_another.locator("#said")).to_contain_text("не подходит")
    with_another.context.close()


@pytest.mark.slow("process: a second `yarus view`")
def test_what_it_is_asked_to_show_comes_first(browser: Browser, own_home: Path, nights: list[str]) -> None:
    viewed = start(own_home, "--no-browser", nights[0], nights[1])
    with entered(browser, viewed.address) as (_, page):
        expect(page.locator("meta[name=yarus-evaluations]")).to_have_attribute("content", f"{nights[1]} {nights[0]}")
    begun = time.monotonic()
    assert stop(viewed) in (0, 130)
    assert time.monotonic() - begun < 30


@pytest.mark.slow("browser: pages that are served")
@pytest.mark.parametrize("named", ["of=nothing", "of=%00", "of=last", "", "of=<script>x</script>", "of=tier3"])
def test_what_cannot_be_shown_is_said_on_a_page(viewed: Viewed, nights: list[str], named: str) -> None:
    reply = httpx.get(f"{viewed.server}/report.html?{named}", headers=viewed.entitled, timeout=60)
    assert reply.status_code == 404
    assert 'href="/"' in reply.text and "<script>x" not in reply.text
    nine = "&".join(f"of={n}" for n in range(9))
    assert httpx.get(f"{viewed.server}/report.html?{nine}", headers=viewed.entitled, timeout=60).status_code == 404


@pytest.mark.slow("browser: pages that are served")
@pytest.mark.parametrize("path", ["/", "/newest.html", "/report.html?of=last", "/now", "/index.html"])
def test_others_get_nothing(viewed: Viewed, path: str) -> None:
    address = f"{viewed.server}{path}"
    assert httpx.get(address, timeout=60).status_code == 401
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert httpx.get(address, headers=viewed.entitled | foreign, timeout=60).status_code == 403
    assert httpx.post(address, headers=viewed.entitled, timeout=60).status_code == 501


@pytest.mark.slow("browser: pages that are served")
def test_an_evaluation_that_is_not_there_is_refused_at_once(own_home: Path, nights: list[str]) -> None:
    ran = here("view", "--no-browser", "nothing", env={"YARUS_HOME": str(own_home)})
    assert (ran.code, "nothing" in ran.err, "Traceback" in ran.err) == (2, True, False)
