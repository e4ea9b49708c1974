"""The OpenAI chat-completions protocol: what a server's response means, as plain values."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import httpx
from pydantic import BaseModel, ValidationError

from tasks.config.secrets import SHORTEST_KEY, redact
from tasks.models.rate_limits import Kind
from tasks.models.transport import LONGEST_TEXT, Response, Transport
from tasks.prompts import Form


def _object(**properties: Any) -> dict[str, Any]:
    """The JSON schema of an object that has exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(**properties)}


STRING, INTEGER, BOOLEAN = ({"type": name} for name in ("string", "integer", "boolean"))
SCORE = _object(reason=STRING, score={"type": "number"})
SCHEMAS: dict[Form, dict[str, Any]] = {
    "score": SCORE,
    "grade": SCORE,
    "claims": _object(claims=_list(sentence=INTEGER, claim=STRING)),
    "support": _object(verdicts=_list(id=STRING, supported_by={"type": "array", "items": STRING})),
    "nuggets": _object(nuggets=_list(nugget=STRING, vital=BOOLEAN)),
    "nugget_support": _object(
        verdicts=_list(id=STRING, support={"type": "string", "enum": ["full", "partial", "none"]})
    ),
}
"""Of the forms of reply that are JSON."""


def _endings(schema: dict[str, Any]) -> tuple[bytes, ...]:
    """How a request ends that asks for it, best first; a server that does not know one gets the next."""
    strict = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
    formats = (strict, {"type": "json_object"})
    return (*(f', "response_format": {json.dumps(one)}}}'.encode() for one in formats), b"}")


ENDINGS = {form: _endings(schema) for form, schema in SCHEMAS.items()}
# A request that only this case makes too long or unwelcome says nothing about the settings.
OF_THIS_CALL = ("context length", "context_length", "maximum context", "too long", "too many tokens", "content_filter",
                "content management policy", "input length", "prompt is too large")  # fmt: skip


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
    """Why there is none. `call`: it concerns this call alone; `refused`: every call would end so."""

    kind: Kind | Literal["call", "refused"]
    reason: str
    status: int | None = None
    pause_s: float | None = None  # by Retry-After
    free: bool = False  # the server has written nothing that it could charge for


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
    finish_reason: Any = None
    logprobs: Any = None


class _Completion(BaseModel):
    """A reply is one whatever is said beside it: what is not of the right type there is taken for missing."""

    choices: list[_Choice]
    model: Any = None
    usage: Any = None


async def exchanged(
    transport: Transport, content: bytes, headers: httpx.Headers, timeout_s: float, secret: str | None
) -> Response | CallError:
    """One request and its response, or why there is none.

    Args:
        transport: to the server.
        content: body of the request.
        headers: of the request.
        timeout_s: for all of it.
        secret: the key, which errors may repeat; it is redacted.
    """
    try:
        return await transport.exchange(content, headers, timeout_s)
    except httpx.TimeoutException as error:
        return CallError("timeout", str(error))
    except httpx.DecodingError as error:
        return CallError("fault", str(error))
    except httpx.RequestError as error:
        unsent = isinstance(error, httpx.ConnectError)
        words = redact(f"{type(error).__name__}: {error}", filter(None, [secret]))
        return CallError("unreachable", words, free=unsent)


def last_format(form: Form) -> int:
    """Number of the last of the `ENDINGS` of a form of reply; a word or a text has but one."""
    return len(ENDINGS[form]) - 1 if form in ENDINGS else 0


def in_format(request: bytes, form: Form, number: int) -> bytes:
    """The request with one of the `ENDINGS`."""
    return request[:-1] + ENDINGS[form][number] if form in ENDINGS else request


def read(response: Response, secret: str | None) -> Answer | CallError:
    """What a response means.

    Args:
        response: with its body read.
        secret: the key, which some servers repeat; it is redacted.
    """
    return _answer(response.content, secret) if response.status == 200 else failure(response, secret)


def failure(response: Response, secret: str | None) -> CallError:
    """What a response means whose status is not 200; see `read`."""
    status = response.status
    reason = f"HTTP {status}: {words_of(response.content, secret)}"
    pause_s = retry_after_s(response.headers.get("retry-after"), response.headers.get("date"))
    if status == 429:
        return CallError("busy", reason, status, pause_s, free=True)
    if status in (502, 503, 504):
        return CallError("unreachable", reason, status, pause_s)
    if status in (408, 409) or status >= 500:
        return CallError("fault", reason, status, pause_s)
    if status == 413 or (status in (400, 422) and any(words in reason.lower() for words in OF_THIS_CALL)):
        return CallError("call", reason, status, free=True)
    return CallError("refused", reason, status, free=True)


def _answer(body: bytes, secret: str | None) -> Answer | CallError:
    """Strictly UTF-8, whatever charset the header claims: JSON is nothing else, and mojibake must not be judged."""
    try:
        completion = _completion(body)
        choice = completion.choices[0]
    except (ValueError, IndexError, RecursionError):
        what = words_of(body, secret) if body.strip() else "an empty body"
        return CallError("fault", f"HTTP 200 without a chat completion: {what}", 200)
    text, refused = choice.message.said
    if len(text) > LONGEST_TEXT:
        return CallError(
            "call", f"HTTP 200 with a text of {len(text):,} characters; at most {LONGEST_TEXT:,} are taken", 200
        )
    tokens_in, tokens_out = tokens(completion.usage)
    return Answer(
        text=storable(text, secret),
        served_model=name_of(completion.model, secret),
        finish_reason="refusal" if refused else name_of(choice.finish_reason, secret),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        logprobs=_logprobs(choice.logprobs),
    )


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
    return count(said.get("prompt_tokens")), count(said.get("completion_tokens"))


def count(value: Any) -> int | None:
    """A number of tokens, if it is one; at most what a database can hold."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(value, 2**63 - 1) if is_count else None


def name_of(given: Any, secret: str | None) -> str | None:
    """A server's word for something, fit to be logged and stored: on one line, not long."""
    if not isinstance(given, str):
        return None
    kept = storable(given, secret)[:LONGEST_NAME]  # in this order: a part of a key would not be found
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in kept)


def storable(text: str, secret: str | None) -> str:
    """The text without NUL, which PostgreSQL cannot store, and without the key."""
    return redact(text.replace("\0", "\ufffd"), [secret] if secret and len(secret) >= SHORTEST_KEY else ())


def words_of(body: bytes, secret: str | None) -> str:
    """What the server says for itself, without the key, in one line of at most 300 characters."""
    text = body[:100_000].decode("utf-8", "replace")
    try:
        error = json.loads(body).get("error")
        text = str(error.get("message") or error) if isinstance(error, dict) else str(error or text)
    except (ValueError, AttributeError, RecursionError):
        pass
    text = redact(text, filter(None, [secret]))  # before it is cut: a part of it would not be found
    return " ".join(text.replace("\0", "\ufffd").split())[:300] or "no message"


def retry_after_s(header: str | None, date: str | None = None) -> float | None:
    """Seconds to wait by a Retry-After header: a number or a date; None where there is none or it is unreadable.

    Args:
        header: its value.
        date: when the server sent it, by its own clock, which ours need not agree with.
    """
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        at, now = _at(header), _at(date or "") or datetime.now(UTC)
        return None if at is None else max(0.0, (at - now).total_seconds())


def _at(header: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(header)
    except (ValueError, OverflowError):  # a year of eleven digits
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
