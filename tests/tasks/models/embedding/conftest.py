"""A server of embeddings, and a client with short waits."""

from collections.abc import Iterator

import pytest

from tests.support.embedding.replies import make_reply
from tests.support.llm_clients import QUICK_RETRIES
from tests.support.llm_server import FakeLLMServer
from yarus.tasks.models.embedding import client


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """Start a server that embeds by `vector` until its script is replaced."""
    monkeypatch.setattr(client, "RETRIES", QUICK_RETRIES)
    fake_server = FakeLLMServer(script=lambda number, request: make_reply(request))
    fake_server.start()
    yield fake_server
    fake_server.stop()
