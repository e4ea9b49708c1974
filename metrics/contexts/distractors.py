"""Noise robustness: whether an answer copies what only an irrelevant passage states."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.facts import Fact, check_facts

Text = str | None
WORD = re.compile(r"[^\W_]+")
NAME = re.compile(r"(?<=[^\W_])(?:,? |[ ,]*[«\"(])(?=[^\W\d_])([^\W_]+)")
"""A word within a sentence, which has no capital letter unless it is a name."""
STEM_LETTERS = 5
"""Letters of a word that are compared, because Russian endings differ."""
RUN_WORDS = 5
"""Consecutive words that two texts do not share by chance."""
DIGITS = re.compile(r"\d")


def copies_distractor(
    answers: Sequence[Text], distractors: Sequence[Text], others: Sequence[Text]
) -> NDArray[np.float64]:
    """Return whether each answer states what only its distractor has: a fact, a name, or five words in a row.

    Words are compared in lower case by their first five letters, «ё» as «е». A name is a word that the distractor
    writes with a capital letter within a sentence, and the answer with one too.

    Args:
        answers: n texts, None for a missing answer.
        distractors: n texts that do not answer the question, None if there was none.
        others: n texts that the answer may legitimately repeat: the right passages, the question, the reference.

    Returns:
        float64 (n,), 1 if it copies, 0 if not, lower is better; NaN without an answer or a distractor.

    Raises:
        ValueError: different lengths.

    Stored as: `distractor_copy_rate` (metrics/table/contexts.py).

    Reference: Shi et al. 2023, Large language models can be easily distracted by irrelevant context, ICML 2023,
    arXiv 2302.00093.

    Example:
        >>> from yarus.metrics.contexts import copies_distractor
        >>> copies_distractor(["До 12 мая.", "До 3 июня."], ["Заезд 12 мая."] * 2, ["Приём до 3 июня."] * 2)
        array([1., 0.])
    """
    if not len(answers) == len(distractors) == len(others):
        raise ValueError(f"{len(answers)} answers, {len(distractors)} distractors, {len(others)} others: give equally")
    with_distractor = [None if None in pair else pair[0] for pair in zip(answers, distractors, strict=True)]
    rows = zip(with_distractor, distractors, others, _foreign_facts(with_distractor, distractors, others), strict=True)
    return np.array(
        [
            np.nan
            if answer is None or distractor is None
            else copies_fact
            or _has_name(answer, distractor, other_text or "")
            or _has_run(answer, distractor, other_text or "")
            for answer, distractor, other_text, copies_fact in rows
        ],
        np.float64,
    )


def _foreign_facts(answers: Sequence[Text], distractors: Sequence[Text], others: Sequence[Text]) -> list[bool]:
    """Return whether each answer has a fact of its distractor that the other texts do not have."""
    against_others = check_facts(answers, [text or "" for text in others])
    against_distractors = check_facts(answers, distractors)
    copies = []
    for other_checks, distractor_checks in zip(against_others, against_distractors, strict=True):
        foreign = {check.fact for check in other_checks or () if not check.supported and _is_trace(check.fact)}
        copies.append(any(check.supported and check.fact in foreign for check in distractor_checks or ()))
    return copies


def _is_trace(fact: Fact) -> bool:
    """Return whether a fact reveals its source: a small number, as in "2 ways", is too common."""
    return fact.kind != "number" or len(DIGITS.findall(fact.text)) > 1


def _has_name(answer: str, distractor: str, other_text: str) -> bool:
    capitalized = {word for word in WORD.findall(normalize_text(answer)) if word[0].isupper() and len(word) > 1}
    if not capitalized:
        return False
    candidates = (match[1] for match in NAME.finditer(normalize_text(distractor)))
    names = {stem(name) for name in candidates if name[0].isupper() and len(name) > 1}
    return bool(names & {stem(word) for word in capitalized} - set(stem_words(other_text)))


def _has_run(answer: str, distractor: str, other_text: str) -> bool:
    runs = _word_runs(answer)
    return bool(runs and (runs & _word_runs(distractor)) - _word_runs(other_text))


def _word_runs(text: str) -> set[tuple[str, ...]]:
    words = stem_words(text)
    return set(zip(*(words[start:] for start in range(RUN_WORDS)), strict=False))


def normalize_text(text: str) -> str:
    """Return the text in normal form, with «е» for «ё».

    Example:
        >>> from yarus.metrics.contexts.distractors import normalize_text
        >>> normalize_text("Ёлка")
        'Елка'
    """
    return unicodedata.normalize("NFC", text).replace("ё", "е").replace("Ё", "Е")


def stem(word: str) -> str:
    """Return the first letters of a word, in lower case.

    Example:
        >>> from yarus.metrics.contexts.distractors import stem
        >>> stem("Общежития") == stem("общежитию")
        True
    """
    return word.casefold()[:STEM_LETTERS]


def stem_words(text: str) -> list[str]:
    """Return the words of a text in the form in which they are compared, in order.

    Example:
        >>> from yarus.metrics.contexts.distractors import stem_words
        >>> stem_words("Ещё одна заявка")
        ['еще', 'одна', 'заявк']
    """
    return [stem(word) for word in WORD.findall(normalize_text(text))]
