"""The parameters of a synthesis, what the generator is asked for, and how its replies are read."""

import json
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator
from sqlalchemy import select

from yarus.db import tables
from yarus.db.engine import reaching
from yarus.db.errors import InputError
from yarus.db.sources import SAMPLE, checked_name
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.calls import Call, Model, Reply, without_thinking
from yarus.tasks.models.prompts import FOLDER, Prompt, Shape
from yarus.tasks.models.prompts import prompts as judges_prompts
from yarus.tasks.models.stand_ins import PARTED
from yarus.tasks.models.verdicts import FENCED

Kind = Literal["single", "multi", "unanswerable"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LONGEST_QUESTION, LONGEST_ANSWER = 300, 2_000


class Pair(NamedTuple):
    """A question and its answer, as the generator gave them; or why there is none."""

    question: str = ""
    answer: str = ""
    problem: str = ""
    replies: tuple[Reply, ...] = ()


def prompts_of(settings: Settings) -> dict[str, Prompt]:
    """The prompts of synthesis, in the language of the settings, and the judge's two that check what was made."""
    made = Shape("generator", "text", ("context", "examples"), "context")
    checked = Shape("judge", "score", ("question", "context"), "question")
    own = judges_prompts(settings)["faithfulness"]
    repair = _text(settings, "synthesis_repair")
    found: dict[str, Prompt] = {kind: _prompt(settings, f"synthesis_{kind}", made, repair) for kind in KINDS}
    answerability = _prompt(settings, "answerability", checked, own.repair)
    return {**found, "answerability": answerability, "faithfulness": own}


async def invent(model: Model, prompt: Prompt, passages: list[str], examples: list[str], repeat: int) -> Pair:
    """Has a question made; a reply that was cut off or cannot be read is asked for again once.

    Args:
        model: the generator.
        prompt: of the kind that is wanted.
        passages: what the question is about.
        examples: real questions, whose voice is taken.
        repeat: number of the try with the same passages.
    """
    texts = {"context": PARTED.join(passages), "examples": "\n".join(f"- {text}" for text in examples) or "-"}
    call = Call(prompt, texts, repeat)
    replies = [await model.ask(call)]
    pair = read_pair(replies[0])
    if pair.problem and replies[0].status == "ok":
        again = replace(call, doubled=True) if replies[0].truncated else replace(call, unread=replies[0].text or "…")
        replies.append(await model.ask(again))
        pair = read_pair(replies[1])
    return pair._replace(replies=tuple(replies))


def read_pair(reply: Reply) -> Pair:
    """Reads one JSON object with the texts `question` and `answer`, and nothing else around it."""
    if reply.status != "ok":
        return Pair(problem="budget" if reply.status == "skipped_budget" else "model_error")
    body = without_thinking(reply.raw)
    if fenced := FENCED.fullmatch(body):
        body = fenced[1]
    try:
        given: Any = json.loads(body)
    except (ValueError, RecursionError):
        return Pair(problem="unreadable")
    texts = [given.get(name) for name in ("question", "answer")] if isinstance(given, dict) else [None]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return Pair(problem="unreadable")
    question, answer = (" ".join(str(text).replace("\0", "").split()) for text in texts)
    if len(question) > LONGEST_QUESTION or len(answer) > LONGEST_ANSWER:
        return Pair(problem="too_long")
    return Pair(question, answer)


def _prompt(settings: Settings, name: str, shape: Shape, repair: str) -> Prompt:
    return Prompt(name, shape, _text(settings, name), repair)


def _text(settings: Settings, name: str) -> str:
    return (FOLDER / settings.language / f"{name}.txt").read_text(encoding="utf-8")


ORIGIN = "synthesized from {} by "


class Synthesis(BaseModel):
    """What to make questions from, how many, and where they go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field("sample", title="Source", description="Whose chunks are asked about, in its users' voice")
    into: str = Field(title="Into", description="The source that gets the questions, beside the same chunks")
    n: int = Field(100, title="Questions", description="How many are wanted", ge=1, le=100_000)
    kinds: list[Kind] = Field(list(KINDS), title="Kinds", description="In equal shares", min_length=1)
    seed: int = Field(0, title="Seed", description="Of the sample of chunks", ge=0)

    @field_validator("kinds", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def check(parameters: Synthesis) -> None:
    """Finds what cannot work before anything is asked; the receiving source too.

    Raises:
        InputError: no such source, or the receiving one holds something else.
    """
    where = source(parameters.source)
    checked_name(parameters.into)
    if parameters.into in (SAMPLE, parameters.source):
        raise InputError("--into {into!r}: synthetic questions go into a source of their own", into=parameters.into)
    with reaching(database()), database().connect() as connection:
        of = tables.source.c
        origin = connection.scalar(select(of.origin).where(of.name == parameters.into))
    if origin is not None and not origin.startswith(ORIGIN.format(where.name)):
        raise InputError(
            "--into {into!r}: that source holds {origin}; choose another name", into=parameters.into, origin=origin
        )
