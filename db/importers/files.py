"""Reading text files whose defects are named with their place."""

import json
import zlib
from pathlib import Path
from typing import Any

from yarus.db.errors import InputError
from yarus.db.importers.lines import UNREADABLE, UTF8, opened, undecodable

LARGEST_BYTES = 256 << 20
"""Of a file that is read at once: as Python's values, JSON takes several times as much memory."""


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with a byte-order mark or without.

    Raises:
        InputError: not there, not readable, too large, or not UTF-8 (the byte is named).
    """
    try:
        with opened(path) as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise InputError(
                "{path}: more than {most:,} bytes, the most that is read at once; nothing was loaded. Split it, or "
                "load a table line by line: yarus load table FILE.jsonl",
                path=path,
                most=LARGEST_BYTES,
            )
        return content.decode("utf-8-sig")
    except UnicodeError:
        raise undecodable(path, UTF8) from None
    except (EOFError, zlib.error) as error:
        raise InputError(
            "{path}: damaged gzip ({error}); nothing was loaded. Is the file truncated?", path=path, error=error
        ) from None
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None


def read_json(path: Path) -> Any:
    """The document in a JSON file.

    Raises:
        InputError: as `read_text` and `parse_json`.
    """
    return parse_json(path, read_text(path))


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
