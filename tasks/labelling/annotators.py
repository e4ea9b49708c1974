"""Names of annotators."""

import re

from yarus.db.errors import InputError


def is_annotator(name: str) -> bool:
    """Whether it can be the name of an annotator."""
    return re.fullmatch(r"[\w .@-]{1,60}", name) is not None


def annotator(given: str) -> str:
    """The name without spaces around it.

    Raises:
        InputError: it is no name: not 1 to 60 letters, digits, spaces and `. @ - _`.
    """
    name = given.strip()
    if not is_annotator(name):
        raise InputError(
            "no name of an annotator: {given!r}; 1 to 60 letters, digits, spaces and . @ - _ are", given=given[:80]
        )
    return name
