"""A context that says another number or date than it said: that which the reference answers with."""

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from yarus.metrics.facts import Fact, facts, held_against, lost
from yarus.tasks.cases.text import SENTENCE, folded

CHANGED = ("number", "date", "time", "money", "percent", "room")
"""Kinds of facts with a value that another could stand for; phones and addresses may be pseudonyms to the model."""
MONTHS = (
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "january february march april may june july august september october november december",
)
IN_ONE_FORM = {month: form.split() for form in MONTHS for month in form.split()}
DIGITS = re.compile(r"\d+")
LETTERS = re.compile(r"[^\W\d_]+")
TRIES = 8
"""Other values that are tried until one is read as such, and stands nowhere in the context."""


class Counterfactual(NamedTuple):
    """A changed context."""

    context: str
    original: str
    """The sentence with the value that was changed."""
    substitute: str
    """The sentence as it is now."""
    shifts: list[tuple[int, int]]
    """(where a value ended, by how many characters what follows it has moved)."""


def counterfactual(context: str, reference: str | None, question: str, chance: random.Random) -> Counterfactual | None:
    """The context with another value in the place of the first that the reference answers with, and the question lacks.

    Afterwards the context states the old value nowhere and the new one where the old one was; None where there is no
    such value, or it is written in words.

    Args:
        context: any text.
        reference: the right answer; None where there is none.
        question: what it states is no answer to it.
        chance: which other value.

    Example:
        >>> import random
        >>> from yarus.tasks.steps.contexts.counterfactual import counterfactual
        >>> found = counterfactual("Приём до 12 мая. Каб. 7.", "12.05", "До какого дня приём?", random.Random(0))
        >>> found.original, found.substitute
        ('Приём до 12 мая.', 'Приём до 28 мая.')
    """
    if reference is None:
        return None
    stated = held_against([context], [reference])[0] or []
    everything, beside = [held.fact for held in stated], f"{reference}\n{question}"
    answering = {held.fact for held in stated if held.supported and held.fact.kind in CHANGED}
    for fact in _by_the_answer(context, reference, answering - _stated(context, question)):
        for other in _others(fact, chance):
            if found := _replaced(context, fact, other, everything, beside):
                return found
    return None


def _by_the_answer(context: str, reference: str, among: set[Fact]) -> list[Fact]:
    """What the reference says first comes first: it is what was asked for."""
    if not among:
        return []
    said = [_stated(context, fact.text) for fact in facts(reference)]
    return sorted(among, key=lambda one: (next((n for n, of in enumerate(said) if one in of), len(said)), one.start))


def _stated(context: str, text: str) -> set[Fact]:
    """The facts of the context that another text states too."""
    return {held.fact for held in held_against([context], [text])[0] or () if held.supported}


def _others(fact: Fact, chance: random.Random) -> Iterator[str]:
    """The fact's text with another day, hour, month or number."""
    groups = list(DIGITS.finditer(fact.text))
    if not groups:
        yield from _other_months(fact.text, chance)
        return
    group = _telling(fact, groups)
    for _ in range(TRIES):
        digits = _other_digits(fact.kind, group[0], chance)
        if digits != group[0]:
            yield fact.text[: group.start()] + digits + fact.text[group.end() :]


def _telling(fact: Fact, groups: list[re.Match[str]]) -> re.Match[str]:
    """Of a date its day, wherever its year stands; of others what comes first."""
    if fact.kind == "date" and len(groups[0][0]) == 4:
        return groups[-1]
    return groups[0]


def _other_digits(kind: str, digits: str, chance: random.Random) -> str:
    """Another number of as many digits; a day that every month has, a year or what may be one near it, an hour."""
    if kind == "date" and len(digits) < 3:
        return str(chance.randint(1, 28)).zfill(len(digits) if digits[0] == "0" else 1)
    if kind == "date" or 1_000 <= int(digits) < 2_100:
        return str(int(digits) + chance.choice((-9, -7, -4, -2, 2, 3, 5, 8)))
    if kind == "time":
        return str(chance.randint(8, 20)).zfill(len(digits))
    lowest = 10 ** (len(digits) - 1)
    return str(chance.randint(max(2, lowest), 10 * lowest - 1))


def _other_months(text: str, chance: random.Random) -> Iterator[str]:
    for match in LETTERS.finditer(text):
        form = IN_ONE_FORM.get(match[0].lower())
        if form is None:
            continue
        for other in chance.sample(form, TRIES):
            cased = other.capitalize() if match[0][0].isupper() else other
            if cased != match[0]:
                yield text[: match.start()] + cased + text[match.end() :]


def _replaced(context: str, fact: Fact, other: str, stated: list[Fact], beside: str) -> Counterfactual | None:
    """The context with the other value; None where it is not read as one, or the old one is still there."""
    plain = folded(fact.text)
    places = [(one.start, one.end) for one in stated if one.kind == fact.kind and folded(one.text) == plain]
    pieces, shifts, end = [], [], 0
    for start, stop in places:
        pieces += [context[end:start], other]
        shifts.append((stop, len(other) - (stop - start)))
        end = stop
    changed = "".join([*pieces, context[end:]])
    moved = sum(by for stop, by in shifts if stop <= fact.start)
    begin, stop = _sentence(context, fact.start, fact.end)
    inside = sum(by for place, by in shifts if begin < place <= stop)
    original, substitute = context[begin:stop], changed[begin + moved : stop + moved + inside]
    gone = lost(held_against([original], [substitute]))[0]
    new = lost(held_against([substitute], [original]))[0]
    if not gone or not new:
        return None
    if _stated(original, changed) & set(gone) or _stated(substitute, f"{context}\n{beside}") & set(new):
        return None
    return Counterfactual(changed, original, substitute, shifts)


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the sentence of a fact begins and ends."""
    breaks = [(match.start(), match.end()) for match in SENTENCE.finditer(text)]
    begin = max((after for _, after in breaks if after <= start), default=0)
    stop = min((before for before, _ in breaks if before >= end), default=len(text))
    return begin, stop
