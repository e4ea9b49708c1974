"""A home for one benchmark, what is kept in it, and commands on it."""

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
from yarus.db.engine import own
from yarus.db.tables import Json
from yarus.tasks.evaluation.result_files import write_batches

# From a small process: what one held at most includes what the process held that started it.
MEASURED = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "yarus", *sys.argv[1:]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


@contextmanager
def temporary_home() -> Iterator[tuple[Path, Engine]]:
    """A folder that is gone afterwards, and the engine of our tables in its database, which runs meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        try:
            engine = own(home, None)
            yield home, engine
            engine.dispose()
        finally:
            embedded.release(home)


def keep(
    engine: Engine, file: Path, tier: str, cases: pa.Table, resolved: Json | None = None, *, closed: bool = True
) -> None:
    """Keeps an evaluation of the source `bench` under the name of its file, finished or not."""
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
        journal.close(engine, file.stem, "completed", comparability_key="k", comparability=parts, parquet=str(file))


def variables_of(home: Path) -> dict[str, str]:
    """The environment of commands on a home: ours, without its settings of Yarus and Prefect."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("YARUS_", "PREFECT_"))}
    return kept | {"YARUS_HOME": str(home), "PREFECT_HOME": str(home / "prefect-home")}


def ran(
    variables: Mapping[str, str], *arguments: str, codes: Sequence[int] = (0,)
) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Wall seconds of a process of this Python in a home, and what came of it; an error with another exit code."""
    command, home = [sys.executable, *arguments], variables["YARUS_HOME"]
    start = time.perf_counter()
    done = subprocess.run(command, env=variables, cwd=home, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode not in codes:
        done.check_returncode()
    return seconds, done


def yarus(variables: Mapping[str, str], *words: str) -> float:
    """Wall seconds of a command."""
    return ran(variables, "-m", "yarus", *words)[0]


def said(variables: Mapping[str, str], *words: str) -> Any:
    """What a command prints, read as JSON."""
    return json.loads(ran(variables, "-m", "yarus", *words)[1].stdout)


def measured(home: Path, *words: str) -> tuple[float, float, str]:
    """Wall seconds of a command, megabytes that its process held at most, and what it printed."""
    seconds, done = ran(variables_of(home), "-c", MEASURED, *words)
    return seconds, float(done.stderr.split()[-1]) / 1024, done.stdout


def load(variables: Mapping[str, str], chunks: Iterable[object], questions: Iterable[object]) -> None:
    """Loads the source `bench`."""
    for kind, rows in (("chunks", chunks), ("questions", questions)):
        file = Path(variables["YARUS_HOME"]) / f"{kind}.jsonl"
        file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
        yarus(variables, "load", "table", str(file), "--into", "bench", "--kind", kind)
