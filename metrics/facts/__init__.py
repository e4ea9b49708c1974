"""What an answer states that can be checked without a model: numbers, dates, sums, phones, rooms, by rule.

Facts are found in Russian and English texts, and brought to one form: «двенадцатого января», 12.01 and "January 12th"
are one, so are «полторы тысячи» and 1 500. A text supports a fact if it states it, in whatever form.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrics.facts.addresses import addresses, blanked
from metrics.facts.grammar import read
from metrics.facts.joined import join
from metrics.facts.numerals import Reading
from metrics.facts.reader import Fact as _Stated
from metrics.facts.spelling import plain
from metrics.facts.tokens import tokens

__all__ = ["Fact", "fact_precision", "fact_recall", "facts", "unsupported"]

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


def facts(text: str) -> list[Fact]:
    """The facts that a text states, in order.

    What only may be one (`may`, «среда», the number of a list's line) is left out.

    Args:
        text: any; the time is linear in its length.

    Returns:
        The facts, with their places in characters.

    Example:
        >>> from metrics.facts import facts
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
        >>> from metrics.facts import unsupported
        >>> unsupported(["Приём 13.01 в 14:30."], ["Приём двенадцатого января, в половине третьего."])
        [[Fact(kind='date', text='13.01', start=6, end=11)]]
    """
    found = _held_against(answers, contexts)
    return [None if each is None else [fact for fact, _, there in each if not there] for each in found]


def fact_precision(answers: Sequence[Text], contexts: Sequence[Text]) -> NDArray[np.float64]:
    """Share of each answer's facts that its context states; one that is repeated counts once.

    Args:
        answers, contexts: as `unsupported` takes them.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN where the answer states no fact, or a side is missing.

    Raises:
        ValueError: the two differ in length.

    Stored as: `avg_fact_precision` (metrics/table/facts.py).

    Example:
        >>> from metrics.facts import fact_precision
        >>> fact_precision(["В среду, каб. 215.", "Да."], ["Каб. 215, по четвергам.", "Да."])
        array([0.5, nan])
    """
    return _shares(_held_against(answers, contexts))


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
        >>> from metrics.facts import fact_recall
        >>> fact_recall(["1500 рублей"], ["Полторы тысячи рублей до 12.01"])
        array([0.5])
    """
    return _shares(_held_against(references, answers))


Held = list[tuple[Fact, Readings, bool]]


def _held_against(stating: Sequence[Text], supporting: Sequence[Text]) -> list[Held | None]:
    """The facts of each text with whether the other one states them; None where there is nothing to tell."""
    if len(stating) != len(supporting):
        raise ValueError(f"{len(stating)} texts but {len(supporting)} to hold them against: give one of each a case")
    return [_held(*pair) for pair in zip(stating, supporting, strict=True)]


def _held(stating: Text, supporting: Text) -> Held | None:
    if stating is None or supporting is None or not (stated := _certain(stating)):
        return None
    known = _known(_stated(supporting))
    return [(fact, readings, any(_is_known(of, known) for of in readings)) for fact, readings in stated]


def _shares(found: Iterable[Held | None]) -> NDArray[np.float64]:
    return np.array([np.nan if each is None else _share(each) for each in found], np.float64)


def _share(held: Held) -> float:
    """Of different facts: what is said several times is supported if it is every time."""
    different: dict[Reading, bool] = {}
    for _, readings, there in held:
        different[readings[0]] = there and different.get(readings[0], True)
    return sum(different.values()) / len(different)


def _certain(text: str) -> list[tuple[Fact, Readings]]:
    low, places = plain(text)
    found = []
    for fact in _read(low, text, places):
        if not fact.doubtful:
            start, end = (fact.start, fact.end) if places is None else (places[fact.start], places[fact.end - 1] + 1)
            found.append((Fact(fact.kind, text[start:end], start, end), fact.readings))
    return found


def _stated(text: str) -> list[_Stated]:
    low, places = plain(text)
    return _read(low, text, places)


def _read(low: str, text: str, places: list[int] | None) -> list[_Stated]:
    if places is not None:
        text = "".join(text[place] for place in places[:-1])
    apart = sorted(addresses(low), key=lambda token: token.start)
    if apart:
        low, text = blanked(low, apart), blanked(text, apart)
    found = join(tokens(low, text), low)
    if apart:
        found = sorted((*found, *apart), key=lambda token: token.start)
    return read(found, low)


def _known(found: Iterable[_Stated]) -> set[Reading]:
    """All that a text with these facts supports: a date its month and its year, a phone its local number."""
    known: set[Reading] = set()
    for fact in found:
        if fact.doubtful and fact.kind not in ("date", "weekday"):  # of a list's line, or "one of them"
            continue
        known.update(fact.readings)
        for reading in fact.readings:
            known.update(_weaker(reading))
    return known


def _weaker(reading: Reading) -> Iterable[Reading]:
    """What a statement says besides."""
    match reading:
        case ("q", value, None, _):
            yield from (("any", value), ("bare", value))
            if value % 1 == 0:
                yield "c", f"{value:.0f}"
        case ("q", value, unit, base):
            yield from (("any", value), ("base", unit, base))
        case ("d", year, month, day):
            yield from (("d", None, month, day), ("d", year, month, None), ("d", None, month, None))
            yield from (("d", year, None, None), ("any", year), ("year", year))
            if year is None:
                yield from (("undated", month, day), ("undated", month, None))
        case ("p", digits):
            yield from (("p", digits[-n:]) for n in LOCAL_PHONES)
            yield "any", float(digits)
        case ("c", letters):
            if (number := NUMBER_OF_CODE.fullmatch(letters)) is not None:
                yield "any", float(number[1])


def _is_known(reading: Reading, known: set[Reading]) -> bool:
    """Whether what is stated is supported."""
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
