"""What a value of somebody else's export says: the text in it, however it is wrapped."""

import ast
import json
from typing import Any

QUESTION_NAMES = ("question", "user_input", "query", "input", "text", "prompt", "message", "content")
ANSWER_NAMES = ("answer", "expected_output", "output", "reference", "ground_truth", "text", "response", "content")


def texts(value: Any) -> list[str]:
    """The texts of a list, which may be written as JSON or as Python writes it; a single text is a list of one."""
    value = parsed(value)
    values = value if isinstance(value, list) else [value]
    return [text.strip() for text in values if isinstance(text, str) and text.strip()]


def parsed(value: Any) -> Any:
    """What a text says, if it is a list or an object; else the text."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{", '"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        said = ast.literal_eval(value.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return value
    return said if isinstance(said, list | dict | str) else value


def said(value: Any, names: tuple[str, ...]) -> str | None:
    """The text in a value: itself, what stands under a usual name, or the last of several messages."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return said(value[-1], names) if value else None
    if isinstance(value, dict):
        if isinstance(value.get("messages"), list):
            return said(value["messages"], names)
        found = next((value[name] for name in names if name in value), None)
        only = next(iter(value.values())) if len(value) == 1 else None
        return said(found if found is not None else only, names)
    return None
