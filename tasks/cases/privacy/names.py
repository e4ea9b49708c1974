"""Names of people in a text, told by what stands together: a first name and a surname in any case, a patronymic,
initials, «меня зовут», «доцент», «у» before the form of a surname. One pass over the words; each is looked up.
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
WORDS_TOO = """
вера веры вере веру верой любовь любви любовью надежда надежды надежде надежду надеждой роман романа романе роману
романом романы лев марк марка марке марки марку маркой марта марте марту мартом март роза розы розе розу розой слава
славы славе славу славой света свете свету светом мила мира лада лады злата дана дане дано дану даны рома ян ника нике
лида клим тарас герман германа германе майя майе май мая маю маем платон тихон назар ира рита дина оля коля коли соня
соню кира лена лену ася поля люда захар эрик дима витя костя кости костью костей софия софии прохор ефим мирон
владимир владимире владимира ростислав ваня вани женя жени рина белла роберт даня
"""
"""Forms of names that are words or places too: without a capital letter they are no sign."""
OTHERS_OF = {
    "лев": "льва льву львом льве",
    "петр": "петра петру петром петре",
    "павел": "павла павлу павлом павле",
    "любовь": "любови любовью",
}
ENDINGS = {"й": "й я ю ем е и", "ь": "ь я ю ем е и ью", "я": "я и е ю ей", "а": "а ы и е у ой ей", "": " а у ом ем е"}
ELSEWHERE_TOO = """
ana maria viktoria roman marina mark marta robert german alisa diana karina dina kira nika lada mila ian eva albert
roza filip platon klim inga emil erik edgar rina dana lev maks vera sofia ia nina artur taras angelina iana bela ira
rita vika daniel
"""
"""Names as they sound in other languages too: they count before a Slavic surname only."""
SOUNDS = str.maketrans(
    dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziiklmnoprstufie", strict=True))
    | {"ё": "e", "ж": "zh", "х": "h", "ц": "c", "ч": "ch", "ш": "sh", "щ": "sh", "ю": "iu", "я": "ia", "ъ": "", "ь": ""}
)
SPELLINGS = {"kh": "h", "ks": "x", "ts": "c", "y": "i", "j": "i", "w": "v", "shch": "sh", "ph": "f"}


def sound_of(word: str) -> str:
    """A Latin word as it sounds, for a name has as many spellings as there are tables of letters."""
    for many, one in SPELLINGS.items():
        word = word.replace(many, one)
    return re.sub(r"(.)\1", r"\1", word)


def _forms(name: str) -> list[str]:
    """A first name in all cases, and forms that no case has: nobody is called so otherwise."""
    if name in OTHERS_OF:
        return [name, *OTHERS_OF[name].split()]
    ending = next((end for end in "йья" if name.endswith(end)), "а" if name.endswith("а") else "")
    if name.endswith(("и", "о", "у")):
        return [name]
    return [name, *(name.removesuffix(ending) + end for end in ENDINGS[ending].split())]


BASES = frozenset(name.replace("ё", "е") for name in FIRST_NAMES.split())
FORMS = frozenset(form for name in BASES for form in _forms(name))
LATIN = frozenset(sound_of(name.translate(SOUNDS)) for name in BASES)
ALSO_WORDS = frozenset(WORDS_TOO.split())
ALSO_LATIN = frozenset(ELSEWHERE_TOO.split())


SURNAME = re.compile(
    r".{2,}(?:(?:[ое]в|[иы]н)(?:а|у|ым|е|ой|ых)?|(?:ск|цк|ст)(?:ий|ой|ого|ому|им|ом|ая|ую)|(?:енко|айко|ойко)|[уюи]к(?:а|у|е|ом)?"
    r"|[яа]н(?:а|у|е|ом)?|швили|дзе|[ыи]х|ец|[ое]вич)"
)
CLEAR = re.compile(
    r".{2,}(?:[ое]в(?:а|у|ым|ой)|[иы]н(?:у|ым|ой)|енко|[ую]к(?:а|у|ом)|ян(?:а|у|ом)|(?:ск|цк)(?:ого|ому|им))"
)
"""Endings of surnames that hardly a place or a thing has after «у», «к», «с»."""
AGREES = {
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
"""The last letter of the noun behind an adjective, by the adjective's last two."""
BASE = re.compile(r".{3,}(?:(?:[ое]в|[иы]н)а?|(?:ск|цк)(?:ий|ая)|енко|чук|[гд]ян)")
FATHER = re.compile(
    r".{2,}(?:[ое]вич|[ьи]евич|аевич)(?:а|у|ем|ом|е)?|.{2,}[ое]вн[аыеу]|(?:ил|кузьм|никит|лук|фом|савв)(?:ь|и)?ич(?:а|у|ем|ом|е)?"
    r"|никитич(?:а|у|ем|е)?|кузьмич(?:а|у|ем|е)?|(?:ильин|кузьмин|никит|лукин|фомин|саввин)ичн(?:а|ы|е|у|ой)"
)
FATHER_TOO = re.compile(r".{2,}(?:[ое]вной|ичн(?:а|ы|е|у|ой))")
"""Patronymics that are adjectives too (Основной): they count beside a first name only."""
ROLES = re.compile(
    r"(?:(?P<near>преподавател|преподавательниц|доцент|профессор|ассистент|куратор|тьютор|методист|студент|студентк|аспирант|аспирантк"
    r"|старост|одногруппник|одногруппниц|соседк|проф|доц|препод)|учител|декан|выпускник|ректор|проректор|директор|доктор|секретар"
    r"|лектор|завкафедр|научрук|сосед|гражданин|господин|товарищ|руководител|госпож)(?:а|у|ом|ем|е|ы|и|ой|ей|ь|я|ю)?"
)
"""Before a surname; after those that a student has to do with, any capital letter is one."""
CUES = re.compile(r"зовут|фамили[яюейи]|фио")
BEFORE = frozenset(("у", "к", "ко", "от", "с", "со", "для", "про", "о", "об", "обо", "за", "перед", "через"))
EPONYMS = re.compile(
    r"имени|им|ул|улиц[аеуы]|пр|проспект[ае]?|площад[ьи]|пл|шоссе|памятник[ау]?|теорем[аеуы]|музе[йяе]|театр[ае]?|библиотек[аеуи]|храм[ае]?"
)
"""What bears the name of somebody known, as streets do."""
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
SPOKEN = ("зовут", "фамили", "фио", "вич", "вна", "вне", "вну", "чна", "чне", " я ")
"""One of these there is, or a capital letter, where there is a name."""
ENGLISH = re.compile(r"(?i:my name is|i am called)\s{1,3}([A-Z][a-z]{1,30}(?:\s{1,3}[A-Z][a-z]{1,30}){0,2})")
CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
LATIN_SURNAME = re.compile(r".{2,}(?:[eo]va?|[iy]na?|s[kc](?:iy|y|ii|i|aya|aia)|enko|[uy]u?k|yan|ian)")


class Word(NamedTuple):
    """A word and what it may be."""

    low: str
    likely: bool = False
    """Whether a name may begin with it."""
    capital: bool = False
    initial: bool = False
    first: bool = False
    sure: bool = False
    """A first name that is no other word."""
    base: bool = False
    """A first name as it stands in a dictionary."""
    father: bool = False
    father_too: bool = False
    surname: bool = False
    latin: bool = False
    upper: bool = False


NONE = Word("")
"""What is beside a word where no word is: it has no property."""


def names(text: str, low: str) -> Iterator[tuple[int, int]]:
    """Start and end of every name, in their order.

    Args:
        text: with its capital letters.
        low: the same in lower case, with spaces in the place of what holds no name.
    """
    if CAPITAL.search(text) is None and not any(map(low.__contains__, SPOKEN)) and not low.startswith("я "):
        return
    places = [match.span() for match in WORD.finditer(text) if low[match.start()] != " "]
    words = [_known(text[start:end]) for start, end in places]

    def beside(place: int) -> Word:
        """The word behind that at a place, if nothing but a space is between them."""
        if place + 1 >= len(words) or places[place + 1][0] - places[place][1] > 3:
            return NONE
        gap = text[places[place][1] : places[place + 1][0]]
        return words[place + 1] if gap.isspace() or (gap == "" and words[place].initial) else NONE

    place = 0
    while place < len(words):
        if not words[place].likely:
            place += 1
            continue
        one = beside(place)
        two = beside(place + 1) if one is not NONE else NONE
        start = places[place][0]
        gap = text[places[place - 1][1] : start] if place and start - places[place - 1][1] <= 3 else ""
        size = _size(words[place - 1] if gap else NONE, gap, words[place], one, two)
        if size > 0:
            yield start, places[place + size - 1][1]
        place += abs(size) or 1
    if "name is" in low or "am called" in low:
        yield from (match.span(1) for match in ENGLISH.finditer(text))


def _size(before: Word, gap: str, a: Word, b: Word, c: Word) -> int:
    """How many words from `a` on are a name; negative: so many name somebody known, as a street does; 0: none."""
    space = gap.isspace()
    size = _whole(a, b, c) or _initials(a, b, c) or _pair(a, b, c, middle=space and not before.capital)
    if size:
        known = (
            (space or (gap == ". " and len(before.low) <= 3))
            and EPONYMS.fullmatch(before.low) is not None
            and not (b.father or c.father)
        )
        return -size if known else size
    if before is NONE:
        return 0
    if (
        CUES.fullmatch(before.low)
        and not {".", "!", "?"} & set(gap)
        and (a.capital or a.first or (a.surname and b.first) or before.low[:3] == "фам")
    ):
        return _run(a, b, c)
    if a.capital and not a.initial and not a.latin and not NO_SURNAME.match(a.low) and not _adjective(a, b):
        role = ROLES.fullmatch(before.low) if space or (gap == ". " and len(before.low) <= 4) else None
        if role and (a.surname or a.first or (role["near"] and not a.upper)):
            return 1
        if before.low in BEFORE and space and not before.capital and CLEAR.fullmatch(a.low):
            return 1
    if before.low == "я" and space and a.sure:
        return 1 + b.surname
    return int(before.low == "я" and space and a.surname and b.first) * 2


def _whole(a: Word, b: Word, c: Word) -> int:
    """(Surname) first name, patronymic (surname)."""
    if (b.father or b.father_too) and (
        a.first or (b.father and a.capital and b.capital and not NO_SURNAME.match(a.low))
    ):
        last = c.surname if not a.capital else c.capital and not c.initial and not NO_SURNAME.match(c.low)
        return 2 + last
    if (c.father or c.father_too) and (a.capital or a.surname) and not NO_SURNAME.match(a.low):
        return 3 * (b.first or (c.father and b.capital and c.capital and a.surname))
    return 0


def _initials(a: Word, b: Word, c: Word) -> int:
    """A surname with initials before or behind it; with one only if it looks like a surname."""
    if a.initial and b.initial:
        return 3 * (c.capital and not c.initial and (c.surname or not c.latin))
    if a.initial:
        return 2 * (b.capital and b.surname)
    if a.capital and b.initial:
        return 3 * (a.surname or not a.latin) if c.initial else 2 * (a.surname and not a.latin)
    return 0


def _pair(a: Word, b: Word, c: Word, *, middle: bool) -> int:
    """First name and surname, in either order; `middle`: a capital letter is not that of a sentence."""
    if a.latin or b.latin:
        slavic = (a.first and b.surname) or (b.sure and a.surname) or (a.sure and not b.initial)
        return 2 * (a.latin and b.latin and a.capital and b.capital and slavic)
    if a.capital != b.capital or a.initial or b.initial:
        return 0
    if not a.capital:
        return 2 * ((a.base and a.sure and _is_base(b)) or (b.base and b.sure and _is_base(a)))
    if b.first and (a.surname or (middle and b.sure and not a.first)) and not NO_SURNAME.match(a.low):
        return 2
    return 2 * (a.first and not NO_SURNAME.match(b.low))


def _adjective(word: Word, after: Word) -> bool:
    """Whether it may be one, of a place: Парижского, with its noun behind it."""
    return after.low[-1:] in AGREES.get(word.low[-2:], ".") and after is not NONE and not after.capital


def _is_base(word: Word) -> bool:
    return BASE.fullmatch(word.low) is not None and NO_SURNAME.match(word.low) is None


def _run(*words: Word) -> int:
    """How many words after «меня зовут» are the name: capital letters, or names that are known."""
    size = 0
    for word in words:
        if (
            word.initial
            or NO_SURNAME.match(word.low)
            or not (word.capital or word.first or word.surname or word.father)
        ):
            break
        size += 1
    return size


@lru_cache(maxsize=50_000)
def _known(token: str) -> Word:
    """What a word may be."""
    capital, low = token[0].isupper(), token.lower()
    if len(token) > 40:
        return Word("")
    if token.endswith("."):
        return Word("", likely=True, capital=True, initial=True, latin=token.isascii())
    upper = len(token) > 1 and token.isupper()
    if not CYRILLIC.search(token):
        sound, surname = sound_of(low), LATIN_SURNAME.fullmatch(low) is not None
        first = capital and sound in LATIN
        sure = first and sound not in ALSO_LATIN
        return Word(low, capital, capital, first=first, sure=sure, surname=surname, latin=True, upper=upper)
    low = token.translate(LOOKALIKES).lower().replace("ё", "е")
    head, last = low.split("-", 1)[0], low.rsplit("-", 1)[-1]
    first = head in FORMS
    surname = len(low) >= 4 and SURNAME.fullmatch(last) is not None and NO_SURNAME.match(low) is None
    return Word(
        low,
        likely=capital or first or surname,
        capital=capital,
        first=first,
        sure=first and head not in ALSO_WORDS,
        base=head in BASES,
        father=FATHER.fullmatch(low) is not None,
        father_too=FATHER_TOO.fullmatch(low) is not None,
        surname=surname,
        upper=upper,
    )


USUAL = re.compile(r"[^\x00-\x7fА-яЁё«»№…]")
"""Anything that few texts have: typographic signs and spaces, digits of other scripts, letters without a width."""
KEPT = "№…"
"""Signs whose compatible form is several letters, and which the patterns know as they are."""


def plain(text: str) -> tuple[str, list[int] | None]:
    """The text in compatible, composed letters (NFKC), ASCII digits, hyphens and spaces, without invisible signs.

    Args:
        text: any.

    Returns:
        What patterns are to read, and for every place in it, the end included, the place in the given text; None where
        nothing has changed.
    """
    if text.isascii():
        return text, None
    text = text.replace("—", "-").replace("–", "-").replace("\u00a0", " ")  # the frequent ones, at a tenth of the cost
    if USUAL.search(text) is None:
        return text, None
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        simple = _simple(letter)
        if letters and unicodedata.combining(letter):
            whole = unicodedata.normalize("NFC", letters[-1] + letter)
            if len(whole) == 1:
                letters[-1] = whole
            continue
        letters += simple
        places += [place] * len(simple)
    return "".join(letters), [*places, len(text)]


def back(places: list[int] | None, start: int, end: int) -> tuple[int, int]:
    """Start and end in the text that was given, of a stretch of what patterns read; a sign is never cut in two."""
    return (start, end) if places is None else (places[start], max(places[end], places[end - 1] + 1))


def lowered(text: str) -> str:
    """The text in lower case and with е for ё, as long as it is; patterns that do not ask for the case are fast."""
    low = text.lower()
    low = low if len(low) == len(text) else "".join(x.lower() if len(x.lower()) == 1 else x for x in text)
    return low.replace("ё", "е")


@cache
def _simple(letter: str) -> str:
    category = unicodedata.category(letter)
    if category == "Nd":
        return str(unicodedata.decimal(letter))
    if category == "Pd" or letter == "−":
        return "-"
    if category == "Cf" or unicodedata.combining(letter) or "\ufe00" <= letter <= "\ufe0f":
        return ""
    if letter in KEPT:
        return letter
    return unicodedata.normalize("NFKC", letter)
