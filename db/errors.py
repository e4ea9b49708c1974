"""What can go wrong outside our own code, told apart by who can mend it."""

import difflib
from collections.abc import Iterable, Sequence

from yarus.db.words import Words, joined

NAMED = 10
"""Ids in a message."""


class Told(Exception):
    """An error whose message is kept apart from its values: `InputError("no source {name!r}", name=name)`."""

    def __init__(self, template: str, /, **values: object) -> None:
        super().__init__(Words(template, **values))


class InputError(Told, ValueError):
    """The user gave something that cannot be used: the message names it, its place and the way out. Exit code 2."""


class DatabaseUnavailable(Told, RuntimeError):
    """The database cannot be reached or refuses us: the message says what to do. Exit code 3."""

    connection_lost = False
    """There was no connection, or it broke: what was asked may succeed a moment later."""


class ModelUnavailable(Told, RuntimeError):
    """A language model refuses us or its settings are wrong: the message says what to fix. Exit code 3."""


class ResultsUnavailable(Told, OSError):
    """The file of an evaluation is gone, damaged, another one's, or has no place: the message says what to do.

    Exit code 3.
    """


class SourceChanged(Told, OSError):
    """A source was loaded anew while an evaluation was still reading it: the message says what to do. Exit code 3."""


def unknown(what: str, given: str, known: Iterable[str], hint: str = "") -> InputError:
    """The error for a name that is not among the known ones: it names the nearest, or all.

    Args:
        what: it is no name of, such as "source": in the catalogue of messages stands "no source".
        given: the name.
        known: the names that there are.
        hint: the way out.
    """
    of = Words(what)
    parts: dict[str, object] = {"what": Words(f"no {of.template}", **of.values), "given": given}
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1)
    if near:
        said = Words("{what} {given!r}; did you mean {near!r}?", near=near[0], **parts)
    elif names:
        said = Words("{what} {given!r}; there are: {names}", names=", ".join(names), **parts)
    else:
        said = Words("{what} {given!r}; there are: none", **parts)
    between = " " if near or hint.startswith("(") else ". "
    return InputError(joined((said, Words(hint)), between) if hint else said)


def nothing_in(source: str, what: Words) -> InputError:
    """The error for a source that has none of what is needed.

    Args:
        source: its name.
        what: it has none of, such as "chunks".
    """
    return InputError(
        "source {source!r} has no {what}; load some: yarus load … --into {source}", source=source, what=what
    )


def nothing_to_search(source: str) -> InputError:
    """Return the error for a source without pages whose questions our own retriever should answer.

    Args:
        source: its name.
    """
    return InputError(
        "source {source!r} has no pages to search; load them: yarus load table FILE --kind chunks --into {source}, or "
        "name the system that answers: --sut URL (YARUS_SUT)",
        source=source,
    )


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
        what = Words(several if matching else none)
        if not near:
            raise InputError("{what} {name!r}; there are: none yet", what=what, name=name)
        raise InputError("{what} {name!r}; there are: {named}", what=what, name=name, named=named_ids(near))
    return matching[0]


def named_ids(ids: Sequence[str]) -> str:
    """Ids as a message names them: the first ones, and that there are more."""
    return ", ".join([*ids[:NAMED], *(["…"] if len(ids) > NAMED else [])])
