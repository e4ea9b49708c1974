"""Personal data with a form: e-mails, phones, numbers of papers and cards, dates of birth, homes, pages of a person.

Every pattern costs a text no more than a constant for each of its signs: what repeats is bounded, or begins where no
other match could, or is possessive. The order of the table is that of precedence.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

Kind = Literal["email", "phone", "id", "address", "name"]
Check = Callable[[re.Match[str]], bool]


def _words(*alternatives: str) -> str:
    """Any of these at the beginning of a word. The look behind comes after the first letter: a search skips to it."""
    return "(?:" + "|".join(rf"{word[0]}(?<![^\W_]{word[0]}){word[1:]}" for word in alternatives) + ")"


GAP = r"[\s()\[\]./_~*-]{0,3}"
FREE = r"(?<![^\W_].)(?<![+-].)"  # behind the first sign: nothing before it that it could be the tail of
SEVEN = rf"(?:\+{FREE}\s?7|[87]{FREE})"
NO_DATE = r"(?!\d{0,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)(?!\d))"
LETTERS = r"[^\W\d_]{0,12}"
MONTH = r"(?:янв|фев|мар|апр|ма[яй]|июн|июл|авг|сен|окт|ноя|дек)[а-я]{0,5}\.?"
DATE = (
    rf"(?:\d{{1,2}}[./ -]\d{{1,2}}[./ -](?:(?:19[3-9]|20)\d\d|\d\d)(?!\d)|(?:19[3-9]|20)\d\d-\d\d-\d\d(?!\d)"
    rf"|\d{{1,2}}\s{{1,2}}{MONTH}\s{{1,2}}(?:19[3-9]|20)\d\d(?!\d))"
)
END = r"(?![^\W\d_])"
CALLS = _words(
    rf"тел(?:ефон[а-я]{{0,4}})?{END}", rf"моб(?:ил[а-я]{{0,8}})?{END}", r"сотов[а-я]{1,4}", r"позвон[а-я]{1,6}",
    rf"звони(?:те)?{END}", r"в[ао]тсап[а-я]{0,2}", r"вайбер[а-я]{0,2}", "whatsapp", "viber", rf"phone{END}",
    rf"call{END}", rf"cell{END}",
)  # fmt: skip
PAPERS = _words(
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
BORN = _words("дата рожд", "день рожд", "родил", "рожд", "birth", "born", r"dob(?!\w)", r"д\.\s?р\.", "д/р", "др:")
HOSTS = r"(?:e?mail|gmail|yandex|ya|bk|inbox|list|rambler|icloud|outlook|hotmail|яндекс|мейл|мэйл|гмейл)"
AT_WORD = r"(?:at|dog|sobaka|собак[ау]|собачка|гав)"
AT = rf"(?:\s{{0,2}}(?:@|%40|[\[({{<]\s?{AT_WORD}\s?[\])}}>])\s{{0,2}})"
DOT_WORD = r"(?:dot|tochka|точка)"
DOT = rf"(?:\.|\s?[\[({{<]\s?{DOT_WORD}\s?[\])}}>]\s?|\s{{1,2}}{DOT_WORD}\s{{1,2}})"
LOCAL = r"(?<![\w.+-])[\w.+-]++"
DOG = r"(?<![\w.+-])[\w.+-]{1,64}?\s{0,2}(?:sobaka|собак[ау]|собачка)\s{1,2}"
FLAT = r"(?:кв(?:артира|-ра)?[.\s]{0,2}№?\s?\d{1,4}(?!\d|\s?м))"
STREET = _words(
    r"ул\.", r"пр\.", r"пер\.", r"наб\.", r"мкр\.", r"просп\.", r"ш\.",
    "пр-к?т", "б-р", "улиц[аеуы]", "проспект[еа]?", "переул(?:ок|к[еа])", "шоссе", "бульвар[еа]?", "набережн(?:ая|ой)",
    "микрорайон[еа]?", "жив[уе]т?", "прожива[юе]т?", "прописан[аы]?", "адрес[ау]?",
)  # fmt: skip
AVENUE = _words(r"ул\.", "улица", "пр-к?т", "проспект")
SITES = r"(?:t\.me|telegram\.me|vk\.com|vk\.ru|ok\.ru|instagram\.com|facebook\.com|fb\.com|twitter\.com|x\.com)"
NO_PERSON = r"(?:club|public|event|wall|topic|album|video|feed|app|away|share|addstickers|proxy|s/|c/)"
MESSENGER = _words(
    "телеграмм?", "телег[аеиу]", "тг", "tg", "telegram", "скайп", "skype", "вк", "vk", "вконтакте", "инст", "инста",
    "инстаграмм?", "ник", "никнейм", "nickname", "discord", "дискорд",
)  # fmt: skip
LOGIN = _words("логин", "login", "username", "user", "аккаунт", "account", "учетка")


def luhn(match: re.Match[str]) -> bool:
    """Whether the digits are those of a payment card."""
    digits = [int(digit) for digit in re.sub(r"\D", "", match[0])]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(doubled) + sum(digits[::-2])) % 10 == 0


def iban(match: re.Match[str]) -> bool:
    """Whether it is an international account: 97 divides it but for 1."""
    letters = re.sub(r"\s", "", match[0])
    return len(letters) >= 15 and int("".join(str(int(x, 36)) for x in letters[4:] + letters[:4])) % 97 == 1


def pension(match: re.Match[str]) -> bool:
    """Whether the last two of eleven digits are the check number of a СНИЛС."""
    digits = re.sub(r"\D", "", match[0])
    return sum(int(x) * w for x, w in zip(digits, range(9, 0, -1), strict=False)) % 101 % 100 == int(digits[9:])


def own_tax(match: re.Match[str]) -> bool:
    """Whether twelve digits are a person's tax number."""
    digits, weights = [int(x) for x in match[0]], (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)
    return all(
        sum(x * w for x, w in zip(digits, weights[-n:], strict=False)) % 11 % 10 == digits[n] for n in (10, 11)
    )  # fmt: skip


PUBLIC = re.compile(
    r"(?:(?<!\w)(?:кпп|бик|огрн|окпо|октмо|оквэд|кбк|уин|isbn|issn|doi|pageid|page)\W{0,4}"
    r"|(?:приказ|распоряж|постановл|закон|гост|протокол|договор|лиценз|аккредитац|свидетельств)\w{0,10}[^\d\n.!?]{0,30})$"
)
"""What stands before a number that a page publishes."""


def private(match: re.Match[str]) -> bool:
    """Whether a number is not one of an organisation or a document: those of a page are no person's."""
    start = match.start("id") if "id" in match.re.groupindex else match.start()
    before, digits = match.string[max(0, start - 48) : start], re.sub(r"\D", "", match[match.lastgroup or 0])
    if PUBLIC.search(before):
        return False
    company = len(digits) == 10 and re.search(r"(?<!мой )(?<!\w)инн\W{0,3}$", before) is not None
    weights = (2, 4, 10, 3, 5, 9, 4, 6, 8)
    return not company or sum(int(x) * w for x, w in zip(digits, weights, strict=False)) % 11 % 10 != int(digits[9])


class Pattern(NamedTuple):
    """A form of personal data, in a group of the kind's name where it has words around it."""

    kind: Kind
    regex: re.Pattern[str]
    check: Check | None = None
    in_urls: bool = False
    """Whether it is looked for in addresses of pages too, whose numbers are otherwise the page's."""


def _pattern(kind: Kind, regex: str, check: Check | None = None, *, in_urls: bool = False) -> Pattern:
    return Pattern(kind, re.compile(regex), check, in_urls)


EMAILS = (
    _pattern("email", rf"{LOCAL}{AT}[\w-]++(?:{DOT}[\w-]++)++", in_urls=True),
    _pattern("email", rf"{LOCAL}{AT}{HOSTS}(?:\s{{0,2}}[, ]\s{{0,2}}(?:ru|com|ру|рф))?(?!\w)", in_urls=True),
    _pattern("email", rf"{LOCAL}\s{{1,2}}at\s{{1,2}}[\w-]++\s{{1,2}}{DOT_WORD}\s{{1,2}}\w+"),
    _pattern("email", rf"{DOG}[\w-]{{1,64}}(?:{DOT}[\w-]{{1,64}}){{1,4}}"),
    _pattern("email", rf"{DOG}{HOSTS}(?:[\s,]{{1,2}}(?:ru|com|ру|ком))?(?!\w)"),
)
PAGES = (
    _pattern("phone", r"(?:wa\.me/|phone=|tel:)\+?(?P<phone>\d{10,15})(?!\d)", in_urls=True),
    _pattern(
        "address",
        rf"(?<![\w.-])(?:www\.|m\.)?{SITES}/(?P<address>(?!{NO_PERSON})(?![a-z0-9_]{{0,40}}bot(?!\w))[\w.@+-]{{2,64}}\w)",
        in_urls=True,
    ),
    _pattern("address", r"tg://resolve\?domain=(?P<address>\w{4,40})", in_urls=True),
    _pattern("address", r"@(?<![\w@./]@)(?!\w{0,40}bot(?!\w))[a-z]\w{4,31}(?![\w/(]|\.\w)"),
    _pattern("address", rf"{MESSENGER}\s?[:=@-]{{1,2}}\s{{0,2}}@?(?P<address>[a-z][\w.]{{3,31}}\w)"),
    _pattern("address", rf"{MESSENGER}\s{{1,2}}(?P<address>[a-z](?=[a-z.]{{0,31}}[_\d])[\w.]{{3,31}}\w)"),
)
NUMBERS = (
    _pattern(
        "id", r"[2-6](?<![\w.-].)(?:\d{12,18}|\d{3}(?:[\s._/-]{1,3}\d{4}){3}|\d{3}[\s-]\d{6}[\s-]\d{5})(?!\d)", luhn
    ),
    _pattern("id", r"[2-6](?<![\w.-].)(?:[\s.-]{1,2}\d){15}(?![\s.-]{0,2}\d)", luhn),
    _pattern("id", rf"{_words('карт', 'card')}{LETTERS}[^\d\n]{{0,15}}?(?P<id>\d{{4}}(?:[\s.-]?\d{{4}}){{3}})(?!\d)"),
    _pattern("id", r"[a-z](?<!\w.)[a-z]\d\d(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?(?!\w)", iban),
    _pattern("id", r"4(?<!\w.)(?:08(?:17|20|02)|2[36]\d\d) ?\d{3} ?\d ?(?:\d ?){10}\d(?!\d)"),
    _pattern("id", r"\d(?<![\w-].)\d\d-\d{3}-\d{3}[ -]\d{2}(?!\d)"),
    _pattern("id", r"снилс\W{0,3}(?P<id>\d{3}[ .-]?\d{3}[ .-]?\d{3}[ .-]?\d\d)(?!\d)"),
    _pattern("id", r"\d(?<![\w.,-].)\d\d \d{3} \d{3} \d\d(?![\w.,-])", pension),
    _pattern("id", r"\d(?<![\w/.,+-].)\d{11}(?![\w-])", own_tax),
    _pattern("id", rf"(?:паспорт|passport){LETTERS}[^\d\n]{{0,25}}?{PASSPORT}"),
    _pattern("id", rf"{SERIES}{PASSPORT}"),
    _pattern("id", r"\d(?<![\w.,-].)\d \d\d (?:№ ?)?\d{6}(?![\w-]|[.,]\d|\s{0,2}(?:руб|₽|тыс))"),
    _pattern("phone", rf"{SEVEN}{GAP}\d{{3}}{GAP}\d{{3}}{GAP}\d{{2}}{GAP}\d{{2}}(?!\d)"),
    _pattern("phone", rf"{SEVEN}{NO_DATE}{GAP}[3489]\d{{2}}(?:{GAP}\d){{7}}(?!\d)"),
    _pattern("phone", rf"(?:\+{FREE}\s?7{GAP}\d|[87]{FREE}{NO_DATE}{GAP}9)(?:{GAP}\d){{9}}(?!\d)"),
    _pattern("phone", rf"[87]{FREE}(?:[\s.,/_-]{{1,3}}\d(?!\d)){{10}}(?![\s.,/_-]{{0,3}}\d)"),
    _pattern("phone", rf"\+(?<![\w+].)\d{{1,3}}(?:{GAP}\d{{1,4}}){{3,5}}(?!\d)"),
    _pattern("phone", rf"9{FREE}\d{{2}}[\s./_-]?\d{{3}}[\s./_-]?\d{{2}}[\s./_-]?\d{{2}}(?!\d|-\d)"),
    _pattern("phone", rf"9{FREE}(?:[\s.,_-]{{1,2}}\d(?!\d)){{9}}(?![\s.,_-]{{0,2}}\d)"),
    _pattern("phone", rf"\({FREE}\d{{3,5}}\){GAP}\d{{2,3}}{GAP}\d{{2}}{GAP}\d{{2}}(?!\d)"),
    _pattern("phone", rf"\d{FREE}\d{{1,2}}-\d{{2}}-\d{{2}}(?!\d|-\d)"),
    _pattern(
        "phone", rf"{CALLS}[^\d\n+]{{0,20}}?(?P<phone>\+?(?!\d{{1,2}}\.\d\d\s?-)\d{NO_DATE}[\d\s()./-]{{4,16}}\d)(?!\d)"
    ),
    _pattern("phone", r"[78](?<!\d.)9\d{9}(?!\d)", in_urls=True),
    _pattern("id", rf"{BORN}{LETTERS}[^\d\n]{{0,20}}?(?P<id>{DATE})"),
    _pattern("id", rf"{PAPERS}[^\d\n]{{0,15}}?(?P<id>{NUMBER})(?![\d-])", private),
    _pattern("id", r"[a-zа-я](?<![\w/.-].)[a-zа-я]{0,2}-?\d{5,10}(?![\w-])"),
    _pattern("id", r"\d(?<![\w/.,+-].)\d{6,9}(?![\w-]|[.,]\d|\s{0,3}(?:руб|₽|тыс|р\.))", private),
)
BORN_THEN = (_pattern("id", rf"(?<![\d.])(?P<id>{DATE})\s{{0,2}}(?:г\.\s?р\.|г/р|(?:года?|г\.)?\s{{0,2}}рожд)"),)
FLATS = (_pattern("address", rf"(?:(?:г\.|город)\s?[а-я][\w-]{{2,20}},?\s{{1,2}})?{STREET}[^\n]{{2,60}}?{FLAT}"),)
OTHERS = (
    _pattern("id", rf"{LOGIN}\s{{0,2}}[:=-]?\s{{0,2}}(?P<id>[a-z](?=[a-z]{{0,31}}[_\d.][a-z\d])[\w.]{{3,31}}\w)"),
    _pattern("id", r"(?:парол[ьяею]|password|pwd)\s{0,2}[:=]\s{0,2}(?P<id>(?=\S{0,31}[\da-z])[^\s,;]{4,64})"),
    _pattern(
        "address",
        rf"{AVENUE}\s[^\n\d]{{2,30}}?\d{{1,3}}[а-я]?-\d{{2,4}}(?![\d-])",
    ),
)


def _any_of(*pieces: str) -> Callable[[str], bool]:
    return lambda text: any(map(text.__contains__, pieces))


GROUPS: tuple[tuple[Callable[[str], object], tuple[Pattern, ...]], ...] = (
    (re.compile(r"@|%40|[\[({<]\s?[a-z]|собак|собач|sobaka|\sat\s|[\[({<]\s?[сг]").search, EMAILS),
    (re.compile(r"[a-z]").search, PAGES),
    (re.compile(r"\d(?:\D*+\d){4}").search, NUMBERS),
    (_any_of("рожд", "г.р", "г. р", "г/р"), BORN_THEN),
    (_any_of("кв"), FLATS),
    (_any_of("логин", "login", "user", "аккаунт", "account", "учетка", "парол", "passw", "pwd", "ул", "пр"), OTHERS),
)
"""Patterns with what a text must have for any of them to fit: most texts are done with a few short looks."""
SPELLED: dict[Kind, re.Pattern[str]] = {
    "email": re.compile(rf"%40|(?<=[\W]){AT_WORD}(?=\W)|(?:sobaka|собак[ау]|собачка)|(?<=\W){DOT_WORD}(?=\W)"),
    "id": re.compile(r"паспорта|номер|ном\.|сери[яиейю]{1,2}"),
    "address": re.compile(r"^(?:https?://|www\.|m\.)"),
}
"""Words of a finding that another spelling of the same has not."""
