"""Embedding over HTTP against the network's own limit: a server in a process of its own, 20 ms a batch.

The limit is batches x 20 ms / concurrency. A bare aiohttp client that asks for floats and makes an array of them,
without limits, retries, checks or store, runs in turn. At 16 at once the CPU decides, so that it is compared with that.
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

from benchmarks import Row, chat, medians
from benchmarks.home import temporary_home
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.embedding.cache import embed
from yarus.tasks.models.embedding.embedders import Embedder, embedders

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
    """As many vectors as texts, in the form that is asked for."""

    def reply(self, head: bytes, content: bytes) -> None:
        asked = json.loads(content)
        answer = embedded_texts(len(asked["input"]), asked.get("encoding_format", "float"))
        asyncio.get_running_loop().call_later(DELAY_S, self.transport.write, answer)


def texts() -> list[str]:
    """None of which was embedded before."""
    mark = uuid.uuid4().hex
    return [f"{mark} {number} " + "Документы принимают до 25 июля. " * 4 for number in range(TEXTS)]


async def bare(url: str, concurrency: int) -> None:
    """One aiohttp session."""
    given = texts()
    batches = iter([given[start : start + BATCH] for start in range(0, TEXTS, BATCH)])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def ask(batch: list[str]) -> None:
            async with session.post(f"{url}/embeddings", json={"model": "bench", "input": batch}) as response:
                np.array([one["embedding"] for one in (await response.json())["data"]], dtype=np.float32)

        await chat.at_once(batches, concurrency, ask)


def run() -> Iterator[Row]:
    """Ours with the store of vectors and without, by the limit; then the bare client by the limit."""
    with chat.serving("served") as url, temporary_home() as (_, engine):
        yield from _rows(url, engine)


def _rows(url: str, engine: Engine) -> Iterator[Row]:
    few, many = (_model(url, concurrency) for concurrency in (FEW, MANY))
    limit_s = TEXTS / BATCH * DELAY_S / FEW
    what = f"{TEXTS:,} texts in batches of {BATCH}, {FEW} at once"
    asked_s, bare_s = medians(lambda: few.encode(texts()), lambda: asyncio.run(bare(url, FEW)))
    kept_s, _ = medians(lambda: embed(texts(), few, engine), lambda: None)
    yield Row(what, "the network's limit", asked_s, limit_s, TARGET)
    yield Row("… store included", "the network's limit", kept_s, limit_s, TARGET)
    yield Row("… bare aiohttp, no store", "the network's limit", bare_s, limit_s, float("inf"))
    times = medians(lambda: many.encode(texts()), lambda: asyncio.run(bare(url, MANY)))
    yield Row(f"the same, {MANY} at once", "bare aiohttp", *times, target=FASTER, goal="at least")


def _model(url: str, concurrency: int) -> Embedder:
    service = EmbedderService(batch=BATCH, concurrency=concurrency)
    model, _ = embedders(f"{url}#bench", Settings(_env_file=None, embedder_service=service))
    return model
