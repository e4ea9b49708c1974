"""Errors outside Yarus's own code, by who can fix them."""

import difflib
from collections.abc import Iterable, Sequence

from yarus.db.messages import Words, join_messages

MAX_LISTED_IDS = 10
"""Largest number of ids in a message."""


class TemplatedError(Exception):
    """An error that keeps its message's template and values: `InputError("no source {name!r}", name=name)`."""

    def __init__(self, template: str, /, **values: object) -> None:
        super().__init__(Words(template, **values))


class InputError(TemplatedError, ValueError):
    """The user gave an invalid value. The message names it, its place and a fix. Exit code 2."""


class DatabaseUnavailable(TemplatedError, RuntimeError):
    """The database is unreachable or refuses access. The message names a fix. Exit code 3."""

    connection_lost = False
    """There was no connection, or it broke: the same request may succeed a moment later."""


class ModelUnavailable(TemplatedError, RuntimeError):
    """A language model refuses access, or its settings are wrong. The message names a fix. Exit code 3."""


class ResultsUnavailable(TemplatedError, OSError):
    """The file of an evaluation is missing, damaged, of another evaluation, or cannot be written.

    The message names a fix. Exit code 3.
    """


class SourceChanged(TemplatedError, OSError):
    """A source was loaded again while an evaluation was reading it. The message names a fix. Exit code 3."""


def unknown(what: str, given: str, known: Iterable[str], hint: str = "") -> InputError:
    """Return the error for an unknown name; it suggests the nearest known name, or lists all.

    Args:
        what: the kind of thing, such as "source"; the catalogue of messages has "no source".
        given: the unknown name.
        known: the existing names.
        hint: what the user can do.
    """
    kind = Words(what)
    parts: dict[str, object] = {"what": Words(f"no {kind.template}", **kind.values), "given": given}
    names = sorted(known)
    matches = difflib.get_close_matches(given, names, n=1)
    if matches:
        message = Words("{what} {given!r}; did you mean {near!r}?", near=matches[0], **parts)
    elif names:
        message = Words("{what} {given!r}; there are: {names}", names=", ".join(names), **parts)
    else:
        message = Words("{what} {given!r}; there are: none", **parts)
    separator = " " if matches or hint.startswith("(") else ". "
    return InputError(join_messages((message, Words(hint)), separator) if hint else message)


def empty_source_error(source: str, what: Words) -> InputError:
    """Return the error for a source that lacks required data.

    Args:
        source: name of the source.
        what: the missing data, such as "chunks".
    """
    return InputError(
        "source {source!r} has no {what}; load some: yarus load … --into {source}", source=source, what=what
    )


def nothing_to_search_error(source: str) -> InputError:
    """Return the error for a source without pages, when Yarus's own retriever should answer its questions.

    Args:
        source: its name.
    """
    return InputError(
        "source {source!r} has no pages to search; load them: yarus load table FILE --kind chunks --into {source}, or "
        "name the system that answers: --sut URL (YARUS_SUT)",
        source=source,
    )


def resolve_id(ids: Sequence[str], name: str, *, none: str, several: str) -> str:
    """Return the id that `name` means: `name` itself, the only id that begins or ends with it, or the `last`.

    Args:
        ids: all ids, newest first.
        name: the user's text.
        none: beginning of the message if no id matches.
        several: beginning of the message if several match.

    Raises:
        InputError: no id matches, or several do; the message names the nearest.
    """
    matches = [name] if name in ids else [match for match in ids if match.startswith(name) or match.endswith(name)]
    if name == "last":
        matches = list(ids[:1])
    if len(matches) != 1:
        nearest = matches or difflib.get_close_matches(name, ids, n=3) or ids[:3]
        what = Words(several if matches else none)
        if not nearest:
            raise InputError("{what} {name!r}; there are: none yet", what=what, name=name)
        raise InputError("{what} {name!r}; there are: {named}", what=what, name=name, named=list_first_ids(nearest))
    return matches[0]


def list_first_ids(ids: Sequence[str]) -> str:
    """Join ids for a message: the first ones, and "…" if there are more."""
    return ", ".join([*ids[:MAX_LISTED_IDS], *(["…"] if len(ids) > MAX_LISTED_IDS else [])])
