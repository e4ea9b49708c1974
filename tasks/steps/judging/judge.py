"""Judging: a judge's score of every answer for every metric, and of follow-up answers in dialogs."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from typing_extensions import TypedDict

from yarus.metrics.metric import RUBRIC
from yarus.tasks.cases.dialogs import spoken
from yarus.tasks.cases.outcomes import fail
from yarus.tasks.cases.table import Case, values_if_any, with_columns
from yarus.tasks.cases.vocabulary import SAID
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.repeats import first_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.calls import Call, Model, Reply, RoleName
from yarus.tasks.models.progress import gathered
from yarus.tasks.models.prompts import SHAPES, Prompt, prompts
from yarus.tasks.models.verdicts import NoVerdict, Score, Verdict, ask_for_score, failure, value_of
from yarus.tasks.steps.generation import RecordedCall, recorded, totals
from yarus.tasks.steps.opened import open_model


async def judge(run: Run, cases: pa.Table) -> pa.Table:
    """Adds a column a judged metric, also the user's own, the judge's replies as received, its reasons, and its cost.

    A refusal is not judged: of an answerable question it is worth 0 to the user, and has nothing to be faithful about;
    of an unanswerable one it is right and has no score. A judge that fails leaves NULL and makes the case's status.
    """
    configuration = configured(run)
    known = prompts(configuration)
    metrics = tuple(run.config.judge["prompts"])
    if configuration.judge.base_url is None:  # the stand-in cannot read what a rubric asks
        known = {name: prompt for name, prompt in known.items() if not name.startswith(RUBRIC)}
    async with open_model(run, "judge", configuration) as model:
        repeat = first_repeat(run.id, run.parameters)
        asked = (_case(model, known, case, metrics, repeat) for case in cases.to_pylist())
        rows = await gathered("judge", asked, lambda of: failure(*of[1].values()))
    columns: dict[str, list[Any]] = {metric: [scores[metric] for scores, _ in rows] for metric in metrics}
    verdicts = [given for _, given in rows]
    return with_columns(with_verdicts(cases, verdicts), **columns)


async def _case(
    model: Model, known: dict[str, Prompt], case: Case, metrics: Sequence[str], repeat: int
) -> tuple[dict[str, float | None], dict[str, Score]]:
    """The scores of a case, and the verdicts they come from."""
    if case["status"] == "sut_refusal":
        return {metric: _worth_of_refusal(case, metric) for metric in metrics}, {}
    if case["status"] != "ok":
        return dict.fromkeys(metrics), {}
    possible = (metric for metric in metrics if metric in known)
    asked = [metric for metric in possible if all(case.get(name) for name in known[metric].shape.variables)]
    given = await asyncio.gather(*(ask_for_score(model, Call(known[metric], case, repeat)) for metric in asked))
    verdicts = dict(zip(asked, given, strict=True))
    return {metric: value_of(verdicts.get(metric)) for metric in metrics}, verdicts


def _worth_of_refusal(case: Case, metric: str) -> float | None:
    if metric == "faithfulness" or metric.startswith(RUBRIC) or case["answerable"] is False:
        return None
    return 0.0 if all(case[name] for name in SHAPES[metric].variables if name != "answer") else None


def with_verdicts(
    cases: pa.Table, verdicts: Sequence[Mapping[str, Verdict[Any] | NoVerdict]], *, counting: str = ""
) -> pa.Table:
    """The cases with every reply as received, the judge's reasons, what it cost, and the worst of the statuses.

    A refusal stays one, whatever becomes of what is asked about it: the system has declined.

    Args:
        cases: n rows.
        verdicts: of each case, by metric; `metric#2` is its repetition number 2.
        counting: only metrics whose name begins so decide the case's status.
    """
    failures = (
        (number, verdict.status, f"{metric}: {verdict.reason}")
        for number, given in enumerate(verdicts)
        for metric, verdict in given.items()
        if metric.startswith(counting)
    )
    replies = [[reply for verdict in given.values() for reply in verdict.replies] for given in verdicts]
    raw = [[row for item in given.items() for row in _raw(*item)] for given in verdicts]
    calls = [[row for item in given.items() for row in _calls(*item)] for given in verdicts]
    said = [
        [f"{metric}: {verdict.reason}" for metric, verdict in given.items() if verdict.reason] for given in verdicts
    ]
    return with_columns(
        fail(cases, failures),
        judge_raw=_beside(cases, "judge_raw", raw),
        calls=_beside(cases, "calls", calls),
        judge_reasons=_beside(cases, "judge_reasons", said),
        **{name: _spent(cases, replies, name) for name in ("tokens_in", "tokens_out", "cost_usd")},
    )


def _beside(cases: pa.Table, name: str, more: list[list[Any]]) -> list[list[Any]]:
    """What another step has put there, and this one's."""
    return [[*(old or ()), *new] for old, new in zip(values_if_any(cases, name), more, strict=True)]


class RawReply(TypedDict):
    """A reply of a judge as received, in the column `judge_raw`."""

    metric: str
    repeat: int
    reply: str
    status: str


def _raw(metric: str, verdict: Verdict[Any] | NoVerdict) -> list[RawReply]:
    """A reply that was asked for again had no score, whatever came after it."""
    name, _, repeat = metric.partition("#")
    last = len(verdict.replies) - 1
    return [
        {
            "metric": name,
            "repeat": int(repeat or 0),
            "reply": reply.raw,
            "status": verdict.status if place == last else "parse_error",
        }
        for place, reply in enumerate(verdict.replies)
    ]


def _calls(metric: str, verdict: Verdict[Any] | NoVerdict) -> list[RecordedCall]:
    name, _, repeat = metric.partition("#")
    role: RoleName = "gate" if name.rpartition(":")[2] == "gate" else "judge"
    return [recorded(role, name, int(repeat or 0), reply) for reply in verdict.replies]


def _spent(cases: pa.Table, replies: list[list[Reply]], name: str) -> list[int | float | None]:
    return [totals(given, before, name) for given, before in zip(replies, values_if_any(cases, name), strict=True)]


METRIC = "history_use"
CALLED = {"user": "question", "assistant": "answer"}


async def judge_dialogs(run: Run, cases: pa.Table) -> pa.Table:
    """Adds how far the answers to follow-up questions take up what was said before, where the source has dialogs.

    The judge is shown the dialog as the user saw it, the questions as they were meant and this system's own answers,
    whether the system was told of them or not. What opens a dialog has nothing to take up: NULL, as is what is not
    labelled or failed. A refusal is worth 0 where there was an answer to give.
    """
    if run.config.dialogs is None:
        return cases
    configuration, rows = configured(run), cases.to_pylist()
    prompt, repeat = prompts(configuration)["follow_up"], first_repeat(run.id, run.parameters)
    before = heard(rows)
    async with open_model(run, "judge", configuration) as model:
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
