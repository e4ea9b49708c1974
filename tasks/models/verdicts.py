"""Verdicts in a model's reply: a score, a yes or no, or that it cannot be read. Nothing is guessed."""

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, NoReturn, TypeVar

from yarus.db.messages import Words
from yarus.db.tables import JsonObject
from yarus.tasks.models.calls import Call, Model, Reply, strip_thinking

T = TypeVar("T")
JSON_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL | re.IGNORECASE)
# Up to the first character that ends a word; "Yes/No" repeats the question and "No-one" is another word.
FIRST_WORD = re.compile(r"[\W_]*(\w+)(?![\w/|-])")
GRADES = (0, 1, 2, 3)
"""Grades that a prompt may ask for, worst first."""
YES_NO_WORDS = {"yes": True, "да": True, "no": False, "нет": False}


@dataclass(frozen=True, slots=True)
class Verdict(Generic[T]):
    """Judgement of a model, and its reason."""

    status: ClassVar[Literal["ok"]] = "ok"
    value: T
    reason: str
    replies: tuple[Reply, ...] = ()  # all replies in order; the last one decided


@dataclass(frozen=True, slots=True)
class MissingVerdict:
    """Missing verdict and its reason. It does not have a value, so that none can be read from it."""

    status: Literal["judge_error", "parse_error", "skipped_budget", "not_applicable"]
    reason: str
    replies: tuple[Reply, ...] = ()


Score = Verdict[float] | MissingVerdict
"""Score of a judge from 0 to 1, or a grade from 0 to 3."""
YesNo = Verdict[bool] | MissingVerdict
"""Decision of a gate."""


def describe_failure(*verdicts: Verdict[Any] | MissingVerdict | None) -> str | None:
    """Return why the first failed verdict failed; None if none failed."""
    failed = (
        verdict for verdict in verdicts if isinstance(verdict, MissingVerdict) and verdict.status != "not_applicable"
    )
    return next((f"{verdict.status}: {verdict.reason}" for verdict in failed), None)


def get_value(verdict: Verdict[T] | MissingVerdict | None) -> T | None:
    """Return the value as tables store it: None without a verdict."""
    return verdict.value if isinstance(verdict, Verdict) else None


def parse_score(text: str) -> Score:
    """Parse a judge's reply: one JSON object `{"reason": text, "score": number from 0 to 1}` and nothing else.

    A thinking block before it and a Markdown fence around it are removed; anything else is a `parse_error`. A number in
    prose is not a score: it may be the scale, a year, or the answer to another question.

    Args:
        text: the reply as received.

    Returns:
        The score (0..1) with the judge's reason, or a `parse_error` that names the fault.
    """
    verdict = _parse_number(text)
    if isinstance(verdict, Verdict) and not 0 <= verdict.value <= 1:
        return build_parse_error(Words("score {found:g} is outside 0..1", found=verdict.value))
    return verdict


def parse_grade(text: str) -> Score:
    """Parse a judge's reply as `parse_score` does, but the score must be 0, 1, 2 or 3.

    Example:
        >>> from yarus.tasks.models.verdicts import parse_grade
        >>> parse_grade('{"reason": "", "score": 3}').value, parse_grade('{"reason": "", "score": 4}').reason
        (3.0, 'grade 4 is none of 0, 1, 2, 3')
    """
    verdict = _parse_number(text)
    if isinstance(verdict, Verdict) and verdict.value not in GRADES:
        return build_parse_error(
            Words("grade {found:g} is none of {grades}", found=verdict.value, grades=", ".join(map(str, GRADES)))
        )
    return verdict


def parse_object(text: str) -> JsonObject | MissingVerdict:
    """Parse a reply that is one JSON object, apart from thinking before it and a fence around it.

    Args:
        text: the reply as received.

    Returns:
        The object, or `parse_error` with what is wrong.
    """
    body = strip_thinking(text)
    if fenced := JSON_FENCE.fullmatch(body):
        body = fenced[1]
    try:
        reply = json.loads(body, object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        problem = (
            str(error) if isinstance(error, _InvalidJson) else Words("not one JSON object") if body else Words("empty")
        )
        return build_parse_error(problem)
    if not isinstance(reply, dict):
        return build_parse_error(Words("a JSON {kind}, not an object", kind=type(reply).__name__))
    return reply


def parse_list(text: str, name: str) -> list[JsonObject] | MissingVerdict:
    """Parse a reply that is a JSON object with one list of objects in it.

    Args:
        text: the reply as received.
        name: of the list.

    Returns:
        The list, or `parse_error` with what is wrong.
    """
    reply = parse_object(text)
    if isinstance(reply, MissingVerdict):
        return reply
    entries = reply.get(name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        problem = (
            Words("{name!r} is {entries!r:.60}, not a list of objects", name=name, entries=entries)
            if name in reply
            else Words("no key {name!r}", name=name)
        )
        return build_parse_error(problem)
    return entries


def _parse_number(text: str) -> Score:
    reply = parse_object(text)
    if isinstance(reply, MissingVerdict):
        return reply
    value = reply.get("score")
    if isinstance(value, bool) or not isinstance(value, int | float):
        problem = (
            Words("'score' is {value!r:.60}, not a number", value=value)
            if "score" in reply
            else Words("no key 'score'")
        )
        return build_parse_error(problem)
    reason = reply.get("reason")
    return Verdict(_as_float(value), reason if isinstance(reason, str) else "")


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return float("inf")


def parse_yes_no(text: str) -> YesNo:
    """Parse a gate's reply: its first word is yes, no, да or нет; anything else is invalid, never a no.

    Args:
        text: the reply as received; a thinking block before it is removed.
    """
    body = unicodedata.normalize("NFC", strip_thinking(text))
    match = FIRST_WORD.match(body)
    value = YES_NO_WORDS.get(match[1].casefold()) if match else None
    if value is None:
        return build_parse_error(Words("begins with none of yes, no, да, нет: {body!r:.60}", body=body))
    return Verdict(value, body[match.end() :].strip(" \t\r\n*_.,:;!-—–") if match else "")


async def ask_for_score(model: Model, call: Call) -> Score:
    """Ask a judge for a score; repeat the question as `ask_for_verdict` does.

    Args:
        model: the judge.
        call: with a prompt that asks for a score or a grade.
    """
    return await ask_for_verdict(model, call, parse_grade if call.prompt.shape.form == "grade" else parse_score)


async def ask_for_verdict(
    model: Model, call: Call, read: Callable[[str], Verdict[T] | MissingVerdict]
) -> Verdict[T] | MissingVerdict:
    """Ask a judge for a verdict.

    A reply that was cut off is requested again with twice the tokens. An unreadable reply is sent back with the
    prompt's repair text. Each happens once.

    Args:
        model: the judge.
        call: what it is asked.
        read: parses a reply.
    """
    replies = [await model.ask(call)]
    if replies[-1].truncated:
        call = replace(call, doubled=True)
        replies.append(await model.ask(call))
    verdict = _parse_complete(replies[-1], read)
    if verdict.status == "parse_error" and not replies[-1].truncated:
        unreadable_reply = replies[-1].text or "…"
        replies.append(await model.ask(replace(call, unread=unreadable_reply)))
        verdict = _parse_complete(replies[-1], read)
    return replace(verdict, replies=tuple(replies))


async def ask_for_yes_no(model: Model, call: Call) -> YesNo:
    """Ask a gate for its decision, once, so that the gate is measured as it is.

    Args:
        model: the gate.
        call: with a prompt that asks for yes or no.
    """
    reply = await model.ask(call)
    return replace(_parse_reply(reply, parse_yes_no), replies=(reply,))


def _parse_complete(reply: Reply, read: Callable[[str], Verdict[T] | MissingVerdict]) -> Verdict[T] | MissingVerdict:
    if reply.truncated:
        return build_parse_error(
            Words("cut off after {tokens_out} tokens (…__MAX_TOKENS)", tokens_out=reply.tokens_out)
        )
    return _parse_reply(reply, read)


def _parse_reply(reply: Reply, read: Callable[[str], Verdict[T] | MissingVerdict]) -> Verdict[T] | MissingVerdict:
    """Return the verdict of a reply, or the reason of its absence."""
    if reply.status == "ok":
        return read(reply.raw)
    return MissingVerdict("judge_error" if reply.status == "error" else reply.status, reply.reason)


def build_parse_error(problem: str) -> MissingVerdict:
    """Return the verdict of a reply that cannot be read."""
    return MissingVerdict("parse_error", problem)


class _InvalidJson(ValueError):
    """JSON error that the standard library would let pass."""


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> JsonObject:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _InvalidJson("a key stands there twice")
    return dict(pairs)


def _reject_constant(name: str) -> NoReturn:
    raise _InvalidJson(f"{name} is not a JSON number")
