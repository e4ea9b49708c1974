"""Prefect's UI and the report pages in a browser: they work, ask no other server, and offer what exists."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

from tasks.orchestration.server_access import link
from tests.support.browser import PATIENCE_MS, chromium
from tests.support.command_line import CommandLine
from tests.support.prefect_servers import Serve
from tests.support.processes import until

pytestmark = pytest.mark.slow("browser: Prefect's UI")
expect.set_options(timeout=PATIENCE_MS)
FOREIGN = "tracker.example"
PAGES = ("/dashboard", "/runs", "/flows", "/deployments", "/work-pools", "/blocks", "/automations")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def run(served: Serve) -> dict[str, Any]:
    return served.ended(served.trigger("tier1", limit=20))


@pytest.fixture
def page(browser: Browser, served: Serve) -> Iterator[Page]:
    """A page that is logged in by the printed link."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(PATIENCE_MS)
        opened = context.new_page()
        opened.goto(link(served.url, served.password))
        expect(opened).to_have_url(re.compile("/dashboard"))
        yield opened


def foreign(asked: list[Request]) -> list[Request]:
    return [
        one for one in asked if urlsplit(one.url).hostname != "127.0.0.1" and not one.url.startswith(("data:", "blob:"))
    ]


def complains(said: ConsoleMessage) -> bool:
    """The browser tells of icons that Prefect names and has not, of what its own API refuses, and of what our policy
    forbids; of nothing else: no script and no style is missing.
    """
    forbidden = "Content Security Policy" in said.text and "amplitude.com" in said.text
    place = urlsplit(said.location["url"]).path
    return said.type == "error" and not (forbidden or place.endswith((".ico", ".svg")) or place.startswith("/api/"))


def test_no_page_asks_another_server(browser: Browser, served: Serve, run: dict[str, Any]) -> None:
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        page, asked, complaints = context.new_page(), list[Request](), list[str]()
        page.on("request", lambda request: asked.append(request))
        page.on(
            "console",
            lambda said: complaints.append(f"{said.location['url']}: {said.text}") if complains(said) else None,
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(link(served.url, served.password))
        expect(page).to_have_url(re.compile("/dashboard"))
        form = f"/deployments/deployment/{served.deployment('tier1')['id']}/run"
        artifact = f"/artifacts/artifact/{served.artifacts(run['id'])['tier1-sample-metrics']['id']}"
        for path in (*PAGES, form, f"/runs/flow-run/{run['id']}", artifact):
            for ui in ("/v2", ""):  # the one that people see, and the one before it
                page.goto(f"{served.url}{ui}{path}")
                page.wait_for_load_state("networkidle")
                expect(page.get_by_text("Work Pools", exact=True).first).to_be_visible()
        page.goto(link(served.reports, served.password))
        page.wait_for_load_state("networkidle")
        page.goto(re.findall(r"\((\S+)\)", served.artifacts(run["id"])["tier1-sample-report"]["data"])[0])
        page.wait_for_load_state("networkidle")
        assert {one.failure for one in foreign(asked)} <= {"csp"}, [one.url for one in foreign(asked)]
        assert complaints == []


def test_a_run_from_the_browser(page: Page, served: Serve, run: dict[str, Any]) -> None:
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto(f"{served.url}/v2/deployments/deployment/{served.deployment('tier1')['id']}/run")
    expect(page.get_by_text("Откуда вопросы: загруженный источник").first).to_be_visible()
    expect(page.get_by_text("Например: 200").first).to_be_visible()
    page.get_by_role("tab", name="int").first.click()
    page.locator("input[type=number]").first.fill("20")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile("tab=Runs|/runs/"))
    newest = {"sort": "EXPECTED_START_TIME_DESC", "limit": 1, "flow_runs": {"tags": {"all_": ["tier1"]}}}
    [made] = served.post("/flow_runs/filter", newest)
    assert made["parameters"]["parameters"]["limit"] == 20
    assert served.ended(made["id"])["state_name"] == "Completed"
    page.goto(f"{served.url}/v2/runs/flow-run/{made['id']}")
    expect(page.get_by_text("tier1 sample · 20").first).to_be_visible()
    page.get_by_text("Artifacts", exact=True).first.click()
    expect(page.get_by_text("tier1-sample-verdict").first).to_be_visible()
    table = served.artifacts(made["id"])["tier1-sample-metrics"]
    page.goto(f"{served.url}/v2/artifacts/artifact/{table['id']}")
    expect(page.get_by_text("hit_rate@1", exact=True).first).to_be_visible()
    expect(page.get_by_text("+0.000 (", exact=False).first).to_be_visible()  # since the run through the API
    expect(page.get_by_text("tier1 sample · 20").first).to_be_visible()
    assert {one.failure for one in foreign(asked)} <= {"csp"}, [one.url for one in foreign(asked)]


def test_what_a_text_would_ask_of_another_server_does_not_leave(page: Page, served: Serve) -> None:
    body = {"key": "tracked", "type": "markdown", "data": f"Read ![this](http://{FOREIGN}/pixel.png)"}
    made = served.post("/artifacts/", body)
    asked: list[Request] = []
    page.on("requestfailed", lambda request: asked.append(request))
    with page.expect_event("requestfailed", lambda one: FOREIGN in one.url):
        page.goto(f"{served.url}/v2/artifacts/artifact/{made['id']}")
    assert {one.failure for one in foreign(asked)} == {"csp"}


def test_all_deployments_are_on_one_page_and_say_what_they_are(page: Page, served: Serve) -> None:
    page.goto(f"{served.url}/v2/deployments")
    for name, tag in {"ux": "Удобство", "tier1": "Поиск", "nightly": "Ночь"}.items():
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True)).first
        expect(row).to_be_visible()
        expect(row.get_by_text(tag)).to_be_visible()


def test_a_form_offers_what_is_loaded_also_what_was_loaded_since(page: Page, served: Serve) -> None:
    table = served.home / "log.csv"
    table.write_text("id,question,answer\n1,Где столовая?,На первом этаже.\n", encoding="utf-8")
    CommandLine(served.home)("load", "table", str(table), "--into", "cafeteria")
    form = f"{served.url}/v2/deployments/deployment/{served.deployment('tier1')['id']}/run"

    def offered() -> list[str]:
        field = served.deployment("tier1")["parameter_openapi_schema"]["definitions"]["Tier1"]["properties"]["source"]
        return list(field["anyOf"][0]["enum"])

    until("cafeteria among the sources", lambda: "cafeteria" in offered())
    page.goto(form)
    page.get_by_text("sample", exact=True).first.click()
    page.get_by_role("option", name="cafeteria").click()
    expect(page.get_by_text("cafeteria", exact=True).first).to_be_visible()
    # What is not listed is the flow's to judge.
    path = f"/deployments/{served.deployment('tier1')['id']}/create_flow_run"
    unlisted = served.post(path, {"parameters": {"parameters": {"source": "loaded_later", "limit": 5}}})
    assert unlisted["parameters"]["parameters"]["source"] == "loaded_later"
