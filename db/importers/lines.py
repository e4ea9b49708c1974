"""Read text files of any length line by line, with the place of each defect."""

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
from yarus.db.loading.recorded import Record, text_or_none
from yarus.db.loading.staging import Rejected
from yarus.db.messages import Words

UTF8_WITH_OPTIONAL_BOM = "utf-8-sig"
MAX_LINE_LENGTH = 20_000_000
"""Characters: enough for two texts as long as a book. A file without line ends would fill the memory."""
READ_SIZE = 1 << 20
"""Bytes per read of a file in the wrong encoding."""
UNREADABLE = Words("a number with thousands of digits, or nested too deeply to be read")
"""Reason for valid JSON that Python does not read."""


def open_binary(path: Path) -> IO[bytes]:
    """Open a file in binary mode, and unpack it if gzip packed it.

    Raises:
        OSError: the file is missing or not readable.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


@contextmanager
def name_file(path: Path, encoding: str = UTF8_WITH_OPTIONAL_BOM) -> Iterator[None]:
    """Turn the errors of reading a text file into a message that names the file.

    Raises:
        InputError: the file is missing, not readable, damaged, or not in the encoding (the message names byte and
            line); or the encoding does not exist.
    """
    try:
        yield
    except LookupError:
        raise InputError(
            "no encoding {encoding!r}; common ones: utf-8, cp1251, koi8-r, utf-16", encoding=encoding
        ) from None
    except UnicodeError:
        raise encoding_error(path, encoding) from None
    except (EOFError, zlib.error) as error:
        raise InputError(
            "{path}: damaged gzip ({error}); nothing was loaded. Is the file truncated?", path=path, error=error
        ) from None
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None


def read_lines(path: Path, encoding: str = UTF8_WITH_OPTIONAL_BOM) -> Iterator[str]:
    """Yield the lines of a text file, with their ends unchanged.

    Args:
        path: of the file.
        encoding: Python's name of it; the default is UTF-8, with or without a byte-order mark.

    Raises:
        InputError: the file is missing, not readable, or not in the encoding (the message names byte and line); the
            encoding does not exist; or a line is too long.
    """
    with name_file(path, encoding):
        codecs.lookup(encoding)
        with TextIOWrapper(open_binary(path), encoding=encoding, newline="") as file:
            for number, line in enumerate(iter(partial(file.readline, MAX_LINE_LENGTH + 1), ""), start=1):
                if len(line) > MAX_LINE_LENGTH:
                    raise InputError(
                        "{path}: line {number} has more than {most:,} characters, the most that is read at once; "
                        "nothing was loaded. Write one row a line, and split longer texts",
                        path=path,
                        number=number,
                        most=MAX_LINE_LENGTH,
                    )
                yield line


def read_json_objects(path: Path, encoding: str = UTF8_WITH_OPTIONAL_BOM) -> Iterator[tuple[str, Record]]:
    """Yield the objects of a file with one JSON object per line, each with its place; empty lines are skipped.

    Raises:
        InputError: as `read_json_values`, or a line cannot be read or is not an object (the message names its number).
    """
    for place, value in read_json_values(path, encoding):
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


def read_json_values(path: Path, encoding: str = UTF8_WITH_OPTIONAL_BOM) -> Iterator[tuple[str, Any]]:
    """Yield the values of a file with one JSON value per line; valid lines that Python cannot read are rejected.

    Raises:
        InputError: as `read_lines`, or a line is not JSON (the message names its number).
    """
    for number, line in enumerate(read_lines(path, encoding), start=1):
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


def require_text(value: Any, field_name: str, place: str) -> str | Rejected:
    """Return a required identifier or text; numbers become text, and other values are rejected."""
    if (text := text_or_none(value)) is not None:
        return text
    if value in (None, ""):
        return Rejected(place, Words("no {what}", what=field_name))
    return Rejected(place, Words("{what} {value!r} is no text", what=field_name, value=value))


def encoding_error(path: Path, encoding: str) -> InputError:
    """Build the error for a file that is not in an encoding, with byte and line; the file is read again."""
    name = encoding.removesuffix("-sig")
    decoder = codecs.getincrementaldecoder(name)()
    start, line, part = 0, 1, b""
    with open_binary(path) as file:
        try:
            while part := file.read(READ_SIZE):
                decoder.decode(part)
                start, line = start + len(part), line + part.count(b"\n")
            decoder.decode(part, final=True)
        except UnicodeDecodeError as error:
            content = error.object  # the part, after the bytes left over from the previous one
            undecoded = content[error.start :]
            return InputError(
                "{path}: not {name} at {byte}; nothing was loaded. {way_out}",
                path=path,
                name=name.upper(),
                byte=Words(
                    "byte {start} (0x{content:02x}), line {line}",
                    start=start + len(part) - len(undecoded),
                    content=undecoded[0],
                    line=line + content.count(b"\n", 0, error.start),
                ),
                way_out=_advise_conversion(path, guess_encoding(content).encoding)
                if part
                else Words("Is the file truncated?"),
            )
        except UnicodeError as error:
            return InputError(
                "{path}: not {name} ({error}); nothing was loaded", path=path, name=name.upper(), error=error
            )
    return InputError("{path}: changed while it was read; nothing was loaded", path=path)


def _advise_conversion(path: Path, guess: str) -> Words:
    if guess.startswith("utf-8"):
        return Words("The rest is UTF-8: correct this byte, or save the text again")
    return Words(
        "It looks like {guess}: convert it by iconv -f {guess} -t utf-8 {file}, or use yarus load table --encoding "
        "{guess}",
        guess=guess,
        file=path.name,
    )
