"""Noise robustness: whether an answer says what only a passage beside the point says."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.facts import Fact, held_against

Text = str | None
WORD = re.compile(r"[^\W_]+")
NAME = re.compile(r"(?<=[^\W_])(?:,? |[ ,]*[«\"(])(?=[^\W\d_])([^\W_]+)")
"""A word within a sentence, which has no capital letter unless it is a name."""
STEM = 5
"""Letters of a word that are compared: Russian endings differ."""
RUN = 5
"""Words in a row that two texts do not share by chance."""
DIGITS = re.compile(r"\d")


def copies_distractor(
    answers: Sequence[Text], distractors: Sequence[Text], others: Sequence[Text]
) -> NDArray[np.float64]:
    """Whether an answer states what a distractor has and nothing else does: a fact, a name, or five words in a row.

    Words are compared in lower case by their first five letters, «ё» as «е». A name is a word that the distractor
    writes with a capital letter within a sentence, and the answer with one too.

    Args:
        answers: n texts, None where there is none.
        distractors: n texts that do not answer the question, None where none was given.
        others: n texts from which the answer may say the same: the right passages, the question, the reference.

    Returns:
        float64 (n,), 1 where it copies, 0 where not, lower is better; NaN without an answer or a distractor.

    Raises:
        ValueError: they differ in length.

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
    told = [None if None in pair else pair[0] for pair in zip(answers, distractors, strict=True)]
    rows = zip(told, distractors, others, _foreign_facts(told, distractors, others), strict=True)
    return np.array(
        [
            np.nan
            if answer is None or distractor is None
            else fact or _has_name(answer, distractor, other or "") or _has_run(answer, distractor, other or "")
            for answer, distractor, other, fact in rows
        ],
        np.float64,
    )


def _foreign_facts(answers: Sequence[Text], distractors: Sequence[Text], others: Sequence[Text]) -> list[bool]:
    """Whether an answer has a fact of the distractor that the other texts do not have."""
    known = held_against(answers, [other or "" for other in others])
    copied = held_against(answers, distractors)
    found = []
    for here, there in zip(known, copied, strict=True):
        strange = {held.fact for held in here or () if not held.supported and _is_trace(held.fact)}
        found.append(any(held.supported and held.fact in strange for held in there or ()))
    return found


def _is_trace(fact: Fact) -> bool:
    """Whether a fact says where it was taken from: a small number, as in "2 ways", is too common."""
    return fact.kind != "number" or len(DIGITS.findall(fact.text)) > 1


def _has_name(answer: str, distractor: str, other: str) -> bool:
    written = {word for word in WORD.findall(plain(answer)) if word[0].isupper() and len(word) > 1}
    if not written:
        return False
    found = (match[1] for match in NAME.finditer(plain(distractor)))
    names = {stem(name) for name in found if name[0].isupper() and len(name) > 1}
    return bool(names & {stem(word) for word in written} - set(stems(other)))


def _has_run(answer: str, distractor: str, other: str) -> bool:
    said = _runs(answer)
    return bool(said and (said & _runs(distractor)) - _runs(other))


def _runs(text: str) -> set[tuple[str, ...]]:
    found = stems(text)
    return set(zip(*(found[place:] for place in range(RUN)), strict=False))


def plain(text: str) -> str:
    """The text in normal form, «ё» as «е».

    Example:
        >>> from yarus.metrics.contexts.distractors import plain
        >>> plain("Ёлка")
        'Елка'
    """
    return unicodedata.normalize("NFC", text).replace("ё", "е").replace("Ё", "Е")


def stem(word: str) -> str:
    """The first letters of a word, in lower case.

    Example:
        >>> from yarus.metrics.contexts.distractors import stem
        >>> stem("Общежития") == stem("общежитию")
        True
    """
    return word.casefold()[:STEM]


def stems(text: str) -> list[str]:
    """The words of a text as they are compared, in order.

    Example:
        >>> from yarus.metrics.contexts.distractors import stems
        >>> stems("Ещё одна заявка")
        ['еще', 'одна', 'заявк']
    """
    return [stem(word) for word in WORD.findall(plain(text))]
