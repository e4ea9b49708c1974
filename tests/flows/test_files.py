"""Check that the files in flows/ import and hide no module, since Prefect puts the folder first on sys.path."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import make_environment

FLOWS = Path(__file__).parents[2] / "flows"
FILES = sorted(path.stem for path in FLOWS.glob("*.py"))


def test_flows_exist() -> None:
    assert {"tier1", "nightly"} <= set(FILES)


def test_files_import_without_warning(home: Path) -> None:
    names = ", ".join(f"yarus.flows.{name}" for name in FILES)
    run = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", f"import {names}"],
        env=make_environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_files_do_not_shadow_modules(home: Path) -> None:
    names = [name for name in FILES if not name.startswith("__")]
    script = (
        "import sys, importlib.util\n"
        f"print([name for name in {names} if name in sys.stdlib_module_names or importlib.util.find_spec(name)])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], env=make_environment(home), cwd=home, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["flows", "tasks", "metrics", "db", "deployments"])
def test_former_import_name_is_refused(name: str) -> None:
    with pytest.raises(ImportError, match=f"use `from yarus.{name} import"):
        importlib.import_module(name)


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("tier") or name == "real_users"])
def test_flow_has_name_of_file(name: str) -> None:
    source = (FLOWS / f"{name}.py").read_text(encoding="utf-8")
    assert f'@flow(name="{name}"' in source
    assert f"async def {name}(" in source
