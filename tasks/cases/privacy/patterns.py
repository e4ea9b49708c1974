"""Patterns of personal data with a form: e-mails, phones, document numbers, cards, birth dates, addresses, profiles.

Each pattern takes constant time per character: repetitions are bounded or possessive, or start where no other match
can. The order of the table is the order of precedence.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

PersonalDataKind = Literal["email", "phone", "id", "address", "name"]
Check = Callable[[re.Match[str]], bool]


def _word_pattern(*words: str) -> str:
    """Return a pattern for any of these at the start of a word; the look-behind after the first letter is faster."""
    return "(?:" + "|".join(rf"{word[0]}(?<![^\W_]{word[0]}){word[1:]}" for word in words) + ")"


GAP = r"[\s()\[\]./_~*-]{0,3}"
BOUNDARY_BEFORE = r"(?<![^\W_].)(?<![+-].)"  # after the first character: it must not continue a longer token
RUSSIAN_PREFIX = rf"(?:\+{BOUNDARY_BEFORE}\s?7|[87]{BOUNDARY_BEFORE})"
NOT_A_DATE = r"(?!\d{0,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)(?!\d))"
LETTERS = r"[^\W\d_]{0,12}"
MONTH = r"(?:янв|фев|мар|апр|ма[яй]|июн|июл|авг|сен|окт|ноя|дек)[а-я]{0,5}\.?"
DATE = (
    rf"(?:\d{{1,2}}[./ -]\d{{1,2}}[./ -](?:(?:19[3-9]|20)\d\d|\d\d)(?!\d)|(?:19[3-9]|20)\d\d-\d\d-\d\d(?!\d)"
    rf"|\d{{1,2}}\s{{1,2}}{MONTH}\s{{1,2}}(?:19[3-9]|20)\d\d(?!\d))"
)
WORD_END = r"(?![^\W\d_])"
PHONE_WORDS = _word_pattern(
    rf"тел(?:ефон[а-я]{{0,4}})?{WORD_END}", rf"моб(?:ил[а-я]{{0,8}})?{WORD_END}", r"сотов[а-я]{1,4}",
    r"позвон[а-я]{1,6}", rf"звони(?:те)?{WORD_END}", r"в[ао]тсап[а-я]{0,2}", r"вайбер[а-я]{0,2}", "whatsapp", "viber",
    rf"phone{WORD_END}", rf"call{WORD_END}", rf"cell{WORD_END}",
)  # fmt: skip
DOCUMENT_WORDS = _word_pattern(
    f"студенч{LETTERS}", f"студак{LETTERS}", f"студбилет{LETTERS}", r"студ\. билет", f"зачет{LETTERS}",
    f"билет{LETTERS}", f"табельн{LETTERS}", f"паспорт{LETTERS}", f"загранпаспорт{LETTERS}", "снилс", "инн",
    f"логин{LETTERS}",
    f"полис{LETTERS}", f"личн{LETTERS} номер{LETTERS}", "student", "passport", f"matric{LETTERS}", "login", "user",
    "id", "ид", "№",
    r"no\.", "number", f"номер{LETTERS}",
)  # fmt: skip
NUMBER = r"[a-zа-я]{0,3}-?\d{2,4}[ /-]?\d{3,8}(?:-\d{1,6})?"  # 12 digits in a row are a person's INN
SERIES = r"сери[яиейю]{1,2}(?:\sпаспорта)?[\s:]{0,3}"
PASSPORT = (
    rf"(?:{SERIES})?(?P<id>\d\d[ -]?\d\d[\s,;]{{0,3}}(?:(?:номер(?:\sпаспорта)?|ном\.|№|n)[\s:.]{{0,3}})?\d{{6}})(?!\d)"
)
BIRTH_WORDS = _word_pattern(
    "дата рожд", "день рожд", "родил", "рожд", "birth", "born", r"dob(?!\w)", r"д\.\s?р\.", "д/р", "др:"
)
HOSTS = r"(?:e?mail|gmail|yandex|ya|bk|inbox|list|rambler|icloud|outlook|hotmail|яндекс|мейл|мэйл|гмейл)"
AT_WORD = r"(?:at|dog|sobaka|собак[ау]|собачка|гав)"
AT = rf"(?:\s{{0,2}}(?:@|%40|[\[({{<]\s?{AT_WORD}\s?[\])}}>])\s{{0,2}})"
DOT_WORD = r"(?:dot|tochka|точка)"
DOT = rf"(?:\.|\s?[\[({{<]\s?{DOT_WORD}\s?[\])}}>]\s?|\s{{1,2}}{DOT_WORD}\s{{1,2}})"
LOCAL_PART = r"(?<![\w.+-])[\w.+-]++"
LOCAL_BEFORE_AT_WORD = r"(?<![\w.+-])[\w.+-]{1,64}?\s{0,2}(?:sobaka|собак[ау]|собачка)\s{1,2}"
FLAT = r"(?:кв(?:артира|-ра)?[.\s]{0,2}№?\s?\d{1,4}(?!\d|\s?м))"
STREET_WORDS = _word_pattern(
    r"ул\.", r"пр\.", r"пер\.", r"наб\.", r"мкр\.", r"просп\.", r"ш\.",
    "пр-к?т", "б-р", "улиц[аеуы]", "проспект[еа]?", "переул(?:ок|к[еа])", "шоссе", "бульвар[еа]?", "набережн(?:ая|ой)",
    "микрорайон[еа]?", "жив[уе]т?", "прожива[юе]т?", "прописан[аы]?", "адрес[ау]?",
)  # fmt: skip
MAIN_STREET_WORDS = _word_pattern(r"ул\.", "улица", "пр-к?т", "проспект")
SITES = r"(?:t\.me|telegram\.me|vk\.com|vk\.ru|ok\.ru|instagram\.com|facebook\.com|fb\.com|twitter\.com|x\.com)"
NOT_A_PROFILE = r"(?:club|public|event|wall|topic|album|video|feed|app|away|share|addstickers|proxy|s/|c/)"
MESSENGER_WORDS = _word_pattern(
    "телеграмм?", "телег[аеиу]", "тг", "tg", "telegram", "скайп", "skype", "вк", "vk", "вконтакте", "инст", "инста",
    "инстаграмм?", "ник", "никнейм", "nickname", "discord", "дискорд",
)  # fmt: skip
LOGIN_WORDS = _word_pattern("логин", "login", "username", "user", "аккаунт", "account", "учетка")


def is_card_number(match: re.Match[str]) -> bool:
    """Return whether the digits are those of a payment card."""
    digits = [int(digit) for digit in re.sub(r"\D", "", match[0])]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(doubled) + sum(digits[::-2])) % 10 == 0


def is_iban(match: re.Match[str]) -> bool:
    """Return whether it is an international bank account number: its checksum is 1 modulo 97."""
    letters = re.sub(r"\s", "", match[0])
    return len(letters) >= 15 and int("".join(str(int(x, 36)) for x in letters[4:] + letters[:4])) % 97 == 1


def is_pension_number(match: re.Match[str]) -> bool:
    """Return whether the last two of eleven digits are the check number of a СНИЛС."""
    digits = re.sub(r"\D", "", match[0])
    return sum(int(x) * w for x, w in zip(digits, range(9, 0, -1), strict=False)) % 101 % 100 == int(digits[9:])


def is_tax_number(match: re.Match[str]) -> bool:
    """Return whether twelve digits are a person's tax number."""
    digits, weights = [int(x) for x in match[0]], (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)
    return all(
        sum(x * w for x, w in zip(digits, weights[-n:], strict=False)) % 11 % 10 == digits[n] for n in (10, 11)
    )  # fmt: skip


BEFORE_PUBLIC_NUMBER = re.compile(
    r"(?:(?<!\w)(?:кпп|бик|огрн|окпо|октмо|оквэд|кбк|уин|isbn|issn|doi|pageid|page)\W{0,4}"
    r"|(?:приказ|распоряж|постановл|закон|гост|протокол|договор|лиценз|аккредитац|свидетельств)\w{0,10}[^\d\n.!?]{0,30})$"
)
"""Words before a number that a page publishes."""


def is_private_number(match: re.Match[str]) -> bool:
    """Return whether a number may be a person's: not one of an organisation or a published document."""
    start = match.start("id") if "id" in match.re.groupindex else match.start()
    preceding, digits = match.string[max(0, start - 48) : start], re.sub(r"\D", "", match[match.lastgroup or 0])
    if BEFORE_PUBLIC_NUMBER.search(preceding):
        return False
    is_company = len(digits) == 10 and re.search(r"(?<!мой )(?<!\w)инн\W{0,3}$", preceding) is not None
    weights = (2, 4, 10, 3, 5, 9, 4, 6, 8)
    return not is_company or sum(int(x) * w for x, w in zip(digits, weights, strict=False)) % 11 % 10 != int(digits[9])


class Pattern(NamedTuple):
    """A form of personal data, in a group named like the kind if the pattern includes context."""

    kind: PersonalDataKind
    regex: re.Pattern[str]
    check: Check | None = None
    in_urls: bool = False
    """Whether it is also searched in URLs; other numbers there belong to the page."""


def _pattern(kind: PersonalDataKind, regex: str, check: Check | None = None, *, in_urls: bool = False) -> Pattern:
    return Pattern(kind, re.compile(regex), check, in_urls)


EMAIL_PATTERNS = (
    _pattern("email", rf"{LOCAL_PART}{AT}[\w-]++(?:{DOT}[\w-]++)++", in_urls=True),
    _pattern("email", rf"{LOCAL_PART}{AT}{HOSTS}(?:\s{{0,2}}[, ]\s{{0,2}}(?:ru|com|ру|рф))?(?!\w)", in_urls=True),
    _pattern("email", rf"{LOCAL_PART}\s{{1,2}}at\s{{1,2}}[\w-]++\s{{1,2}}{DOT_WORD}\s{{1,2}}\w+"),
    _pattern("email", rf"{LOCAL_BEFORE_AT_WORD}[\w-]{{1,64}}(?:{DOT}[\w-]{{1,64}}){{1,4}}"),
    _pattern("email", rf"{LOCAL_BEFORE_AT_WORD}{HOSTS}(?:[\s,]{{1,2}}(?:ru|com|ру|ком))?(?!\w)"),
)
PROFILE_PATTERNS = (
    _pattern("phone", r"(?:wa\.me/|phone=|tel:)\+?(?P<phone>\d{10,15})(?!\d)", in_urls=True),
    _pattern(
        "address",
        rf"(?<![\w.-])(?:www\.|m\.)?{SITES}/(?P<address>(?!{NOT_A_PROFILE})(?![a-z0-9_]{{0,40}}bot(?!\w))[\w.@+-]{{2,64}}\w)",
        in_urls=True,
    ),
    _pattern("address", r"tg://resolve\?domain=(?P<address>\w{4,40})", in_urls=True),
    _pattern("address", r"@(?<![\w@./]@)(?!\w{0,40}bot(?!\w))[a-z]\w{4,31}(?![\w/(]|\.\w)"),
    _pattern("address", rf"{MESSENGER_WORDS}\s?[:=@-]{{1,2}}\s{{0,2}}@?(?P<address>[a-z][\w.]{{3,31}}\w)"),
    _pattern("address", rf"{MESSENGER_WORDS}\s{{1,2}}(?P<address>[a-z](?=[a-z.]{{0,31}}[_\d])[\w.]{{3,31}}\w)"),
)
NUMBER_PATTERNS = (
    _pattern(
        "id",
        r"[2-6](?<![\w.-].)(?:\d{12,18}|\d{3}(?:[\s._/-]{1,3}\d{4}){3}|\d{3}[\s-]\d{6}[\s-]\d{5})(?!\d)",
        is_card_number,
    ),
    _pattern("id", r"[2-6](?<![\w.-].)(?:[\s.-]{1,2}\d){15}(?![\s.-]{0,2}\d)", is_card_number),
    _pattern(
        "id", rf"{_word_pattern('карт', 'card')}{LETTERS}[^\d\n]{{0,15}}?(?P<id>\d{{4}}(?:[\s.-]?\d{{4}}){{3}})(?!\d)"
    ),
    _pattern("id", r"[a-z](?<!\w.)[a-z]\d\d(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?(?!\w)", is_iban),
    _pattern("id", r"4(?<!\w.)(?:08(?:17|20|02)|2[36]\d\d) ?\d{3} ?\d ?(?:\d ?){10}\d(?!\d)"),
    _pattern("id", r"\d(?<![\w-].)\d\d-\d{3}-\d{3}[ -]\d{2}(?!\d)"),
    _pattern("id", r"снилс\W{0,3}(?P<id>\d{3}[ .-]?\d{3}[ .-]?\d{3}[ .-]?\d\d)(?!\d)"),
    _pattern("id", r"\d(?<![\w.,-].)\d\d \d{3} \d{3} \d\d(?![\w.,-])", is_pension_number),
    _pattern("id", r"\d(?<![\w/.,+-].)\d{11}(?![\w-])", is_tax_number),
    _pattern("id", rf"(?:паспорт|passport){LETTERS}[^\d\n]{{0,25}}?{PASSPORT}"),
    _pattern("id", rf"{SERIES}{PASSPORT}"),
    _pattern("id", r"\d(?<![\w.,-].)\d \d\d (?:№ ?)?\d{6}(?![\w-]|[.,]\d|\s{0,2}(?:руб|₽|тыс))"),
    _pattern("phone", rf"{RUSSIAN_PREFIX}{GAP}\d{{3}}{GAP}\d{{3}}{GAP}\d{{2}}{GAP}\d{{2}}(?!\d)"),
    _pattern("phone", rf"{RUSSIAN_PREFIX}{NOT_A_DATE}{GAP}[3489]\d{{2}}(?:{GAP}\d){{7}}(?!\d)"),
    _pattern(
        "phone", rf"(?:\+{BOUNDARY_BEFORE}\s?7{GAP}\d|[87]{BOUNDARY_BEFORE}{NOT_A_DATE}{GAP}9)(?:{GAP}\d){{9}}(?!\d)"
    ),
    _pattern("phone", rf"[87]{BOUNDARY_BEFORE}(?:[\s.,/_-]{{1,3}}\d(?!\d)){{10}}(?![\s.,/_-]{{0,3}}\d)"),
    _pattern("phone", rf"\+(?<![\w+].)\d{{1,3}}(?:{GAP}\d{{1,4}}){{3,5}}(?!\d)"),
    _pattern("phone", rf"9{BOUNDARY_BEFORE}\d{{2}}[\s./_-]?\d{{3}}[\s./_-]?\d{{2}}[\s./_-]?\d{{2}}(?!\d|-\d)"),
    _pattern("phone", rf"9{BOUNDARY_BEFORE}(?:[\s.,_-]{{1,2}}\d(?!\d)){{9}}(?![\s.,_-]{{0,2}}\d)"),
    _pattern("phone", rf"\({BOUNDARY_BEFORE}\d{{3,5}}\){GAP}\d{{2,3}}{GAP}\d{{2}}{GAP}\d{{2}}(?!\d)"),
    _pattern("phone", rf"\d{BOUNDARY_BEFORE}\d{{1,2}}-\d{{2}}-\d{{2}}(?!\d|-\d)"),
    _pattern(
        "phone",
        rf"{PHONE_WORDS}[^\d\n+]{{0,20}}?(?P<phone>\+?(?!\d{{1,2}}\.\d\d\s?-)\d{NOT_A_DATE}[\d\s()./-]{{4,16}}\d)(?!\d)",
    ),
    _pattern("phone", r"[78](?<!\d.)9\d{9}(?!\d)", in_urls=True),
    _pattern("id", rf"{BIRTH_WORDS}{LETTERS}[^\d\n]{{0,20}}?(?P<id>{DATE})"),
    _pattern("id", rf"{DOCUMENT_WORDS}[^\d\n]{{0,15}}?(?P<id>{NUMBER})(?![\d-])", is_private_number),
    _pattern("id", r"[a-zа-я](?<![\w/.-].)[a-zа-я]{0,2}-?\d{5,10}(?![\w-])"),
    _pattern("id", r"\d(?<![\w/.,+-].)\d{6,9}(?![\w-]|[.,]\d|\s{0,3}(?:руб|₽|тыс|р\.))", is_private_number),
)
BIRTH_PATTERNS = (_pattern("id", rf"(?<![\d.])(?P<id>{DATE})\s{{0,2}}(?:г\.\s?р\.|г/р|(?:года?|г\.)?\s{{0,2}}рожд)"),)
FLAT_PATTERNS = (
    _pattern("address", rf"(?:(?:г\.|город)\s?[а-я][\w-]{{2,20}},?\s{{1,2}})?{STREET_WORDS}[^\n]{{2,60}}?{FLAT}"),
)
OTHER_PATTERNS = (
    _pattern("id", rf"{LOGIN_WORDS}\s{{0,2}}[:=-]?\s{{0,2}}(?P<id>[a-z](?=[a-z]{{0,31}}[_\d.][a-z\d])[\w.]{{3,31}}\w)"),
    _pattern("id", r"(?:парол[ьяею]|password|pwd)\s{0,2}[:=]\s{0,2}(?P<id>(?=\S{0,31}[\da-z])[^\s,;]{4,64})"),
    _pattern("address", rf"{MAIN_STREET_WORDS}\s[^\n\d]{{2,30}}?\d{{1,3}}[а-я]?-\d{{2,4}}(?![\d-])"),
)


def _contains_any(*pieces: str) -> Callable[[str], bool]:
    return lambda text: any(map(text.__contains__, pieces))


PATTERN_GROUPS: tuple[tuple[Callable[[str], object], tuple[Pattern, ...]], ...] = (
    (re.compile(r"@|%40|[\[({<]\s?[a-z]|собак|собач|sobaka|\sat\s|[\[({<]\s?[сг]").search, EMAIL_PATTERNS),
    (re.compile(r"[a-z]").search, PROFILE_PATTERNS),
    (re.compile(r"\d(?:\D*+\d){4}").search, NUMBER_PATTERNS),
    (_contains_any("рожд", "г.р", "г. р", "г/р"), BIRTH_PATTERNS),
    (_contains_any("кв"), FLAT_PATTERNS),
    (
        _contains_any("логин", "login", "user", "аккаунт", "account", "учетка", "парол", "passw", "pwd", "ул", "пр"),
        OTHER_PATTERNS,
    ),
)
"""Groups of patterns, each with a cheap precondition, so that most texts need only a few short searches."""
SPELLING_WORDS: dict[PersonalDataKind, re.Pattern[str]] = {
    "email": re.compile(rf"%40|(?<=[\W]){AT_WORD}(?=\W)|(?:sobaka|собак[ау]|собачка)|(?<=\W){DOT_WORD}(?=\W)"),
    "id": re.compile(r"паспорта|номер|ном\.|сери[яиейю]{1,2}"),
    "address": re.compile(r"^(?:https?://|www\.|m\.)"),
}
"""Words of a finding that other spellings of the same data lack."""
