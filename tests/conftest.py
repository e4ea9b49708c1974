"""Fixtures of all tests: the XQuAD files beside the project, one home, and the command line on it."""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from sqlalchemy import Engine, create_engine, text

from tests.support.command_line import CommandLine, make_environment
from tests.support.database.production import PRODUCTION_SCHEMA
from tests.support.durations import (  # noqa: F401 - hooks of pytest
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
)
from tests.support.examples import EVERYDAY
from tests.support.llm_server import FakeLLMServer
from tests.support.processes import is_port_open
from yarus.db.embedded import server as embedded
from yarus.db.engine import open_own_database, own_at
from yarus.deployments.prefect.server_process import SQLITE

os.environ.setdefault("PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW", "ignore")  # steps run without a flow in tests
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")  # a busy machine is slow
signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes of a shell ignore it
# The same examples in every run, and no deadline: a busy machine is not a failure.
# make test-all runs all of them: --hypothesis-profile=thorough.
hypothesis_settings.register_profile("thorough", deadline=None, derandomize=True, database=None, max_examples=100)
hypothesis_settings.register_profile(EVERYDAY, hypothesis_settings.get_profile("thorough"), max_examples=25)
hypothesis_settings.load_profile(EVERYDAY)
if _locale := os.environ.pop("LC_ALL", ""):
    os.environ["LANG"] = _locale
os.environ["LC_MESSAGES"] = "ru_RU.UTF-8"  # most tests expect Russian; for English they set YARUS_LANGUAGE

XQUAD = Path(__file__).parents[2] / "shared" / "data" / "xquad"


def _find_xquad(language: str) -> Path:
    path = XQUAD / f"xquad.{language}.json"
    if not path.exists():
        pytest.skip(f"needs the XQuAD files in {XQUAD}")
    return path


def pytest_collection_finish() -> None:
    """Exclude the collected items from garbage collection, because every test would pay for 10,000 items."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 20)


@pytest.fixture(autouse=True, scope="module")
def no_connection_of_prefect_left() -> Iterator[None]:
    """Close Prefect's event connection after a module that ran a flow in this process.

    Its pings draw from the global random state, and Hypothesis fails any test in which that happens.
    """
    yield
    if (prefect := sys.modules.get("prefect.events.worker")) is not None:
        prefect.EventsWorker.drain_all(timeout=30)


@pytest.fixture(autouse=True, scope="session")
def no_server_of_prefect_left() -> Iterator[None]:
    """Stop the server that Prefect started for flows in this process, before the process is ended."""
    yield
    if (prefect := sys.modules.get("prefect.server.api.server")) is not None:
        for server in list(prefect.SubprocessASGIServer._instances.values()):
            server.stop()


@pytest.fixture(scope="session")
def xquad_ru() -> Path:
    """Return the path of the Russian XQuAD file."""
    return _find_xquad("ru")


@pytest.fixture(scope="session")
def xquad_en() -> Path:
    """Return the path of the English XQuAD file."""
    return _find_xquad("en")


@pytest.fixture(scope="session")
def xquad_pairs(xquad_ru: Path) -> list[tuple[str, str]]:
    """Return (answer, its sentence) of every Russian question: short hypotheses and longer references."""
    pairs = []
    for article in json.loads(xquad_ru.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            context = paragraph["context"]
            for question in paragraph["qas"]:
                answer = question["answers"][0]
                start = context.rfind(". ", 0, answer["answer_start"]) + 1
                end = context.find(". ", answer["answer_start"] + len(answer["text"]))
                pairs.append((answer["text"], context[start : end + 1 if end >= 0 else None].strip()))
    return pairs


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make one YARUS_HOME with a running PostgreSQL for tests that need no separate one; its path is awkward."""
    folder = tmp_path_factory.mktemp("home") / "Ярус, дом"
    folder.mkdir()
    embedded.acquire_server(folder)
    yield folder
    own_at.cache_clear()
    embedded.release_server(folder)


@pytest.fixture(scope="session")
def engine(home: Path) -> Iterator[Engine]:
    """Return the engine of Yarus's tables in the shared home."""
    own_engine = open_own_database(home, None)
    yield own_engine
    own_engine.dispose()


@pytest.fixture
def at_home(home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the shared home as YARUS_HOME for this process, and clear all other settings."""
    _go_home(home, monkeypatch)
    return home


@pytest.fixture
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the language to English, for tests of texts that are in the code."""
    monkeypatch.setenv("YARUS_LANGUAGE", "en")


@pytest.fixture(scope="module")
def at_home_for_module(home: Path, engine: Engine) -> Iterator[Path]:
    """Set the shared home like `at_home`, for fixtures of a module."""
    with pytest.MonkeyPatch.context() as patch:
        _go_home(home, patch)
        yield home


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make an empty home for one module."""
    folder = tmp_path_factory.mktemp("own") / "дом"
    folder.mkdir()
    yield folder
    embedded.release_server(folder)


@pytest.fixture
def at_own_home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set the module's home as YARUS_HOME, for tests that look at every existing source."""
    _go_home(own_home, monkeypatch)
    yield own_home
    open_own_database(own_home, None).dispose()


def _go_home(home: Path, patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("YARUS_")]:
        patch.delenv(name)
    patch.setenv("YARUS_HOME", str(home))
    patch.setenv("YARUS_SERVER_IDLE_TIMEOUT_S", "0")
    patch.chdir(home)


@pytest.fixture
def llm_server() -> Iterator[FakeLLMServer]:
    """Serve language models on sockets; the server answers as its script says."""
    server = FakeLLMServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def yarus(home: Path, request: pytest.FixtureRequest) -> CommandLine:
    """Return the command line on the shared home; its flows use the shared Prefect server."""
    return CommandLine(home, lambda: request.getfixturevalue("prefect_server"))


@pytest.fixture(scope="session")
def yarus_alone(home: Path) -> CommandLine:
    """Return the command line on the shared home, for a user without a Prefect server."""
    return CommandLine(home)


@pytest.fixture(scope="session")
def xquad_source(yarus: CommandLine, xquad_ru: Path) -> str:
    """Load XQuAD-ru, and return the name of the source."""
    yarus("load", "squad", str(xquad_ru), "--into", "xquad_ru")
    return "xquad_ru"


@pytest.fixture(scope="session")
def prefect_server(home: Path) -> Iterator[dict[str, str]]:
    """Run a shared Prefect server, because each run would start its own; yield the variable that names it."""
    folder = home / "prefect-server"
    folder.mkdir()
    variables = make_environment(home) | {
        "PREFECT_HOME": str(folder),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"{SQLITE}{folder / 'prefect.db'}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
    }
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port, descriptor = listener.getsockname()[1], listener.fileno()
        command = [sys.executable, "-m", "yarus.deployments.process", str(descriptor)]
        process_options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "pass_fds": [descriptor]}
        # It ends when its input ends; its SQLite waits for locks, where Prefect's own would answer 503.
        started = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, cwd=home, **process_options)
    with started as server:
        try:
            deadline = time.monotonic() + 180  # a busy machine is slow
            while not is_port_open(port):
                assert server.poll() is None, f"the Prefect server ended with {server.returncode}"
                assert time.monotonic() < deadline, "the Prefect server does not answer"
                time.sleep(0.1)
            yield {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def production(engine: Engine) -> Callable[..., str]:
    """Return a function that makes a production database, runs further statements, and returns its URL."""

    def make(name: str, *statements: str) -> str:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        url = engine.url.set(database=name)
        database_engine = create_engine(url)
        with database_engine.begin() as connection:
            for statement in (PRODUCTION_SCHEMA, *statements):
                connection.exec_driver_sql(statement)
        database_engine.dispose()
        return url.render_as_string(hide_password=False)

    return make
