"""Prefect's UI and the report pages in a browser: they work, ask no other server, and offer what exists.

A page of another origin, in a browser that is logged in, can read nothing, run nothing, and not listen.
"""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

from tests.support.browser import PATIENCE_MS, chromium
from tests.support.command_line import CommandLine
from tests.support.prefect_servers import Serve
from tests.support.processes import until
from yarus.deployments.prefect.server_access import link

pytestmark = pytest.mark.slow("browser: Prefect's UI; what is refused is tested in test_guard.py, too")
expect.set_options(timeout=PATIENCE_MS)
FOREIGN = "tracker.example"
PAGES = ("/dashboard", "/runs", "/flows", "/deployments", "/work-pools", "/blocks", "/automations")
GO = "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate', {state: null})); }"
"""As a link of the UI does, which loads nothing anew but what that page needs."""
SECRET = "s3cret-of-a-block"
NAME = "rebound.example"
"""A name that the attacker has lead to this machine."""
# Each attempt as the attacker would make it; what comes of it as text.
ATTACK = """async ({api, events, reports, deployment, command}) => {
  const text = async (url, body) => {
    try {
      const asked = body ? {method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "text/plain"}} : {};
      const reply = await fetch(url, asked);
      return `${reply.status} ${await reply.text()}`;
    } catch (error) { return "unreadable"; }
  };
  const blind = async (url, body) => {
    try { await fetch(url, {method: "POST", mode: "no-cors", body: JSON.stringify(body)}); } catch (error) {}
  };
  const heard = () => new Promise(resolve => {
    const socket = new WebSocket(events, ["prefect"]);
    socket.onopen = () => socket.send(JSON.stringify({type: "auth", token: null}));
    socket.onmessage = message => resolve(`heard ${message.data}`);
    socket.onerror = socket.onclose = () => resolve("unheard");
  });
  const run = {parameters: {parameters: {limit: 2}}, job_variables: {command}};
  await blind(`${api}/deployments/${deployment}/create_flow_run`, run);
  return {
    runs: await text(`${api}/flow_runs/filter`, {}),
    version: await text(`${api}/admin/version`),
    token: await text(`${api}/csrf-token?client=evil`),
    secret: await text(`${api}/block_documents/filter`, {include_secrets: true}),
    started: await text(`${api}/deployments/${deployment}/create_flow_run`, run),
    events: await heard(),
    reports: await text(`${reports}/`),
  };
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as started:
        yield started


@pytest.fixture(scope="module")
def logged_in(browser: Browser, served: Serve) -> Iterator[BrowserContext]:
    """A browser whose owner uses Yarus by the link that it has printed."""
    CommandLine(served.home)(
        "alerts", "apply", "--webhook", f"http://127.0.0.1:9/{SECRET}", env={"PREFECT_API_URL": f"{served.url}/api"}
    )
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(link(served.url, served.password))
    expect(page).to_have_url(re.compile("/dashboard"))
    expect(page.get_by_role("link", name="Deployments")).to_be_visible()  # not before one is let in
    yield context
    context.close()


@pytest.fixture
def page(logged_in: BrowserContext) -> Iterator[Page]:
    opened = logged_in.new_page()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def run(served: Serve) -> dict[str, Any]:
    return served.ended(served.trigger("tier1", limit=20))


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """A web server of others, on another port of this machine."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Kittens</title>")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def attacked(context: BrowserContext, served: Serve, page_at: str, *, host: str, marker: Path) -> dict[str, str]:
    """What a page at an address gets, that asks our servers by that host name."""
    page = context.new_page()
    page.goto(page_at)
    given = {
        "api": f"http://{host}:{served.port}/api",
        "events": f"ws://{host}:{served.port}/api/events/out",
        "reports": f"http://{host}:{served.report_port}",
        "deployment": served.deployment("tier1")["id"],
        "command": f"touch '{marker}'",
    }
    found: dict[str, str] = page.evaluate(ATTACK, given)
    page.close()
    return found


def runs(served: Serve) -> list[str]:
    found = served.post("/flow_runs/filter")
    return [run["id"] for run in found if not run["auto_scheduled"]]


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
    return said.type == "error" and not (
        forbidden or place.endswith((".ico", ".svg", "x16.png", "x32.png")) or place.startswith("/api/")
    )


def go(page: Page, path: str, asked: list[Request], ended: list[Request]) -> None:
    """Goes on as by a link, until all that the page asks for has come: `networkidle` is told once a document."""
    before = known = len(asked)
    page.evaluate(GO, path)
    while len(asked) == known or not before == len(asked) == len(ended):
        before = len(asked)
        page.wait_for_timeout(500)


def test_no_page_asks_another_server(browser: Browser, served: Serve, run: dict[str, Any]) -> None:
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        page, asked, ended, complaints = context.new_page(), list[Request](), list[Request](), list[str]()
        page.on("request", lambda request: asked.append(request))
        for end in ("requestfinished", "requestfailed"):
            page.on(end, lambda request: ended.append(request))
        page.on(
            "console",
            lambda said: complaints.append(f"{said.location['url']}: {said.text}") if complains(said) else None,
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(link(served.url, served.password))
        expect(page).to_have_url(re.compile("/dashboard"))
        form = f"/deployments/deployment/{served.deployment('tier1')['id']}/run"
        artifact = f"/artifacts/artifact/{served.artifacts(run['id'])['tier1-sample-metrics']['id']}"
        for ui in ("/v2", ""):  # the one that people see, and the one before it
            page.goto(f"{served.url}{ui}{PAGES[0]}")
            page.wait_for_load_state("networkidle")
            for path in (*PAGES[1:], form, f"/runs/flow-run/{run['id']}", artifact):
                go(page, f"{ui}{path}", asked, ended)
                assert urlsplit(page.url).path == f"{ui}{path}"
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
    page.evaluate(GO, f"/v2/runs/flow-run/{made['id']}")
    expect(page.get_by_text("tier1 sample · 20").first).to_be_visible()
    page.get_by_text("Artifacts", exact=True).first.click()
    expect(page.get_by_text("tier1-sample-verdict").first).to_be_visible()
    table = served.artifacts(made["id"])["tier1-sample-metrics"]
    page.evaluate(GO, f"/v2/artifacts/artifact/{table['id']}")
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
    later = {"type": "SCHEDULED", "state_details": {"scheduled_time": "2100-01-01T00:00:00Z"}}
    unlisted = served.post(path, {"parameters": {"parameters": {"source": "loaded_later", "limit": 5}}, "state": later})
    assert unlisted["parameters"]["parameters"]["source"] == "loaded_later"


def test_the_owner_gets_in_by_the_link(logged_in: BrowserContext, served: Serve) -> None:
    page = logged_in.pages[0]
    assert page.evaluate("atob(localStorage.getItem('prefect-password'))") == served.password
    assert "#" not in page.url
    page.goto(f"{served.url}/deployments")
    expect(page.get_by_text("tier1").first).to_be_visible()
    reply = page.goto(served.reports)  # one link opens both
    assert reply is not None
    assert reply.status == 200
    cookies: list[Any] = [cookie for cookie in logged_in.cookies() if cookie["name"].startswith("yarus-")]
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Lax")]
    assert served.password.partition(":")[2] not in cookies[0]["value"]


def test_others_do_not(browser: Browser, served: Serve) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{served.url}/enter#yarus:guessed")
        expect(page.get_by_text("This link does not fit")).to_be_visible()
        page.goto(served.url)
        expect(page).to_have_url(re.compile("/login"))
        expect(page.get_by_role("button", name="Login")).to_be_visible()
        expect(page.get_by_role("link", name="Deployments")).to_have_count(0)
        reply = context.request.get(served.reports)
        assert (reply.status, "Basic" in reply.headers["www-authenticate"]) == (401, True)


def test_a_page_of_another_port_gets_nothing(
    logged_in: BrowserContext, served: Serve, elsewhere: str, tmp_path: Path
) -> None:
    before = runs(served)
    found = attacked(logged_in, served, elsewhere, host="127.0.0.1", marker=tmp_path / "marker")
    assert found.pop("events") == "unheard"
    assert set(found.values()) == {"unreadable"}
    assert runs(served) == before
    assert not (tmp_path / "marker").exists()


def test_a_name_that_was_lead_to_this_machine_gets_nothing(
    logged_in: BrowserContext, served: Serve, tmp_path: Path
) -> None:
    before = runs(served)
    kittens = f"http://{NAME}:{served.port}/kittens"  # our refusal, which has the origin that the attacker's page has
    found = attacked(logged_in, served, kittens, host=NAME, marker=tmp_path / "marker")
    assert found.pop("events") == "unheard"
    assert found.pop("reports") == "unreadable"  # another port is another origin
    assert all(said.startswith("403 ") and "YARUS_SERVE_NAMES" in said for said in found.values()), found
    reports = f"http://{NAME}:{served.report_port}/kittens"
    found = attacked(logged_in, served, reports, host=NAME, marker=tmp_path / "marker")
    assert found["reports"].startswith("403 ")
    assert runs(served) == before
    assert not (tmp_path / "marker").exists()


def test_the_password_stands_in_no_log_and_no_record(logged_in: BrowserContext, served: Serve) -> None:
    """After all that was done with it above; and no process has it among the words that started it."""
    secret = served.password.partition(":")[2].encode()
    kept = [path for path in served.home.rglob("*") if path.is_file() and "postgres" not in path.parts]
    assert [path.name for path in kept if secret in path.read_bytes()] == ["password"]
    started = [Path(f"/proc/{process.pid}/cmdline") for process in served.processes()]
    assert not any(secret in words.read_bytes() for words in started if words.exists())
    assert (served.home / "prefect" / "password").stat().st_mode & 0o777 == 0o600
