"""Judged evaluations in the tests' own process: the flows' own steps without Prefect, and a server of language models.

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

from tests.support.llm_server import says, scores
from yarus.db.importers import table
from yarus.db.loading.fill import fill
from yarus.db.source_rows import read_questions
from yarus.db.sources import loaded, snapshot
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import batches
from yarus.tasks.steps import finish

Document = dict[str, Any]
TEXT = re.compile(r"<(\w+)-([0-9a-f]{8})>\n(.*?)\n</\1-\2>", re.DOTALL)
PAGE = "https://wiki.example/pages/viewpage.action?pageId={}"
JUDGED = ("faithfulness", "answer_relevance", "answer_correctness")


def evaluate(tier: str, **parameters: Any) -> Document:
    """The summary of an evaluation by the flow's own steps, in their order."""
    module = import_module(f"yarus.flows.{tier}")
    with pytest.MonkeyPatch.context() as patch:
        for place in (module, finish, batches):
            for name, value in list(vars(place).items()):
                if isinstance(value, Task):
                    patch.setattr(place, name, value.fn)
        patch.setattr(batches, "best_effort", _unheard)  # Prefect's server would be started to be told
        patch.setattr(logging.getLogger("yarus"), "handlers", [])  # Prefect's own, which wants a flow run
        flow = getattr(module, tier)
        done = asyncio.run(flow.fn(TIERS[tier].parameters.model_validate(parameters)))  # type: ignore[index]
    summary: Document = done if isinstance(done, dict) else done.data  # an invalid evaluation ends in a state
    return summary


async def _unheard(request: Coroutine[Any, Any, Any]) -> None:
    request.close()


def cases_of(summary: Mapping[str, Any]) -> pa.Table:
    """The table of cases that an evaluation left."""
    return pq.ParquetFile(summary["parquet"]).read()


def rows_of(summary: Mapping[str, Any]) -> list[Document]:
    rows: list[Document] = cases_of(summary).to_pylist()
    return rows


def value(summary: Mapping[str, Any], metric: str) -> Any:
    return summary["metrics"][metric]["value"]


def texts(request: Mapping[str, Any]) -> dict[str, str]:
    """What stands between the tags of a prompt: question, context, reference, answer."""
    return {name: text for name, _, text in TEXT.findall(request["messages"][0]["content"])}


def metric_of(request: Mapping[str, Any]) -> str:
    """What a request asks for, by the texts that it holds."""
    given = set(texts(request)) - {"question"}
    if "answer" not in given:
        return "generation"
    return "faithfulness" if "context" in given else "reference" if "reference" in given else "relevance"


def chance(*parts: object) -> float:
    """A number from 0 to 1 that depends on nothing but the parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4]) / 2**32


def steady(number: int, request: dict[str, Any]) -> Any:
    """A generator that repeats the context's first words, and a judge that always scores the same text the same."""
    if metric_of(request) == "generation":
        return says(" ".join(texts(request).get("context", "ничего").split()[:5]), tokens=(10, 5))
    return scores(round(chance(request["messages"][0]["content"]), 1))


def roles(url: str, *names: str, **more: str) -> dict[str, str]:
    """The variables that have these roles served by that server, by models of its own: the call store goes by name."""
    own = url.removesuffix("/v1").rpartition("/")[2]
    return {
        f"YARUS_{name.upper()}__{key}": text
        for name in names
        for key, text in {"BASE_URL": url, "MODEL": f"{name}-{own}", "CONCURRENCY": "16", **more}.items()
    }


def use(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)


def load(folder: Path, name: str, questions: Iterable[Document], chunks: Iterable[Document] | None = None) -> str:
    """Loads questions and chunks (by default one a page, ten pages) as a source; its name."""
    given: Sequence[tuple[str, Iterable[Document]]] = (("chunks", chunks or passages(10)), ("questions", questions))
    for kind, rows in given:
        file = folder / f"{name}.{kind}.jsonl"
        file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
        report = fill(database(), name, table.read(file, kind), language=settings().language, origin=file.name)
        assert report.problems == []
    return name


def passages(n: int) -> list[Document]:
    """n pages of one chunk, each about a number of its own."""
    return [
        {"id": f"c{i}", "confluence_url": PAGE.format(i), "text": f"Правило {i} велит сдать книгу {i} до мая года {i}."}
        for i in range(n)
    ]


def question(i: int, **more: Any) -> Document:
    """A question about page i that is labelled, answered and has a reference."""
    return {
        "id": str(i),
        "question": f"Что велит правило {i}, вариант {i}?",
        "answer": f"Правило {i} велит сдать книгу.",
        "confluence_url": PAGE.format(i % 10),
        "score": 5,
        "ground_truth_answer": f"Сдать книгу {i % 10} до мая.",
        "relevant_chunk_ids": [f"c{i % 10}"],
        "answerable": True,
        "origin": "manual",
    } | more


def questions_of(engine: Engine, name: str, *, all_rows: bool = True) -> dict[str, Document]:
    """The questions of a source with their labels, by id."""
    where = loaded(engine, name)
    with snapshot(where) as connection:
        return {row["question_id"]: row for row in read_questions(connection, where, all_rows=all_rows)}
