"""Where the reading of a text stands: its tokens, the next of them, the facts so far."""

import re
from collections.abc import Iterator

from metrics.facts.numerals import Reading
from metrics.facts.tokens import Token

LINKS = frozenset(
    {"-", "–", "—", "−", "…", "...", "&", ",", ", и", ", and", "и", "или", "либо", "по", "до"}
    | {"and", "or", "to", "through", "till", "until", "or the", "and the", "to the"}
)
"""What stands between the members of a list or range."""
SHORT = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,4}$")
"""A word that a full stop cuts off rather than a sentence: «тыс.», «мин.», «руб.»."""
MOST_IN_LIST = 40
"""Members of a list or range that get their month or unit from the last."""


class Fact:
    """What a text states, with all that it may mean."""

    __slots__ = ("doubtful", "end", "kind", "readings", "start", "value")

    def __init__(
        self, kind: str, start: int, end: int, readings: tuple[Reading, ...], value: float | None = None
    ) -> None:
        self.kind, self.start, self.end, self.readings, self.value = kind, start, end, readings, value
        self.doubtful = False


class Reader:
    """The tokens of one text, read from left to right."""

    def __init__(self, found: list[Token], low: str) -> None:
        self.tokens, self.low, self.at = found, low, 0
        self.facts: list[Fact] = []

    def next(self, gaps: frozenset[str]) -> Token | None:
        """The token after this one, where only one of these stands between."""
        if self.at >= len(self.tokens):
            return None
        token, end = self.tokens[self.at], self.tokens[self.at - 1].end
        if self.low[end : end + 1] == "." and SHORT.search(self.low, max(0, end - 5), end):
            end += 1
        return token if self.low[end : token.start] in gaps else None

    def add(self, kind: str, token: Token, readings: tuple[Reading, ...], value: float | None = None) -> Fact:
        """Adds a fact that stands where a token does."""
        return self.put(kind, token.start, token.end, readings, value)

    def put(self, kind: str, start: int, end: int, readings: tuple[Reading, ...], value: float | None = None) -> Fact:
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
