"""One damage to an answer: a number or date changed, a negation put in or out, a name exchanged, a half left out.

Each is made so that it is one: what stands in the place of a number or a name stands nowhere in the context, and what
is left out says something. None where an answer has nothing to damage so.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from random import Random

from yarus.tasks.cases.text import words

NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
CLAUSE = re.compile(r"\s*[,;:]\s+|\s+(?:и|или|а|но|and|or|but)\s+", re.IGNORECASE)
NAME = re.compile(
    r"«[^»\n]{2,60}»|\"[^\"\n]{2,60}\"|(?<![.!?…:»\"]\s)(?<!^)(?<!\n)\b[A-ZА-ЯЁ][\w’'-]+(?:\s[A-ZА-ЯЁ][\w’'-]+)*", re.M
)
LONGEST_WITHOUT_VERB = 5
"""Words of an answer that a bare "not" before it denies."""
TRIES = 20
"""Attempts at a number that nothing known names."""

SERIES: dict[str, tuple[str, ...]] = {
    "ru": (
        "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
        "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
        "понедельник вторник среда четверг пятница суббота воскресенье",
        "понедельника вторника среды четверга пятницы субботы воскресенья",
        "понедельник вторник среду четверг пятницу субботу воскресенье",
        "один два три четыре пять шесть семь восемь девять десять",
        "одного двух трёх четырёх пяти шести семи восьми девяти десяти",
        "первый второй третий четвёртый пятый шестой седьмой восьмой",
        "первого второго третьего четвёртого пятого шестого седьмого восьмого",
    ),
    "en": (
        "january february march april may june july august september october november december",
        "monday tuesday wednesday thursday friday saturday sunday",
        "one two three four five six seven eight nine ten eleven twelve",
        "first second third fourth fifth sixth seventh eighth ninth tenth",
    ),
}
"""Words one of which stands for a number or a date, in one form each."""
OPPOSITES: dict[str, tuple[tuple[str, str], ...]] = {
    "ru": (("да", "нет"), ("можно", "нельзя"), ("есть", "нет"), ("обязательно", "необязательно")),
    "en": (("yes", "no"), ("cannot", "can"), ("always", "never"), ("allowed", "forbidden")),
}
"""Words of which each denies the other."""
BEFORE: dict[str, re.Pattern[str]] = {
    "ru": re.compile(
        r"\b(?:нужн[оаы]?|надо|следует|необходимо|долж(?:ен|на|но|ны)|мо(?:жет|гут|жете)|буд(?:ет|ут)|является|"
        r"\w{2,}(?:ает|яет|ует|ают|яют|уют|ится|ётся|ется|ятся|ются|лся|лась|лось|лись|ала|али|ило|ила|или|ены|ено))\b",
        re.IGNORECASE,
    ),
    "en": re.compile(
        r"\b(?:is|are|was|were|will|would|can|could|should|must|may|might|has|have|had|does|do|did)\b", re.IGNORECASE
    ),
}
"""The words that a negation goes with: before them in Russian, after them in English."""
NEGATED: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "ru": ((re.compile(r"\bне\s+", re.IGNORECASE), ""),),
    "en": (
        (re.compile(r"\bwon['’]t\b"), "will"),
        (re.compile(r"\bcan['’]t\b"), "can"),
        (re.compile(r"(?<=\w)n['’]t\b"), ""),
        (re.compile(r"\s+not\b"), ""),
    ),
}
"""What a negation is told by, and what stands there without it."""
NOT = {"ru": "Не {}", "en": "Not {}"}


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return [part.strip() for part in SENTENCE.split(text.strip()) if part.strip()]


def change_number(answer: str, known: str, language: str, chance: Random) -> str | None:
    """The answer with one number, date, month or weekday changed to one that nothing known names.

    Args:
        answer: a sound answer.
        known: question, context and reference: the new value stands in none of them.
        language: ru or en.
        chance: decides which and to what.
    """
    taken = set(NUMBER.findall(known))
    found = list(NUMBER.finditer(answer))
    chance.shuffle(found)
    for match in found:
        if (other := _other_number(match[0], taken, chance)) is not None:
            return answer[: match.start()] + other + answer[match.end() :]
    said = _plain_words(known)
    for series in SERIES[language]:
        names = series.split()
        dated = [word for word in re.finditer(r"\w+", answer) if _plain(word[0]) in set(map(_plain, names))]
        free = [name for name in names if _plain(name) not in said]
        if dated and free:
            word = dated[0]
            return answer[: word.start()] + _in_case_of(word[0], chance.choice(free)) + answer[word.end() :]
    return None


def negate(answer: str, language: str) -> str | None:
    """The answer that says the opposite: a negation taken out where there is one, else put in."""
    first = re.match(r"\w+", answer)
    for pair in OPPOSITES[language]:
        for one, other in (pair, pair[::-1]):
            if first is not None and _plain(first[0]) == one:
                return _in_case_of(first[0], other) + answer[first.end() :]
    for pattern, without in NEGATED[language]:
        if pattern.search(answer):
            changed = pattern.sub(without, answer, count=1).strip()
            return changed[:1].upper() + changed[1:] if answer[:1].isupper() else changed
    if verb := BEFORE[language].search(answer):
        place = verb.start() if language == "ru" else verb.end()
        put = ("не ", " not")[language == "en"]
        changed = answer[:place] + put + answer[place:]
        return changed[:1].upper() + changed[1:] if answer[:1].isupper() else changed
    return NOT[language].format(answer) if len(answer.split()) <= LONGEST_WITHOUT_VERB else None


def names_in(text: str) -> list[str]:
    """What a text names, in order: quoted, or with capital letters inside a sentence; no number, month or weekday."""
    found = (match[0] for match in NAME.finditer(text))
    return [name for name in dict.fromkeys(found) if len(name) > 1 and not _dates() & _plain_words(name)]


@cache
def _dates() -> set[str]:
    """Months and weekdays of both languages."""
    return {_plain(name) for series in (*SERIES["en"], *SERIES["ru"]) for name in series.split()}


def exchange_name(answer: str, own: Iterable[str], others: Iterable[str], known: str, chance: Random) -> str | None:
    """The answer with a name exchanged for one of the same kind from elsewhere, that nothing known mentions.

    Args:
        answer: a sound answer.
        own: the names that its context mentions.
        others: names from other pages.
        known: question, context and reference.
        chance: decides to which.
    """
    said = known.casefold()
    pool = sorted({name for name in others if name.casefold() not in said})
    for name in sorted((name for name in own if _whole(name).search(answer)), key=len, reverse=True):
        alike = [other for other in pool if _kind(other) == _kind(name)]
        if alike:
            before, after = _whole(name).split(answer, maxsplit=1)
            return before + chance.choice(alike) + after
    return None


def leave_out_half(answer: str, question: str) -> str | None:
    """The first half of the answer, of its sentences or else of its clauses, where the rest says something new."""
    for kept, rest in _halves(answer):
        if len(words(rest) - words(kept) - words(question)) >= 2:
            return kept
    return None


def first_sentence(answer: str) -> str | None:
    """A shorter answer that is as faithful: its first sentence, where it has several."""
    parts = sentences(answer)
    return parts[0] if len(parts) > 1 and len(words(parts[0])) > 1 else None


def _halves(answer: str) -> Iterator[tuple[str, str]]:
    parts = sentences(answer)
    if len(parts) > 1:
        half = len(parts) // 2
        yield " ".join(parts[:half]), " ".join(parts[half:])
    middle = len(answer) / 2
    for cut in sorted(CLAUSE.finditer(answer), key=lambda match: abs(match.start() - middle)):
        if 0.25 <= cut.start() / len(answer) <= 0.75:
            yield answer[: cut.start()], answer[cut.end() :]


def _other_number(number: str, taken: set[str], chance: Random) -> str | None:
    """A number of the same form, with another digit in its first part."""
    head = re.match(r"\d+", number)
    digits = len(head[0]) if head else 0
    for attempt in range(TRIES):  # first the last digit: 11 August becomes 14 August rather than 91
        place = digits - 1 if attempt < TRIES // 2 else chance.randrange(digits)
        other = chance.choice([d for d in "123456789" if d != number[place]])
        changed = number[:place] + other + number[place + 1 :]
        if changed not in taken:
            return changed
    return None


def _kind(name: str) -> tuple[bool, bool, bool, int]:
    """What names must share to be exchanged: quotes, script, being an abbreviation, and the number of words."""
    bare = name.strip('«»"')
    return name != bare, bool(re.search("[а-яё]", bare, re.IGNORECASE)), bare.isupper(), len(bare.split())


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _in_case_of(model: str, word: str) -> str:
    return word.capitalize() if model[:1].isupper() else word


def _plain(word: str) -> str:
    return word.casefold().replace("ё", "е")


def _plain_words(text: str) -> set[str]:
    return {_plain(word) for word in re.findall(r"\w+", text)}
