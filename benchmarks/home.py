"""A temporary home for one benchmark, stored evaluations, and commands in it."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.embedded import server as embedded
from yarus.db.engine import open_own_database
from yarus.db.tables import JsonObject
from yarus.tasks.evaluation.result_files import write_batches

# Started from a small process: peak memory includes that of the parent process.
MEASURED = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "yarus", *sys.argv[1:]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


@contextmanager
def temporary_home() -> Iterator[tuple[Path, Engine]]:
    """Yield a temporary folder, and the engine of our tables in its database, which runs meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        try:
            engine = open_own_database(home, None)
            yield home, engine
            engine.dispose()
        finally:
            embedded.release_server(home)


def store_evaluation(
    engine: Engine, file: Path, tier: str, cases: pa.Table, resolved: JsonObject | None = None, *, closed: bool = True
) -> None:
    """Store an evaluation of the source `bench` under the name of its file, finished or not."""
    write_batches([cases], file)
    row: journal.NewEvaluation = {
        "id": file.stem,
        "tier": tier,
        "source": "bench",
        "resolved": resolved or {},
        "parameters": {},
        "settings": {},
        "versions": {},
    }
    journal.open_evaluation(engine, row)
    if closed:
        parts = {"tier": tier}
        journal.finish_evaluation(
            engine, file.stem, "completed", comparability_key="k", comparability=parts, parquet=str(file)
        )


def build_environment(home: Path) -> dict[str, str]:
    """Return the environment of commands in a home: ours, without the settings of Yarus and Prefect."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("YARUS_", "PREFECT_"))}
    return inherited | {"YARUS_HOME": str(home), "PREFECT_HOME": str(home / "prefect-home")}


def run_python(
    variables: Mapping[str, str], *arguments: str, codes: Sequence[int] = (0,)
) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Return wall seconds and result of a process of this Python in a home; raise on other exit codes."""
    command, home = [sys.executable, *arguments], variables["YARUS_HOME"]
    start = time.perf_counter()
    process = subprocess.run(command, env=variables, cwd=home, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if process.returncode not in codes:
        process.check_returncode()
    return seconds, process


def time_command(variables: Mapping[str, str], *words: str) -> float:
    """Return the wall seconds of a command."""
    return run_python(variables, "-m", "yarus", *words)[0]


def read_json_output(variables: Mapping[str, str], *words: str) -> Any:
    """Return the output of a command, parsed as JSON."""
    return json.loads(run_python(variables, "-m", "yarus", *words)[1].stdout)


def measure_command(home: Path, *words: str) -> tuple[float, float, str]:
    """Return wall seconds, peak megabytes and output of a command."""
    seconds, process = run_python(build_environment(home), "-c", MEASURED, *words)
    return seconds, float(process.stderr.split()[-1]) / 1024, process.stdout


def load_source(variables: Mapping[str, str], chunks: Iterable[object], questions: Iterable[object]) -> None:
    """Load the source `bench`."""
    for kind, rows in (("chunks", chunks), ("questions", questions)):
        file = Path(variables["YARUS_HOME"]) / f"{kind}.jsonl"
        file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
        time_command(variables, "load", "table", str(file), "--into", "bench", "--kind", kind)
