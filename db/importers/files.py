"""Reading text files whose defects are named with their place."""

import json
from pathlib import Path
from typing import Any

from yarus.db.errors import InputError
from yarus.db.importers.lines import UNREADABLE, UTF8, name_file, opened

LARGEST_BYTES = 256 << 20
"""Of a file that is read at once: as Python's values, JSON takes several times as much memory."""


def read_json(path: Path) -> Any:
    """The document in a JSON file in UTF-8, with a byte-order mark or without.

    Raises:
        InputError: not there, not readable, too large, not UTF-8 (the byte is named), or as `parse_json`.
    """
    with name_file(path):
        with opened(path) as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise InputError(
                "{path}: more than {most:,} bytes, the most that is read at once; nothing was loaded. Split it, or "
                "load a table line by line: yarus load table FILE.jsonl",
                path=path,
                most=LARGEST_BYTES,
            )
        text = content.decode(UTF8)
    return parse_json(path, text)


def parse_json(path: Path, text: str) -> Any:
    """The document in the text of a JSON file.

    Raises:
        InputError: not valid JSON (line and column are named).
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = {"path": path, "line": error.lineno, "column": error.colno, "reason": error.msg}
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            raise InputError(
                "{path}: not valid JSON at line {line}, column {column} ({reason}); nothing was loaded. Is the file "
                "truncated?",
                **place,
            ) from None
        raise InputError(
            "{path}: not valid JSON at line {line}, column {column} ({reason}); nothing was loaded. JSON takes no "
            "comments, no single quotes and no comma before a bracket",
            **place,
        ) from None
    except (ValueError, RecursionError):
        raise InputError("{path}: {unreadable}; nothing was loaded", path=path, unreadable=UNREADABLE) from None
