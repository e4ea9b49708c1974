"""Evaluations with known good and bad answers, and a judge with set error rates. Imported by full name."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.evaluations import (
    evaluate,
    get_requested_metric,
    hash_to_unit,
    load,
    make_completion,
    make_role_variables,
    question,
    set_variables,
    texts,
)
from tests.support.llm_server import FakeLLMServer, make_score_completion
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.session import LabellingSession
from yarus.tasks.steps import lifecycle

RATE, SENSITIVITY, SPECIFICITY = 0.7, 0.95, 0.5
Document = dict[str, Any]


def is_good(question_text: str) -> bool:
    """Return whether people find the answer to a question good."""
    return hash_to_unit("truth", question_text) < RATE


def judge_score(question_text: str) -> float:
    """Return the judge's score of the answer to a question."""
    is_right = hash_to_unit("judge", question_text) < (SENSITIVITY if is_good(question_text) else SPECIFICITY)
    return float(is_good(question_text) == is_right)


def reply_as_models(number: int, request: Document) -> Any:
    """Reply as generator and judge."""
    if get_requested_metric(request) == "generation":
        return make_completion(f"Ответ: {texts(request)['question']}", tokens=(10, 5))
    return make_score_completion(judge_score(texts(request)["question"]))


@contextmanager
def serve_models() -> Iterator[None]:
    """Serve generator and judge in the block."""
    server = FakeLLMServer(script=reply_as_models)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        set_variables(patch, make_role_variables(server.url, "generator", "judge"))
        yield
    server.stop()


def evaluate_labelled(folder: Path, name: str, n: int = 200, **more: Any) -> Document:
    """Evaluate tier 2 over n questions of 40 users and return the summary."""
    load(folder, name, [question(i, user_id=str(i % 40)) for i in range(n)])
    with fix_evaluation_ids(name):
        return evaluate("tier2", source=name, **more)


@contextmanager
def fix_evaluation_ids(name: str) -> Iterator[None]:
    """Derive evaluation ids from the name in the block, so that the same answers are sampled."""
    digits = hashlib.sha256(name.encode()).hexdigest()

    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Then":
            return cls(2026, 1, 1 + int(digits[:2], 16) % 28, int(digits[2], 16), int(digits[3], 16), tzinfo=tz)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "datetime", Then)
        patch.setattr(lifecycle, "secrets", SimpleNamespace(token_hex=lambda n: digits[4 : 4 + 2 * n]))
        yield


def label_answers(
    evaluation: str, n: int, *, annotator: str = "anna", metric: str = "avg_faithfulness"
) -> LabellingSession:
    """Label the next n answers with the truth."""
    session = LabellingSession(database(), evaluation, metric)
    for _ in range(n):
        case = session.next(annotator)
        assert case is not None
        session.save(annotator, case["case_id"], float(is_good(case["question"])))
    return session


def source_name_of(request: pytest.FixtureRequest) -> str:
    """Return a source name unique to the test, because labels are stored by source."""
    return re.sub(r"\W", "_", request.node.name.lower())[:40].strip("_")
