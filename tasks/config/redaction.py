"""Texts made safe: no passwords of addresses, and nothing that JSON, a terminal or a spreadsheet cannot take."""

import re
import unicodedata
from typing import Any

from yarus.db.engine import CONFIDENTIAL


def redact_urls(text: str) -> str:
    """The text with the passwords and secret options of all URLs in it replaced, for messages."""
    text = re.sub(r"(://[^\s:/@]*:)[^\s/]+@", r"\1***@", text)
    text = re.sub(r"(https?://)[^\s:/@?#]+@", r"\1***@", text)  # a token instead of a user name
    return re.sub(rf"([?&]{CONFIDENTIAL}=)[^\s&#'\"]*[^\s&#'\":;,.)]", r"\1***", text, flags=re.IGNORECASE)


def redact_urls_within(value: Any) -> Any:
    """The value with all texts in it masked."""
    if isinstance(value, dict):
        return {name: redact_urls_within(part) for name, part in value.items()}
    if isinstance(value, list):
        return [redact_urls_within(part) for part in value]
    return redact_urls(value) if isinstance(value, str) else value


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
