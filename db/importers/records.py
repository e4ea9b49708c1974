"""Find the rows in a JSON or YAML document."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yarus.db.errors import InputError
from yarus.db.importers.recognise import COLUMN_ALIASES, is_known, normalize_name
from yarus.db.loading.recorded import Record
from yarus.db.messages import Words

_QUESTION_NAMES = frozenset(COLUMN_ALIASES["questions"]["question"].split("|"))
_ROW_NAMES = frozenset(f"{COLUMN_ALIASES['questions']['question']}|{COLUMN_ALIASES['chunks']['text']}".split("|"))


@dataclass(frozen=True)
class FoundRecords:
    """The rows of a document, and notes on the choice among several lists."""

    records: list[Record]
    notes: list[str] = field(default_factory=list)


def find_records(document: Any, path: Path) -> FoundRecords | None:
    """Return the rows in a document; None if it has none.

    A document may be a list of objects, or an object with one list of objects at one of two levels. It may be lists of
    equal length by name, or a table by columns as pandas writes it (`columns`, `index`, `split`). It may also have
    queries, corpus and relevant documents by id, or be a chat exported by Telegram.

    Args:
        document: the parsed document.
        path: of the file, for messages.

    Raises:
        InputError: several lists could be the rows, or the shape is not supported.
    """
    if isinstance(document, list):
        return _parse_list(document, path)
    if not isinstance(document, dict):
        return None
    for parse in (_parse_queries, _parse_chats, _parse_split, _parse_columns):
        if (rows := parse(document)) is not None:
            return FoundRecords(_flatten_turns(rows))
    return _find_only_list(document, path)


def _parse_list(items: list[Any], path: Path) -> FoundRecords | None:
    if items and all(isinstance(item, str) for item in items):
        n_questions = sum(item.rstrip().endswith("?") for item in items)
        if 2 * n_questions > len(items):
            return FoundRecords([{"question": item} for item in items])
    objects = [item for item in items if isinstance(item, dict)]
    if not objects:
        if items and all(isinstance(item, list) for item in items):
            raise InputError(
                "{path}: a list of lists has no names of columns; write objects, for example "
                '[{{"question": "…", "reference": "…"}}]; nothing was loaded',
                path=path,
            )
        return None
    n_left_out = len(items) - len(objects)
    note = Words("{file}: {n} items are no objects and are left out", file=path.name, n=n_left_out)
    return FoundRecords(_flatten_turns(objects), [note] if n_left_out else [])


def _flatten_turns(records: list[Record]) -> list[Record]:
    """Return one record per row; questions within a conversation or topic become rows with its other fields."""
    rows: list[Record] = []
    for record in records:
        list_name = next((name for name, value in record.items() if _has_questions(value)), None)
        if list_name is None:
            rows.append(record)
            continue
        shared = {key: value for key, value in record.items() if key != list_name}
        dialog_id = record.get("conversation_group_id") or record.get("conversation_id") or record.get("dialog_id")
        for number, item in enumerate(record[list_name], start=1):
            dialog_fields = {"dialog_id": dialog_id, "turn": number} if list_name == "turns" or dialog_id else {}
            rows.append(shared | item | dialog_fields)
    return rows


def _has_questions(value: Any) -> bool:
    """Return whether a value is a list of objects with questions, such as turns of a dialog or questions of a topic."""
    items = value if isinstance(value, list) else []
    return bool(items) and all(
        isinstance(item, dict) and any(normalize_name(str(key)) in _QUESTION_NAMES for key in item) for item in items
    )


def _find_only_list(document: Record, path: Path) -> FoundRecords | None:
    """Return the rows of the only list of objects at the first or second level."""
    lists = dict(_iter_lists(document))
    if not lists or is_row(document):
        return FoundRecords([document]) if any(map(is_known, document)) else None
    scores = {
        name: (len({key for item in items[:20] for key in _iter_keys(item) if is_known(key)}), len(items))
        for name, items in lists.items()
    }
    best_score = max(scores.values())
    best = [name for name, score in scores.items() if score == best_score]
    if len(best) > 1:
        raise InputError(
            "{path}: several lists could be the rows: {names}; keep one of them in the file; nothing was loaded",
            path=path, names=", ".join(best),
        )  # fmt: skip
    notes: list[str] = []
    if len(lists) > 1:
        others = ", ".join(name for name in lists if name != best[0])
        notes = [Words("{file}: rows of {name!r}; not read: {others}", file=path.name, name=best[0], others=others)]
    return FoundRecords(_flatten_turns(lists[best[0]]), notes)


def is_row(document: Record) -> bool:
    """Return whether an object is a row by itself: it has its own question or text, and no list of questions."""
    if any(_has_questions(items) for _, items in _iter_lists(document)):
        return False
    return any(isinstance(value, str) and normalize_name(str(name)) in _ROW_NAMES for name, value in document.items())


def _iter_lists(document: Record, prefix: str = "", depth: int = 2) -> Iterator[tuple[str, list[Record]]]:
    for name, value in document.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            yield f"{prefix}{name}", value
        elif isinstance(value, dict) and depth > 1:
            yield from _iter_lists(value, f"{prefix}{name}.", depth - 1)


def _iter_keys(item: Record) -> Iterator[str]:
    for key, value in item.items():
        yield str(key)
        if isinstance(value, dict):
            yield from map(str, value)


def _parse_queries(document: Record) -> list[Record] | None:
    """Parse LlamaIndex pairs for embeddings: queries, passages and relevant documents, each by id."""
    queries, corpus, relevant = (document.get(name) for name in ("queries", "corpus", "relevant_docs"))
    if not (isinstance(queries, dict) and isinstance(corpus, dict) and isinstance(relevant, dict)):
        return None
    relevant_ids = {str(name) for names in relevant.values() if isinstance(names, list | dict) for name in names}
    records: list[Record] = [
        {
            "id": name,
            "question": text,
            "relevant_passages": [{"id": label, "text": corpus.get(label)} for label in relevant.get(name) or []],
        }
        for name, text in queries.items()
    ]
    other_passages = [{"id": name, "text": text} for name, text in corpus.items() if str(name) not in relevant_ids]
    if records:
        records[0]["other_passages"] = other_passages
    return records


def _parse_chats(document: Record) -> list[Record] | None:
    """Parse the questions and answers in one chat or all chats that Telegram Desktop exported."""
    chats = document.get("chats")
    exported_chats = chats.get("list") if isinstance(chats, dict) else None
    chat_list = exported_chats if isinstance(exported_chats, list) else [document]
    pairs = [pair for chat in chat_list if isinstance(chat, dict) for pair in _iter_pairs(chat)]
    return pairs if any("date_unixtime" in pair for pair in pairs) else None


def _iter_pairs(chat: Record) -> Iterator[Record]:
    """Yield the messages of users with their replies: the one that refers to it, else the bot's next message."""
    messages = [
        message
        for message in chat.get("messages") or []
        if isinstance(message, dict) and message.get("type") == "message"
    ]
    if not messages or not all("from_id" in message for message in messages):
        return
    bot = _find_bot(chat, messages)
    replies = {
        message["reply_to_message_id"]: message
        for message in messages
        if message["from_id"] == bot and message.get("reply_to_message_id")
    }
    used_ids = {id(message) for message in replies.values()}
    for index, message in enumerate(messages):
        if message["from_id"] == bot or not (text := _plain_text(message.get("text"))):
            continue
        reply = replies.get(message.get("id"))
        following = messages[index + 1] if index + 1 < len(messages) else None
        if reply is None and following is not None and following["from_id"] == bot and id(following) not in used_ids:
            reply = following
        yield {
            "id": f"{chat.get('id')}:{message.get('id')}", "question": text,
            "answer": _plain_text(reply.get("text")) if reply else None,
            "date_unixtime": message.get("date_unixtime"), "from_id": message["from_id"],
            "dialog_id": str(chat.get("id")),
        }  # fmt: skip


def _find_bot(chat: Record, messages: list[Record]) -> str:
    """Return the id of the answering account: the one that the chat is named after, else the one that replies most."""
    matching_ids = [message["from_id"] for message in messages if message.get("from") == chat.get("name")]
    reply_ids = [message["from_id"] for message in messages if message.get("reply_to_message_id")] or [
        messages[-1]["from_id"]
    ]
    return str(matching_ids[0] if matching_ids else max(dict.fromkeys(reply_ids), key=reply_ids.count))


def _plain_text(text: Any) -> str:
    """Return a Telegram text, whose parts may be formatted."""
    if isinstance(text, list):
        return "".join(_plain_text(part.get("text") if isinstance(part, dict) else part) for part in text)
    return text if isinstance(text, str) else ""


def _parse_split(document: Record) -> list[Record] | None:
    """Parse the `split` form of pandas, names of columns and rows of values, as MLflow writes them."""
    names, rows = document.get("columns"), document.get("data")
    if not (isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows)):
        return None
    return [dict(zip(map(str, names), row, strict=False)) for row in rows]


def _parse_columns(document: Record) -> list[Record] | None:
    """Parse a table by columns: lists of equal length, or objects with the same keys, as pandas writes them."""
    columns = {str(name): values for name, values in document.items() if isinstance(values, list)}
    have_equal_length = len(columns) > 1 and len({len(values) for values in columns.values()}) == 1
    are_objects = all(isinstance(value, dict) for values in columns.values() for value in values)
    if have_equal_length and not are_objects and any(map(is_known, columns)):
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    columns_by_key = [value for value in document.values() if isinstance(value, dict)]
    if len(columns_by_key) < 2 or len(columns_by_key) < len(document):
        return None
    if any(is_known(str(name)) for name in document) and len({tuple(column) for column in columns_by_key}) == 1:
        return [
            dict(zip(map(str, document), values, strict=True))
            for values in zip(*(column.values() for column in columns_by_key), strict=True)
        ]
    if any(is_known(str(name)) for name in columns_by_key[0]):  # one object per id
        return [{"id": key, **value} for key, value in document.items()]
    return None
