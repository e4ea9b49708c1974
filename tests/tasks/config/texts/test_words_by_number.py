"""Words agree with the number before them."""

import re

import pytest

from tests.tasks.config.texts.test_texts import SECTIONS
from yarus.tasks.config.texts import texts


@pytest.mark.parametrize(
    ("n", "phrase"),
    [(1, "1 общий вопрос"), (374, "374 общих вопроса"), (11, "11 общих вопросов"), (112, "112 общих вопросов"),
     (21, "21 общий вопрос"), (0, "0 общих вопросов"), (5, "5 общих вопросов")],
)  # fmt: skip
def test_words_agree_with_their_number(n: int, phrase: str) -> None:
    text = texts("report.page", "ru")["compared questions"].format(id="a", at="b", n=n)
    assert text == f"Сравнение с прогоном a от b: {phrase}."
    english = texts("report.page", "en")["compared questions"].format(id="a", at="b", n=n)
    assert english == f"Compared with a of b: {n} question{'' if n == 1 else 's'} in common."


COUNTS = (
    "n|n_cases|cases|results|unjudged|needs|needed|made|labels|labelled|persisted|drawn|rows|questions|values|total"
)


FIT_ANY = {"из", "и", "с", "не", "до", "есть", "на", "в", "мс", "без"}
"""Words that fit any number."""


@pytest.mark.parametrize("section", SECTIONS["ru"])
def test_words_after_a_count_have_plural_forms(section: str) -> None:
    """«374 общих вопросов»: a word after a number agrees with it, or the number comes last."""
    for key, text in SECTIONS["ru"][section].items():
        words = set(re.findall(rf"\{{(?:{COUNTS})\}} ([а-яё]+)", text)) - FIT_ANY
        assert not words, (key, text)
