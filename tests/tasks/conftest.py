"""A chat server for the tests of what asks one."""

from collections.abc import Iterator

import pytest

from tests.support.llm_server import FakeLLMServer


@pytest.fixture
def llm_server() -> Iterator[FakeLLMServer]:
    server = FakeLLMServer()
    server.start()
    yield server
    server.stop()
