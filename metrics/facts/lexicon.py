"""The words of facts, Russian and English, in every form: numbers, months, weekdays, units, money.

Forms are in lower case, with «е» for «ё».
"""

from typing import Literal, NamedTuple

Role = Literal[
    "unit", "teen", "tens", "hundreds", "scale", "fraction", "whole", "point", "oh",
    "month", "weekday", "measure", "year", "noon", "half_past", "to_hour", "part_of_day", "span", "room",
    "document", "minus",
]  # fmt: skip
"""`whole`: «целых»; `point`: in "five point four"; `oh`: in "nineteen oh five"; `span`: half of so many seconds;
`half_past`: «половина третьего»."""


class Word(NamedTuple):
    """The meaning of a word."""

    role: Role
    value: float
    """The number; of a month or weekday its number, from 1; of a measure its size in base units."""
    unit: str | None = None
    """The base unit of a measure: `s`, `m`, `g`, `B`, `month`, `%`, or the ISO 4217 code of a currency."""
    ordinal: bool = False
    doubtful: bool = False
    """Whether it usually means something else: it supports its readings, but states a fact only beside another one."""


LEXICON: dict[str, Word] = {}
HARD = "ый ой ого ому ым ом ая ую ою ое ые ых ыми"
SOFT = "ий ьего ьему ьим ьем ья ьей ью ье ьи ьих ьими"
MASCULINE = " а у ом е ы ов ам ами ах"
NEUTER = "ье ья ью ьем ий ьям ьями ьях"
FEMININE = " а ы е у ой ою ам ами ах"
SIGN = "ь я ю ем е и ей ям ями ях"


def _add(forms: str, word: Word, endings: str = "") -> None:
    for form in forms.split():
        for ending in endings.split(" ") if endings else ("",):
            LEXICON.setdefault(form + ending, word)


def _add_numbers(role: Role, values: dict[str, float], endings: str = "", *, ordinal: bool = False) -> None:
    for forms, value in values.items():
        _add(forms, Word(role, value, ordinal=ordinal), endings)


_add("один одна одно одного одной одному одним одном одну одною one", Word("unit", 1))
_add_numbers("unit", {
    "ноль нуль ноля нуля нолю нулю нолем нулем ноле нуле zero": 0,
    "два две двух двум двумя двое двоих двоим двоими two twice дважды": 2,
    "три трех трем тремя трое троих троим троими three трижды": 3,
    "четыре четырех четырем четырьмя четверо четверых четверым четверыми four": 4,
    "пять пяти пятью пятеро пятерых пятерым пятерыми five": 5, "шесть шести шестью шестеро шестерых six": 6,
    "семь семи семеро семерых seven": 7, "восемь восьми восемью восьмью восьмеро восьмерых eight": 8,
    "девять девяти девятью nine": 9,
})  # fmt: skip
_add("семью", Word("unit", 7, doubtful=True))
_TEENS = "десят одиннадцат двенадцат тринадцат четырнадцат пятнадцат шестнадцат семнадцат восемнадцат девятнадцат"
_ENGLISH = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
for _number, (_stem, _english) in enumerate(zip(_TEENS.split(), _ENGLISH.split(), strict=True), 10):
    _add(_stem, Word("teen", _number), "ь и ью")
    _add(_english, Word("teen", _number))
    _add(_stem, Word("teen", _number, ordinal=True), HARD)
    _add("twelfth" if _number == 12 else f"{_english}th", Word("teen", _number, ordinal=True))
_TENS = {
    "двадцат": ("twenty", 20), "тридцат": ("thirty", 30), "пятьдесят": ("fifty", 50), "шестьдесят": ("sixty", 60),
    "семьдесят": ("seventy", 70), "восемьдесят": ("eighty", 80),
}  # fmt: skip
for _stem, (_english, _number) in _TENS.items():
    if _number < 50:
        _add(_stem, Word("tens", _number), "ь и ью")
        _add(_stem, Word("tens", _number, ordinal=True), HARD)
    else:
        _first = _stem.replace("ьдесят", "")  # пят, шест, сем, вос(е)м
        _oblique = "восьмидесят" if _number == 80 else f"{_first}идесят"
        _add(f"{_stem} {_oblique}и {_first}ьюдесятью {_oblique.removesuffix('идесят')}ьюдесятью", Word("tens", _number))
        _add(_oblique, Word("tens", _number, ordinal=True), HARD)
    _add(_english, Word("tens", _number))
    _add(f"{_english[:-1]}ieth", Word("tens", _number, ordinal=True))
_add_numbers("tens", {"сорок сорока forty": 40, "девяносто девяноста ninety": 90})
_add_numbers("tens", {"сороков": 40, "девяност": 90}, HARD, ordinal=True)
_add_numbers("tens", {"fortieth": 40, "ninetieth": 90}, ordinal=True)
_add_numbers("hundreds", {
    "сто ста": 100, "двести двухсот двумстам двумястами двухстах": 200,
    "триста трехсот тремстам тремястами трехстах": 300,
    "четыреста четырехсот четыремстам четырьмястами четырехстах": 400,
    "пятьсот пятисот пятистам пятьюстами пятистах": 500,
    "шестьсот шестисот шестистам шестьюстами шестистах": 600, "семьсот семисот семистам семьюстами семистах": 700,
    "восемьсот восьмисот восьмистам восемьюстами восьмьюстами восьмистах": 800,
    "девятьсот девятисот девятистам девятьюстами девятистах": 900, "полсотни": 50, "полтысячи": 500,
})  # fmt: skip
_add_numbers("hundreds", {
    "сот": 100, "двухсот": 200, "трехсот": 300, "четырехсот": 400, "пятисот": 500, "шестисот": 600, "семисот": 700,
    "восьмисот": 800, "девятисот": 900,
}, HARD, ordinal=True)  # fmt: skip
_add_numbers("unit", {
    "перв first": 1, "втор": 2, "четверт": 4, "пят": 5, "шест": 6, "седьм": 7, "восьм": 8, "девят": 9, "нулев": 0,
}, HARD, ordinal=True)  # fmt: skip
_add_numbers("unit", {"трет": 3}, SOFT, ordinal=True)
_add_numbers("unit", {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
}, ordinal=True)  # fmt: skip
_add_numbers("scale", {
    "тысяча тысячу тысяче тысячей тысячью тыс thousand": 1e3,
    "миллион миллиону миллионом миллионе млн million mln": 1e6,
    "миллиард миллиарду миллиардом миллиарде млрд billion bn bln": 1e9, "триллион трлн trillion": 1e12,
    "hundred": 100, "дюжина дюжину дюжиной dozen": 12, "сотня сотню сотней": 100, "десяток десятком": 10,
})  # fmt: skip
for _forms, _value in {
    "тысячи тысяч тысячам тысячами тысячах thousands": 1e3,
    "миллиона миллионы миллионов миллионам миллионами миллионах millions": 1e6,
    "миллиарда миллиарды миллиардов миллиардам миллиардами миллиардах billions": 1e9,
    "триллиона триллионы триллионов trillions": 1e12,
    "hundreds сотни сотен сотням сотнями сотнях": 100, "дюжины дюжин dozens": 12,
    "десятка десятки десятков десяткам десятками десятках": 10,
}.items():  # fmt: skip
    _add(_forms, Word("scale", _value, doubtful=True))  # without a number they mean "many"
_add_numbers("scale", {"тысячн": 1e3, "двухтысячн": 2e3, "миллионн": 1e6}, HARD, ordinal=True)
_add_numbers("scale", {"hundredth": 100, "thousandth": 1e3, "millionth": 1e6}, ordinal=True)
_add_numbers("fraction", {
    "половина половины половине половину половиной half": 0.5, "треть трети третью третей thirds": 1 / 3,
    "четверть четверти четвертью четвертей quarter quarters": 0.25, "полмиллиона": 5e5, "полмиллиарда": 5e8,
    "полтора полторы полутора": 1.5,
})  # fmt: skip
_add("целых целая целой целую целыми", Word("whole", 0))
_add("point", Word("point", 0))
_add("oh", Word("oh", 0))

_MONTHS = "январ феврал март апрел ма июн июл август сентябр октябр ноябр декабр"
_ENGLISH = "january february march april may june july august september october november december"
for _number, (_stem, _english) in enumerate(zip(_MONTHS.split(), _ENGLISH.split(), strict=True), 1):
    _add(
        _stem,
        Word("month", _number),
        "й я ю ем е" if _stem == "ма" else MASCULINE if _stem in ("март", "август") else SIGN,
    )
    _add(_english, Word("month", _number, doubtful=_english in ("march", "may")))
for _forms, _value in {
    "янв jan": 1, "фев февр feb": 2, "мар mar": 3, "апр apr": 4, "июн jun": 6, "июл jul": 7, "авг aug": 8,
    "сен сент sep sept": 9, "окт oct": 10, "ноя нояб nov": 11, "дек dec": 12,
}.items():  # fmt: skip
    _add(_forms, Word("month", _value, doubtful=True))

for _number, (_stem, _endings) in enumerate(
    {
        "понедельник": MASCULINE + " и", "вторник": MASCULINE + " и", "сред": FEMININE, "четверг": MASCULINE + " и",
        "пятниц": " а ы е у ей ам ами ах", "суббот": FEMININE, "воскресен": NEUTER,
    }.items(), 1
):  # fmt: skip
    _add(_stem, Word("weekday", _number, doubtful=_stem == "сред"), _endings)
_ENGLISH = "monday tuesday wednesday thursday friday saturday sunday"
for _number, _english in enumerate(_ENGLISH.split(), 1):
    _add(f"{_english} {_english}s", Word("weekday", _number))
for _forms, _value in {
    "пн mon": 1, "вт tue tues": 2, "ср wed": 3, "чт thu thur thurs": 4, "пт fri": 5, "сб sat": 6, "вс sun": 7,
}.items():  # fmt: skip
    _add(_forms, Word("weekday", _value, doubtful=True))

_MEASURES: dict[str, dict[str, float]] = {
    "s": {
        "секунда секунды секунде секунду секунд секундам сек seconds sec secs": 1,
        "минута минуты минуте минуту минутой минут минутам минутами минутах мин minute minutes min mins": 60,
        "час часа часу часом часе часы часов часам часами часах ч hour hours hr hrs h": 3600,
        "день дня дню дней дни дням днями днях сутки суток суткам day days": 86400,
        "неделя недели неделе неделю неделей недель неделям неделями неделях week weeks": 604800,
    },
    "month": {
        "месяц месяца месяцу месяцем месяце месяцев месяцы месяцам месяцами месяцах мес month months": 1,
        "лет летам years": 12,
    },
    "m": {
        "мм миллиметр миллиметра миллиметров mm": 0.001, "см сантиметр сантиметра сантиметров cm": 0.01,
        "м метр метра метру метром метре метры метров метрам метрами метрах m meter meters metre metres": 1,
        "км километр километра километру километром километре километры километров километрам километрами "
        "километрах": 1000,
        "km kilometer kilometers kilometre kilometres": 1000,
    },
    "mile": {"миля мили миль mile miles": 1}, "foot": {"фут фута футов foot feet ft": 1},
    "g": {"грамм грамма граммов gram grams": 1, "кг килограмм килограмма килограммов kg": 1000,
    "тонна тонны тонн tonnes tons": 1e6},
    "B": {"кб kb": 1e3, "мб mb мегабайт": 1e6, "гб gb гигабайт": 1e9, "тб tb": 1e12},
    "deg": {"градус градуса градусов degrees": 1},
    "century": {"век века веку веком веке веков векам веками веках вв century centuries": 1},
    "%": {"процент процента проценту процентом проценте проценты процентов процентам процентами процентах "
        "percent pct": 1},
    "RUB": {
        "руб рубль рубля рублю рублем рубле рублей рубли рублям рублями рублях р": 1,
        "rub ruble rubles rouble roubles": 1,
        "коп копейка копейки копейке копейку копейкой копеек копейкам копейками копейках": 0.01},
    "USD": {
        "доллар доллара доллару долларом долларе долларов долларам долларах долларами доллары "
        "dollar dollars usd": 1,
        "cent cents цент цента центов": 0.01},
    "EUR": {"евро euro euros eur": 1}, "GBP": {"gbp": 1}, "CNY": {"юань юаня юаней yuan cny": 1},
    "JPY": {"иена иены иен yen jpy": 1},
    "KZT": {"тенге kzt": 1}, "UAH": {"гривна гривны гривен uah": 1},
}  # fmt: skip
for _unit, _measures in _MEASURES.items():
    for _forms, _value in _measures.items():
        _add(_forms, Word("measure", _value, _unit))
_add("год года году годом годе годы годов годам годах г гг year", Word("year", 12, "month"))
SYMBOLS = {"%": "%", "$": "USD", "€": "EUR", "£": "GBP", "¥": "CNY", "₽": "RUB", "°": "deg"}
"""Symbols of units."""
CURRENCIES = frozenset(unit for unit in _MEASURES if len(unit) == 3 and unit.isupper())

_add("полчаса", Word("span", 3600, "s"))
_add("полминуты", Word("span", 60, "s"))
_add("полгода", Word("span", 12, "month"))
_add("полдень полудня noon midday", Word("noon", 12))
_add("полночь полуночи midnight", Word("noon", 0))
_add("пол", Word("half_past", 30))
_add("past", Word("half_past", 0))
_add("без", Word("to_hour", 0))
_add("утра ночи am", Word("part_of_day", 0))
_add("дня вечера pm", Word("part_of_day", 12))
_add(
    "ауд аудитория аудитории аудиторию аудиторией каб кабинет кабинета кабинете кабинету кабинеты",
    Word("room", 0),
)
_add("аудит комн корп корпус корпуса корпусе лаб", Word("room", 0))
_add("офис офиса офисе комната комнаты комнате комнату room office auditorium", Word("room", 0))
_add("номер номера номером приказ приказа приказом договор договора no", Word("document", 0))
_add("минус minus", Word("minus", 0))
ORDINAL_ENDINGS = frozenset(
    {"й", "ый", "ой", "го", "ого", "му", "ому", "м", "ым", "ом", "я", "ая", "ую", "ю", "е", "ое", "ые", "х", "ых", "ми"}
    | {"ыми", "ти", "и", "th", "st", "nd", "rd", "s"}
)
"""Endings after digits, with a hyphen or without: «12-го», "21st", "1990s"."""
