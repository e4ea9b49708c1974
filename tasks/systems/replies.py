"""Replies of a system under test, or events of a stream: the answer, and what it used.

A part is searched with the paths of the settings. In a reply in OpenAI's form (`choices` with a message or a delta),
missing parts are taken from where such servers put them.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from yarus.db.tables import JsonObject
from yarus.tasks.config.settings import SystemService
from yarus.tasks.models.protocol import Message, parse_usage
from yarus.tasks.systems.external import compile_path, shorten_value

AnswerParts = dict[str, Any]
"""Name of a part of an answer -> its value; None if the system does not return it."""
PART_NAMES = ("answer", "urls", "contexts", "path", "latency_ms")
CITATION_FIELDS = ("citations", "annotations", "search_results", "sources", "contexts", "context")
"""Fields of a reply or its message where servers of OpenAI's protocol list the sources of an answer."""

PLAIN_EVENT_FIELDS = frozenset(
    ("id", "object", "created", "model", "system_fingerprint", "service_tier", "choices", "usage", "token")
)
PLAIN_DELTA_FIELDS = frozenset(("role", "content", "refusal"))
"""Fields that every event of a stream may have beside its text, and fields of its delta."""


class ReplyReader:
    """Reads replies by the settings of a service."""

    def __init__(self, service: SystemService, prefix: str) -> None:
        """Take the settings and the prefix of their names.

        Raises:
            InputError: a path is not a JMESPath.
        """
        # `path` and `latency_ms` are read under these names if the settings have no path for them.
        self._paths = {name: compile_path(getattr(service, name, name), prefix) for name in PART_NAMES}
        self._delta = compile_path(service.delta, prefix) if service.delta else None
        self.delta_setting = f"{prefix}__DELTA"

    def parts(self, reply: Any) -> AnswerParts:
        """Return all parts of a reply or an event.

        Raises:
            ValueError: the message has another form than OpenAI's.
        """
        parts: AnswerParts = {name: path.search(reply) for name, path in self._paths.items()}
        if not isinstance(reply, dict):
            return parts
        parts["tokens_in"], parts["tokens_out"] = parse_usage(reply.get("usage"))
        if (choice := find_openai_choice(reply)) is not None:
            message = choice.get("message")
            if isinstance(message, dict) and parts["answer"] is None:
                parts["answer"] = _read_text(message)
            holders = [value for value in (reply, message, choice.get("delta")) if isinstance(value, dict)]
            for name, value in _find_citations(holders).items():
                parts[name] = value if parts[name] is None else parts[name]
        return parts

    def find_delta(self, event: Mapping[str, Any]) -> str | None:
        """Return the part of the answer's text in an event.

        Raises:
            ValueError: it is not a text.
        """
        if self._delta is not None:
            text = self._delta.search(event) or None  # false: the result of a condition that does not hold
        elif (choice := find_openai_choice(event)) is not None:
            delta = choice.get("delta")
            return _read_text(delta) if isinstance(delta, dict) else None
        else:
            text = event.get("token")
        if text is not None and not isinstance(text, str):
            raise ValueError(f"a part of the answer is {shorten_value(text)}, not a text: set {self.delta_setting}")
        return text


def is_only_text(event: Mapping[str, Any], choice: Mapping[str, Any] | None) -> bool:
    """Return whether an event with a part of the text cannot have other parts; true of nearly all events.

    Args:
        event: the event as received.
        choice: its choice; see `find_openai_choice`.
    """
    if not event.keys() <= PLAIN_EVENT_FIELDS or event.get("usage"):
        return False
    delta = choice.get("delta") if choice else {}
    return isinstance(delta, dict) and delta.keys() <= PLAIN_DELTA_FIELDS


def find_openai_choice(event: Any) -> JsonObject | None:
    """Return the first choice of a completion or of one of its events; None in other forms."""
    choices = event.get("choices") if isinstance(event, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) and choice.keys() & {"message", "delta"} else None


def _read_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message; '' if it has none, as in calls of tools."""
    try:
        return Message.model_validate(message).text_and_refusal[0]
    except ValidationError:
        raise ValueError(f"'content' is {shorten_value(message.get('content'))}, not a text") from None


def _find_citations(holders: list[JsonObject]) -> AnswerParts:
    """Return the pages and texts that an answer in OpenAI's form cites, from the first holder that has them.

    An item is an address or a text, or an object with `url` and `content` or `text`. An empty list means that the
    system found nothing.
    """
    nested = [holder["context"] for holder in holders if isinstance(holder.get("context"), dict)]
    citations: AnswerParts = {"urls": None, "contexts": None}
    for items in (holder.get(name) for holder in (*holders, *nested) for name in CITATION_FIELDS):
        item_list = [items] if isinstance(items, str) else items
        if not isinstance(item_list, list):
            continue
        for kind, extract in (("urls", _url_of_item), ("contexts", _text_of_item)):
            texts = [text for item in item_list if isinstance(text := extract(item), str)]
            if texts or not item_list:
                citations[kind] = citations[kind] or texts
    return citations


def _url_of_item(item: Any) -> Any:
    if isinstance(item, dict):
        citation = item.get("url_citation")
        return item.get("url") or (citation.get("url") if isinstance(citation, dict) else None)
    return item if isinstance(item, str) and item.startswith(("http://", "https://")) else None


def _text_of_item(item: Any) -> Any:
    if isinstance(item, dict):
        return item.get("content") or item.get("text")
    return item if _url_of_item(item) is None else None
