"""Reading text files line by line, of any length, with the place of every defect."""

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

from db.errors import InputError
from db.importers.encodings import guess_encoding
from db.loading.staging import Rejected
from db.words import Words

UTF8 = "utf-8-sig"
LONGEST_LINE = 20_000_000
"""Characters: a row with two texts of the length of a book. What has no line ends would be read into memory whole."""
UNREADABLE = Words("a number with thousands of digits, or nested too deeply to be read")
"""What valid JSON can have that Python does not read."""


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked where gzip has packed them.

    Raises:
        OSError: not there, or not readable.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def lines(path: Path, encoding: str = UTF8) -> Iterator[str]:
    """The lines of a text file, with their ends as they are.

    Args:
        path: of the file.
        encoding: Python's name of it; the default is UTF-8 with a byte-order mark or without.

    Raises:
        InputError: not there, not readable, no such encoding, not in that encoding (the byte and line are named), or
            a line is too long.
    """
    try:
        codecs.lookup(encoding)
        with TextIOWrapper(opened(path), encoding=encoding, newline="") as file:
            for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), ""), start=1):
                if len(line) > LONGEST_LINE:
                    raise InputError(
                        "{path}: line {number} has more than {most:,} characters, the most that is read at once; "
                        "nothing was loaded. Write one row a line, and split longer texts",
                        path=path,
                        number=number,
                        most=LONGEST_LINE,
                    )
                yield line
    except LookupError:
        raise InputError(
            "no encoding {encoding!r}; common ones: utf-8, cp1251, koi8-r, utf-16", encoding=encoding
        ) from None
    except UnicodeError:
        raise _undecodable(path, encoding) from None
    except (EOFError, zlib.error) as error:
        raise InputError(
            "{path}: damaged gzip ({error}); nothing was loaded. Is the file truncated?", path=path, error=error
        ) from None
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None


def json_lines(path: Path, encoding: str = UTF8) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file with one JSON object a line, each with its place; empty lines are passed over.

    Raises:
        InputError: as `lines`, or a line that is no JSON object (its number is named).
    """
    for place, value in json_values(path, encoding):
        if not isinstance(value, dict):
            number, kind = place.rpartition(":")[2], type(value).__name__
            raise InputError(
                "{path}: line {number}: expected an object, got {kind}; nothing was loaded",
                path=path,
                number=number,
                kind=kind,
            )
        yield place, value


def json_values(path: Path, encoding: str = UTF8) -> Iterator[tuple[str, Any]]:
    """The same of a file with any JSON a line.

    Raises:
        InputError: as `lines`, or a line that is no JSON (its number is named).
    """
    for number, line in enumerate(lines(path, encoding), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(
                "{path}: line {number}, column {column}: not valid JSON ({reason}); nothing was loaded. Is the file "
                "truncated?",
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
        yield f"{path.name}:{number}", value


def text_or_rejected(value: Any, what: str, place: str) -> str | Rejected:
    """An identifier or text that must be there, as text; numbers too are taken."""
    if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
        return str(value)
    return Rejected(
        place,
        Words("no {what}", what=what)
        if value in (None, "")
        else Words("{what} {value!r} is no text", what=what, value=value),
    )


def _undecodable(path: Path, encoding: str) -> InputError:
    """What is wrong with the encoding, by reading the whole file again."""
    with opened(path) as file:
        content = file.read()
    name = encoding.removesuffix("-sig").upper()
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        guess = guess_encoding(content).encoding
        way_out = Words("It looks like {guess}: add --encoding {guess}", guess=guess)
        byte = Words(
            "byte {start} (0x{content:02x}), line {line}", start=error.start, content=content[error.start], line=line
        )
        return InputError(
            "{path}: not {name} at {byte}; nothing was loaded. {way_out}, or convert it to UTF-8",
            path=path,
            name=name,
            byte=byte,
            way_out=way_out,
        )
    except UnicodeError as error:
        return InputError("{path}: not {name} ({error}); nothing was loaded", path=path, name=name, error=error)
    return InputError("{path}: changed while it was read; nothing was loaded", path=path)
