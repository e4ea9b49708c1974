"""Errors planted in real sentences, and the same facts written another way: what the fact metrics are tried on.

Nothing here knows the rules of yarus.metrics.facts: words and digits are exchanged by lists of their own, by num2words
and by plain patterns. What stands in a fact's place stands nowhere in the paragraph.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from num2words import num2words

from benchmarks.simulations import sample_rows

XQUAD = Path(__file__).parents[3] / "shared" / "data" / "xquad"
SENTENCE = re.compile(r"(?<=[.!?…])\s+(?=[\"«A-ZА-ЯЁ0-9])|\n+")
MONTHS = {
    "ru": (
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
        "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
        "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    ),
    "en": ("January February March April May June July August September October November December",),
}
WEEKDAYS = {
    "ru": (
        "понедельник вторник среду четверг пятницу субботу воскресенье",
        "понедельника вторника среды четверга пятницы субботы воскресенья",
        "понедельникам вторникам средам четвергам пятницам субботам воскресеньям",
    ),
    "en": ("Monday Tuesday Wednesday Thursday Friday Saturday Sunday",),
}
WORDS = {
    "ru": (
        "два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать двадцать тридцать",
        "двух трёх четырёх пяти шести семи восьми девяти десяти одиннадцати двенадцати двадцати тридцати",
        "второй третий четвёртый пятый шестой седьмой восьмой девятый десятый",
        "второго третьего четвёртого пятого шестого седьмого восьмого девятого десятого",
        "вторая третья четвёртая пятая шестая седьмая восьмая девятая десятая",
        "сто двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот",
    ),
    "en": (
        "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty",
        "second third fourth fifth sixth seventh eighth ninth tenth",
    ),
}
MONEY = re.compile(r"[$€£]\s?\d[\d,.]*|\d[\d ,.]*\s?(?:[$€£₽%]|руб|доллар|евро|фунт|процент|dollar|euro|percent)")
DIGITS = re.compile(r"\d+")
NUMBERS = (*range(100), *range(100, 1000, 100))
"""Whose words are looked for."""


class Sentence(NamedTuple):
    """A sentence with the paragraph that it stands in."""

    text: str
    paragraph: str
    language: str


class Planted(NamedTuple):
    """A sentence with one error, and where it stands."""

    kind: str
    sentence: Sentence
    text: str
    start: int
    end: int


def sentences(of: str) -> list[Sentence]:
    """The sentences of "ru" or "en", the languages of XQuAD, or of the "sample", with their paragraphs."""
    if of == "sample":
        paragraphs = [chunk["text"] for chunk in sample_rows("chunk")]
    else:
        data = json.loads((XQUAD / f"xquad.{of}.json").read_text(encoding="utf-8"))["data"]
        paragraphs = [paragraph["context"] for article in data for paragraph in article["paragraphs"]]
    language = "en" if of == "en" else "ru"
    return [
        Sentence(text, paragraph, language)
        for paragraph in paragraphs
        for text in SENTENCE.split(paragraph)
        if text.strip()
    ]


def planted(found: list[Sentence], kind: str, n: int) -> list[Planted]:
    """So many sentences with an error of a kind; every place that can be changed comes before one is changed again."""
    chance = Random(f"{kind}|0")
    places = [(sentence, *match) for sentence in found for match in PLACES[kind](sentence)]
    chance.shuffle(places)
    made: list[Planted] = []
    for _ in range(100):
        for sentence, start, end in places:
            other = OTHER[kind](sentence, sentence.text[start:end], chance)
            if other is not None:
                text = sentence.text[:start] + other + sentence.text[end:]
                made.append(Planted(kind, sentence, text, start, start + len(other)))
            if len(made) == n:
                return made
    return made


def rewritten(found: list[Sentence]) -> Iterator[tuple[Sentence, str]]:
    """Sentences with one of their facts written another way, each as often as there are ways."""
    for sentence in found:
        for pattern, way in WAYS[sentence.language]:
            for match in pattern.finditer(sentence.text):
                other = way(match)
                if other is not None and other != match[0]:
                    yield sentence, sentence.text[: match.start()] + other + sentence.text[match.end() :]


def _digit_places(sentence: Sentence) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in DIGITS.finditer(sentence.text))


def _money_places(sentence: Sentence) -> Iterator[tuple[int, int]]:
    for match in MONEY.finditer(sentence.text):
        digits = DIGITS.search(match[0])
        if digits is not None:
            yield match.start() + digits.start(), match.start() + digits.end()


def _date_places(sentence: Sentence) -> Iterator[tuple[int, int]]:
    months = "|".join(" ".join(MONTHS[sentence.language]).split())
    for match in re.finditer(rf"(?<!\d)(\d{{1,2}}) (?:{months})|(?:{months}) (\d{{1,2}})(?!\d)", sentence.text):
        yield match.span(match.lastindex or 0)


def _of_series(series: dict[str, tuple[str, ...]]) -> Callable[[Sentence], Iterator[tuple[int, int]]]:
    def places(sentence: Sentence) -> Iterator[tuple[int, int]]:
        words = set(" ".join(series[sentence.language]).split())
        for match in re.finditer(r"(?<![\w-])[^\W\d_]+(?![\w-])", sentence.text):
            if match[0] in words:
                yield match.span()

    return places


def _other_digits(sentence: Sentence, digits: str, chance: Random) -> str | None:
    taken = set(DIGITS.findall(sentence.paragraph))
    for _ in range(20):
        place = chance.randrange(len(digits))
        digit = chance.choice([d for d in ("123456789" if place == 0 else "0123456789") if d != digits[place]])
        other = digits[:place] + digit + digits[place + 1 :]
        if other not in taken and not _is_said(int(other), sentence.paragraph):
            return other
    return None


def _other_day(sentence: Sentence, digits: str, chance: Random) -> str | None:
    taken = set(DIGITS.findall(sentence.paragraph))
    free = [str(day) for day in range(1, 29) if str(day) not in taken and not _is_said(day, sentence.paragraph)]
    return chance.choice(free) if free else None


def _other_word(series: dict[str, tuple[str, ...]]) -> Callable[[Sentence, str, Random], str | None]:
    def other(sentence: Sentence, word: str, chance: Random) -> str | None:
        said = sentence.paragraph.casefold().replace("ё", "е")
        for line in series[sentence.language]:
            words = line.split()
            if word in words:
                free = [one for one in words if not _stands(one, said, sentence.paragraph)]
                return chance.choice(free) if free else None
        return None

    return other


def _stands(word: str, said: str, paragraph: str) -> bool:
    """Whether a paragraph has what a word says in any form; `said` is the paragraph in small letters."""
    plain_word = word.casefold().replace("ё", "е")
    numbers = [number for number in NUMBERS if plain_word in _forms(number)]
    return plain_word[:4] in said or any(str(one) in said or _is_said(one, paragraph) for one in numbers)


def _is_said(number: int, paragraph: str) -> bool:
    """Whether a paragraph has a number in words, in any form."""
    return number in NUMBERS and not _forms(number).isdisjoint(
        re.findall(r"[a-zа-я]+", paragraph.casefold().replace("ё", "е"))
    )


@cache
def _forms(number: int) -> frozenset[str]:
    said = [num2words(number, to=to) for to in ("cardinal", "ordinal")]
    for case in "nigdap":
        said += [num2words(number, lang="ru", case=case)]
        said += [num2words(number, lang="ru", to="ordinal", case=case, gender=gender) for gender in "mfn"]
    return frozenset(word.replace("ё", "е") for word in said) | ({"одно", "одна"} if number == 1 else set())


def _in_words(match: re.Match[str]) -> str | None:
    number = int(match[0].replace(",", "").replace(" ", "").replace("\u00a0", ""))
    language = "ru" if re.search("[а-я]", match.string) else "en"
    return str(num2words(number, lang=language)) if number < 10**9 else None


def _grouped(match: re.Match[str]) -> str:
    return f"{int(match[0]):,}".replace(",", "\u00a0" if re.search("[а-я]", match.string) else ",")


def _russian_date(match: re.Match[str]) -> str:
    month = MONTHS["ru"][0].split().index(match[2]) + 1
    return f"{int(match[1]):02}.{month:02}" + (f".{match[3]}" if match[3] else "")


def _russian_day_in_words(match: re.Match[str]) -> str:
    day = num2words(int(match[1]), lang="ru", to="ordinal", case="g")
    return match[0].replace(match[1], day, 1)


def _english_dates(match: re.Match[str]) -> str:
    month, day, year = match[1], int(match[2]), match[3]
    number = MONTHS["en"][0].split().index(month) + 1
    return f"{year}-{number:02}-{day:02}" if year else f"{day} {month}"


def _english_day_in_words(match: re.Match[str]) -> str:
    day = num2words(int(match[2]), lang="en", to="ordinal")
    return f"the {day} of {match[1]}" + (f", {match[3]}" if match[3] else "")


def _year_in_words(match: re.Match[str]) -> str:
    return str(num2words(int(match[0]), lang="en", to="year"))


def _percent(match: re.Match[str]) -> str:
    return f"{match[1]} {'процентов' if re.search('[а-я]', match.string) else 'percent'}"


PLACES = {
    "digit": _digit_places,
    "date": _date_places,
    "month": _of_series(MONTHS),
    "weekday": _of_series(WEEKDAYS),
    "sum": _money_places,
    "number word": _of_series(WORDS),
}
OTHER = {
    "digit": _other_digits,
    "date": _other_day,
    "month": _other_word(MONTHS),
    "weekday": _other_word(WEEKDAYS),
    "sum": _other_digits,
    "number word": _other_word(WORDS),
}
WHOLE = r"(?<![\w.,:/$€£-])(?<!\d[ \u00a0])\d{{{}}}(?![\w.,:/%-]?[\w%])(?![ \u00a0]\d)"
RU_MONTH = "|".join(MONTHS["ru"][0].split())
RU_DATE = re.compile(rf"(?<!\d)(\d{{1,2}}) ({RU_MONTH})(?: (\d{{4}}))?(?! \d)")
EN_DATE = re.compile(rf"({'|'.join(MONTHS['en'][0].split())}) (\d{{1,2}})(?!\d)(?:, (\d{{4}}))?")
WAYS: dict[str, tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...]] = {
    "ru": (
        (re.compile(WHOLE.format("1,3")), _in_words),
        (re.compile(r"(?<![\w.,:/-])(?<!\d[ \u00a0])\d{1,3}(?:[ \u00a0]\d{3})+(?![\w.,]?\d)"), _in_words),
        (re.compile(WHOLE.format("4,7")), _grouped),
        (RU_DATE, _russian_date),
        (RU_DATE, _russian_day_in_words),
        (re.compile(r"(\d)\s?%"), _percent),
    ),
    "en": (
        (re.compile(WHOLE.format("1,3")), _in_words),
        (re.compile(r"(?<![\w.,:/$€£-])\d{1,3},\d{3}(?![\w.,]?\d)"), _in_words),
        (re.compile(r"(?<![\w.,:/$€£-])1[89]\d\d(?![\w.,:/%-]?[\w%])"), _year_in_words),
        (EN_DATE, _english_dates),
        (EN_DATE, _english_day_in_words),
        (re.compile(r"(\d)\s?%"), _percent),
    ),
}
"""What is written another way, and how."""
