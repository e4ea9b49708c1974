"""A value that pydantic refuses, said in our words: what was given, where, what is allowed, and the nearest match."""

import difflib
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from db.errors import InputError, unknown
from db.words import Words

ALLOWED = {
    "greater_than_equal": "expected {ge:g} or more",
    "greater_than": "expected more than {gt:g}",
    "less_than_equal": "expected {le:g} or less",
    "less_than": "expected less than {lt:g}",
    "literal_error": "expected {expected}",
    "too_short": "expected at least {min_length}; leave it out for the default",
    "string_too_short": "it is empty; leave it out for the default",
    "finite_number": "expected a finite number",
    "dict_type": "expected a JSON object; or set its parts one by one, as NAME__PART=VALUE",
    "none_required": "it cannot be given here; leave it out",
}
"""By pydantic's name of the error; filled in from its context."""
KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "a text"}
KINDS |= {"list": "a comma-separated list"}
"""By what pydantic's name of an error about a type begins with."""
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
    return InputError(
        "{place}: {name} = {given}: {allowed}", place=place, name=first["loc"][0], given=given, allowed=allowed(first)
    )


def least_changes(given: Mapping[str, float], place: str) -> None:
    """Checks the metrics and values of a setting of losses that raise an alarm.

    Raises:
        InputError: no headline metric has that name, or so much cannot be lost of it.
    """
    if not given:
        return
    from metrics.table import METRICS  # here, because few give any
    from tasks.config.tiers import TIERS

    watched = {name for tier in TIERS.values() for name in tier.headlines}
    for name, loss in given.items():
        if name not in watched:
            raise unknown(Words("headline metric in {place}:", place=place), name, watched)
        if loss > (most := METRICS[name].high - METRICS[name].low):
            raise InputError(
                "{place}__{variable}: expected {most:g} or less, the range of the metric (given: {loss:g}); a point "
                "is {point:g}",
                place=place,
                variable=name.upper(),
                most=most,
                loss=loss,
                point=most / 100,
            )


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
