"""`yarus serve`: server, deployments, worker and report pages, from one start to one stop."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
from dotenv import dotenv_values

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.home import make
from yarus.deployments import server
from yarus.deployments.pages import report_server
from yarus.deployments.prefect import home_server, server_access, server_process
from yarus.deployments.prefect.local_server import READY_S, let_in, require_compatible
from yarus.deployments.prefect.server_process import ServerUnavailable
from yarus.tasks.config.checkout import commit
from yarus.tasks.config.settings import PREFIX, settings
from yarus.tasks.config.texts import texts

if TYPE_CHECKING:
    from yarus.deployments.choices import Offered
    from yarus.deployments.registration import Declared
    from yarus.deployments.worker import Worker

log = logging.getLogger("yarus")
CANCEL_S = 30.0
"""Longest wait for running evaluations to stop."""
OFFER_S = 5.0
"""How often it is looked whether there are other sources, for the forms to offer."""


class Serving(NamedTuple):
    """What is served, and where."""

    ui: str
    reports: str
    labels: str
    deployments: int
    api: str
    night: str
    """What will be run at night, or why nothing will."""
    renamed: str = ""
    """Names of people's own deployments of our flows whose former entrypoints were updated, if there were any."""


def serve(
    *,
    host: str,
    port: int,
    report_port: int,
    scheduled: bool,
    source: str | None,
    ready: Callable[[Serving], None],
) -> None:
    """Serves until it is stopped by Ctrl-C or SIGTERM; what runs then is cancelled and can be resumed.

    Args:
        host: where server and pages listen.
        port: of the Prefect server, where PREFECT_API_URL names no other.
        report_port: of the report pages.
        scheduled: whether the deployments' schedules are active.
        source: of the night; None for the one that prefect.yaml names.
        ready: called when all of it works.

    Raises:
        InputError: a host or a setting that cannot be.
        ServerUnavailable: a port is taken, or the Prefect server does not answer, is too old, or has ended.
        DatabaseUnavailable: our database or Prefect's cannot be used.
    """
    given = server_access.given("PREFECT_API_URL")
    home = settings().home.absolute()
    server.require_free(host, report_port, "--report-port")
    if not given:
        server.require_free(host, port, "--port")
    password = server_access.password_for(home, host)
    api = given or f"http://{_reached(host)}:{port}/api"
    reports = f"http://{_seen(host)}:{report_port}"
    _prepare(home, host, port, reports)
    if given:
        let_in()
        require_compatible(given)
    else:
        os.environ |= server_access.protection(api, password)
        server_access.past_proxies(api)
    words = home / "prefect" / "server.log"
    seen = given.removesuffix("/api") if given else f"http://{_seen(host)}:{port}"
    os.environ.setdefault("PREFECT_UI_URL", seen if given else f"{seen}/v2")  # what links in alerts begin with
    ui = seen if given else server_access.link(seen, password)
    with suppress(KeyboardInterrupt), nullcontext() if given else _running(home, host, port, words) as process:
        deployments, night = _everything_imported(source, scheduled=scheduled)  # while the server starts
        if process:
            _wait_until_ready(api, words)
        with report_server.serving(home / "reports", host, report_port, password) as pages:
            linked, labels = server_access.link(reports, password), f"{reports}{pages.labels.path}"
            serving = Serving(ui, linked, labels, len(deployments), api, night)
            asyncio.run(
                _work(
                    deployments,
                    process,
                    words,
                    scheduled=scheduled,
                    ready=lambda renamed: ready(serving._replace(renamed=renamed)),
                )
            )


def _wait_until_ready(api: str, words: Path) -> None:
    try:
        require_compatible(api, f"the server at {api}", READY_S)
    except ServerUnavailable:
        raise server_process.not_started(words, os.environ[home_server.DATABASE]) from None


@contextmanager
def _running(home: Path, host: str, port: int, words: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The server while the block lasts; other commands of this home find its password meanwhile."""
    with server.bound(host, port, "--port") as listener:
        process = server_process.start(listener, words, {})
    try:
        with home_server.announced(home, os.environ["PREFECT_API_URL"]):
            yield process
    finally:
        server_process.stop(process)


def _prepare(home: Path, host: str, port: int, reports: str) -> None:
    """Puts into the environment what server, worker and the runs that it starts go by; what the user has set stays."""
    for part in ("prefect", "reports"):
        make(home / part, home)
    found = settings()
    url = found.prefect_database_url.get_secret_value() if found.prefect_database_url else None
    database = server.database_of(home, url)
    # Runs start in a process of their own, which may stand elsewhere: they get what `.env` says, and whole paths.
    for name, value in dotenv_values(".env").items():
        if name.upper().startswith(PREFIX) and value is not None:
            os.environ.setdefault(name.upper(), value)
    os.environ |= {"PWD": str(Path.cwd()), "YARUS_HOME": str(home), "GIT_VERSION": built_from()}
    os.environ |= {"PREFECT_SERVER_API_HOST": host, "PREFECT_SERVER_API_PORT": str(port)}
    for name, value in {
        "PREFECT_API_DATABASE_CONNECTION_URL": database,
        "PREFECT_UI_API_URL": "/api",  # by whatever name the browser knows this machine
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "prefect" / "storage"),
        "PYTHONSAFEPATH": "1",  # no file of the current folder is taken for a module of Prefect's
        "YARUS_REPORT_URL": reports,
    }.items():
        os.environ.setdefault(name, value)


def built_from() -> str:
    """Return the version of Yarus, with the commit if it is a git checkout: `0.1.0+862e072`."""
    code = commit()
    suffix = f"+{code.sha[:7]}{'-dirty' * code.is_dirty}" if code else ""
    return f"{version('yarus')}{suffix}"


def _everything_imported(source: str | None, *, scheduled: bool) -> tuple[list["Declared"], str]:
    """The deployments, their flows imported: what cannot run is found here; and what is said of the night.

    Our database is started, too.
    """
    from yarus.deployments.night import plan_night
    from yarus.deployments.registration import declared, flow_of
    from yarus.tasks.config.connections import database

    database()
    deployments = declared()
    for deployment in deployments:
        flow_of(deployment)
    if not scheduled:
        return deployments, texts("night", settings().language)["unscheduled"]
    return deployments, plan_night(deployments, source).sentence


async def _work(
    deployments: list["Declared"],
    process: "subprocess.Popen[bytes] | None",
    words: Path,
    *,
    scheduled: bool,
    ready: Callable[[str], None],
) -> None:
    from prefect.client.orchestration import get_client

    from yarus.deployments.choices import offered
    from yarus.deployments.registration import register

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with get_client() as client:
        found = await asyncio.to_thread(offered)
        renamed = await register(client, deployments, found, scheduled=scheduled)
    pool = deployments[0]["work_pool"]["name"]
    async with _working(pool) as (worker, working), _offering(deployments, found):
        if not stop.is_set():
            ready(", ".join(renamed))
        while not (stop.is_set() or working.done() or (process and process.poll() is not None)):  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(0.2)
        if process and process.poll() is not None:
            raise ServerUnavailable("Prefect's server stopped unexpectedly; see {words}", words=words)
        if not working.done():
            await worker.cancel_runs(CANCEL_S)
        if working.done() and not stop.is_set():
            working.result()


@asynccontextmanager
async def _working(pool: str) -> AsyncIterator[tuple["Worker", "asyncio.Task[None]"]]:
    """A worker of the pool while the block lasts."""
    from yarus.deployments.worker import Worker

    worker = Worker(pool, name=f"yarus serve on {socket.gethostname()}")
    working = asyncio.create_task(worker.start(printer=log.debug))
    try:
        yield worker, working
    finally:
        working.cancel()
        await asyncio.wait([working])


@asynccontextmanager
async def _offering(deployments: list["Declared"], found: "Offered") -> AsyncIterator[None]:
    """While the block lasts, the forms offer what was loaded, frozen or removed meanwhile."""
    from prefect.client.orchestration import get_client

    from yarus.deployments.choices import offered
    from yarus.deployments.registration import offer

    async def look() -> None:
        known = found
        while True:
            await asyncio.sleep(OFFER_S)
            with suppress(DatabaseUnavailable, InputError, httpx.HTTPError):  # it is looked at again
                if (now := await asyncio.to_thread(offered)) != known:
                    async with get_client() as client:
                        await offer(client, deployments, now)
                    known = now

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()


def _reached(host: str) -> str:
    """The name by which this machine reaches what listens at the host."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104


def _seen(host: str) -> str:
    """The name by which people reach it."""
    return socket.gethostname() if host in ("0.0.0.0", "::") else _reached(host)  # noqa: S104
