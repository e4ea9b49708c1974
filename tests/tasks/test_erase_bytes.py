"""Erasure to the last byte: after real flows nothing of the user is left in any file at home."""

import base64
import json
import re
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import CommandLine
from tests.judged import passages, question

MARK = "Несмываемая тайна"
ESCAPED = re.compile(rb"\\+u([0-9a-fA-F]{4})")
USER = "4711"
ERASE = ("prune", "--user", USER, "--source", "logged", "--yes", "--json")

# A flow that says a text wherever Prefect keeps one: parameters, names, log, state, result, event, artifact.
TALKS = """
import sys
from flows.prefect_here import prepare_prefect
prepare_prefect()
from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.events import emit_event

@task(persist_result=True, task_run_name="{said}")
def repeat(said):
    return said

@flow(flow_run_name="{said}")
def talks(said, deep):
    get_run_logger().warning("heard %s", said)
    create_table_artifact([{"question": said}], key="apart", description=said)
    create_markdown_artifact(said[:30].replace("!", "\\\\!"), key="cut")
    emit_event("yarus.test", resource={"prefect.resource.id": said}, payload={"a": [said]})
    repeat(said)
    raise ValueError(said)

talks(sys.argv[1], deep={"a": [sys.argv[1], 1]}, return_state=True)
"""


# The command line that kills itself, as kill -9 would, when it comes to a function.
SUICIDE = """
import os, signal
from flows.__main__ import main
import {module} as module
module.{function} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
main()
"""


def left(home: Path) -> list[str]:
    """The files at home in which the mark stands, however it is written."""

    def said(path: Path) -> bytes:
        if path.suffix == ".parquet":
            return str(pq.ParquetFile(path).read().to_pylist()).encode()
        found = path.read_bytes()
        if "storage" in path.parts:
            found = base64.b64decode(found)
        return ESCAPED.sub(lambda code: chr(int(code[1], 16)).encode("utf-8", "replace"), found)

    return [
        str(path.relative_to(home))
        for path in sorted(home.rglob("*"))
        if path.is_file() and MARK.encode() in said(path)
    ]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home, at rest, in which everything that keeps a text has kept one."""
    home = tmp_path_factory.mktemp("bytes") / "дом"
    rows = [question(i, user_id=USER if i == 2 else "1") for i in range(30)]
    rows[2] |= {
        "question": f"{MARK}: где её отмыть?!",
        "relevant_chunk_ids": ["c9"],
        "answer": f"{MARK}, нигде её не отмыть",
    }
    rows[2] |= {"ground_truth_answer": f"{MARK} и её верный ответ"}
    yarus = CommandLine(home)
    home.mkdir()
    for kind, given in (("chunks", passages(10)), ("questions", rows)):
        file = home.parent / f"{kind}.jsonl"
        file.write_text("\n".join(json.dumps(row) for row in given), encoding="utf-8")
        yarus("load", "table", str(file), "--into", "logged", "--kind", kind)
    run = yarus("run", "tier1", "--source", "logged", "--json").json
    yarus("dataset", "freeze", "frozen", "--source", "logged")
    process = yarus.start(rows[2]["question"], script=TALKS)
    assert process.communicate(timeout=240) and process.returncode == 0
    (home / "reports").mkdir()
    (home / "reports" / "night.html").write_text(rows[2]["question"])
    # What killed commands leave.
    for folder in (home / "work" / "dry-run-00000000", home / "work" / run["evaluation_id"]):
        folder.mkdir(mode=0o700)
        pq.write_table(pa.table({"case_id": ["logged:2"], "question": [rows[2]["question"]]}), folder / "cases.parquet")
    Path(run["parquet"]).with_name(f".{Path(run['parquet']).name}.1.part").write_text(MARK)
    for log in ("postgres/server.log", "prefect/server.log"):
        with (home / log).open("a") as file:
            file.write(f"before\nfailed at {rows[2]['question']!r}\nafter\n")
    (home / "gate.xml").write_text(f"<x>{rows[2]['question']}</x>")
    return home


@pytest.fixture
def home(full: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of it."""
    copy = tmp_path / "дом"
    shutil.copytree(full, copy, symlinks=True)
    # As root the database belongs to another account.
    owner = (full / "postgres").stat()
    for path in (copy / "postgres", *(copy / "postgres").rglob("*")):
        shutil.chown(path, owner.st_uid, owner.st_gid)
    yield copy
    shutil.rmtree(copy)


def test_no_byte_is_left_anywhere_at_home(home: Path) -> None:
    before = left(home)
    parts = (
        "postgres/data/base",
        "postgres/data/pg_wal",
        "postgres/server.log",
        "prefect/prefect.db",
        "prefect/server.log",
    )
    parts += ("prefect/storage", "reports", "results", "work", "gate.xml")
    assert [part for part in parts if not any(name.startswith(part) for name in before)] == []
    yarus = CommandLine(home)
    done = yarus(*ERASE).json
    assert left(home) == ["gate.xml"]
    assert done["beyond"] == [str(home / "gate.xml")]
    assert (done["questions"], done["artifacts"], done["prefect"] > 8) == (1, 3, True)
    assert "before\nafter\n" in (home / "prefect" / "server.log").read_text(encoding="utf-8")
    with sqlite3.connect(home / "prefect" / "prefect.db") as connection:
        [(parameters, name)] = connection.execute(
            "SELECT parameters, name FROM flow_run WHERE parameters LIKE '%deep%'"
        )
        assert json.loads(parameters)["deep"] == {"a": ["[erased]", 1]}
        assert name == "[erased]"
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("tasks.erase_prefect", "wipe"),  # Prefect's rows are gone, their bytes are not
        ("tasks.erase", "wipe"),  # nobody's row leads to anything any more
    ],
)
def test_a_kill_is_finished_by_the_same_command(home: Path, module: str, function: str) -> None:
    yarus = CommandLine(home)
    process = yarus.start(*ERASE, script=SUICIDE.format(module=module, function=function))
    process.communicate(timeout=240)
    assert process.returncode == -signal.SIGKILL
    assert left(home) != ["gate.xml"]
    yarus(*ERASE)
    assert left(home) == ["gate.xml"]
