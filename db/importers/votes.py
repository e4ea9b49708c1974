"""Votes of users, such as a thumb up or down, as the marks 5 and 1: alike in tables and in traces."""

import re
from collections.abc import Sequence
from typing import Any

GOOD, BAD = 5, 1
NAMES = (
    "feedback",
    "thumb",
    "vote",
    "user_score",
    "user_rating",
    "liked",
    "отзыв",
    "лайк",
    "голос",
    "оценка_пользователя",
)
"""Parts of names by which a user voted; other scores are of judges and annotators."""
AGAINST = ("down", "dislike", "дизлайк")
"""Parts of names by which a yes is a vote against the answer."""
WORDS = {
    **dict.fromkeys(
        ("up", "thumb up", "thumbs up", "upvote", "positive", "good", "like", "liked", "true", "👍", "лайк", "хорошо"),
        GOOD,
    ),
    **dict.fromkeys(
        ("down", "thumb down", "thumbs down", "downvote", "negative", "bad", "dislike", "disliked", "false", "👎",
         "дизлайк", "плохо"),
        BAD,
    ),
}  # fmt: skip
NUMBERS = {1: GOOD, 0: BAD, -1: BAD}
SCALES: tuple[set[float], ...] = (set(), {0, 1}, {-1, 1})
"""The numbers of a column of votes: a 1 alone may be the worst of five, and a 0 between -1 and 1 is no vote."""
TONES = re.compile("[\N{VARIATION SELECTOR-16}\U0001f3fb-\U0001f3ff]")
"""What follows an emoji to change its look."""


def is_vote(name: str) -> bool:
    """Return whether a name says that a user voted, and that a yes is for the answer."""
    spelled = re.sub(r"[\s-]+", "_", name.casefold())
    return any(part in spelled for part in NAMES) and not any(part in spelled for part in AGAINST)


def read_vote(value: Any) -> int | None:
    """Return 5 for a vote for the answer, 1 for one against it, None if the value is no vote."""
    number = _number(value)
    if number is not None:
        return NUMBERS.get(number)  # type: ignore[call-overload, no-any-return]
    return WORDS.get(re.sub(r"[\s_-]+", " ", TONES.sub("", str(value))).strip().casefold())


def are_votes(values: Sequence[Any], *, named: bool = True) -> bool:
    """Return whether a column has votes, and not marks from 1 to 5.

    Args:
        values: of the column that are not empty.
        named: whether somebody says that users voted: else 0, 1, true and false may be a judge's.
    """
    numbers = {number for value in values if (number := _number(value)) is not None}
    telling = named or not (numbers or any(str(value).strip().casefold() in ("true", "false") for value in values))
    return telling and numbers in SCALES and 5 * sum(read_vote(value) is not None for value in values) > 4 * len(values)


def _number(value: Any) -> float | None:
    """The number that a value is or says; a yes or no is none."""
    try:
        return None if isinstance(value, bool) or not isinstance(value, int | float | str) else float(value)
    except (ValueError, OverflowError):
        return None
