"""Results and errors of a user's function as values that JSON can hold."""

from __future__ import annotations

import itertools
import reprlib
import traceback
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence  # noqa: UP035 - Python 3.7 has them here

SHORT_REPR = reprlib.Repr()
"""Cuts only far behind the length that is stored, so that the stored end does not hold a part of a secret."""
SHORT_REPR.maxstring = SHORT_REPR.maxother = 10_000
SHORT_REPR.maxlist = SHORT_REPR.maxtuple = SHORT_REPR.maxdict = SHORT_REPR.maxset = 1_000
ANSWER_PARTS = ("answer", "urls", "contexts", "path", "latency_ms", "first_token_ms", "tokens_in", "tokens_out")


def serialize_answer(result: Any, arguments: Sequence[Any]) -> Any:
    """Return the parts of an answer; a text, or a message with its `content`, is an answer alone.

    Raises:
        ValueError: it has another form.
    """
    if isinstance(result, str):
        return {"answer": result}
    if isinstance(result, Mapping):
        return {name: serialize_value(result[name], name) for name in ANSWER_PARTS if name in result}
    content = getattr(result, "content", None)
    if isinstance(content, str):
        return {"answer": content}
    raise ValueError(f"expected {{'answer', 'urls', 'contexts'}}, got {type(result).__name__}")


def serialize_value(value: Any, name: str) -> Any:
    """Return the value with numbers of other libraries as numbers, and documents as their text.

    Raises:
        ValueError: it contains a value of another type.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [serialize_value(getattr(item, "page_content", item), name) for item in value]
    if isinstance(value, Mapping):
        return {str(key): serialize_value(item, name) for key, item in value.items()}
    if callable(getattr(value, "item", None)):
        return serialize_value(value.item(), name)
    raise ValueError(f"{name!r} is {SHORT_REPR.repr(value)}, of type {type(value).__name__}")


def serialize_ranking(result: Any, arguments: Sequence[Any]) -> Any:
    """Return the first k pairs.

    Later pairs are not read, because the iterable may be endless.

    Raises:
        ValueError: the items have another form.
    """
    try:
        return [(str(chunk), float(distance)) for chunk, distance in itertools.islice(result, arguments[1])]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected pairs of id and distance, nearest first, not {SHORT_REPR.repr(result)}") from None


def serialize_scores(result: Any, arguments: Sequence[Any]) -> Any:
    """Return one number per text, and at most one more.

    Raises:
        ValueError: the items have another form.
    """
    try:
        return [float(score) for score in itertools.islice(result, len(arguments[1]) + 1)]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a score for each text, not {SHORT_REPR.repr(result)}") from None


SERIALIZERS: dict[str, Callable[[Any, Sequence[Any]], Any]] = {
    "answer": serialize_answer,
    "ranking": serialize_ranking,
    "scores": serialize_scores,
}


def describe_error(error: BaseException, folder: str) -> dict[str, Any]:
    """Return an error in words, and the place in the user's folder that it came from."""
    return {"error": f"{type(error).__name__}: {extract_text(error)}", "place": locate_error(error, folder)}


def extract_text(error: BaseException) -> str:
    """Return the text of an error."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - the text of a foreign error may raise an error
        return "(it cannot be shown)"


def locate_error(error: BaseException, folder: str) -> str:
    """Return file and line of the user's code that ran last."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno))
    root = Path(folder).resolve()
    files = [(Path(file).resolve(), line) for file, line in frames]
    user_lines = [(file, line) for file, line in files if root in file.parents and file.is_file()]
    return f"{user_lines[-1][0].relative_to(root)}:{user_lines[-1][1]}" if user_lines else ""
