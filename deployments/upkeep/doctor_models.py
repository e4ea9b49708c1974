"""Ask every configured language model one question: whether its answer can be read, and the cost of a call."""

import asyncio
from collections.abc import Iterator

from yarus.db.messages import Words
from yarus.deployments.upkeep.doctor_sources import Check
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.models.calls import Call, Reply, RoleName
from yarus.tasks.models.chat import ChatClient, open_chat
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.verdicts import ask_for_score, ask_for_yes_no

PROMPTS_OF_ROLES: dict[RoleName, str] = {"generator": "generation", "judge": "faithfulness", "gate": "gate"}
MAX_ANSWER_LENGTH = 100
"""Longest part of an answer that is shown, in characters."""


def examine_model(name: RoleName) -> Iterator[Check]:
    """Ask a model one question; report its request format, its answer and the cost of the call.

    Raises:
        InputError: the settings cannot work.
        ModelUnavailable: the server refuses every call.
    """
    yield asyncio.run(_ask_model(name))


async def _ask_model(name: RoleName) -> Check:
    settings = get_settings()
    prompt = read_prompts(settings)[PROMPTS_OF_ROLES[name]]
    words = texts("doctor_question", settings.text_language)
    example = {name: words[name] for name in ("question", "context", "answer")}
    call = Call(prompt, example)
    async with open_chat(name, settings) as model:  # without a store, to test whether the server answers now
        if not isinstance(model, ChatClient):
            raise TypeError(f"{name} has no server")
        if name == "generator":
            reply = await model.ask(call)
            problem = None if reply.status == "ok" and reply.text else reply.reason or Words("the answer is empty")
        else:
            verdict = await (ask_for_yes_no if name == "gate" else ask_for_score)(model, call)
            reply, problem = verdict.replies[-1], None if verdict.status == "ok" else verdict.reason
        request_format = model.profile.summary
    model_name = settings.get_role(name).model
    if reply.status != "ok":
        return Check(
            Words("model {name}", name=name),
            Words("{model}: {wrong}", model=model_name, wrong=problem),
            Words("See docs/models.md"),
            exit_code=3,
        )
    finding = Words(
        "{model}, sent {takes}: {used}; it answers {answer!r}",
        model=model_name,
        takes=request_format,
        used=_describe_usage(reply),
        answer=" ".join(reply.text.split())[:MAX_ANSWER_LENGTH],
    )
    if problem is None:
        return Check(Words("model {name}", name=name), finding)
    return Check(
        Words("model {name}", name=name),
        finding,
        Words("This reply cannot be read ({wrong}), so the case has no value; set a larger model", wrong=problem),
        exit_code=3,
    )


def _describe_usage(reply: Reply) -> str:
    """Describe tokens, time and money of a call, as far as they are known."""
    unknown = "?"
    cost = "" if reply.cost_usd is None else f", ${reply.cost_usd:.6f}"
    return Words(
        "{tokens_in} + {tokens_out} tokens, {seconds:.1f} s{cost} a call",
        tokens_in=unknown if reply.tokens_in is None else reply.tokens_in,
        tokens_out=unknown if reply.tokens_out is None else reply.tokens_out,
        seconds=(reply.latency_ms or 0) / 1000,
        cost=cost,
    )
