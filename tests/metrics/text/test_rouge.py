"""ROUGE: its variants and modes, and several references."""

import numpy as np
import pytest

from yarus.metrics.text import (
    rouge,
    rouge1,
    rouge2,
    rouge_all,
    rougeL,
)


@pytest.mark.parametrize("mode", ["precision", "recall", "fmeasure"])
def test_rouge_2_of_one_word(mode: str) -> None:
    """A reference of one word has no bigram, so nothing is defined; a hypothesis of one word misses all of them."""
    values = rouge2(
        ["слово", "два слова", "слово", "два слова"], ["слово", "слово", "два слова", "три слова"], mode=mode
    )
    np.testing.assert_array_equal(values, [np.nan, np.nan, 0, 0])
    assert rouge1(["слово"], ["слово"], mode=mode).tolist() == [1.0]


def test_rouge_variants_agree() -> None:
    hypotheses, references = ["а б в", "а", None, "в б а"], ["а б г", "а", "а", ["а б в", "б а"]]
    for mode in ("precision", "recall", "fmeasure"):
        all_variants = rouge_all(hypotheses, references, mode=mode)
        for variant, shortcut in {"rouge1": rouge1, "rouge2": rouge2, "rougeL": rougeL}.items():
            single_variant = rouge(hypotheses, references, variant=variant, mode=mode)
            np.testing.assert_array_equal(single_variant, all_variants[variant])
            np.testing.assert_array_equal(single_variant, shortcut(hypotheses, references, mode=mode))
    options = {"tokenizer": "char", "fold_yo": True}
    assert rouge(["ёж"], ["ежи"], **options) == pytest.approx([0.8])
    for shortcut in (rouge1, rougeL):
        assert shortcut(["ёж"], ["ежи"], **options) == pytest.approx([0.8])
    assert rouge2(["ёж"], ["ежи"], **options) == pytest.approx([2 / 3])
    assert rouge_all(["ёж"], ["ежи"], **options)["rougeL"] == pytest.approx([0.8])


def test_rouge_defaults_to_l_f() -> None:
    assert rouge(["б а в"], ["а б"]) == pytest.approx([0.4])


def test_rouge_takes_the_best_f_for_every_mode() -> None:
    # F: 2·1/(2+1) = 2/3 for the first, 2·2/(2+5) = 4/7 for the second, which has the better recall… of the hypothesis.
    references = [["а", "а б в г д"]]
    assert rouge1(["а б"], references) == pytest.approx([2 / 3])
    assert rouge1(["а б"], references, mode="precision").tolist() == [0.5]
    assert rouge1(["а б"], references, mode="recall").tolist() == [1.0]
