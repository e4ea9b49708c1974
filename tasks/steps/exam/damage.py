"""Damage one thing in an answer: change a number or date, negate it, exchange a name, or leave out a half.

Every change makes the answer wrong: new numbers and names do not occur in the context, omitted parts have content.
Functions return None if an answer has nothing to damage in this way.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from random import Random

from yarus.tasks.cases.text import split_sentences, word_stems

NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
CLAUSE = re.compile(r"\s*[,;:]\s+|\s+(?:и|или|а|но|and|or|but)\s+", re.IGNORECASE)
NAME = re.compile(
    r"«[^»\n]{2,60}»|\"[^\"\n]{2,60}\"|(?<![.!?…:»\"]\s)(?<!^)(?<!\n)\b[A-ZА-ЯЁ][\w’'-]+(?:\s[A-ZА-ЯЁ][\w’'-]+)*", re.M
)
LONGEST_WITHOUT_VERB = 5
"""Longest answer, in words, that a bare "not" before it negates."""
TRIES = 20
"""Attempts at a number that does not occur in known texts."""

WORD_SERIES: dict[str, tuple[str, ...]] = {
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
"""Series of words for numbers and dates, one grammatical form each."""
OPPOSITES: dict[str, tuple[tuple[str, str], ...]] = {
    "ru": (("да", "нет"), ("можно", "нельзя"), ("есть", "нет"), ("обязательно", "необязательно")),
    "en": (("yes", "no"), ("cannot", "can"), ("always", "never"), ("allowed", "forbidden")),
}
"""Pairs of words with opposite meanings."""
NEGATABLE_WORDS: dict[str, re.Pattern[str]] = {
    "ru": re.compile(
        r"\b(?:нужн[оаы]?|надо|следует|необходимо|долж(?:ен|на|но|ны)|мо(?:жет|гут|жете)|буд(?:ет|ут)|является|"
        r"\w{2,}(?:ает|яет|ует|ают|яют|уют|ится|ётся|ется|ятся|ются|лся|лась|лось|лись|ала|али|ило|ила|или|ены|ено))\b",
        re.IGNORECASE,
    ),
    "en": re.compile(
        r"\b(?:is|are|was|were|will|would|can|could|should|must|may|might|has|have|had|does|do|did)\b", re.IGNORECASE
    ),
}
"""Words that can be negated: before them in Russian, after them in English."""
NEGATIONS: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "ru": ((re.compile(r"\bне\s+", re.IGNORECASE), ""),),
    "en": (
        (re.compile(r"\bwon['’]t\b"), "will"),
        (re.compile(r"\bcan['’]t\b"), "can"),
        (re.compile(r"(?<=\w)n['’]t\b"), ""),
        (re.compile(r"\s+not\b"), ""),
    ),
}
"""Patterns of negations, with the text that replaces them."""
NEGATED_ANSWER = {"ru": "Не {}", "en": "Not {}"}


def change_number(answer: str, known_text: str, language: str, chance: Random) -> str | None:
    """Return the answer with one number, date, month or weekday changed to one that is not in `known_text`.

    Args:
        answer: a sound answer.
        known_text: question, context and reference; the new value does not occur in them.
        language: ru or en.
        chance: random generator that chooses both values.
    """
    taken = set(NUMBER.findall(known_text))
    numbers = list(NUMBER.finditer(answer))
    chance.shuffle(numbers)
    for match in numbers:
        if (replacement := _other_number(match[0], taken, chance)) is not None:
            return answer[: match.start()] + replacement + answer[match.end() :]
    known_words = _normalised_words(known_text)
    for series in WORD_SERIES[language]:
        names = series.split()
        matches = [word for word in re.finditer(r"\w+", answer) if _normalise(word[0]) in set(map(_normalise, names))]
        unused = [name for name in names if _normalise(name) not in known_words]
        if matches and unused:
            word = matches[0]
            return answer[: word.start()] + _match_case(word[0], chance.choice(unused)) + answer[word.end() :]
    return None


def negate(answer: str, language: str) -> str | None:
    """Return the answer with the opposite meaning: without its negation if it has one, else with one."""
    first_word = re.match(r"\w+", answer)
    for pair in OPPOSITES[language]:
        for word, opposite in (pair, pair[::-1]):
            if first_word is not None and _normalise(first_word[0]) == word:
                return _match_case(first_word[0], opposite) + answer[first_word.end() :]
    for pattern, replacement in NEGATIONS[language]:
        if pattern.search(answer):
            changed = pattern.sub(replacement, answer, count=1).strip()
            return changed[:1].upper() + changed[1:] if answer[:1].isupper() else changed
    if verb := NEGATABLE_WORDS[language].search(answer):
        position = verb.start() if language == "ru" else verb.end()
        negation = ("не ", " not")[language == "en"]
        changed = answer[:position] + negation + answer[position:]
        return changed[:1].upper() + changed[1:] if answer[:1].isupper() else changed
    return NEGATED_ANSWER[language].format(answer) if len(answer.split()) <= LONGEST_WITHOUT_VERB else None


def find_names(text: str) -> list[str]:
    """Return the names in a text, in order: quoted, or capitalised within a sentence; no numbers or dates."""
    matches = (match[0] for match in NAME.finditer(text))
    return [name for name in dict.fromkeys(matches) if len(name) > 1 and not _date_words() & _normalised_words(name)]


@cache
def _date_words() -> set[str]:
    """Return months and weekdays of both languages."""
    return {_normalise(name) for series in (*WORD_SERIES["en"], *WORD_SERIES["ru"]) for name in series.split()}


def exchange_name(
    answer: str, own: Iterable[str], other_names: Iterable[str], known_text: str, chance: Random
) -> str | None:
    """Return the answer with a name exchanged for one of the same kind that is not in `known_text`.

    Args:
        answer: a sound answer.
        own: the names in its context.
        other_names: names from other pages.
        known_text: question, context and reference.
        chance: random generator that chooses the name.
    """
    folded_text = known_text.casefold()
    pool = sorted({name for name in other_names if name.casefold() not in folded_text})
    for name in sorted((name for name in own if _whole_word_pattern(name).search(answer)), key=len, reverse=True):
        alike = [candidate for candidate in pool if _name_properties(candidate) == _name_properties(name)]
        if alike:
            before, after = _whole_word_pattern(name).split(answer, maxsplit=1)
            return before + chance.choice(alike) + after
    return None


def leave_out_half(answer: str, question: str) -> str | None:
    """Return the first half of the answer, by sentences or else clauses, if the rest has new content."""
    for first_half, rest in _split_halves(answer):
        if len(word_stems(rest) - word_stems(first_half) - word_stems(question)) >= 2:
            return first_half
    return None


def first_sentence(answer: str) -> str | None:
    """Return a shorter answer that is as faithful: its first sentence, if it has several."""
    parts = split_sentences(answer)
    return parts[0] if len(parts) > 1 and len(word_stems(parts[0])) > 1 else None


def _split_halves(answer: str) -> Iterator[tuple[str, str]]:
    parts = split_sentences(answer)
    if len(parts) > 1:
        half = len(parts) // 2
        yield " ".join(parts[:half]), " ".join(parts[half:])
    middle = len(answer) / 2
    for cut in sorted(CLAUSE.finditer(answer), key=lambda match: abs(match.start() - middle)):
        if 0.25 <= cut.start() / len(answer) <= 0.75:
            yield answer[: cut.start()], answer[cut.end() :]


def _other_number(number: str, taken: set[str], chance: Random) -> str | None:
    """Return a number of the same form, with another digit in its first part."""
    head = re.match(r"\d+", number)
    digits = len(head[0]) if head else 0
    for attempt in range(TRIES):  # first the last digit: 11 August becomes 14 August rather than 91
        position = digits - 1 if attempt < TRIES // 2 else chance.randrange(digits)
        digit = chance.choice([candidate for candidate in "123456789" if candidate != number[position]])
        changed = number[:position] + digit + number[position + 1 :]
        if changed not in taken:
            return changed
    return None


def _name_properties(name: str) -> tuple[bool, bool, bool, int]:
    """Return the properties that exchangeable names share: quotes, script, being an abbreviation, number of words."""
    bare = name.strip('«»"')
    return name != bare, bool(re.search("[а-яё]", bare, re.IGNORECASE)), bare.isupper(), len(bare.split())


def _whole_word_pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def _match_case(model: str, word: str) -> str:
    return word.capitalize() if model[:1].isupper() else word


def _normalise(word: str) -> str:
    return word.casefold().replace("ё", "е")


def _normalised_words(text: str) -> set[str]:
    return {_normalise(word) for word in re.findall(r"\w+", text)}
