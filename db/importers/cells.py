"""What a cell of somebody else's table says: the text in it, or the items of a list, however they are written."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from yarus.db.importers.said import parse_python
from yarus.db.importers.traces.values import answer_in, is_unanswered, messages, question_in
from yarus.db.importers.values import BadValue, parse
from yarus.db.importers.votes import BAD, GOOD, read_scale, read_vote
from yarus.db.loading.recorded import Record, passage
from yarus.db.words import Words

LIST_STYLES = ("contexts", "relevant_chunk_ids", "relevant_urls", "irrelevant_passages", "other_passages")
"""Our columns that hold lists."""
LONGEST = 10_000_000
"""Characters of a cell that is read as a list."""
SEPARATORS = ("|", "\n\n", "\n", ";")
"""What parts the passages of a cell that is no list, in the order in which they are tried."""
ELIDED = re.compile(r"['\"]\s+\.\.\.\s+['\"]")
HOP = re.compile(r"^\s*<\d+-hop>\s*")
"""The mark that ragas puts before the passages of a question of several hops."""
ADDRESS = r"https?://|[^\s,;|]+\.(?:md|markdown|txt|html?|pdf|docx?|rst)\b"
NOTHING = frozenset(("none", "null", "n/a", "-", "–", "—"))
GAP = rf"(?i:{'|'.join(sorted(NOTHING))})\s*(?:[,;|]|\Z)"
BETWEEN_PAGES = re.compile(rf"[ \t]*[\r\n]+[ \t]*|\s*[,;|]\s*(?={ADDRESS}|{GAP})|\s+(?=https?://)")
OF_TEXTS = re.compile(r"(?:contexts?|passages)$", re.IGNORECASE)
"""What names of columns end in that hold passages, and not their ids."""
CODES = re.compile(r"[\w.:#-]{1,40}(?:\s*,\s*[\w.:#-]{1,40})+")
PAGE_NUMBER = re.compile(r",?\s+(?:стр|с|p|pp|page)\.?\s*\d[\d\s,–-]*$", re.IGNORECASE)
"""The number of a page within a document, as people cite it: `rules.pdf, p. 3`."""
ID_NAMES = ("id", "doc_id", "docid", "chunk_id", "node_id", "passage_id", "document_id", "_id")
PAGE_NAMES = (
    "url", "doc_uri", "source", "page_url", "link", "file", "file_name", "name", "title", "path", "page", "id",
)  # fmt: skip
QUOTED = 0.8
LARGEST_GRADE = 1e6
"""More than anybody grades; squares and sums of it are numbers still."""
NO_LABELS = Words('no labels; write "1; 2", ["1", "2"] or {"1": 3, "2": 1}')


@dataclass(frozen=True)
class Style:
    """How the cells of a column are written."""

    separator: str | None = None
    """Between the items of a cell; '' where the cells are lists, None where a cell is one item."""
    by_text: bool = False
    """Whether relevant passages are named by their text and not by an id."""
    quoted: bool = False
    """Whether texts stand in quotes, as JSON writes them."""
    whole: bool = False
    """Whether ids are whole numbers written as 12.0."""
    votes: Mapping[int, int] | None = None
    """The mark of each number if users voted for and against answers, as `read_scale` returns it."""


def style_of(ours: str, values: Iterable[Any], theirs: str) -> Style:
    """How the cells of a column are written, by those that are not empty.

    Args:
        ours: our name of the column.
        values: of its cells; of scores all, for one 5 tells that a 1 is the worst mark and not a vote.
        theirs: the file's name of it.
    """
    if ours == "score":
        return Style(votes=read_scale(values, theirs))
    values = list(values)
    texts = [value for value in values if isinstance(value, str)]
    quoted = bool(texts) and sum(map(_is_quoted, texts)) >= QUOTED * len(values)
    whole = bool(texts) and all(re.fullmatch(r"\s*\d+\.0+\s*", text) for text in texts)
    if ours not in LIST_STYLES:
        return Style(quoted=quoted, whole=whole)
    lists = [value for value in values if not isinstance(value, str) or _is_list(value)]
    separator: str | None = ""
    if 2 * len(lists) < len(values):
        separator = None if ours == "relevant_urls" else _separator(texts)
    style = Style(separator, whole=whole)
    if ours == "relevant_chunk_ids":
        items = [item for value in values for item in _items_or_none(value, style)]
        by_text = sum(_is_passage(item) for item in items)
        named_so = OF_TEXTS.search(theirs) is not None and not any(_is_graded(item) for item in items)
        if named_so or 2 * by_text > len(items):
            return Style(separator, by_text=True)
        return Style("" if separator == "" else ";", whole=whole)
    return style


def _is_list(text: str) -> bool:
    try:
        return parse_list(text) is not None
    except BadValue:  # a list that is not whole
        return True


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"' and isinstance(_json(text), str)


def _separator(texts: Sequence[str]) -> str | None:
    """What parts passages: what most cells have, or a sign without a space behind it; tables in Markdown have both."""
    for sign in SEPARATORS:
        share = sum(sign in text.strip() for text in texts)
        is_tight = sign in "|;" and any(re.search(rf"{re.escape(sign)}\S", text) for text in texts)
        if (is_tight and not (sign == "|" and any("| " in text for text in texts))) or 2 * share > len(texts):
            return sign
    return None


def _is_graded(item: Any) -> bool:
    return isinstance(item, Mapping) and all(isinstance(grade, int | float) for grade in item.values())


def _is_passage(item: Any) -> bool:
    """Whether an item is a passage rather than an id, or ids with their grades."""
    if isinstance(item, Mapping):
        return any(isinstance(value, str) for value in item.values())
    return isinstance(item, str) and len(item.split()) > 2


def _items_or_none(value: Any, style: Style) -> list[Any]:
    try:
        return items_in(value, style)
    except BadValue:
        return []


def parse_list(text: str) -> list[Any] | Record | None:
    """The list or object that a text is, as JSON, Python or numpy writes it; None where it is none.

    Raises:
        BadValue: numpy has left out the middle of a list.
    """
    stripped = text.strip()
    if stripped[:1] not in ("[", "{") and not stripped.startswith("array("):
        return None
    if len(stripped) > LONGEST:
        return None
    value = _json(stripped)
    if isinstance(value, list | dict):
        return value
    if ELIDED.search(stripped):
        raise BadValue("numpy has left out the middle of the list (...); save it as JSON or Parquet")
    value = parse_python(stripped)
    return value if isinstance(value, list | dict) else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def items_in(value: Any, style: Style) -> list[Any]:
    """The items of a cell that holds several.

    Raises:
        BadValue: the column's cells are lists, and this one is none.
    """
    if isinstance(value, str):
        read = parse_list(value)
        if read is not None:
            value = read
        elif style.separator == "":
            raise BadValue('no list; write ["a", "b"]')
        else:
            parts = value.split(style.separator) if style.separator else [value]
            value = [part.strip() for part in parts if part.strip()]
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, list | tuple):
        return [value]
    return list(_flat(value))


def _flat(values: Sequence[Any], depth: int = 4) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple) and depth:
            yield from _flat(value, depth - 1)
        elif value is not None and value != "" and value == value:
            yield value


def pages_in(value: Any) -> list[str]:
    """The names of pages in a cell: addresses, files or ids; one text may hold several.

    Raises:
        BadValue: something in it is no name.
    """
    if isinstance(value, str):
        read = parse_list(value)
        value = BETWEEN_PAGES.split(value.strip()) if read is None else read
    values = value if isinstance(value, list | tuple) else [value]
    return list(dict.fromkeys(_page(item) for item in _flat(values) if not is_nothing(item)))


def _page(value: Any) -> str:
    if isinstance(value, Mapping):
        value = next((value[name] for name in PAGE_NAMES if value.get(name)), None)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise BadValue('no names of pages; write ["https://…", "rules.md"]')
    return PAGE_NUMBER.sub("", str(value).strip())


def passages_in(value: Any, style: Style) -> list[Record]:
    """The passages in a cell: `{"id", "text", "url"}` each; what has neither text nor id is left out.

    Raises:
        BadValue: it is no list where the others are, or an item is no passage.
    """
    read = [_passage(item) for item in items_in(value, style)]
    if None in read:
        raise BadValue('no passages; write ["a text", …] or [{"id": "12", "text": "a text", "url": "https://…"}]')
    return [passage for passage in read if passage is not None]


def _passage(item: Any) -> Record | None:
    """A passage, however it is written; None where it is none."""
    if isinstance(item, str):
        return passage(HOP.sub("", item)) if item.strip() else None
    if not isinstance(item, Mapping):
        return None
    inner = next((item[name] for name in ("document", "node", "payload") if isinstance(item.get(name), Mapping)), item)
    metadata = inner.get("metadata")
    about: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    url = next((of[name] for of in (inner, about) for name in PAGE_NAMES[:5] if isinstance(of.get(name), str)), None)
    name = next((of[key] for of in (inner, item) for key in ID_NAMES if of.get(key) is not None), None)
    title, text = inner.get("title"), inner.get("text")
    if isinstance(title, str) and title.strip() and isinstance(text, str) and text.strip() and "docid" in inner:
        inner = {**inner, "text": f"{title.strip()} {text.strip()}"}
    return passage({**inner, "id": name, "url": url})


def labels_in(value: Any, style: Style) -> list[str] | dict[str, float]:
    """Ids of what is relevant, or id -> grade.

    Raises:
        BadValue: something in it is no id.
    """
    if isinstance(value, str) and (read := parse_list(value)) is not None:
        value = read
    elif isinstance(value, str) and re.fullmatch(r"\s*\[.*\]\s*", value, re.DOTALL):
        raise BadValue(NO_LABELS)
    if isinstance(value, list) and value and all(isinstance(pair, tuple) for pair in value):
        value = dict(value)  # a map of Parquet
    if isinstance(value, Mapping):
        grades = {str(name): grade for name, grade in value.items() if grade is not None and not _is_below(grade)}
        if all(isinstance(grade, int | float) and abs(grade) <= LARGEST_GRADE for grade in grades.values()):
            return grades
        raise BadValue(NO_LABELS)
    codes = isinstance(value, str) and "," in value and ";" not in value and CODES.fullmatch(value.strip())
    read_items = items_in(value, Style("," if codes else ";"))
    if any(isinstance(item, bool) or not isinstance(item, str | int | float) for item in read_items):
        raise BadValue(NO_LABELS)
    return list(dict.fromkeys(id_text(item, whole=style.whole) for item in read_items if not is_nothing(item)))


def _is_below(grade: Any) -> bool:
    """Whether a grade says that nobody judged, as TREC writes it."""
    return isinstance(grade, int | float) and grade < 0


def is_nothing(value: Any) -> bool:
    """Whether a name, number or mark says that there is none."""
    return isinstance(value, str) and value.strip().casefold() in NOTHING


def id_text(value: Any, *, whole: bool) -> str:
    """An id as text; 12.0 is 12 where ids are whole numbers that a gap has made floats.

    Raises:
        BadValue: it is no text.
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool | list | dict | bytes):
        raise BadValue("no text")
    text = str(value).strip()
    return text.partition(".")[0] if whole else text


def mark_in(value: Any, style: Style) -> int:
    """Return the mark that a user gave an answer, from 1 (bad) to 5 (good).

    Raises:
        BadValue: the value is not a mark, or not a vote in a column of votes.
    """
    mark: int | None = parse("score", value) if style.votes is None else read_vote(value, style.votes)
    if mark is None:
        raise BadValue("not a vote")
    if not BAD <= mark <= GOOD:
        raise BadValue("no mark from 1 (bad) to 5 (good)", mark=mark)
    return mark


def history_in(value: Any, *, with_question: bool) -> list[dict[str, str]] | None:
    """Return the messages before a question; None if there are none.

    Args:
        value: messages.
        with_question: whether the question is among them, and perhaps its answer.

    Raises:
        BadValue: the value is not a list of messages.
    """
    return (question_in(value)[1] or None) if with_question else parse("history", value)


def text_in(ours: str, value: Any, *, quoted: bool = False) -> tuple[str, int]:
    """The text in a cell, and among how many it was chosen.

    Of messages a question is the last of the user and an answer the last of the assistant; of several references the
    first is taken.

    Raises:
        BadValue: there is no text in it.
    """
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{", '"'):
            return value, 1
        read = _json(value) if quoted else None
        if isinstance(read, str):
            return read, 1
        read = parse_list(value)
        if read is None or _has_only_numbers(read):  # "[5 10]" may be an answer
            return value, 1
        value = read
    if isinstance(value, bool | int | float | date):
        return _plain(value), 1
    if ours == "question":
        text: str | None = question_in(value)[0]
    elif ours == "ground_truth_answer":
        return _first(value)
    elif is_unanswered(messages(value)):
        return "", 0
    else:
        text = answer_in(value)
    if text is None:
        raise BadValue("no text in it under a usual name")
    return text, 1


def _has_only_numbers(value: list[Any] | Record) -> bool:
    items = list(_flat(value)) if isinstance(value, list) else []
    return bool(items) and all(isinstance(item, int | float) for item in items)


def _plain(value: bool | float | date) -> str:
    """What stands for a text in YAML or a spreadsheet: yes and no, whole numbers, days."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _first(value: Any) -> tuple[str, int]:
    """The first text of several references."""
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):  # SQuAD's answers
        value = value["text"]
    if isinstance(value, Mapping) and isinstance(value.get("Value"), str):  # TriviaQA's answer with its aliases
        value = value["Value"]
    if isinstance(value, list | tuple) and not value:
        return "", 0
    texts = [value] if not isinstance(value, list | tuple) else list(value)
    read = [text if isinstance(text, str) else answer_in(text) for text in texts]
    usable = [text for text in read if text and text.strip()]
    if not usable:
        raise BadValue("no text in it")
    return usable[0], len(dict.fromkeys(usable))
