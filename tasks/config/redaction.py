"""Passwords out of addresses, and of texts that hold some."""

import re
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
