"""Texts of anybody's as others can take them: JSON may have half an emoji, and characters that a terminal obeys."""

import unicodedata


def encodable(text: str) -> str:
    """The text with a question mark for every lone surrogate, which no file, database or tokenizer takes."""
    return text.encode("utf-8", "replace").decode()


def harmless(text: str) -> str:
    """The text with a mark for every character that a terminal obeys or hides: it may clear the screen, or lie."""
    return "".join(sign if sign in "\n\t" or unicodedata.category(sign)[0] != "C" else "�" for sign in text)
