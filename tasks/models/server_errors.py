"""Classify errors of model servers: whom they concern, and what would help.

Servers word their errors as they like, so the whole body is read: keys, values, JSON within texts. Copies of
the request are removed first, or the judged texts would decide. The first rule that fits wins:

1. the account has no money or the key is wrong: every call would fail
2. the prompt is too long: only this call fails
3. the server does not take a parameter: Yarus omits, renames or lowers it
4. the model or the address is wrong: every call would fail
5. a content filter: only this call fails
6. the server is busy or broken: Yarus waits
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Literal, NamedTuple

from yarus.tasks.config.secrets import redact

ECHO_KEYS = {"input", "flagged_input", "failed_generation", "value", "ctx", "prompt_text"}
"""Keys of error bodies whose values repeat the request or the reply."""
MAX_DEPTH = 12
"""Levels of JSON within JSON; deeper parts are not read."""
COPY_LENGTH = 24
"""Length in characters from which a text that is also in the prompt counts as a copy of it."""
SHORTEST_REPLY = 16
"""Tokens; a smaller number in a message is not the limit of a reply."""
LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the parameter that limits a reply, the older one first."""
FORMAT = "response_format"
"""The parameter that asks for JSON."""


def _compile_any(patterns: str) -> re.Pattern[str]:
    """Compile one pattern per line into a pattern that finds any of them."""
    return re.compile("|".join(line.strip() for line in patterns.strip().splitlines()), re.IGNORECASE)


MONEY = _compile_any(
    r"""
    (insufficient|not enough|no)[ _-](\w+[ _-])?(quota|balance|funds|credits?)
    credit balance
    available credits
    more credits
    (out of|run out of|used all)( your| available| remaining)* credits?
    credits? (have |has |are |is )?(been )?(exhausted|depleted)
    exceeded your current quota
    (spending|usage|hard)[ _]limit
    payment required
    billing( details| account| is| has|[ _]not|[ _]hard| quota)
    top up
    overdue
    arrears?(age)?\b
    account .{0,40}(not active|suspended|deactivated|disabled)
    upgrade (your|to)
    недостаточно средств
    закончил\w* (средств|токен|деньг)
    исчерпан
    задолженност
    пополните
    余额
    额度
    欠费
    充值
    """
)
PERIOD = _compile_any(
    r"""
    (daily|weekly|monthly|session)\b.{0,40}(quota|limit|allocation|allowance)
    (per|/)[ _-]?(day|week|month)\b
    \d+[ -]hour
    limit.{0,120}paused
    free (allocation|quota|tier)
    """
)
"""Limits of a period longer than a minute: no call is answered before its end."""
CERTAIN_MONEY = _compile_any(
    r"""
    insufficient[ _-](\w+[ _-])?quota
    budget[ _](has been[ _])?exceeded
    billing[ _](not[ _]active|hard[ _]limit)
    quotaid: \w*perday
    limit: 0\b
    """
)
"""Waiting does not help, even if the server names a time to wait."""
KEY = _compile_any(
    r"""
    (api|access|subscription|proxy|auth\w*|iam)[ _-]?(key|token).{0,40}(invalid|not|missing|expired|incorrect)
    (api|access|subscription|proxy|auth\w*|iam)[ _-]?(key|token).{0,40}(revoked|leaked|wrong)
    (incorrect|invalid|unknown|wrong)( \w+)? (api|access|subscription|proxy|auth\w*)[ _-]?(key|token)
    (missing|expired|revoked|no)( \w+)? (api|access|subscription|proxy|auth\w*)[ _-]?(key|token)
    invalid[ _](api[ _]key|authentication|credentials)
    unauthori[sz]ed
    unauthenticated
    authentication[ _](error|failed|fails|required)
    credentials? (doesn't|do not|does not|don't|are not) (match|valid|found)
    """
)
LONG = _compile_any(
    r"""
    context[ _-]?(length|window|size|limit)
    n_ctx
    maximum (context|prompt|input|sequence|model)[ _]?(length|size|tokens)?
    (prompt|inputs?|request|messages?|text|payload|entity|query)( \w+){0,3} (is |are |was )?(too|very) (long|large|big)
    too (long|large) for
    request too large
    payload too large
    too many (input |prompt )?tokens
    input[ _]tokens? exceed
    (input|prompt)[ _]token[ _]?count
    number of (input|prompt) tokens
    range of input length
    input length
    reduce (the|your) (length|size|input|message|prompt|number of)
    longer than the
    less than \d+ tokens
    `?inputs`? tokens
    must be at least 1, got -
    prompt length
    exceeds? the (model|maximum|available|allowed|configured)\b.{0,40}(token|context|length|limit)
    string[ _](too[ _]long|above[ _]max[ _]length)
    long context request
    length of (the )?(prompt|input|request)
    (request|generation) length
    input characters
    max[ _]total[ _]tokens
    prompt contains \d+ tokens
    tokens? .{0,30}(exceed|> ?\d)
    does not fit
    """
)
RATE = _compile_any(
    r"""
    rate[ _-]?limit
    too many requests
    throttl
    (per|/) ?min(ute)?\b
    (per|/) ?sec(ond)?\b
    per(minute|second)
    \b[rt]pm\b
    requests? at once
    """
)
WAIT = _compile_any(
    r"""
    please wait
    try again (later|in|shortly)
    retry (after|in|shortly)
    slow down
    """
)
FILTER = _compile_any(
    r"""
    content[ _-]?(filter|policy|management|inspection|moderation|violation|safety|exists risk)
    moderation
    safety
    flagged
    inappropriate
    usage (policy|policies|guidelines)
    violat(es|ed|ing|ion)
    \bblocked\b
    prohibited
    blacklist
    \brisk\b
    responsible ?ai
    data[ _]?inspection
    sensitive (content|words?|information)
    harmful
    unsafe
    invalid[ _]prompt
    filtered
    запрещ
    фильтр
    敏感
    不安全
    цензур
    недопустим\w* (содерж|контент)
    """
)
MODEL = _compile_any(
    r"""
    (model|deployment|engine)\b.{0,80}(not|n't|never|cannot be|no longer)[ _]?(\w+ )?(exist|found|available|accessible)
    (model|deployment|engine)\b.{0,80}(not|n't|never|cannot be|no longer)[ _]?(\w+ )?(supported|loaded|served|a valid)
    (no|unknown|invalid|unsupported|nonexistent|such)( such)? (model|deployment)
    model[ _](not[ _]found|not[ _]available|not[ _]exist)
    unable to access .{0,40}model
    model (uri|id|name|identifier)
    deploymentnotfound
    not a valid model
    """
)
ADDRESS = _compile_any(
    r"""
    unknownoperation
    resource not found
    unknown (url|path|endpoint|route)
    no route
    not found: ?/
    """
)
MISSING_MODEL = _compile_any(
    r"""
    model[ _]not[ _]found
    无可用渠道
    no available channel
    """
)
HOST = _compile_any(
    r"""
    host header
    disallowed host
    host not allowed
    """
)
MACHINE = _compile_any(
    r"""
    requires more (system |gpu |video )?memory
    out of memory
    insufficient memory
    (could not|cannot|can't|failed to|unable to) load( the)? model
    """
)
REFUSAL = _compile_any(
    r"""
    (un|not |n't |isn't |only |longer )[ _]?support
    not (permitted|allowed|available|accepted|recogni[sz]ed|enabled|implemented|compatible|a valid)
    deprecated
    (un|not )?(known|expected|recogni[sz]ed|supported)[ _]?(name|field|argument|parameter|property)
    (un|not )?(known|expected|recogni[sz]ed|supported)[ _]?(key|value|keyword|option)
    extra[ _](inputs?|fields?|forbidden)
    forbidden
    only .{0,60}(allowed|supported|accepted|permitted)
    must (be|have|contain|not)
    should (be|have|not)
    fail(ed|s)? to (deserialize|parse|initialize|compile|convert)
    invalid
    unavailable
    incompatible
    cannot
    can't
    missing
    required
    (field|type|value|literal|bool|float|int|string|enum)[ _]?(error|parsing|type|required)
    disabled
    expected
    range of
    does not (match|accept|handle|allow|take)
    refus
    illegal
    unacceptable
    be removed
    not be (set|used|sent)
    """
)
FORMAT_WORDS = _compile_any(
    r"""
    response[ _]?format
    json[ _]?(schema|object|mode)
    structured[ _]?outputs?
    guided[ _]?(json|decoding)
    \bgrammar\b
    \bschema\b
    """
)
OF_PARAMETERS = _compile_any(
    r"""
    \b(parameters?|options?|features?|arguments?|fields?|settings?)\b
    support
    """
)
NUMBER = r"(?P<n>\d{1,3}(?:[ ,_]\d{3})+|\d+)(?![\w%])"
REPLY_LIMIT = _compile_any(
    r"""
    max[ _]?(imum)?[ _]?(new|output|completion|reply)?[ _]?tokens
    maximum tokens
    (output|completion) tokens
    """
)
"""Names of the limit of a reply."""
BOUND = re.compile(
    r"(?:<=?|(?<=\d) ?>|less than(?: or equal to)?|lower than|at most|up to|maximum(?: \w+)?|limit|must not exceed|"
    rf"cannot exceed|\[\d+, ?|between \d+ and|from \d+ (?:\(\w+\) )?to|range \d+ ?-|not be greater than|"
    rf"cannot be greater than|be smaller than)"
    r"(?:[ =](?:allowed|value|is|of|to|for|this|the|model|tokens|completion|output|supports|at|most|max_\w+))*"
    rf"[:=]?\W{{0,3}}{NUMBER}"
    rf"(?: ?\(exclusive\)|\))?",
    re.IGNORECASE,
)
"""A number after the words of an upper bound."""
EXCLUSIVE = re.compile(r"<(?!=)|(less|lower|smaller) than(?! or)|\(exclusive\)|\[\d+, ?\d+\)", re.IGNORECASE)
CONTEXT_SIZE = re.compile(rf"context (?:length|window|size)(?: \w+){{0,3}}? ?(?:is|of|:)? ?{NUMBER}", re.IGNORECASE)
PROMPT_SIZE = re.compile(
    rf"(?:has |\(|: |, |contains |and )?{NUMBER} (?:input tokens|prompt tokens|tokens? (?:of|from|in) (?:the |your )?"
    rf"(?:input|prompt|messages?)|in the (?:messages?|prompt|input))",
    re.IGNORECASE,
)
OUT_OF_ROOM = re.compile(r"could not finish|output limit was reached|reached (the )?max", re.IGNORECASE)
URL = re.compile(r"https?://\S+")
TIME_UNIT = r"(?:ms|milliseconds?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?|секунд\w*|минут\w*|час\w*)"
DELAY = re.compile(
    r"(?:try again|retry|wait|available|reset|через|подождите)\w*[^.\d]{0,40}?"
    rf"((?:\d+(?:\.\d+)? ?{TIME_UNIT}(?![^\W\d_])(?:,? and |,? )?)+)",
    re.IGNORECASE,
)
JSON_START = re.compile(r"\[\s*[\"{]|\{")
DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|milli|s|с|h|ч|m|м)", re.IGNORECASE)
UNITS_S = {"ms": 0.001, "milli": 0.001, "s": 1.0, "с": 1.0, "m": 60.0, "м": 60.0, "h": 3600.0, "ч": 3600.0}


class SentRequest(NamedTuple):
    """A request whose response is read."""

    parameters: Mapping[str, Any]
    """All fields but the model and the texts."""
    texts: Any
    """JSON that contains the texts."""


CauseKind = Literal[
    "money", "key", "long", "room", "parameter", "model", "address", "host", "machine", "filter", "passing", "unclear"
]


@dataclass(frozen=True, slots=True)
class ErrorCause:
    """The cause of an error."""

    kind: CauseKind
    parameter: str = ""
    """The parameter of the request that the server refuses."""
    max_tokens: int | None = None
    """The longest reply that the server allows, in tokens, if it is shorter than the request's limit."""


def classify_error(status: int, text: str, sent: SentRequest, delay_s: float | None) -> ErrorCause:
    """Find out what an error means.

    The order of the causes matters if words of several occur. A cause that concerns every call is only a suspicion:
    the caller confirms it with a harmless question.

    Args:
        status: of HTTP, or the code within a reply of status 200.
        text: see `extract_error_text`.
        sent: the request.
        delay_s: the delay that the server asks for, in seconds, if it does.
    """
    text = URL.sub(" ", text)  # help pages have names like "billing"
    return (
        _find_account_cause(status, text, delay_s)
        or _find_request_cause(status, text, sent)
        or _find_server_cause(status, text)
    )


def _find_account_cause(status: int, text: str, delay_s: float | None) -> ErrorCause | None:
    if CERTAIN_MONEY.search(text) or (delay_s is None and status < 500 and PERIOD.search(text)):
        return ErrorCause("money")
    if _is_too_large(status, text):
        return None
    if status in (402, 403, 429) and (delay_s is not None or RATE.search(text)):
        return ErrorCause("passing")
    if status < 500 and MONEY.search(text):
        return ErrorCause("money")
    if status == 402:
        return ErrorCause("money")
    if status == 401 or (status in (200, 400, 403) and KEY.search(text)):
        return ErrorCause("key")
    return None


def _find_request_cause(status: int, text: str, sent: SentRequest) -> ErrorCause | None:
    if status == 429 and not _is_too_large(status, text):
        return ErrorCause("passing")
    refused = _find_refused_parameter(text, sent)
    if refused in LIMITS and OUT_OF_ROOM.search(text):
        return ErrorCause("room")
    most = find_token_limit(text, sent)
    if most is not None and status < 500:
        return ErrorCause("parameter", next(name for name in LIMITS if name in sent.parameters), most)
    if LONG.search(text) and not WAIT.search(text.replace("and try again", "")):
        return ErrorCause("long")
    if refused and status <= 500:
        return ErrorCause("parameter", refused)
    return ErrorCause("passing") if status < 500 and RATE.search(text) else None


def _is_too_large(status: int, text: str) -> bool:
    """Return whether the request alone exceeds a token limit, so that waiting does not help."""
    return status in (413, 429) and re.search(r"too large|long context request", text, re.IGNORECASE) is not None


def _find_server_cause(status: int, text: str) -> ErrorCause:
    is_fault = status >= 500
    rules: tuple[tuple[CauseKind, Any], ...] = (
        ("host", HOST.search(text)),
        ("address", 300 <= status < 400 or ADDRESS.search(text)),
        ("model", MODEL.search(text) if not is_fault else MISSING_MODEL.search(text)),
        ("machine", MACHINE.search(text)),
        ("long", status == 413),
        ("filter", not is_fault and FILTER.search(text)),
        ("passing", is_fault or status in (408, 409, 424, 425, 429)),
        ("address", status in (404, 405, 410) and not OF_PARAMETERS.search(text)),
    )
    return ErrorCause(next((kind for kind, fits in rules if fits), "unclear"))


def _find_refused_parameter(text: str, sent: SentRequest) -> str:
    """Return the parameter of the request that an error refuses, '' if it names none.

    If it names several, its field `param` decides, else the name nearest to a word of refusal: servers often list
    those that they do take.
    """
    starts = [match.start() for match in REFUSAL.finditer(text)]
    if not starts:
        return ""
    names = dict.fromkeys(sent.parameters)
    limit = next((name for name in LIMITS if name in names), None)
    distances: list[tuple[int, str]] = []
    for name in (*names, *(LIMITS if limit else ())):
        word = rf"(?<![\w.-]){re.escape(name)}(?!\w)"
        if re.search(rf"(?m)^param: {word}$", text):
            return limit if limit and name in LIMITS else name
        distances += [(min(abs(match.start() - start) for start in starts), name) for match in re.finditer(word, text)]
    if FORMAT in names:
        distances += [
            (min(abs(match.start() - start) for start in starts), FORMAT) for match in FORMAT_WORDS.finditer(text)
        ]
    if not distances:
        return ""
    name = min(distances)[1]
    return limit if limit and name in LIMITS else name


def find_token_limit(text: str, sent: SentRequest) -> int | None:
    """Return the longest reply that an error allows, in tokens; None if it names none below the request's limit."""
    requested = next((sent.parameters[name] for name in LIMITS if name in sent.parameters), None)
    if requested is None:
        return None
    context, prompt = (_parse_number(match) for match in (CONTEXT_SIZE.search(text), PROMPT_SIZE.search(text)))
    if context is not None and prompt is not None:
        # Prompt and reply share the context: a shorter reply helps only if the prompt leaves room for it.
        remaining = context - prompt
        return remaining if context / 2 <= remaining < requested else None
    if not REPLY_LIMIT.search(text):
        return None
    bounds = [_parse_number(match, lower=EXCLUSIVE.search(match[0]) is not None) for match in BOUND.finditer(text)]
    return max((bound for bound in bounds if bound is not None and SHORTEST_REPLY <= bound < requested), default=None)


def _parse_number(match: re.Match[str] | None, *, lower: bool = False) -> int | None:
    return None if match is None else int(re.sub(r"\D", "", match["n"])) - lower


def extract_error_text(body: bytes, sent: SentRequest) -> str:
    """Return all texts of an error body, one per line, without copies of the request."""
    text = "\n".join(_iterate_strings(body[:200_000].decode("utf-8", "replace"), 0))
    return _remove_copies(text, "\n".join(_iterate_texts(sent.texts)))


def _remove_copies(text: str, prompt: str) -> str:
    """Replace every run of at least COPY_LENGTH characters that is also in the prompt."""
    windows = {text[start : start + COPY_LENGTH] for start in range(len(text) - COPY_LENGTH + 1)}
    copies = {window for start in range(len(prompt)) if (window := prompt[start : start + COPY_LENGTH]) in windows}
    characters, start = [], 0
    while start < len(text):
        if text[start : start + COPY_LENGTH] not in copies:
            characters.append(text[start])
            start += 1
            continue
        while text[start : start + COPY_LENGTH] in copies:
            start += 1
        characters.append("…")
        start += COPY_LENGTH - 1
    return "".join(characters)


def _iterate_strings(value: Any, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        before, inner, after = split_embedded_json(value)
        yield from filter(None, (before,))
        if inner is not None:
            yield from _iterate_strings(inner, depth + 1)
            yield from _iterate_strings(after or None, depth + 1)
    elif isinstance(value, dict):
        for name, part in value.items():
            if name not in ECHO_KEYS:
                yield from _iterate_entry(name, part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            yield from _iterate_strings(part, depth + 1)
    elif value is not None:
        yield str(value)


def _iterate_entry(name: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str | int | float | bool):
        yield from (f"{name}: {text}" for text in _iterate_strings(str(value), depth))
    else:
        yield str(name)
        yield from _iterate_strings(value, depth)


def _iterate_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _iterate_texts(part)


def split_embedded_json(text: str) -> tuple[str, Any, str]:
    """Split a text into the part before a JSON object or list, this value (None without JSON), and the rest.

    Proxies put the errors of other servers into their own as text.
    """
    for match in islice(JSON_START.finditer(text), 20):
        try:
            value, end = json.JSONDecoder().raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if value:
            return text[: match.start()].strip(), value, text[end:].strip()
    return text, None, ""


def extract_message(body: bytes, secrets: Sequence[str]) -> str:
    """Return the error message of a server, without keys, in one line of at most 300 characters."""
    text = body[:100_000].decode("utf-8", "replace")
    try:
        value = json.loads(body)
        value = value[0] if isinstance(value, list) and value else value
        error = value.get("error") or value.get("message") or value.get("detail")
        if isinstance(error, dict):
            metadata = error.get("metadata")
            raw = metadata.get("raw") if isinstance(metadata, dict) else None
            text = ": ".join(str(part) for part in (error.get("message"), raw) if part) or str(error)
        else:
            text = str(error or text)
    except (ValueError, AttributeError, RecursionError):
        pass
    before, inner, after = split_embedded_json(text)
    if inner is not None:
        text = " ".join((before, json.dumps(inner, ensure_ascii=False), after))  # Cyrillic is often escaped in it
    text = redact(text, secrets)  # before it is cut: a part of a key would not be recognised
    return " ".join(text.replace("\0", "\ufffd").split())[:300] or "no message"


def find_delay_s(headers: Mapping[str, str], text: str) -> float | None:
    """Return the seconds that a server asks to wait, by its headers or its words; None if it does not ask."""
    delay_s = parse_retry_after_s(headers.get("retry-after"), headers.get("date"))
    if delay_s is not None:
        return delay_s
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    if match := re.search(r"retryDelay: (\d+(?:\.\d+)?)s", text):
        return float(match[1])
    match = DELAY.search(text)
    return _parse_duration_s(match[1]) if match else None


def find_reset_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the exhausted limits of a server are reset, by its headers; None without them."""
    resets = [
        _parse_duration_s(headers[name])
        for name in headers
        if name.lower().startswith("x-ratelimit-reset")
        and headers.get(name.lower().replace("-reset", "-remaining"), "0") == "0"
    ]
    return max((reset for reset in resets if reset is not None), default=None)


def parse_retry_after_s(header: str | None, date: str | None = None) -> float | None:
    """Return the seconds to wait by a Retry-After header, a number or a date; None if it is missing or unreadable.

    Args:
        header: its value.
        date: when the server sent it, by its own clock, which may differ from ours.
    """
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        time, now = _parse_date(header), _parse_date(date or "") or datetime.now(UTC)
        return None if time is None else max(0.0, (time - now).total_seconds())


def _parse_date(header: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(header)
    except (ValueError, OverflowError):  # a year of eleven digits
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _parse_duration_s(text: str) -> float | None:
    """Return the seconds of '1m30s', '20ms' or '2 minutes and 5 seconds'; None for a bare number, maybe a moment."""
    parts = DURATION.findall(text.strip())
    return sum(float(number) * UNITS_S[unit.lower()] for number, unit in parts) if parts else None
