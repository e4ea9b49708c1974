"""What all tests share: the real text that stands beside the project, one home, and the command line on it."""

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

from tests.support.command_line import CommandLine, environment
from tests.support.database.production import PRODUCTION
from tests.support.durations import (  # noqa: F401 - hooks of pytest
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
)
from tests.support.examples import EVERYDAY
from tests.support.llm_server import FakeLLMServer
from tests.support.processes import answers
from yarus.db.embedded import server as embedded
from yarus.db.engine import own, own_at
from yarus.deployments.prefect.server_process import SQLITE

os.environ.setdefault("PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW", "ignore")  # steps run without a flow in tests
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")  # a busy machine is slow
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it starts in the background ignore it
# The same examples in every run, and no deadline: a busy machine is no failure.
# make test-all asks for all of them: --hypothesis-profile=thorough.
hypothesis_settings.register_profile("thorough", deadline=None, derandomize=True, database=None, max_examples=100)
hypothesis_settings.register_profile(EVERYDAY, hypothesis_settings.get_profile("thorough"), max_examples=25)
hypothesis_settings.load_profile(EVERYDAY)
XQUAD = Path(__file__).parents[2] / "shared" / "data" / "xquad"


def _xquad(language: str) -> Path:
    path = XQUAD / f"xquad.{language}.json"
    if not path.exists():
        pytest.skip(f"needs the XQuAD files in {XQUAD}")
    return path


def pytest_collection_finish() -> None:
    """Lets the collector of garbage pass over what was collected here: every test would pay for 10,000 items."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 20)


@pytest.fixture(autouse=True, scope="module")
def no_connection_of_prefect_left() -> Iterator[None]:
    """Closes what Prefect tells its server by, after a module that ran a flow in this process.

    That connection's pings draw from the global random state, and Hypothesis fails whatever test it sees that in.
    """
    yield
    if (prefect := sys.modules.get("prefect.events.worker")) is not None:
        prefect.EventsWorker.drain_all(timeout=30)


@pytest.fixture(autouse=True, scope="session")
def no_server_of_prefect_left() -> Iterator[None]:
    """Stops what Prefect started for flows in this process: one of many processes is ended before Prefect would."""
    yield
    if (prefect := sys.modules.get("prefect.server.api.server")) is not None:
        for server in list(prefect.SubprocessASGIServer._instances.values()):
            server.stop()


@pytest.fixture(scope="session")
def xquad_ru() -> Path:
    """The path of the Russian XQuAD file."""
    return _xquad("ru")


@pytest.fixture(scope="session")
def xquad_en() -> Path:
    """The path of the English XQuAD file."""
    return _xquad("en")


@pytest.fixture(scope="session")
def xquad_pairs(xquad_ru: Path) -> list[tuple[str, str]]:
    """(answer, the sentence it stands in) of every Russian question: short hypotheses against longer references."""
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
    """One YARUS_HOME for all tests that do not need their own, with its PostgreSQL running; the path is awkward."""
    folder = tmp_path_factory.mktemp("home") / "Ярус, дом"
    folder.mkdir()
    embedded.running(folder)
    yield folder
    own_at.cache_clear()
    embedded.release(folder)


@pytest.fixture(scope="session")
def engine(home: Path) -> Iterator[Engine]:
    """The engine of our own tables in the shared home."""
    made = own(home, None)
    yield made
    made.dispose()


@pytest.fixture
def at_home(home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shared home, set as YARUS_HOME for this process too, where nothing else is set."""
    _go_home(home, monkeypatch)
    return home


@pytest.fixture
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is logged is English, for tests of words that stand in the code."""
    monkeypatch.setenv("YARUS_LANGUAGE", "en")


@pytest.fixture(scope="module")
def at_home_for_module(home: Path, engine: Engine) -> Iterator[Path]:
    """The same for fixtures of a module."""
    with pytest.MonkeyPatch.context() as patch:
        _go_home(home, patch)
        yield home


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of the module's own, with nothing in it."""
    folder = tmp_path_factory.mktemp("own") / "дом"
    folder.mkdir()
    yield folder
    embedded.release(folder)


@pytest.fixture
def at_own_home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """That home, set as YARUS_HOME for this process too: for what looks at every source that there is."""
    _go_home(own_home, monkeypatch)
    yield own_home
    own(own_home, None).dispose()


def _go_home(home: Path, patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("YARUS_")]:
        patch.delenv(name)
    patch.setenv("YARUS_HOME", str(home))
    patch.setenv("YARUS_SERVER_IDLE_S", "0")
    patch.chdir(home)


@pytest.fixture
def llm_server() -> Iterator[FakeLLMServer]:
    """A server of language models on sockets, which answers as its script says."""
    server = FakeLLMServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def yarus(home: Path, request: pytest.FixtureRequest) -> CommandLine:
    """The command line on the shared home, and for flows on the shared Prefect server."""
    return CommandLine(home, lambda: request.getfixturevalue("prefect_server"))


@pytest.fixture(scope="session")
def yarus_alone(home: Path) -> CommandLine:
    """The command line on the shared home, as a user has it who runs no Prefect server."""
    return CommandLine(home)


@pytest.fixture(scope="session")
def xquad_source(yarus: CommandLine, xquad_ru: Path) -> str:
    """XQuAD-ru loaded; the name of the source."""
    yarus("load", "squad", str(xquad_ru), "--into", "xquad_ru")
    return "xquad_ru"


@pytest.fixture(scope="session")
def prefect_server(home: Path) -> Iterator[dict[str, str]]:
    """A Prefect server for tests of many runs, each of which would start its own; yields the variable that names it."""
    folder = home / "prefect-server"
    folder.mkdir()
    variables = environment(home) | {
        "PREFECT_HOME": str(folder),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"{SQLITE}{folder / 'prefect.db'}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
    }
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port, number = listener.getsockname()[1], listener.fileno()
        command = [sys.executable, "-m", "yarus.deployments.process", str(number)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "pass_fds": [number]}
        # It ends when its input does; its SQLite waits its turn where Prefect's own answers 503.
        started = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, cwd=home, **quiet)
    with started as server:
        try:
            deadline = time.monotonic() + 180  # a busy machine is slow
            while not answers(port):
                assert server.poll() is None, f"the Prefect server ended with {server.returncode}"
                assert time.monotonic() < deadline, "the Prefect server does not answer"
                time.sleep(0.1)
            yield {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def production(engine: Engine) -> Callable[..., str]:
    """Makes a database shaped as in production: three chunks, four questions; then runs what differs. Gives its URL."""

    def make(name: str, *statements: str) -> str:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        url = engine.url.set(database=name)
        made = create_engine(url)
        with made.begin() as connection:
            for statement in (PRODUCTION, *statements):
                connection.exec_driver_sql(statement)
        made.dispose()
        return url.render_as_string(hide_password=False)

    return make
