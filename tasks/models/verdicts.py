"""What a model's reply says: a score, a yes or no, or that it cannot be read. Nothing is guessed."""

import json
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

from tasks.models.calls import Call, Model, Reply, without_thinking

Status = Literal["ok", "parse_error"]
FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL | re.IGNORECASE)
# Up to the first sign that ends a word; "Yes/No" repeats the question and "No-one" is another word.
FIRST_WORD = re.compile(r"[\W_]*(\w+)(?![\w/|-])")
WORDS = {"yes": True, "да": True, "no": False, "нет": False}


@dataclass(frozen=True, slots=True)
class Score:
    """A judge's reply as it was read: `value` 0..1 and why, or None and what was wrong with the reply."""

    status: Status
    value: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class YesNo:
    """A gate's reply as it was read: True or False, or None and what was wrong with the reply."""

    status: Status
    value: bool | None
    reason: str


def read_score(text: str) -> Score:
    """Reads a judge's reply: one JSON object `{"reason": text, "score": number from 0 to 1}` and nothing else.

    A thinking block before it and a Markdown fence around it are taken off; anything else is a `parse_error`. A number
    in prose is not a score: it may be the scale, a year, or the answer to another question.

    Args:
        text: the reply as received.

    Returns:
        `ok` with the score (0..1) and the judge's reason, or `parse_error` with what is wrong.
    """
    body = without_thinking(text)
    if fenced := FENCED.fullmatch(body):
        body = fenced[1]
    try:
        reply = json.loads(body, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, _Unfit) else "not one JSON object" if body else "empty"
        return Score("parse_error", None, what)
    if not isinstance(reply, dict):
        return Score("parse_error", None, f"a JSON {type(reply).__name__}, not an object")
    value = reply.get("score")
    if isinstance(value, bool) or not isinstance(value, int | float):
        what = f"'score' is {value!r:.60}, not a number" if "score" in reply else "no key 'score'"
        return Score("parse_error", None, what)
    if not 0 <= value <= 1:
        return Score("parse_error", None, f"score {value!r:.60} is outside 0..1")
    reason = reply.get("reason")
    return Score("ok", float(value), reason if isinstance(reason, str) else "")


def read_yes_no(text: str) -> YesNo:
    """Reads a gate's reply: its first word is yes, no, да or нет; anything else is invalid, never a no.

    Args:
        text: the reply as received; a thinking block before it is taken off.
    """
    body = unicodedata.normalize("NFC", without_thinking(text))
    match = FIRST_WORD.match(body)
    value = WORDS.get(match[1].casefold()) if match else None
    if value is None:
        return YesNo("parse_error", None, f"begins with none of yes, no, да, нет: {body!r:.60}")
    return YesNo("ok", value, body[match.end() :].strip(" \t\r\n*_.,:;!-—–") if match else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a model has judged: `value` 0..1 (a gate's yes is 1), or None with the status and the reason."""

    status: Literal["ok", "judge_error", "parse_error", "skipped_budget", "not_applicable"]
    value: float | None
    reason: str
    replies: tuple[Reply, ...]  # all that came, in order; the last one decided

    @property
    def raw(self) -> str:
        """The reply that decided, as received."""
        return self.replies[-1].raw


async def ask_for_score(model: Model, call: Call) -> Verdict:
    """A judge's score. A reply that was cut off is asked for again with twice the tokens, one that cannot be read is
    asked for again with what was wrong; each once.

    Args:
        model: the judge.
        call: with a prompt that asks for a score.
    """
    replies = [await model.ask(call)]
    if replies[-1].truncated:
        call = replace(call, doubled=True)
        replies.append(await model.ask(call))
    score = _score(replies[-1])
    if replies[-1].status == "ok" and score.status == "parse_error" and not replies[-1].truncated:
        unread = replies[-1].text or "…"
        replies.append(await model.ask(replace(call, unread=unread)))
        score = _score(replies[-1])
    return _verdict(score.status, score.value, score.reason, replies)


async def ask_for_yes_no(model: Model, call: Call) -> Verdict:
    """A gate's yes (1) or no (0). It is measured as it is: nothing is asked twice.

    Args:
        model: the gate.
        call: with a prompt that asks for yes or no.
    """
    reply = await model.ask(call)
    answer = read_yes_no(reply.raw)
    return _verdict(answer.status, None if answer.value is None else float(answer.value), answer.reason, [reply])


def _score(reply: Reply) -> Score:
    if reply.truncated:
        return Score("parse_error", None, f"cut off after {reply.tokens_out} tokens (…__MAX_TOKENS)")
    return read_score(reply.raw)


def _verdict(status: Status, value: float | None, reason: str, replies: list[Reply]) -> Verdict:
    last = replies[-1]
    if last.status == "ok":
        return Verdict(status, value, reason, tuple(replies))
    return Verdict("judge_error" if last.status == "error" else last.status, None, last.reason, tuple(replies))


class _Unfit(ValueError):
    """JSON that the standard library would let pass."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Unfit("a key stands there twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise _Unfit(f"{name} is not a JSON number")
