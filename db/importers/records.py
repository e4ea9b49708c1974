"""The rows in a JSON or YAML document, wherever they stand in it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yarus.db.errors import InputError
from yarus.db.importers.recognise import NAMES, is_known, plain
from yarus.db.loading.recorded import Record
from yarus.db.words import Words

_QUESTION = frozenset(NAMES["questions"]["question"].split("|"))
_ROW = frozenset(f"{NAMES['questions']['question']}|{NAMES['chunks']['text']}".split("|"))


@dataclass(frozen=True)
class Records:
    """Rows, and what was chosen among several lists."""

    records: list[Record]
    notes: list[str] = field(default_factory=list)


def records_in(document: Any, path: Path) -> Records | None:
    """The rows in a document; None where it has none.

    A list of objects; an object with one list of objects, at one of two levels; lists of equal length by name; a table
    by columns as pandas writes it (`columns`, `index`, `split`); queries, corpus and relevant documents by id; a chat
    exported by Telegram.

    Args:
        document: as it was parsed.
        path: of the file, for messages.

    Raises:
        InputError: several lists could be the rows, or the shape is known and not supported.
    """
    if isinstance(document, list):
        return _listed(document, path)
    if not isinstance(document, dict):
        return None
    for read in (_of_queries, _of_chats, _of_split, _of_columns):
        if (rows := read(document)) is not None:
            return Records(_turned(rows))
    return _only_list(document, path)


def _listed(items: list[Any], path: Path) -> Records | None:
    if items and all(isinstance(item, str) for item in items):
        questions = sum(item.rstrip().endswith("?") for item in items)
        if 2 * questions > len(items):
            return Records([{"question": item} for item in items])
    objects = [item for item in items if isinstance(item, dict)]
    if not objects:
        if items and all(isinstance(item, list) for item in items):
            raise InputError(
                "{path}: a list of lists has no names of columns; write objects, for example "
                '[{{"question": "…", "reference": "…"}}]; nothing was loaded',
                path=path,
            )
        return None
    left = len(items) - len(objects)
    note = Words("{file}: {n} items are no objects and are left out", file=path.name, n=left)
    return Records(_turned(objects), [note] if left else [])


def _turned(records: list[Record]) -> list[Record]:
    """The records; the questions of a conversation or topic apart, each with what that says."""
    rows: list[Record] = []
    for record in records:
        inner = next((name for name, value in record.items() if _has_questions(value)), None)
        if inner is None:
            rows.append(record)
            continue
        shared = {key: value for key, value in record.items() if key != inner}
        dialog = record.get("conversation_group_id") or record.get("conversation_id") or record.get("dialog_id")
        for number, item in enumerate(record[inner], start=1):
            place = {"dialog_id": dialog, "turn": number} if inner == "turns" or dialog else {}
            rows.append(shared | item | place)
    return rows


def _has_questions(value: Any) -> bool:
    """Whether a value is a list of objects with questions, such as turns of a conversation or questions of a topic."""
    items = value if isinstance(value, list) else []
    return bool(items) and all(
        isinstance(item, dict) and any(plain(str(key)) in _QUESTION for key in item) for item in items
    )


def _only_list(document: Record, path: Path) -> Records | None:
    """The one list of objects at the first or second level."""
    lists = dict(_lists(document))
    if not lists or is_row(document):
        return Records([document]) if any(map(is_known, document)) else None
    scores = {
        name: (len({key for item in items[:20] for key in _keys(item) if is_known(key)}), len(items))
        for name, items in lists.items()
    }
    most = max(scores.values())
    best = [name for name, score in scores.items() if score == most]
    if len(best) > 1:
        raise InputError(
            "{path}: several lists could be the rows: {names}; keep one of them in the file; nothing was loaded",
            path=path, names=", ".join(best),
        )  # fmt: skip
    notes: list[str] = []
    if len(lists) > 1:
        others = ", ".join(name for name in lists if name != best[0])
        notes = [Words("{file}: rows of {name!r}; not read: {others}", file=path.name, name=best[0], others=others)]
    return Records(_turned(lists[best[0]]), notes)


def is_row(document: Record) -> bool:
    """Whether an object is a row by itself: it has a question or a text of its own, and no list of others."""
    if any(_has_questions(items) for _, items in _lists(document)):
        return False
    return any(isinstance(value, str) and plain(str(name)) in _ROW for name, value in document.items())


def _lists(document: Record, prefix: str = "", depth: int = 2) -> Iterator[tuple[str, list[Record]]]:
    for name, value in document.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            yield f"{prefix}{name}", value
        elif isinstance(value, dict) and depth > 1:
            yield from _lists(value, f"{prefix}{name}.", depth - 1)


def _keys(item: Record) -> Iterator[str]:
    for key, value in item.items():
        yield str(key)
        if isinstance(value, dict):
            yield from map(str, value)


def _of_queries(document: Record) -> list[Record] | None:
    """LlamaIndex' pairs for embeddings: queries, passages and what is relevant, each by id."""
    queries, corpus, relevant = (document.get(name) for name in ("queries", "corpus", "relevant_docs"))
    if not (isinstance(queries, dict) and isinstance(corpus, dict) and isinstance(relevant, dict)):
        return None
    wanted = {str(name) for names in relevant.values() if isinstance(names, list | dict) for name in names}
    records: list[Record] = [
        {
            "id": name,
            "question": text,
            "relevant_passages": [{"id": label, "text": corpus.get(label)} for label in relevant.get(name) or []],
        }
        for name, text in queries.items()
    ]
    others = [{"id": name, "text": text} for name, text in corpus.items() if str(name) not in wanted]
    if records:
        records[0]["other_passages"] = others
    return records


def _of_chats(document: Record) -> list[Record] | None:
    """Questions and answers in a chat that Telegram Desktop has exported, or in all of them."""
    chats = document.get("chats")
    listed = chats.get("list") if isinstance(chats, dict) else None
    several = listed if isinstance(listed, list) else [document]
    pairs = [pair for chat in several if isinstance(chat, dict) for pair in _pairs(chat)]
    return pairs if any("date_unixtime" in pair for pair in pairs) else None


def _pairs(chat: Record) -> Iterator[Record]:
    """Messages of users with the reply to each: the one that names it, else the next of somebody else."""
    messages = [
        message
        for message in chat.get("messages") or []
        if isinstance(message, dict) and message.get("type") == "message"
    ]
    if not messages or not all("from_id" in message for message in messages):
        return
    bot = _bot(chat, messages)
    replies = {
        message["reply_to_message_id"]: message
        for message in messages
        if message["from_id"] == bot and message.get("reply_to_message_id")
    }
    used = {id(message) for message in replies.values()}
    for place, message in enumerate(messages):
        if message["from_id"] == bot or not (text := _plain(message.get("text"))):
            continue
        reply = replies.get(message.get("id"))
        following = messages[place + 1] if place + 1 < len(messages) else None
        if reply is None and following is not None and following["from_id"] == bot and id(following) not in used:
            reply = following
        yield {
            "id": f"{chat.get('id')}:{message.get('id')}", "question": text,
            "answer": _plain(reply.get("text")) if reply else None,
            "date_unixtime": message.get("date_unixtime"), "from_id": message["from_id"],
            "dialog_id": str(chat.get("id")),
        }  # fmt: skip


def _bot(chat: Record, messages: list[Record]) -> str:
    """Who answers: the one whom the chat is named after, else the one that replies most."""
    named = [message["from_id"] for message in messages if message.get("from") == chat.get("name")]
    replying = [message["from_id"] for message in messages if message.get("reply_to_message_id")] or [
        messages[-1]["from_id"]
    ]
    return str(named[0] if named else max(dict.fromkeys(replying), key=replying.count))


def _plain(text: Any) -> str:
    """A text of Telegram, whose parts may be marked."""
    if isinstance(text, list):
        return "".join(_plain(part.get("text") if isinstance(part, dict) else part) for part in text)
    return text if isinstance(text, str) else ""


def _of_split(document: Record) -> list[Record] | None:
    """pandas' `split`: names of columns and rows of values, as MLflow writes them."""
    names, rows = document.get("columns"), document.get("data")
    if not (isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows)):
        return None
    return [dict(zip(map(str, names), row, strict=False)) for row in rows]


def _of_columns(document: Record) -> list[Record] | None:
    """A table by columns: lists of equal length, or objects with the same keys, as pandas writes them."""
    columns = {str(name): values for name, values in document.items() if isinstance(values, list)}
    alike = len(columns) > 1 and len({len(values) for values in columns.values()}) == 1
    of_objects = all(isinstance(value, dict) for values in columns.values() for value in values)
    if alike and not of_objects and any(map(is_known, columns)):
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    inner = [value for value in document.values() if isinstance(value, dict)]
    if len(inner) < 2 or len(inner) < len(document):
        return None
    if any(is_known(str(name)) for name in document) and len({tuple(column) for column in inner}) == 1:
        return [
            dict(zip(map(str, document), values, strict=True))
            for values in zip(*(column.values() for column in inner), strict=True)
        ]
    if any(is_known(str(name)) for name in inner[0]):  # an object for each id
        return [{"id": key, **value} for key, value in document.items()]
    return None
