"""Rubrics: judged metrics of a user, each a text file with a name, a question and anchors.

    name: politeness
    question: How polite is the answer?
    texts: question, answer
    lowered_by: empty, other_page
    1: friendly and respectful
    0.5: neutral
    0: rude

`texts` (default: question, answer) lists what the judge sees. `lowered_by` (default: nothing) names the kinds of damage
(`yarus.metrics.exam_kinds.KINDS`) that must lower the score of a perfect reference; the exam of the judge uses them.
A line without a key continues the one before. Lines that begin with # are comments.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.metrics.exam_kinds import DAMAGES

TEXT_NAMES = ("question", "context", "reference", "answer")
KEYS = ("name", "question", "texts", "lowered_by")
RUBRIC_LINE = re.compile(r"(name|question|texts|lowered_by|[01](?:[.,]\d+)?)\s*:\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rubric:
    """Judged metric as its author wrote it down."""

    name: str
    question: str
    scale: str  # one line per anchor
    variables: tuple[str, ...]
    lowered_by: tuple[str, ...]


def read_rubric(path: Path) -> Rubric:
    """Read one rubric from a file.

    Raises:
        InputError: the file is not a rubric; the message names the file and what is expected.
    """
    entries = _parse_entries(path)
    for key in ("name", "question"):
        if not entries.get(key):
            raise InputError("{path}: no line '{key}: …'", path=path, key=key)
    name = entries["name"]
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(
            "{path}: name {name!r}; expected small Latin letters, digits and _, for example politeness",
            path=path,
            name=name,
        )
    return Rubric(name, entries["question"], _scale(entries, path), _variables(entries, path), _damages(entries, path))


def _parse_entries(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else Words("not UTF-8")
        raise InputError("the rubric {path} cannot be read: {reason}", path=path, reason=reason) from error
    entries: dict[str, str] = {}
    key = ""
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if match := RUBRIC_LINE.fullmatch(text):
            key = match[1].lower().replace(",", ".")
            if key in entries:
                raise InputError("{path}, line {number}: {key!r} appears twice", path=path, number=number, key=key)
            entries[key] = match[2].strip()
        elif key:
            entries[key] = f"{entries[key]} {text}".strip()
        else:
            raise InputError(
                "{path}, line {number}: {text!r}; expected 'name: …', 'question: …' or an anchor '1: …'",
                path=path,
                number=number,
                text=text,
            )
    return entries


def _scale(entries: dict[str, str], path: Path) -> str:
    anchors = {float(key): text for key, text in entries.items() if key not in KEYS}
    if not {0.0, 1.0} <= anchors.keys() or max(anchors) > 1 or not all(anchors.values()):
        raise InputError(
            "{path}: anchors are needed from '0: …' to '1: …', each with its meaning; 0.5 helps the judge", path=path
        )
    return "\n".join(f"{value:.2g} - {anchors[value]}" for value in sorted(anchors, reverse=True))


def _variables(entries: dict[str, str], path: Path) -> tuple[str, ...]:
    names = {name.strip().lower() for name in entries.get("texts", "question, answer").split(",")}
    if unknown := sorted(names - {*TEXT_NAMES}):
        raise InputError(
            "{path}: no text {name!r}; there are: {texts}", path=path, name=unknown[0], texts=", ".join(TEXT_NAMES)
        )
    if "answer" not in names:
        raise InputError("{path}: 'texts' must name answer, which is what is judged", path=path)
    return tuple(name for name in TEXT_NAMES if name in names)


def _damages(entries: dict[str, str], path: Path) -> tuple[str, ...]:
    names = {name.strip().lower() for name in entries.get("lowered_by", "").split(",")} - {""}
    if unknown := sorted(names - {*DAMAGES}):
        raise InputError(
            "{path}: lowered_by: no damage {name!r}; there are: {damages}",
            path=path,
            name=unknown[0],
            damages=", ".join(DAMAGES),
        )
    return tuple(name for name in DAMAGES if name in names)
