"""Parameters that are wrong: errors that say what was given, what is allowed and what was probably meant."""

import difflib
from collections.abc import Collection


def check_at_least(name: str, value: float, least: int) -> None:
    """Raise ValueError for a parameter that is too small, or NaN."""
    if not value >= least:
        raise ValueError(f"{name} is {value!r}: it must be {least} or more")


def check_one_of(what: str, value: str, allowed: Collection[str]) -> None:
    """Raise ValueError for a value that is not allowed."""
    if value in allowed:
        return
    close = difflib.get_close_matches(str(value), allowed, cutoff=0.3)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"no {what} {value!r}; allowed are {', '.join(map(repr, allowed))}{hint}")
