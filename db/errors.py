"""What can go wrong outside our own code, told apart by who can mend it."""

import difflib
from collections.abc import Iterable, Sequence

NAMED = 10
"""Ids in a message."""


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


def the_one(ids: Sequence[str], name: str, *, none: str, several: str) -> str:
    """The id that is meant: `name` itself, the only one that begins or ends so, or the `last`.

    Args:
        ids: newest first.
        name: as it was given.
        none: what the error says where there is none.
        several: the same where there are several.

    Raises:
        InputError: none, or several; the nearest are named.
    """
    matching = [name] if name in ids else [known for known in ids if known.startswith(name) or known.endswith(name)]
    if name == "last":
        matching = list(ids[:1])
    if len(matching) != 1:
        near = matching or difflib.get_close_matches(name, ids, n=3) or ids[:3]
        named = ", ".join([*near[:NAMED], *(["…"] if len(near) > NAMED else [])])
        raise InputError(f"{several if matching else none} {name!r}; there are: {named or 'none yet'}")
    return matching[0]
