"""A value that pydantic refuses, said in our words: what was given, where, what is allowed, and the nearest match."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from yarus.db.errors import InputError, unknown
from yarus.db.words import Words, joined

ALLOWED = {
    "greater_than_equal": Words("expected {ge:g} or more"),
    "greater_than": Words("expected more than {gt:g}"),
    "less_than_equal": Words("expected {le:g} or less"),
    "less_than": Words("expected less than {lt:g}"),
    "literal_error": Words("expected {expected}"),
    "too_short": Words("expected at least {min_length}; leave it out for the default"),
    "string_too_short": Words("it is empty; leave it out for the default"),
    "finite_number": Words("expected a finite number"),
    "dict_type": Words("expected a JSON object; or set its parts one by one, as NAME__PART=VALUE"),
    "none_required": Words("it cannot be given here; leave it out"),
}
"""By pydantic's name of the error; filled in from its context."""
KINDS = {
    "int": Words("expected a whole number"),
    "float": Words("expected a number"),
    "bool": Words("expected true or false"),
    "string": Words("expected a text"),
    "list": Words("expected a comma-separated list"),
}
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
    from yarus.metrics.table import METRICS  # here, because few give any
    from yarus.tasks.config.tiers import TIERS

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
    if kind == "literal_error":
        known = re.findall("'([^']*)'", context["expected"])
        near = difflib.get_close_matches(str(error["input"]), known, n=1)
        said = Words(ALLOWED[kind].template, expected=_one_of(known))
        return joined((said, *(Words("did you mean {name!r}?", name=name) for name in near)))
    if kind in ALLOWED:
        return Words(ALLOWED[kind].template, **context)
    if kind.partition("_")[0] in KINDS:
        return KINDS[kind.partition("_")[0]]
    ours = context.get("error")
    return ours.args[0] if isinstance(ours, ValueError) and ours.args else str(error["msg"])


def _one_of(names: Sequence[str]) -> str:
    *others, last = map(repr, names)
    return Words("{others} or {last}", others=", ".join(others), last=last) if others else last
