"""What counts as a refusal to answer."""

import unicodedata

from yarus.db.words import Words


def declined(answer: str, phrases: list[str], path: str | None = None) -> str | None:
    """Why an answer is none, or None if it is one.

    An answer without text is a refusal, not an error: otherwise silence would take the hard questions out of the means.

    Args:
        answer: what the system said.
        phrases: an answer that has one of them in its first sentence is a refusal, whatever their case.
        path: what the system says that it did; `hidden`: its gate kept the answer from the user.
    """
    if path == HIDDEN:
        return Words("the system's gate hid the answer")
    if not answer.strip():
        return Words("the answer is empty")
    first = _plain(answer.strip()).split("\n")[0].split(". ")[0]
    return Words("the system declined to answer") if any(_plain(phrase) in first for phrase in phrases) else None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().replace("ё", "е")


HIDDEN = "hidden"
"""What `path` says when the system's gate kept the answer from the user."""
