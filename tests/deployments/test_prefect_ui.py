"""Prefect's UI and the report pages in a browser: they work, contact no other server, and offer existing values.

A page of another origin, in a browser that is logged in, can neither read, run nor listen.
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

from tests.support.browser import PATIENCE_MS, open_chromium
from tests.support.command_line import CommandLine
from tests.support.prefect_servers import ServeProcess
from tests.support.processes import wait_for
from yarus.deployments.prefect.server_access import login_link

pytestmark = pytest.mark.slow("browser: Prefect's UI; what is refused is tested in test_guard.py, too")
expect.set_options(timeout=PATIENCE_MS)
FOREIGN = "tracker.example"
PAGES = ("/dashboard", "/runs", "/flows", "/deployments", "/work-pools", "/blocks", "/automations")
GO = "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate', {state: null})); }"
"""Navigate like a link of the UI, which loads only what that page needs."""
SECRET = "s3cret-of-a-block"
NAME = "rebound.example"
"""A name that the attacker has directed to this machine."""
# The attempts of an attacker, with their results as text.
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
    with open_chromium(f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as started:
        yield started


@pytest.fixture(scope="module")
def logged_in(browser: Browser, served: ServeProcess) -> Iterator[BrowserContext]:
    """Log in a browser with the printed link."""
    CommandLine(served.home)(
        "alerts", "apply", "--webhook", f"http://127.0.0.1:9/{SECRET}", env={"PREFECT_API_URL": f"{served.url}/api"}
    )
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(login_link(served.url, served.password))
    expect(page).to_have_url(re.compile("/dashboard"))
    expect(page.get_by_role("link", name="Deployments")).to_be_visible()  # visible only after the login
    yield context
    context.close()


@pytest.fixture
def page(logged_in: BrowserContext) -> Iterator[Page]:
    opened = logged_in.new_page()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def run(served: ServeProcess) -> dict[str, Any]:
    return served.ended(served.trigger("tier1", limit=20))


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """Run a foreign web server on another port of this machine."""

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


def attack(context: BrowserContext, served: ServeProcess, page_at: str, *, host: str, marker: Path) -> dict[str, str]:
    """Return what a page at an address gets when it calls our servers by that host name."""
    page = context.new_page()
    page.goto(page_at)
    targets = {
        "api": f"http://{host}:{served.port}/api",
        "events": f"ws://{host}:{served.port}/api/events/out",
        "reports": f"http://{host}:{served.report_port}",
        "deployment": served.deployment("tier1")["id"],
        "command": f"touch '{marker}'",
    }
    results: dict[str, str] = page.evaluate(ATTACK, targets)
    page.close()
    return results


def list_runs(served: ServeProcess) -> list[str]:
    flow_runs = served.post("/flow_runs/filter")
    return [run["id"] for run in flow_runs if not run["auto_scheduled"]]


def foreign_requests(requests: list[Request]) -> list[Request]:
    return [
        request
        for request in requests
        if urlsplit(request.url).hostname != "127.0.0.1" and not request.url.startswith(("data:", "blob:"))
    ]


def is_complaint(message: ConsoleMessage) -> bool:
    """Return whether a console message is a real error.

    Missing icons of Prefect, refusals of its own API, and requests that our policy forbids are expected.
    """
    is_forbidden = "Content Security Policy" in message.text and "amplitude.com" in message.text
    path = urlsplit(message.location["url"]).path
    return message.type == "error" and not (
        is_forbidden or path.endswith((".ico", ".svg", "x16.png", "x32.png")) or path.startswith("/api/")
    )


def navigate(page: Page, path: str, requests: list[Request], ended: list[Request]) -> None:
    """Navigate like a link, and wait until all requests have ended: `networkidle` comes once per document."""
    before = requests_before = len(requests)
    page.evaluate(GO, path)
    while len(requests) == requests_before or not before == len(requests) == len(ended):
        before = len(requests)
        page.wait_for_timeout(500)


def test_pages_contact_no_other_server(browser: Browser, served: ServeProcess, run: dict[str, Any]) -> None:
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        page, requests, ended, complaints = context.new_page(), list[Request](), list[Request](), list[str]()
        page.on("request", lambda request: requests.append(request))
        for end in ("requestfinished", "requestfailed"):
            page.on(end, lambda request: ended.append(request))
        page.on(
            "console",
            lambda message: (
                complaints.append(f"{message.location['url']}: {message.text}") if is_complaint(message) else None
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(login_link(served.url, served.password))
        expect(page).to_have_url(re.compile("/dashboard"))
        form = f"/deployments/deployment/{served.deployment('tier1')['id']}/run"
        artifact = f"/artifacts/artifact/{served.artifacts(run['id'])['tier1-sample-metrics']['id']}"
        for ui in ("/v2", ""):  # the current UI, and the older one
            page.goto(f"{served.url}{ui}{PAGES[0]}")
            page.wait_for_load_state("networkidle")
            for path in (*PAGES[1:], form, f"/runs/flow-run/{run['id']}", artifact):
                navigate(page, f"{ui}{path}", requests, ended)
                assert urlsplit(page.url).path == f"{ui}{path}"
                expect(page.get_by_text("Work Pools", exact=True).first).to_be_visible()
        page.goto(login_link(served.reports, served.password))
        page.wait_for_load_state("networkidle")
        page.goto(re.findall(r"\((\S+)\)", served.artifacts(run["id"])["tier1-sample-report"]["data"])[0])
        page.wait_for_load_state("networkidle")
        assert {request.failure for request in foreign_requests(requests)} <= {"csp"}, [
            request.url for request in foreign_requests(requests)
        ]
        assert complaints == []


def test_run_started_in_the_browser(page: Page, served: ServeProcess, run: dict[str, Any]) -> None:
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))
    page.goto(f"{served.url}/v2/deployments/deployment/{served.deployment('tier1')['id']}/run")
    expect(page.get_by_text("Откуда вопросы: загруженный источник").first).to_be_visible()
    expect(page.get_by_text("Например: 200").first).to_be_visible()
    page.get_by_role("tab", name="int").first.click()
    page.locator("input[type=number]").first.fill("20")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile("tab=Runs|/runs/"))
    newest = {"sort": "EXPECTED_START_TIME_DESC", "limit": 1, "flow_runs": {"tags": {"all_": ["tier1"]}}}
    [new_run] = served.post("/flow_runs/filter", newest)
    assert new_run["parameters"]["parameters"]["limit"] == 20
    assert served.ended(new_run["id"])["state_name"] == "Completed"
    page.evaluate(GO, f"/v2/runs/flow-run/{new_run['id']}")
    expect(page.get_by_text("tier1 sample · 20").first).to_be_visible()
    page.get_by_text("Artifacts", exact=True).first.click()
    expect(page.get_by_text("tier1-sample-verdict").first).to_be_visible()
    table = served.artifacts(new_run["id"])["tier1-sample-metrics"]
    page.evaluate(GO, f"/v2/artifacts/artifact/{table['id']}")
    expect(page.get_by_text("hit_rate@1", exact=True).first).to_be_visible()
    expect(page.get_by_text("+0.000 (", exact=False).first).to_be_visible()  # since the run through the API
    expect(page.get_by_text("tier1 sample · 20").first).to_be_visible()
    assert {request.failure for request in foreign_requests(requests)} <= {"csp"}, [
        request.url for request in foreign_requests(requests)
    ]


def test_images_of_other_servers_are_blocked(page: Page, served: ServeProcess) -> None:
    body = {"key": "tracked", "type": "markdown", "data": f"Read ![this](http://{FOREIGN}/pixel.png)"}
    artifact = served.post("/artifacts/", body)
    requests: list[Request] = []
    page.on("requestfailed", lambda request: requests.append(request))
    with page.expect_event("requestfailed", lambda request: FOREIGN in request.url):
        page.goto(f"{served.url}/v2/artifacts/artifact/{artifact['id']}")
    assert {request.failure for request in foreign_requests(requests)} == {"csp"}


def test_deployments_page_shows_tags(page: Page, served: ServeProcess) -> None:
    page.goto(f"{served.url}/v2/deployments")
    for name, tag in {"ux": "Удобство", "tier1": "Поиск", "nightly": "Ночь"}.items():
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True)).first
        expect(row).to_be_visible()
        expect(row.get_by_text(tag)).to_be_visible()


def test_form_offers_sources_loaded_later(page: Page, served: ServeProcess) -> None:
    table = served.home / "log.csv"
    table.write_text("id,question,answer\n1,Где столовая?,На первом этаже.\n", encoding="utf-8")
    CommandLine(served.home)("load", "table", str(table), "--into", "cafeteria")
    form = f"{served.url}/v2/deployments/deployment/{served.deployment('tier1')['id']}/run"

    def read_choices() -> list[str]:
        field = served.deployment("tier1")["parameter_openapi_schema"]["definitions"]["Tier1"]["properties"]["source"]
        return list(field["anyOf"][0]["enum"])

    wait_for("cafeteria among the sources", lambda: "cafeteria" in read_choices())
    page.goto(form)
    page.get_by_text("sample", exact=True).first.click()
    page.get_by_role("option", name="cafeteria").click()
    expect(page.get_by_text("cafeteria", exact=True).first).to_be_visible()
    # The flow checks values that are not listed.
    path = f"/deployments/{served.deployment('tier1')['id']}/create_flow_run"
    later = {"type": "SCHEDULED", "state_details": {"scheduled_time": "2100-01-01T00:00:00Z"}}
    unlisted = served.post(path, {"parameters": {"parameters": {"source": "loaded_later", "limit": 5}}, "state": later})
    assert unlisted["parameters"]["parameters"]["source"] == "loaded_later"


def test_link_logs_the_owner_in(logged_in: BrowserContext, served: ServeProcess) -> None:
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


def test_wrong_password_is_refused(browser: Browser, served: ServeProcess) -> None:
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


def test_page_of_another_port_is_refused(
    logged_in: BrowserContext, served: ServeProcess, elsewhere: str, tmp_path: Path
) -> None:
    before = list_runs(served)
    results = attack(logged_in, served, elsewhere, host="127.0.0.1", marker=tmp_path / "marker")
    assert results.pop("events") == "unheard"
    assert set(results.values()) == {"unreadable"}
    assert list_runs(served) == before
    assert not (tmp_path / "marker").exists()


def test_page_of_a_rebound_name_is_refused(logged_in: BrowserContext, served: ServeProcess, tmp_path: Path) -> None:
    before = list_runs(served)
    kittens = f"http://{NAME}:{served.port}/kittens"  # our refusal, which has the origin of the attacker's page
    results = attack(logged_in, served, kittens, host=NAME, marker=tmp_path / "marker")
    assert results.pop("events") == "unheard"
    assert results.pop("reports") == "unreadable"  # another port is another origin
    assert all(result.startswith("403 ") and "YARUS_SERVE_ALLOWED_HOSTS" in result for result in results.values()), (
        results
    )
    reports = f"http://{NAME}:{served.report_port}/kittens"
    results = attack(logged_in, served, reports, host=NAME, marker=tmp_path / "marker")
    assert results["reports"].startswith("403 ")
    assert list_runs(served) == before
    assert not (tmp_path / "marker").exists()


def test_password_is_in_no_log_and_no_record(logged_in: BrowserContext, served: ServeProcess) -> None:
    """Search all files after the other tests, and the command lines of processes."""
    secret = served.password.partition(":")[2].encode()
    files = [path for path in served.home.rglob("*") if path.is_file() and "postgres" not in path.parts]
    assert [path.name for path in files if secret in path.read_bytes()] == ["password"]
    command_lines = [Path(f"/proc/{process.pid}/cmdline") for process in served.processes()]
    assert not any(secret in command_line.read_bytes() for command_line in command_lines if command_line.exists())
    assert (served.home / "prefect" / "password").stat().st_mode & 0o777 == 0o600
