"""Make texts safe: redact passwords in URLs, and replace what JSON, terminals or spreadsheets cannot take."""

import re
import unicodedata
from typing import Any

from yarus.db.engine import CONFIDENTIAL_OPTIONS


def redact_urls(text: str) -> str:
    """Redact the passwords and secret options of all URLs in a text."""
    text = re.sub(r"(://[^\s:/@]*:)[^\s/]+@", r"\1***@", text)
    text = re.sub(r"(https?://)[^\s:/@?#]+@", r"\1***@", text)  # a token in place of a user name
    return re.sub(rf"([?&]{CONFIDENTIAL_OPTIONS}=)[^\s&#'\"]*[^\s&#'\":;,.)]", r"\1***", text, flags=re.IGNORECASE)


def redact_urls_within(value: Any) -> Any:
    """Redact the URLs in all texts of a nested value."""
    if isinstance(value, dict):
        return {name: redact_urls_within(part) for name, part in value.items()}
    if isinstance(value, list):
        return [redact_urls_within(part) for part in value]
    return redact_urls(value) if isinstance(value, str) else value


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Characters that start a formula in a spreadsheet."""


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by question marks, because no file, database or tokenizer accepts them."""
    return text.encode("utf-8", "replace").decode()


def escape_control_characters(text: str) -> str:
    """Replace characters that a terminal interprets or hides: they could clear the screen or mislead."""
    return "".join(point if point in "\n\t" or unicodedata.category(point)[0] != "C" else "�" for point in text)


def escape_formula(text: str) -> str:
    """Prefix a text that would be a spreadsheet formula with an apostrophe, which makes it a text."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def unescape_formula(text: str) -> str:
    """Return the text as it was before `escape_formula`."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text
