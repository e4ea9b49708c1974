"""Erasure to the last byte: after real flows, no file of the home contains the user's texts."""

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
from tests.support.evaluations import make_passages, question
from yarus.deployments.prefect import home_servers

pytestmark = [
    pytest.mark.timeout(900),  # starts a real server, which is slow on a busy machine
    pytest.mark.slow("process: a server of Prefect, and commands that are killed"),
]
MARK = "Несмываемая тайна"
ESCAPED = re.compile(rb"\\+u([0-9a-fA-F]{4})")
CODED = re.compile(rb"[A-Za-z0-9+/]{40,}={0,2}")
"""Base64: Prefect stores task results in it."""
USER = "4711"
ERASE = ("admin", "prune", "--user", USER, "--source", "logged", "--yes", "--json")

# In one process with one server: a source, an evaluation, and a flow that puts a text wherever Prefect stores one:
# parameters, names, log, state, result, event, artifact.
FILLS = """
import sys
from yarus.__main__ import run_command_line
said, chunks, questions = sys.argv[1:]
for kind, file in (("chunks", chunks), ("questions", questions)):
    assert run_command_line(["load", "table", file, "--into", "logged", "--kind", kind]) == 0
assert run_command_line(["dataset", "freeze", "frozen", "--source", "logged"]) == 0
assert run_command_line(["run", "tier1", "--source", "logged"]) == 0
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


# The command line, which kills itself like `kill -9` when it calls a function.
SUICIDE = """
import os, signal
from yarus.__main__ import main
import {module} as module
module.{function} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
main()
"""


def files_with_mark(home: Path) -> list[str]:
    """Return the files at home that contain the mark, in any encoding."""

    def read_content(path: Path) -> bytes:
        if path.suffix == ".parquet":
            return str(pq.ParquetFile(path).read().to_pylist()).encode()
        content = path.read_bytes()
        if "storage" in path.parts:
            encoded_parts = CODED.findall(re.sub(rb"\\n|\s", b"", content))
            content += b"".join(base64.b64decode(part[: len(part) // 4 * 4]) for part in encoded_parts)
        return ESCAPED.sub(lambda code: chr(int(code[1], 16)).encode("utf-8", "replace"), content)

    return [
        str(path.relative_to(home))
        for path in sorted(home.rglob("*"))
        if path.is_file() and MARK.encode() in read_content(path)
    ]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a home at rest, moved aside, in which everything that stores texts has stored one."""
    home = tmp_path_factory.mktemp("bytes") / "дом"
    rows = [question(i, user_id=USER if i == 2 else "1") for i in range(30)]
    rows[2] |= {
        "question": f"{MARK}: где её отмыть, чем и за сколько дней, не подскажете?!",
        "relevant_chunk_ids": ["c9"],
        "answer": f"{MARK}, нигде её не отмыть",
    }
    rows[2] |= {"ground_truth_answer": f"{MARK} и её верный ответ"}
    home.mkdir()
    records = {"chunks": make_passages(10), "questions": rows}
    files = [home.with_name(f"{kind}.jsonl") for kind in records]
    for file, lines in zip(files, records.values(), strict=True):
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    process = CommandLine(home).start(rows[2]["question"], *map(str, files), script=FILLS)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, out + err
    home_servers.stop_servers(home)
    [cases] = (home / "results").rglob("*.parquet")
    (home / "reports").mkdir()
    (home / "reports" / "night.html").write_text(rows[2]["question"])
    # Leftovers of killed commands.
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
    """Copy that home to where it was made."""
    copy = full.with_name("дом")
    shutil.copytree(full, copy, symlinks=True)
    owner = (full / "postgres").stat()  # for root, the database belongs to another account
    for path in (copy / "postgres", *(copy / "postgres").rglob("*")):
        shutil.chown(path, owner.st_uid, owner.st_gid)
    yield copy
    shutil.rmtree(copy)


def test_erase_leaves_no_byte_at_home(home: Path) -> None:
    before = files_with_mark(home)
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
    assert files_with_mark(home) == ["gate.xml"]
    assert done["not_erased"] == [str(home / "gate.xml")]
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


def test_erase_completes_after_kills(home: Path) -> None:
    yarus = CommandLine(home)
    # First Prefect's rows are deleted but not their bytes; then no row refers to the user any more.
    for module in ("yarus.deployments.upkeep.erasure.erase_prefect", "yarus.deployments.upkeep.erasure.erase"):
        process = yarus.start(*ERASE, script=SUICIDE.format(module=module, function="wipe_tables"))
        process.communicate(timeout=240)
        assert process.returncode == -signal.SIGKILL
        assert files_with_mark(home) != ["gate.xml"]
    assert yarus(*ERASE).json["questions"] == 0
    assert files_with_mark(home) == ["gate.xml"]
