"""What a user's function gives or raises, as values that JSON has."""

from __future__ import annotations

import itertools
import reprlib
import traceback
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence  # noqa: UP035 - Python 3.7 has them here

SHORT = reprlib.Repr()
"""Cuts only what is far longer than the words that are stored, so that no part of a secret is left at their end."""
SHORT.maxstring = SHORT.maxother = 10_000
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = SHORT.maxset = 1_000
PARTS = ("answer", "urls", "contexts", "path", "latency_ms", "first_token_ms", "tokens_in", "tokens_out")


def answer(given: Any, arguments: Sequence[Any]) -> Any:
    """The parts of an answer; a text, or a message with its `content`, is an answer alone.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(given, str):
        return {"answer": given}
    if isinstance(given, Mapping):
        return {name: plain(given[name], name) for name in PARTS if name in given}
    content = getattr(given, "content", None)
    if isinstance(content, str):
        return {"answer": content}
    raise ValueError(f"expected {{'answer', 'urls', 'contexts'}}, got {type(given).__name__}")


def plain(value: Any, name: str) -> Any:
    """The value with other libraries' numbers as numbers, and documents as their text.

    Raises:
        ValueError: it has what is neither.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(getattr(item, "page_content", item), name) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item, name) for key, item in value.items()}
    if callable(getattr(value, "item", None)):
        return plain(value.item(), name)
    raise ValueError(f"{name!r} is {SHORT.repr(value)}, of type {type(value).__name__}")


def ranking(given: Any, arguments: Sequence[Any]) -> Any:
    """The first k pairs; what comes after them is not looked at, for it may not end.

    Raises:
        ValueError: they are none.
    """
    try:
        return [(str(chunk), float(distance)) for chunk, distance in itertools.islice(given, arguments[1])]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected pairs of id and distance, nearest first, not {SHORT.repr(given)}") from None


def scores(given: Any, arguments: Sequence[Any]) -> Any:
    """A number for each text, and at most one too many.

    Raises:
        ValueError: they are none.
    """
    try:
        return [float(score) for score in itertools.islice(given, len(arguments[1]) + 1)]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a score for each text, not {SHORT.repr(given)}") from None


PLAIN: dict[str, Callable[[Any, Sequence[Any]], Any]] = {"answer": answer, "ranking": ranking, "scores": scores}


def told(error: BaseException, folder: str) -> dict[str, Any]:
    """An error in words, and the place in the user's folder that it came from."""
    return {"error": f"{type(error).__name__}: {words_of(error)}", "place": place_of(error, folder)}


def words_of(error: BaseException) -> str:
    """What an error says."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - an error that is not ours may not even have words
        return "(it cannot be shown)"


def place_of(error: BaseException, folder: str) -> str:
    """File and line of the user's that was last at work."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno))
    root = Path(folder).resolve()
    files = [(Path(file).resolve(), line) for file, line in frames]
    theirs = [(file, line) for file, line in files if root in file.parents and file.is_file()]
    return f"{theirs[-1][0].relative_to(root)}:{theirs[-1][1]}" if theirs else ""
