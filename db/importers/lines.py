"""Reading text files line by line, of any length, with the place of every defect."""

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast

from yarus.db.errors import InputError
from yarus.db.importers.encodings import guess_encoding
from yarus.db.loading.recorded import Record, word
from yarus.db.loading.staging import Rejected
from yarus.db.words import Words

UTF8 = "utf-8-sig"
LONGEST_LINE = 20_000_000
"""Characters: a row with two texts of the length of a book. What has no line ends would be read into memory whole."""
PART = 1 << 20
"""Bytes that are read at once of a file in the wrong encoding."""
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


@contextmanager
def name_file(path: Path, encoding: str = UTF8) -> Iterator[None]:
    """Turn what goes wrong while a text file is read into a message that names the file.

    Raises:
        InputError: not there, not readable, damaged, not in the encoding (the byte and line are named), or there is no
            such encoding.
    """
    try:
        yield
    except LookupError:
        raise InputError(
            "no encoding {encoding!r}; common ones: utf-8, cp1251, koi8-r, utf-16", encoding=encoding
        ) from None
    except UnicodeError:
        raise undecodable(path, encoding) from None
    except (EOFError, zlib.error) as error:
        raise InputError(
            "{path}: damaged gzip ({error}); nothing was loaded. Is the file truncated?", path=path, error=error
        ) from None
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None


def lines(path: Path, encoding: str = UTF8) -> Iterator[str]:
    """The lines of a text file, with their ends as they are.

    Args:
        path: of the file.
        encoding: Python's name of it; the default is UTF-8 with a byte-order mark or without.

    Raises:
        InputError: not there, not readable, no such encoding, not in that encoding (the byte and line are named), or
            a line is too long.
    """
    with name_file(path, encoding):
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


def json_lines(path: Path, encoding: str = UTF8) -> Iterator[tuple[str, Record]]:
    """The objects of a file with one JSON object a line, each with its place; empty lines are passed over.

    Raises:
        InputError: as `json_values`, or a line that cannot be read or is no object (its number is named).
    """
    for place, value in json_values(path, encoding):
        if not isinstance(value, dict):
            number, kind = place.rpartition(":")[2], type(value).__name__
            if isinstance(value, Rejected):
                raise InputError(
                    "{path}: line {number}: {unreadable}; nothing was loaded",
                    path=path,
                    number=number,
                    unreadable=value.reason,
                )
            raise InputError(
                "{path}: line {number}: expected an object, got {kind}; nothing was loaded",
                path=path,
                number=number,
                kind=kind,
            )
        yield place, value


def json_values(path: Path, encoding: str = UTF8) -> Iterator[tuple[str, Any]]:
    """The values of a file with any JSON a line; what is valid but cannot be read is rejected alone.

    Raises:
        InputError: as `lines`, or a line that is no JSON (its number is named).
    """
    for number, line in enumerate(lines(path, encoding), start=1):
        if not line.strip():
            continue
        place = f"{path.name}:{number}"
        try:
            yield place, json.loads(line)
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
            yield place, Rejected(place, UNREADABLE)


def text_or_rejected(value: Any, what: str, place: str) -> str | Rejected:
    """An identifier or text that must be there, as text; numbers too are taken."""
    if (text := word(value)) is not None:
        return text
    if value in (None, ""):
        return Rejected(place, Words("no {what}", what=what))
    return Rejected(place, Words("{what} {value!r} is no text", what=what, value=value))


def undecodable(path: Path, encoding: str) -> InputError:
    """The error of a file that is not in an encoding, with the byte and the line; the file is read again."""
    name = encoding.removesuffix("-sig")
    decoder = codecs.getincrementaldecoder(name)()
    start, line, part = 0, 1, b""
    with opened(path) as file:
        try:
            while part := file.read(PART):
                decoder.decode(part)
                start, line = start + len(part), line + part.count(b"\n")
            decoder.decode(part, final=True)
        except UnicodeDecodeError as error:
            content = error.object  # of the part, behind the bytes that were kept of the one before
            rest = content[error.start :]
            return InputError(
                "{path}: not {name} at {byte}; nothing was loaded. {way_out}",
                path=path,
                name=name.upper(),
                byte=Words(
                    "byte {start} (0x{content:02x}), line {line}",
                    start=start + len(part) - len(rest),
                    content=rest[0],
                    line=line + content.count(b"\n", 0, error.start),
                ),
                way_out=_way_out(path, guess_encoding(content).encoding) if part else Words("Is the file truncated?"),
            )
        except UnicodeError as error:
            return InputError(
                "{path}: not {name} ({error}); nothing was loaded", path=path, name=name.upper(), error=error
            )
    return InputError("{path}: changed while it was read; nothing was loaded", path=path)


def _way_out(path: Path, guess: str) -> Words:
    if guess.startswith("utf-8"):
        return Words("The rest is UTF-8: correct this byte, or save the text again")
    return Words(
        "It looks like {guess}: convert it by iconv -f {guess} -t utf-8 {file}, or use yarus load table --encoding "
        "{guess}",
        guess=guess,
        file=path.name,
    )
