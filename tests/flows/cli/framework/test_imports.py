"""Check which libraries commands and flows import, so that a small command does not wait for unused ones."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, make_environment
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases

HEAVY = {"aiohttp", "alembic", "httpx", "mlflow", "pandas", "plotly", "prefect", "rapidfuzz", "scipy", "sklearn"}
HEAVY |= {"sentence_transformers", "torch"}
TABLES = {"numpy", "pyarrow"}
SCRIPT = "import sys\n{}\nprint(*sorted({} & sys.modules.keys()), file=sys.stderr)"
COMMAND = "from yarus.__main__ import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code"

# The words of a command, and which of these libraries it uses.
COMMANDS: tuple[tuple[str, set[str]], ...] = (
    ("runs", set()),
    ("runs --json", set()),
    ("show {b} --json", set()),
    ("show {b}", TABLES | {"rapidfuzz", "scipy"}),  # also prints what changed
    ("cases {b}", TABLES),
    ("alerts list", TABLES | {"rapidfuzz"}),
    ("dataset list", TABLES),
    ("trend hit_rate@1 --source {source}", TABLES | {"rapidfuzz"}),
    ("compare {a} {b} --force", TABLES | {"rapidfuzz", "scipy"}),
    ("gate {b} --baseline {a}", TABLES | {"rapidfuzz", "scipy"}),
    ("report {a} {b} --out report.html", TABLES | {"rapidfuzz", "scipy", "plotly"}),
    ("export {b} --to cases.csv --overwrite", TABLES),
    ("admin prune --older-than 90000d --dry-run", TABLES),
    ("doctor", TABLES | {"rapidfuzz", "scipy"}),
)
EVERYDAY = ("runs", "show {b}")
"""A command that only reads tables, and one that computes."""


@pytest.fixture(scope="module")
def words(engine: Engine, home: Path) -> dict[str, str]:
    """Write two evaluations of one source."""
    source, hits = make_source_name(), [1.0, 0.0] * 20
    a, b = (write_evaluation_with_cases(engine, home, source, {"hit_rate@1": hits}, night=night) for night in (0, 1))
    return {"source": source, "a": a, "b": b}


@pytest.mark.parametrize(
    ("command", "used"),
    [
        pytest.param(
            command,
            used,
            id=command,
            marks=() if command in EVERYDAY else pytest.mark.slow("process: Python starts for another command"),
        )
        for command, used in COMMANDS
    ],
)
def test_command_imports_only_used_libraries(
    yarus: CommandLine, words: dict[str, str], tmp_path: Path, command: str, used: set[str]
) -> None:
    script = SCRIPT.format(COMMAND, HEAVY | TABLES)
    own_home = {"YARUS_HOME": str(tmp_path)} if command == "doctor" else {}  # it reports what other tests broke
    if own_home:
        yarus("runs", env=own_home)  # a new home makes its tables
    process = yarus.start(*command.format(**words).split(), script=script, env=own_home)
    stderr = process.communicate(timeout=240)[1]
    assert process.returncode == 0, stderr
    assert set(stderr.splitlines()[-1].split()) <= used


def test_flow_imports_no_optional_libraries(home: Path) -> None:
    """Import one flow after another in one process, and print after each which libraries came with it."""
    never = {"mlflow", "pandas", "prefect.server", "sentence_transformers", "sklearn", "torch"}
    flows = ("tier0", "tier1", "real_users", "nightly")
    script = "\n".join(
        SCRIPT.format(f"import yarus.flows.{flow}; print('{flow}:', end=' ', file=sys.stderr)", never) for flow in flows
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env=make_environment(home), cwd=home, capture_output=True, text=True, check=True
    )
    assert ran.stderr.split() == [f"{flow}:" for flow in flows]
