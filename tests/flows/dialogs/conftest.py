"""A bot over HTTP and a judge, for tests of dialogs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.evaluations import roles, steady, use
from tests.support.llm_server import FakeLLMServer


@pytest.fixture
def bot(at_home: Path) -> Iterator[FakeLLMServer]:
    """A question-answering service on sockets."""
    server = FakeLLMServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A judge on sockets, as `steady` says until told otherwise."""
    server = FakeLLMServer(script=steady)
    server.start()
    use(monkeypatch, roles(server.url, "judge"))
    yield server
    server.stop()
