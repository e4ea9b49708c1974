"""What the values of spans say: attributes by their dotted names, messages, passages, questions and answers."""

from collections.abc import Iterable, Mapping
from typing import Any

from db.importers.said import ANSWER_NAMES, QUESTION_NAMES, parsed, said
from db.loading.recorded import Record, passage

Attributes = dict[str, Any]
ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant"}
URL_NAMES = ("url", "source_url", "page_url", "confluence_url", "link", "source")
LISTS = ("documents", "source_documents", "results", "contexts", "context", "chunks", "nodes", "matches", "data")
HISTORIES = ("history", "chat_history", "messages")


def nested(attributes: Mapping[str, Any]) -> Attributes:
    """Attributes by the parts of their names: `{"a.b": 1}` and `{"a": {"b": 1}}` are the same."""
    found: Attributes = {}
    for name, value in attributes.items():
        *path, last = str(name).split(".")
        place = found
        for part in path:
            inner = place.get(part)
            if not isinstance(inner, dict):
                place[part] = inner = {} if inner is None else {"": inner}
            place = inner
        known, value = place.get(last), _nested(value)
        if isinstance(known, dict):
            known.update(value if isinstance(value, dict) else {"": value})
        else:
            place[last] = value
    return found


def _nested(value: Any) -> Any:
    if isinstance(value, dict):
        return nested(value)
    return [_nested(one) for one in value] if isinstance(value, list) else value


def at(attributes: Attributes, *names: str) -> Any:
    """The value of the first attribute of these names that is there."""
    for name in names:
        value: Any = attributes
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, dict) and "" in value:
            value = value[""]
        if value is not None and value != "":
            return value
    return None


def listed(value: Any) -> list[Any]:
    """A list, however it is written: as one, as JSON, or by numbers (`documents.0`, `documents.1`)."""
    value = parsed(value)
    if isinstance(value, dict) and value and all(str(key).isdigit() for key in value):
        return [one for _, one in sorted(value.items(), key=lambda item: int(item[0]))]
    return value if isinstance(value, list) else []


def messages(value: Any) -> list[Record]:
    """The messages in a value that have a text, with the roles `user`, `assistant` and `system`; [] if it is no list
    of them.
    """
    found = listed(value)
    if len(found) == 1 and isinstance(found[0], list):  # a batch of one
        found = found[0]
    read = [_message(one) for one in found if isinstance(one, dict)]
    return [one for one in read if one is not None and one["content"]] if len(read) == len(found) else []


def _message(value: dict[str, Any]) -> Record | None:
    given = value.get("message", value)
    given = given.get("kwargs", given) if isinstance(given, dict) else {}
    role = str(given.get("role") or given.get("type") or value.get("type") or "").casefold()
    content = next((given[name] for name in ("content", "parts", "contents") if given.get(name)), None)
    return {"role": ROLES.get(role, "system"), "content": _content(content)} if role else None


def _content(value: Any) -> str:
    """The text of a message: itself, or that of its parts, whatever else (images, calls of tools) stands between."""
    if isinstance(value, str):
        return value
    texts = []
    for part in listed(value):
        inner = part.get("message_content", part) if isinstance(part, dict) else {"text": part}
        text = inner.get("text", inner.get("content")) if isinstance(inner, dict) else None
        texts += [text] if isinstance(text, str) and text.strip() else []
    return "\n".join(texts)


def question_in(value: Any) -> tuple[str | None, list[Record]]:
    """The question in an input, and what was said before it: of messages the last of the user."""
    value = parsed(value)
    inner = value if isinstance(value, dict) else {}
    talk = messages(value) or messages(inner.get("messages"))
    last = max((place for place, one in enumerate(talk) if one["role"] == "user"), default=None)
    if last is not None:
        return talk[last]["content"], [one for one in talk[:last] if one["role"] != "system"]
    before = next((found for name in HISTORIES if (found := messages(inner.get(name)))), [])
    return _text(said(value, QUESTION_NAMES)), before


def answer_in(value: Any) -> str | None:
    """The answer in an output: of messages the last of the assistant."""
    value = parsed(value)
    if isinstance(value, dict) and (choices := listed(value.get("choices"))):  # as OpenAI's protocol has it
        value = choices
    talk = messages(value) or messages(value.get("messages") if isinstance(value, dict) else None)
    talk = talk or [one for one in messages([value]) if isinstance(value, dict)]
    by_assistant = [one["content"] for one in talk if one["role"] == "assistant"]
    return _text(by_assistant[-1] if by_assistant else said(value, ANSWER_NAMES))


def passages_in(value: Any) -> list[Record] | None:
    """The passages in what a retriever returned; None where it is no list of them."""
    value = parsed(value)
    if isinstance(value, dict) and not all(str(key).isdigit() for key in value):
        value = next((value[name] for name in LISTS if isinstance(parsed(value.get(name)), list)), None)
    found = listed(value)
    read = [one for one in map(_passage, found) if one is not None]
    return distinct(read) if read or parsed(value) == [] else None


def distinct(passages: Iterable[Record]) -> list[Record]:
    """The passages, each id once, the first place counts."""
    found: dict[str, Record] = {}
    for one in passages:
        found.setdefault(one["id"], one)
    return list(found.values())


def _passage(value: Any) -> Record | None:
    if not isinstance(value, dict):
        return passage(value) if isinstance(value, str) else None
    given = next((value[name] for name in ("document", "node", "payload") if isinstance(value.get(name), dict)), value)
    given = given.get("kwargs", given)
    metadata = parsed(given.get("metadata"))
    about = metadata if isinstance(metadata, dict) else {}
    url = next((of[name] for of in (given, about) for name in URL_NAMES if of.get(name)), None)
    name = next((of["id"] for of in (given, value) if of.get("id")), None)
    return passage({**given, "id": name, "url": url})


def _text(value: str | None) -> str | None:
    return value if value is not None and value.strip() else None
