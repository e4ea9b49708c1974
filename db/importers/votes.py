"""Convert votes of users, such as a thumb up or down, to the marks 5 and 1, in tables and traces alike."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

GOOD, BAD = 5, 1
POSITIVE_WORDS = {"up", "thumbsup", "upvote", "upvotes", "upvoted", "like", "likes", "liked", "лайк", "лайки"}
"""Words in names that make a yes a vote for the answer."""
NEGATIVE_WORDS = {
    "down", "thumbsdown", "downvote", "downvotes", "downvoted", "dislike", "dislikes", "disliked", "дизлайк",
    "дизлайки",
}  # fmt: skip
"""Words in names that make a yes a vote against the answer."""
VOTE_WORDS = (POSITIVE_WORDS | NEGATIVE_WORDS) - {"up", "down"} | {
    "feedback", "thumb", "thumbs", "vote", "votes", "voted", "reaction", "reactions", "helpful", "отзыв", "голос",
    "голоса", "реакция", "реакции", "полезно", "полезен",
}  # fmt: skip
"""Words in names of votes by users."""
USER_WORDS = {"user", "users", "customer", "client", "пользователя", "пользователей", "клиента"}
RATING_WORDS = {"rating", "mark", "stars", "оценка", "рейтинг", "балл"}
MARK_WORDS = RATING_WORDS | {"score"}
"""Words that mean a user's mark in names with a user word; alone they may name a judge's mark."""
OTHER_WORDS = {*POSITIVE_WORDS, *NEGATIVE_WORDS, *USER_WORDS, *MARK_WORDS} | {
    "answer", "response", "message", "is", "was", "or", "value", "type", "ответ", "ответа",
}  # fmt: skip
"""Other words that names of users' votes may have; a name with any further word, such as `judge`, is not theirs."""
BOOLEAN_WORDS = {**dict.fromkeys(("true", "yes", "да"), 1), **dict.fromkeys(("false", "no", "нет"), 0)}
MARK_OF_WORD = {
    **dict.fromkeys(
        ("up", "thumb up", "thumbs up", "upvote", "positive", "good", "like", "liked", "👍", "лайк", "хорошо"), GOOD
    ),
    **dict.fromkeys(
        ("down", "thumb down", "thumbs down", "downvote", "negative", "bad", "dislike", "disliked", "👎", "дизлайк",
         "плохо"),
        BAD,
    ),
}  # fmt: skip
MARK_OF_NUMBER = {1: GOOD, 0: BAD, -1: BAD}
MARK_OF_SIGN = {1: GOOD, -1: BAD}
"""If -1 is a vote against the answer, 0 is not a vote."""
INVERTED_MARKS = {1: BAD, 0: GOOD}
"""For a column of dislikes."""
EMOJI_MODIFIERS = re.compile("[\N{VARIATION SELECTOR-16}\U0001f3fb-\U0001f3ff]")
"""Characters that change the look of the emoji before them."""


def is_user_vote_name(name: str) -> bool:
    """Return whether a name means votes or marks by users."""
    words = _split_words(name)
    return words <= VOTE_WORDS | OTHER_WORDS and bool(words & VOTE_WORDS or (words & USER_WORDS and words & MARK_WORDS))


def is_negative_vote_name(name: str) -> bool:
    """Return whether a yes under this name is a vote against the answer."""
    words = _split_words(name)
    return bool(words & NEGATIVE_WORDS) and not words & POSITIVE_WORDS


def parse_named_vote(name: str, value: Any) -> int | None:
    """Return 5 or 1 for a vote that is known only by its name, as in traces; None for other values and ratings.

    The scale of a single rating is unknown.
    """
    if not is_user_vote_name(name) or (_split_words(name) & RATING_WORDS and not _split_words(name) & VOTE_WORDS):
        return None
    return parse_vote(value, INVERTED_MARKS if is_negative_vote_name(name) else MARK_OF_NUMBER)


def parse_vote(value: Any, numbers: Mapping[int, int]) -> int | None:
    """Return 5 for a vote for the answer, 1 for one against it, None if the value is not a vote.

    Args:
        value: of a cell or a score.
        numbers: number -> mark; a yes counts as 1, a no as 0.
    """
    number = _to_number(value)
    if number is not None:
        return numbers.get(number)  # type: ignore[call-overload, no-any-return]
    return MARK_OF_WORD.get(_normalize_text(value))


def detect_scale(values: Iterable[Any], name: str) -> Mapping[int, int] | None:
    """Return the mark of each number in a column of votes; None if the numbers are marks from 1 to 5.

    In a column such as `upvotes`, numbers from 2 to 5 are counts, which are not votes. If every value of `score` is 1,
    it is the worst mark.

    Args:
        values: all that are not empty, because one value may decide the scale.
        name: of the column.
    """
    seen = set()
    for value in values:
        if (number := _to_number(value)) is not None:
            if GOOD >= number > 1:
                return {} if _split_words(name) & (POSITIVE_WORDS | NEGATIVE_WORDS) else None
            seen.add(number)
    if (seen and seen.isdisjoint(MARK_OF_NUMBER)) or (seen == {1} and name == "score"):
        return None
    if is_negative_vote_name(name):
        return INVERTED_MARKS
    return MARK_OF_SIGN if -1 in seen else MARK_OF_NUMBER


def are_votes(values: Sequence[Any], name: str) -> bool:
    """Return whether most values of a column are votes for and against answers.

    Numbers and booleans are votes only if the name means votes by users: else they may be a judge's. If every value is
    1, they are votes only if the name has a word for votes.
    """
    numbers = {number for value in values if (number := _to_number(value)) is not None}
    if (
        not numbers <= MARK_OF_NUMBER.keys()
        or (numbers and (not is_user_vote_name(name) or is_negative_vote_name(name)))
        or (numbers == {1} and not _split_words(name) & VOTE_WORDS)
    ):
        return False
    scale = detect_scale(values, name)
    return scale is not None and 2 * sum(parse_vote(value, scale) is not None for value in values) > len(values)


def is_vote_or_number(value: Any) -> bool:
    """Return whether a value is a vote or a number, and not a comment."""
    return _to_number(value) is not None or _normalize_text(value) in MARK_OF_WORD


def _to_number(value: Any) -> float | None:
    """Return the number that a value is or contains; 1 for a yes, 0 for a no."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return BOOLEAN_WORDS.get(_normalize_text(value))


def _normalize_text(value: Any) -> str:
    return re.sub(r"[\s_-]+", " ", EMOJI_MODIFIERS.sub("", str(value))).strip().casefold()


def _split_words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-zа-я])(?=[A-ZА-Я])", " ", name).casefold()))
