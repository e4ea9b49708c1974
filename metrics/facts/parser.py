"""The state of parsing a text: its tokens, the current position, and the facts so far."""

import re
from collections.abc import Iterator
from math import nan

from yarus.metrics.facts.numerals import Reading
from yarus.metrics.facts.tokens import Token

LINKS = frozenset(
    {"-", "–", "—", "−", "…", "...", "&", ",", ", и", ", and", "и", "или", "либо", "по", "до"}
    | {"and", "or", "to", "through", "till", "until", "or the", "and the", "to the"}
)
"""Text between the members of a list or range."""
SHORT = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,4}$")
"""A word whose full stop is an abbreviation rather than the end of a sentence: «тыс.», «мин.», «руб.»."""
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
MOST_IN_LIST = 40
"""Members of a list or range that get their month or unit from the last one."""


def is_whole(value: float, least: int, most: int) -> bool:
    """Return whether a value is a whole number in a range; NaN is not.

    Example:
        >>> from yarus.metrics.facts.parser import is_whole
        >>> is_whole(31.0, 1, 31), is_whole(1.5, 1, 31), is_whole(float("nan"), 1, 31)
        (True, False, False)
    """
    return least <= value <= most and value % 1 == 0


class Fact:
    """A statement of a text, with all its possible readings."""

    __slots__ = ("doubtful", "end", "kind", "readings", "start", "value")

    def __init__(self, kind: str, start: int, end: int, readings: tuple[Reading, ...], value: float = nan) -> None:
        self.kind, self.start, self.end, self.readings, self.value = kind, start, end, readings, value
        self.doubtful = False


class FactParser:
    """A parser that reads the tokens of one text from left to right."""

    def __init__(self, tokens: list[Token], low: str) -> None:
        self.tokens, self.low, self.position = tokens, low, 0
        self.facts: list[Fact] = []

    def peek(self) -> Token | None:
        """Return the next token, or None at the end."""
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def next_token(self, gaps: frozenset[str]) -> Token | None:
        """Return the next token, if only one of these gaps lies before it."""
        if (token := self.peek()) is None:
            return None
        end = self.tokens[self.position - 1].end
        if self.low[end : end + 1] == "." and SHORT.search(self.low, max(0, end - 5), end):
            end += 1
        return token if self.low[end : token.start] in gaps else None

    def add(self, kind: str, token: Token, readings: tuple[Reading, ...]) -> Fact:
        """Add a fact with the position of a token."""
        return self.add_span(kind, token.start, token.end, readings, token.value)

    def add_span(self, kind: str, start: int, end: int, readings: tuple[Reading, ...], value: float = nan) -> Fact:
        """Add a fact."""
        fact = Fact(kind, start, end, readings, value)
        self.facts.append(fact)
        return fact

    def linked_facts(self, fact: Fact) -> Iterator[tuple[Fact, str]]:
        """Yield the facts before it in its list or range, the nearest first, with the text that links them."""
        for index in range(len(self.facts) - 2, max(-1, len(self.facts) - 2 - MOST_IN_LIST), -1):
            earlier = self.facts[index]
            gap = self.low[earlier.end : fact.start].strip(" \u00a0\n")
            if gap not in LINKS:
                return
            yield earlier, gap
            fact = earlier
