"""`yarus serve` with a PostgreSQL for Prefect, and killed."""

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

from tests.support.prefect_servers import Serve
from tests.support.processes import free_port
from yarus.db.embedded import server as embedded
from yarus.deployments.prefect.server_process import STOP_S

pytestmark = pytest.mark.slow("process: another yarus serve, on a PostgreSQL of its own")


def programs() -> Path | None:
    """The folder of an installed PostgreSQL's programs; the embedded one has no pg_trgm."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The address of a fresh PostgreSQL server with the usual extensions."""
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL is installed (Debian: postgresql)")
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    with tempfile.TemporaryDirectory(prefix="yarus-prefect-") as home:
        if user:
            os.chown(home, pwd.getpwnam(user).pw_uid, -1)

        def run(program: str, *words: str) -> None:
            command = [folder / program, "-D", f"{home}/data", *words]
            subprocess.run(command, user=user, cwd=home, check=True, stdout=subprocess.DEVNULL)

        port = free_port()
        run("initdb", "--username=prefect", "--auth=trust", "--encoding=UTF8", "--no-sync")
        run("pg_ctl", "-w", "-l", f"{home}/log", "-o", f"-p {port} -h 127.0.0.1 -k ''", "start")
        try:
            yield f"postgresql+psycopg://prefect@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def serve(own_home: Path, postgresql: str) -> Iterator[Serve]:
    """Served with Prefect's database there."""
    serve = Serve(own_home, "--no-schedule", YARUS_PREFECT_DATABASE_URL=postgresql)
    try:
        serve.said("Ctrl-C")
        yield serve
    finally:
        serve.process.kill()
        serve.process.communicate()
        embedded.running(own_home)  # what a killed process has left is stopped by the next user of the home
        serve.close()


def test_prefects_records_are_kept_in_that_database(serve: Serve, postgresql: str) -> None:
    run = serve.ended(serve.trigger("tier1", limit=40))
    assert run["state_type"] == "COMPLETED"
    with psycopg.connect(postgresql.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT state_type::text FROM flow_run WHERE id = %s", [run["id"]]).fetchall()
    assert rows == [("COMPLETED",)]
    assert not (serve.home / "prefect" / "prefect.db").exists()


def test_killed_it_leaves_no_server(serve: Serve) -> None:
    started = [process for process in serve.processes() if "yarus.deployments.process" in " ".join(process.cmdline())]
    assert len(started) == 1
    serve.process.kill()
    serve.process.wait()
    _, alive = psutil.wait_procs(started, timeout=2 * STOP_S)
    assert alive == []
