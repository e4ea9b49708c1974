"""Find names of people in a text by neighbouring words, in one pass over the words.

Signs of a name are: a first name with a surname in any case, a patronymic, initials, «меня зовут», «доцент», or «у»
before a form of a surname.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

FIRST_NAMES = """
александр александра алексей алёна алина алиса алла альберт анастасия анатолий ангелина андрей анжела анна антон
антонина ариана арина аркадий арсений артём артемий артур асия ася ахмед айгуль азат айдар айрат аксинья амина амир
аида белла богдан борис булат вадим валентин валентина валерий валерия варвара василий василиса вера вероника виктор
виктория виолетта виталий влад владимир владислав владислава всеволод вячеслав галина геннадий георгий герман глафира
глеб григорий гузель гульнара дамир дана данил данила даниил даниэль дарина дарья денис диана дина динара дмитрий ева
евгений евгения егор екатерина елена елизавета ефим жанна захар зинаида злата зоя иван игнат игорь ильдар ильнур ильяс
илья инга инесса инна иннокентий ирина камила камилла карина кира кирилл клавдия клим константин кристина ксения лада
лариса лев леонид лиана лидия лилия любовь людмила магомед майя макар максим марат маргарита марина мария марк марта
матвей мила милана милена мирон мирослав мирослава михаил надежда назар наталия наталья наиль нелли ника никита
николай нина оксана олег олеся ольга павел пётр платон полина прохор равиль радик рамиль ренат рената рафаэль рина
ринат роберт родион роза роман ростислав руслан рустам рустем сабина савва савелий светлана святослав семён сергей
снежана софия софья станислав степан стефания таисия тамара тарас татьяна тимофей тимур тихон ульяна фаина фёдор
филипп эвелина эдгар эдуард элеонора эльвира эльдар эльмира эмилия эмиль эрик юлиана юлия юрий ян яна ярослав ярослава
яков аня алёша ваня вася витя вова вика даня даша дима женя жора ира катя коля костя ксюша лена лёша лида люба люда
маша миша надя настя наташа оля паша петя рита рома саша света серёжа сеня слава соня стас таня толя тоня ульяша федя
юля юра ярик
"""
AMBIGUOUS_NAMES = """
вера веры вере веру верой любовь любви любовью надежда надежды надежде надежду надеждой роман романа романе роману
романом романы лев марк марка марке марки марку маркой марта марте марту мартом март роза розы розе розу розой слава
славы славе славу славой света свете свету светом мила мира лада лады злата дана дане дано дану даны рома ян ника нике
лида клим тарас герман германа германе майя майе май мая маю маем платон тихон назар ира рита дина оля коля коли соня
соню кира лена лену ася поля люда захар эрик дима витя костя кости костью костей софия софии прохор ефим мирон
владимир владимире владимира ростислав ваня вани женя жени рина белла роберт даня
"""
"""Forms of names that are also words or places: without a capital letter they do not count as names."""
IRREGULAR_FORMS = {
    "лев": "льва льву львом льве",
    "петр": "петра петру петром петре",
    "павел": "павла павлу павлом павле",
    "любовь": "любови любовью",
}
ENDINGS = {"й": "й я ю ем е и", "ь": "ь я ю ем е и ью", "я": "я и е ю ей", "а": "а ы и е у ой ей", "": " а у ом ем е"}
FOREIGN_NAMES = """
ana maria viktoria roman marina mark marta robert german alisa diana karina dina kira nika lada mila ian eva albert
roza filip platon klim inga emil erik edgar rina dana lev maks vera sofia ia nina artur taras angelina iana bela ira
rita vika daniel
"""
"""Names that also exist in other languages: they count only before a Slavic surname."""
LATIN_SOUNDS = str.maketrans(
    dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziiklmnoprstufie", strict=True))
    | {"ё": "e", "ж": "zh", "х": "h", "ц": "c", "ч": "ch", "ш": "sh", "щ": "sh", "ю": "iu", "я": "ia", "ъ": "", "ь": ""}
)
SOUND_OF_SPELLING = {"kh": "h", "ks": "x", "ts": "c", "y": "i", "j": "i", "w": "v", "shch": "sh", "ph": "f"}


def latin_sound(word: str) -> str:
    """Return a Latin word as it sounds, because a name has as many spellings as transliteration tables."""
    for spelling, sound in SOUND_OF_SPELLING.items():
        word = word.replace(spelling, sound)
    return re.sub(r"(.)\1", r"\1", word)


def _decline_name(name: str) -> list[str]:
    """Return a first name in all cases; some of the forms do not exist, but nothing else is spelt like them."""
    if name in IRREGULAR_FORMS:
        return [name, *IRREGULAR_FORMS[name].split()]
    ending = next((end for end in "йья" if name.endswith(end)), "а" if name.endswith("а") else "")
    if name.endswith(("и", "о", "у")):
        return [name]
    return [name, *(name.removesuffix(ending) + end for end in ENDINGS[ending].split())]


BASE_FIRST_NAMES = frozenset(name.replace("ё", "е") for name in FIRST_NAMES.split())
FIRST_NAME_FORMS = frozenset(form for name in BASE_FIRST_NAMES for form in _decline_name(name))
LATIN_NAME_SOUNDS = frozenset(latin_sound(name.translate(LATIN_SOUNDS)) for name in BASE_FIRST_NAMES)
AMBIGUOUS_FORMS = frozenset(AMBIGUOUS_NAMES.split())
FOREIGN_NAME_SOUNDS = frozenset(FOREIGN_NAMES.split())


SURNAME = re.compile(
    r".{2,}(?:(?:[ое]в|[иы]н)(?:а|у|ым|е|ой|ых)?|(?:ск|цк|ст)(?:ий|ой|ого|ому|им|ом|ая|ую)|(?:енко|айко|ойко)|[уюи]к(?:а|у|е|ом)?"
    r"|[яа]н(?:а|у|е|ом)?|швили|дзе|[ыи]х|ец|[ое]вич)"
)
CLEAR_SURNAME = re.compile(
    r".{2,}(?:[ое]в(?:а|у|ым|ой)|[иы]н(?:у|ым|ой)|енко|[ую]к(?:а|у|ом)|ян(?:а|у|ом)|(?:ск|цк)(?:ого|ому|им))"
)
"""Endings of surnames that places and things rarely have after «у», «к», «с»."""
NOUN_ENDINGS = {
    "го": "ая",
    "му": "ую",
    "им": "м",
    "ом": "еи",
    "ой": "ыией",
    "ую": "ую",
    "их": "вйях",
    "ых": "вйях",
    "ая": "ая",
    "ый": "йтрлкн",
}
"""Last letters of the noun after an adjective, by the adjective's last two letters."""
BASE_SURNAME = re.compile(r".{3,}(?:(?:[ое]в|[иы]н)а?|(?:ск|цк)(?:ий|ая)|енко|чук|[гд]ян)")
PATRONYMIC = re.compile(
    r".{2,}(?:[ое]вич|[ьи]евич|аевич)(?:а|у|ем|ом|е)?|.{2,}[ое]вн[аыеу]|(?:ил|кузьм|никит|лук|фом|савв)(?:ь|и)?ич(?:а|у|ем|ом|е)?"
    r"|никитич(?:а|у|ем|е)?|кузьмич(?:а|у|ем|е)?|(?:ильин|кузьмин|никит|лукин|фомин|саввин)ичн(?:а|ы|е|у|ой)"
)
AMBIGUOUS_PATRONYMIC = re.compile(r".{2,}(?:[ое]вной|ичн(?:а|ы|е|у|ой))")
"""Patronymics that are also adjectives (Основной): they count only next to a first name."""
ROLES = re.compile(
    r"(?:(?P<near>преподавател|преподавательниц|доцент|профессор|ассистент|куратор|тьютор|методист|студент|студентк|аспирант|аспирантк"
    r"|старост|одногруппник|одногруппниц|соседк|проф|доц|препод)|учител|декан|выпускник|ректор|проректор|директор|доктор|секретар"
    r"|лектор|завкафедр|научрук|сосед|гражданин|господин|товарищ|руководител|госпож)(?:а|у|ом|ем|е|ы|и|ой|ей|ь|я|ю)?"
)
"""Roles before a surname; after roles from student life (`near`), any capitalised word is a surname."""
CUES = re.compile(r"зовут|фамили[яюейи]|фио")
PREPOSITIONS = frozenset(("у", "к", "ко", "от", "с", "со", "для", "про", "о", "об", "обо", "за", "перед", "через"))
EPONYMS = re.compile(
    r"имени|им|ул|улиц[аеуы]|пр|проспект[ае]?|площад[ьи]|пл|шоссе|памятник[ау]?|теорем[аеуы]|музе[йяе]|театр[ае]?|библиотек[аеуи]|храм[ае]?"
)
"""Things named after known people, such as streets."""
NO_SURNAME = re.compile(
    r"росси|москов|самарск|русск|государственн|поволжск|петербургск|казанск|томск|новосибирск|уральск|сибирск|волжск|советск"
    r"|паспорт|телефон|почт[аеуы]$|адрес|справк|заявлен"
    r"|университет|институт|факультет|кафедр|академи|колледж|школ|центр|управлен|деканат|министерств|отдел|приказ|основ"
    r"|(?:ростов|саратов|псков|азов|тамбов|киров|серпухов|харьков|львов|киев|могилев|кишинев|берлин|пекин|остров)(?:[ае]?$|ск)"
    r"|украин|аргентин|палестин|английск|немецк|французск|китайск|европейск|американск|татарск|медицин|магистр|бакалавр|курс[ае]?$"
    r"|групп|здравствуйт|добр(?:ый|ое|ого|ая)$|уважаем|подскаж|студент|преподават|декан|ректор|профессор|доцент|куратор|руководител"
    r"|улиц|проспект|площад|город[ае]?$|корпус|вопрос|январ|феврал|март[ае]?$|апрел|июн|июл|август|сентябр|октябр|ноябр|декабр"
    r"|понедельник|вторник|четверг|пятниц|суббот|воскресен|интернет|экзамен|зачет|сесси|кабинет|спасибо|магазин|общежити|древн|северн"
    r"|(?:как|какой|какие|где|кто|что|почему|если|когда|можно|нужно|есть|для|или|это|мой|моя|наш|ваш|он|она|они|вы|мы|ты|я|на|по|но|и|а|в"
    r"|ее|их|его|их|них|тех|всех|этих|своих|других|таких|многих|один|затем|там|так|тут|вот|пусть|под|из|после|перед|среди|сын|дочь"
    r"|автор|герой|мать|отец|брат|сестра|король|папа|царь|император|принц|дом|план|тогда|однако|хотя|здесь|пока|поэтому|фамилия|имя|фио)$"
)
LOOKALIKES = str.maketrans("aceopxykABCEHKMOPTXY", "асеорхукАВСЕНКМОРТХУ")
WORD = re.compile(r"(?:(?<![^\W_])[А-ЯЁA-Z]\.|[^\W\d_]+(?:[-'’][^\W\d_]+)*+)")
CAPITAL = re.compile(r"[А-ЯЁA-Z]")
LIKELY_PARTS = ("зовут", "фамили", "фио", "вич", "вна", "вне", "вну", "чна", "чне", " я ")
"""A text with a name has a capital letter or one of these."""
INTRODUCTION = re.compile(r"(?i:my name is|i am called)\s{1,3}([A-Z][a-z]{1,30}(?:\s{1,3}[A-Z][a-z]{1,30}){0,2})")
CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
LATIN_SURNAME = re.compile(r".{2,}(?:[eo]va?|[iy]na?|s[kc](?:iy|y|ii|i|aya|aia)|enko|[uy]u?k|yan|ian)")


class Word(NamedTuple):
    """Features of a word."""

    lower: str
    may_start_name: bool = False
    """Whether a name can start with it."""
    has_capital: bool = False
    is_initial: bool = False
    is_first_name: bool = False
    is_only_name: bool = False
    """Whether it is a first name and no other word."""
    is_base_form: bool = False
    """Whether it is a first name in dictionary form."""
    is_patronymic: bool = False
    may_be_patronymic: bool = False
    is_surname: bool = False
    is_latin: bool = False
    is_upper: bool = False


NO_WORD = Word("")
"""Stands for a missing neighbour; it has no feature."""


def find_names(text: str, lower: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of every name, in order.

    Args:
        text: the text with its capital letters.
        low: the same in lower case, with spaces in place of parts that hold no name.
    """
    if CAPITAL.search(text) is None and not any(map(lower.__contains__, LIKELY_PARTS)) and not lower.startswith("я "):
        return
    spans = [match.span() for match in WORD.finditer(text) if lower[match.start()] != " "]
    words = [_word_features(text[start:end]) for start, end in spans]

    def next_word(index: int) -> Word:
        """Return the word after the one at an index, if only a space is between them."""
        if index + 1 >= len(words) or spans[index + 1][0] - spans[index][1] > 3:
            return NO_WORD
        gap = text[spans[index][1] : spans[index + 1][0]]
        return words[index + 1] if gap.isspace() or (gap == "" and words[index].is_initial) else NO_WORD

    index = 0
    while index < len(words):
        if not words[index].may_start_name:
            index += 1
            continue
        second = next_word(index)
        third = next_word(index + 1) if second is not NO_WORD else NO_WORD
        start = spans[index][0]
        gap = text[spans[index - 1][1] : start] if index and start - spans[index - 1][1] <= 3 else ""
        size = _name_length(words[index - 1] if gap else NO_WORD, gap, words[index], second, third)
        if size > 0:
            yield start, spans[index + size - 1][1]
        index += abs(size) or 1
    if "name is" in lower or "am called" in lower:
        yield from (match.span(1) for match in INTRODUCTION.finditer(text))


def _name_length(before: Word, gap: str, first: Word, second: Word, third: Word) -> int:
    """Return how many words from `first` on are a name; negative for a known person, as of a street; 0 if none."""
    space = gap.isspace()
    length = (
        _with_patronymic(first, second, third)
        or _with_initials(first, second, third)
        or _first_and_surname(first, second, third, middle=space and not before.has_capital)
    )
    if length:
        is_known_person = (
            (space or (gap == ". " and len(before.lower) <= 3))
            and EPONYMS.fullmatch(before.lower) is not None
            and not (second.is_patronymic or third.is_patronymic)
        )
        return -length if is_known_person else length
    if before is NO_WORD:
        return 0
    if (
        CUES.fullmatch(before.lower)
        and not {".", "!", "?"} & set(gap)
        and (
            first.has_capital
            or first.is_first_name
            or (first.is_surname and second.is_first_name)
            or before.lower[:3] == "фам"
        )
    ):
        return _count_name_words(first, second, third)
    if (
        first.has_capital
        and not first.is_initial
        and not first.is_latin
        and not NO_SURNAME.match(first.lower)
        and not _is_adjective(first, second)
    ):
        role_match = ROLES.fullmatch(before.lower) if space or (gap == ". " and len(before.lower) <= 4) else None
        if role_match and (first.is_surname or first.is_first_name or (role_match["near"] and not first.is_upper)):
            return 1
        if before.lower in PREPOSITIONS and space and not before.has_capital and CLEAR_SURNAME.fullmatch(first.lower):
            return 1
    if before.lower == "я" and space and first.is_only_name:
        return 1 + second.is_surname
    return int(before.lower == "я" and space and first.is_surname and second.is_first_name) * 2


def _with_patronymic(first: Word, second: Word, third: Word) -> int:
    """Return the length of: (surname) first name, patronymic (surname)."""
    if (second.is_patronymic or second.may_be_patronymic) and (
        first.is_first_name
        or (second.is_patronymic and first.has_capital and second.has_capital and not NO_SURNAME.match(first.lower))
    ):
        last = (
            third.is_surname
            if not first.has_capital
            else third.has_capital and not third.is_initial and not NO_SURNAME.match(third.lower)
        )
        return 2 + last
    if (
        (third.is_patronymic or third.may_be_patronymic)
        and (first.has_capital or first.is_surname)
        and not NO_SURNAME.match(first.lower)
    ):
        return 3 * (
            second.is_first_name
            or (third.is_patronymic and second.has_capital and third.has_capital and first.is_surname)
        )
    return 0


def _with_initials(first: Word, second: Word, third: Word) -> int:
    """Return the length of a surname with initials before or after it; with one only if it looks like a surname."""
    if first.is_initial and second.is_initial:
        return 3 * (third.has_capital and not third.is_initial and (third.is_surname or not third.is_latin))
    if first.is_initial:
        return 2 * (second.has_capital and second.is_surname)
    if first.has_capital and second.is_initial:
        return (
            3 * (first.is_surname or not first.is_latin)
            if third.is_initial
            else 2 * (first.is_surname and not first.is_latin)
        )
    return 0


def _first_and_surname(first: Word, second: Word, third: Word, *, middle: bool) -> int:
    """Return the length of first name and surname, in either order."""
    if first.is_latin or second.is_latin:
        slavic = (
            (first.is_first_name and second.is_surname)
            or (second.is_only_name and first.is_surname)
            or (first.is_only_name and not second.is_initial)
        )
        return 2 * (first.is_latin and second.is_latin and first.has_capital and second.has_capital and slavic)
    if first.has_capital != second.has_capital or first.is_initial or second.is_initial:
        return 0
    if not first.has_capital:
        return 2 * (
            (first.is_base_form and first.is_only_name and _is_base(second))
            or (second.is_base_form and second.is_only_name and _is_base(first))
        )
    if (
        second.is_first_name
        and (first.is_surname or (middle and second.is_only_name and not first.is_first_name))
        and not NO_SURNAME.match(first.lower)
    ):
        return 2
    return 2 * (first.is_first_name and not NO_SURNAME.match(second.lower))


def _is_adjective(word: Word, after: Word) -> bool:
    """Return whether a word may be an adjective of a place, such as Парижского, with its noun after it."""
    return after.lower[-1:] in NOUN_ENDINGS.get(word.lower[-2:], ".") and after is not NO_WORD and not after.has_capital


def _is_base(word: Word) -> bool:
    return BASE_SURNAME.fullmatch(word.lower) is not None and NO_SURNAME.match(word.lower) is None


def _count_name_words(*words: Word) -> int:
    """Count the words of the name after «меня зовут»: capitalised words or known names."""
    size = 0
    for word in words:
        if (
            word.is_initial
            or NO_SURNAME.match(word.lower)
            or not (word.has_capital or word.is_first_name or word.is_surname or word.is_patronymic)
        ):
            break
        size += 1
    return size


@lru_cache(maxsize=50_000)
def _word_features(token: str) -> Word:
    """Return the features of a word."""
    has_capital, lower = token[0].isupper(), token.lower()
    if len(token) > 40:
        return Word("")
    if token.endswith("."):
        return Word("", may_start_name=True, has_capital=True, is_initial=True, is_latin=token.isascii())
    is_upper = len(token) > 1 and token.isupper()
    if not CYRILLIC.search(token):
        sound, is_surname = latin_sound(lower), LATIN_SURNAME.fullmatch(lower) is not None
        is_first_name = has_capital and sound in LATIN_NAME_SOUNDS
        is_only_name = is_first_name and sound not in FOREIGN_NAME_SOUNDS
        return Word(
            lower,
            has_capital,
            has_capital,
            is_first_name=is_first_name,
            is_only_name=is_only_name,
            is_surname=is_surname,
            is_latin=True,
            is_upper=is_upper,
        )
    lower = token.translate(LOOKALIKES).lower().replace("ё", "е")
    first_part, last_part = lower.split("-", 1)[0], lower.rsplit("-", 1)[-1]
    is_first_name = first_part in FIRST_NAME_FORMS
    is_surname = len(lower) >= 4 and SURNAME.fullmatch(last_part) is not None and NO_SURNAME.match(lower) is None
    return Word(
        lower,
        may_start_name=has_capital or is_first_name or is_surname,
        has_capital=has_capital,
        is_first_name=is_first_name,
        is_only_name=is_first_name and first_part not in AMBIGUOUS_FORMS,
        is_base_form=first_part in BASE_FIRST_NAMES,
        is_patronymic=PATRONYMIC.fullmatch(lower) is not None,
        may_be_patronymic=AMBIGUOUS_PATRONYMIC.fullmatch(lower) is not None,
        is_surname=is_surname,
        is_upper=is_upper,
    )


RARE_CHARACTER = re.compile(r"[^\x00-\x7fА-яЁё«»№…]")
"""Rare characters: typographic signs and spaces, digits of other scripts, letters without width."""
KEPT_SIGNS = "№…"
"""Signs that stay, because their NFKC form is several letters and the patterns expect the signs."""


def normalise_characters(text: str) -> tuple[str, list[int] | None]:
    """Normalise letters (composed NFKC), digits, hyphens and spaces to common forms, without invisible signs.

    Args:
        text: any text.

    Returns:
        The text for patterns, and the offset in the given text for each of its characters and its end; None if nothing
        changed.
    """
    if text.isascii():
        return text, None
    text = text.replace("—", "-").replace("–", "-").replace("\u00a0", " ")  # the frequent ones, at a tenth of the cost
    if RARE_CHARACTER.search(text) is None:
        return text, None
    letters: list[str] = []
    offsets: list[int] = []
    for offset, letter in enumerate(text):
        normalised = _normalise_letter(letter)
        if letters and unicodedata.combining(letter):
            composed = unicodedata.normalize("NFC", letters[-1] + letter)
            if len(composed) == 1:
                letters[-1] = composed
            continue
        letters += normalised
        offsets += [offset] * len(normalised)
    return "".join(letters), [*offsets, len(text)]


def to_original_span(offsets: list[int] | None, start: int, end: int) -> tuple[int, int]:
    """Return start and end in the given text for a span of the normalised one; no character is cut in two."""
    return (start, end) if offsets is None else (offsets[start], max(offsets[end], offsets[end - 1] + 1))


def lower_preserving_length(text: str) -> str:
    """Return the text in lower case, with е for ё, and of equal length; case-sensitive patterns are faster."""
    lower = text.lower()
    lower = (
        lower
        if len(lower) == len(text)
        else "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    )
    return lower.replace("ё", "е")


@cache
def _normalise_letter(letter: str) -> str:
    category = unicodedata.category(letter)
    if category == "Nd":
        return str(unicodedata.decimal(letter))
    if category == "Pd" or letter == "−":
        return "-"
    if category == "Cf" or unicodedata.combining(letter) or "\ufe00" <= letter <= "\ufe0f":
        return ""
    if letter in KEPT_SIGNS:
        return letter
    return unicodedata.normalize("NFKC", letter)
