"""Run `yarus serve`: server, deployments, worker and report pages, from one start to one stop."""

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
from yarus.db.home import make_private_folder
from yarus.deployments import server
from yarus.deployments.pages import report_server
from yarus.deployments.prefect import home_server, server_access, server_process
from yarus.deployments.prefect.local_server import READY_S, require_compatible, use_home_password
from yarus.deployments.prefect.server_process import ServerUnavailable
from yarus.tasks.config.checkout import find_commit
from yarus.tasks.config.settings import ENV_PREFIX, get_settings
from yarus.tasks.config.texts import texts

if TYPE_CHECKING:
    from yarus.deployments.form_choices import FormChoices
    from yarus.deployments.registration import Declaration
    from yarus.deployments.worker import YarusWorker

log = logging.getLogger("yarus")
CANCEL_S = 30.0
"""Longest wait for running evaluations to stop."""
CHOICES_S = 5.0
"""Seconds between checks for other sources, which the forms offer."""


class ServeInfo(NamedTuple):
    """The served addresses."""

    ui: str
    reports: str
    labels: str
    deployments: int
    api: str
    night: str
    """The planned night, or why there is none."""
    renamed: str = ""
    """Names of people's own deployments of our flows whose old entrypoints were updated, if there were any."""


def serve(
    *,
    host: str,
    port: int,
    report_port: int,
    scheduled: bool,
    source: str | None,
    ready: Callable[[ServeInfo], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM; runs in progress are cancelled and can be resumed.

    Args:
        host: the host that server and pages listen on.
        port: the port of the Prefect server, if PREFECT_API_URL is not set.
        report_port: the port of the report pages.
        scheduled: whether the deployments' schedules are active.
        source: the source of the night; None for that of prefect.yaml.
        ready: called when all of it works.

    Raises:
        InputError: a host or a setting is not valid.
        ServerUnavailable: a port is taken, or the Prefect server does not answer, is too old, or has ended.
        DatabaseUnavailable: our database or Prefect's cannot be used.
    """
    api_url = server_access.read_variable("PREFECT_API_URL")
    home = get_settings().home.absolute()
    server.require_free(host, report_port, "--report-port")
    if not api_url:
        server.require_free(host, port, "--port")
    password = server_access.password_for(home, host)
    api = api_url or f"http://{_local_host(host)}:{port}/api"
    reports = f"http://{_public_host(host)}:{report_port}"
    _prepare_environment(home, host, port, reports)
    if api_url:
        use_home_password()
        require_compatible(api_url)
    else:
        os.environ |= server_access.access_settings(api, password)
        server_access.bypass_proxies(api)
    log_path = home / "prefect" / "server.log"
    ui_url = api_url.removesuffix("/api") if api_url else f"http://{_public_host(host)}:{port}"
    os.environ.setdefault("PREFECT_UI_URL", ui_url if api_url else f"{ui_url}/v2")  # what links in alerts begin with
    ui = ui_url if api_url else server_access.login_link(ui_url, password)
    with suppress(KeyboardInterrupt), nullcontext() if api_url else _run_server(home, host, port, log_path) as process:
        deployments, night = _import_flows(source, scheduled=scheduled)  # while the server starts
        if process:
            _wait_until_ready(api, log_path)
        with report_server.serve_reports(home / "reports", host, report_port, password) as pages:
            reports_link, labels = server_access.login_link(reports, password), f"{reports}{pages.labels.path}"
            serving = ServeInfo(ui, reports_link, labels, len(deployments), api, night)
            asyncio.run(
                _run_worker(
                    deployments,
                    process,
                    log_path,
                    scheduled=scheduled,
                    ready=lambda renamed: ready(serving._replace(renamed=renamed)),
                )
            )


def _wait_until_ready(api: str, log_path: Path) -> None:
    try:
        require_compatible(api, f"the server at {api}", READY_S)
    except ServerUnavailable:
        raise server_process.start_error(log_path, os.environ[home_server.DATABASE]) from None


@contextmanager
def _run_server(home: Path, host: str, port: int, log_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the server during the block; meanwhile other commands of this home find its password."""
    with server.bind_socket(host, port, "--port") as listener:
        process = server_process.start(listener, log_path, {})
    try:
        with home_server.announce_server(home, os.environ["PREFECT_API_URL"]):
            yield process
    finally:
        server_process.stop(process)


def _prepare_environment(home: Path, host: str, port: int, reports: str) -> None:
    """Set the environment of the server, the worker and its runs; values that the user has set stay."""
    for part in ("prefect", "reports"):
        make_private_folder(home / part, home)
    settings = get_settings()
    url = settings.prefect_database_url.get_secret_value() if settings.prefect_database_url else None
    database = server.prefect_database_url(home, url)
    # Runs start in their own process, perhaps in another folder: they get the values of `.env`, and full paths.
    for name, value in dotenv_values(".env").items():
        if name.upper().startswith(ENV_PREFIX) and value is not None:
            os.environ.setdefault(name.upper(), value)
    os.environ |= {"PWD": str(Path.cwd()), "YARUS_HOME": str(home), "GIT_VERSION": build_version()}
    os.environ |= {"PREFECT_SERVER_API_HOST": host, "PREFECT_SERVER_API_PORT": str(port)}
    for name, value in {
        "PREFECT_API_DATABASE_CONNECTION_URL": database,
        "PREFECT_UI_API_URL": "/api",  # whatever name the browser uses for this machine
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "ERROR",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "prefect" / "storage"),
        "PYTHONSAFEPATH": "1",  # no file of the current folder is taken for a module of Prefect's
        "YARUS_REPORT_URL": reports,
    }.items():
        os.environ.setdefault(name, value)


def build_version() -> str:
    """Return the version of Yarus, with the commit if it is a git checkout: `0.1.0+862e072`."""
    code = find_commit()
    suffix = f"+{code.sha[:7]}{'-dirty' * code.is_dirty}" if code else ""
    return f"{version('yarus')}{suffix}"


def _import_flows(source: str | None, *, scheduled: bool) -> tuple[list["Declaration"], str]:
    """Return the deployments with their flows imported, so that errors show here, and the text on the night.

    This also starts our database.
    """
    from yarus.deployments.night import plan_night
    from yarus.deployments.registration import load_deployments, load_flow
    from yarus.tasks.config.connections import database

    database()
    deployments = load_deployments()
    for deployment in deployments:
        load_flow(deployment)
    if not scheduled:
        return deployments, texts("night", get_settings().language)["unscheduled"]
    return deployments, plan_night(deployments, source).sentence


async def _run_worker(
    deployments: list["Declaration"],
    process: "subprocess.Popen[bytes] | None",
    log_path: Path,
    *,
    scheduled: bool,
    ready: Callable[[str], None],
) -> None:
    from prefect.client.orchestration import get_client

    from yarus.deployments.form_choices import read_form_choices
    from yarus.deployments.registration import register_deployments

    stop = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    async with get_client() as client:
        choices = await asyncio.to_thread(read_form_choices)
        renamed = await register_deployments(client, deployments, choices, scheduled=scheduled)
    pool = deployments[0]["work_pool"]["name"]
    async with _start_worker(pool) as (worker, working), _update_choices(deployments, choices):
        if not stop.is_set():
            ready(", ".join(renamed))
        while not (stop.is_set() or working.done() or (process and process.poll() is not None)):  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(0.2)
        if process and process.poll() is not None:
            raise ServerUnavailable("Prefect's server stopped unexpectedly; see {words}", words=log_path)
        if not working.done():
            await worker.cancel_runs(CANCEL_S)
        if working.done() and not stop.is_set():
            working.result()


@asynccontextmanager
async def _start_worker(pool: str) -> AsyncIterator[tuple["YarusWorker", "asyncio.Task[None]"]]:
    """Run a worker of the pool during the block."""
    from yarus.deployments.worker import YarusWorker

    worker = YarusWorker(pool, name=f"yarus serve on {socket.gethostname()}")
    working = asyncio.create_task(worker.start(printer=log.debug))
    try:
        yield worker, working
    finally:
        working.cancel()
        await asyncio.wait([working])


@asynccontextmanager
async def _update_choices(deployments: list["Declaration"], choices: "FormChoices") -> AsyncIterator[None]:
    """Update the forms during the block with what was loaded, frozen or removed."""
    from prefect.client.orchestration import get_client

    from yarus.deployments.form_choices import read_form_choices
    from yarus.deployments.registration import update_form_choices

    async def update_forms() -> None:
        registered = choices
        while True:
            await asyncio.sleep(CHOICES_S)
            with suppress(DatabaseUnavailable, InputError, httpx.HTTPError):  # the next check tries again
                if (current := await asyncio.to_thread(read_form_choices)) != registered:
                    async with get_client() as client:
                        await update_form_choices(client, deployments, current)
                    registered = current

    updating = asyncio.create_task(update_forms())
    try:
        yield
    finally:
        updating.cancel()


def _local_host(host: str) -> str:
    """Return the name by which this machine reaches the host."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104


def _public_host(host: str) -> str:
    """Return the name by which people reach the host."""
    return socket.gethostname() if host in ("0.0.0.0", "::") else _local_host(host)  # noqa: S104
