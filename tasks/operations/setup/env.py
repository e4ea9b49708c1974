"""Settings in a file `.env`: what is missing is added, what stands there stays."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values

from yarus.db.errors import InputError
from yarus.tasks.config.redaction import redact_urls


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a file `.env`."""

    file: str
    added: list[str]
    """Lines, without passwords."""
    kept: list[str]
    """Settings that have another value there, or in the environment, which stays."""


def planned(path: Path, wanted: Mapping[str, str]) -> Written:
    """What would be added to the file."""
    there = {**dotenv_values(path), **os.environ} if path.exists() else dict(os.environ)
    added = [f"{name}={redact_urls(value)}" for name, value in wanted.items() if name not in there]
    kept = [name for name, value in wanted.items() if name in there and there[name] != value]
    return Written(str(path), added, kept)


def write(path: Path, wanted: Mapping[str, str], remarks: Sequence[str] = ()) -> Written:
    """Adds what is missing; a file that is made is the owner's alone, for it may hold passwords.

    Args:
        path: of the file.
        wanted: settings and their values.
        remarks: lines to be added as comments, each once.

    Raises:
        InputError: it cannot be written.
    """
    found = planned(path, wanted)
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    names = {line.partition("=")[0] for line in found.added}
    lines = [f"# {remark}" for remark in remarks if f"# {remark}" not in there.splitlines()]
    lines += [f"{name}={quoted(value)}" for name, value in wanted.items() if name in names]
    if not lines:
        return found
    gap = "" if not there or there.endswith("\n") else "\n"
    try:
        with open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(gap + "\n".join(lines) + "\n")
    except OSError as error:
        raise InputError("{path}: {reason}", path=path, reason=error.strerror or error) from None
    return found


def quoted(value: str) -> str:
    """A value as the file takes it."""
    if re.fullmatch(r"[^\s'\"#$\\`]+", value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
