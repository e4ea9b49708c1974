"""What is asked of a language model and what comes back, whoever serves it."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

from typing_extensions import TypedDict

from yarus.db.tables import Json
from yarus.tasks.config.settings import Role
from yarus.tasks.models.prompts import Form, Prompt, Text
from yarus.tasks.models.server_profile import Request, encode_json

RoleName = Literal["generator", "judge", "gate"]
Message = dict[str, str]
LISTING: tuple[Form, ...] = ("claims", "support", "nuggets", "nugget_support")
"""Forms of reply that list things."""
LISTS = 4
"""As many times the role's `max_tokens` may such a list have."""
VARIABLE = re.compile(r"(\$(?:\$|\w+|\{\w+\}))")
TAGS = ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>"), ("[THINK]", "[/THINK]")


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model."""

    prompt: Prompt
    texts: Mapping[str, Text]  # may have more than the prompt uses
    repeat: int = 0  # the same call asked again on purpose, for consistency: another place in the call store
    doubled: bool = False  # twice the role's max_tokens, after a reply that was cut off
    unread: str | None = None  # a reply to this call that could not be read and is to be given again
    logprobs: bool = False

    @property
    def case_key(self) -> str:
        """Return what identifies its case: the question, or the text that the prompt needs instead."""
        return str(self.texts.get("question") or self.texts.get(self.prompt.shape.needs))

    def with_texts(self, text: str) -> "Call":
        """Return the same call with this text in place of each text that its prompt may use."""
        names = [name for name in self.prompt.shape.variables if self.texts.get(name)]
        return replace(
            self, texts={**self.texts, **{n: _each(self.texts[n], lambda _: text) for n in names}}, unread=None
        )

    def messages(self) -> list[Message]:
        """The conversation as it is sent."""
        asked = {"role": "user", "content": self.prompt.fill(self.texts)}
        if self.unread is None:
            return [asked]
        said = {"role": "assistant", "content": self.unread}
        return [asked, said, {"role": "user", "content": self.prompt.repair}]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. A failure is a reply too, with its reason and no text."""

    status: Literal["ok", "error", "skipped_budget", "not_applicable"]
    reason: str = ""  # why it is not ok
    raw: str = ""  # the text as received, thinking included
    requested_model: str = ""
    served_model: str | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None  # None: no price, or the server did not count
    latency_ms: float | None = None  # of the attempt that succeeded
    logprobs: tuple[float, ...] | None = None  # natural, one a token
    from_store: bool = False  # bought earlier: costs nothing now

    @property
    def text(self) -> str:
        """What was said, without the thinking before it."""
        return without_thinking(self.raw)

    @property
    def truncated(self) -> bool:
        """Whether the model was cut off by its token budget."""
        return self.finish_reason == "length"


def without_thinking(text: str) -> str:
    """The reply after the thinking block that it may begin with; '' where the thinking never ends.

    Some servers swallow the tag that opens the block, because it belongs to their chat template.
    """
    text = text.strip()
    for opening, closing in TAGS:
        before, found, after = text.partition(closing)
        if text.startswith(opening) or (found and opening not in before and not before.startswith(("{", "```"))):
            return after.strip()
    return text


def ignored(reply: Reply) -> None:
    """Nobody waits for it."""


class Model(Protocol):
    """A language model in a role, or its offline stand-in."""

    def describe(self) -> str:
        """What every result says of it: the model's name, or that there is none."""

    async def ask(self, call: Call) -> Reply:
        """One reply; see `Reply` for failures."""

    async def complete(self, calls: Iterable[Call], each: Callable[[Reply], None] = ignored) -> list[Reply]:
        """One reply a call, in their order, as many at once as the role allows; `each` is told when it is there."""


class Bill(TypedDict):
    """What replies have cost."""

    calls: int
    bought: int
    """Replies that were not in the store."""
    cost_usd: float | None
    """Null without prices."""


def bill(replies: Iterable[Reply]) -> Bill:
    """What replies have cost; a stand-in's are not bought."""
    given = list(replies)
    bought = [one for one in given if not one.from_store and one.tokens_in != 0]
    costs = [one.cost_usd for one in bought if one.cost_usd is not None]
    return {"calls": len(given), "bought": len(bought), "cost_usd": sum(costs) if costs else None}


def masked(call: Call, mask: Callable[[str], str]) -> Call:
    """The call with pseudonyms in all that the model is sent: texts, wording, and its own reply that it gets back."""
    prompt = replace(call.prompt, template=_outside_variables(call.prompt.template, mask))
    texts = {name: _each(call.texts[name], mask) for name in prompt.shape.variables if name in call.texts}
    return replace(call, prompt=prompt, texts=texts, unread=None if call.unread is None else mask(call.unread))


def most_tokens(call: Call, role: Role) -> int:
    """How long the reply may be; one that lists things is longer than a score."""
    return role.max_tokens * (2 if call.doubled else 1) * (LISTS if call.prompt.shape.form in LISTING else 1)


def _each(text: Text, change: Callable[[str], str]) -> Text:
    return change(text) if isinstance(text, str) else {label: change(part) for label, part in text.items()}


@lru_cache(maxsize=256)  # a prompt is asked with thousands of texts
def _outside_variables(template: str, mask: Callable[[str], str]) -> str:
    return "".join(part if part.startswith("$") else mask(part) for part in VARIABLE.split(template))


def build_request(call: Call, role: Role) -> Request:
    """Build the request of a call by the settings of its role."""
    parameters: Json = {"temperature": role.temperature, "max_tokens": most_tokens(call, role)}
    if role.temperature is None:
        del parameters["temperature"]
    if call.logprobs:
        parameters["logprobs"] = True
    parameters |= role.extra_body
    texts = {"model": role.model, "messages": call.messages()}
    return Request(texts, parameters, call.prompt.shape.form, encode_json(texts | parameters))


def key(name: RoleName, call: Call, request: Request) -> bytes:
    """Address of a call in the store: role, requested model, prompt, parameters, form of the reply, repeat."""
    return hashlib.sha256(f"{name}|{request.form}|{call.repeat}|".encode() + request.body).digest()
