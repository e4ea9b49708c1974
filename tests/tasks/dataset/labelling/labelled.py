"""Evaluations whose answers are truly good or bad, and a judge that errs as it is told. Imported by full name."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.evaluations import chance, evaluate, load, metric_of, question, roles, says, texts, use
from tests.support.llm_server import FakeLLMServer, scores
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.session import Labelling
from yarus.tasks.steps import lifecycle

RATE, SENSITIVITY, SPECIFICITY = 0.7, 0.95, 0.5
Document = dict[str, Any]


def good(asked: str) -> bool:
    """Whether people find the answer to a question good."""
    return chance("truth", asked) < RATE


def judged(asked: str) -> float:
    """What the judge says of it."""
    right = chance("judge", asked) < (SENSITIVITY if good(asked) else SPECIFICITY)
    return float(good(asked) == right)


def answering(number: int, request: Document) -> Any:
    """Generator and judge."""
    if metric_of(request) == "generation":
        return says(f"Ответ: {texts(request)['question']}", tokens=(10, 5))
    return scores(judged(texts(request)["question"]))


@contextmanager
def models() -> Iterator[None]:
    """Generator and judge are served while the block lasts."""
    server = FakeLLMServer(script=answering)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        use(patch, roles(server.url, "generator", "judge"))
        yield
    server.stop()


def evaluated(folder: Path, name: str, n: int = 200, **more: Any) -> Document:
    """Tier 2 over n questions of 40 users; the summary."""
    load(folder, name, [question(i, user_id=str(i % 40)) for i in range(n)])
    with named(name):
        return evaluate("tier2", source=name, **more)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Evaluations have an id that follows from the name while the block lasts, so that the same answers are drawn."""
    digits = hashlib.sha256(name.encode()).hexdigest()

    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Then":
            return cls(2026, 1, 1 + int(digits[:2], 16) % 28, int(digits[2], 16), int(digits[3], 16), tzinfo=tz)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "datetime", Then)
        patch.setattr(lifecycle, "secrets", SimpleNamespace(token_hex=lambda n: digits[4 : 4 + 2 * n]))
        yield


def label(evaluation: str, n: int, *, annotator: str = "anna", metric: str = "avg_faithfulness") -> Labelling:
    """People say the truth of the next n answers."""
    found = Labelling(database(), evaluation, metric)
    for _ in range(n):
        asked = found.next(annotator)
        assert asked is not None
        found.save(annotator, asked["case_id"], float(good(asked["question"])))
    return found


def source_of(request: pytest.FixtureRequest) -> str:
    """A name of a test's own: labels go by source."""
    return re.sub(r"\W", "_", request.node.name.lower())[:40].strip("_")
