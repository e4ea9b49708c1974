"""E-mails, pages and phones, which have distinctive patterns and are extracted first."""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from yarus.metrics.facts.tokens import Token

EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
DOMAINS = "ru|рф|su|com|org|net|edu|info|io|gov|me|uk|de|by|kz"
URL = re.compile(
    r"(?:https?://|(?<!\w)www\.)[^\s<>\"«»\0]+"
    r"|(?<![\w@.-])[a-zа-я0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,5}"
    rf"\.(?:{DOMAINS})(?![\w-])(?:/[^\s<>\"«»\0]*)?"
)
SCHEME = re.compile(r"^(?:https?://)?(?:www\.)?")
HOST = re.compile(rf"www\.|\.(?:{DOMAINS})(?![\w-])")
PHONE = re.compile(
    r"(?<![\w+])(?:"
    r"(?:\+?7|8)[\s(.-]{0,3}\d{3}[\s).-]{0,3}\d{3}[\s.-]?\d\d[\s.-]?\d\d"
    r"|(?:\+?7|8)[\s(.-]{0,3}\d{4}[\s).-]{1,3}\d\d[\s.-]?\d\d[\s.-]?\d\d"
    r"|\+\d{1,3}(?:[\s().-]{1,3}\d{2,4}){2,5}|\+\d{10,15}"
    r"|\(\d{3,5}\)\s?\d{1,3}-\d\d-?\d\d|\(\d{3}\)\s?\d{3}-\d{4}"
    r")(?!\d)"
)
PHONE_LIKE = re.compile(r"\d[\d \u00a0().-]{6}")
HANDLE = re.compile(r"(?<![\w@./])@[a-z]\w{3,31}")
"""A name in Telegram or a similar service."""
END = ".,;:!?)]}'’…*_"


def find_addresses(low: str) -> Iterator[Token]:
    """Yield the e-mails, pages and phones of a lower-case text; not in order, without overlaps.

    Example:
        >>> from yarus.metrics.facts.addresses import find_addresses
        >>> [token.readings for token in find_addresses('см. www.ssau.ru/abit/')]
        [(('u', 'ssau.ru/abit'),)]
    """
    if "@" in low:
        for match in EMAIL.finditer(low):
            email = match[0].rstrip(END)
            yield _build_token("email", "e", match, email, email)
        low = EMAIL.sub(_blank_out, low)
        for match in HANDLE.finditer(low):
            yield _build_token("url", "u", match, match[0], f"t.me/{match[0][1:]}")
        low = HANDLE.sub(_blank_out, low)
    if "." in low and (HOST.search(low) or "//" in low):
        for match in URL.finditer(low):
            page = match[0].rstrip(END)
            if address := SCHEME.sub("", page):
                yield _build_token("url", "u", match, page, unquote(address).rstrip("/"))
        low = URL.sub(_blank_out, low)
    if PHONE_LIKE.search(low):
        for match in PHONE.finditer(low):
            yield _build_token("phone", "p", match, match[0], re.sub(r"\D", "", match[0])[-10:])


def blank_tokens(low: str, address_tokens: list[Token]) -> str:
    """Return the text with the given tokens blanked out.

    Example:
        >>> from yarus.metrics.facts.addresses import find_addresses, blank_tokens
        >>> blank_tokens('a@b.ru 5', list(find_addresses('a@b.ru 5')))[-2:]
        ' 5'
    """
    parts, last = [], 0
    for token in address_tokens:
        parts += [low[last : token.start], "\0" * (token.end - token.start)]
        last = token.end
    return "".join((*parts, low[last:]))


def _build_token(kind: str, reading: str, match: re.Match[str], written: str, value: str) -> Token:
    token = Token("address", match.start(), match.start() + len(written))
    token.kind = kind
    token.readings = ((reading, value),)
    return token


def _blank_out(match: re.Match[str]) -> str:
    return "\0" * len(match[0])
