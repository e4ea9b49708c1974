"""What embedding servers answer, for `FakeLLMServer`, and settings that name one. Imported by full name."""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pydantic import SecretStr

from tests.support.llm_server import JSON, FakeLLMServer, http
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.embedding.embedders import embedders

KEY = "sk-embed-secret-0123456789abcdef"
DIMENSIONS = 8
Change = Callable[[list[dict[str, Any]]], Any]


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Numbers that depend on the text alone, not of length 1; each is a float32."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=dimensions).astype("<f4").tolist()


def coded(numbers: Sequence[float]) -> str:
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


def embeddings(request: dict[str, Any], change: Change = list, *, dimensions: int = DIMENSIONS, **more: Any) -> bytes:
    """A reply to a request in the form that it asks for; `change` gets what it would be."""
    data = [
        {"object": "embedding", "index": index, "embedding": vector(text, dimensions)}
        for index, text in enumerate(request["input"])
    ]
    if request.get("encoding_format") == "base64":
        data = [one | {"embedding": coded(one["embedding"])} for one in data]
    reply = {"object": "list", "model": request["model"], "data": change(data), "usage": {"prompt_tokens": 1}} | more
    return http(200, json.dumps(reply), JSON)


def asked(server: FakeLLMServer) -> list[str]:
    """All texts that a server was asked for, but for the first, which only shows that it answers."""
    return [text for request in server.requests for text in request["input"] if text != "?"]


def configured(url: str, **service: Any) -> Settings:
    return Settings(
        _env_file=None,
        embedder=url,
        embedder_model="asked",
        embedder_api_key=SecretStr(KEY),
        embedder_service=EmbedderService(**service),
    )


def of_questions(server: FakeLLMServer, **service: Any) -> Any:
    """The embedder of questions that a server serves."""
    return embedders(server.url, configured(server.url, **service))[0]


def served(server: FakeLLMServer) -> dict[str, str]:
    """The variables that have the retriever's embedder served by that server."""
    return {"YARUS_EMBEDDER": server.url, "YARUS_EMBEDDER_MODEL": "asked", "YARUS_EMBEDDER_API_KEY": KEY}
