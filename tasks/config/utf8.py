"""Texts of anybody's as others can take them: half an emoji in JSON, and what a terminal or a spreadsheet obeys."""

import unicodedata

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def encodable(text: str) -> str:
    """The text with a question mark for every lone surrogate, which no file, database or tokenizer takes."""
    return text.encode("utf-8", "replace").decode()


def harmless(text: str) -> str:
    """The text with a mark for every character that a terminal obeys or hides: it may clear the screen, or lie."""
    return "".join(sign if sign in "\n\t" or unicodedata.category(sign)[0] != "C" else "�" for sign in text)


def quoted(text: str) -> str:
    """The text with an apostrophe in front, which makes it a text to a spreadsheet, where it would be a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def unquoted(text: str) -> str:
    """The text as it was before `quoted`."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text
