"""One question to every configured language model: whether its answer can be read, and what a call costs."""

import asyncio
from collections.abc import Iterator

from yarus.db.words import Words
from yarus.deployments.upkeep.doctor_sources import Check
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts
from yarus.tasks.models.calls import Call, Reply, RoleName
from yarus.tasks.models.chat import Chat, chat
from yarus.tasks.models.prompts import prompts
from yarus.tasks.models.verdicts import ask_for_score, ask_for_yes_no

PROMPT: dict[RoleName, str] = {"generator": "generation", "judge": "faithfulness", "gate": "gate"}
SHOWN = 100
"""Characters of an answer."""


def examine_model(name: RoleName) -> Iterator[Check]:
    """Ask a model one question; report what its server takes, its answer and the cost of the call.

    Raises:
        InputError: settings that cannot work.
        ModelUnavailable: the server refuses every call.
    """
    yield asyncio.run(_ask_model(name))


async def _ask_model(name: RoleName) -> Check:
    configuration = settings()
    prompt = prompts(configuration)[PROMPT[name]]
    words = texts("doctor_question", configuration.language)
    example = {name: words[name] for name in ("question", "context", "answer")}
    call = Call(prompt, example)
    async with chat(name, configuration) as model:  # without a store: it shows whether the server answers now
        if not isinstance(model, Chat):
            raise TypeError(f"{name} has no server")
        if name == "generator":
            reply = await model.ask(call)
            wrong = None if reply.status == "ok" and reply.text else reply.reason or Words("the answer is empty")
        else:
            verdict = await (ask_for_yes_no if name == "gate" else ask_for_score)(model, call)
            reply, wrong = verdict.replies[-1], None if verdict.status == "ok" else verdict.reason
        takes = model.profile.summary
    model_name = getattr(configuration, name).model
    if reply.status != "ok":
        return Check(
            Words("model {name}", name=name),
            Words("{model}: {wrong}", model=model_name, wrong=wrong),
            Words("See docs/models.md"),
            code=3,
        )
    found = Words(
        "{model}, sent {takes}: {used}; it answers {answer!r}",
        model=model_name,
        takes=takes,
        used=_describe_usage(reply),
        answer=" ".join(reply.text.split())[:SHOWN],
    )
    if wrong is None:
        return Check(Words("model {name}", name=name), found)
    return Check(
        Words("model {name}", name=name),
        found,
        Words("This reply cannot be read ({wrong}), so the case has no value; set a larger model", wrong=wrong),
        code=3,
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
