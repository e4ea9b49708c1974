"""The OpenAI chat-completions protocol: what a server's response means, as plain values."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx
from pydantic import BaseModel, ValidationError

from yarus.tasks.config.secrets import SHORTEST_KEY, redact
from yarus.tasks.models.rate_limits import Kind
from yarus.tasks.models.server_errors import (
    ErrorCause,
    SentRequest,
    classify_error,
    extract_error_text,
    extract_message,
    find_delay_s,
    find_reset_s,
)
from yarus.tasks.models.transport import LONGEST_TEXT, Response, Transport

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """A chat completion."""

    text: str
    served_model: str | None
    finish_reason: str | None
    tokens_in: int | None  # as the server claims: whole, from 0 on
    tokens_out: int | None
    logprobs: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class CallError:
    """Why there is none.

    `call`: it concerns this call alone; `refused`: every call would end so; `parameter`: something beside the messages
    is not taken; `unclear`: the server refuses, and does not say what; `blocked`: it was not asked.
    """

    kind: Kind | Literal["call", "refused", "parameter", "unclear", "blocked"]
    reason: str
    status: int | None = None
    pause_s: float | None = None  # how long the server wants us to wait
    free: bool = False  # the server has written nothing that it could charge for
    cause: ErrorCause | None = None
    text: str = ""  # the error text; see `extract_error_text`

    @property
    def is_redirect(self) -> bool:
        """Whether the server has named another address."""
        return self.status is not None and 300 <= self.status < 400


class _Part(BaseModel):
    type: str = "text"
    text: str | None = None


class Message(BaseModel):
    """What a model says in a completion, or a part of it in an event of a stream."""

    content: str | list[_Part] | None = None
    refusal: str | None = None

    @property
    def said(self) -> tuple[str, bool]:
        """Its text, empty where it has none, and whether it is the model's refusal."""
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content if part.type == "text")
        refused = not content and bool(self.refusal)
        return (self.refusal if refused else content) or "", refused


class _Choice(BaseModel):
    message: Message
    error: Any = None
    finish_reason: Any = None
    logprobs: Any = None


class _Completion(BaseModel):
    """A reply is one whatever is said beside it: what is not of the right type there is taken for missing."""

    choices: list[_Choice]
    model: Any = None
    usage: Any = None


async def exchanged(
    transport: Transport, content: bytes, headers: httpx.Headers, timeout_s: float, secrets: Sequence[str]
) -> Response | CallError:
    """One request and its response, or why there is none.

    Args:
        transport: to the server.
        content: body of the request.
        headers: of the request.
        timeout_s: for all of it.
        secrets: keys and tokens, which errors may repeat; they are redacted.
    """
    try:
        return await transport.exchange(content, headers, timeout_s)
    except httpx.TimeoutException as error:
        return CallError("timeout", str(error))
    except httpx.DecodingError as error:
        return CallError("fault", str(error))
    except httpx.RequestError as error:
        unsent = isinstance(error, httpx.ConnectError)
        words = redact(f"{type(error).__name__}: {error}", secrets)
        return CallError("unreachable", words, free=unsent)


def read(response: Response, sent: SentRequest, secrets: Sequence[str]) -> Answer | CallError:
    """Return the answer of a response, or what its error means.

    Args:
        response: with its body read.
        sent: what it answers to.
        secrets: keys and tokens, which some servers repeat; they are redacted.
    """
    if response.status == 200:
        return _answer(response, sent, secrets)
    if response.status == 400 and (text := _unfit(response.content)) is not None:
        return Answer(storable(text, secrets), None, "json_validate_failed", None, None, None)
    return failure(response, sent, secrets)


def _unfit(body: bytes) -> str | None:
    """Return a reply that the server itself has refused because it is not the JSON that was asked for."""
    if b"failed_generation" not in body:
        return None
    try:
        text = json.loads(body)["error"]["failed_generation"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return text if isinstance(text, str) else None


def failure(response: Response, sent: SentRequest, secrets: Sequence[str], code: int | None = None) -> CallError:
    """Return the error of a response without an answer; see `read`.

    Args:
        code: the error code within a response of status 200.
    """
    status = code or response.status
    words = extract_message(response.content, secrets)
    reason = f"HTTP {response.status}: {words}" if code is None else f"HTTP 200 with error {code}: {words}"
    error_text = extract_error_text(response.content, sent)
    delay_s = find_delay_s(response.headers, error_text)
    cause = classify_error(status, error_text, sent, delay_s)
    kind = _kind(cause, status)
    pause_s = find_reset_s(response.headers) if delay_s is None and kind == "busy" else delay_s
    # The server has read the request and refused it, or has computed and may charge for it.
    free = kind in ("busy", "call", "refused", "parameter", "unclear") and response.status != 200
    return CallError(kind, reason, status, pause_s, free, cause, error_text)


def _kind(cause: ErrorCause, status: int) -> Kind | Literal["call", "refused", "parameter", "unclear"]:
    if cause.kind == "passing":
        if status in (502, 503, 504):
            return "unreachable"
        return "fault" if status >= 500 or status in (408, 409, 424, 425) else "busy"
    if cause.kind in ("long", "filter"):
        return "call"
    if cause.kind in ("parameter", "room"):
        return "parameter"
    return "unclear" if cause.kind == "unclear" else "refused"


FILTERED = re.compile(r"content_?filter|safety|prohibited|blacklist|blocklist|recitation|spii|sensitive|refusal", re.I)
"""Reasons to finish of a reply that a filter has cut or replaced."""
CUT_OFF = ("max_tokens", "max_output_tokens")
"""Other names of the reason `length`."""


def _answer(response: Response, sent: SentRequest, secrets: Sequence[str]) -> Answer | CallError:
    """Strictly UTF-8, whatever charset the header claims: JSON is nothing else, and mojibake must not be judged."""
    body = response.content
    try:
        completion = _completion(body)
        choice = completion.choices[0]
    except (ValueError, IndexError, RecursionError):
        return _no_answer(response, sent, secrets)
    if choice.error is not None:
        return _no_answer(response, sent, secrets)
    text, refused = choice.message.said
    if len(text) > LONGEST_TEXT:
        return CallError(
            "call", f"HTTP 200 with a text of {len(text):,} characters; at most {LONGEST_TEXT:,} are taken", 200
        )
    finish_reason = name_of(choice.finish_reason, secrets)
    if FILTERED.search(finish_reason or ""):
        return CallError("call", f"HTTP 200, stopped by a content filter (finish_reason {finish_reason})", 200)
    if refused:
        finish_reason = "refusal"
    elif finish_reason and finish_reason.lower() in CUT_OFF:
        finish_reason = "length"
    tokens_in, tokens_out = tokens(completion.usage)
    return Answer(
        text=storable(text, secrets),
        served_model=name_of(completion.model, secrets),
        finish_reason=finish_reason,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        logprobs=_logprobs(choice.logprobs),
    )


def _no_answer(response: Response, sent: SentRequest, secrets: Sequence[str]) -> CallError:
    """Return the error of a response of status 200 without a completion; its body may have an error code."""
    error_text = extract_error_text(response.content, sent)
    codes = [
        int(code)
        for code in re.findall(r"(?:^|\n)(?:code|status|status_code|http_?code): (\d{3})(?:\n|$)", error_text, re.I)
    ]
    if code := next((code for code in codes if 400 <= code < 600), None):
        return failure(response, sent, secrets, code)
    what = extract_message(response.content, secrets) if response.content.strip() else "an empty body"
    reason, cause = f"HTTP 200 without a chat completion: {what}", classify_error(200, error_text, sent, None)
    if cause.kind in ("passing", "unclear"):
        return CallError("fault", reason, 200)
    return CallError(_kind(cause, 200), reason, 200, cause=cause, text=error_text)


def _completion(body: bytes) -> _Completion:
    try:
        return _Completion.model_validate_json(body)
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid" or b"\\u" not in body:
            raise
        # Half an emoji, which only the standard library reads: a question mark stands for it.
        text = json.dumps(json.loads(body.decode()), ensure_ascii=False)
        return _Completion.model_validate_json(text.encode("utf-8", "replace"))


def _logprobs(given: Any) -> tuple[float, ...] | None:
    """The tokens' log-probabilities, if they are all numbers."""
    try:
        values = [token["logprob"] for token in given["content"]]
    except (TypeError, KeyError):
        return None
    if not values or not all(type(value) is float or (type(value) is int and abs(value) < 1e6) for value in values):
        return None
    return tuple(map(float, values))


def tokens(usage: Any) -> tuple[int | None, int | None]:
    """The tokens read and written by what a server says of its usage; None for each that it does not say."""
    said = usage if isinstance(usage, dict) else {}
    read, written = count(said.get("prompt_tokens")), count(said.get("completion_tokens"))
    both = count(said.get("total_tokens"))
    if read is not None and written is not None and both is not None:
        written = max(written, both - read)  # some count the thinking in the sum alone
    return read, written


def count(value: Any) -> int | None:
    """A number of tokens, if it is one; at most what a database can hold."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(value, 2**63 - 1) if is_count else None


def name_of(given: Any, secrets: Sequence[str]) -> str | None:
    """A server's word for something, fit to be logged and stored: on one line, not long."""
    if not isinstance(given, str):
        return None
    kept = storable(given, secrets)[:LONGEST_NAME]  # in this order: a part of a key would not be found
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in kept)


def storable(text: str, secrets: Sequence[str]) -> str:
    """The text without NUL, which PostgreSQL cannot store, and without the key."""
    return redact(text.replace("\0", "\ufffd"), [secret for secret in secrets if len(secret) >= SHORTEST_KEY])
