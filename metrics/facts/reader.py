"""Where the reading of a text stands: its tokens, the next of them, the facts so far."""

import re
from collections.abc import Iterator
from math import nan

from yarus.metrics.facts.numerals import Reading
from yarus.metrics.facts.tokens import Token

LINKS = frozenset(
    {"-", "–", "—", "−", "…", "...", "&", ",", ", и", ", and", "и", "или", "либо", "по", "до"}
    | {"and", "or", "to", "through", "till", "until", "or the", "and the", "to the"}
)
"""What stands between the members of a list or range."""
SHORT = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,4}$")
"""A word that a full stop cuts off rather than a sentence: «тыс.», «мин.», «руб.»."""
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
MOST_IN_LIST = 40
"""Members of a list or range that get their month or unit from the last."""


def is_whole(value: float, least: int, most: int) -> bool:
    """Whether a value is a whole number in a range; NaN is none.

    Example:
        >>> from yarus.metrics.facts.reader import is_whole
        >>> is_whole(31.0, 1, 31), is_whole(1.5, 1, 31), is_whole(float("nan"), 1, 31)
        (True, False, False)
    """
    return least <= value <= most and value % 1 == 0


class Fact:
    """What a text states, with all that it may mean."""

    __slots__ = ("doubtful", "end", "kind", "readings", "start", "value")

    def __init__(self, kind: str, start: int, end: int, readings: tuple[Reading, ...], value: float = nan) -> None:
        self.kind, self.start, self.end, self.readings, self.value = kind, start, end, readings, value
        self.doubtful = False


class Reader:
    """The tokens of one text, read from left to right."""

    def __init__(self, found: list[Token], low: str) -> None:
        self.tokens, self.low, self.at = found, low, 0
        self.facts: list[Fact] = []

    def peek(self) -> Token | None:
        """The token after this one."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def next(self, gaps: frozenset[str]) -> Token | None:
        """The token after this one, where only one of these stands between."""
        if (token := self.peek()) is None:
            return None
        end = self.tokens[self.at - 1].end
        if self.low[end : end + 1] == "." and SHORT.search(self.low, max(0, end - 5), end):
            end += 1
        return token if self.low[end : token.start] in gaps else None

    def add(self, kind: str, token: Token, readings: tuple[Reading, ...]) -> Fact:
        """Adds a fact that stands where a token does."""
        return self.put(kind, token.start, token.end, readings, token.value)

    def put(self, kind: str, start: int, end: int, readings: tuple[Reading, ...], value: float = nan) -> Fact:
        """Adds a fact."""
        fact = Fact(kind, start, end, readings, value)
        self.facts.append(fact)
        return fact

    def linked(self, fact: Fact) -> Iterator[tuple[Fact, str]]:
        """The facts before it in its list or range, the nearest first, with what links them."""
        for place in range(len(self.facts) - 2, max(-1, len(self.facts) - 2 - MOST_IN_LIST), -1):
            other = self.facts[place]
            gap = self.low[other.end : fact.start].strip(" \u00a0\n")
            if gap not in LINKS:
                return
            yield other, gap
            fact = other
