"""`yarus serve` with a PostgreSQL for Prefect, and after a kill."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.support.prefect_servers import ServeProcess
from tests.support.processes import find_free_port
from yarus.db.embedded import server as embedded
from yarus.deployments.prefect.server_process import STOP_S

pytestmark = pytest.mark.slow("process: another yarus serve, on a PostgreSQL of its own")


def find_programs() -> Path | None:
    """Return the folder of an installed PostgreSQL's programs; the embedded one has no pg_trgm."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return candidates[-1].parent if candidates else Path(on_path).parent if on_path else None


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """Start a new PostgreSQL server with the usual extensions, and yield its address."""
    folder = find_programs()
    if folder is None:
        pytest.skip("no PostgreSQL is installed (Debian: postgresql)")
    user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    with tempfile.TemporaryDirectory(prefix="yarus-prefect-") as home:
        if user:
            os.chown(home, pwd.getpwnam(user).pw_uid, -1)

        def run(program: str, *words: str) -> None:
            command = [folder / program, "-D", f"{home}/data", *words]
            subprocess.run(command, user=user, cwd=home, check=True, stdout=subprocess.DEVNULL)

        port = find_free_port()
        run("initdb", "--username=prefect", "--auth=trust", "--encoding=UTF8", "--lc-messages=C", "--no-sync")
        run("pg_ctl", "-w", "-l", f"{home}/log", "-o", f"-p {port} -h 127.0.0.1 -k ''", "start")
        try:
            yield f"postgresql+psycopg://prefect@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def serve(own_home: Path, postgresql: str) -> Iterator[ServeProcess]:
    """Serve with Prefect's database in PostgreSQL."""
    serve = ServeProcess(own_home, "--no-schedule", YARUS_PREFECT_DATABASE_URL=postgresql)
    try:
        serve.said("Ctrl-C")
        yield serve
    finally:
        serve.process.kill()
        serve.process.communicate()
        embedded.acquire_server(own_home)  # the next user of the home stops what a killed process has left
        serve.close()


def test_prefect_stores_records_in_postgresql(serve: ServeProcess, postgresql: str) -> None:
    run = serve.ended(serve.trigger("tier1", limit=40))
    assert run["state_type"] == "COMPLETED"
    with psycopg.connect(postgresql.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT state_type::text FROM flow_run WHERE id = %s", [run["id"]]).fetchall()
    assert rows == [("COMPLETED",)]
    assert not (serve.home / "prefect" / "prefect.db").exists()


def test_killed_serve_leaves_no_server(serve: ServeProcess) -> None:
    started = [process for process in serve.processes() if "yarus.deployments.process" in " ".join(process.cmdline())]
    assert len(started) == 1
    serve.process.kill()
    serve.process.wait()
    _, alive = psutil.wait_procs(started, timeout=2 * STOP_S)
    assert alive == []
