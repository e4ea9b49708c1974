"""A home for one benchmark, and commands in it."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from yarus.db.embedded import server as embedded
from yarus.db.engine import own

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


def measured(home: Path, *command: str) -> tuple[float, float, str]:
    """Wall seconds of a command, megabytes that its process held at most, and what it printed."""
    variables = os.environ | {"YARUS_HOME": str(home), "PREFECT_HOME": str(home / "prefect-home")}
    start = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        env=variables,
        cwd=home,
        check=True,
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - start, float(ran.stderr.split()[-1]) / 1024, ran.stdout
