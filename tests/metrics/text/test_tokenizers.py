"""Tokens: equal on both sides of a comparison, in every script, and equal to sacreBLEU's for 13a."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import for_all
from yarus.metrics.text.tokenizers import TEXT_END, get_tokenizer, normalise, tokenize

NO_WORDS = [[], ["", ""], ["...", "— ?!"], [" \t\n\u00a0", "🎉❤\ufe0f"]]
# Signs that the rules of 13a are about, with a letter, digits (one not ASCII) and white space between them.
TRICKY = st.text(alphabet="a1٣é.,-'&;<>_!\n\t\u00a0 \x00\x01\x02", max_size=12)
REPLACED = st.lists(
    st.sampled_from(["<skipped>", "-\n", "&quot;", "&amp;", "&lt;", "&gt;", "&amp;lt;", "..", ".5", "x", " "])
)


@for_all(
    "text, tokens",
    [
        ("Кошка, сидела — на КОВРИКЕ.", ["кошка", "сидела", "на", "коврике"]),
        ("snake_case 3,14 don't", ["snake_case", "3", "14", "don", "t"]),
        ("кафе-бар №5", ["кафе", "бар", "5"]),
        ("東京都 に 行く", ["東京都", "に", "行く"]),
        # Thai and Devanagari vowel signs are marks, not letters: they stay in the word.
        ("ภาษาไทย ที่ดี", ["ภาษาไทย", "ที่ดี"]),
        ("हिन्दी की किताब", ["हिन्दी", "की", "किताब"]),
        ("за\u0301мок и замо\u0301к", ["за\u0301мок", "и", "замо\u0301к"]),
        # A vowel sign beyond the first plane (Brahmi), twice in one word, then a letter, then an emoji.
        ("\U00011013\U00011038\U00011013\U00011039к \U0001f389", ["\U00011013\U00011038\U00011013\U00011039к"]),
        # What a mark follows that is no word character is no word: the variation selector of an emoji.
        ("сердце ❤\ufe0f!", ["сердце"]),
        ("\u0301мир", ["мир"]),
        ("İstanbul", ["i\u0307stanbul"]),
        ("", []),
        ("…!?", []),
    ],
)
def test_words(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_different_thai_words_stay_different() -> None:
    """Python's \\w drops the vowel signs of both and makes them one word."""
    assert re.findall(r"\w+", "ที่") == re.findall(r"\w+", "ทู่")
    assert tokenize("ที่") != tokenize("ทู่")


@pytest.mark.slow("breadth: a million characters, thrice")
def test_words_continue_through_marks_only() -> None:
    """All characters: exactly the marks go on a word beyond what \\w does, and none of them starts one."""
    points = [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]
    characters = [c for c in map(chr, points) if unicodedata.is_normalized("NFC", c)]
    marks = [c for c in characters if unicodedata.category(c).startswith("M")]
    # İ is left out: in lower case it has a mark itself.
    others = [c for c in characters if not unicodedata.category(c).startswith("M") and c != "İ"]
    assert (len(marks) > 2000, len(others) > 900_000) == (True, True)
    words = get_tokenizer("words")
    assert words([f"ъ {mark}" for mark in marks]) == ["ъ", TEXT_END] * len(marks)
    assert words([f"ъ{mark}ъ" for mark in marks]) == [t for mark in marks for t in (f"ъ{mark}ъ".lower(), TEXT_END)]
    # Without a mark in the batch, and with one, which is another way through.
    expected = [t for c in others for t in ([f"ъ{c}ъ".lower()] if re.fullmatch(r"\w", c) else ["ъ", "ъ"]) + [TEXT_END]]
    assert words([f"ъ{c}ъ" for c in others] + ["а\u0301"]) == [*expected, "а\u0301", TEXT_END]
    assert words([f"ъ{c}ъ" for c in others]) == expected


@given(st.text())
def test_words_without_marks_equal_regex(text: str) -> None:
    text = "".join(c for c in unicodedata.normalize("NFC", text).lower() if not unicodedata.category(c).startswith("M"))
    assert tokenize(text) == re.findall(r"\w+", unicodedata.normalize("NFC", text).lower())


def test_normal_forms_give_the_same_tokens() -> None:
    composed = "Ёлка и йод, café, 한국어"
    decomposed = unicodedata.normalize("NFD", composed)
    assert composed != decomposed
    for name in ("words", "13a", "whitespace", "char"):
        assert tokenize(decomposed, name) == tokenize(composed, name)


def test_yo_is_folded_on_request() -> None:
    assert tokenize("Ёж зелёный") == ["ёж", "зелёный"]
    assert tokenize("Ёж зелёный", fold_yo=True) == ["еж", "зеленый"]
    assert tokenize("Ёж зелёный", "whitespace", fold_yo=True) == ["Еж", "зеленый"]
    assert tokenize(unicodedata.normalize("NFD", "ёж"), fold_yo=True) == ["еж"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Worked out with mteval-v13a.pl's substitutions by hand.
        ("Кошка сидела на коврике.", ["Кошка", "сидела", "на", "коврике", "."]),
        ("1,5 км; 1990-1995 (год)", ["1,5", "км", ";", "1990", "-", "1995", "(", "год", ")"]),
        ("don't e-mail", ["don't", "e-mail"]),
        ("5. и .5 и 5.,", ["5", ".", "и", ".", "5", "и", "5", ".", ","]),
        # In a run before a digit the pairing decides: after a letter, the second point of two stays with the digit.
        ("a..5 a...5 1..5", ["a", ".", ".5", "a", ".", ".", ".", "5", "1", ".", ".", "5"]),
        ("&quot;R&amp;D&quot; &lt;b&gt; &amp;lt;", ['"', "R", "&", "D", '"', "<", "b", ">", "<"]),
        ("пере-\nнос <skipped>слова\nдальше-\n", ["перенос", "слова", "дальше-"]),
    ],
)
def test_13a(text: str, tokens: list[str]) -> None:
    assert tokenize(text, "13a") == tokens


@given(st.one_of(TRICKY, st.text(), REPLACED.map("".join), st.tuples(TRICKY, REPLACED.map("".join)).map("".join)))
def test_13a_equals_sacrebleu(text: str) -> None:
    """As BLEU calls it: without the white space at the end."""

    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    text = unicodedata.normalize("NFC", text)
    assert tokenize(text, "13a") == Tokenizer13a()(text.rstrip()).split()


@given(st.text())
def test_char_and_whitespace(text: str) -> None:
    from sacrebleu.tokenizers.tokenizer_char import TokenizerChar

    text = unicodedata.normalize("NFC", text)
    assert tokenize(text, "char") == TokenizerChar()(text).split()
    assert tokenize(text, "whitespace") == text.split()


@given(texts=st.lists(st.one_of(TRICKY, st.text(alphabet="Σσα. \u0301é"), REPLACED.map("".join)), max_size=6))
def test_tokens_independent_of_neighbouring_texts(texts: list[str]) -> None:
    """A batch gives the tokens of each text, whatever stands before and after it."""
    normalised = normalise(texts, fold_yo=False)
    for name in ("words", "13a", "whitespace", "char"):
        one_by_one = [[*tokenize(text, name), TEXT_END] for text in normalised]
        assert get_tokenizer(name)(normalised) == [token for tokens in one_by_one for token in tokens], name


def test_end_mark_absent_from_normalised_text() -> None:
    """Greek numeral sign, question mark and ano teleia are composed to other characters, so they are free for us."""
    assert tokenize("\u0374 \u037e \u0387", "whitespace") == ["\u02b9", ";", "\u00b7"]
    assert TEXT_END not in normalise([TEXT_END], fold_yo=False)


@pytest.mark.parametrize("texts", NO_WORDS)
def test_no_words(texts: list[str]) -> None:
    assert get_tokenizer("words")(texts) == [TEXT_END] * len(texts)


def test_unknown_tokenizer_names_the_nearest() -> None:
    with pytest.raises(
        ValueError, match=r"no tokenizer 'word'; allowed are 'words', '13a', .*; did you mean 'words'\?"
    ):
        tokenize("x", "word")
    with pytest.raises(ValueError, match=r"no tokenizer 'ЖЖЖ'; allowed are 'words', '13a', 'whitespace', 'char'$"):
        tokenize("x", "ЖЖЖ")
