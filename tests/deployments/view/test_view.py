"""`yarus serve --reports` in a browser: the list with two chosen evaluations, and pages that stay current."""

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

from tests.support.browser import PATIENCE_MS, open_chromium
from tests.support.command_line import make_environment, run_here
from tests.support.evaluation_history import write_evaluation_with_cases

expect.set_options(timeout=PATIENCE_MS)
N = 40
JUDGED = {"tier2": "faithfulness", "tier3": "e2e_score"}
PLANTED = "<img src=x onerror='window.planted = 1'>"


class Viewed(NamedTuple):
    """A running `yarus serve --reports`, its address, and the address that its browser opened."""

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


def plant_evaluation(engine: Engine, folder: Path, night: int, tier: str = "tier3", **more: object) -> str:
    columns = {"answer": [f"Ответ {night} {PLANTED}"] * N, JUDGED[tier]: [0.1 * night + 0.01 * i for i in range(N)]}
    return write_evaluation_with_cases(
        engine, folder, "viewed", columns, tier=tier, night=night, statuses={"ok": N}, coverage=1.0, **more
    )


@pytest.fixture(scope="module")
def nights(journal_of: Engine, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Plant three evaluations of tier 3, and one of tier 2."""
    folder = tmp_path_factory.mktemp("cases")
    ids = [plant_evaluation(journal_of, folder, night, sut_label=f"v{night} {PLANTED}") for night in range(3)]
    return [*ids, plant_evaluation(journal_of, folder, 3, tier="tier2")]


def start(home: Path, *words: str, browser: Path | None = None) -> Viewed:
    """Start `yarus serve --reports` with a browser script that stores the address it is to open."""
    opened_file = home / "opened"
    opened_file.unlink(missing_ok=True)
    env = make_environment(home) | ({"BROWSER": f"{browser} %s &"} if browser else {})
    process = subprocess.Popen(
        [sys.executable, "-m", "yarus", "serve", "--reports", "--port", "0", *words], env=env, cwd=home, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    address = re.search(r"http://\S+", line)
    assert address, (line, process.stderr and process.stderr.read())
    while browser and not opened_file.exists():
        time.sleep(0.05)
    return Viewed(process, address[0], opened_file.read_text(encoding="utf-8").strip() if browser else "")


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
    running_view = start(own_home, browser=script)
    yield running_view
    assert stop(running_view) in (0, 130)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, viewed: Viewed) -> Iterator[Page]:
    """Open the list at its printed address, 1280 pixels wide, without requests to other servers."""
    with entered(browser, viewed.address) as (_, opened):
        yield opened


class entered:  # noqa: N801 - a context manager
    """A page in a new browser context, which must not log errors or contact other servers."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.context: BrowserContext = browser.new_context(viewport={"width": 1280, "height": 800})
        self.context.set_default_timeout(PATIENCE_MS)
        self.page, self.complaints = self.context.new_page(), list[str]()
        add_complaint = self.complaints.append
        self.page.on("console", lambda event: add_complaint(event.text) if event.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: add_complaint(str(error)))
        own = address.partition("/enter")[0]
        self.page.on(
            "request", lambda event: None if event.url.startswith((own, "data:", "blob:")) else add_complaint(event.url)
        )
        self.page.goto(address)
        self.page.wait_for_selector("main")

    def __enter__(self) -> tuple[BrowserContext, Page]:
        return self.context, self.page

    def __exit__(self, *_: object) -> None:
        planted = self.page.evaluate("window.planted ?? null")
        self.context.close()
        assert (planted, self.complaints) == (None, [])


def choose_evaluations(page: Page, *ids: str) -> None:
    for name in ids:
        page.locator(f"td.pick input[value='{name}']").check()


@pytest.mark.slow("browser: pages that are served")
def test_two_chosen_evaluations_are_compared(page: Page, nights: list[str]) -> None:
    choose_evaluations(page, nights[0])
    expect(page.locator(".chosen")).to_contain_text("Выберите ещё один прогон")
    choose_evaluations(page, nights[2])
    page.reload()
    expect(page.locator(".chosen b")).to_have_text("Выбрано: 2")  # the choice stays
    page.get_by_role("button", name="Сравнить").click()
    table = page.locator("#tier3 table.compare").first
    expect(table.locator("tr", has_text="avg_e2e_score")).to_contain_text("лучше")
    expect(page.locator("#tier3 [data-part=compare]")).to_contain_text(nights[0])
    page.get_by_role("link", name="Все прогоны").click()
    expect(page.locator("td.pick input:checked")).to_have_count(2)
    page.get_by_role("button", name="Снять выбор").click()
    expect(page.locator(".chosen")).to_be_hidden()


@pytest.mark.slow("browser: another choice")
def test_evaluations_of_different_tiers_are_not_compared(page: Page, nights: list[str]) -> None:
    choose_evaluations(page, nights[0], nights[3])
    expect(page.locator(".chosen")).to_contain_text("Уровни разные")
    page.get_by_role("button", name="Показать рядом").click()
    expect(page.locator("nav.tabs a[href='#tier2']")).to_be_visible()
    expect(page.locator("nav.tabs a[href='#tier3']")).to_be_visible()


@pytest.mark.slow("wait: for the page to look again")
def test_pages_show_new_evaluations(page: Page, nights: list[str], journal_of: Engine, tmp_path: Path) -> None:
    newest = page.context.new_page()
    newest.goto(page.url + "newest.html#tier3/cases?q=Вопрос+37")
    expect(newest.locator("#tier3 [role=status]").first).to_contain_text("Найдено 1 из")
    later = plant_evaluation(journal_of, tmp_path, 9)
    expect(page.locator(f"td.pick input[value='{later}']")).to_be_visible()  # by itself, without a restart
    expect(newest.locator(".news")).to_contain_text("новые данные")
    newest.get_by_role("button", name="Обновить").click()
    expect(newest.locator("meta[name=yarus-evaluations]")).to_have_attribute("content", re.compile(later))
    expect(newest.locator("#tier3 [role=status]").first).to_contain_text("Найдено 1 из")  # the reader's place is kept
    expect(newest.locator(".news")).to_be_hidden()


@pytest.mark.slow("browser: two of their own")
def test_browser_is_started_with_a_one_time_token(browser: Browser, viewed: Viewed) -> None:
    assert viewed.opened.startswith(f"{viewed.server}/enter#")
    secret = unquote(viewed.address.partition("#")[2])
    assert secret not in viewed.opened
    with entered(browser, viewed.opened) as (_, page):
        expect(page.locator("h1")).to_contain_text("Все прогоны")
    second_page = browser.new_context().new_page()
    second_page.goto(viewed.opened)
    expect(second_page.locator("#said")).to_contain_text("не подходит")
    second_page.context.close()


@pytest.mark.slow("process: a second `yarus serve --reports`")
def test_view_starts_with_requested_evaluations(browser: Browser, own_home: Path, nights: list[str]) -> None:
    viewed = start(own_home, "--no-browser", nights[0], nights[1])
    with entered(browser, viewed.address) as (_, page):
        expect(page.locator("meta[name=yarus-evaluations]")).to_have_attribute("content", f"{nights[1]} {nights[0]}")
    stopped_at = time.monotonic()
    assert stop(viewed) in (0, 130)
    assert time.monotonic() - stopped_at < 30


@pytest.mark.slow("browser: pages that are served")
@pytest.mark.parametrize("query", ["of=nothing", "of=%00", "of=last", "", "of=<script>x</script>", "of=tier3"])
def test_unknown_evaluations_get_an_error_page(viewed: Viewed, nights: list[str], query: str) -> None:
    reply = httpx.get(f"{viewed.server}/report.html?{query}", headers=viewed.entitled, timeout=60)
    assert reply.status_code == 404
    assert 'href="/"' in reply.text and "<script>x" not in reply.text
    nine = "&".join(f"of={n}" for n in range(9))
    assert httpx.get(f"{viewed.server}/report.html?{nine}", headers=viewed.entitled, timeout=60).status_code == 404


@pytest.mark.slow("browser: pages that are served")
@pytest.mark.parametrize("path", ["/", "/newest.html", "/report.html?of=last", "/now", "/index.html"])
def test_requests_without_password_are_refused(viewed: Viewed, path: str) -> None:
    address = f"{viewed.server}{path}"
    assert httpx.get(address, timeout=60).status_code == 401
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert httpx.get(address, headers=viewed.entitled | foreign, timeout=60).status_code == 403
    assert httpx.post(address, headers=viewed.entitled, timeout=60).status_code == 501


@pytest.mark.slow("browser: pages that are served")
def test_view_rejects_unknown_evaluations(own_home: Path, nights: list[str]) -> None:
    finished = run_here("serve", "--reports", "--no-browser", "nothing", env={"YARUS_HOME": str(own_home)})
    assert (finished.code, "nothing" in finished.err, "Traceback" in finished.err) == (2, True, False)
