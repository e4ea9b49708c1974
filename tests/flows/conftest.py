"""Evaluations that several tests look at, and commands that are run side by side."""

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from sqlalchemy import Engine, text

from tests.conftest import CommandLine, Ran

Document = dict[str, Any]


class Command(NamedTuple):
    """A command line and the variables that it is given; Python code where it is not `yarus` itself that runs."""

    words: tuple[str, ...]
    env: dict[str, str] = {}  # noqa: RUF012 - a default that nobody changes
    script: str | None = None


def together(yarus: CommandLine, commands: Mapping[str, Command]) -> dict[str, Ran]:
    """What the commands left, run as many at once as there are processors."""
    waiting, left = dict(commands), {}
    while waiting:
        some = [waiting.popitem() for _ in range(min(len(waiting), os.cpu_count() or 2))]
        started = [
            (name, yarus.start(*command.words, env=command.env, script=command.script)) for name, command in some
        ]
        for name, process in started:
            out, err = process.communicate(timeout=240)
            left[name] = Ran(out, err, process.returncode)
    return left


def until(what: str, found: Callable[[], Any], seconds: float = 90) -> Any:
    """What is found, as soon as it is."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.05)
    return pytest.fail(f"in {seconds} s there was no {what}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def state_of(server: Mapping[str, str], flow_run_id: str) -> str:
    """The type of a flow run's state, as a Prefect server has it."""
    run = httpx.get(f"{server['PREFECT_API_URL']}/flow_runs/{flow_run_id}", timeout=30).raise_for_status().json()
    return str(run["state"]["type"])


@pytest.fixture(scope="session")
def by_fulltext(yarus_alone: CommandLine, xquad_source: str) -> Document:
    """XQuAD-ru by PostgreSQL's text search, on a Prefect server of the run's own."""
    return yarus_alone("run", "tier1", "--source", xquad_source, "--retriever", "fulltext", "--json").json


@pytest.fixture(scope="session")
def two_at_once(yarus_alone: CommandLine, xquad_source: str) -> list[Document]:
    """XQuAD-ru by the lexical vectors, twice at the same time on one home, each with a Prefect server of its own."""
    command = Command(("run", "tier1", "--source", xquad_source, "--retriever", "dense", "--json"))
    both = together(yarus_alone, {"first": command, "second": command})
    assert [ran.code for ran in both.values()] == [0, 0], both
    return [json.loads(ran.out) for ran in both.values()]


@pytest.fixture(scope="session")
def locked_out(home: Path, engine: Engine) -> str:
    """The URL of a role whose password is wrong: the server asks that role, and no other, for one."""
    rules = home / "postgres" / "data" / "pg_hba.conf"
    rules.write_text(f"local all locked_out scram-sha-256\n{rules.read_text(encoding='utf-8')}", encoding="utf-8")
    with engine.begin() as connection:
        connection.execute(text("CREATE ROLE locked_out LOGIN PASSWORD 'the right one'"))
        connection.execute(text("SELECT pg_reload_conf()"))
    return engine.url.set(username="locked_out", password="s3cret").render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def night(yarus: CommandLine) -> dict[str, Document]:
    """Every tier on the bundled sample with the offline stand-ins, by one command; the summaries by tier."""
    document = yarus("run", "nightly", "--json").json
    assert document["state"] == "completed"
    return {evaluation["tier"]: evaluation for evaluation in document["evaluations"]}
