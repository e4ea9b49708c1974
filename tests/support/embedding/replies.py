"""Replies of embedding servers, for `FakeLLMServer`, and settings that name such a server. Imported by full name."""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pydantic import SecretStr

from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.embedding.embedders import get_embedder_pair

KEY = "sk-embed-secret-0123456789abcdef"
DIMENSIONS = 8
Change = Callable[[list[dict[str, Any]]], Any]


def make_vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return a vector that depends only on the text; its length is not 1, and each number is a float32."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.default_rng(seed).normal(size=dimensions).astype("<f4").tolist()


def encode_base64(numbers: Sequence[float]) -> str:
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


def make_reply(request: dict[str, Any], change: Change = list, *, dimensions: int = DIMENSIONS, **more: Any) -> bytes:
    """Return a reply in the form that the request asks for; `change` receives and replaces its data."""
    data = [
        {"object": "embedding", "index": index, "embedding": make_vector(text, dimensions)}
        for index, text in enumerate(request["input"])
    ]
    if request.get("encoding_format") == "base64":
        data = [entry | {"embedding": encode_base64(entry["embedding"])} for entry in data]
    reply = {"object": "list", "model": request["model"], "data": change(data), "usage": {"prompt_tokens": 1}} | more
    return make_response(200, json.dumps(reply), JSON_HEADER)


def list_embedded_texts(server: FakeLLMServer) -> list[str]:
    """Return all texts that were sent to a server, except the probe that tests whether it answers."""
    return [text for request in server.requests for text in request["input"] if text != "?"]


def make_settings(url: str, **service: Any) -> Settings:
    return Settings(
        _env_file=None,
        embedder=url,
        embedder_model="asked",
        embedder_api_key=SecretStr(KEY),
        embedder_service=EmbedderService(**service),
    )


def make_question_embedder(server: FakeLLMServer, **service: Any) -> Any:
    """Return the embedder of questions that a server serves."""
    return get_embedder_pair(server.url, make_settings(server.url, **service))[0]


def served_variables(server: FakeLLMServer) -> dict[str, str]:
    """Return the variables with which that server embeds for the retriever."""
    return {"YARUS_EMBEDDER": server.url, "YARUS_EMBEDDER_MODEL": "asked", "YARUS_EMBEDDER_API_KEY": KEY}
