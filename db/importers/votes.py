"""Votes of users, such as a thumb up or down, as the marks 5 and 1: alike in tables and in traces."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

GOOD, BAD = 5, 1
FOR = {"up", "thumbsup", "upvote", "upvotes", "upvoted", "like", "likes", "liked", "лайк", "лайки"}
"""Words in names by which a yes is a vote for the answer."""
AGAINST = {
    "down", "thumbsdown", "downvote", "downvotes", "downvoted", "dislike", "dislikes", "disliked", "дизлайк",
    "дизлайки",
}  # fmt: skip
"""Words in names by which a yes is a vote against the answer."""
VOTES = (FOR | AGAINST) - {"up", "down"} | {
    "feedback", "thumb", "thumbs", "vote", "votes", "voted", "reaction", "reactions", "helpful", "отзыв", "голос",
    "голоса", "реакция", "реакции", "полезно", "полезен",
}  # fmt: skip
"""Words in names by which a user voted."""
USERS = {"user", "users", "customer", "client", "пользователя", "пользователей", "клиента"}
RATINGS = {"rating", "mark", "stars", "оценка", "рейтинг", "балл"}
MARKS = RATINGS | {"score"}
"""Words that, beside a user, say that users gave a mark; alone they may name a judge's mark."""
BESIDE = {*FOR, *AGAINST, *USERS, *MARKS} | {
    "answer", "response", "message", "is", "was", "or", "value", "type", "ответ", "ответа",
}  # fmt: skip
"""Words that a name of votes may have besides; with any other, such as `judge`, it is not of users."""
YES_NO = {**dict.fromkeys(("true", "yes", "да"), 1), **dict.fromkeys(("false", "no", "нет"), 0)}
WORDS = {
    **dict.fromkeys(
        ("up", "thumb up", "thumbs up", "upvote", "positive", "good", "like", "liked", "👍", "лайк", "хорошо"), GOOD
    ),
    **dict.fromkeys(
        ("down", "thumb down", "thumbs down", "downvote", "negative", "bad", "dislike", "disliked", "👎", "дизлайк",
         "плохо"),
        BAD,
    ),
}  # fmt: skip
NUMBERS = {1: GOOD, 0: BAD, -1: BAD}
AROUND_ZERO = {1: GOOD, -1: BAD}
"""Where -1 is a vote against the answer, 0 is not a vote."""
INVERTED = {1: BAD, 0: GOOD}
"""In a column that says who disliked an answer."""
TONES = re.compile("[\N{VARIATION SELECTOR-16}\U0001f3fb-\U0001f3ff]")
"""What follows an emoji to change its look."""


def is_of_users(name: str) -> bool:
    """Return whether a name says that users gave what it names: votes for or against answers, or marks."""
    words = _words(name)
    return words <= VOTES | BESIDE and bool(words & VOTES or (words & USERS and words & MARKS))


def is_against(name: str) -> bool:
    """Return whether a name says that a yes is a vote against the answer."""
    words = _words(name)
    return bool(words & AGAINST) and not words & FOR


def read_named_vote(name: str, value: Any) -> int | None:
    """Return 5 or 1 for a vote that stands alone under its name, as in traces; None for others and for ratings.

    One rating does not tell its scale.
    """
    if not is_of_users(name) or (_words(name) & RATINGS and not _words(name) & VOTES):
        return None
    return read_vote(value, INVERTED if is_against(name) else NUMBERS)


def read_vote(value: Any, numbers: Mapping[int, int]) -> int | None:
    """Return 5 for a vote for the answer, 1 for one against it, None if the value is not a vote.

    Args:
        value: of a cell or a score.
        numbers: the mark of each number; of a yes as of 1, of a no as of 0.
    """
    number = _number(value)
    if number is not None:
        return numbers.get(number)  # type: ignore[call-overload, no-any-return]
    return WORDS.get(_spelled(value))


def read_scale(values: Iterable[Any], name: str) -> Mapping[int, int] | None:
    """Return what the numbers in a column of votes mean; None if they are marks from 1 to 5.

    In a column such as `upvotes`, numbers from 2 to 5 are counts and mean nothing. If every value of `score` is 1, it
    is the worst mark.

    Args:
        values: all that are not empty, for one of them may tell the scale.
        name: of the column.
    """
    seen = set()
    for value in values:
        if (number := _number(value)) is not None:
            if GOOD >= number > 1:
                return {} if _words(name) & (FOR | AGAINST) else None
            seen.add(number)
    if (seen and seen.isdisjoint(NUMBERS)) or (seen == {1} and name == "score"):
        return None
    if is_against(name):
        return INVERTED
    return AROUND_ZERO if -1 in seen else NUMBERS


def are_votes(values: Sequence[Any], name: str) -> bool:
    """Return whether most values of a column are votes for and against answers.

    Numbers, yes and no are votes only if the name says that users voted: else they may be a judge's. If every value is
    1, they are votes only if the name has a word for votes.
    """
    numbers = {number for value in values if (number := _number(value)) is not None}
    if (
        not numbers <= NUMBERS.keys()
        or (numbers and (not is_of_users(name) or is_against(name)))
        or (numbers == {1} and not _words(name) & VOTES)
    ):
        return False
    scale = read_scale(values, name)
    return scale is not None and 2 * sum(read_vote(value, scale) is not None for value in values) > len(values)


def is_vote_or_number(value: Any) -> bool:
    """Return whether a value is a vote or a number, and not a comment."""
    return _number(value) is not None or _spelled(value) in WORDS


def _number(value: Any) -> float | None:
    """The number that a value is or says; 1 for a yes, 0 for a no."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return YES_NO.get(_spelled(value))


def _spelled(value: Any) -> str:
    return re.sub(r"[\s_-]+", " ", TONES.sub("", str(value))).strip().casefold()


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-zа-я])(?=[A-ZА-Я])", " ", name).casefold()))
