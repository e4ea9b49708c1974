"""What a model's reply says: a score, a yes or no, or that it cannot be read. Nothing is guessed."""

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, NoReturn, TypeVar

from yarus.db.tables import Json
from yarus.db.words import Words
from yarus.tasks.models.calls import Call, Model, Reply, without_thinking

T = TypeVar("T")
FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL | re.IGNORECASE)
# Up to the first sign that ends a word; "Yes/No" repeats the question and "No-one" is another word.
FIRST_WORD = re.compile(r"[\W_]*(\w+)(?![\w/|-])")
GRADES = (0, 1, 2, 3)
"""Of a prompt that asks for one, worst first."""
WORDS = {"yes": True, "да": True, "no": False, "нет": False}


@dataclass(frozen=True, slots=True)
class Verdict(Generic[T]):
    """What a model has judged, and why."""

    status: ClassVar[Literal["ok"]] = "ok"
    value: T
    reason: str
    replies: tuple[Reply, ...] = ()  # all that came, in order; the last one decided


@dataclass(frozen=True, slots=True)
class NoVerdict:
    """There is none: what stood in the way. It has no value, so that none can be read from it."""

    status: Literal["judge_error", "parse_error", "skipped_budget", "not_applicable"]
    reason: str
    replies: tuple[Reply, ...] = ()


Score = Verdict[float] | NoVerdict
"""A judge's, from 0 to 1; of a prompt that asks for a grade, 0 to 3."""
YesNo = Verdict[bool] | NoVerdict
"""A gate's."""


def failure(*verdicts: Verdict[Any] | NoVerdict | None) -> str | None:
    """Why the first of the verdicts failed; None where none did."""
    failed = (of for of in verdicts if isinstance(of, NoVerdict) and of.status != "not_applicable")
    return next((f"{of.status}: {of.reason}" for of in failed), None)


def value_of(verdict: Verdict[T] | NoVerdict | None) -> T | None:
    """The value as tables keep it: None where there is no verdict, or none was asked for."""
    return verdict.value if isinstance(verdict, Verdict) else None


def read_score(text: str) -> Score:
    """Reads a judge's reply: one JSON object `{"reason": text, "score": number from 0 to 1}` and nothing else.

    A thinking block before it and a Markdown fence around it are taken off; anything else is a `parse_error`. A number
    in prose is not a score: it may be the scale, a year, or the answer to another question.

    Args:
        text: the reply as received.

    Returns:
        The score (0..1) with the judge's reason, or `parse_error` with what is wrong.
    """
    found = _number(text)
    if isinstance(found, Verdict) and not 0 <= found.value <= 1:
        return unreadable(Words("score {found:g} is outside 0..1", found=found.value))
    return found


def read_grade(text: str) -> Score:
    """Reads a judge's reply as `read_score`, where the score is one of the whole numbers 0, 1, 2 and 3.

    Example:
        >>> from yarus.tasks.models.verdicts import read_grade
        >>> read_grade('{"reason": "", "score": 3}').value, read_grade('{"reason": "", "score": 4}').reason
        (3.0, 'grade 4 is none of 0, 1, 2, 3')
    """
    found = _number(text)
    if isinstance(found, Verdict) and found.value not in GRADES:
        return unreadable(
            Words("grade {found:g} is none of {grades}", found=found.value, grades=", ".join(map(str, GRADES)))
        )
    return found


def read_object(text: str) -> Json | NoVerdict:
    """Reads a reply that is one JSON object and nothing else, but for thinking before it and a fence around it.

    Args:
        text: the reply as received.

    Returns:
        The object, or `parse_error` with what is wrong.
    """
    body = without_thinking(text)
    if fenced := FENCED.fullmatch(body):
        body = fenced[1]
    try:
        reply = json.loads(body, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, _Unfit) else Words("not one JSON object") if body else Words("empty")
        return unreadable(what)
    if not isinstance(reply, dict):
        return unreadable(Words("a JSON {kind}, not an object", kind=type(reply).__name__))
    return reply


def read_list(text: str, name: str) -> list[Json] | NoVerdict:
    """Reads a reply that is a JSON object with one list of objects in it.

    Args:
        text: the reply as received.
        name: of the list.

    Returns:
        The list, or `parse_error` with what is wrong.
    """
    reply = read_object(text)
    if isinstance(reply, NoVerdict):
        return reply
    entries = reply.get(name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        what = (
            Words("{name!r} is {entries!r:.60}, not a list of objects", name=name, entries=entries)
            if name in reply
            else Words("no key {name!r}", name=name)
        )
        return unreadable(what)
    return entries


def _number(text: str) -> Score:
    reply = read_object(text)
    if isinstance(reply, NoVerdict):
        return reply
    value = reply.get("score")
    if isinstance(value, bool) or not isinstance(value, int | float):
        what = (
            Words("'score' is {value!r:.60}, not a number", value=value)
            if "score" in reply
            else Words("no key 'score'")
        )
        return unreadable(what)
    reason = reply.get("reason")
    return Verdict(_as_float(value), reason if isinstance(reason, str) else "")


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return float("inf")


def read_yes_no(text: str) -> YesNo:
    """Reads a gate's reply: its first word is yes, no, да or нет; anything else is invalid, never a no.

    Args:
        text: the reply as received; a thinking block before it is taken off.
    """
    body = unicodedata.normalize("NFC", without_thinking(text))
    match = FIRST_WORD.match(body)
    value = WORDS.get(match[1].casefold()) if match else None
    if value is None:
        return unreadable(Words("begins with none of yes, no, да, нет: {body!r:.60}", body=body))
    return Verdict(value, body[match.end() :].strip(" \t\r\n*_.,:;!-—–") if match else "")


async def ask_for_score(model: Model, call: Call) -> Score:
    """A judge's score; asked for again as `ask_for` says.

    Args:
        model: the judge.
        call: with a prompt that asks for a score or a grade.
    """
    return await ask_for(model, call, read_grade if call.prompt.shape.form == "grade" else read_score)


async def ask_for(model: Model, call: Call, read: Callable[[str], Verdict[T] | NoVerdict]) -> Verdict[T] | NoVerdict:
    """What a judge says. A reply that was cut off is asked for again with twice the tokens, one that cannot be read is
    asked for again with what was wrong; each once.

    Args:
        model: the judge.
        call: what it is asked.
        read: what a reply says.
    """
    replies = [await model.ask(call)]
    if replies[-1].truncated:
        call = replace(call, doubled=True)
        replies.append(await model.ask(call))
    said = _whole(replies[-1], read)
    if said.status == "parse_error" and not replies[-1].truncated:
        unread = replies[-1].text or "…"
        replies.append(await model.ask(replace(call, unread=unread)))
        said = _whole(replies[-1], read)
    return replace(said, replies=tuple(replies))


async def ask_for_yes_no(model: Model, call: Call) -> YesNo:
    """A gate's decision. It is measured as it is: nothing is asked twice.

    Args:
        model: the gate.
        call: with a prompt that asks for yes or no.
    """
    reply = await model.ask(call)
    return replace(_said(reply, read_yes_no), replies=(reply,))


def _whole(reply: Reply, read: Callable[[str], Verdict[T] | NoVerdict]) -> Verdict[T] | NoVerdict:
    if reply.truncated:
        return unreadable(Words("cut off after {tokens_out} tokens (…__MAX_TOKENS)", tokens_out=reply.tokens_out))
    return _said(reply, read)


def _said(reply: Reply, read: Callable[[str], Verdict[T] | NoVerdict]) -> Verdict[T] | NoVerdict:
    """What a reply says, or why there was none."""
    if reply.status == "ok":
        return read(reply.raw)
    return NoVerdict("judge_error" if reply.status == "error" else reply.status, reply.reason)


def unreadable(what: str) -> NoVerdict:
    """A reply that says nothing that can be read, and why."""
    return NoVerdict("parse_error", what)


class _Unfit(ValueError):
    """JSON that the standard library would let pass."""


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Unfit("a key stands there twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise _Unfit(f"{name} is not a JSON number")
