"""Prefect servers: those a command starts, that of `yarus serve`, and their records of a run. Imported by full name."""

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

from tests.support.command_line import Document, make_environment
from tests.support.processes import find_free_port
from yarus.deployments.prefect.server_process import SQLITE


def get_state(server: Mapping[str, str], flow_run_id: str) -> str:
    """Return the type of a flow run's state on a Prefect server."""
    run = httpx.get(f"{server['PREFECT_API_URL']}/flow_runs/{flow_run_id}", timeout=30).raise_for_status().json()
    return str(run["state"]["type"])


def get_state_names(server: Mapping[str, str], flow_run_id: str) -> list[str]:
    """Return the names of all states that a flow run has had."""
    url = f"{server['PREFECT_API_URL']}/flow_run_states/"
    states = httpx.get(url, params={"flow_run_id": flow_run_id}, timeout=30).raise_for_status().json()
    return [state["name"] for state in sorted(states, key=lambda state: state["timestamp"])]


def get_error_messages(server: Mapping[str, str], flow_run_id: str) -> list[str]:
    """Return the errors that a flow run and its tasks have logged."""
    body = {"logs": {"flow_run_id": {"any_": [flow_run_id]}, "level": {"ge_": 40}}, "limit": 200}
    records = httpx.post(f"{server['PREFECT_API_URL']}/logs/filter", json=body, timeout=30).raise_for_status().json()
    return [line["message"] for line in records]


def get_task_states(server: Mapping[str, str], flow_run_id: str) -> set[str]:
    """Return the names of the states of a flow run's tasks."""
    body = {"flow_runs": {"id": {"any_": [flow_run_id]}}}
    url = f"{server['PREFECT_API_URL']}/task_runs/filter"
    task_runs = httpx.post(url, json=body, timeout=30).raise_for_status().json()
    return {run["state"]["name"] for run in task_runs}


def set_state(server: Mapping[str, str], flow_run_id: str, state: str, name: str) -> None:
    """Set the state of a flow run, as its page in the UI does."""
    body = {"state": {"type": state, "name": name}, "force": True}
    url = f"{server['PREFECT_API_URL']}/flow_runs/{flow_run_id}/set_state"
    httpx.post(url, json=body, timeout=30).raise_for_status()


def create_prefect_database(path: Path) -> None:
    """Have Prefect make its tables in a new SQLite database, which takes ten seconds."""
    variables = os.environ | {
        "PREFECT_HOME": str(path.parent),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"{SQLITE}{path}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "-y"]
    subprocess.run(command, env=variables, capture_output=True, check=True)


def list_servers(pid: int) -> list[psutil.Process]:
    """Return the server processes that the command has started."""
    children = psutil.Process(pid).children()
    return [process for process in children if "yarus.deployments.process" in process.cmdline()]


def is_listening(process: psutil.Process) -> bool:
    return any(connection.status == psutil.CONN_LISTEN for connection in process.net_connections())


def is_answering(process: psutil.Process) -> bool:
    return any(connection.status == psutil.CONN_ESTABLISHED for connection in process.net_connections("tcp"))


PATIENCE_S = 200
# The worker polls often and submits no run early: scheduled runs would refuse one another.
# The server, too, polls often for new schedules of deployments: its default is once a minute.
FAST_POLLING = {"PREFECT_WORKER_QUERY_SECONDS": "1", "PREFECT_WORKER_PREFETCH_SECONDS": "1"}
FAST_POLLING |= {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "3"}


class ServeProcess:
    """`yarus serve` in a process of its own, by default at home, with a client of its API."""

    def __init__(
        self, home: Path, *options: str, python: str = sys.executable, folder: Path | None = None, **variables: str
    ) -> None:
        self.home, self.port, self.report_port = home, find_free_port(), find_free_port()
        ports = ("--port", str(self.port), "--report-port", str(self.report_port))
        self.process = subprocess.Popen(
            [python, "-m", "yarus", "serve", *ports, *options],
            env=make_environment(home) | FAST_POLLING | variables,
            cwd=folder or home,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.url = f"http://127.0.0.1:{self.port}"
        self.reports = f"http://127.0.0.1:{self.report_port}"

    @cached_property
    def password(self) -> str:
        """Return the password in the printed links."""
        return (self.home / "prefect" / "password").read_text(encoding="utf-8")

    @cached_property
    def client(self) -> httpx.Client:
        """Return an authorised client, as Prefect's own is."""
        name, _, secret = self.password.partition(":")
        http_client = httpx.Client(base_url=f"{self.url}/api", timeout=60, auth=(name, secret))
        token = http_client.get("/csrf-token", params={"client": "tests"}).raise_for_status().json()["token"]
        http_client.headers.update({"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": "tests"})
        return http_client

    def page(self, url: str) -> httpx.Response:
        """Return a report page."""
        name, _, secret = self.password.partition(":")
        return httpx.get(url, auth=(name, secret), timeout=60)

    def said(self, word: str) -> list[str]:
        """Return the printed lines up to the one with that word."""
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
        """Start a run of a deployment, and return its id."""
        path = f"/deployments/{self.deployment(name)['id']}/create_flow_run"
        return str(self.post(path, {"parameters": {"parameters": parameters}})["id"])

    def run(self, flow_run_id: str) -> Document:
        return dict(self.client.get(f"/flow_runs/{flow_run_id}").json())

    def ended(self, flow_run_id: str) -> Document:
        """Wait for the end of a run, and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            run = self.run(flow_run_id)
            if run["state_type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
                return run
            time.sleep(0.2)
        pytest.fail(f"{run['name']} is {run['state']['name']} after {PATIENCE_S} s")

    def artifacts(self, flow_run_id: str) -> dict[str, Any]:
        """Return the artifacts of a run by key."""
        records = self.post("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [flow_run_id]}}})
        return {artifact["key"]: artifact for artifact in records if artifact["key"]}

    def log_line(self, flow_run_id: str, words: str) -> str:
        """Return the line of a run's log with those words.

        Lines reach the server in batches, some after the run's end.
        """
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            records = self.post("/logs/filter", {"logs": {"flow_run_id": {"any_": [flow_run_id]}}, "limit": 200})
            for line in records:
                if words in line["message"]:
                    return str(line["message"])
            time.sleep(0.2)
        pytest.fail(f"none of {len(records)} lines has {words!r} after {PATIENCE_S} s")

    def processes(self) -> list[psutil.Process]:
        """Return all processes that it has started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        """Close the client, if there is one."""
        if "client" in vars(self):
            self.client.close()

    def stop(self) -> str:
        """Stop it as a service manager would, and return the rest of its output."""
        self.process.terminate()
        try:
            return self.process.communicate(timeout=90)[0]
        finally:
            self.process.kill()


def parse_table_artifact(artifact: Document) -> list[Document]:
    """Return the rows of a table artifact."""
    return list(json.loads(artifact["data"]))
