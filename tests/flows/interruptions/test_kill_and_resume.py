"""Evaluations that are killed, stopped or cut off: never half a file, a true journal, the same figures at the end."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, func, select

from tests.support.command_line import ENGLISH, CommandLine, Document, here
from tests.support.forked import Forked
from yarus.db.tables import evaluation, evaluation_batch, evaluation_metric

QUALITY = ("hit_rate@1", "mrr", "recall@10", "ndcg@10")

# The command line with one function changed: the process kills itself at that moment, as kill -9 would.
SUICIDE = """
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
    "before anything is known of them": {"module": "yarus.db.journal", "function": "describe"},
    "the third batch is half written": {
        "module": "yarus.tasks.evaluation.result_files",
        "function": "_sync",
        "when": "'batch-0002' in str(arguments[0])",
    },
    "a batch is written but not noted": {
        "module": "yarus.db.journal",
        "function": "batch_done",
        "when": "arguments[2] == 1",
    },
    "the file is half published": {
        "module": "yarus.tasks.evaluation.result_files",
        "function": "_sync",
        "when": "'tier=' in str(arguments[0])",
    },
    "the file is there, the metrics are not": {
        "module": "yarus.db.journal",
        "function": "close",
    },
    "the metrics are there, the work is not cleared": {"module": "shutil", "function": "rmtree"},
}
FINISHED = "the metrics are there, the work is not cleared"
BATCHES = 4
EVERY_MOMENT = pytest.mark.slow("breadth: more moments of a kill")


def words(source: str) -> tuple[str, ...]:
    return ("run", "tier1", "--source", source, "--retriever", "fulltext", "--json", "--limit", f"{100 * BATCHES}")


def files(home: Path, name: str) -> list[Path]:
    return sorted((home / "results").rglob(f"*{name}*"))


def newest(engine: Engine, source: str) -> Any:
    """The journal's row of the newest evaluation, and how many batches and metrics it has."""
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
def whole(yarus: CommandLine, source: str) -> Document:
    """The evaluation that nobody stopped."""
    return yarus(*words(source)).json


@pytest.fixture(autouse=True)
def consistent(engine: Engine, home: Path) -> Iterator[None]:
    """After each test: whatever is finished has its file and metrics, whatever is not has neither."""
    yield
    with engine.connect() as connection:
        columns = (evaluation.c.id, evaluation.c.state, evaluation.c.parquet)
        rows = connection.execute(select(*columns).where(evaluation.c.source == "killed")).all()
        measured = set(connection.scalars(select(evaluation_metric.c.evaluation_id).distinct()))
    for name, state, parquet in rows:
        finished = state in ("completed", "invalid")
        assert (name in measured) == finished == (parquet is not None), name
    for path in (home / "results").rglob("*.parquet"):
        assert len(pq.read_table(path)) > 0  # what has the name of a result is one, whole


def killed(yarus: CommandLine, engine: Engine, source: str, moment: str) -> tuple[Document, list[Path]]:
    """What the journal says of an evaluation that killed itself at that moment, and what is left in the results."""
    script = SUICIDE.format(**{"when": "True", "before": "", "signal": "SIGKILL"} | KILLED_AT[moment])
    ran = yarus.fork(*words(source), script=script).ran()
    assert ran.code == -signal.SIGKILL, ran
    row, _, _ = newest(engine, source)
    return here("show", row["id"], "--json").json, files(yarus.home, row["id"])


@pytest.mark.parametrize(
    "moment",
    [
        moment if moment == "a batch is written but not noted" else pytest.param(moment, marks=EVERY_MOMENT)
        for moment in KILLED_AT
        if moment != FINISHED
    ],
)
def test_killed_and_resumed_it_comes_to_the_same(
    yarus: CommandLine, at_home: Path, engine: Engine, source: str, whole: Document, moment: str
) -> None:
    shown, left = killed(yarus, engine, source, moment)
    assert (shown["state"], shown["metrics"]) == ("failed", {})
    assert f"yarus run tier1 --resume {shown['evaluation_id']}" in shown["error"]
    assert left == []  # nothing without metrics stays among the results
    again = yarus("run", "tier1", "--resume", shown["evaluation_id"], "--json").json
    assert (again["evaluation_id"], again["state"], again["error"]) == (shown["evaluation_id"], "completed", None)
    for same in ("comparability_key", "case_set_hash", "n_cases", "statuses", "coverage", "notes"):
        assert again[same] == whole[same], same
    for name in QUALITY:
        assert again["metrics"][name] == whole["metrics"][name], name
    columns = ["question_id", "retrieved", "relevant", *QUALITY]
    assert pq.read_table(again["parquet"], columns=columns).equals(pq.read_table(whole["parquet"], columns=columns))
    assert files(at_home, again["evaluation_id"]) == [Path(again["parquet"])]


@EVERY_MOMENT
def test_killed_after_the_last_word_it_is_finished(
    yarus: CommandLine, at_home: Path, engine: Engine, source: str, whole: Document
) -> None:
    shown, left = killed(yarus, engine, source, FINISHED)
    assert (shown["state"], left) == ("completed", [Path(shown["parquet"])])
    assert shown["metrics"]["mrr"] == whole["metrics"]["mrr"]


@pytest.mark.slow("process: signals")
@pytest.mark.parametrize(
    "kill", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow("breadth: another signal"))]
)
def test_stopped_it_says_how_to_go_on(
    yarus: CommandLine, home: Path, engine: Engine, source: str, whole: Document, kill: int
) -> None:
    process = yarus.fork(*words(source))
    wait_for_a_batch(engine, source, process)
    process.signal(kill)
    out, err, code = process.ran()
    row, batches, _ = newest(engine, source)
    assert out == ""
    assert row["state"] == "cancelled", err
    assert f"yarus run tier1 --resume {row['id']}" in row["error"]
    assert f"yarus run tier1 --resume {row['id']}" in err
    assert "Traceback" not in err
    assert code == 130
    assert 0 < batches < BATCHES
    resumed = yarus("run", "tier1", "--resume", row["id"], "--json").json
    assert resumed["metrics"]["mrr"] == whole["metrics"]["mrr"]


def wait_for_a_batch(engine: Engine, source: str, process: Forked) -> None:
    """Until the newest evaluation runs and has a finished batch."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.is_running():
        row, batches, _ = newest(engine, source)
        if row["state"] == "running" and batches:
            return
        time.sleep(0.01)
    pytest.fail(f"no batch was finished: {process.ran()}")


@pytest.mark.slow("process: a run that is suspended, and another beside it")
def test_a_living_evaluation_cannot_be_resumed_nor_is_it_marked_orphaned(
    yarus: CommandLine, at_home: Path, engine: Engine, source: str
) -> None:
    process = yarus.fork(*words(source))
    wait_for_a_batch(engine, source, process)
    process.signal(signal.SIGSTOP)
    row, _, _ = newest(engine, source)
    assert here("show", row["id"], "--json").json["state"] == "running"
    refused = yarus("run", "tier1", "--resume", row["id"], env=ENGLISH, ok=False)
    process.signal(signal.SIGCONT)
    ran = process.ran()
    assert (ran.err, ran.code) == ("", 0)
    assert refused.code == 2
    assert f"evaluation {row['id']} is running in another process" in refused.err
    assert "Traceback" not in refused.err


def test_a_finished_evaluation_is_never_changed(
    yarus: CommandLine, at_home: Path, engine: Engine, source: str, whole: Document
) -> None:
    before = Path(whole["parquet"]).read_bytes()
    refused = yarus("run", "tier1", "--resume", whole["evaluation_id"], env=ENGLISH, ok=False)
    assert refused.code == 2
    assert "is finished" in refused.err
    assert here("show", whole["evaluation_id"], "--json").json == whole
    assert Path(whole["parquet"]).read_bytes() == before


@pytest.mark.slow("breadth: a failure that is no kill")
def test_the_database_fails_in_the_middle(yarus: CommandLine, engine: Engine, source: str) -> None:
    """The connection is cut in the middle of a statement, as by a restart of the server."""
    cut = "arguments[0].connect().exec_driver_sql('SELECT pg_terminate_backend(pg_backend_pid())')"
    script = SUICIDE.format(
        module="yarus.db.journal",
        function="batch_done",
        when="False",
        signal="SIGKILL",
        before=f"arguments[2] == 2 and {cut}",
    )
    _, err, code = yarus.fork(*words(source), script=script).ran()
    row, _, _ = newest(engine, source)
    assert (code, row["state"]) == (3, "failed"), err
    assert "Traceback" not in err
    assert "terminating connection" in err
    assert "DatabaseUnavailable" in row["error"]
    assert f"yarus run tier1 --resume {row['id']}" in row["error"]
