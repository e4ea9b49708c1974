"""Names and tags that people give to evaluations; they change no metric."""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from yarus.db.messages import Words

NAME_LENGTH, TAG_LENGTH, MOST_TAGS = 80, 40, 20
RESERVED_NAMES = ("last", "previous", "baseline")
"""Names that commands reserve."""


def validate_evaluation_name(text: str) -> str:
    """Return the name, normalised so that look-alikes are equal.

    Raises:
        ValueError: it is empty, too long, not printable on one line, or reserved.
    """
    name = _require_printable(text, NAME_LENGTH)
    if name in RESERVED_NAMES:
        raise ValueError(Words("{name!r} is a reserved word; choose another name", name=name))
    return name


def validate_evaluation_tag(text: str) -> str:
    """Return the tag, normalised so that look-alikes are equal.

    Raises:
        ValueError: it is empty, too long, not printable on one line, or has a comma, which separates tags.
    """
    tag = _require_printable(text, TAG_LENGTH)
    if "," in tag:
        raise ValueError(Words("{tag!r}: a comma separates tags; give each tag with its own --tag", tag=tag))
    return tag


def _require_printable(text: str, max_length: int) -> str:
    normalised = unicodedata.normalize("NFC", text).strip()
    if not normalised or len(normalised) > max_length:
        raise ValueError(Words("1 to {most} characters are allowed, this has {n}", most=max_length, n=len(normalised)))
    if not normalised.isprintable():
        raise ValueError(Words("use one line of printable characters"))
    return normalised


def _split_list(value: object) -> object:
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


EvaluationId = Annotated[str, Field(min_length=1)]
"""Id of an evaluation, the beginning or end of an id, or a name."""
RetryFailed = Annotated[
    EvaluationId | None,
    Field(
        title="Retry failed cases of",
        description="Id of an evaluation whose failed cases alone are evaluated again; 'last': of this tier and source",
        examples=["last"],
    ),
]
EvaluationName = Annotated[
    Annotated[str, AfterValidator(validate_evaluation_name)] | None,
    Field(title="Name", description="Name of the evaluation, for commands", examples=["before release 2.1"]),
]
EvaluationTags = Annotated[
    list[Annotated[str, AfterValidator(validate_evaluation_tag)]],
    Field(
        title="Tags",
        description="Words that several evaluations share",
        max_length=MOST_TAGS,
        examples=[["nightly", "release-2.1"]],
    ),
    BeforeValidator(_split_list),
    AfterValidator(lambda tags: list(dict.fromkeys(tags))),
]
