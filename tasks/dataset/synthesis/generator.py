"""Parameters of a synthesis, calls to the generator, and the parser of its replies."""

import json
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator
from sqlalchemy import select

from yarus.db import tables
from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError
from yarus.db.sources import SAMPLE, validate_source_name
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.calls import Call, Model, Reply, strip_thinking
from yarus.tasks.models.prompts import PROMPTS_FOLDER, Prompt, PromptShape
from yarus.tasks.models.prompts import read_prompts as judges_prompts
from yarus.tasks.models.stand_ins import PASSAGE_SEPARATOR
from yarus.tasks.models.verdicts import JSON_FENCE

QuestionKind = Literal["single", "multi", "unanswerable"]
KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)
MAX_QUESTION_CHARS, MAX_ANSWER_CHARS = 300, 2_000


class QAPair(NamedTuple):
    """A question and its answer from the generator, or the problem with the reply."""

    question: str = ""
    answer: str = ""
    problem: str = ""
    replies: tuple[Reply, ...] = ()


def load_synthesis_prompts(settings: Settings) -> dict[str, Prompt]:
    """Return the prompts of synthesis in the language of the settings, and the two prompts of the judge's checks."""
    shape = PromptShape("generator", "text", ("context", "examples"), "context")
    judge_shape = PromptShape("judge", "score", ("question", "context"), "question")
    faithfulness = judges_prompts(settings)["faithfulness"]
    repair = _read_template(settings, "synthesis_repair")
    prompts: dict[str, Prompt] = {kind: _build_prompt(settings, f"synthesis_{kind}", shape, repair) for kind in KINDS}
    answerability = _build_prompt(settings, "answerability", judge_shape, faithfulness.repair)
    return {**prompts, "answerability": answerability, "faithfulness": faithfulness}


async def generate_pair(model: Model, prompt: Prompt, passages: list[str], examples: list[str], repeat: int) -> QAPair:
    """Generate a question and its answer; retry once if the reply is cut off or cannot be parsed.

    Args:
        model: model of the generator.
        prompt: prompt of the requested kind.
        passages: passages for the question.
        examples: real questions as examples of style.
        repeat: number of the try with the same passages.
    """
    texts = {
        "context": PASSAGE_SEPARATOR.join(passages),
        "examples": "\n".join(f"- {text}" for text in examples) or "-",
    }
    call = Call(prompt, texts, repeat)
    replies = [await model.ask(call)]
    pair = parse_pair(replies[0])
    if pair.problem and replies[0].status == "ok":
        retry = replace(call, doubled=True) if replies[0].truncated else replace(call, unread=replies[0].text or "…")
        replies.append(await model.ask(retry))
        pair = parse_pair(replies[1])
    return pair._replace(replies=tuple(replies))


def parse_pair(reply: Reply) -> QAPair:
    """Parse one JSON object with the texts `question` and `answer`, without other text around it."""
    if reply.status != "ok":
        return QAPair(problem="budget" if reply.status == "skipped_budget" else "model_error")
    body = strip_thinking(reply.raw)
    if fenced := JSON_FENCE.fullmatch(body):
        body = fenced[1]
    try:
        parsed: Any = json.loads(body)
    except (ValueError, RecursionError):
        return QAPair(problem="unreadable")
    texts = [parsed.get(name) for name in ("question", "answer")] if isinstance(parsed, dict) else [None]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return QAPair(problem="unreadable")
    question, answer = (" ".join(str(text).replace("\0", "").split()) for text in texts)
    if len(question) > MAX_QUESTION_CHARS or len(answer) > MAX_ANSWER_CHARS:
        return QAPair(problem="too_long")
    return QAPair(question, answer)


def _build_prompt(settings: Settings, name: str, shape: PromptShape, repair: str) -> Prompt:
    return Prompt(name, shape, _read_template(settings, name), repair)


def _read_template(settings: Settings, name: str) -> str:
    return (PROMPTS_FOLDER / settings.language / f"{name}.txt").read_text(encoding="utf-8")


ORIGIN_FORMAT = "synthesized from {} by "


class SynthesisParameters(BaseModel):
    """Source, number and destination of generated questions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(
        "sample", title="Source", description="Source of the chunks, and of the style of its users' questions"
    )
    into: str = Field(title="Into", description="The source that gets the questions, beside the same chunks")
    n: int = Field(100, title="Questions", description="How many are wanted", ge=1, le=100_000)
    kinds: list[QuestionKind] = Field(list(KINDS), title="Kinds", description="In equal shares", min_length=1)
    seed: int = Field(0, title="Seed", description="Seed of the sample of chunks", ge=0)

    @field_validator("kinds", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def check_parameters(parameters: SynthesisParameters) -> None:
    """Check the parameters and the receiving source before any model is called.

    Raises:
        InputError: the source does not exist, or the receiving source has other content.
    """
    data_source = open_source(parameters.source)
    validate_source_name(parameters.into)
    if parameters.into in (SAMPLE, parameters.source):
        raise InputError("--into {into!r}: synthetic questions go into a source of their own", into=parameters.into)
    with reporting_unreachable(database()), database().connect() as connection:
        columns = tables.source.c
        origin = connection.scalar(select(columns.origin).where(columns.name == parameters.into))
    if origin is not None and not origin.startswith(ORIGIN_FORMAT.format(data_source.name)):
        raise InputError(
            "--into {into!r}: that source holds {origin}; choose another name", into=parameters.into, origin=origin
        )
