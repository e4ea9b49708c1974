"""Servers of language models and systems under test for the tests of tiers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.evaluations import answer_steadily, make_role_variables, set_variables
from tests.support.llm_server import FakeLLMServer


@pytest.fixture
def served(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """Serve generator and judge, which reply with `answer_steadily`, unless a test changes the script."""
    with FakeLLMServer(script=answer_steadily) as server:
        set_variables(monkeypatch, make_role_variables(server.url, "generator", "judge"))
        yield server
