"""Prefect servers: those a command starts, one of `yarus serve`, what they have of a run. Imported by full name."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.command_line import Document, environment
from tests.support.processes import free_port
from yarus.deployments.prefect.server_process import SQLITE


def state_of(server: Mapping[str, str], flow_run_id: str) -> str:
    """The type of a flow run's state, as a Prefect server has it."""
    run = httpx.get(f"{server['PREFECT_API_URL']}/flow_runs/{flow_run_id}", timeout=30).raise_for_status().json()
    return str(run["state"]["type"])


def history_of(server: Mapping[str, str], flow_run_id: str) -> list[str]:
    """The names of all states that a flow run has had."""
    url = f"{server['PREFECT_API_URL']}/flow_run_states/"
    states = httpx.get(url, params={"flow_run_id": flow_run_id}, timeout=30).raise_for_status().json()
    return [state["name"] for state in sorted(states, key=lambda state: state["timestamp"])]


def errors_of(server: Mapping[str, str], flow_run_id: str) -> list[str]:
    """What a flow run and its tasks have logged as errors."""
    wanted = {"logs": {"flow_run_id": {"any_": [flow_run_id]}, "level": {"ge_": 40}}, "limit": 200}
    found = httpx.post(f"{server['PREFECT_API_URL']}/logs/filter", json=wanted, timeout=30).raise_for_status().json()
    return [line["message"] for line in found]


def task_states_of(server: Mapping[str, str], flow_run_id: str) -> set[str]:
    """The names of the states of a flow run's tasks."""
    wanted = {"flow_runs": {"id": {"any_": [flow_run_id]}}}
    url = f"{server['PREFECT_API_URL']}/task_runs/filter"
    found = httpx.post(url, json=wanted, timeout=30).raise_for_status().json()
    return {run["state"]["name"] for run in found}


def set_state(server: Mapping[str, str], flow_run_id: str, state: str, name: str) -> None:
    """Sets the state of a flow run, as its page in the UI does."""
    body = {"state": {"type": state, "name": name}, "force": True}
    url = f"{server['PREFECT_API_URL']}/flow_runs/{flow_run_id}/set_state"
    httpx.post(url, json=body, timeout=30).raise_for_status()


def migrate(path: Path) -> None:
    """Have Prefect make its tables in a new SQLite database, which takes ten seconds."""
    variables = os.environ | {
        "PREFECT_HOME": str(path.parent),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"{SQLITE}{path}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "-y"]
    subprocess.run(command, env=variables, capture_output=True, check=True)


def servers(pid: int) -> list[psutil.Process]:
    """The processes of servers that the command has started."""
    found = psutil.Process(pid).children()
    return [process for process in found if "yarus.deployments.process" in process.cmdline()]


def listens(process: psutil.Process) -> bool:
    return any(connection.status == psutil.CONN_LISTEN for connection in process.net_connections())


def answers(process: psutil.Process) -> bool:
    return any(connection.status == psutil.CONN_ESTABLISHED for connection in process.net_connections("tcp"))


PATIENCE_S = 200
# The worker looks often, and no run is submitted long before its time: those of a schedule would refuse one another.
# The server looks often, too, whether there is a schedule that was added to what is deployed: of itself once a minute.
SOON = {"PREFECT_WORKER_QUERY_SECONDS": "1", "PREFECT_WORKER_PREFETCH_SECONDS": "1"}
SOON |= {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "3"}


class Serve:
    """`yarus serve` in a process of its own, by default at home, with a client of its API."""

    def __init__(
        self, home: Path, *options: str, python: str = sys.executable, folder: Path | None = None, **variables: str
    ) -> None:
        self.home, self.port, self.report_port = home, free_port(), free_port()
        ports = ("--port", str(self.port), "--report-port", str(self.report_port))
        self.process = subprocess.Popen(
            [python, "-m", "yarus", "serve", *ports, *options],
            env=environment(home) | SOON | variables,
            cwd=folder or home,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.url = f"http://127.0.0.1:{self.port}"
        self.reports = f"http://127.0.0.1:{self.report_port}"

    @cached_property
    def password(self) -> str:
        """What its links let in by."""
        return (self.home / "prefect" / "password").read_text(encoding="utf-8")

    @cached_property
    def client(self) -> httpx.Client:
        """A client that is let in, as Prefect's own is."""
        name, _, secret = self.password.partition(":")
        made = httpx.Client(base_url=f"{self.url}/api", timeout=60, auth=(name, secret))
        token = made.get("/csrf-token", params={"client": "tests"}).raise_for_status().json()["token"]
        made.headers.update({"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": "tests"})
        return made

    def page(self, url: str) -> httpx.Response:
        """A report page."""
        name, _, secret = self.password.partition(":")
        return httpx.get(url, auth=(name, secret), timeout=60)

    def said(self, word: str) -> list[str]:
        """What it has printed up to the line with that word."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if word in line:
                return lines
        pytest.fail(f"yarus serve ended with {self.process.wait()}: {''.join(lines)}")

    def post(self, path: str, body: Document | None = None) -> Any:
        reply = self.client.post(path, json=body or {})
        assert reply.is_success, reply.text
        return reply.json()

    def deployment(self, name: str) -> Document:
        return dict(self.client.get(f"/deployments/name/{name}/{name}").json())

    def trigger(self, name: str, **parameters: Any) -> str:
        """Starts a run of a deployment; its id."""
        path = f"/deployments/{self.deployment(name)['id']}/create_flow_run"
        return str(self.post(path, {"parameters": {"parameters": parameters}})["id"])

    def run(self, flow_run_id: str) -> Document:
        return dict(self.client.get(f"/flow_runs/{flow_run_id}").json())

    def ended(self, flow_run_id: str) -> Document:
        """The run when it has come to an end."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            run = self.run(flow_run_id)
            if run["state_type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
                return run
            time.sleep(0.2)
        pytest.fail(f"{run['name']} is {run['state']['name']} after {PATIENCE_S} s")

    def artifacts(self, flow_run_id: str) -> dict[str, Any]:
        """The artifacts of a run by key."""
        found = self.post("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [flow_run_id]}}})
        return {artifact["key"]: artifact for artifact in found if artifact["key"]}

    def log_line(self, flow_run_id: str, words: str) -> str:
        """The line of a run's log with those words; lines reach the server in batches, some after the run's end."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = self.post("/logs/filter", {"logs": {"flow_run_id": {"any_": [flow_run_id]}}, "limit": 200})
            for line in found:
                if words in line["message"]:
                    return str(line["message"])
            time.sleep(0.2)
        pytest.fail(f"none of {len(found)} lines has {words!r} after {PATIENCE_S} s")

    def processes(self) -> list[psutil.Process]:
        """All that it has started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        """Closes the client, where there is one."""
        if "client" in vars(self):
            self.client.close()

    def stop(self) -> str:
        """Stops it as a service manager would; what it said to the end."""
        self.process.terminate()
        try:
            return self.process.communicate(timeout=90)[0]
        finally:
            self.process.kill()


def table_of(artifact: Document) -> list[Document]:
    """The rows of a table artifact."""
    return list(json.loads(artifact["data"]))
