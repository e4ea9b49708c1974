"""Read JSON files, with the place of each defect in the error message."""

import json
from pathlib import Path
from typing import Any

from yarus.db.errors import InputError
from yarus.db.importers.lines import UNREADABLE, UTF8_WITH_OPTIONAL_BOM, name_file, open_binary

MAX_BYTES = 256 << 20
"""Limit for a file that is read at once: as Python values, JSON takes several times as much memory."""


def read_json(path: Path) -> Any:
    """Return the document in a JSON file in UTF-8, with or without a byte-order mark.

    Raises:
        InputError: the file is missing, not readable, too large, or not UTF-8 (the message names the byte); or as
            `parse_json`.
    """
    with name_file(path):
        with open_binary(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(
                "{path}: more than {most:,} bytes, the most that is read at once; nothing was loaded. Split it, or "
                "load a table line by line: yarus load table FILE.jsonl",
                path=path,
                most=MAX_BYTES,
            )
        text = content.decode(UTF8_WITH_OPTIONAL_BOM)
    return parse_json(path, text)


def parse_json(path: Path, text: str) -> Any:
    """Return the document in the text of a JSON file.

    Raises:
        InputError: not valid JSON (the message names line and column).
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
