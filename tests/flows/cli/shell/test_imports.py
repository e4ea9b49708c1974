"""What a command or a flow imports: whoever asks for little waits for no library that it does not use."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, environment
from tests.support.evaluation_history import source_name, with_cases

HEAVY = {"aiohttp", "alembic", "httpx", "mlflow", "pandas", "plotly", "prefect", "rapidfuzz", "scipy", "sklearn"}
HEAVY |= {"sentence_transformers", "torch"}
TABLES = {"numpy", "pyarrow"}
LOADED = "import sys\n{}\nprint(*sorted({} & sys.modules.keys()), file=sys.stderr)"
COMMAND = "from yarus.__main__ import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code"

# The words of a command, and which of these libraries it uses.
COMMANDS: tuple[tuple[str, set[str]], ...] = (
    ("runs", set()),
    ("runs --json", set()),
    ("show {b} --json", set()),
    ("show {b}", TABLES | {"rapidfuzz", "scipy"}),  # what changed, too
    ("cases {b}", TABLES),
    ("alerts list", TABLES | {"rapidfuzz"}),
    ("dataset list", TABLES),
    ("trend hit_rate@1 --source {source}", TABLES | {"rapidfuzz"}),
    ("compare {a} {b} --force", TABLES | {"rapidfuzz", "scipy"}),
    ("gate {b} --baseline {a}", TABLES | {"rapidfuzz", "scipy"}),
    ("report {a} {b} --out report.html", TABLES | {"rapidfuzz", "scipy", "plotly"}),
    ("export {b} --to cases.csv --overwrite", TABLES),
    ("prune --older-than 90000d --dry-run", TABLES),
    ("doctor", TABLES | {"rapidfuzz", "scipy"}),
)
EVERYDAY = ("runs", "show {b}")
"""A command that reads our tables alone, and one of those that compute."""


@pytest.fixture(scope="module")
def words(engine: Engine, home: Path) -> dict[str, str]:
    """Two evaluations of one source."""
    source, hits = source_name(), [1.0, 0.0] * 20
    a, b = (with_cases(engine, home, source, {"hit_rate@1": hits}, night=night) for night in (0, 1))
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
def test_a_command_imports_what_it_uses(
    yarus: CommandLine, words: dict[str, str], tmp_path: Path, command: str, used: set[str]
) -> None:
    script = LOADED.format(COMMAND, HEAVY | TABLES)
    alone = {"YARUS_HOME": str(tmp_path)} if command == "doctor" else {}  # it finds what other tests have broken
    if alone:
        yarus("runs", env=alone)  # a new home makes its tables
    process = yarus.start(*command.format(**words).split(), script=script, env=alone)
    said = process.communicate(timeout=240)[1]
    assert process.returncode == 0, said
    assert set(said.splitlines()[-1].split()) <= used


def test_a_flow_imports_what_every_run_of_it_uses(home: Path) -> None:
    """One process imports one after another, and says after each what has come with it."""
    never = {"mlflow", "pandas", "prefect.server", "sentence_transformers", "sklearn", "torch"}
    flows = ("tier0", "tier1", "real_users", "nightly")
    script = "\n".join(
        LOADED.format(f"import yarus.flows.{flow}; print('{flow}:', end=' ', file=sys.stderr)", never) for flow in flows
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment(home), cwd=home, capture_output=True, text=True, check=True
    )
    assert ran.stderr.split() == [f"{flow}:" for flow in flows]
