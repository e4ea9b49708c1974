"""Judge every answer on every metric, and follow-up answers in dialogs."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from typing_extensions import TypedDict

from yarus.metrics.metric import RUBRIC_PREFIX
from yarus.tasks.cases.dialogs import history_messages
from yarus.tasks.cases.outcomes import set_failures
from yarus.tasks.cases.table import Case, optional_column_values, set_columns
from yarus.tasks.cases.vocabulary import ANSWERED_STATUSES
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.repeats import first_repeat_number
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.calls import Call, Model, Reply, RoleName
from yarus.tasks.models.progress import gather_cases
from yarus.tasks.models.prompts import SHAPES, Prompt, read_prompts
from yarus.tasks.models.verdicts import MissingVerdict, Score, Verdict, ask_for_score, describe_failure, get_value
from yarus.tasks.steps.generation import RecordedCall, record_call, sum_usage
from yarus.tasks.steps.open_models import open_model


async def judge(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add a column per judged metric, including user rubrics, with the judge's raw replies, reasons and costs.

    A refusal is not judged: for an answerable question its usefulness is 0 and its faithfulness undefined; for an
    unanswerable one it is right and has no score. If the judge fails, the score is NULL and the case gets the status.
    """
    configuration = effective_settings(run)
    by_name = read_prompts(configuration)
    metrics = tuple(run.config.judge["prompts"])
    if configuration.judge.base_url is None:  # the stand-in does not support rubrics
        by_name = {name: prompt for name, prompt in by_name.items() if not name.startswith(RUBRIC_PREFIX)}
    async with open_model(run, "judge", configuration) as model:
        repeat = first_repeat_number(run.id, run.parameters)
        pending = (_judge_case(model, by_name, case, metrics, repeat) for case in cases.to_pylist())
        rows = await gather_cases("judge", pending, lambda row: describe_failure(*row[1].values()))
    columns: dict[str, list[Any]] = {metric: [scores[metric] for scores, _ in rows] for metric in metrics}
    verdicts = [case_verdicts for _, case_verdicts in rows]
    return set_columns(add_verdicts(cases, verdicts), **columns)


async def _judge_case(
    model: Model, prompts: dict[str, Prompt], case: Case, metrics: Sequence[str], repeat: int
) -> tuple[dict[str, float | None], dict[str, Score]]:
    """Return the scores of a case, and the verdicts they come from."""
    if case["status"] == "sut_refusal":
        return {metric: _refusal_score(case, metric) for metric in metrics}, {}
    if case["status"] != "ok":
        return dict.fromkeys(metrics), {}
    available = (metric for metric in metrics if metric in prompts)
    judged = [metric for metric in available if all(case.get(name) for name in prompts[metric].shape.variables)]
    results = await asyncio.gather(*(ask_for_score(model, Call(prompts[metric], case, repeat)) for metric in judged))
    verdicts = dict(zip(judged, results, strict=True))
    return {metric: get_value(verdicts.get(metric)) for metric in metrics}, verdicts


def _refusal_score(case: Case, metric: str) -> float | None:
    if metric == "faithfulness" or metric.startswith(RUBRIC_PREFIX) or case["answerable"] is False:
        return None
    return 0.0 if all(case[name] for name in SHAPES[metric].variables if name != "answer") else None


def add_verdicts(
    cases: pa.Table, verdicts: Sequence[Mapping[str, Verdict[Any] | MissingVerdict]], *, counting: str = ""
) -> pa.Table:
    """Add raw replies, the judge's reasons, costs, and the worst of the statuses to the cases.

    A refusal stays one whatever its verdicts are: the system has declined.

    Args:
        cases: n rows.
        verdicts: of each case, by metric; `metric#2` is its repetition number 2.
        counting: only metrics whose name begins so affect the case's status.
    """
    failures = (
        (row, verdict.status, f"{metric}: {verdict.reason}")
        for row, case_verdicts in enumerate(verdicts)
        for metric, verdict in case_verdicts.items()
        if metric.startswith(counting)
    )
    replies = [[reply for verdict in case_verdicts.values() for reply in verdict.replies] for case_verdicts in verdicts]
    raw = [[raw_reply for item in case_verdicts.items() for raw_reply in _raw(*item)] for case_verdicts in verdicts]
    calls = [[raw_reply for item in case_verdicts.items() for raw_reply in _calls(*item)] for case_verdicts in verdicts]
    reasons = [
        [f"{metric}: {verdict.reason}" for metric, verdict in case_verdicts.items() if verdict.reason]
        for case_verdicts in verdicts
    ]
    return set_columns(
        set_failures(cases, failures),
        judge_raw=_append_column(cases, "judge_raw", raw),
        calls=_append_column(cases, "calls", calls),
        judge_reasons=_append_column(cases, "judge_reasons", reasons),
        **{name: _add_usage(cases, replies, name) for name in ("tokens_in", "tokens_out", "cost_usd")},
    )


def _append_column(cases: pa.Table, name: str, added: list[list[Any]]) -> list[list[Any]]:
    """Return the values of another step in this column, extended by those of this step."""
    return [[*(earlier or ()), *new] for earlier, new in zip(optional_column_values(cases, name), added, strict=True)]


class RawReply(TypedDict):
    """A reply of a judge as received, in the column `judge_raw`."""

    metric: str
    repeat: int
    reply: str
    status: str


def _raw(metric: str, verdict: Verdict[Any] | MissingVerdict) -> list[RawReply]:
    """Return the raw replies of a verdict; one that was retried had no score, whatever came after it."""
    name, _, repeat = metric.partition("#")
    last = len(verdict.replies) - 1
    return [
        {
            "metric": name,
            "repeat": int(repeat or 0),
            "reply": reply.raw,
            "status": verdict.status if position == last else "parse_error",
        }
        for position, reply in enumerate(verdict.replies)
    ]


def _calls(metric: str, verdict: Verdict[Any] | MissingVerdict) -> list[RecordedCall]:
    name, _, repeat = metric.partition("#")
    role: RoleName = "gate" if name.rpartition(":")[2] == "gate" else "judge"
    return [record_call(role, name, int(repeat or 0), reply) for reply in verdict.replies]


def _add_usage(cases: pa.Table, replies: list[list[Reply]], name: str) -> list[int | float | None]:
    return [sum_usage(new, old, name) for new, old in zip(replies, optional_column_values(cases, name), strict=True)]


METRIC = "history_use"
ROLE_LABELS = {"user": "question", "assistant": "answer"}


async def judge_dialogs(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add scores of how well answers to follow-up questions use the dialog's history, if the source has dialogs.

    The judge sees the dialog as the user saw it: the original questions and this system's own answers, whether or not
    the system received them. Opening turns have no history: NULL, as are unlabelled and failed cases. A refusal scores
    0 if the question could be answered.
    """
    if run.config.dialogs is None:
        return cases
    configuration, rows = effective_settings(run), cases.to_pylist()
    prompt, repeat = read_prompts(configuration)["follow_up"], first_repeat_number(run.id, run.parameters)
    histories = collect_history(rows)
    async with open_model(run, "judge", configuration) as model:
        results = await gather_cases(
            "judge_dialogs",
            (_ask_judge(model, prompt, case, history, repeat) for case, history in zip(rows, histories, strict=True)),
            describe_failure,
        )
    verdicts = [{} if verdict is None else {METRIC: verdict} for verdict in results]
    refused = [bool(history) and case["status"] == "sut_refusal" for case, history in zip(rows, histories, strict=True)]
    defaults = [
        0.0 if has_refused and case["answerable"] is not False else None
        for case, has_refused in zip(rows, refused, strict=True)
    ]
    scores = [get_value(verdict) if verdict else value for verdict, value in zip(results, defaults, strict=True)]
    return set_columns(add_verdicts(cases, verdicts), history_use=scores)


def collect_history(rows: Sequence[Case]) -> list[dict[str, str]]:
    """Return the history of each case's dialog by label: question_1, answer_1, question_2 and so on.

    Args:
        rows: cases, those of a dialog in the order of its turns.
    """
    dialogs: dict[str, dict[str, str]] = {}
    histories: list[dict[str, str]] = []
    for case in rows:
        history = dialogs.setdefault(case["dialog"], {}) if case["dialog"] is not None else {}
        histories.append(dict(history))
        for message in history_messages(case["question"], case["answer"], case.get("path")):
            history[f"{ROLE_LABELS[message['role']]}_{case['turn']}"] = message["content"]
    return histories


async def _ask_judge(model: Model, prompt: Prompt, case: Case, history: Mapping[str, str], repeat: int) -> Score | None:
    """Return the judge's verdict; None if the judge is not asked."""
    if case["status"] not in ANSWERED_STATUSES or not history or not case["answer"]:
        return None
    return await ask_for_score(model, Call(prompt, case | {"history": history}, repeat))
