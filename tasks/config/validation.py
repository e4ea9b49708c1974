"""A value that pydantic refuses, said in our words: what was given, where, what is allowed, and the nearest match."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from db.errors import InputError, unknown

ALLOWED = {
    "greater_than_equal": "expected {ge:g} or more",
    "greater_than": "expected more than {gt:g}",
    "less_than_equal": "expected {le:g} or less",
    "less_than": "expected less than {lt:g}",
    "literal_error": "expected {expected}",
    "too_short": "expected at least {min_length}; leave it out for the default",
    "finite_number": "expected a finite number",
    "none_required": "it cannot be given here; leave it out",
}
"""By pydantic's name of the error; filled in from its context."""
KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "a text"}
KINDS |= {"list": "a comma-separated list"}
"""By what pydantic's name of an error about a type begins with."""
LeastChange = Annotated[float, Field(gt=0)]
LONGEST = 60
"""Characters of what was given that are repeated."""


def bad_value(error: ValidationError, place: str) -> InputError:
    """The error for the first value that is refused.

    Args:
        error: of a model whose fields are what the user gave.
        place: whose parameter it is, such as the name of a tier.
    """
    first = error.errors()[0]
    given = repr(first["input"])
    given = given if len(given) <= LONGEST else f"{given[:LONGEST]}…"
    return InputError(f"{place}: {first['loc'][0]} = {given}: {allowed(first)}")


def known_metrics(names: Iterable[str], place: str) -> None:
    """Checks names of metrics that a setting is given for.

    Raises:
        InputError: there is no such metric; the nearest is named.
    """
    for name in names:
        from metrics.table import METRICS  # here, because few name any

        if name not in METRICS:
            raise unknown(f"metric in {place}:", name, METRICS)


def allowed(error: Mapping[str, Any]) -> str:
    """What could have been given in the place of what was, and the nearest of it.

    Args:
        error: one of pydantic's `ValidationError.errors()`.
    """
    kind, context = error["type"], error.get("ctx", {})
    if kind in ALLOWED:
        near = difflib.get_close_matches(str(error["input"]), re.findall("'([^']*)'", context.get("expected", "")), n=1)
        return ALLOWED[kind].format(**context) + "".join(f"; did you mean {name!r}?" for name in near)
    if kind.partition("_")[0] in KINDS:
        return f"expected {KINDS[kind.partition('_')[0]]}"
    return str(error["msg"]).removeprefix("Value error, ")
