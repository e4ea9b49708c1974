"""Find personal data in texts by patterns, and replace it by pseudonyms, equal for equal data.

E-mails, phones and numbers of student papers have a form and are detected well. Names have none. They are detected by
context: a patronymic, initials, a common first name next to a capital letter, «меня зовут». Names without such context
are missed. docs/dataset.md has the measured recall.
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

from yarus.db.home import make_private_folder
from yarus.tasks.cases.privacy.names import find_names, lower_preserving_length, normalise_characters, to_original_span
from yarus.tasks.cases.privacy.patterns import PATTERN_GROUPS, SPELLING_WORDS, PersonalDataKind
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import LANGUAGES, texts

URL = re.compile(
    r"(?:https?://|www\.|(?<![\w.@-])[\w-]++(?:\.[\w-]++)*?\.(?:[a-z]{2,}|рф|рус)/)[^\s,;<>\"»]*+", re.IGNORECASE
)
LIKELY_CHARACTER = re.compile(r"[А-ЯЁA-Za-z\d@]")
LIKELY_PARTS = ("зовут", "фамили", "фио", "вич", "вна", "чна", " я ", "собак", "парол")
"""A text without a capital, a Latin letter, a digit or one of these matches no pattern."""


class Finding(NamedTuple):
    """A piece of personal data in a text."""

    kind: PersonalDataKind
    start: int
    end: int
    text: str


def detect_pii(text: str) -> list[Finding]:
    """Return the personal data in a text, in order and without overlaps; kinds with a form take precedence.

    URLs are skipped, because numbers in them identify pages; e-mails in or next to them are not.
    """
    normalised, offsets = normalise_characters(text)
    covered = bytearray(len(normalised))
    findings: list[Finding] = []
    for kind, start, end in _find_candidates(normalised):
        if covered.find(1, start, end) < 0:
            covered[start:end] = b"\1" * (end - start)
            first, last = to_original_span(offsets, start, end)
            findings.append(Finding(kind, first, last, text[first:last]))
    return sorted(findings, key=lambda finding: finding.start)


def mask(text: str, key: bytes, language: str = "ru") -> str:
    """Replace every piece of personal data by a pseudonym, such as `[телефон 3fa2c1]`.

    Args:
        text: any text.
        key: secret key; the same key yields the same pseudonyms.
        language: language of the pseudonyms' words.
    """
    parts, last = [], 0
    for finding in detect_pii(text):
        parts += [text[last : finding.start], make_pseudonym(finding.kind, finding.text, key, language)]
        last = finding.end
    return "".join((*parts, text[last:]))


def restore_originals(text: str, originals: Iterable[str], key: bytes) -> str:
    """Replace pseudonyms by the data they represent, if one of the originals contains it; keep the others.

    Args:
        text: text that may have pseudonyms, in any language.
        originals: texts before masking.
        key: as in `mask`.
    """
    if "[" not in text:
        return text
    findings = {finding for original in originals for finding in detect_pii(original)}
    data_by_pseudonym = {
        make_pseudonym(finding.kind, finding.text, key, language): finding.text
        for finding in findings
        for language in LANGUAGES
    }
    return pseudonym_pattern().sub(lambda match: data_by_pseudonym.get(match[0], match[0]), text)


def make_pseudonym(kind: PersonalDataKind, text: str, key: bytes, language: str = "ru") -> str:
    """Return the pseudonym of a piece of personal data; key and language as in `mask`."""
    return f"[{texts('personal_data', language)[kind]} {_hash_code(kind, text, key)}]"


@cache
def pseudonym_pattern() -> re.Pattern[str]:
    """Return a pattern for pseudonyms in any language, so that masking twice equals masking once."""
    labels = "|".join(label for language in LANGUAGES for label in texts("personal_data", language).values())
    return re.compile(rf"(\[(?:{labels}) [0-9a-f]{{6}}\])")


def load_own_key() -> bytes:
    """Return the key of pseudonyms: a file in the home, readable by its owner only, created when first needed."""
    return load_key(get_settings().home.absolute() / "pseudonyms.key")


@cache
def load_key(path: Path) -> bytes:
    """Return the key of pseudonyms in that file; create it if there is none."""
    if not path.exists():
        make_private_folder(path.parent, path.parent)
        new_file = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        with suppress(FileExistsError):  # another process was faster: its key is used
            os.link(new_file, path)
        new_file.unlink()
    return path.read_bytes()


def _find_candidates(text: str) -> Iterator[tuple[PersonalDataKind, int, int]]:
    """Yield the matches of the patterns, in the order of precedence."""
    lower = lower_preserving_length(text)
    if LIKELY_CHARACTER.search(text) is None and not any(map(lower.__contains__, LIKELY_PARTS)):
        return
    if "[" in text:
        lower = pseudonym_pattern().sub(_blank_out, lower)
    lower_without_urls = URL.sub(_blank_out, lower) if "/" in lower or "www." in lower else lower
    for is_likely, patterns in PATTERN_GROUPS:
        if is_likely(lower):
            for kind, regex, check, in_urls in patterns:
                group: int | str = kind if kind in regex.groupindex else 0
                for match in regex.finditer(lower if in_urls else lower_without_urls):
                    if check is None or check(match):
                        yield kind, *match.span(group)
    for start, end in find_names(text, lower_without_urls):
        yield "name", start, end


def _blank_out(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _hash_code(kind: PersonalDataKind, text: str, key: bytes) -> str:
    """Return six hex digits of a keyed hash; spellings of the same data are equal: a phone is its last ten digits."""
    normalised = normalise_characters(text)[0].casefold()
    if kind == "phone":
        identity = re.sub(r"\D", "", normalised)[-10:]
    else:
        identity = re.sub(
            r"\W", "", SPELLING_WORDS[kind].sub("", normalised) if kind in SPELLING_WORDS else normalised
        ).replace("ё", "е")
    return hmac.new(key, f"{kind}|{identity}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:6]
