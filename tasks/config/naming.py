"""What people call evaluations: a name, and tags to find several by. They are words, and change no number."""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from yarus.db.words import Words

NAME_LENGTH, TAG_LENGTH, MOST_TAGS = 80, 40, 20
TAKEN = ("last", "previous", "baseline")
"""What commands call evaluations themselves."""


def evaluation_name(text: str) -> str:
    """The name, in one spelling of those that look alike.

    Raises:
        ValueError: it is empty, too long, cannot be printed on a line, or means something else already.
    """
    name = _printable(text, NAME_LENGTH)
    if name in TAKEN:
        raise ValueError(
            Words("{name!r} is what commands call an evaluation themselves; choose another name", name=name)
        )
    return name


def evaluation_tag(text: str) -> str:
    """The tag, in one spelling of those that look alike.

    Raises:
        ValueError: it is empty, too long, cannot be printed on a line, or has a comma, which parts tags.
    """
    tag = _printable(text, TAG_LENGTH)
    if "," in tag:
        raise ValueError(Words("{tag!r}: a comma parts tags; give each with a --tag of its own", tag=tag))
    return tag


def _printable(text: str, most: int) -> str:
    found = unicodedata.normalize("NFC", text).strip()
    if not found or len(found) > most:
        raise ValueError(Words("1 to {most} characters are allowed, this has {n}", most=most, n=len(found)))
    if not found.isprintable():
        raise ValueError(Words("it is to be one line of characters that can be printed"))
    return found


def _listed(value: object) -> object:
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


EvaluationId = Annotated[str, Field(min_length=1)]
"""Of an evaluation, or the beginning or end of one, or its name."""
FailedOf = Annotated[
    EvaluationId | None,
    Field(
        title="Failed cases of",
        description="Id of an evaluation whose failed cases alone are evaluated again; 'last': of this tier and source",
        examples=["last"],
    ),
]
EvaluationName = Annotated[
    Annotated[str, AfterValidator(evaluation_name)] | None,
    Field(title="Name", description="What people call it; commands find it by that", examples=["before release 2.1"]),
]
EvaluationTags = Annotated[
    list[Annotated[str, AfterValidator(evaluation_tag)]],
    Field(
        title="Tags",
        description="Words that several evaluations share",
        max_length=MOST_TAGS,
        examples=[["nightly", "release-2.1"]],
    ),
    BeforeValidator(_listed),
    AfterValidator(lambda tags: list(dict.fromkeys(tags))),
]
