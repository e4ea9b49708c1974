"""What a system under test says in a reply, or in one event of a stream: its answer, and what it used.

A part is looked for where the settings say. Of a reply in OpenAI's form (`choices` with a message or a delta) what is
not found there is taken from where such servers put it.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from yarus.db.tables import Json
from yarus.tasks.config.settings import SystemService
from yarus.tasks.models.protocol import Message, tokens
from yarus.tasks.systems.external import compile_path, short

Parts = dict[str, Any]
"""Name of a part of an answer -> what was found; None where the system does not say."""
PARTS = ("answer", "urls", "contexts", "path", "latency_ms")
CITED = ("citations", "annotations", "search_results", "sources", "contexts", "context")
"""Where servers that speak OpenAI's protocol put what an answer was made from: in the reply, or in its message."""

BARE = frozenset(
    ("id", "object", "created", "model", "system_fingerprint", "service_tier", "choices", "usage", "token")
)
BARE_DELTA = frozenset(("role", "content", "refusal"))
"""What every event of a stream has beside its text, and its delta."""


class Reader:
    """Reads replies as the settings of a service say."""

    def __init__(self, service: SystemService, place: str) -> None:
        """Takes the settings, and what their names begin with.

        Raises:
            InputError: a path that is no JMESPath.
        """
        # `path` and `latency_ms` are read under these names where the settings have no path of their own for them.
        self._paths = {name: compile_path(getattr(service, name, name), place) for name in PARTS}
        self._delta = compile_path(service.delta, place) if service.delta else None
        self.delta_setting = f"{place}__DELTA"

    def parts(self, reply: Any) -> Parts:
        """All parts that a reply or an event has.

        Raises:
            ValueError: the message has another form than OpenAI's.
        """
        found: Parts = {name: path.search(reply) for name, path in self._paths.items()}
        if not isinstance(reply, dict):
            return found
        found["tokens_in"], found["tokens_out"] = tokens(reply.get("usage"))
        if (choice := openai_choice(reply)) is not None:
            message = choice.get("message")
            if isinstance(message, dict) and found["answer"] is None:
                found["answer"] = _said(message)
            holders = [one for one in (reply, message, choice.get("delta")) if isinstance(one, dict)]
            for name, value in _cited(holders).items():
                found[name] = value if found[name] is None else found[name]
        return found

    def piece(self, event: Mapping[str, Any]) -> str | None:
        """The part of the answer's text that an event brings.

        Raises:
            ValueError: it is no text.
        """
        if self._delta is not None:
            found = self._delta.search(event) or None  # false, of a condition that does not hold
        elif (choice := openai_choice(event)) is not None:
            delta = choice.get("delta")
            return _said(delta) if isinstance(delta, dict) else None
        else:
            found = event.get("token")
        if found is not None and not isinstance(found, str):
            raise ValueError(f"a part of the answer is {short(found)}, not a text: set {self.delta_setting}")
        return found


def is_only_text(event: Mapping[str, Any], choice: Mapping[str, Any] | None) -> bool:
    """Whether an event that brings a part of the text can bring nothing else, and need not be searched: nearly all.

    Args:
        event: as it came.
        choice: its `openai_choice`.
    """
    if not event.keys() <= BARE or event.get("usage"):
        return False
    delta = choice.get("delta") if choice else {}
    return isinstance(delta, dict) and delta.keys() <= BARE_DELTA


def openai_choice(said: Any) -> Json | None:
    """The first choice of a completion, or of an event of one; None where it is none."""
    choices = said.get("choices") if isinstance(said, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) and first.keys() & {"message", "delta"} else None


def _said(message: Mapping[str, Any]) -> str:
    """Its text; of what a model says to others, such as the tools that it calls, there is none."""
    try:
        return Message.model_validate(message).said[0]
    except ValidationError:
        raise ValueError(f"'content' is {short(message.get('content'))}, not a text") from None


def _cited(places: list[Json]) -> Parts:
    """The pages and texts that an answer in OpenAI's form was made from, by the first place that has them.

    An item is an address or a text, or an object with `url` and `content` or `text`. An empty list says that nothing
    was found.
    """
    inner = [place["context"] for place in places if isinstance(place.get("context"), dict)]
    found: Parts = {"urls": None, "contexts": None}
    for items in (place.get(name) for place in (*places, *inner) for name in CITED):
        listed = [items] if isinstance(items, str) else items
        if not isinstance(listed, list):
            continue
        for kind, of in (("urls", _url), ("contexts", _text)):
            texts = [text for item in listed if isinstance(text := of(item), str)]
            if texts or not listed:
                found[kind] = found[kind] or texts
    return found


def _url(item: Any) -> Any:
    if isinstance(item, dict):
        cited = item.get("url_citation")
        return item.get("url") or (cited.get("url") if isinstance(cited, dict) else None)
    return item if isinstance(item, str) and item.startswith(("http://", "https://")) else None


def _text(item: Any) -> Any:
    if isinstance(item, dict):
        return item.get("content") or item.get("text")
    return item if _url(item) is None else None
