"""The production judge as a classifier: does it show the right answers?"""

import asyncio
from typing import Any

import pyarrow as pa

from tasks.cases.table import with_columns
from tasks.config.connections import database
from tasks.evaluation.identity import configured
from tasks.evaluation.repeats import first_repeat
from tasks.evaluation.run import Run
from tasks.models.calls import Call, Model
from tasks.models.chat import chat
from tasks.models.verdicts import YesNo, ask_for_yes_no, value_of
from tasks.prompts import Prompt, prompts
from tasks.steps.judging.judge import with_verdicts


async def decide(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the gate's decision on every logged answer; a reply that is neither yes nor no is no decision."""
    configuration = configured(run)
    prompt = prompts(configuration)["gate"]
    async with chat("gate", configuration, database(), evaluation=run.id) as model:
        repeat = first_repeat(run.id, run.parameters)
        given = await asyncio.gather(*(_case(model, prompt, case, repeat) for case in cases.to_pylist()))
    decisions = [value_of(verdict) for verdict in given]
    right = [
        None if d is None else float(d == shown) for d, shown in zip(decisions, cases["shown"].to_pylist(), strict=True)
    ]
    return with_columns(
        with_verdicts(cases, [{} if verdict is None else {"gate": verdict} for verdict in given]),
        decision=decisions,
        accuracy=right,
        latency_ms=[_latency_ms(verdict) for verdict in given],
    )


async def _case(model: Model, prompt: Prompt, case: dict[str, Any], repeat: int) -> YesNo | None:
    return await ask_for_yes_no(model, Call(prompt, case, repeat)) if case["status"] == "ok" else None


def _latency_ms(verdict: YesNo | None) -> float | None:
    """Of the call; None where it was bought earlier, or nothing was called: the stand-in's 0 is not measured."""
    if verdict is None or verdict.replies[-1].from_store:
        return None
    return verdict.replies[-1].latency_ms or None
