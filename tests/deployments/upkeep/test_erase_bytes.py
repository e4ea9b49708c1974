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

from tests.support.command_line import CommandLine
from tests.support.evaluations import passages, question
from yarus.deployments.prefect import home_servers

pytestmark = [
    pytest.mark.timeout(900),  # it starts a real server, which takes long on a busy machine
    pytest.mark.slow("process: a server of Prefect, and commands that are killed"),
]
MARK = "Несмываемая тайна"
ESCAPED = re.compile(rb"\\+u([0-9a-fA-F]{4})")
CODED = re.compile(rb"[A-Za-z0-9+/]{40,}={0,2}")
"""Base64: Prefect keeps results of tasks in it."""
USER = "4711"
ERASE = ("prune", "--user", USER, "--source", "logged", "--yes", "--json")

# In one process, which starts one server: a source, an evaluation, and a flow that says a text wherever Prefect keeps
# one: parameters, names, log, state, result, event, artifact.
FILLS = """
import sys
from yarus.__main__ import exit_code
said, chunks, questions = sys.argv[1:]
for kind, file in (("chunks", chunks), ("questions", questions)):
    assert exit_code(["load", "table", file, "--into", "logged", "--kind", kind]) == 0
assert exit_code(["dataset", "freeze", "frozen", "--source", "logged"]) == 0
assert exit_code(["run", "tier1", "--source", "logged"]) == 0
from yarus.deployments.prefect.local_server import prepare_prefect
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
    create_markdown_artifact((said[:45] + "…").replace("-", "\\\\-"), key="cut")
    emit_event("yarus.test", resource={"prefect.resource.id": said}, payload={"a": [said]})
    repeat(said)
    raise ValueError(said)

talks(said, deep={"a": [said, 1]}, return_state=True)
"""


# The command line that kills itself, as kill -9 would, when it comes to a function.
SUICIDE = """
import os, signal
from yarus.__main__ import main
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
            coded = CODED.findall(re.sub(rb"\\n|\s", b"", found))
            found += b"".join(base64.b64decode(part[: len(part) // 4 * 4]) for part in coded)
        return ESCAPED.sub(lambda code: chr(int(code[1], 16)).encode("utf-8", "replace"), found)

    return [
        str(path.relative_to(home))
        for path in sorted(home.rglob("*"))
        if path.is_file() and MARK.encode() in said(path)
    ]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home at rest, moved aside, in which everything that keeps a text has kept one."""
    home = tmp_path_factory.mktemp("bytes") / "дом"
    rows = [question(i, user_id=USER if i == 2 else "1") for i in range(30)]
    rows[2] |= {
        "question": f"{MARK}: где её отмыть, чем и за сколько дней, не подскажете?!",
        "relevant_chunk_ids": ["c9"],
        "answer": f"{MARK}, нигде её не отмыть",
    }
    rows[2] |= {"ground_truth_answer": f"{MARK} и её верный ответ"}
    home.mkdir()
    given = {"chunks": passages(10), "questions": rows}
    files = [home.with_name(f"{kind}.jsonl") for kind in given]
    for file, lines in zip(files, given.values(), strict=True):
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    process = CommandLine(home).start(rows[2]["question"], *map(str, files), script=FILLS)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, out + err
    home_servers.stop(home)
    [cases] = (home / "results").rglob("*.parquet")
    (home / "reports").mkdir()
    (home / "reports" / "night.html").write_text(rows[2]["question"])
    # What killed commands leave.
    for folder in (home / "work" / "dry-run-00000000", home / "work" / cases.stem):
        folder.mkdir(mode=0o700)
        pq.write_table(pa.table({"case_id": ["logged:2"], "question": [rows[2]["question"]]}), folder / "cases.parquet")
    cases.with_name(f".{cases.name}.1.part").write_text(MARK)
    for log in ("postgres/server.log", "prefect/server.log"):
        with (home / log).open("a") as file:
            file.write(f"before\nfailed at {rows[2]['question']!r}\nafter\n")
    (home / "gate.xml").write_text(f"<x>{rows[2]['question']}</x>")
    return home.rename(home.with_name("at rest"))


@pytest.fixture
def home(full: Path) -> Iterator[Path]:
    """A copy of it where it was made."""
    copy = full.with_name("дом")
    shutil.copytree(full, copy, symlinks=True)
    owner = (full / "postgres").stat()  # as root the database belongs to another account
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
    assert (done["questions"], done["case_set_rows"], done["artifacts"], done["prefect"] > 8) == (1, 1, 3, True)
    assert "before\nafter\n" in (home / "prefect" / "server.log").read_text(encoding="utf-8")
    with sqlite3.connect(home / "prefect" / "prefect.db") as connection:
        [(parameters, name)] = connection.execute(
            "SELECT parameters, name FROM flow_run WHERE parameters LIKE '%deep%'"
        )
        assert json.loads(parameters)["deep"] == {"a": ["[erased]", 1]}
        assert name == "[erased]"
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_kill_is_finished_by_the_same_command(home: Path) -> None:
    yarus = CommandLine(home)
    # Prefect's rows are gone, their bytes are not; then nobody's row leads to anything any more.
    for module in ("yarus.deployments.upkeep.erasure.erase_prefect", "yarus.deployments.upkeep.erasure.erase"):
        process = yarus.start(*ERASE, script=SUICIDE.format(module=module, function="wipe"))
        process.communicate(timeout=240)
        assert process.returncode == -signal.SIGKILL
        assert left(home) != ["gate.xml"]
    assert yarus(*ERASE).json["questions"] == 0
    assert left(home) == ["gate.xml"]
