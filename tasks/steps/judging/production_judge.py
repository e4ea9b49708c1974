"""The production judge as a classifier: does it show the right answers, and how sure is it?"""

import asyncio
import math
from collections.abc import Sequence

import pyarrow as pa

from yarus.tasks.cases.outcomes import Done, with_outcomes
from yarus.tasks.cases.table import Case, values_of, with_columns
from yarus.tasks.config.parameters import JudgePipeline
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.repeats import first_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.progress import gathered
from yarus.tasks.models.prompts import Prompt, prompts
from yarus.tasks.models.verdicts import Verdict, YesNo, ask_for_yes_no, failure, value_of
from yarus.tasks.steps.judging.judge import with_verdicts
from yarus.tasks.steps.opened import open_model


async def decide(run: Run[JudgePipeline], cases: pa.Table) -> pa.Table:
    """Adds the gate's decision on every logged answer, and how sure it is.

    A reply that is neither yes nor no is no decision; where there is no reply, the system under test has failed. Of
    repeated replies the first one decides.
    """
    configuration = configured(run)
    prompt = prompts(configuration)["gate"]
    async with open_model(run, "gate", configuration) as model:
        repeat = first_repeat(run.id, run.parameters)
        rows = cases.to_pylist()
        given = await gathered(
            "decide", (_case(model, prompt, case, repeat, run.parameters) for case in rows), lambda of: failure(*of)
        )
    first = [verdicts[0] if verdicts else None for verdicts in given]
    decisions = [value_of(verdict) for verdict in first]
    right = [
        None if d is None else float(d == shown) for d, shown in zip(decisions, values_of(cases, "shown"), strict=True)
    ]
    named = [
        {"gate" if number == 0 else f"again:gate#{number}": verdict for number, verdict in enumerate(verdicts)}
        for verdicts in given
    ]
    return with_columns(
        with_verdicts(with_outcomes(cases, [_done(verdict) for verdict in first]), named, counting="gate"),
        decision=decisions,
        accuracy=right,
        show_score=[sureness(verdicts) for verdicts in given],
        latency_ms=[_latency_ms(verdict) for verdict in first],
    )


def _done(verdict: YesNo | None) -> Done:
    """What the gate did with a case; nothing where it was not asked, or the budget was spent."""
    if verdict is None or verdict.status == "skipped_budget":
        return Done()
    return Done("failed", f"gate: {verdict.reason}") if verdict.status == "judge_error" else Done("answered")


def sureness(verdicts: Sequence[YesNo]) -> float | None:
    """How sure the gate is that an answer should be shown, 0..1; None where it has said so but once, yes or no.

    The mean of what each usable reply says: the probability of its first token where that came with it, else 1 or 0.
    """
    usable = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
    known = [_probability(verdict) for verdict in usable]
    if len(usable) < 2 and None in known:
        return None
    found = [float(verdict.value) if p is None else p for verdict, p in zip(usable, known, strict=True)]
    return sum(found) / len(found) if found else None


def _probability(verdict: Verdict[bool]) -> float | None:
    """Of yes, by the reply's first token; None where that came without, or began with something else."""
    reply = verdict.replies[-1]
    if not reply.logprobs or not reply.raw[:1].isalpha():
        return None
    said = math.exp(min(0.0, reply.logprobs[0]))
    return said if verdict.value else 1 - said


async def _case(model: Model, prompt: Prompt, case: Case, repeat: int, parameters: JudgePipeline) -> list[YesNo]:
    if case["status"] != "ok":
        return []
    calls = (Call(prompt, case, repeat + number, logprobs=parameters.logprobs) for number in range(parameters.repeats))
    return list(await asyncio.gather(*(ask_for_yes_no(model, call) for call in calls)))


def _latency_ms(verdict: YesNo | None) -> float | None:
    """Of the call; None where it was bought earlier, or nothing was called: the stand-in's 0 is not measured."""
    if verdict is None or verdict.replies[-1].from_store:
        return None
    return verdict.replies[-1].latency_ms or None
