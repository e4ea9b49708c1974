"""A page of another origin, in a browser that is logged in: it can read nothing, run nothing, and not listen."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tasks.orchestration.server_access import link
from tests.support.browser import PATIENCE_MS, executable
from tests.support.command_line import CommandLine
from tests.support.prefect_servers import Serve

expect.set_options(timeout=PATIENCE_MS)
pytestmark = pytest.mark.slow("process: `yarus serve`; what is refused is tested in test_guard.py, too")
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
    rules = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=executable(), args=["--no-sandbox", "--disable-gpu", rules]
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def logged_in(browser: Browser, served: Serve) -> Iterator[BrowserContext]:
    """A browser whose owner uses Yarus by the link that it has printed."""
    CommandLine(served.home)(
        "alerts", "apply", "--webhook", f"http://127.0.0.1:9/{SECRET}", env={"PREFECT_API_URL": f"{served.url}/api"}
    )
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(link(served.url, served.password))
    expect(page).to_have_url(re.compile("/dashboard"))
    expect(page.get_by_role("link", name="Deployments")).to_be_visible()  # not before one is let in
    yield context
    context.close()


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
