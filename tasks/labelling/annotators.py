"""Names of annotators."""

import re

from db.errors import InputError


def annotator(given: str) -> str:
    """The name without spaces around it.

    Raises:
        InputError: it is no name: not 1 to 60 letters, digits, spaces and `. @ - _`.
    """
    name = given.strip()
    if not re.fullmatch(r"[\w .@-]{1,60}", name):
        raise InputError(f"no name of an annotator: {given[:80]!r}; 1 to 60 letters, digits, spaces and . @ - _ are")
    return name
