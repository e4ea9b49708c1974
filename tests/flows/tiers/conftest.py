"""Servers of language models and of systems under test that the tests of tiers ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.evaluations import roles, steady, use
from tests.support.llm_server import FakeLLMServer


@pytest.fixture
def served(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A server that serves generator and judge, as `steady` says until told otherwise."""
    with FakeLLMServer(script=steady) as server:
        use(monkeypatch, roles(server.url, "generator", "judge"))
        yield server
