"""Errors for values that pydantic rejects: the value, its place, allowed values and the nearest match."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from yarus.db.errors import InputError, unknown
from yarus.db.messages import Words, join_messages

MESSAGES_BY_ERROR = {
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
"""Messages by pydantic's error type; its context fills them in."""
MESSAGES_BY_TYPE = {
    "int": Words("expected a whole number"),
    "float": Words("expected a number"),
    "bool": Words("expected true or false"),
    "string": Words("expected a text"),
    "list": Words("expected a comma-separated list"),
}
"""Messages by the prefix of pydantic's type errors."""
MAX_VALUE_LENGTH = 60
"""Number of characters of a value that a message repeats."""


def invalid_value_error(error: ValidationError, place: str) -> InputError:
    """Return the error for the first rejected value.

    Args:
        error: the error of a parameter model.
        place: the owner of the parameter, such as the name of a tier.
    """
    problem = error.errors()[0]
    value_text = repr(problem["input"])
    value_text = value_text if len(value_text) <= MAX_VALUE_LENGTH else f"{value_text[:MAX_VALUE_LENGTH]}…"
    return InputError(
        "{place}: {name} = {given}: {allowed}",
        place=place,
        name=problem["loc"][0],
        given=value_text,
        allowed=allowed_values_text(problem),
    )


def check_least_changes(loss_by_metric: Mapping[str, float], place: str) -> None:
    """Check the metrics and values of a setting of losses that raise an alarm.

    Raises:
        InputError: no headline metric has that name, or the loss exceeds its range.
    """
    if not loss_by_metric:
        return
    from yarus.metrics.table import METRICS  # late, because few users set it
    from yarus.tasks.config.tiers import TIERS

    headlines = {name for tier in TIERS.values() for name in tier.headlines}
    for name, loss in loss_by_metric.items():
        if name not in headlines:
            raise unknown(Words("headline metric in {place}:", place=place), name, headlines)
        if loss > (metric_range := METRICS[name].high - METRICS[name].low):
            raise InputError(
                "{place}__{variable}: expected {most:g} or less, the range of the metric (given: {loss:g}); a point "
                "is {point:g}",
                place=place,
                variable=name.upper(),
                most=metric_range,
                loss=loss,
                point=metric_range / 100,
            )


def allowed_values_text(error: Mapping[str, Any]) -> str:
    """Return the message about allowed values, with the nearest match.

    Args:
        error: one of pydantic's `ValidationError.errors()`.
    """
    type_, context = error["type"], error.get("ctx", {})
    if type_ == "literal_error":
        choices = re.findall("'([^']*)'", context["expected"])
        nearest = difflib.get_close_matches(str(error["input"]), choices, n=1)
        message = Words(MESSAGES_BY_ERROR[type_].template, expected=_join_choices(choices))
        return join_messages((message, *(Words("did you mean {name!r}?", name=name) for name in nearest)))
    if type_ in MESSAGES_BY_ERROR:
        return Words(MESSAGES_BY_ERROR[type_].template, **context)
    if type_.partition("_")[0] in MESSAGES_BY_TYPE:
        return MESSAGES_BY_TYPE[type_.partition("_")[0]]
    own_error = context.get("error")
    return own_error.args[0] if isinstance(own_error, ValueError) and own_error.args else str(error["msg"])


def _join_choices(names: Sequence[str]) -> str:
    *first_names, last = map(repr, names)
    return Words("{others} or {last}", others=", ".join(first_names), last=last) if first_names else last
