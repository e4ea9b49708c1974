"""Judging dialogs: does the answer to a follow-up question take up what was said before?"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from yarus.tasks.cases.dialogs import spoken
from yarus.tasks.cases.table import with_columns
from yarus.tasks.cases.vocabulary import SAID
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.repeats import first_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.chat import chat
from yarus.tasks.models.verdicts import Score, ask_for_score, failure, value_of
from yarus.tasks.progress.counts import gathered
from yarus.tasks.prompts import Prompt, prompts
from yarus.tasks.steps.judging.judge import with_verdicts

Case = dict[str, Any]
METRIC = "history_use"
CALLED = {"user": "question", "assistant": "answer"}


async def judge_dialogs(run: Run, cases: pa.Table) -> pa.Table:
    """Adds how far the answers to follow-up questions take up what was said before, where the source has dialogs.

    The judge is shown the dialog as the user saw it, the questions as they were meant and this system's own answers,
    whether the system was told of them or not. What opens a dialog has nothing to take up: NULL, as is what is not
    labelled or failed. A refusal is worth 0 where there was an answer to give.
    """
    if "dialogs" not in run.resolved:
        return cases
    configuration, rows = configured(run), cases.to_pylist()
    prompt, repeat = prompts(configuration)["follow_up"], first_repeat(run.id, run.parameters)
    before = heard(rows)
    async with chat("judge", configuration, database(), evaluation=run.id) as model:
        given = await gathered(
            "judge_dialogs",
            (_verdict(model, prompt, case, of, repeat) for case, of in zip(rows, before, strict=True)),
            failure,
        )
    verdicts = [{} if verdict is None else {METRIC: verdict} for verdict in given]
    refused = [bool(of) and case["status"] == "sut_refusal" for case, of in zip(rows, before, strict=True)]
    worth = [0.0 if no and case["answerable"] is not False else None for case, no in zip(rows, refused, strict=True)]
    used = [value_of(verdict) if verdict else value for verdict, value in zip(given, worth, strict=True)]
    return with_columns(with_verdicts(cases, verdicts), history_use=used)


def heard(rows: Sequence[Case]) -> list[dict[str, str]]:
    """What was said in each case's dialog before it, by label: question_1, answer_1, question_2 and so on.

    Args:
        rows: cases, those of a dialog in the order of its turns.
    """
    dialogs: dict[str, dict[str, str]] = {}
    found: list[dict[str, str]] = []
    for case in rows:
        history = dialogs.setdefault(case["dialog"], {}) if case["dialog"] is not None else {}
        found.append(dict(history))
        for message in spoken(case["question"], case["answer"], case.get("path")):
            history[f"{CALLED[message['role']]}_{case['turn']}"] = message["content"]
    return found


async def _verdict(model: Model, prompt: Prompt, case: Case, before: Mapping[str, str], repeat: int) -> Score | None:
    """What the judge says; None where he is not asked."""
    if case["status"] not in SAID or not before or not case["answer"]:
        return None
    return await ask_for_score(model, Call(prompt, case | {"history": before}, repeat))
