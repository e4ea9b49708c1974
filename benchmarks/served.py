"""Embedding over HTTP against the network's own limit: a server in its own process, 20 ms per batch.

The limit is batches x 20 ms / concurrency. A bare aiohttp client that requests floats and makes an array of them,
without limits, retries, checks or store, runs in turn. At 16 at once the CPU is the limit, so CPU times are compared.
"""

import asyncio
import base64
import json
import uuid
from collections.abc import Iterator
from functools import lru_cache

import aiohttp
import numpy as np
from sqlalchemy import Engine

from benchmarks import Row, chat, time_in_turn
from benchmarks.home import temporary_home
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.embedding.cache import embed_texts
from yarus.tasks.models.embedding.embedders import Embedder, get_embedder_pair

TEXTS, BATCH, DIMENSIONS = 6_400, 32, 384
DELAY_S = 0.02
FEW, MANY = 4, 16
TARGET, FASTER = 1.15, 2.0


@lru_cache
def embedded_texts(n: int, form: str) -> bytes:
    row = np.random.default_rng(0).normal(size=DIMENSIONS).astype("<f4")
    vector = base64.b64encode(row.tobytes()).decode() if form == "base64" else row.astype(float).tolist()
    data = [{"object": "embedding", "index": index, "embedding": vector} for index in range(n)]
    return chat.response(json.dumps({"object": "list", "model": "bench", "data": data}).encode())


class Server(chat.Server):
    """A server that returns as many vectors as texts, in the requested form."""

    def reply(self, head: bytes, content: bytes) -> None:
        request = json.loads(content)
        answer = embedded_texts(len(request["input"]), request.get("encoding_format", "float"))
        asyncio.get_running_loop().call_later(DELAY_S, self.transport.write, answer)


def new_texts() -> list[str]:
    """Return texts that were not embedded before."""
    mark = uuid.uuid4().hex
    return [f"{mark} {number} " + "Документы принимают до 25 июля. " * 4 for number in range(TEXTS)]


async def embed_with_aiohttp(url: str, concurrency: int) -> None:
    """Embed the texts with one aiohttp session."""
    texts = new_texts()
    batches = iter([texts[start : start + BATCH] for start in range(0, TEXTS, BATCH)])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def post(batch: list[str]) -> None:
            async with session.post(f"{url}/embeddings", json={"model": "bench", "input": batch}) as response:
                np.array([item["embedding"] for item in (await response.json())["data"]], dtype=np.float32)

        await chat.run_concurrently(batches, concurrency, post)


def run() -> Iterator[Row]:
    """Yield our time with the store of vectors and without, by the limit; then the bare client by the limit."""
    with chat.start_server("served") as url, temporary_home() as (_, engine):
        yield from _rows(url, engine)


def _rows(url: str, engine: Engine) -> Iterator[Row]:
    slow, fast = (_model(url, concurrency) for concurrency in (FEW, MANY))
    limit_s = TEXTS / BATCH * DELAY_S / FEW
    what = f"{TEXTS:,} texts in batches of {BATCH}, {FEW} at once"
    encode_s, bare_s = time_in_turn(lambda: slow.encode(new_texts()), lambda: asyncio.run(embed_with_aiohttp(url, FEW)))
    stored_s, _ = time_in_turn(lambda: embed_texts(new_texts(), slow, engine), lambda: None)
    yield Row(what, "the network's limit", encode_s, limit_s, TARGET)
    yield Row("… store included", "the network's limit", stored_s, limit_s, TARGET)
    yield Row("… bare aiohttp, no store", "the network's limit", bare_s, limit_s, float("inf"))
    times = time_in_turn(lambda: fast.encode(new_texts()), lambda: asyncio.run(embed_with_aiohttp(url, MANY)))
    yield Row(f"the same, {MANY} at once", "bare aiohttp", *times, target=FASTER, goal="at least")


def _model(url: str, concurrency: int) -> Embedder:
    service = EmbedderService(batch=BATCH, concurrency=concurrency)
    model, _ = get_embedder_pair(f"{url}#bench", Settings(_env_file=None, embedder_service=service))
    return model
