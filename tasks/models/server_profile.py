"""The parameters that a server takes for a model, learnt from its refusals.

At first every parameter is sent. Yarus omits, renames or lowers those that the server refuses, once for all calls. A
parameter that is left out changes the measurement; it is recorded with the model in every result.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from yarus.db.messages import Words, join_messages
from yarus.db.tables import JsonObject
from yarus.tasks.models.prompts import ReplyForm
from yarus.tasks.models.server_errors import FORMAT, LIMITS, ErrorCause, SentRequest

JsonFormat = Literal["json_schema", "flat_json_schema", "json_object", "none"]
FORMATS: tuple[JsonFormat, ...] = ("json_schema", "flat_json_schema", "json_object", "none")
"""Ways to request JSON, best first; the second is GigaChat's, with the schema next to the type."""
ROOMS = (4_096, 16_384, 65_536)
"""Tokens for thinking, added to those of the reply."""
OPTIONAL = ("logprobs", "temperature")
"""Parameters that a call can do without."""


def _object_schema(**properties: Any) -> JsonObject:
    """Return the JSON schema of an object that has exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list_schema(**properties: Any) -> JsonObject:
    return {"type": "array", "items": _object_schema(**properties)}


STRING, INTEGER, BOOLEAN = ({"type": name} for name in ("string", "integer", "boolean"))
SCORE = _object_schema(reason=STRING, score={"type": "number"})
SCHEMAS: dict[ReplyForm, JsonObject] = {
    "score": SCORE,
    "grade": SCORE,
    "claims": _object_schema(claims=_list_schema(sentence=INTEGER, claim=STRING)),
    "support": _object_schema(verdicts=_list_schema(id=STRING, supported_by={"type": "array", "items": STRING})),
    "nuggets": _object_schema(nuggets=_list_schema(nugget=STRING, vital=BOOLEAN)),
    "nugget_support": _object_schema(
        verdicts=_list_schema(id=STRING, support={"type": "string", "enum": ["full", "partial", "none"]})
    ),
}
"""Schemas of the forms of reply that are JSON."""


def _encode_formats(schema: JsonObject) -> dict[JsonFormat, bytes]:
    strict = {"name": "verdict", "strict": True, "schema": schema}
    formats: dict[JsonFormat, JsonObject] = {
        "json_schema": {"type": "json_schema", "json_schema": strict},
        "flat_json_schema": {"type": "json_schema", "strict": True, "schema": schema},
        "json_object": {"type": "json_object"},
    }
    return {name: f', "{FORMAT}": {json.dumps(value)}}}'.encode() for name, value in formats.items()}


FORMAT_FIELDS = {form: _encode_formats(schema) for form, schema in SCHEMAS.items()}


class Request(NamedTuple):
    """A call as it is sent to a server that takes every parameter."""

    texts: JsonObject
    """Model and messages."""
    parameters: JsonObject
    """The other fields; the limit of the reply by its older name."""
    form: ReplyForm
    body: bytes
    """All of these as JSON, hashed into the key of the call store."""


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """The parameters that a server takes for a model."""

    limit: str = LIMITS[0]
    """Name of the limit of the reply."""
    omitted: tuple[str, ...] = ()
    """Parameters that it refuses, sorted."""
    json_format: JsonFormat = "json_schema"
    thinking_tokens: int = 0
    """Added to the limit of the reply, for a model that thinks before it answers."""
    most_tokens: int | None = None
    """The highest limit that it takes."""

    @classmethod
    def from_stored(cls, stored: JsonObject | None) -> "ServerProfile | None":
        """Return a stored profile; None without one, or if a release with other fields stored it."""
        try:
            return cls(**stored | {"omitted": tuple(stored["omitted"])}) if stored else None
        except (TypeError, KeyError):
            return None

    def build_parameters(self, request: Request) -> JsonObject:
        """Return the parameters of a request beside model, messages and the response format of its form."""
        if (self.limit, self.omitted, self.thinking_tokens, self.most_tokens) == (LIMITS[0], (), 0, None):
            return request.parameters
        limit = self.get_limit(request)
        parameters = {self.limit if name == LIMITS[0] else name: value for name, value in request.parameters.items()}
        return {name: value for name, value in parameters.items() if name not in self.omitted} | {self.limit: limit}

    def get_limit(self, request: Request) -> int:
        """Return the limit of the reply, in tokens, with room for thinking."""
        limit: int = request.parameters[LIMITS[0]] + self.thinking_tokens
        return min(limit, self.most_tokens or limit)

    def encode(self, request: Request) -> tuple[bytes, SentRequest]:
        """Return the body of a request, and its description for the code that reads a refusal."""
        parameters = self.build_parameters(request)
        body = request.body if parameters is request.parameters else encode_json(request.texts | parameters)
        if FORMAT not in parameters and request.form in SCHEMAS and self.json_format != "none":
            body = body[:-1] + FORMAT_FIELDS[request.form][self.json_format]
            parameters = {**parameters, FORMAT: self.json_format}
        return body, SentRequest(parameters, request.texts["messages"])

    @property
    def differences(self) -> JsonObject:
        """Return the parameters that decide replies and are not sent as intended; None for those left out.

        The limit of the reply is not among them: a cut-off reply is requested again and is never a score.
        """
        changed: JsonObject = {"temperature": None} if "temperature" in self.omitted else {}
        if self.json_format != "json_schema":
            changed[FORMAT] = None if self.json_format == "none" else self.json_format
        return changed

    @property
    def summary(self) -> Words:
        """Describe all changes for people."""
        parts = [Words("without {name}", name=name) for name in self.omitted]
        if self.limit != LIMITS[0]:
            parts.append(Words("{name} instead of {other}", name=self.limit, other=LIMITS[0]))
        if self.json_format == "none":
            parts.append(Words("without {name}", name=FORMAT))
        elif self.json_format != "json_schema":
            parts.append(Words("{name} instead of {other}", name=self.json_format, other="json_schema"))
        if self.thinking_tokens:
            parts.append(Words("{n} tokens for thinking", n=self.thinking_tokens))
        if self.most_tokens is not None:
            parts.append(Words("at most {n} tokens", n=self.most_tokens))
        return join_messages(parts, ", ") if parts else Words("every parameter as intended")

    def learn_from_error(self, cause: ErrorCause, text: str, form: ReplyForm) -> "ServerProfile | None":
        """Return the profile that a refusal of a parameter asks for; None if nothing is left to change."""
        name = cause.parameter
        if name in LIMITS:
            if cause.max_tokens is not None:
                return replace(self, most_tokens=cause.max_tokens)
            return replace(self, limit=LIMITS[1]) if self.limit == LIMITS[0] else None
        if name == FORMAT:
            return self._lower_format(text) if form in SCHEMAS and self.json_format != "none" else None
        if name in OPTIONAL and name not in self.omitted:
            return replace(self, omitted=tuple(sorted({*self.omitted, name})))
        return None

    def _lower_format(self, text: str) -> "ServerProfile":
        flat = self.json_format == "json_schema" and "response_format.schema" in text
        after = FORMATS[FORMATS.index(self.json_format) + 1 :]
        return replace(self, json_format=next(name for name in after if name != "flat_json_schema" or flat))

    def iterate_guesses(self, request: Request) -> Iterator["ServerProfile"]:
        """Yield profiles to try if a refusal names nothing: one change at a time, then all of them together."""
        lowered = [name for name in FORMATS[FORMATS.index(self.json_format) + 1 :] if name != "flat_json_schema"]
        formats: list[JsonObject] = [
            {"json_format": name} for name in lowered if request.form in SCHEMAS and FORMAT not in request.parameters
        ]
        unneeded = [name for name in OPTIONAL if name in request.parameters and name not in self.omitted]
        other_changes: list[JsonObject] = [{"omitted": tuple(sorted({*self.omitted, name}))} for name in unneeded]
        if self.limit == LIMITS[0]:
            other_changes.append({"limit": LIMITS[1]})
        yield from (replace(self, **change) for change in (*formats, *other_changes))
        together: JsonObject = {"omitted": tuple(sorted({*self.omitted, *unneeded})), "limit": LIMITS[1]}
        if len(other_changes) > 1:
            yield replace(self, **together)
        if formats and other_changes:
            yield replace(self, **together, **formats[-1])

    def extend_thinking(self, request: Request) -> "ServerProfile | None":
        """Return a profile with more room for thinking; None if there is no more."""
        roomier = (replace(self, thinking_tokens=room) for room in ROOMS if room > self.thinking_tokens)
        current = self.build_parameters(request)
        return next((profile for profile in roomier if profile.build_parameters(request) != current), None)


class ProfileLearner:
    """Shared knowledge of all calls of one model at one server.

    A changed profile becomes the current one after an answer to it. If the current one has worked before, the prompt
    may be the cause: a change of the measurement stays with its call, and other changes need a second call.
    """

    def __init__(self, profile: ServerProfile | None = None) -> None:
        """Start with the profile of earlier evaluations, if there is one."""
        self.current = profile or ServerProfile()
        self.has_met = profile is not None
        """Whether a call has been to the server, now or in an earlier evaluation."""
        self._worked: set[tuple[ServerProfile, bool, bool]] = set()
        self._needed: Counter[ServerProfile] = Counter()
        self._outdated: set[ServerProfile] = set()

    def record_success(self, used: ServerProfile, request: Request) -> bool:
        """Record that an answer has come with a profile; return whether the current profile changed."""
        self._worked.add((used, *_get_kind(request)))
        if used == self.current or used in self._outdated:  # sent before other calls learnt more
            return False
        has_alternative = self.has_worked(self.current, request)
        self._needed[used] += 1
        if has_alternative and (self._needed[used] < 2 or used.differences != self.current.differences):
            return False
        self._outdated.add(self.current)
        self.current = used
        return True

    def has_worked(self, used: ServerProfile, request: Request) -> bool:
        """Return whether calls of this kind have been answered with that profile."""
        return (used, *_get_kind(request)) in self._worked

    def find_next_profile(
        self, cause: ErrorCause, text: str, request: Request, tried: Sequence[ServerProfile]
    ) -> ServerProfile | None:
        """Return the profile that a refusal asks for; None if it asks for none, or for one that was tried.

        Args:
            cause: of the refusal.
            text: see `extract_error_text`.
            request: the call.
            tried: the profiles that it was sent with, the last one refused.
        """
        if self.current not in tried:
            return self.current  # other calls have learnt meanwhile
        if cause.kind == "room":
            next_profile = tried[-1].extend_thinking(request)
        elif cause.kind == "parameter":
            is_user_field = cause.parameter == FORMAT and FORMAT in request.parameters  # in EXTRA_BODY
            next_profile = None if is_user_field else tried[-1].learn_from_error(cause, text, request.form)
        else:
            next_profile = None
        return next_profile if next_profile not in tried else None


def find_guess(request: Request, tried: Sequence[ServerProfile]) -> ServerProfile | None:
    """Return the next profile to try if a refusal names nothing; None if all were tried."""
    return next((guess for guess in tried[0].iterate_guesses(request) if guess not in tried), None)


def _get_kind(request: Request) -> tuple[bool, bool]:
    return request.form in SCHEMAS, "logprobs" in request.parameters


def encode_json(value: Any) -> bytes:
    """Return JSON with Cyrillic as it is, and a question mark for half a surrogate pair."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
