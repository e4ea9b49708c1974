"""A server of embeddings, and a client that has little patience with it."""

from collections.abc import Iterator

import pytest

from tests.support.embedding.replies import embeddings
from tests.support.llm_clients import QUICK
from tests.support.llm_server import FakeLLMServer
from yarus.tasks.models.embedding import client


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """It embeds by `vector` until told otherwise."""
    monkeypatch.setattr(client, "RETRIES", QUICK)
    started = FakeLLMServer(script=lambda number, request: embeddings(request))
    started.start()
    yield started
    started.stop()
