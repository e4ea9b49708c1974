"""What can go wrong outside our own code, told apart by who can mend it."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """The user gave something that cannot be used: the message names it, its place and the way out. Exit code 2."""


class DatabaseUnavailable(RuntimeError):
    """The database cannot be reached or refuses us: the message says what to do. Exit code 3."""

    connection_lost = False
    """There was no connection, or it broke: what was asked may succeed a moment later."""


class ModelUnavailable(RuntimeError):
    """A language model refuses us or its settings are wrong: the message says what to fix. Exit code 3."""


class ResultsUnavailable(OSError):
    """The file of an evaluation is gone, damaged, another one's, or has no place: the message says what to do.

    Exit code 3.
    """


class SourceChanged(OSError):
    """A source was loaded anew while an evaluation was still reading it: the message says what to do. Exit code 3."""


def unknown(what: str, given: str, known: Iterable[str], hint: str = "") -> InputError:
    """The error for a name that is not among the known ones: it names the nearest, or all."""
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1)
    found = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"
    return InputError(f"no {what} {given!r}; {found}{' ' + hint if hint else ''}")
