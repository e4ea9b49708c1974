"""Parse the cells of imported tables: texts, lists, labels and passages, in any notation."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from yarus.db.importers.column_parsers import BadValue, parse_value
from yarus.db.importers.literals import parse_python_literal
from yarus.db.importers.traces.extraction import extract_answer, extract_question, is_unanswered, parse_messages
from yarus.db.importers.votes import BAD, GOOD, detect_scale, parse_vote
from yarus.db.loading.recorded import Record, parse_passage
from yarus.db.messages import Words

LIST_COLUMNS = ("contexts", "relevant_chunk_ids", "relevant_urls", "irrelevant_passages", "other_passages")
"""Our columns that hold lists."""
MAX_LIST_LENGTH = 10_000_000
"""Characters up to which a cell is parsed as a list."""
SEPARATORS = ("|", "\n\n", "\n", ";")
"""Separators of passages in a cell that is not a list, in the order in which they are tried."""
ELIDED = re.compile(r"['\"]\s+\.\.\.\s+['\"]")
HOP_PREFIX = re.compile(r"^\s*<\d+-hop>\s*")
"""The prefix that ragas gives to the passages of a multi-hop question."""
ADDRESS_PATTERN = r"https?://|[^\s,;|]+\.(?:md|markdown|txt|html?|pdf|docx?|rst)\b"
NOTHING_WORDS = frozenset(("none", "null", "n/a", "-", "–", "—"))
NOTHING_PATTERN = rf"(?i:{'|'.join(sorted(NOTHING_WORDS))})\s*(?:[,;|]|\Z)"
PAGE_SEPARATOR = re.compile(rf"[ \t]*[\r\n]+[ \t]*|\s*[,;|]\s*(?={ADDRESS_PATTERN}|{NOTHING_PATTERN})|\s+(?=https?://)")
PASSAGE_COLUMN = re.compile(r"(?:contexts?|passages)$", re.IGNORECASE)
"""Endings of names of columns that hold passages and not ids."""
CODE_LIST = re.compile(r"[\w.:#-]{1,40}(?:\s*,\s*[\w.:#-]{1,40})+")
PAGE_NUMBER = re.compile(r",?\s+(?:стр|с|p|pp|page)\.?\s*\d[\d\s,–-]*$", re.IGNORECASE)
"""A page number within a document, as people cite it: `rules.pdf, p. 3`."""
ID_NAMES = ("id", "doc_id", "docid", "chunk_id", "node_id", "passage_id", "document_id", "_id")
PAGE_NAMES = (
    "url", "doc_uri", "source", "page_url", "link", "file", "file_name", "name", "title", "path", "page", "id",
)  # fmt: skip
MIN_QUOTED_SHARE = 0.8
MAX_GRADE = 1e6
"""Above any real grade; its squares and sums are still finite."""
NO_LABELS = Words('no labels; write "1; 2", ["1", "2"] or {"1": 3, "2": 1}')


@dataclass(frozen=True)
class CellStyle:
    """How the cells of a column are written."""

    separator: str | None = None
    """Between the items of a cell; '' if the cells are lists, None if a cell is one item."""
    by_text: bool = False
    """Whether relevant passages are identified by their text and not by an id."""
    quoted: bool = False
    """Whether texts are in quotes, as in JSON."""
    integer_ids: bool = False
    """Whether ids are integers written as 12.0."""
    votes: Mapping[int, int] | None = None
    """The mark of each number if users voted for and against answers, as `detect_scale` returns it."""


def detect_style(target: str, values: Iterable[Any], column: str) -> CellStyle:
    """Detect how the cells of a column are written, from those that are not empty.

    Args:
        target: our column.
        values: of its cells; for scores all of them, because one 5 shows that a 1 is the worst mark and not a vote.
        column: its name in the file.
    """
    if target == "score":
        return CellStyle(votes=detect_scale(values, column))
    values = list(values)
    texts = [value for value in values if isinstance(value, str)]
    quoted = bool(texts) and sum(map(_is_quoted, texts)) >= MIN_QUOTED_SHARE * len(values)
    has_integer_ids = bool(texts) and all(re.fullmatch(r"\s*\d+\.0+\s*", text) for text in texts)
    if target not in LIST_COLUMNS:
        return CellStyle(quoted=quoted, integer_ids=has_integer_ids)
    lists = [value for value in values if not isinstance(value, str) or _is_list(value)]
    separator: str | None = ""
    if 2 * len(lists) < len(values):
        separator = None if target == "relevant_urls" else _find_separator(texts)
    style = CellStyle(separator, integer_ids=has_integer_ids)
    if target == "relevant_chunk_ids":
        items = [item for value in values for item in _items_or_none(value, style)]
        n_passages = sum(_is_passage(item) for item in items)
        is_named_as_passages = PASSAGE_COLUMN.search(column) is not None and not any(_is_graded(item) for item in items)
        if is_named_as_passages or 2 * n_passages > len(items):
            return CellStyle(separator, by_text=True)
        return CellStyle("" if separator == "" else ";", integer_ids=has_integer_ids)
    return style


def _is_list(text: str) -> bool:
    try:
        return parse_list(text) is not None
    except BadValue:  # an incomplete list
        return True


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"' and isinstance(_parse_json(text), str)


def _find_separator(texts: Sequence[str]) -> str | None:
    """Return the separator of most cells, or one without a space behind it; tables in Markdown have both."""
    for separator in SEPARATORS:
        n_texts = sum(separator in text.strip() for text in texts)
        is_tight = separator in "|;" and any(re.search(rf"{re.escape(separator)}\S", text) for text in texts)
        if (is_tight and not (separator == "|" and any("| " in text for text in texts))) or 2 * n_texts > len(texts):
            return separator
    return None


def _is_graded(item: Any) -> bool:
    return isinstance(item, Mapping) and all(isinstance(grade, int | float) for grade in item.values())


def _is_passage(item: Any) -> bool:
    """Return whether an item is a passage rather than an id, or ids with their grades."""
    if isinstance(item, Mapping):
        return any(isinstance(value, str) for value in item.values())
    return isinstance(item, str) and len(item.split()) > 2


def _items_or_none(value: Any, style: CellStyle) -> list[Any]:
    try:
        return parse_items(value, style)
    except BadValue:
        return []


def parse_list(text: str) -> list[Any] | Record | None:
    """Return the list or object in a text, as JSON, Python or numpy writes it; None if there is none.

    Raises:
        BadValue: numpy omitted the middle of a list.
    """
    stripped = text.strip()
    if stripped[:1] not in ("[", "{") and not stripped.startswith("array("):
        return None
    if len(stripped) > MAX_LIST_LENGTH:
        return None
    value = _parse_json(stripped)
    if isinstance(value, list | dict):
        return value
    if ELIDED.search(stripped):
        raise BadValue("numpy has left out the middle of the list (...); save it as JSON or Parquet")
    value = parse_python_literal(stripped)
    return value if isinstance(value, list | dict) else None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parse_items(value: Any, style: CellStyle) -> list[Any]:
    """Return the items of a cell that may hold several.

    Raises:
        BadValue: the column's cells are lists, and this one is not.
    """
    if isinstance(value, str):
        items = parse_list(value)
        if items is not None:
            value = items
        elif style.separator == "":
            raise BadValue('no list; write ["a", "b"]')
        else:
            parts = value.split(style.separator) if style.separator else [value]
            value = [part.strip() for part in parts if part.strip()]
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, list | tuple):
        return [value]
    return list(_flatten(value))


def _flatten(values: Sequence[Any], depth: int = 4) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple) and depth:
            yield from _flatten(value, depth - 1)
        elif value is not None and value != "" and value == value:
            yield value


def parse_page_names(value: Any) -> list[str]:
    """Return the page names in a cell: addresses, files or ids; one text may hold several.

    Raises:
        BadValue: an item is not a name.
    """
    if isinstance(value, str):
        items = parse_list(value)
        value = PAGE_SEPARATOR.split(value.strip()) if items is None else items
    values = value if isinstance(value, list | tuple) else [value]
    return list(dict.fromkeys(_parse_page_name(item) for item in _flatten(values) if not is_nothing(item)))


def _parse_page_name(value: Any) -> str:
    if isinstance(value, Mapping):
        value = next((value[name] for name in PAGE_NAMES if value.get(name)), None)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise BadValue('no names of pages; write ["https://…", "rules.md"]')
    return PAGE_NUMBER.sub("", str(value).strip())


def parse_passages(value: Any, style: CellStyle) -> list[Record]:
    """Return the passages in a cell: `{"id", "text", "url"}` each; items without text and id are left out.

    Raises:
        BadValue: the cell is not a list although the others are, or an item is not a passage.
    """
    passages = [_parse_passage(item) for item in parse_items(value, style)]
    if None in passages:
        raise BadValue('no passages; write ["a text", …] or [{"id": "12", "text": "a text", "url": "https://…"}]')
    return [passage for passage in passages if passage is not None]


def _parse_passage(item: Any) -> Record | None:
    """Parse a passage in any notation; None if the item is not a passage."""
    if isinstance(item, str):
        return parse_passage(HOP_PREFIX.sub("", item)) if item.strip() else None
    if not isinstance(item, Mapping):
        return None
    document = next((item[key] for key in ("document", "node", "payload") if isinstance(item.get(key), Mapping)), item)
    metadata = document.get("metadata")
    details: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    url = next(
        (part[key] for part in (document, details) for key in PAGE_NAMES[:5] if isinstance(part.get(key), str)), None
    )
    name = next((part[key] for part in (document, item) for key in ID_NAMES if part.get(key) is not None), None)
    title, text = document.get("title"), document.get("text")
    if isinstance(title, str) and title.strip() and isinstance(text, str) and text.strip() and "docid" in document:
        document = {**document, "text": f"{title.strip()} {text.strip()}"}
    return parse_passage({**document, "id": name, "url": url})


def parse_labels(value: Any, style: CellStyle) -> list[str] | dict[str, float]:
    """Return the ids of relevant items, or id -> grade.

    Raises:
        BadValue: an item is not an id.
    """
    if isinstance(value, str) and (items := parse_list(value)) is not None:
        value = items
    elif isinstance(value, str) and re.fullmatch(r"\s*\[.*\]\s*", value, re.DOTALL):
        raise BadValue(NO_LABELS)
    if isinstance(value, list) and value and all(isinstance(pair, tuple) for pair in value):
        value = dict(value)  # a map of Parquet
    if isinstance(value, Mapping):
        grades = {str(name): grade for name, grade in value.items() if grade is not None and not _is_unjudged(grade)}
        if all(isinstance(grade, int | float) and abs(grade) <= MAX_GRADE for grade in grades.values()):
            return grades
        raise BadValue(NO_LABELS)
    is_code_list = isinstance(value, str) and "," in value and ";" not in value and CODE_LIST.fullmatch(value.strip())
    labels = parse_items(value, CellStyle("," if is_code_list else ";"))
    if any(isinstance(item, bool) or not isinstance(item, str | int | float) for item in labels):
        raise BadValue(NO_LABELS)
    return list(dict.fromkeys(parse_id(item, integer_ids=style.integer_ids) for item in labels if not is_nothing(item)))


def _is_unjudged(grade: Any) -> bool:
    """Return whether a grade means "not judged", as in TREC."""
    return isinstance(grade, int | float) and grade < 0


def is_nothing(value: Any) -> bool:
    """Return whether a name, number or mark means that there is none."""
    return isinstance(value, str) and value.strip().casefold() in NOTHING_WORDS


def parse_id(value: Any, *, integer_ids: bool) -> str:
    """Convert an id to text; 12.0 becomes 12 if gaps turned integer ids into floats.

    Raises:
        BadValue: the value is not a text.
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool | list | dict | bytes):
        raise BadValue("no text")
    text = str(value).strip()
    return text.partition(".")[0] if integer_ids else text


def parse_mark(value: Any, style: CellStyle) -> int:
    """Return the mark that a user gave an answer, from 1 (bad) to 5 (good).

    Raises:
        BadValue: the value is not a mark, or not a vote in a column of votes.
    """
    mark: int | None = parse_value("score", value) if style.votes is None else parse_vote(value, style.votes)
    if mark is None:
        raise BadValue("not a vote")
    if not BAD <= mark <= GOOD:
        raise BadValue("no mark from 1 (bad) to 5 (good)", mark=mark)
    return mark


def parse_history(value: Any, *, with_question: bool) -> list[dict[str, str]] | None:
    """Return the messages before a question; None if there are none.

    Args:
        value: messages.
        with_question: whether the question is among them, and perhaps its answer.

    Raises:
        BadValue: the value is not a list of messages.
    """
    return (extract_question(value)[1] or None) if with_question else parse_value("history", value)


def extract_text(target: str, value: Any, *, quoted: bool = False) -> tuple[str, int]:
    """Return the text in a cell, and the number of texts that it was chosen from.

    In a list of messages, the question is the user's last message and the answer the assistant's last one. The first
    of several references is used.

    Raises:
        BadValue: there is no text in the cell.
    """
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{", '"'):
            return value, 1
        parsed = _parse_json(value) if quoted else None
        if isinstance(parsed, str):
            return parsed, 1
        parsed = parse_list(value)
        if parsed is None or _has_only_numbers(parsed):  # "[5 10]" may be an answer
            return value, 1
        value = parsed
    if isinstance(value, bool | int | float | date):
        return _scalar_text(value), 1
    if target == "question":
        text: str | None = extract_question(value)[0]
    elif target == "ground_truth_answer":
        return _first_reference(value)
    elif is_unanswered(parse_messages(value)):
        return "", 0
    else:
        text = extract_answer(value)
    if text is None:
        raise BadValue("no text in it under a usual name")
    return text, 1


def _has_only_numbers(value: list[Any] | Record) -> bool:
    items = list(_flatten(value)) if isinstance(value, list) else []
    return bool(items) and all(isinstance(item, int | float) for item in items)


def _scalar_text(value: bool | float | date) -> str:
    """Convert a YAML or spreadsheet value to text: booleans, integers, dates."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _first_reference(value: Any) -> tuple[str, int]:
    """Return the first of several reference texts, and how many there are."""
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):  # SQuAD's answers
        value = value["text"]
    if isinstance(value, Mapping) and isinstance(value.get("Value"), str):  # TriviaQA's answer with its aliases
        value = value["Value"]
    if isinstance(value, list | tuple) and not value:
        return "", 0
    texts = [value] if not isinstance(value, list | tuple) else list(value)
    candidates = [text if isinstance(text, str) else extract_answer(text) for text in texts]
    usable = [text for text in candidates if text and text.strip()]
    if not usable:
        raise BadValue("no text in it")
    return usable[0], len(dict.fromkeys(usable))
