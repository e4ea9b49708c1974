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
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from db.home import make
from tasks.settings import settings

Kind = Literal["email", "phone", "id", "name"]
LABELS: dict[str, dict[Kind, str]] = {
    "ru": {"email": "почта", "phone": "телефон", "id": "номер", "name": "имя"},
    "en": {"email": "e-mail", "phone": "phone", "id": "number", "name": "name"},
}
URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
HYPHEN = r"\u2010-\u2014-"
"""Inside a class of characters: the hyphen of keyboards and those of typography, which word processors put for it."""
GAP = rf"[\s(). {HYPHEN}]{{0,3}}"
PAPERS = (
    r"(?:студенч\w*|студак\w*|студбилет\w*|зач[её]т\w*|билет\w*|табельн\w*|паспорт\w*|снилс|инн|логин\w*"
    r"|личн\w+ номер\w*|student|passport|matric\w*|login|user|id|ид|№|no\.|number|номер\w*)"
)
NUMBER = r"[a-zа-яё]{0,3}-?\d{2,4}[ /-]?\d{3,8}(?:-\d{1,6})?"  # 12 digits in a row are a person's INN
CALLS = r"тел\w*|моб\w*|позвон\w*|ватсап\w*|whatsapp|phone|call"
FIRST_NAMES = """
александр александра алексей алёна алена алина алиса анастасия анатолий андрей анна антон арина артём артем борис вадим
валентина валерий варвара василий вера вероника виктор виктория виталий владимир владислав вячеслав галина георгий глеб
григорий данил даниил дарья денис дмитрий ева евгений евгения егор екатерина елена елизавета иван игорь илья ирина
карина кирилл константин кристина ксения лариса лев леонид любовь людмила макар максим маргарита марина мария матвей
михаил надежда наталья наталия никита николай оксана олег олеся ольга павел пётр петр полина роман руслан светлана семён
семен сергей софия софья станислав степан тамара татьяна тимофей тимур ульяна фёдор федор юлия юрий яна ярослав
"""
FIRST = "|".join(sorted(FIRST_NAMES.split(), key=len, reverse=True))
CAPITAL = r"[А-ЯЁ][а-яё]+(?:-[А-ЯЁ][а-яё]+)?"
FATHER = r"[А-ЯЁ][а-яё]+(?:вич(?:а|у|ем|е)?|вн(?:а|ы|е|у|ой)|ичн(?:а|ы|е|у|ой)|ьич(?:а|у|ем|е)?)"
PATTERNS: tuple[tuple[Kind, str], ...] = (
    ("email", r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    ("phone", rf"(?<![\w+-])(?:\+\s?7|8|7){GAP}\d{{3}}{GAP}\d{{3}}{GAP}\d{{2}}{GAP}\d{{2}}(?![\d])"),
    ("phone", rf"(?<![\w+-])(?:\+\s?7|8|7){GAP}[3489]\d{{2}}(?:{GAP}\d){{7}}(?!\d)"),
    ("phone", rf"(?<![\w+])\+\d{{1,3}}(?:{GAP}\d{{1,4}}){{3,5}}(?!\d)"),
    (
        "phone",
        rf"(?<![\w+-])9\d{{2}}[\s{HYPHEN}]?\d{{3}}[\s{HYPHEN}]?\d{{2}}[\s{HYPHEN}]?\d{{2}}(?![\d-]|[{HYPHEN}]\d)",
    ),
    ("phone", rf"(?<![\w+-])\(\d{{3,5}}\){GAP}\d{{2,3}}{GAP}\d{{2}}{GAP}\d{{2}}(?!\d)"),
    ("phone", rf"(?<![\w+-])\d{{2,3}}[{HYPHEN}]\d{{2}}[{HYPHEN}]\d{{2}}(?![\d-]|[{HYPHEN}]\d)"),
    ("phone", rf"(?i)(?:{CALLS})\W{{0,3}}(?P<phone>\+?\d[\d\s(){HYPHEN}]{{4,16}}\d)"),
    ("id", rf"(?<![\w-])\d{{3}}[{HYPHEN}]\d{{3}}[{HYPHEN}]\d{{3}}[ {HYPHEN}]\d{{2}}(?!\d)"),
    ("id", rf"(?i){PAPERS}[^\d\n]{{0,15}}?(?P<id>{NUMBER})(?![\d-])"),
    ("id", r"(?i)(?<![\w/.-])[a-zа-яё]{1,3}-?\d{5,10}(?![\w-])"),
    ("id", r"(?<![\w/.,+-])\d{7,10}(?![\w-]|[.,]\d|\s*(?:руб|₽|тыс|р\.))"),
    ("name", rf"(?:{CAPITAL}\s+)?{CAPITAL}\s+{FATHER}(?!\w)(?:\s+{CAPITAL})?"),
    ("name", rf"(?i)\b\w{{3,}}\s+(?:{FIRST})\s+\w+(?:ович|евич|овна|евна|ична)\b"),
    ("name", rf"(?i)\b(?:{FIRST})\s+\w+(?:ович|евич|овна|евна|ична)\b"),
    ("name", rf"{CAPITAL}\s+[А-ЯЁ]\.\s?[А-ЯЁ]\.|\b[А-ЯЁ]\.\s?[А-ЯЁ]\.\s?{CAPITAL}"),
    ("name", rf"{CAPITAL}(?:ов|ев|ёв|ин|ын|ова|ева|ёва|ина|ына|ский|ская|цкий|цкая|ко|ук|юк|ян)\s+(?i:{FIRST})\b"),
    ("name", rf"(?<!\w)(?=[А-ЯЁ])(?i:{FIRST})\s+{CAPITAL}"),
    ("name", rf"(?i:меня зовут|мо[её] имя|моя фамилия|мой фио|фио)\W{{1,3}}(?P<name>{CAPITAL}(?:\s+{CAPITAL}){{0,2}})"),
    ("name", rf"(?i)(?:меня зовут)\s+(?P<name>(?:{FIRST})(?:\s+\w+(?:ов|ев|ин|ова|ева|ина|ский|ская|ко))?)\b"),
    ("name", r"(?i:my name is|i am called)\s+(?P<name>[A-Z][a-z]+(?:\s+[A-Z][a-z]+){0,2})"),
)
COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in PATTERNS)
LIKELY = re.compile(r"[@А-ЯЁA-Z]|\d.*\d.*\d|зовут|ович|евич|овна|евна|ична")
"""Without any of these no pattern fits: most questions are done with one look."""


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
    if LIKELY.search(text) is None:
        return []
    taken: list[Found] = []
    for found in _candidates(text):
        if all(found.end <= other.start or found.start >= other.end for other in taken):
            taken.append(found)
    return sorted(taken, key=lambda found: found.start)


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


def pseudonym(kind: Kind, text: str, key: bytes, language: str = "ru") -> str:
    """What stands for a piece of personal data that was found, alone or in a text; key and language as in `mask`."""
    return f"[{LABELS[language][kind]} {_code(kind, text, key)}]"


def own_key() -> bytes:
    """The secret that pseudonyms are made with: kept at home, readable by its owner only, made when first needed."""
    return _key(settings().home.absolute() / "pseudonyms.key")


@cache
def _key(path: Path) -> bytes:
    if not path.exists():
        make(path.parent, path.parent)
        whole = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        with suppress(FileExistsError):  # another process was faster: its key holds
            os.link(whole, path)
        whole.unlink()
    return path.read_bytes()


def _candidates(text: str) -> Iterator[Found]:
    plain = URL.sub(lambda url: " " * len(url[0]), text)
    for kind, pattern in COMPILED:
        for match in pattern.finditer(text if kind == "email" else plain):
            group: int | str = kind if kind in pattern.groupindex else 0
            yield Found(kind, match.start(group), match.end(group), match[group])


def _code(kind: Kind, text: str, key: bytes) -> str:
    """Six hex digits of a keyed hash; a phone is its last ten digits, whatever stands between them."""
    same = re.sub(r"\W", "", text).casefold().replace("ё", "е")
    same = re.sub(r"\D", "", text)[-10:] if kind == "phone" else same
    return hmac.new(key, f"{kind}|{same}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:6]
