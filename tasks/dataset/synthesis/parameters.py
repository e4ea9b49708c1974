"""What a person chooses for a synthesis, which is also the form in the Prefect UI; checked before it is started."""

from pydantic import BaseModel, ConfigDict, Field, field_validator
from sqlalchemy import select

from yarus.db import tables
from yarus.db.engine import reaching
from yarus.db.errors import InputError
from yarus.db.sources import SAMPLE, checked_name
from yarus.tasks.config.connections import database, source
from yarus.tasks.dataset.synthesis.generator import KINDS, Kind

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
