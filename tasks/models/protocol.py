"""The OpenAI chat-completions protocol: responses of a server as plain values."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx
from pydantic import BaseModel, ValidationError

from yarus.tasks.config.secrets import MIN_KEY_LENGTH, redact
from yarus.tasks.models.rate_limits import FaultKind
from yarus.tasks.models.server_errors import (
    ErrorCause,
    SentRequest,
    classify_error,
    extract_error_text,
    extract_message,
    find_delay_s,
    find_reset_s,
)
from yarus.tasks.models.transport import MAX_TEXT_CHARACTERS, Response, Transport

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """A chat completion."""

    text: str
    served_model: str | None
    finish_reason: str | None
    tokens_in: int | None  # as the server counts: whole numbers from 0
    tokens_out: int | None
    logprobs: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class CallError:
    """Failure of a call.

    `call`: it concerns this call alone; `refused`: every call would end like this; `parameter`: the server does not
    take a field beside the messages; `unclear`: the server refuses without a reason; `blocked`: the call was not sent.
    """

    kind: FaultKind | Literal["call", "refused", "parameter", "unclear", "blocked"]
    reason: str
    status: int | None = None
    pause_s: float | None = None  # how long the server wants us to wait
    free: bool = False  # the server has not written anything that it could charge for
    cause: ErrorCause | None = None
    text: str = ""  # the error text; see `extract_error_text`

    @property
    def is_redirect(self) -> bool:
        """Return whether the server has named another address."""
        return self.status is not None and 300 <= self.status < 400


class _Part(BaseModel):
    type: str = "text"
    text: str | None = None


class Message(BaseModel):
    """Content of a completion, or a part of it in an event of a stream."""

    content: str | list[_Part] | None = None
    refusal: str | None = None

    @property
    def text_and_refusal(self) -> tuple[str, bool]:
        """Return the text, which may be empty, and whether it is the model's refusal."""
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content if part.type == "text")
        is_refusal = not content and bool(self.refusal)
        return (self.refusal if is_refusal else content) or "", is_refusal


class _Choice(BaseModel):
    message: Message
    error: Any = None
    finish_reason: Any = None
    logprobs: Any = None


class _Completion(BaseModel):
    """Body of a reply; fields of another type beside the choices count as missing."""

    choices: list[_Choice]
    model: Any = None
    usage: Any = None


async def send_request(
    transport: Transport, content: bytes, headers: httpx.Headers, timeout_s: float, secrets: Sequence[str]
) -> Response | CallError:
    """Send one request; return its response or its error.

    Args:
        transport: to the server.
        content: body of the request.
        headers: of the request.
        timeout_s: for all of it.
        secrets: keys and tokens that errors may repeat; they are redacted.
    """
    try:
        return await transport.exchange(content, headers, timeout_s)
    except httpx.TimeoutException as error:
        return CallError("timeout", str(error))
    except httpx.DecodingError as error:
        return CallError("fault", str(error))
    except httpx.RequestError as error:
        is_unsent = isinstance(error, httpx.ConnectError)
        words = redact(f"{type(error).__name__}: {error}", secrets)
        return CallError("unreachable", words, free=is_unsent)


def parse_response(response: Response, sent: SentRequest, secrets: Sequence[str]) -> Answer | CallError:
    """Return the answer of a response, or the error that it means.

    Args:
        response: with its body read.
        sent: the request.
        secrets: keys and tokens that some servers repeat; they are redacted.
    """
    if response.status == 200:
        return _parse_answer(response, sent, secrets)
    if response.status == 400 and (text := _find_failed_generation(response.content)) is not None:
        return Answer(make_storable(text, secrets), None, "json_validate_failed", None, None, None)
    return parse_failure(response, sent, secrets)


def _find_failed_generation(body: bytes) -> str | None:
    """Return a reply that the server itself has refused because it is not the requested JSON."""
    if b"failed_generation" not in body:
        return None
    try:
        text = json.loads(body)["error"]["failed_generation"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return text if isinstance(text, str) else None


def parse_failure(response: Response, sent: SentRequest, secrets: Sequence[str], code: int | None = None) -> CallError:
    """Return the error of a response without an answer; see `parse_response`.

    Args:
        code: the error code within a response of status 200.
    """
    status = code or response.status
    words = extract_message(response.content, secrets)
    reason = f"HTTP {response.status}: {words}" if code is None else f"HTTP 200 with error {code}: {words}"
    error_text = extract_error_text(response.content, sent)
    delay_s = find_delay_s(response.headers, error_text)
    cause = classify_error(status, error_text, sent, delay_s)
    kind = _classify_cause(cause, status)
    pause_s = find_reset_s(response.headers) if delay_s is None and kind == "busy" else delay_s
    # The server has read the request and refused it, or has computed and may charge for it.
    free = kind in ("busy", "call", "refused", "parameter", "unclear") and response.status != 200
    return CallError(kind, reason, status, pause_s, free, cause, error_text)


def _classify_cause(cause: ErrorCause, status: int) -> FaultKind | Literal["call", "refused", "parameter", "unclear"]:
    if cause.kind == "passing":
        if status in (502, 503, 504):
            return "unreachable"
        return "fault" if status >= 500 or status in (408, 409, 424, 425) else "busy"
    if cause.kind in ("long", "filter"):
        return "call"
    if cause.kind in ("parameter", "room"):
        return "parameter"
    return "unclear" if cause.kind == "unclear" else "refused"


FILTER_REASONS = re.compile(
    r"content_?filter|safety|prohibited|blacklist|blocklist|recitation|spii|sensitive|refusal", re.I
)
"""Finish reasons of a reply that a filter has cut or replaced."""
LENGTH_REASONS = ("max_tokens", "max_output_tokens")
"""Other names of the reason `length`."""


def _parse_answer(response: Response, sent: SentRequest, secrets: Sequence[str]) -> Answer | CallError:
    """Return the answer of a completion, decoded as UTF-8 whatever charset the header claims.

    JSON is always UTF-8, and a judge must not see mojibake.
    """
    body = response.content
    try:
        completion = _parse_completion(body)
        choice = completion.choices[0]
    except (ValueError, IndexError, RecursionError):
        return _parse_missing_answer(response, sent, secrets)
    if choice.error is not None:
        return _parse_missing_answer(response, sent, secrets)
    text, is_refusal = choice.message.text_and_refusal
    if len(text) > MAX_TEXT_CHARACTERS:
        return CallError(
            "call", f"HTTP 200 with a text of {len(text):,} characters; at most {MAX_TEXT_CHARACTERS:,} are taken", 200
        )
    finish_reason = clean_name(choice.finish_reason, secrets)
    if FILTER_REASONS.search(finish_reason or ""):
        return CallError("call", f"HTTP 200, stopped by a content filter (finish_reason {finish_reason})", 200)
    if is_refusal:
        finish_reason = "refusal"
    elif finish_reason and finish_reason.lower() in LENGTH_REASONS:
        finish_reason = "length"
    tokens_in, tokens_out = parse_usage(completion.usage)
    return Answer(
        text=make_storable(text, secrets),
        served_model=clean_name(completion.model, secrets),
        finish_reason=finish_reason,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        logprobs=_parse_logprobs(choice.logprobs),
    )


def _parse_missing_answer(response: Response, sent: SentRequest, secrets: Sequence[str]) -> CallError:
    """Return the error of a response of status 200 without a completion; its body may have an error code."""
    error_text = extract_error_text(response.content, sent)
    codes = [
        int(code)
        for code in re.findall(r"(?:^|\n)(?:code|status|status_code|http_?code): (\d{3})(?:\n|$)", error_text, re.I)
    ]
    if code := next((code for code in codes if 400 <= code < 600), None):
        return parse_failure(response, sent, secrets, code)
    what = extract_message(response.content, secrets) if response.content.strip() else "an empty body"
    reason, cause = f"HTTP 200 without a chat completion: {what}", classify_error(200, error_text, sent, None)
    if cause.kind in ("passing", "unclear"):
        return CallError("fault", reason, 200)
    return CallError(_classify_cause(cause, 200), reason, 200, cause=cause, text=error_text)


def _parse_completion(body: bytes) -> _Completion:
    try:
        return _Completion.model_validate_json(body)
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid" or b"\\u" not in body:
            raise
        # Half an emoji, which only the standard library reads: a question mark replaces it.
        text = json.dumps(json.loads(body.decode()), ensure_ascii=False)
        return _Completion.model_validate_json(text.encode("utf-8", "replace"))


def _parse_logprobs(field: Any) -> tuple[float, ...] | None:
    """Return the tokens' log-probabilities, if all are numbers."""
    try:
        values = [token["logprob"] for token in field["content"]]
    except (TypeError, KeyError):
        return None
    if not values or not all(type(value) is float or (type(value) is int and abs(value) < 1e6) for value in values):
        return None
    return tuple(map(float, values))


def parse_usage(usage: Any) -> tuple[int | None, int | None]:
    """Return the tokens read and written, by a server's usage object; None for each missing count."""
    fields = usage if isinstance(usage, dict) else {}
    tokens_in, tokens_out = (parse_count(fields.get("prompt_tokens")), parse_count(fields.get("completion_tokens")))
    total = parse_count(fields.get("total_tokens"))
    if tokens_in is not None and tokens_out is not None and total is not None:
        tokens_out = max(tokens_out, total - tokens_in)  # some servers count the thinking only in the total
    return tokens_in, tokens_out


def parse_count(value: Any) -> int | None:
    """Return a number of tokens, limited to what a database can hold; None if it is not a count."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(value, 2**63 - 1) if is_count else None


def clean_name(value: Any, secrets: Sequence[str]) -> str | None:
    """Return a server's word as one short, printable line; None if it is not text."""
    if not isinstance(value, str):
        return None
    name = make_storable(value, secrets)[:LONGEST_NAME]  # redact before cutting: a part of a key would not be found
    return "".join(character if character.isprintable() else "\ufffd" for character in name)


def make_storable(text: str, secrets: Sequence[str]) -> str:
    """Return the text without the key and without NUL, which PostgreSQL cannot store."""
    return redact(text.replace("\0", "\ufffd"), [secret for secret in secrets if len(secret) >= MIN_KEY_LENGTH])
