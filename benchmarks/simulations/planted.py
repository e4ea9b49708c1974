"""Errors planted in real sentences, and the same facts written another way: test data for the fact metrics.

Nothing here uses the rules of yarus.metrics.facts: words and digits are exchanged by separate lists, by num2words and
by simple patterns. The replacement of a fact does not occur in the paragraph.
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
"""Numbers whose words are searched."""


class Sentence(NamedTuple):
    """A sentence with its paragraph."""

    text: str
    paragraph: str
    language: str


class PlantedError(NamedTuple):
    """A sentence with one error, and its position."""

    kind: str
    sentence: Sentence
    text: str
    start: int
    end: int


def read_sentences(corpus: str) -> list[Sentence]:
    """Return the sentences of "ru" or "en", the languages of XQuAD, or of the "sample", with their paragraphs."""
    if corpus == "sample":
        paragraphs = [chunk["text"] for chunk in sample_rows("chunk")]
    else:
        data = json.loads((XQUAD / f"xquad.{corpus}.json").read_text(encoding="utf-8"))["data"]
        paragraphs = [paragraph["context"] for article in data for paragraph in article["paragraphs"]]
    language = "en" if corpus == "en" else "ru"
    return [
        Sentence(text, paragraph, language)
        for paragraph in paragraphs
        for text in SENTENCE.split(paragraph)
        if text.strip()
    ]


def plant_errors(originals: list[Sentence], kind: str, n: int) -> list[PlantedError]:
    """Return so many sentences with an error of a kind; every place is changed once before one is changed again."""
    generator = Random(f"{kind}|0")
    places = [(sentence, *match) for sentence in originals for match in PLACES[kind](sentence)]
    generator.shuffle(places)
    mutants: list[PlantedError] = []
    for _ in range(100):
        for sentence, start, end in places:
            replacement = OTHER[kind](sentence, sentence.text[start:end], generator)
            if replacement is not None:
                text = sentence.text[:start] + replacement + sentence.text[end:]
                mutants.append(PlantedError(kind, sentence, text, start, start + len(replacement)))
            if len(mutants) == n:
                return mutants
    return mutants


def rewrite_facts(originals: list[Sentence]) -> Iterator[tuple[Sentence, str]]:
    """Yield sentences with one of their facts written another way, once per way."""
    for sentence in originals:
        for pattern, rewrite in WAYS[sentence.language]:
            for match in pattern.finditer(sentence.text):
                rewritten = rewrite(match)
                if rewritten is not None and rewritten != match[0]:
                    yield sentence, sentence.text[: match.start()] + rewritten + sentence.text[match.end() :]


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


def _series_places(series: dict[str, tuple[str, ...]]) -> Callable[[Sentence], Iterator[tuple[int, int]]]:
    def find_places(sentence: Sentence) -> Iterator[tuple[int, int]]:
        words = set(" ".join(series[sentence.language]).split())
        for match in re.finditer(r"(?<![\w-])[^\W\d_]+(?![\w-])", sentence.text):
            if match[0] in words:
                yield match.span()

    return find_places


def _other_digits(sentence: Sentence, digits: str, generator: Random) -> str | None:
    taken = set(DIGITS.findall(sentence.paragraph))
    for _ in range(20):
        position = generator.randrange(len(digits))
        digit = generator.choice([d for d in ("123456789" if position == 0 else "0123456789") if d != digits[position]])
        replacement = digits[:position] + digit + digits[position + 1 :]
        if replacement not in taken and not _has_number_in_words(int(replacement), sentence.paragraph):
            return replacement
    return None


def _other_day(sentence: Sentence, digits: str, generator: Random) -> str | None:
    taken = set(DIGITS.findall(sentence.paragraph))
    unused = [
        str(day) for day in range(1, 29) if str(day) not in taken and not _has_number_in_words(day, sentence.paragraph)
    ]
    return generator.choice(unused) if unused else None


def _other_word(series: dict[str, tuple[str, ...]]) -> Callable[[Sentence, str, Random], str | None]:
    def replace_word(sentence: Sentence, word: str, generator: Random) -> str | None:
        lowered = sentence.paragraph.casefold().replace("ё", "е")
        for series_line in series[sentence.language]:
            words = series_line.split()
            if word in words:
                unused = [other for other in words if not _has_word(other, lowered, sentence.paragraph)]
                return generator.choice(unused) if unused else None
        return None

    return replace_word


def _has_word(word: str, lowered: str, paragraph: str) -> bool:
    """Return whether a paragraph has the meaning of a word in any form; `lowered` is the paragraph in lower case."""
    normal_word = word.casefold().replace("ё", "е")
    numbers = [n for n in NUMBERS if normal_word in _forms(n)]
    return normal_word[:4] in lowered or any(str(n) in lowered or _has_number_in_words(n, paragraph) for n in numbers)


def _has_number_in_words(number: int, paragraph: str) -> bool:
    """Return whether a paragraph has a number in words, in any form."""
    return number in NUMBERS and not _forms(number).isdisjoint(
        re.findall(r"[a-zа-я]+", paragraph.casefold().replace("ё", "е"))
    )


@cache
def _forms(number: int) -> frozenset[str]:
    forms = [num2words(number, to=to) for to in ("cardinal", "ordinal")]
    for case in "nigdap":
        forms += [num2words(number, lang="ru", case=case)]
        forms += [num2words(number, lang="ru", to="ordinal", case=case, gender=gender) for gender in "mfn"]
    return frozenset(word.replace("ё", "е") for word in forms) | ({"одно", "одна"} if number == 1 else set())


def _in_words(match: re.Match[str]) -> str | None:
    number = int(match[0].replace(",", "").replace(" ", "").replace("\u00a0", ""))
    language = "ru" if re.search("[а-я]", match.string) else "en"
    return str(num2words(number, lang=language)) if number < 10**9 else None


def _with_separators(match: re.Match[str]) -> str:
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
    "month": _series_places(MONTHS),
    "weekday": _series_places(WEEKDAYS),
    "sum": _money_places,
    "number word": _series_places(WORDS),
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
        (re.compile(WHOLE.format("4,7")), _with_separators),
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
"""Patterns of facts, and functions that write them another way."""
