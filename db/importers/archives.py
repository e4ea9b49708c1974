"""Read members of ZIP files (DOCX, XLSX, exports) without trusting their sizes."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yarus.db.errors import InputError

MAX_UNPACKED = 64 << 20
"""Bytes of a member."""
MAX_RATIO = 200
"""Unpacked bytes per packed byte; XML of real documents has 5 to 50."""
MIN_CHECKED_SIZE = 1 << 20
"""Bytes up to which the ratio does not count: a short text of blanks packs better than any document."""
MAX_DIRECTORY = 4 << 20
"""Bytes of the list of members; `zipfile` keeps about ten times as many in memory."""
BLOCK = 1 << 16
DIRECTORY_END = struct.Struct("<4s4H2LH")
DIRECTORY_END_MARK = b"PK\x05\x06"
ENCRYPTED = 0x1


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP file; errors of reads within the block become InputError.

    Args:
        path: of the file.

    Raises:
        InputError: the file is damaged, or its list of members is too long.
        OSError: the file cannot be read.
    """
    try:
        _check_directory(path)
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:  # from the block
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError) as error:
        raise InputError("damaged ZIP ({error}); save the file again", error=error) from None


def read_member(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Unpack a member in blocks.

    Args:
        archive: from `open_archive`.
        name: of the member.

    Raises:
        InputError: the member is encrypted, or larger than what is unpacked. Nothing beyond the limit is unpacked.
    """
    member = archive.getinfo(name)
    if member.flag_bits & ENCRYPTED:
        raise InputError("encrypted; save it without a password")
    unpacked = 0
    with archive.open(member) as file:
        while block := file.read(BLOCK):
            unpacked += len(block)
            _check_size(unpacked, member)
            yield block


def _check_size(unpacked: int, member: zipfile.ZipInfo) -> None:
    """Refuse a zip bomb by the bytes that were unpacked: the size that the archive declares may be wrong."""
    if max(unpacked, member.file_size) > MAX_UNPACKED:
        raise InputError(
            "{member} unpacks to more than {limit} MiB, the most that is read; split the document",
            member=member.filename,
            limit=MAX_UNPACKED >> 20,
        )
    if unpacked > MIN_CHECKED_SIZE and unpacked > MAX_RATIO * member.compress_size:
        raise InputError(
            "{member} unpacks to more than {limit} times its size, as zip bombs do; save the document again",
            member=member.filename,
            limit=MAX_RATIO,
        )


def _check_directory(path: Path) -> None:
    """Refuse an archive whose list of members would fill the memory."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - DIRECTORY_END.size - (1 << 16)))
        tail = file.read()
    start = tail.rfind(DIRECTORY_END_MARK)
    if start < 0 or len(tail) - start < DIRECTORY_END.size:
        raise zipfile.BadZipFile("no list of members")
    if DIRECTORY_END.unpack_from(tail, start)[5] > MAX_DIRECTORY:
        raise InputError(
            "the list of the files in the ZIP has more than {limit} MiB, the most that is read",
            limit=MAX_DIRECTORY >> 20,
        )
