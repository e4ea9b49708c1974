"""A source with labels for half of its questions, and a judge with set error rates. Imported by full name."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import (
    hash_to_unit,
    load,
    make_passages,
    make_role_variables,
    make_score_completion,
    question,
    set_variables,
    texts,
)
from tests.support.llm_server import FakeLLMServer
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.corrected import store_corrections
from yarus.tasks.dataset.labelling.relevance.pools import people_judgements
from yarus.tasks.dataset.labelling.relevance.result_order import is_fully_judged, results_to_judge
from yarus.tasks.dataset.labelling.relevance_session import RelevanceLabellingSession

SENSITIVITY, SPECIFICITY = 0.85, 0.95
PAGES = 30
NUMBER = re.compile(r"равило (\d+)")
Document = dict[str, Any]


def is_relevant(question_text: str, passage: str) -> bool:
    """Return whether people find the passage relevant: both texts are about the same rule."""
    return int(NUMBER.search(question_text)[1]) % PAGES == int(NUMBER.search(passage)[1])  # type: ignore[index]


def judge_grade(question_text: str, passage: str) -> int:
    """Return the judge's grade of a passage."""
    probability = hash_to_unit("grade", question_text, passage)
    if is_relevant(question_text, passage):
        return 3 if probability < SENSITIVITY else 1
    return 0 if probability < SPECIFICITY else 2


def reply_with_grade(number: int, request: Document) -> Any:
    """Reply with the judge's grade."""
    prompt_texts = texts(request)
    return make_score_completion(judge_grade(prompt_texts["question"], prompt_texts["passage"]))


@contextmanager
def serve_judge(script: Any = reply_with_grade) -> Iterator[FakeLLMServer]:
    """Serve the judge in the block."""
    server = FakeLLMServer(script=script)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        set_variables(patch, make_role_variables(server.url, "judge"))
        yield server
    server.stop()


def load_source(folder: Path, name: str, n: int = 120) -> str:
    """Load questions about 30 rules, every second one without a label, and return the source's name."""
    questions = (question(i, confluence_url=None, **({} if i % 2 else {"relevant_chunk_ids": []})) for i in range(n))
    return load(folder, name, questions, make_passages(PAGES))


def label_results(
    evaluation: str, n: int = 10_000, *, annotator: str = "anna", wrong: bool = False
) -> RelevanceLabellingSession:
    """Label the next n results with the truth or its opposite."""
    session, engine = RelevanceLabellingSession(database(), evaluation), database()
    judgements, labels = people_judgements(session.evaluation_pools, session.said()), list[Label]()
    for sampled in session.evaluation_pools.order:
        question_text = session.evaluation_pools.questions[sampled.row]
        for result in results_to_judge(
            session.evaluation_pools.pools[sampled.row],
            judgements[sampled.row],
            whole=is_fully_judged(session.evaluation_pools.ids[sampled.row]),
        ):
            if len(labels) < n and result["result"] not in judgements[sampled.row]:
                judgement = (
                    is_relevant(question_text, session.evaluation_pools.passages[sampled.row][result["result"]])
                    != wrong
                )
                judgements[sampled.row][result["result"]] = judgement
                labels.append(session.evaluation_pools.label(sampled.row, result, annotator, float(judgement), None))
    store.save_labels(engine, labels)
    store_corrections(engine, session.evaluation_id)
    return session
