"""Evaluations that several tests use."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.support.command_line import Command, CommandLine, Document, run_in_parallel
from tests.support.evaluations import answer_steadily, make_role_variables, set_variables
from tests.support.llm_server import FakeLLMServer


@pytest.fixture(scope="session")
def by_fulltext(yarus: CommandLine, xquad_source: str) -> Document:
    """Evaluate XQuAD-ru with PostgreSQL's text search."""
    return yarus("run", "tier1", "--source", xquad_source, "--retriever", "fulltext", "--json").json


@pytest.fixture(scope="session")
def two_at_once(yarus_alone: CommandLine, xquad_source: str) -> list[Document]:
    """Evaluate XQuAD-ru with lexical vectors, twice in parallel on one home, each with its own Prefect server."""
    command = Command(("run", "tier1", "--source", xquad_source, "--retriever", "dense", "--json"))
    both = run_in_parallel(yarus_alone, {"first": command, "second": command})
    assert [ran.code for ran in both.values()] == [0, 0], both
    return [json.loads(ran.out) for ran in both.values()]


@pytest.fixture(scope="session")
def locked_out(home: Path, engine: Engine) -> str:
    """Return the URL of a role with a wrong password; the server asks only this role for one."""
    rules = home / "postgres" / "data" / "pg_hba.conf"
    rules.write_text(f"local all locked_out scram-sha-256\n{rules.read_text(encoding='utf-8')}", encoding="utf-8")
    with engine.begin() as connection:
        connection.execute(text("CREATE ROLE locked_out LOGIN PASSWORD 'the right one'"))
        connection.execute(text("SELECT pg_reload_conf()"))
    return engine.url.set(username="locked_out", password="s3cret").render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def night(yarus: CommandLine) -> dict[str, Document]:
    """Evaluate every tier on the bundled sample with the offline stand-ins; return the summaries by tier."""
    document = yarus("run", "nightly", "--json").json
    assert document["state"] == "completed"
    return {evaluation["tier"]: evaluation for evaluation in document["evaluations"]}


@pytest.fixture
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """Serve a judge that replies with `answer_steadily`, unless a test changes its script."""
    with FakeLLMServer(script=answer_steadily) as server:
        set_variables(monkeypatch, make_role_variables(server.url, "judge"))
        yield server


@pytest.fixture
def service(at_home: Path) -> Iterator[FakeLLMServer]:
    """Serve a question-answering service."""
    with FakeLLMServer() as server:
        yield server
