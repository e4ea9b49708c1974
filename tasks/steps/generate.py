"""Generation: an answer for every case from its context."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa

from yarus.db.words import Words
from yarus.tasks.cases.outcomes import Done, with_outcomes
from yarus.tasks.cases.refusals import declined
from yarus.tasks.cases.table import with_columns
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.repeats import first_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.calls import Call, Reply, RoleName
from yarus.tasks.models.chat import chat
from yarus.tasks.progress.counts import tick
from yarus.tasks.prompts import Prompt, prompts


async def generate(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `answer` and what it cost; a generator that fails makes a `sut_error`, one that declines a `sut_refusal`."""
    configuration = configured(run)
    prompt = prompts(configuration)["generation"]
    parameters = run.parameters
    repeats, logprobs = (parameters.repeats, parameters.logprobs) if isinstance(parameters, Tier2) else (1, False)
    wanted = [n for n, status in enumerate(cases["status"].to_pylist()) if status == "ok"]
    first = first_repeat(run.id, parameters)
    rows = cases.take(pa.array(wanted, pa.int64())).to_pylist()
    asked = [(case, first + repeat) for case in rows for repeat in range(repeats)]
    calls = [_call(prompt, case, repeat, logprobs) for case, repeat in asked]
    async with chat("generator", configuration, database(), evaluation=run.id) as model:
        replies = await model.complete(calls, _told("answer_ideal" if run.tier == "tier2" else "answer", repeats))
    by_case = {number: replies[place * repeats : (place + 1) * repeats] for place, number in enumerate(wanted)}
    return _with_answers(cases, by_case, configuration.refusals)


def _told(step: str, repeats: int) -> Callable[[Reply], None]:
    """Counts a case when as many replies came as are asked of it."""
    come = count(1)

    def told(reply: Reply) -> None:
        if next(come) % repeats == 0:
            tick(step, None if reply.status == "ok" else reply.reason)

    return told


def totals(replies: list[Reply], before: int | float | None, name: str) -> int | float | None:
    """Tokens or money of the replies that were bought now, added to what was there; None where nobody counted."""
    spent = [getattr(reply, name) for reply in replies if not reply.from_store]
    counted = [value for value in (*spent, before) if value is not None]
    return sum(counted) if counted else None


def recorded(role: RoleName, prompt: str, repeat: int, reply: Reply) -> dict[str, Any]:
    """A call as the table of cases keeps it; a stand-in's 0 milliseconds are not measured.

    Args:
        role: of the model.
        prompt: its name, or that of the metric that it is asked for.
        repeat: how often the same had been asked before.
        reply: what came back.
    """
    shown = role == "generator" and reply.status == "ok" and reply.raw.strip() != reply.text.strip()
    return {
        "role": role,
        "prompt": prompt,
        "repeat": repeat,
        "model": reply.served_model or reply.requested_model or None,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "cost_usd": reply.cost_usd,
        "latency_ms": reply.latency_ms or None,
        "stored": reply.from_store,
        "finish_reason": reply.finish_reason,
        "reply": reply.raw if shown else None,
    }


def _call(prompt: Prompt, case: dict[str, str], repeat: int, logprobs: bool) -> Call:
    return Call(prompt, {"question": case["question"], "context": case["context"] or ""}, repeat, logprobs=logprobs)


def _with_answers(cases: pa.Table, by_case: dict[int, list[Reply]], refusals: list[str]) -> pa.Table:
    done = [_generated(by_case[number][0], refusals) if number in by_case else Done() for number in range(len(cases))]
    cases = _not_bought(with_outcomes(cases, done), by_case)
    every = [by_case.get(number, []) for number in range(len(cases))]
    ok = [[reply for reply in replies if reply.status == "ok"] for replies in every]
    return with_columns(
        cases,
        answer=[
            replies[0].text if of.outcome in ("answered", "refused") else None
            for replies, of in zip(every, done, strict=True)
        ],
        answers=[[reply.text for reply in replies] if len(replies) > 1 else None for replies in ok],
        logprobs=[replies[0].logprobs if replies else None for replies in every],
        latency_ms=[replies[0].latency_ms if replies else None for replies in every],
        tokens_in=[totals(replies, None, "tokens_in") for replies in every],
        tokens_out=[totals(replies, None, "tokens_out") for replies in every],
        cost_usd=[totals(replies, None, "cost_usd") for replies in every],
        calls=[[recorded("generator", "generation", n, reply) for n, reply in enumerate(replies)] for replies in every],
    )


def _generated(reply: Reply, refusals: list[str]) -> Done:
    if reply.status == "error":
        return Done("failed", reply.reason)
    if reply.status != "ok":  # it was not asked
        return Done()
    if reply.truncated and not reply.text.strip():
        return Done("failed", Words("cut off before the answer (YARUS_GENERATOR__MAX_TOKENS)"))
    why = declined(reply.text, refusals)
    return Done("refused", why) if why else Done("answered")


def _not_bought(cases: pa.Table, by_case: dict[int, list[Reply]]) -> pa.Table:
    """The cases, with those whose first call was not made in its status: no money was left for it."""
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    for number, (first, *_) in by_case.items():
        if first.status not in ("ok", "error"):
            statuses[number], reasons[number] = first.status, first.reason
    return with_columns(cases, status=statuses, reason=reasons)
