"""Texts of other people as Yarus shows them: with pseudonyms for personal data, or unchanged.

The setting YARUS_MASK_OUTPUT decides; without it, pseudonyms are used for the source `production`. Results and tables
keep the original texts, and metrics are computed from them. Everything that goes into a page, a terminal, a document
for programs, an export, an artifact or a message passes through this module first.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from yarus.db.sources import PRODUCTION
from yarus.tasks.cases.vocabulary import FREE_TEXTS
from yarus.tasks.config.settings import get_settings

if TYPE_CHECKING:
    import pyarrow as pa

Maskers = Mapping[str, Callable[[str], str]]
TEXT_KEYS = (*FREE_TEXTS, "passage", "error", "label", "words", "examples", "unserved_examples", "representative")
TEXT_KEYS += ("ground_truth_answer",)
"""Columns of cases and keys of documents that hold texts of people and models, at any depth."""
CACHE_SIZE = 50_000
"""Number of cached masked texts: the tiers of a report share questions, and contexts share chunks."""
DIALOG_NAME = re.compile(r"(.+)(@\d{4}-\d\d-\d\dT[\d:]+)", re.DOTALL)
"""Name of one user's dialog: the user and the time of the first question, as in tasks/cases/dialogs.py."""
USER_PREFIX, DIALOG_PREFIX = "user ", "dialog "


def should_mask(source: str, *, unset: bool = False) -> bool:
    """Return whether texts of that source are shown with pseudonyms.

    Args:
        source: name of the source.
        unset: the answer for other sources than production if YARUS_MASK_OUTPUT is not set.
    """
    setting = get_settings().mask_output
    return (unset or source == PRODUCTION) if setting is None else setting


def maskers_by_name(source: str) -> Maskers:
    """Return the masking function of each column or document key; empty if nothing is masked."""
    if not should_mask(source):
        return {}
    # Imported here, because its patterns compile for a tenth of a second.
    from yarus.tasks.cases.privacy.masking import load_own_key

    key = load_own_key()
    mask_text = partial(mask_paragraphs, key=key, language=get_settings().language)
    return dict.fromkeys(TEXT_KEYS, mask_text) | {
        "group": partial(mask_group, key=key),
        "dialog": partial(mask_dialog, key=key),
    }


def mask_cases(table: "pa.Table", source: str) -> "pa.Table":
    """Mask the cases; ids, addresses and numbers stay the same, and so do the types."""
    maskers = maskers_by_name(source)
    if maskers and "unsupported_facts" in table.column_names:
        table = _mask_facts(table, maskers["answer"])
    for name, mask in maskers.items():
        if name in table.column_names:
            index = table.column_names.index(name)
            table = table.set_column(index, table.schema.field(name), _mask_column(table[name], mask))
    return table


def mask_document(value: Any, source: str, *, name: str = "") -> Any:
    """Mask a document: everything under a key of texts is masked.

    Args:
        value: nested lists and mappings.
        source: name of the source.
        name: key of the document itself, if it is part of another.
    """
    maskers = maskers_by_name(source)
    return _mask_nested(value, maskers, maskers.get(name)) if maskers else value


def mask_message(message: str, source: str) -> str:
    """Mask a text or message."""
    return maskers_by_name(source).get("error", str)(message)


def truncate_text(text: str, limit: int) -> str:
    """Return the beginning of a text, at most that many characters, without cutting personal data in two."""
    if len(text) <= limit:
        return text
    from yarus.tasks.cases.privacy.masking import detect_pii

    return text[: min([limit, *(finding.start for finding in detect_pii(text) if finding.start < limit < finding.end)])]


def remove_personal_data(text: str) -> str:
    """Remove personal data from a text."""
    from yarus.tasks.cases.privacy.masking import detect_pii

    for finding in reversed(detect_pii(text)):
        text = f"{text[: finding.start]} {text[finding.end :]}"
    return text


@contextmanager
def mask_errors(source: str) -> Iterator[None]:
    """Mask errors that leave the block, because a server may have repeated a question in them."""
    try:
        yield
    except Exception as error:
        chained: BaseException | None = error
        while chained is not None:  # a traceback also shows the causes
            chained.args = tuple(mask_document(list(chained.args), source, name="error"))
            chained = chained.__cause__ or chained.__context__
        raise


def _mask_column(values: "pa.ChunkedArray", mask: Callable[[str], str]) -> "pa.ChunkedArray":
    import pyarrow as pa

    chunks = [pa.array(_mask_nested(chunk.to_pylist(), {}, mask), type=values.type) for chunk in values.chunks]
    return pa.chunked_array(chunks, type=values.type)


def _mask_facts(table: "pa.Table", mask: Callable[[str], str]) -> "pa.Table":
    """Mask the facts as in the masked answers, because a number alone may not look like personal data."""
    import pyarrow as pa

    from yarus.tasks.cases.table import column_values, optional_column_values

    pairs = zip(column_values(table, "unsupported_facts"), optional_column_values(table, "answer"), strict=True)
    masked = [facts and [_mask_fact(fact, answer or "", mask) for fact in facts] for facts, answer in pairs]
    index = table.column_names.index("unsupported_facts")
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(masked, type=field.type))


def _mask_fact(fact: dict[str, Any], answer: str, mask: Callable[[str], str]) -> dict[str, Any]:
    """Return a fact with its masked text and position in the answer; without both if they cannot be determined."""
    from yarus.tasks.cases.privacy.masking import detect_pii

    overlapping = [
        finding for finding in detect_pii(answer) if finding.start < fact["end"] and finding.end > fact["start"]
    ]
    start = min([fact["start"], *(finding.start for finding in overlapping)])
    end = max([fact["end"], *(finding.end for finding in overlapping)])
    before, through = mask(answer[:start]), mask(answer[:end])
    if not (through.startswith(before) and mask(answer).startswith(through)):
        return fact | dict.fromkeys(("text", "start", "end"))
    return fact | {"text": through[len(before) :], "start": len(before), "end": len(through)}


def _mask_nested(value: Any, maskers: Maskers, mask: Callable[[str], str] | None) -> Any:
    if isinstance(value, str):
        return mask(value) if mask else value
    if isinstance(value, dict):
        return {name: _mask_nested(part, maskers, maskers.get(name, mask)) for name, part in value.items()}
    return [_mask_nested(part, maskers, mask) for part in value] if isinstance(value, list | tuple) else value


def mask_paragraphs(text: str, key: bytes, language: str) -> str:
    """Mask a text paragraph by paragraph, because contexts repeat the same chunks."""
    return "\n\n".join(_mask_paragraph(part, key, language) for part in text.split("\n\n"))


@lru_cache(CACHE_SIZE)
def _mask_paragraph(paragraph: str, key: bytes, language: str) -> str:
    """Mask a paragraph; existing pseudonyms stay, because models receive and repeat them."""
    from yarus.tasks.cases.privacy.masking import mask, pseudonym_pattern

    parts = pseudonym_pattern().split(paragraph)
    return "".join(part if index % 2 else mask(part, key, language) for index, part in enumerate(parts))


def mask_group(name: str, key: bytes) -> str:
    """Return a group with its user or dialog replaced by a pseudonym; pages and topics stay."""
    if name.startswith(DIALOG_PREFIX):
        return DIALOG_PREFIX + mask_dialog(name.removeprefix(DIALOG_PREFIX), key)
    return USER_PREFIX + _user_code(name.removeprefix(USER_PREFIX), key) if name.startswith(USER_PREFIX) else name


def mask_dialog(name: str, key: bytes) -> str:
    """Return the pseudonym of a dialog: that of its user, and the time."""
    match = DIALOG_NAME.fullmatch(name)
    return _user_code(match[1], key) + match[2] if match else _user_code(name, key)


def _user_code(name: str, key: bytes) -> str:
    """Return a keyed hash of a user, long enough to avoid collisions."""
    return hmac.new(key, f"user|{name}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:12]
