"""What an answer states that can be checked without a model: numbers, dates, sums, phones, rooms, by rule.

Facts are found in Russian and English texts, and brought to one form: «двенадцатого января», 12.01 and "January 12th"
are one, so are «полторы тысячи» and 1 500. A text supports a fact if it states it, in whatever form.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.facts.addresses import addresses, blanked
from yarus.metrics.facts.grammar import read
from yarus.metrics.facts.joined import join
from yarus.metrics.facts.numerals import Reading
from yarus.metrics.facts.reader import Fact as Stated
from yarus.metrics.facts.spelling import plain
from yarus.metrics.facts.tokens import tokens

__all__ = ["Fact", "Held", "fact_precision", "fact_recall", "facts", "held_against", "lost", "shares", "unsupported"]

Text = str | None
Readings = tuple[Reading, ...]
NUMBER_OF_CODE = re.compile(r"\D*(\d{1,15})")
LOCAL_PHONES = range(5, 10)
"""Digits of a phone within its town or house."""


class Fact(NamedTuple):
    """A fact that a text states."""

    kind: str
    """number, date, time, weekday, money, percent, phone, email, url, room or code."""
    text: str
    """As it stands there."""
    start: int
    end: int


class Held(NamedTuple):
    """A fact that was held against a text."""

    fact: Fact
    readings: Readings
    """All that it may mean, the likeliest first."""
    supported: bool


def facts(text: str) -> list[Fact]:
    """The facts that a text states, in order.

    What only may be one (`may`, «среда», the number of a list's line) is left out.

    Args:
        text: any; the time is linear in its length.

    Returns:
        The facts, with their places in characters.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts("До двенадцатого января, каб. 215, 1 500 руб.")]
        [('date', 'двенадцатого января'), ('room', '215'), ('money', '1 500 руб')]
    """
    return [fact for fact, _ in _certain(text)]


def unsupported(answers: Sequence[Text], contexts: Sequence[Text]) -> list[list[Fact] | None]:
    """The facts of each answer that its context does not state.

    Args:
        answers: n texts, None where there is none.
        contexts: n texts, None where what the answer was made from is not known.

    Returns:
        A list a case, empty where all are supported; None where the answer states no fact, or a side is missing.

    Raises:
        ValueError: the two differ in length.

    Stored as: `unsupported_fact_rate` (metrics/table/facts.py).

    Example:
        >>> from yarus.metrics.facts import unsupported
        >>> unsupported(["Приём 13.01 в 14:30."], ["Приём двенадцатого января, в половине третьего."])
        [[Fact(kind='date', text='13.01', start=6, end=11)]]
    """
    return lost(held_against(answers, contexts))


def fact_precision(answers: Sequence[Text], contexts: Sequence[Text]) -> NDArray[np.float64]:
    """Share of each answer's facts that its context states; one that is repeated counts once.

    Args:
        answers, contexts: as `unsupported` takes them.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the answer states no fact, or a side is missing.

    Raises:
        ValueError: the two differ in length.

    Stored as: `avg_fact_precision`, `avg_citation_fact_precision` (metrics/table/facts.py).

    Example:
        >>> from yarus.metrics.facts import fact_precision
        >>> fact_precision(["В среду, каб. 215.", "Да."], ["Каб. 215, по четвергам.", "Да."])
        array([0.5, nan])
    """
    return shares(held_against(answers, contexts))


def fact_recall(answers: Sequence[Text], references: Sequence[Text]) -> NDArray[np.float64]:
    """Share of each reference's facts that the answer states; one that is repeated counts once.

    Args:
        answers: n texts, None where there is none.
        references: n texts, None where there is none.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the reference states no fact, or a side is missing.

    Raises:
        ValueError: the two differ in length.

    Stored as: `avg_fact_recall` (metrics/table/facts.py).

    Example:
        >>> from yarus.metrics.facts import fact_recall
        >>> fact_recall(["1500 рублей"], ["Полторы тысячи рублей до 12.01"])
        array([0.5])
    """
    return shares(held_against(references, answers))


def held_against(
    stating: Sequence[Text], supporting: Sequence[Text], aside: Sequence[Text] | None = None
) -> list[list[Held] | None]:
    """The facts of each text, and whether the other one states them: what the other functions are made of.

    Args:
        stating: n texts, None where there is none.
        supporting: n texts, None where there is none.
        aside: n texts, such as questions: a fact that only this one has besides is nobody's own, and left out.

    Returns:
        For each case its facts in order; None where none is left, or a side is missing.

    Raises:
        ValueError: they differ in length.

    Example:
        >>> from yarus.metrics.facts import held_against
        >>> [(held.fact.text, held.supported) for held in held_against(["5 дней, каб. 2"], ["5 дней"], ["каб. 2?"])[0]]
        [('5 дней', True)]
    """
    asides = [None] * len(stating) if aside is None else aside
    if not len(stating) == len(supporting) == len(asides):
        raise ValueError(f"{len(stating)} texts but {len(supporting)} to hold them against: give one of each a case")
    return [_held(*texts) for texts in zip(stating, supporting, asides, strict=True)]


def lost(held: Sequence[Sequence[Held] | None]) -> list[list[Fact] | None]:
    """The facts without support, of what `held_against` gives.

    Example:
        >>> from yarus.metrics.facts import held_against, lost
        >>> lost(held_against(["5 дней", "Да."], ["6 дней", "Да."]))
        [[Fact(kind='number', text='5 дней', start=0, end=6)], None]
    """
    return [None if each is None else [one.fact for one in each if not one.supported] for each in held]


def shares(held: Sequence[Sequence[Held] | None]) -> NDArray[np.float64]:
    """Share of different facts that have support, of what `held_against` gives; NaN where it gives None.

    Example:
        >>> from yarus.metrics.facts import held_against, shares
        >>> shares(held_against(["5 дней, каб. 2"], ["5 дней"]))
        array([0.5])
    """
    return np.array([np.nan if each is None else _share(each) for each in held], np.float64)


def _held(stating: Text, supporting: Text, aside: Text) -> list[Held] | None:
    if stating is None or supporting is None or not (stated := _certain(stating)):
        return None
    known = _known(supporting)
    found = [Held(fact, readings, _supports(known, readings)) for fact, readings in stated]
    if not aside or all(held.supported for held in found):
        return found
    known = _known(aside)
    return [held for held in found if held.supported or not _supports(known, held.readings)] or None


def _share(held: Sequence[Held]) -> float:
    """Of different facts: what is said several times is supported if it is every time."""
    different: dict[Reading, bool] = {}
    for _, readings, supported in held:
        different[readings[0]] = supported and different.get(readings[0], True)
    return sum(different.values()) / len(different)


def _certain(text: str) -> list[tuple[Fact, Readings]]:
    """The facts without those in doubt, with their places in the text as it was given."""
    found, places = _stated(text)
    certain = []
    for fact in found:
        if not fact.doubtful:
            start, end = (fact.start, fact.end) if places is None else (places[fact.start], places[fact.end - 1] + 1)
            certain.append((Fact(fact.kind, text[start:end], start, end), fact.readings))
    return certain


def _stated(text: str) -> tuple[list[Stated], list[int] | None]:
    """The facts of a text with their places in its plain form, and the places of that, as `plain` gives them."""
    low, places = plain(text)
    if places is not None:
        text = "".join(text[place] for place in places[:-1])
    apart = sorted(addresses(low), key=lambda token: token.start)
    if apart:
        low, text = blanked(low, apart), blanked(text, apart)
    found = join(tokens(low, text), low)
    return read(sorted((*found, *apart), key=lambda token: token.start) if apart else found, low), places


@lru_cache(128)  # many questions are about the same pages
def _known(text: str) -> frozenset[Reading]:
    """All that a text supports: a date its month and its year, a phone its local number."""
    known: set[Reading] = set()
    for fact in _stated(text)[0] if text else ():
        if fact.doubtful and fact.kind not in ("date", "weekday"):  # of a list's line, or "one of them"
            continue
        known.update(fact.readings)
        for reading in fact.readings:
            known.update(_weaker(reading))
    return frozenset(known)


def _weaker(reading: Reading) -> Iterable[Reading]:
    """What a statement says besides."""
    match reading:
        case ("q", value, None, _):
            yield from (("any", value), ("bare", value))
            if value % 1 == 0:
                yield "c", f"{value:.0f}"
        case ("q", value, unit, base):
            yield from (("any", value), ("base", unit, base))
        case ("d", None, month, day):
            yield from (("d", None, month, None), ("undated", month, day), ("undated", month, None))
        case ("d", year, month, day):
            yield from (("any", year), ("year", year), ("d", year, None, None))
            if month is not None:
                yield from (("d", None, month, day), ("d", year, month, None), ("d", None, month, None))
        case ("p", digits):
            yield from (("p", digits[-n:]) for n in LOCAL_PHONES)
            yield "any", float(digits)
        case ("c", letters):
            if (number := NUMBER_OF_CODE.fullmatch(letters)) is not None:
                yield "any", float(number[1])


def _supports(known: frozenset[Reading], readings: Readings) -> bool:
    """Whether any reading of a fact is known."""
    return any(_is_known(reading, known) for reading in readings)


def _is_known(reading: Reading, known: frozenset[Reading]) -> bool:
    if reading in known:
        return True
    match reading:
        case ("q", value, None, _):
            return ("any", value) in known
        case ("q", value, unit, base):
            return ("base", unit, base) in known or ("bare", value) in known
        case ("p", digits):
            return len(digits) < 8 and ("any", float(digits)) in known
        case ("d", year, month, day):
            return year is not None and ("year", year) in known and ("undated", month, day) in known
    return False
