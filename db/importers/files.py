"""Reading text files whose defects are named with their place."""

import json
import zlib
from pathlib import Path
from typing import Any

from db.errors import InputError
from db.importers.lines import UNREADABLE, opened

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
    except UnicodeDecodeError as error:
        raise InputError(
            "{path}: not UTF-8 at byte {start}; nothing was loaded. Convert it first, for example: iconv -f cp1251 "
            "-t utf-8 {name}",
            path=path,
            start=error.start,
            name=path.name,
        ) from None
    except (EOFError, zlib.error) as error:
        raise InputError(
            "{path}: damaged gzip ({error}); nothing was loaded. Is the file truncated?", path=path, error=error
        ) from None
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None


def read_json(path: Path) -> Any:
    """The document in a JSON file.

    Raises:
        InputError: as `read_text`, or no valid JSON (line and column are named).
    """
    content = read_text(path)
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise InputError(
            "{path}: not valid JSON at line {line}, column {column} ({reason}); nothing was loaded. Is the file "
            "truncated?",
            path=path,
            line=error.lineno,
            column=error.colno,
            reason=error.msg,
        ) from None
    except (ValueError, RecursionError):
        raise InputError("{path}: {unreadable}; nothing was loaded", path=path, unreadable=UNREADABLE) from None


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON object a line; empty lines are passed over.

    Raises:
        InputError: as `read_text`, or a line that is no JSON object (its number is named).
    """
    objects = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(
                "{path}: line {number}, column {column}: {reason}; nothing was loaded",
                path=path,
                number=number,
                column=error.colno,
                reason=error.msg,
            ) from None
        except (ValueError, RecursionError):
            raise InputError(
                "{path}: line {number}: {unreadable}; nothing was loaded",
                path=path,
                number=number,
                unreadable=UNREADABLE,
            ) from None
        if not isinstance(value, dict):
            raise InputError(
                "{path}: line {number}: expected an object, got {kind}; nothing loaded",
                path=path,
                number=number,
                kind=type(value).__name__,
            )
        objects.append(value)
    return objects
