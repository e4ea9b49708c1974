"""A source of which half of the questions have no label, and a judge that errs as it is told. Imported by full name."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import chance, load, passages, question, roles, scores, texts, use
from tests.support.llm_server import FakeLLMServer
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.corrected import correct
from yarus.tasks.dataset.labelling.relevance.pools import heard
from yarus.tasks.dataset.labelling.relevance.walk import is_whole, wanted
from yarus.tasks.dataset.labelling.relevance_session import RelevanceLabelling

SENSITIVITY, SPECIFICITY = 0.85, 0.95
PAGES = 30
NUMBER = re.compile(r"равило (\d+)")
Document = dict[str, Any]


def relevant(asked: str, passage: str) -> bool:
    """Whether people find that the passage answers: both are about the same rule."""
    return int(NUMBER.search(asked)[1]) % PAGES == int(NUMBER.search(passage)[1])  # type: ignore[index]


def grade(asked: str, passage: str) -> int:
    """What the judge says."""
    right = chance("grade", asked, passage)
    if relevant(asked, passage):
        return 3 if right < SENSITIVITY else 1
    return 0 if right < SPECIFICITY else 2


def grading(number: int, request: Document) -> Any:
    """The judge."""
    given = texts(request)
    return scores(grade(given["question"], given["passage"]))


@contextmanager
def judge(script: Any = grading) -> Iterator[FakeLLMServer]:
    """Is served while the block lasts."""
    server = FakeLLMServer(script=script)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        use(patch, roles(server.url, "judge"))
        yield server
    server.stop()


def source(folder: Path, name: str, n: int = 120) -> str:
    """Questions about 30 rules, every second one without a label; its name."""
    asked = (question(i, confluence_url=None, **({} if i % 2 else {"relevant_chunk_ids": []})) for i in range(n))
    return load(folder, name, asked, passages(PAGES))


def label(evaluation: str, n: int = 10_000, *, annotator: str = "anna", wrong: bool = False) -> RelevanceLabelling:
    """People say the truth, or its opposite, of the next n results that they are asked about."""
    found, engine = RelevanceLabelling(database(), evaluation), database()
    said, labels = heard(found.of, found.said()), list[Label]()
    for one in found.of.order:
        asked = found.of.questions[one.row]
        for result in wanted(found.of.pools[one.row], said[one.row], whole=is_whole(found.of.ids[one.row])):
            if len(labels) < n and result["result"] not in said[one.row]:
                yes = relevant(asked, found.of.passages[one.row][result["result"]]) != wrong
                said[one.row][result["result"]] = yes
                labels.append(found.of.label(one.row, result, annotator, float(yes), None))
    store.save(engine, labels)
    correct(engine, found.evaluation_id)
    return found
