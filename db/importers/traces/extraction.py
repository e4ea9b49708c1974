"""Extract questions, answers, messages and passages from the attributes and values of spans."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from yarus.db.importers.literals import MAX_LEVELS, parse_if_literal, parse_object
from yarus.db.importers.traces.plain_values import UnusableSpan
from yarus.db.loading.recorded import Record, content_id, parse_passage, text_or_none
from yarus.db.messages import Words

Attributes = dict[str, Any]
"""Attributes of a span, nested by the parts of their dotted names."""
ROLES = {
    **dict.fromkeys(("user", "human", "customer", "client"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "agent"), "assistant"),
}
URL_NAMES = ("url", "source_url", "page_url", "confluence_url", "link", "source")
LIST_NAMES = (
    "documents", "source_documents", "results", "contexts", "context", "chunks", "nodes", "matches", "data",
    "retrieved_documents", "retrieved_contexts", "output", "outputs", "result", "rets",
)  # fmt: skip
HISTORY_NAMES = ("history", "chat_history", "messages")
QUESTION_NAMES = (
    "question", "user_question", "query", "user_query", "q", "user_input", "user_message", "input", "inputs",
    "message", "prompt", "text", "content", "request", "messages",
)  # fmt: skip
"""Names of the question in an input, most specific first."""
ANSWER_NAMES = (
    "answer", "output", "response", "result", "final_answer", "reply", "text", "completion", "content", "outputs",
    "output_text", "message", "generation", "actual_output", "rets", "return",
)  # fmt: skip
REFERENCE_NAMES = (
    "ground_truth_answer", "ground_truth", "reference_answer", "expected_output", "expectedOutput", "expected_answer",
    "reference_output", "reference_outputs", "reference", "golden_answer",
)  # fmt: skip
"""Names of the reference answer, most specific first."""
POSITIONAL_NAMES, KEYWORD_NAMES = ("args", "input_args"), ("kwargs", "input_kwargs")
"""Names that tracing SDKs use for the arguments of a recorded function."""
MAX_ID_LENGTH = 300
"""Characters: PostgreSQL cannot index a value of more than 2,700 bytes, and two ids may be joined."""
MAX_DIGITS = 18
MAX_QUOTES = 4
OBJECT_REPR = re.compile(
    r"<(class '.*|module .*|function .*|bound method .*|[\w.]+|.* at 0x[0-9a-fA-F]+.*)>", re.DOTALL
)
"""The repr of an object, as SDKs write it: `<bot.Bot object at 0x7f…>`, `<Bot>`."""
IDENTIFIER = re.compile(r"[\w.:/@-]*\d[\w.:/@-]*")
"""One word with a digit in it: an id or a model name, probably not a question."""
TRUNCATED_ARGUMENTS = re.compile(r"\s*\{\s*[\"'](input_)?(kw)?args[\"']\s*:")
"""The beginning of recorded arguments, in a text that cannot be parsed."""


def nest_attributes(attributes: Mapping[str, Any], levels: int = MAX_LEVELS) -> Attributes:
    """Return attributes nested by the parts of their names: `{"a.b": 1}` and `{"a": {"b": 1}}` are the same.

    Raises:
        UnusableSpan: names have more parts than `levels` allows.
    """
    root: Attributes = {}
    for name, value in attributes.items():
        *path, last = str(name).split(".")
        levels_left = levels - len(path) - 1
        if levels_left < 0:
            raise UnusableSpan(Words("nested in more than {most} levels, or without end", most=MAX_LEVELS))
        target = root
        for part in path:
            child = target.get(part)
            if not isinstance(child, dict):
                target[part] = child = {} if child is None else {"": child}
            target = child
        _merge(target, last, _nest_value(value, levels_left))
    return root


def _merge(target: Attributes, name: str, value: Any) -> None:
    """Add a value under a name; an existing plain value moves under an empty name beside it."""
    pending = [(target, name, value)]
    while pending:
        target, name, value = pending.pop()
        existing = target.get(name)
        if isinstance(existing, dict):
            parts = value if isinstance(value, dict) else {"": value} if value is not None else {}
            pending += [(existing, part, inner) for part, inner in parts.items()]
        elif isinstance(value, dict) and existing is not None:
            target[name] = {"": existing} | value
        elif value is not None or name not in target:
            target[name] = value


def _nest_value(value: Any, levels: int) -> Any:
    if isinstance(value, dict):
        return nest_attributes(value, levels)
    return [_nest_value(item, levels) for item in value] if isinstance(value, list) else value


def first_attribute(attributes: Attributes, *names: str) -> Any:
    """Return the value of the first of these attributes that is present."""
    for name in names:
        value: Any = attributes
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, dict) and "" in value:
            value = value[""]
        if value is not None and value != "":
            return value
    return None


def as_list(value: Any) -> list[Any]:
    """Return a list, whether it is written as one, as JSON, or by numbers (`documents.0`, `documents.1`)."""
    value = parse_if_literal(value)
    if _is_numbered(value):
        return [element for _, element in sorted(value.items(), key=lambda item: int(item[0]))]
    if isinstance(value, np.ndarray | tuple):
        return list(value)
    return value if isinstance(value, list) else []


def _is_numbered(value: Any) -> bool:
    """Return whether the names of an object are list indices: `{"0": …, "1": …}`."""
    if not isinstance(value, dict) or not value:
        return False
    return all(str(name).isdecimal() and len(str(name)) <= MAX_DIGITS for name in value)


def parse_messages(value: Any) -> list[Record]:
    """Return the messages with text in a value, with the roles `user`, `assistant` and `system`.

    The list is empty if the value is not a list of messages.
    """
    items = as_list(value)
    if len(items) == 1 and isinstance(items[0], list):  # a batch of one
        items = items[0]
    parsed = [_parse_message(item) for item in items if isinstance(item, dict)]
    return (
        [message for message in parsed if message is not None and message["content"]]
        if len(parsed) == len(items)
        else []
    )


def _parse_message(value: Record) -> Record | None:
    message = value.get("message", value)
    message = _inner_object(message, "kwargs") if isinstance(message, dict) else {}
    role = str(message.get("role") or message.get("type") or value.get("type") or "").casefold()
    content = next((message[name] for name in ("content", "parts", "contents") if message.get(name)), None)
    return {"role": ROLES.get(role, "system"), "content": _message_text(content)} if role else None


def _message_text(value: Any) -> str:
    """Return the text of a message or of its parts; other parts (images, tool calls) are ignored."""
    if isinstance(value, str):
        return value
    texts = []
    for part in as_list(value):
        inner = part.get("message_content", part) if isinstance(part, dict) else {"text": part}
        text = inner.get("text", inner.get("content")) if isinstance(inner, dict) else None
        texts += [text] if isinstance(text, str) and text.strip() else []
    return "\n".join(texts)


def _unquote(value: Any) -> Any:
    """Return what a text contains, even if it is JSON within JSON."""
    for _ in range(MAX_QUOTES):
        inner = parse_if_literal(value)
        if not isinstance(inner, str) or inner == value:
            return inner
        value = inner
    return value


def extract_question(value: Any) -> tuple[str | None, list[Record]]:
    """Return the question in an input and the messages before it; of messages, the user's last one is the question.

    Args:
        value: a text, messages, an object with the text under a usual name, or the arguments of a function as tracing
            SDKs record them (`{"args": […], "kwargs": {…}}`); also as JSON.
    """
    return _find_question(value, MAX_LEVELS)


def _find_question(value: Any, levels: int) -> tuple[str | None, list[Record]]:
    value = _unquote(value)
    if isinstance(value, str):
        return (value, []) if _may_be_question(value) else (None, [])
    if levels <= 0 or not isinstance(value, dict | list):
        return None, []
    inner = value if isinstance(value, dict) else {}
    own_messages = parse_messages(value)
    conversation = own_messages or parse_messages(inner.get("messages"))
    last = max((index for index, message in enumerate(conversation) if message["role"] == "user"), default=None)
    if last is not None:
        return conversation[last]["content"], [
            message for message in conversation[:last] if message["role"] != "system"
        ]
    if own_messages:  # the user asked nothing
        return None, []
    before = next((earlier for name in HISTORY_NAMES if (earlier := parse_messages(inner.get(name)))), [])
    for candidate in _question_candidates(value):
        question, history = _find_question(candidate, levels - 1)
        if question is not None:
            return question, history or before
    return None, before


def _question_candidates(value: Record | list[Any]) -> Iterator[Any]:
    """Yield the parts of an input that may hold the question, the likeliest first."""
    if isinstance(value, list):
        yield from value[-1:]
        return
    positional, keyword = _call_arguments(value)
    yield from (value[name] for name in QUESTION_NAMES if name in value)
    yield from (
        {name: arguments[name] for name in (*QUESTION_NAMES, *HISTORY_NAMES) if name in arguments}
        for arguments in keyword
    )
    texts = [text for text in positional if isinstance(text, str) and _may_be_question(text)]
    codes = [text for text in texts if IDENTIFIER.fullmatch(text.strip())]
    yield from (argument for argument in positional if argument not in codes and not _is_plain_list(argument))
    yield from (*codes, *keyword)
    words = [text for text in value.values() if isinstance(text, str) and _may_be_question(text)]
    if len(value) == 1:
        yield from value.values()
    elif len(words) == 1 and " " in words[0].strip():  # an unknown name, beside numbers and objects
        yield from words


def _call_arguments(value: Record) -> tuple[list[Any], list[Record]]:
    """Return the arguments of a call: positional ones and those by name."""
    arguments = [parse_if_literal(value[name]) for name in (*KEYWORD_NAMES, *POSITIONAL_NAMES) if name in value]
    return [argument for part in arguments if isinstance(part, list) for argument in part], [
        part for part in arguments if isinstance(part, dict)
    ]


def _is_plain_list(value: Any) -> bool:
    """Return whether a value is a list without messages, such as one of passages."""
    return isinstance(parse_if_literal(value), list) and not parse_messages(value)


def _may_be_question(text: str) -> bool:
    """Return whether a text may be a question: not blank, not an object, and not part of recorded arguments."""
    return bool(text.strip()) and not OBJECT_REPR.fullmatch(text.strip()) and not TRUNCATED_ARGUMENTS.match(text)


def extract_answer(value: Any) -> str | None:
    """Return the answer in an output; of messages, the assistant's last one. JSON texts are unquoted."""
    return _find_answer(value, MAX_LEVELS)


def is_unanswered(conversation: list[Record]) -> bool:
    """Return whether a conversation has a question of the user without a reply."""
    return any(message["role"] == "user" for message in conversation) and extract_reply(conversation) is None


def extract_reply(conversation: list[Record]) -> str | None:
    """Return the assistant's last message, unless the user wrote after it."""
    last = next((message for message in reversed(conversation) if message["role"] != "system"), None)
    return last["content"] if last is not None and last["role"] == "assistant" else None


def _find_answer(value: Any, levels: int) -> str | None:
    value = _unquote(value)
    if isinstance(value, str):
        return value if value.strip() and not OBJECT_REPR.fullmatch(value.strip()) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if levels <= 0 or not isinstance(value, dict | list):
        return None
    inner = value if isinstance(value, dict) else {}
    if generations := as_list(inner.get("generations")):  # LangChain: batches of candidates
        return _find_answer(generations[0], levels - 1)
    conversation = (
        parse_messages(as_list(inner.get("choices"))) or parse_messages(value) or parse_messages(inner.get("messages"))
    )
    conversation = conversation or [message for message in parse_messages([value]) if inner]
    if any(message["role"] == "assistant" for message in conversation):
        return text_or_none(extract_reply(conversation))
    parts = value[-1:] if isinstance(value, list) else [value[name] for name in ANSWER_NAMES if name in value]
    parts += list(inner.values()) if len(inner) == 1 else []
    answers = (_find_answer(part, levels - 1) for part in parts if not isinstance(part, int | float))
    return next((answer for answer in answers if answer is not None), None)


def extract_reference(*sources: Any) -> str | None:
    """Return the reference answer from the first source that has one.

    Args:
        sources: metadata, attributes, or a row; also as JSON.
    """
    values = (source[name] for source in map(parse_object, sources) for name in REFERENCE_NAMES if name in source)
    return next((text for value in values if (text := _parse_reference(value)) is not None), None)


def _parse_reference(value: Any) -> str | None:
    value = parse_if_literal(value)
    texts = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    if texts:  # several correct answers: the first, as in other test sets
        return text_or_none(texts[0])
    named_reference = extract_reference(value) if isinstance(value, dict) else None
    return named_reference or (extract_answer(value) if isinstance(value, str | dict) else None)


def extract_passages(value: Any) -> list[Record] | None:
    """Return the passages that a retriever returned; None if the value is not a list of them."""
    value = _find_list(parse_if_literal(value))
    items = as_list(value)
    if len(items) == 1 and isinstance(items[0], list):  # a batch of one
        items = items[0]
    parsed = [passage for passage in map(_parse_passage, items) if passage is not None]
    return deduplicate_passages(parsed) if parsed or parse_if_literal(value) == [] else None


def _find_list(value: Any) -> Any:
    """Return the list that an object has under a usual name, at most three objects deep; a list unchanged."""
    for _ in range(3):
        if not isinstance(value, dict) or _is_numbered(value):
            return value
        inner = {name: parse_if_literal(value[name]) for name in LIST_NAMES if name in value}
        lists = (candidate for candidate in inner.values() if isinstance(candidate, list) or _is_numbered(candidate))
        value = next(lists, next((candidate for candidate in inner.values() if isinstance(candidate, dict)), None))
    return value


def deduplicate_passages(passages: Iterable[Record]) -> list[Record]:
    """Return the passages without repeated ids; the first of each counts."""
    by_id: dict[str, Record] = {}
    for passage in passages:
        by_id.setdefault(passage["id"], passage)
    return list(by_id.values())


def _parse_passage(value: Any) -> Record | None:
    if isinstance(value, list) and value:  # with its score
        value = value[0]
    if not isinstance(value, dict):
        return parse_passage(value) if isinstance(value, str) else None
    if any("." in name for name in value):
        value = nest_attributes(value)
    source = next((value[name] for name in ("document", "node", "payload") if isinstance(value.get(name), dict)), value)
    source = _inner_object(source, "kwargs")
    metadata = parse_object(source.get("metadata"))
    url = next((part[name] for part in (source, metadata) for name in URL_NAMES if part.get(name)), None)
    name = next((part["id"] for part in (source, value) if part.get("id")), None)
    result = parse_passage({**source, "id": name, "url": url})
    if result is not None and len(result["id"]) > MAX_ID_LENGTH:
        result["id"] = content_id({"id": result["id"]})
    return result


def _inner_object(value: Record, name: str) -> Record:
    """Return the object under a name, or the value itself if there is none."""
    inner = value.get(name)
    return inner if isinstance(inner, dict) else value
