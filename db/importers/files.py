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
                f"{path}: more than {LARGEST_BYTES:,} bytes, the most that is read at once; nothing was loaded. Split "
                "it, or load a table line by line: yarus load table FILE.jsonl"
            )
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 at byte {error.start}; nothing was loaded. Convert it first, "
            f"for example: iconv -f cp1251 -t utf-8 {path.name}"
        ) from None
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged gzip ({error}); nothing was loaded. Is the file truncated?") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; nothing was loaded") from None


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
            f"{path}: not valid JSON at line {error.lineno}, column {error.colno} ({error.msg}); "
            "nothing was loaded. Is the file truncated?"
        ) from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: {UNREADABLE}; nothing was loaded") from None


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
            raise InputError(f"{path}: line {number}, column {error.colno}: {error.msg}; nothing was loaded") from None
        except (ValueError, RecursionError):
            raise InputError(f"{path}: line {number}: {UNREADABLE}; nothing was loaded") from None
        if not isinstance(value, dict):
            raise InputError(f"{path}: line {number}: expected an object, got {type(value).__name__}; nothing loaded")
        objects.append(value)
    return objects
