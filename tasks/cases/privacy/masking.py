"""Personal data in texts: found by patterns, replaced by pseudonyms that are the same wherever the same is meant.

E-mails, phones and numbers of students' papers have a form and are found well; names have none, and are found where
something gives them away: a patronymic, initials, a common first name beside a capital letter, «меня зовут». Names that
stand alone are missed. docs/dataset.md has the measured shares.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from yarus.db.home import make
from yarus.tasks.cases.privacy.names import back, lowered, names, plain
from yarus.tasks.cases.privacy.patterns import GROUPS, SPELLED, Kind
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import LANGUAGES, texts

URL = re.compile(
    r"(?:https?://|www\.|(?<![\w.@-])[\w-]++(?:\.[\w-]++)*?\.(?:[a-z]{2,}|рф|рус)/)[^\s,;<>\"»]*+", re.IGNORECASE
)
LIKELY = re.compile(r"[А-ЯЁA-Za-z\d@]")
SPOKEN = ("зовут", "фамили", "фио", "вич", "вна", "чна", " я ", "собак", "парол")
"""A text without a capital, a Latin letter, a digit or one of these has nothing that any pattern fits."""


class Found(NamedTuple):
    """A piece of personal data in a text."""

    kind: Kind
    start: int
    end: int
    text: str


def find(text: str) -> list[Found]:
    """The personal data in a text, in its order, without overlaps: the kinds with a form come first.

    Addresses of pages are passed over, for the numbers in them are pages; but for the e-mails in or beside them.
    """
    simple, places = plain(text)
    taken = bytearray(len(simple))
    found: list[Found] = []
    for kind, start, end in _candidates(simple):
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            first, last = back(places, start, end)
            found.append(Found(kind, first, last, text[first:last]))
    return sorted(found, key=lambda one: one.start)


def mask(text: str, key: bytes, language: str = "ru") -> str:
    """The text with a pseudonym in the place of every piece of personal data, such as `[телефон 3fa2c1]`.

    Args:
        text: any.
        key: secret; the same key gives the same pseudonyms.
        language: of the pseudonyms' words.
    """
    parts, last = [], 0
    for found in find(text):
        parts += [text[last : found.start], pseudonym(found.kind, found.text, key, language)]
        last = found.end
    return "".join((*parts, text[last:]))


def restored(text: str, originals: Iterable[str], key: bytes) -> str:
    """The text with what its pseudonyms stand for, where one of the originals has it; the others stay.

    Args:
        text: that may have pseudonyms, of whichever language.
        originals: texts as they were before they were masked.
        key: as in `mask`.
    """
    if "[" not in text:
        return text
    found = {one for original in originals for one in find(original)}
    behind = {pseudonym(one.kind, one.text, key, language): one.text for one in found for language in LANGUAGES}
    return own_pattern().sub(lambda match: behind.get(match[0], match[0]), text)


def pseudonym(kind: Kind, text: str, key: bytes, language: str = "ru") -> str:
    """What stands for a piece of personal data that was found, alone or in a text; key and language as in `mask`."""
    return f"[{texts('personal_data', language)[kind]} {_code(kind, text, key)}]"


@cache
def own_pattern() -> re.Pattern[str]:
    """A pseudonym in any language: its digits are nobody's, and a text that is masked twice is masked once."""
    labels = "|".join(label for language in LANGUAGES for label in texts("personal_data", language).values())
    return re.compile(rf"(\[(?:{labels}) [0-9a-f]{{6}}\])")


def own_key() -> bytes:
    """The secret that pseudonyms are made with: kept at home, readable by its owner only, made when first needed."""
    return key_at(settings().home.absolute() / "pseudonyms.key")


@cache
def key_at(path: Path) -> bytes:
    """The key of pseudonyms in that file; made where there is none."""
    if not path.exists():
        make(path.parent, path.parent)
        whole = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        with suppress(FileExistsError):  # another process was faster: its key holds
            os.link(whole, path)
        whole.unlink()
    return path.read_bytes()


def _candidates(text: str) -> Iterator[tuple[Kind, int, int]]:
    """What the patterns find, in the order of precedence."""
    low = lowered(text)
    if LIKELY.search(text) is None and not any(map(low.__contains__, SPOKEN)):
        return
    if "[" in text:
        low = own_pattern().sub(_blank, low)
    bare = URL.sub(_blank, low) if "/" in low or "www." in low else low
    for is_likely, patterns in GROUPS:
        if is_likely(low):
            for kind, regex, check, in_urls in patterns:
                group: int | str = kind if kind in regex.groupindex else 0
                for match in regex.finditer(low if in_urls else bare):
                    if check is None or check(match):
                        yield kind, *match.span(group)
    for start, end in names(text, bare):
        yield "name", start, end


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _code(kind: Kind, text: str, key: bytes) -> str:
    """Six hex digits of a keyed hash, of what is the same however it is written: a phone is its last ten digits."""
    simple = plain(text)[0].casefold()
    if kind == "phone":
        same = re.sub(r"\D", "", simple)[-10:]
    else:
        same = re.sub(r"\W", "", SPELLED[kind].sub("", simple) if kind in SPELLED else simple).replace("ё", "е")
    return hmac.new(key, f"{kind}|{same}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:6]
