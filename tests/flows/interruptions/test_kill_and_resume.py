"""Check evaluations that are killed, stopped or cut off: no partial file, a correct journal, the same figures."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, func, select

from tests.support.command_line import ENGLISH, CommandLine, Document, run_here
from tests.support.forked import ForkedCommand
from yarus.db.tables import evaluation, evaluation_batch, evaluation_metric

QUALITY = ("hit_rate@1", "mrr", "recall@10", "ndcg@10")

# The command line with one function changed: the process kills itself at that moment, as kill -9 would.
KILL_SCRIPT = """
import os, signal, sys
from yarus.__main__ import main
import {module} as module
original = module.{function}
def last(*arguments, **named):
    if {when}:
        os.kill(os.getpid(), signal.{signal})
        import time; time.sleep(60)
    {before}
    return original(*arguments, **named)
module.{function} = last
main()
"""
KILLED_AT = {
    "before anything is known of them": {"module": "yarus.db.journal", "function": "update_evaluation"},
    "the third batch is half written": {
        "module": "yarus.tasks.evaluation.result_files",
        "function": "_sync_to_disk",
        "when": "'batch-0002' in str(arguments[0])",
    },
    "a batch is written but not noted": {
        "module": "yarus.db.journal",
        "function": "record_batch",
        "when": "arguments[2] == 1",
    },
    "the file is half published": {
        "module": "yarus.tasks.evaluation.result_files",
        "function": "_sync_to_disk",
        "when": "'tier=' in str(arguments[0])",
    },
    "the file is there, the metrics are not": {
        "module": "yarus.db.journal",
        "function": "finish_evaluation",
    },
    "the metrics are there, the work is not cleared": {"module": "shutil", "function": "rmtree"},
}
FINISHED = "the metrics are there, the work is not cleared"
BATCHES = 4
EVERY_MOMENT = pytest.mark.slow("breadth: more moments of a kill")


def make_arguments(source: str) -> tuple[str, ...]:
    return ("run", "tier1", "--source", source, "--retriever", "fulltext", "--json", "--limit", f"{100 * BATCHES}")


def find_result_files(home: Path, name: str) -> list[Path]:
    return sorted((home / "results").rglob(f"*{name}*"))


def read_newest(engine: Engine, source: str) -> Any:
    """Return the journal's row of the newest evaluation, and its numbers of batches and metrics."""
    with engine.connect() as connection:
        by_start = select(evaluation).where(evaluation.c.source == source).order_by(evaluation.c.started_at.desc())
        row = connection.execute(by_start).mappings().first()
        counts = [
            connection.scalar(select(func.count()).where(table.c.evaluation_id == row["id"]))
            for table in (evaluation_batch, evaluation_metric)
        ]
    return row, *counts


@pytest.fixture(scope="module")
def source(yarus: CommandLine, xquad_ru: Path) -> str:
    yarus("load", "squad", str(xquad_ru), "--into", "killed")
    return "killed"


@pytest.fixture(scope="module")
def undisturbed(yarus: CommandLine, source: str) -> Document:
    """Evaluate without a stop."""
    return yarus(*make_arguments(source)).json


@pytest.fixture(autouse=True)
def consistent(engine: Engine, home: Path) -> Iterator[None]:
    """Check after each test that finished evaluations have a file and metrics, and others neither."""
    yield
    with engine.connect() as connection:
        columns = (evaluation.c.id, evaluation.c.state, evaluation.c.parquet)
        rows = connection.execute(select(*columns).where(evaluation.c.source == "killed")).all()
        measured = set(connection.scalars(select(evaluation_metric.c.evaluation_id).distinct()))
    for name, state, parquet in rows:
        finished = state in ("completed", "invalid")
        assert (name in measured) == finished == (parquet is not None), name
    for path in (home / "results").rglob("*.parquet"):
        assert len(pq.read_table(path)) > 0  # every result file is complete


def kill_at(yarus: CommandLine, engine: Engine, source: str, moment: str) -> tuple[Document, list[Path]]:
    """Kill an evaluation at that moment; return what the journal says, and the files it left."""
    script = KILL_SCRIPT.format(**{"when": "True", "before": "", "signal": "SIGKILL"} | KILLED_AT[moment])
    ran = yarus.fork(*make_arguments(source), script=script).ran()
    assert ran.code == -signal.SIGKILL, ran
    row, _, _ = read_newest(engine, source)
    return run_here("show", row["id"], "--json").json, find_result_files(yarus.home, row["id"])


@pytest.mark.parametrize(
    "moment",
    [
        moment if moment == "a batch is written but not noted" else pytest.param(moment, marks=EVERY_MOMENT)
        for moment in KILLED_AT
        if moment != FINISHED
    ],
)
def test_resumed_after_kill_gives_same_results(
    yarus: CommandLine, at_home: Path, engine: Engine, source: str, undisturbed: Document, moment: str
) -> None:
    document, left_files = kill_at(yarus, engine, source, moment)
    assert (document["state"], document["metrics"]) == ("failed", {})
    assert f"yarus run tier1 --resume {document['evaluation_id']}" in document["error"]
    assert left_files == []  # nothing without metrics stays among the results
    again = yarus("run", "tier1", "--resume", document["evaluation_id"], "--json").json
    assert (again["evaluation_id"], again["state"], again["error"]) == (document["evaluation_id"], "completed", None)
    for key in ("comparability_key", "case_set_hash", "n_cases", "statuses", "coverage", "notes"):
        assert again[key] == undisturbed[key], key
    for name in QUALITY:
        assert again["metrics"][name] == undisturbed["metrics"][name], name
    names = ["question_id", "retrieved", "relevant", *QUALITY]
    assert pq.read_table(again["parquet"], columns=names).equals(pq.read_table(undisturbed["parquet"], columns=names))
    assert find_result_files(at_home, again["evaluation_id"]) == [Path(again["parquet"])]


@EVERY_MOMENT
def test_killed_after_metrics_is_finished(
    yarus: CommandLine, at_home: Path, engine: Engine, source: str, undisturbed: Document
) -> None:
    document, left_files = kill_at(yarus, engine, source, FINISHED)
    assert (document["state"], left_files) == ("completed", [Path(document["parquet"])])
    assert document["metrics"]["mrr"] == undisturbed["metrics"]["mrr"]


@pytest.mark.slow("process: signals")
@pytest.mark.parametrize(
    "kill", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow("breadth: another signal"))]
)
def test_stopped_run_tells_how_to_resume(
    yarus: CommandLine, home: Path, engine: Engine, source: str, undisturbed: Document, kill: int
) -> None:
    process = yarus.fork(*make_arguments(source))
    wait_for_a_batch(engine, source, process)
    process.signal(kill)
    out, err, code = process.ran()
    row, batches, _ = read_newest(engine, source)
    assert out == ""
    assert row["state"] == "cancelled", err
    assert f"yarus run tier1 --resume {row['id']}" in row["error"]
    assert f"yarus run tier1 --resume {row['id']}" in err
    assert "Traceback" not in err
    assert code == 130
    assert 0 < batches < BATCHES
    resumed = yarus("run", "tier1", "--resume", row["id"], "--json").json
    assert resumed["metrics"]["mrr"] == undisturbed["metrics"]["mrr"]


def wait_for_a_batch(engine: Engine, source: str, process: ForkedCommand) -> None:
    """Wait until the newest evaluation runs and has a finished batch."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.is_running():
        row, batches, _ = read_newest(engine, source)
        if row["state"] == "running" and batches:
            return
        time.sleep(0.01)
    pytest.fail(f"no batch was finished: {process.ran()}")


@pytest.mark.slow("process: a run that is suspended, and another beside it")
def test_running_evaluation_cannot_be_resumed(yarus: CommandLine, at_home: Path, engine: Engine, source: str) -> None:
    process = yarus.fork(*make_arguments(source))
    wait_for_a_batch(engine, source, process)
    process.signal(signal.SIGSTOP)
    row, _, _ = read_newest(engine, source)
    assert run_here("show", row["id"], "--json").json["state"] == "running"
    refused = yarus("run", "tier1", "--resume", row["id"], env=ENGLISH, ok=False)
    process.signal(signal.SIGCONT)
    ran = process.ran()
    assert (ran.err, ran.code) == ("", 0)
    assert refused.code == 2
    assert f"evaluation {row['id']} is running in another process" in refused.err
    assert "Traceback" not in refused.err


def test_finished_evaluation_is_never_changed(
    yarus: CommandLine, at_home: Path, engine: Engine, source: str, undisturbed: Document
) -> None:
    before = Path(undisturbed["parquet"]).read_bytes()
    refused = yarus("run", "tier1", "--resume", undisturbed["evaluation_id"], env=ENGLISH, ok=False)
    assert refused.code == 2
    assert "is finished" in refused.err
    assert run_here("show", undisturbed["evaluation_id"], "--json").json == undisturbed
    assert Path(undisturbed["parquet"]).read_bytes() == before


@pytest.mark.slow("breadth: a failure that is no kill")
def test_database_failure_leaves_resumable_run(yarus: CommandLine, engine: Engine, source: str) -> None:
    """Cut the connection in the middle of a statement, as a restart of the server does."""
    cut = "arguments[0].connect().exec_driver_sql('SELECT pg_terminate_backend(pg_backend_pid())')"
    script = KILL_SCRIPT.format(
        module="yarus.db.journal",
        function="record_batch",
        when="False",
        signal="SIGKILL",
        before=f"arguments[2] == 2 and {cut}",
    )
    _, err, code = yarus.fork(*make_arguments(source), script=script).ran()
    row, _, _ = read_newest(engine, source)
    assert (code, row["state"]) == (3, "failed"), err
    assert "Traceback" not in err
    assert "terminating connection" in err
    assert "DatabaseUnavailable" in row["error"]
    assert f"yarus run tier1 --resume {row['id']}" in row["error"]
