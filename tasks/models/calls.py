"""Calls of a language model and their replies, whoever serves the model."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

from typing_extensions import TypedDict

from yarus.db.tables import JsonObject
from yarus.tasks.config.settings import ModelRole
from yarus.tasks.models.prompts import Prompt, ReplyForm, VariableValue
from yarus.tasks.models.server_profile import Request, encode_json

RoleName = Literal["generator", "judge", "gate"]
Message = dict[str, str]
LIST_FORMS: tuple[ReplyForm, ...] = ("claims", "support", "nuggets", "nugget_support")
"""Forms of reply that list things."""
LIST_FACTOR = 4
"""Factor of the role's `max_tokens` for such a list."""
VARIABLE_PATTERN = re.compile(r"(\$(?:\$|\w+|\{\w+\}))")
THINKING_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
)


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model."""

    prompt: Prompt
    texts: Mapping[str, VariableValue]  # may have more than the prompt uses
    repeat: int = 0  # the same call, sent again on purpose for consistency: another key in the call store
    doubled: bool = False  # twice the role's max_tokens, after a reply that was cut off
    unread: str | None = None  # an unreadable reply to this call, which the model should repeat in the right form
    logprobs: bool = False

    @property
    def case_key(self) -> str:
        """Return the key of its case: the question, or the text that the prompt needs instead."""
        return str(self.texts.get("question") or self.texts.get(self.prompt.shape.needs))

    def with_texts(self, text: str) -> "Call":
        """Return the same call with this text in place of each text that its prompt may use."""
        names = [name for name in self.prompt.shape.variables if self.texts.get(name)]
        return replace(
            self, texts={**self.texts, **{n: _transform(self.texts[n], lambda _: text) for n in names}}, unread=None
        )

    def messages(self) -> list[Message]:
        """Return the conversation as it is sent."""
        question = {"role": "user", "content": self.prompt.fill(self.texts)}
        if self.unread is None:
            return [question]
        unreadable_reply = {"role": "assistant", "content": self.unread}
        return [question, unreadable_reply, {"role": "user", "content": self.prompt.repair}]


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a call. A failure is a reply too, with its reason and no text."""

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
    logprobs: tuple[float, ...] | None = None  # natural, one per token
    from_store: bool = False  # bought earlier: costs nothing now

    @property
    def text(self) -> str:
        """Return the text without the thinking before it."""
        return strip_thinking(self.raw)

    @property
    def truncated(self) -> bool:
        """Return whether the token limit cut the reply off."""
        return self.finish_reason == "length"


def strip_thinking(text: str) -> str:
    """Return the reply without the thinking block that it may begin with; '' if the thinking never ends.

    Some servers swallow the tag that opens the block, because it belongs to their chat template.
    """
    text = text.strip()
    for opening, closing in THINKING_TAGS:
        before, has_closing, after = text.partition(closing)
        if text.startswith(opening) or (has_closing and opening not in before and not before.startswith(("{", "```"))):
            return after.strip()
    return text


def ignore_reply(reply: Reply) -> None:
    """Do nothing with a reply."""


class Model(Protocol):
    """A language model in a role, or its offline stand-in."""

    def describe(self) -> str:
        """Return the name that results show: the model's, or that of its stand-in."""

    async def ask(self, call: Call) -> Reply:
        """Return one reply; see `Reply` for failures."""

    async def complete(self, calls: Iterable[Call], each: Callable[[Reply], None] = ignore_reply) -> list[Reply]:
        """Return one reply per call, in their order, and pass each to `each` when it arrives.

        Runs as many calls at once as the role allows.
        """


class CallCosts(TypedDict):
    """Number and cost of calls."""

    calls: int
    n_new_calls: int
    """Replies that were not in the store."""
    cost_usd: float | None
    """Null without prices."""


def sum_costs(replies: Iterable[Reply]) -> CallCosts:
    """Return the cost of replies; stand-in replies are not bought."""
    all_replies = list(replies)
    bought = [reply for reply in all_replies if not reply.from_store and reply.tokens_in != 0]
    costs = [reply.cost_usd for reply in bought if reply.cost_usd is not None]
    return {"calls": len(all_replies), "n_new_calls": len(bought), "cost_usd": sum(costs) if costs else None}


def mask_call(call: Call, mask: Callable[[str], str]) -> Call:
    """Return the call with pseudonyms in everything that the model reads: texts, prompt, and its own reply."""
    prompt = replace(call.prompt, template=_mask_literals(call.prompt.template, mask))
    texts = {name: _transform(call.texts[name], mask) for name in prompt.shape.variables if name in call.texts}
    return replace(call, prompt=prompt, texts=texts, unread=None if call.unread is None else mask(call.unread))


def compute_token_limit(call: Call, role: ModelRole) -> int:
    """Return the longest reply in tokens; a list may be longer than a score."""
    return role.max_tokens * (2 if call.doubled else 1) * (LIST_FACTOR if call.prompt.shape.form in LIST_FORMS else 1)


def _transform(text: VariableValue, transform: Callable[[str], str]) -> VariableValue:
    return transform(text) if isinstance(text, str) else {label: transform(part) for label, part in text.items()}


@lru_cache(maxsize=256)  # one prompt is sent with thousands of texts
def _mask_literals(template: str, mask: Callable[[str], str]) -> str:
    return "".join(part if part.startswith("$") else mask(part) for part in VARIABLE_PATTERN.split(template))


def build_request(call: Call, role: ModelRole) -> Request:
    """Build the request of a call by the settings of its role."""
    parameters: JsonObject = {"temperature": role.temperature, "max_tokens": compute_token_limit(call, role)}
    if role.temperature is None:
        del parameters["temperature"]
    if call.logprobs:
        parameters["logprobs"] = True
    parameters |= role.extra_body
    texts = {"model": role.model, "messages": call.messages()}
    return Request(texts, parameters, call.prompt.shape.form, encode_json(texts | parameters))


def build_call_key(name: RoleName, call: Call, request: Request) -> bytes:
    """Return the key of a call in the store: role, requested model, prompt, parameters, form of the reply, repeat."""
    return hashlib.sha256(f"{name}|{request.form}|{call.repeat}|".encode() + request.body).digest()
