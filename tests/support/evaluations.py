"""Run judged evaluations in the test process: the flows' steps without Prefect, with a server of language models.

Imported by full name.
"""

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prefect import Task
from sqlalchemy import Engine

from tests.support.llm_server import make_completion, make_score_completion
from yarus.db.importers import table
from yarus.db.loading.load_rows import load_rows
from yarus.db.source_rows import read_questions
from yarus.db.sources import find_loaded_source, open_snapshot
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import batches
from yarus.tasks.models.endpoints import get_setting_prefix
from yarus.tasks.steps import finish

Document = dict[str, Any]
TAGGED_TEXT = re.compile(r"<(\w+)-([0-9a-f]{8})>\n(.*?)\n</\1-\2>", re.DOTALL)
PAGE_URL = "https://wiki.example/pages/viewpage.action?pageId={}"
JUDGED_METRICS = ("faithfulness", "answer_relevance", "answer_correctness")


def evaluate(tier: str, **parameters: Any) -> Document:
    """Evaluate a tier with the flow's own steps in their order, and return the summary."""
    module = import_module(f"yarus.flows.{tier}")
    with pytest.MonkeyPatch.context() as patch:
        for patched in (module, finish, batches):
            for name, value in list(vars(patched).items()):
                if isinstance(value, Task):
                    patch.setattr(patched, name, value.fn)
        patch.setattr(batches, "request_best_effort", _drop_request)  # would start Prefect's server
        patch.setattr(logging.getLogger("yarus"), "handlers", [])  # Prefect's handler needs a flow run
        flow = getattr(module, tier)
        outcome = asyncio.run(flow.fn(TIERS[tier].parameters.model_validate(parameters)))  # type: ignore[index]
    summary: Document = outcome if isinstance(outcome, dict) else outcome.data  # an invalid evaluation ends in a state
    return summary


async def _drop_request(request: Coroutine[Any, Any, Any]) -> None:
    request.close()


def read_cases(summary: Mapping[str, Any]) -> pa.Table:
    """Return the table of cases that an evaluation stored."""
    return pq.ParquetFile(summary["parquet"]).read()


def read_rows(summary: Mapping[str, Any]) -> list[Document]:
    rows: list[Document] = read_cases(summary).to_pylist()
    return rows


def get_value(summary: Mapping[str, Any], metric: str) -> Any:
    return summary["metrics"][metric]["value"]


def texts(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts between the tags of a prompt: question, context, reference, answer."""
    return {name: text for name, _, text in TAGGED_TEXT.findall(request["messages"][0]["content"])}


def get_requested_metric(request: Mapping[str, Any]) -> str:
    """Return the metric that a request asks for, according to its texts."""
    names = set(texts(request)) - {"question"}
    if "answer" not in names:
        return "generation"
    return "faithfulness" if "context" in names else "reference" if "reference" in names else "relevance"


def hash_to_unit(*parts: object) -> float:
    """Return a number from 0 to 1 that depends only on the parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4]) / 2**32


def answer_steadily(number: int, request: dict[str, Any]) -> Any:
    """Reply as a generator that repeats the context's first words, or as a judge with deterministic scores."""
    if get_requested_metric(request) == "generation":
        return make_completion(" ".join(texts(request).get("context", "ничего").split()[:5]), tokens=(10, 5))
    return make_score_completion(round(hash_to_unit(request["messages"][0]["content"]), 1))


def make_role_variables(url: str, *names: str, **more: str) -> dict[str, str]:
    """Return variables that serve these roles from that server, with model names of its own for the call store."""
    server_name = url.removesuffix("/v1").rpartition("/")[2]
    return {
        f"{get_setting_prefix(name)}__{key}": text
        for name in names
        for key, text in {"BASE_URL": url, "MODEL": f"{name}-{server_name}", "CONCURRENCY": "16", **more}.items()
    }


def set_variables(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)


def load(folder: Path, name: str, questions: Iterable[Document], chunks: Iterable[Document] | None = None) -> str:
    """Load questions and chunks as a source, by default ten pages of one chunk, and return its name."""
    data: Sequence[tuple[str, Iterable[Document]]] = (("chunks", chunks or make_passages(10)), ("questions", questions))
    for kind, rows in data:
        file = folder / f"{name}.{kind}.jsonl"
        file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
        report = load_rows(
            database(), name, table.read_table(file, kind), language=get_settings().language, origin=file.name
        )
        assert report.problems == []
    return name


def make_passages(n: int) -> list[Document]:
    """Return n pages of one chunk, each about its own number."""
    return [
        {
            "id": f"c{i}",
            "confluence_url": PAGE_URL.format(i),
            "text": f"Правило {i} велит сдать книгу {i} до мая года {i}.",
        }
        for i in range(n)
    ]


def question(i: int, **more: Any) -> Document:
    """Return a question about page i that is labelled, answered and has a reference."""
    return {
        "id": str(i),
        "question": f"Что велит правило {i}, вариант {i}?",
        "answer": f"Правило {i} велит сдать книгу.",
        "confluence_url": PAGE_URL.format(i % 10),
        "score": 5,
        "ground_truth_answer": f"Сдать книгу {i % 10} до мая.",
        "relevant_chunk_ids": [f"c{i % 10}"],
        "answerable": True,
        "origin": "manual",
    } | more


def read_questions_by_id(engine: Engine, name: str, *, all_rows: bool = True) -> dict[str, Document]:
    """Return the questions of a source with their labels, by id."""
    origin = find_loaded_source(engine, name)
    with open_snapshot(origin) as connection:
        return {row["question_id"]: row for row in read_questions(connection, origin, all_rows=all_rows)}
