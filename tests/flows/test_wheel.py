"""Check Yarus as installed: a wheel, in a project whose own packages have the same names as its folders."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ENGLISH, make_environment
from tests.support.prefect_servers import ServeProcess

pytestmark = pytest.mark.slow("process: a package that is built and installed")
ROOT = Path(__file__).parents[2]
FOLDERS = ("flows", "tasks", "metrics", "db", "deployments")
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "yarus", *FOLDERS)
BOT = """
import db, deployments, flows.chain, metrics, tasks

def answer(question):
    return {"answer": " ".join(part.NAME for part in (db, deployments, flows.chain, metrics, tasks))}
"""
TEST = """
import flows
from yarus.pytest_plugin import assert_gate as imported

def test_the_bot_is_not_worse(assert_gate):
    assert assert_gate is imported
    assert_gate("last")
    assert flows.__file__.endswith("bot/flows/__init__.py")
"""
SCRIPT = """
import json, flows.chain, yarus
from yarus.metrics.text import rougeL

if __name__ == "__main__":
    summary = yarus.run_sync("tier1", source="sample", limit=30)
    frame = yarus.cases(summary["evaluation_id"])
    print(json.dumps([summary["state"], len(frame), flows.chain.NAME, rougeL(["a"], ["a"])[0]]))
"""
Run = Callable[..., str]


def build(folder: Path, kind: str) -> Path:
    """Build a `wheel` or `sdist` of the sources in a folder, and return its path."""
    script = f"from setuptools import build_meta; build_meta.build_{kind}('dist')"
    finished = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    [path] = (folder / "dist").glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return path


def list_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(sources: Path) -> Path:
    """Build from sources in which an earlier version was built."""
    (sources / "build" / "lib" / "flows").mkdir(parents=True)
    (sources / "build" / "lib" / "flows" / "tier1.py").touch()
    return build(sources, "wheel")


def test_wheel_has_all_files_in_one_package(sources: Path, wheel: Path) -> None:
    files = {path.relative_to(sources) for top in FOLDERS for path in (sources / top).rglob("*") if path.is_file()}
    package_files = {path.relative_to(sources) for path in (sources / "yarus").iterdir() if path.is_file()}
    packaged = {name for name in list_names(wheel) if ".dist-info/" not in name}
    assert packaged == {*(f"yarus/{file}" for file in files), *map(str, package_files)}
    assert "yarus/py.typed" in packaged


def test_wheel_from_sdist_is_identical(sources: Path, wheel: Path, tmp_path: Path) -> None:
    """Build without the links of a checkout, which the sdist does not have."""
    with tarfile.open(build(sources, "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    assert not [path for path in unpacked.rglob("*") if path.is_symlink()]
    assert list_names(build(unpacked, "wheel")) == list_names(wheel)


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the project of a bot, in a git repository."""
    folder = tmp_path_factory.mktemp("project") / "bot"
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"NAME = {name!r}\n", encoding="utf-8")
    files = {"flows/chain.py": "NAME = 'chain'\n", "mybot.py": BOT, "test_bot.py": TEST, "evaluate.py": SCRIPT}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "own.csv").write_text("question,answer\nКогда?,Завтра.\nГде?,В главном корпусе.\n", encoding="utf-8")
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "Begin")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def python(bot: Path, wheel: Path) -> str:
    """Make an environment in the project with the wheel and installed packages; return the path of its Python."""
    environment_of_bot = bot / ".venv"
    subprocess.run([sys.executable, "-m", "venv", environment_of_bot], check=True)
    program = environment_of_bot / "bin" / "python"
    pip = [program, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True)
    [site] = environment_of_bot.glob("lib/python*/site-packages")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{packages}\n", encoding="utf-8")  # .pth files in there are not read
    return str(program)


@pytest.fixture(scope="module")
def run(python: str, bot: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Yield a function that runs a program of that environment in the bot's folder, and returns its output."""
    variables = make_environment(tmp_path_factory.mktemp("home")) | ENGLISH | {"YARUS_SERVER_IDLE_TIMEOUT_S": "600"}

    def run(program: str, *words: str) -> str:
        command = [str(Path(python).with_name(program)), *words]
        finished = subprocess.run(command, cwd=bot, env=variables, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout

    yield run
    run("yarus", "admin", "stop")


@pytest.fixture(scope="module")
def demo(run: Run) -> str:
    """Run the demo, because the other commands need its data."""
    return run("yarus", "demo")


@pytest.fixture(scope="module")
def answered(run: Run, demo: str) -> dict[str, Any]:
    """Evaluate the bot."""
    words = ("tier3", "--source", "sample", "--limit", "30", "--sut", "mybot:answer", "--json")
    summary: dict[str, Any] = json.loads(run("yarus", "run", *words))
    return summary


def test_demo_prints_report_path(demo: str) -> None:
    assert Path(demo.strip().split()[-1]).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_commands_work(run: Run, demo: str, bot: Path) -> None:
    assert run("yarus", "--version") == run("python", "-m", "yarus", "--version")
    assert json.loads(run("yarus", "doctor", "--json"))
    assert "own" in run("yarus", "init", "own.csv", "--into", "own", "--yes")
    assert (bot / run("yarus", "report", "--out", "page.html").strip()).exists()
    assert run("yarus", "judge", "plan", "avg_faithfulness", "--width", "0.2")


def test_bot_with_same_package_names_answers(run: Run, answered: dict[str, Any]) -> None:
    assert answered["state"] == "completed"
    rows = json.loads(run("yarus", "cases", answered["evaluation_id"], "--json"))
    assert {row["answer"] for row in rows} == {"db deployments chain metrics tasks"}


def test_commit_is_that_of_yarus_not_of_project(run: Run, bot: Path) -> None:
    script = "from yarus.tasks.config.checkout import find_commit; print(find_commit())"
    assert run("python", "-c", script) == "None\n"
    [origin] = bot.glob(".venv/lib/python*/site-packages/yarus-*.dist-info/direct_url.json")
    original = origin.read_text(encoding="utf-8")
    git = {"url": "https://example.com/yarus", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}
    origin.write_text(json.dumps(git), encoding="utf-8")  # as pip does for git+https
    assert run("python", "-c", script) == "Commit(sha='c0ffee', is_dirty=False)\n"
    origin.write_text(original, encoding="utf-8")


def test_pytest_gate_passes(run: Run, answered: dict[str, Any]) -> None:
    assert "1 passed" in run("python", "-m", "pytest", "-p", "no:cacheprovider", "test_bot.py")


def test_script_runs_evaluation(run: Run, demo: str) -> None:
    assert json.loads(run("python", "evaluate.py")) == ["completed", 30, "chain", 1.0]


def test_dask_workers_evaluate(run: Run, demo: str) -> None:
    words = ("tier1", "--source", "sample", "--limit", "30", "--runner", "dask", "--json")
    assert json.loads(run("yarus", "run", *words))["state"] == "completed"


def test_ui_runs_are_evaluated(python: str, bot: Path, home: Path) -> None:
    serve = ServeProcess(home, "--no-schedule", python=python, folder=bot)
    try:
        serve.said("Ctrl-C")
        ended = serve.ended(serve.trigger("tier3", limit=10, sut="mybot:answer"))
        assert ended["state_name"] == "Completed", ended["state"]["message"]
        assert serve.deployment("tier3")["version"] == version("yarus")
    finally:
        serve.close()
        serve.stop()
