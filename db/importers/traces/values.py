"""What the values of spans say: attributes by their dotted names, messages, passages, questions and answers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from yarus.db.importers.said import MAX_LEVELS, parsed, parsed_object
from yarus.db.importers.traces.plain_values import UnusableSpan
from yarus.db.loading.recorded import Record, content_id, passage
from yarus.db.words import Words

Attributes = dict[str, Any]
"""Attributes of a span by the parts of their names."""
ROLES = {
    **dict.fromkeys(("user", "human", "customer", "client"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "agent"), "assistant"),
}
URL_NAMES = ("url", "source_url", "page_url", "confluence_url", "link", "source")
LISTS = (
    "documents", "source_documents", "results", "contexts", "context", "chunks", "nodes", "matches", "data",
    "retrieved_documents", "retrieved_contexts", "output", "outputs", "result", "rets",
)  # fmt: skip
HISTORIES = ("history", "chat_history", "messages")
QUESTION_NAMES = (
    "question", "user_question", "query", "user_query", "q", "user_input", "user_message", "input", "inputs",
    "message", "prompt", "text", "content", "request", "messages",
)  # fmt: skip
"""Names in an input under which the question stands, most telling first."""
ANSWER_NAMES = (
    "answer", "output", "response", "result", "final_answer", "reply", "text", "completion", "content", "outputs",
    "output_text", "message", "generation", "actual_output", "rets", "return",
)  # fmt: skip
REFERENCES = (
    "ground_truth_answer", "ground_truth", "reference_answer", "expected_output", "expectedOutput", "expected_answer",
    "reference_output", "reference_outputs", "reference", "golden_answer",
)  # fmt: skip
"""Names of the answer that people wanted, most telling first."""
POSITIONAL, NAMED = ("args", "input_args"), ("kwargs", "input_kwargs")
"""What tracing SDKs call the arguments of the function that they record."""
LONGEST_ID = 300
"""Characters: PostgreSQL indexes no value of more than 2,700 bytes, and two ids may be joined."""
MOST_DIGITS = 18
MOST_QUOTES = 4
OBJECT = re.compile(r"<(class '.*|module .*|function .*|bound method .*|[\w.]+|.* at 0x[0-9a-fA-F]+.*)>", re.DOTALL)
"""An object that is no text, as SDKs write it: `<bot.Bot object at 0x7f…>`, `<Bot>`."""
CODE = re.compile(r"[\w.:/@-]*\d[\w.:/@-]*")
"""One word with a digit in it: an id, a name of a model, hardly a question."""
CUT_OFF = re.compile(r"\s*\{\s*[\"'](input_)?(kw)?args[\"']\s*:")
"""The beginning of recorded arguments, in a text that cannot be read as a whole."""


def nested(attributes: Mapping[str, Any], levels: int = MAX_LEVELS) -> Attributes:
    """Return attributes by the parts of their names: `{"a.b": 1}` and `{"a": {"b": 1}}` are the same.

    Raises:
        UnusableSpan: names have more parts than are read.
    """
    found: Attributes = {}
    for name, value in attributes.items():
        *path, last = str(name).split(".")
        left = levels - len(path) - 1
        if left < 0:
            raise UnusableSpan(Words("nested in more than {most} levels, or without end", most=MAX_LEVELS))
        place = found
        for part in path:
            inner = place.get(part)
            if not isinstance(inner, dict):
                place[part] = inner = {} if inner is None else {"": inner}
            place = inner
        _merge(place, last, _nested(value, left))
    return found


def _merge(place: Attributes, name: str, value: Any) -> None:
    """Put a value under a name; what is already there stays beside it, a plain value under an empty name."""
    waiting = [(place, name, value)]
    while waiting:
        place, name, value = waiting.pop()
        known = place.get(name)
        if isinstance(known, dict):
            parts = value if isinstance(value, dict) else {"": value} if value is not None else {}
            waiting += [(known, part, inner) for part, inner in parts.items()]
        elif isinstance(value, dict) and known is not None:
            place[name] = {"": known} | value
        elif value is not None or name not in place:
            place[name] = value


def _nested(value: Any, levels: int) -> Any:
    if isinstance(value, dict):
        return nested(value, levels)
    return [_nested(one, levels) for one in value] if isinstance(value, list) else value


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
    if _is_numbered(value):
        return [one for _, one in sorted(value.items(), key=lambda item: int(item[0]))]
    if isinstance(value, np.ndarray | tuple):
        return list(value)
    return value if isinstance(value, list) else []


def _is_numbered(value: Any) -> bool:
    """Return whether an object is a list whose places are names: `{"0": …, "1": …}`."""
    if not isinstance(value, dict) or not value:
        return False
    return all(str(name).isdecimal() and len(str(name)) <= MOST_DIGITS for name in value)


def messages(value: Any) -> list[Record]:
    """The messages in a value that have a text, with the roles `user`, `assistant` and `system`; [] if it is no list
    of them.
    """
    found = listed(value)
    if len(found) == 1 and isinstance(found[0], list):  # a batch of one
        found = found[0]
    read = [_message(one) for one in found if isinstance(one, dict)]
    return [one for one in read if one is not None and one["content"]] if len(read) == len(found) else []


def _message(value: Record) -> Record | None:
    given = value.get("message", value)
    given = _within(given, "kwargs") if isinstance(given, dict) else {}
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


def _unquoted(value: Any) -> Any:
    """Return what a text says, also if it is JSON within JSON."""
    for _ in range(MOST_QUOTES):
        inner = parsed(value)
        if not isinstance(inner, str) or inner == value:
            return inner
        value = inner
    return value


def question_in(value: Any) -> tuple[str | None, list[Record]]:
    """The question in an input, and what was said before it: of messages the last of the user.

    Args:
        value: a text, messages, an object with the text under a usual name, or the arguments of a function as tracing
            SDKs record them (`{"args": […], "kwargs": {…}}`); also as JSON.
    """
    return _question(value, MAX_LEVELS)


def _question(value: Any, levels: int) -> tuple[str | None, list[Record]]:
    value = _unquoted(value)
    if isinstance(value, str):
        return (value, []) if _is_words(value) else (None, [])
    if levels <= 0 or not isinstance(value, dict | list):
        return None, []
    inner = value if isinstance(value, dict) else {}
    own = messages(value)
    talk = own or messages(inner.get("messages"))
    last = max((place for place, one in enumerate(talk) if one["role"] == "user"), default=None)
    if last is not None:
        return talk[last]["content"], [one for one in talk[:last] if one["role"] != "system"]
    if own:  # nobody has asked
        return None, []
    before = next((found for name in HISTORIES if (found := messages(inner.get(name)))), [])
    for candidate in _candidates(value):
        question, history = _question(candidate, levels - 1)
        if question is not None:
            return question, history or before
    return None, before


def _candidates(value: Record | list[Any]) -> Iterator[Any]:
    """Yield the parts of an input that may hold the question, the likeliest first."""
    if isinstance(value, list):
        yield from value[-1:]
        return
    positional, named = _arguments(value)
    yield from (value[name] for name in QUESTION_NAMES if name in value)
    yield from ({name: one[name] for name in (*QUESTION_NAMES, *HISTORIES) if name in one} for one in named)
    texts = [one for one in positional if isinstance(one, str) and _is_words(one)]
    codes = [one for one in texts if CODE.fullmatch(one.strip())]
    yield from (one for one in positional if one not in codes and not _is_plain_list(one))
    yield from (*codes, *named)
    words = [one for one in value.values() if isinstance(one, str) and _is_words(one)]
    if len(value) == 1:
        yield from value.values()
    elif len(words) == 1 and " " in words[0].strip():  # a name that nobody knows, beside numbers and objects
        yield from words


def _arguments(value: Record) -> tuple[list[Any], list[Record]]:
    """Return the arguments of a call, those by position and those by name."""
    given = [parsed(value[name]) for name in (*NAMED, *POSITIONAL) if name in value]
    return [one for part in given if isinstance(part, list) for one in part], [
        part for part in given if isinstance(part, dict)
    ]


def _is_plain_list(value: Any) -> bool:
    """Return whether a value is a list without messages, such as one of passages."""
    return isinstance(parsed(value), list) and not messages(value)


def _is_words(text: str) -> bool:
    """Return whether a text may be a question: it is not blank, no object, and no part of recorded arguments."""
    return bool(text.strip()) and not OBJECT.fullmatch(text.strip()) and not CUT_OFF.match(text)


def answer_in(value: Any) -> str | None:
    """The answer in an output: of messages the last of the assistant; JSON texts are unquoted."""
    return _answer(value, MAX_LEVELS)


def is_unanswered(talk: list[Record]) -> bool:
    """Return whether a user has asked something in a conversation to which there is no reply."""
    return any(one["role"] == "user" for one in talk) and reply_in(talk) is None


def reply_in(talk: list[Record]) -> str | None:
    """Return the last message of the assistant, if the user has said nothing since."""
    last = next((one for one in reversed(talk) if one["role"] != "system"), None)
    return last["content"] if last is not None and last["role"] == "assistant" else None


def _answer(value: Any, levels: int) -> str | None:
    value = _unquoted(value)
    if isinstance(value, str):
        return value if value.strip() and not OBJECT.fullmatch(value.strip()) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if levels <= 0 or not isinstance(value, dict | list):
        return None
    inner = value if isinstance(value, dict) else {}
    if generations := listed(inner.get("generations")):  # as LangChain has it: batches of candidates
        return _answer(generations[0], levels - 1)
    talk = messages(listed(inner.get("choices"))) or messages(value) or messages(inner.get("messages"))
    talk = talk or [one for one in messages([value]) if inner]
    if any(one["role"] == "assistant" for one in talk):
        return _text(reply_in(talk))
    parts = value[-1:] if isinstance(value, list) else [value[name] for name in ANSWER_NAMES if name in value]
    parts += list(inner.values()) if len(inner) == 1 else []
    answers = (_answer(part, levels - 1) for part in parts if not isinstance(part, int | float))
    return next((answer for answer in answers if answer is not None), None)


def reference_in(*given: Any) -> str | None:
    """Return the answer that people wanted, from the first of some objects that names it.

    Args:
        given: metadata, attributes, or a row; also as JSON.
    """
    values = (one[name] for one in map(parsed_object, given) for name in REFERENCES if name in one)
    return next((text for value in values if (text := _reference(value)) is not None), None)


def _reference(value: Any) -> str | None:
    value = parsed(value)
    texts = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    if texts:  # several that are all right: the first, as in other test sets
        return _text(texts[0])
    named = reference_in(value) if isinstance(value, dict) else None
    return named or (answer_in(value) if isinstance(value, str | dict) else None)


def passages_in(value: Any) -> list[Record] | None:
    """The passages in what a retriever returned; None where it is no list of them."""
    value = _list_within(parsed(value))
    found = listed(value)
    if len(found) == 1 and isinstance(found[0], list):  # a batch of one
        found = found[0]
    read = [one for one in map(_passage, found) if one is not None]
    return distinct(read) if read or parsed(value) == [] else None


def _list_within(value: Any) -> Any:
    """Return the list that an object has under a usual name, also in an object of its own; a list as it is."""
    for _ in range(3):
        if not isinstance(value, dict) or _is_numbered(value):
            return value
        inner = {name: parsed(value[name]) for name in LISTS if name in value}
        lists = (one for one in inner.values() if isinstance(one, list) or _is_numbered(one))
        value = next(lists, next((one for one in inner.values() if isinstance(one, dict)), None))
    return value


def distinct(passages: Iterable[Record]) -> list[Record]:
    """The passages, each id once, the first place counts."""
    found: dict[str, Record] = {}
    for one in passages:
        found.setdefault(one["id"], one)
    return list(found.values())


def _passage(value: Any) -> Record | None:
    if isinstance(value, list) and value:  # with its score
        value = value[0]
    if not isinstance(value, dict):
        return passage(value) if isinstance(value, str) else None
    if any("." in name for name in value):
        value = nested(value)
    given = next((value[name] for name in ("document", "node", "payload") if isinstance(value.get(name), dict)), value)
    given = _within(given, "kwargs")
    about = parsed_object(given.get("metadata"))
    url = next((of[name] for of in (given, about) for name in URL_NAMES if of.get(name)), None)
    name = next((of["id"] for of in (given, value) if of.get("id")), None)
    found = passage({**given, "id": name, "url": url})
    if found is not None and len(found["id"]) > LONGEST_ID:
        found["id"] = content_id({"id": found["id"]})
    return found


def _within(value: Record, name: str) -> Record:
    """Return the object under a name; the object itself if it has none there."""
    inner = value.get(name)
    return inner if isinstance(inner, dict) else value


def _text(value: str | None) -> str | None:
    return value if value is not None and value.strip() else None
