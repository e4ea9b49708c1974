"""Validation of parameters: errors that state the value, the allowed values and the probable intention."""

import difflib
from collections.abc import Collection


def check_at_least(name: str, value: float, least: int) -> None:
    """Raise ValueError for a parameter that is too small, or NaN.

    Example:
        >>> from yarus.metrics.validation import check_at_least
        >>> check_at_least("max_ngram", 0, 1)
        Traceback (most recent call last):
            ...
        ValueError: max_ngram is 0: it must be 1 or more
    """
    if not value >= least:
        raise ValueError(f"{name} is {value!r}: it must be {least} or more")


def check_one_of(what: str, value: str, allowed: Collection[str]) -> None:
    """Raise ValueError for a value that is not allowed.

    Example:
        >>> from yarus.metrics.validation import check_one_of
        >>> check_one_of("tokenizer", "word", ["words", "char"])
        Traceback (most recent call last):
            ...
        ValueError: no tokenizer 'word'; allowed are 'words', 'char'; did you mean 'words'?
    """
    if value in allowed:
        return
    close = difflib.get_close_matches(str(value), allowed, cutoff=0.3)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"no {what} {value!r}; allowed are {', '.join(map(repr, allowed))}{hint}")
