"""Facts of an answer that rules can check without a model: numbers, dates, sums, phones, rooms.

Facts are extracted from Russian and English texts in a canonical form: «двенадцатого января», 12.01 and "January 12th"
are equal, and so are «полторы тысячи» and 1 500. A text supports a fact if it states it, in whatever form.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.facts.addresses import blank_tokens, find_addresses
from yarus.metrics.facts.grammar import parse_facts
from yarus.metrics.facts.number_words import merge_numbers
from yarus.metrics.facts.numerals import Reading
from yarus.metrics.facts.parser import Fact as Stated
from yarus.metrics.facts.spelling import normalize_spelling
from yarus.metrics.facts.tokens import tokenize

__all__ = [
    "CheckedFact",
    "Fact",
    "check_facts",
    "fact_precision",
    "fact_recall",
    "facts",
    "supported_shares",
    "unsupported",
    "unsupported_facts",
]

Text = str | None
Readings = tuple[Reading, ...]
NUMBER_OF_CODE = re.compile(r"\D*(\d{1,15})")
LOCAL_PHONES = range(5, 10)
"""Numbers of digits of a local phone, within a town or building."""


class Fact(NamedTuple):
    """A fact that a text states."""

    kind: str
    """number, date, time, weekday, money, percent, phone, email, url, room or code."""
    text: str
    """The fact as written in the text."""
    start: int
    end: int


class CheckedFact(NamedTuple):
    """A fact that was checked against a text."""

    fact: Fact
    readings: Readings
    """All possible readings, the likeliest first."""
    supported: bool


def facts(text: str) -> list[Fact]:
    """Return the facts that a text states, in order.

    Ambiguous words (`may`, «среда», the number of a list item) are left out.

    Args:
        text: any; the time is linear in its length.

    Returns:
        The facts, with their positions in characters.

    Example:
        >>> from yarus.metrics.facts import facts
        >>> [(fact.kind, fact.text) for fact in facts("До двенадцатого января, каб. 215, 1 500 руб.")]
        [('date', 'двенадцатого января'), ('room', '215'), ('money', '1 500 руб')]
    """
    return [fact for fact, _ in _certain_facts(text)]


def unsupported(answers: Sequence[Text], contexts: Sequence[Text]) -> list[list[Fact] | None]:
    """Return the facts of each answer that its context does not state.

    Args:
        answers: n texts, None for a missing answer.
        contexts: n texts, None if the source of the answer is unknown.

    Returns:
        One list per case, empty if all are supported; None if the answer states no fact, or a text is missing.

    Raises:
        ValueError: different lengths.

    Stored as: `unsupported_fact_rate` (metrics/table/facts.py).

    Example:
        >>> from yarus.metrics.facts import unsupported
        >>> unsupported(["Приём 13.01 в 14:30."], ["Приём двенадцатого января, в половине третьего."])
        [[Fact(kind='date', text='13.01', start=6, end=11)]]
    """
    return unsupported_facts(check_facts(answers, contexts))


def fact_precision(answers: Sequence[Text], contexts: Sequence[Text]) -> NDArray[np.float64]:
    """Return the share of each answer's facts that its context states; a repeated fact counts once.

    Args:
        answers, contexts: as in `unsupported`.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if the answer states no fact, or a text is missing.

    Raises:
        ValueError: different lengths.

    Stored as: `avg_fact_precision`, `avg_citation_fact_precision` (metrics/table/facts.py).

    Example:
        >>> from yarus.metrics.facts import fact_precision
        >>> fact_precision(["В среду, каб. 215.", "Да."], ["Каб. 215, по четвергам.", "Да."])
        array([0.5, nan])
    """
    return supported_shares(check_facts(answers, contexts))


def fact_recall(answers: Sequence[Text], references: Sequence[Text]) -> NDArray[np.float64]:
    """Return the share of each reference's facts that the answer states; a repeated fact counts once.

    Args:
        answers: n texts, None for a missing answer.
        references: n texts, None for a missing reference.

    Returns:
        float64 (n,), 0 to 1, higher is better; NaN if the reference states no fact, or a text is missing.

    Raises:
        ValueError: different lengths.

    Stored as: `avg_fact_recall` (metrics/table/facts.py).

    Example:
        >>> from yarus.metrics.facts import fact_recall
        >>> fact_recall(["1500 рублей"], ["Полторы тысячи рублей до 12.01"])
        array([0.5])
    """
    return supported_shares(check_facts(references, answers))


def check_facts(
    stating: Sequence[Text], supporting: Sequence[Text], aside: Sequence[Text] | None = None
) -> list[list[CheckedFact] | None]:
    """Return the facts of each text, and whether the other text states them; the other functions are based on it.

    Args:
        stating: n texts, None for a missing text.
        supporting: n texts, None for a missing text.
        aside: n texts, such as questions: an unsupported fact that this text also states is left out.

    Returns:
        The facts of each case in order; None if none is left, or a text is missing.

    Raises:
        ValueError: different lengths.

    Example:
        >>> from yarus.metrics.facts import check_facts
        >>> [(held.fact.text, held.supported) for held in check_facts(["5 дней, каб. 2"], ["5 дней"], ["каб. 2?"])[0]]
        [('5 дней', True)]
    """
    asides = [None] * len(stating) if aside is None else aside
    if not len(stating) == len(supporting) == len(asides):
        raise ValueError(f"{len(stating)} texts but {len(supporting)} to hold them against: give one of each a case")
    return [_check_facts(*texts) for texts in zip(stating, supporting, asides, strict=True)]


def unsupported_facts(held: Sequence[Sequence[CheckedFact] | None]) -> list[list[Fact] | None]:
    """Return the facts without support, from the result of `check_facts`.

    Example:
        >>> from yarus.metrics.facts import check_facts, unsupported_facts
        >>> unsupported_facts(check_facts(["5 дней", "Да."], ["6 дней", "Да."]))
        [[Fact(kind='number', text='5 дней', start=0, end=6)], None]
    """
    return [None if checks is None else [check.fact for check in checks if not check.supported] for checks in held]


def supported_shares(held: Sequence[Sequence[CheckedFact] | None]) -> NDArray[np.float64]:
    """Return the share of distinct facts with support, from the result of `check_facts`; NaN for None.

    Example:
        >>> from yarus.metrics.facts import check_facts, supported_shares
        >>> supported_shares(check_facts(["5 дней, каб. 2"], ["5 дней"]))
        array([0.5])
    """
    return np.array([np.nan if checks is None else _supported_share(checks) for checks in held], np.float64)


def _check_facts(stating: Text, supporting: Text, aside: Text) -> list[CheckedFact] | None:
    if stating is None or supporting is None or not (statements := _certain_facts(stating)):
        return None
    supported = _supported_readings(supporting)
    checks = [CheckedFact(fact, readings, _is_supported(supported, readings)) for fact, readings in statements]
    if not aside or all(check.supported for check in checks):
        return checks
    supported = _supported_readings(aside)
    return [check for check in checks if check.supported or not _is_supported(supported, check.readings)] or None


def _supported_share(checks: Sequence[CheckedFact]) -> float:
    """Return the share of distinct facts with support; a repeated fact is supported if every mention is."""
    different: dict[Reading, bool] = {}
    for _, readings, supported in checks:
        different[readings[0]] = supported and different.get(readings[0], True)
    return sum(different.values()) / len(different)


def _certain_facts(text: str) -> list[tuple[Fact, Readings]]:
    """Return the facts without the doubtful ones, with their positions in the original text."""
    statements, offsets = _parse(text)
    certain = []
    for fact in statements:
        if not fact.doubtful:
            start, end = (fact.start, fact.end) if offsets is None else (offsets[fact.start], offsets[fact.end - 1] + 1)
            certain.append((Fact(fact.kind, text[start:end], start, end), fact.readings))
    return certain


def _parse(text: str) -> tuple[list[Stated], list[int] | None]:
    """Return the facts of a text with their positions in its normal form, and the positions of `normalize_spelling`."""
    low, offsets = normalize_spelling(text)
    if offsets is not None:
        text = "".join(text[offset] for offset in offsets[:-1])
    addresses = sorted(find_addresses(low), key=lambda token: token.start)
    if addresses:
        low, text = blank_tokens(low, addresses), blank_tokens(text, addresses)
    tokens = merge_numbers(tokenize(low, text), low)
    return parse_facts(
        sorted((*tokens, *addresses), key=lambda token: token.start) if addresses else tokens, low
    ), offsets


@lru_cache(128)  # many questions concern the same pages
def _supported_readings(text: str) -> frozenset[Reading]:
    """Return all readings that a text supports: a date also its month and its year, a phone its local number."""
    supported: set[Reading] = set()
    for fact in _parse(text)[0] if text else ():
        if fact.doubtful and fact.kind not in ("date", "weekday"):  # the number of a list item, or "one of them"
            continue
        supported.update(fact.readings)
        for reading in fact.readings:
            supported.update(_implied_readings(reading))
    return frozenset(supported)


def _implied_readings(reading: Reading) -> Iterable[Reading]:
    """Yield the readings that a reading implies."""
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


def _is_supported(supported: frozenset[Reading], readings: Readings) -> bool:
    """Return whether any reading of a fact is supported."""
    return any(_is_reading_supported(reading, supported) for reading in readings)


def _is_reading_supported(reading: Reading, supported: frozenset[Reading]) -> bool:
    if reading in supported:
        return True
    match reading:
        case ("q", value, None, _):
            return ("any", value) in supported
        case ("q", value, unit, base):
            return ("base", unit, base) in supported or ("bare", value) in supported
        case ("p", digits):
            return len(digits) < 8 and ("any", float(digits)) in supported
        case ("d", year, month, day):
            return year is not None and ("year", year) in supported and ("undated", month, day) in supported
    return False
