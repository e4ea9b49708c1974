"""Texts that UTF-8 can hold: JSON may have half an emoji, and neither files nor databases nor tokenizers take it."""


def encodable(text: str) -> str:
    """The text with a question mark for every lone surrogate."""
    return text.encode("utf-8", "replace").decode()
