"""Properties of the text metrics for any text, and for batches and texts of any size."""

import tracemalloc
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import get_example_count
from yarus.metrics.text import bleu, chrf, rouge, rouge1, rouge2, rouge_all, rougeL, string_similarity, tokenize, wer
from yarus.metrics.text.text_pairs import CHARACTER_BLOCK, read_text_pairs

WORDS = st.lists(
    st.sampled_from(["да", "нет", "мир", "мира", "Мир", "ёж", "еж", "1,5", "—", "東京", "ที่", "🎉"]), max_size=10
).map(" ".join)
TEXTS = st.one_of(st.none(), WORDS, st.text(max_size=20))
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=8)

METRICS: dict[str, Callable[..., Any]] = {
    "bleu": bleu,
    "bleu 13a unsmoothed": lambda h, r: bleu(h, r, tokenizer="13a", smoothing=False),
    "rouge1": rouge1,
    "rouge2": rouge2,
    "rougeL": rougeL,
    "rouge2 precision": lambda h, r: rouge2(h, r, mode="precision"),
    "chrf": chrf,
    "chrf++": lambda h, r: chrf(h, r, word_order=2),
    "levenshtein": lambda h, r: string_similarity(h, r, measure="levenshtein"),
    "hamming": lambda h, r: string_similarity(h, r, measure="hamming"),
    "jaro": lambda h, r: string_similarity(h, r, measure="jaro"),
    "jaro_winkler": string_similarity,
    "wer": wer,
}
SYMMETRICAL = ("rouge1", "rouge2", "rougeL", "levenshtein", "hamming", "jaro", "jaro_winkler")
LONG = "Коротко о главном: ярус за ярусом, от поиска до ответа. "


@settings(max_examples=get_example_count(50))
@given(pairs=PAIRS)
def test_range_and_shape(pairs: list[tuple[str | None, str | None]]) -> None:
    for name, metric in METRICS.items():
        values = metric(*([side[i] for side in pairs] for i in (0, 1)))
        assert values.shape == (len(pairs),), name
        assert values.dtype == np.float64, name
        measured = values[~np.isnan(values)]
        assert (measured >= 0).all(), name
        assert name == "wer" or (measured <= 1).all(), name


@given(text=st.one_of(WORDS, st.text(max_size=20)))
def test_same_text_scores_best(text: str) -> None:
    for name, metric in METRICS.items():
        value = metric([text], [text])[0]
        assert np.isnan(value) or value == (0 if name == "wer" else 1), name


@pytest.mark.slow("breadth: every metric, by generated texts")
@settings(max_examples=get_example_count(30))
@given(pairs=PAIRS, rng=st.randoms())
def test_cases_are_independent(pairs: list[tuple[str | None, str | None]], rng: Any) -> None:
    """Each case alone, and in any order, gives what it gives in the batch."""
    order = list(range(len(pairs)))
    rng.shuffle(order)
    for name, metric in METRICS.items():
        batch_values = metric([pair[0] for pair in pairs], [pair[1] for pair in pairs])
        single_values = [metric([hypothesis], [reference])[0] for hypothesis, reference in pairs]
        np.testing.assert_array_equal(batch_values, single_values, name)
        shuffled = metric([pairs[i][0] for i in order], [pairs[i][1] for i in order])
        np.testing.assert_array_equal(shuffled, batch_values[order], name)


@pytest.mark.slow("breadth: every metric, by generated texts")
@given(pair=st.tuples(WORDS, WORDS))
def test_symmetry(pair: tuple[str, str]) -> None:
    for name in SYMMETRICAL:
        forth, back = METRICS[name]([pair[0]], [pair[1]]), METRICS[name]([pair[1]], [pair[0]])
        # Where one of them is undefined, it is for want of a reference, which the other direction has.
        if not np.isnan([forth, back]).any():
            np.testing.assert_allclose(forth, back, rtol=0, atol=1e-12, err_msg=name)


@given(pairs=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_rouge_precision_mirrors_recall(pairs: list[tuple[str, str]]) -> None:
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    for variant in ("rouge1", "rouge2", "rougeL"):
        forth = rouge(first, second, variant=variant, mode="precision")
        back = rouge(second, first, variant=variant, mode="recall")
        both = ~np.isnan(forth) & ~np.isnan(back)
        np.testing.assert_array_equal(forth[both], back[both])


@given(hypothesis=WORDS, references=st.lists(WORDS, min_size=1, max_size=4))
def test_best_reference_counts(hypothesis: str, references: list[str]) -> None:
    for metric in (rouge1, rouge2, rougeL, chrf):
        each = metric([hypothesis] * len(references), references)
        best = np.nan if np.isnan(each).all() else np.nanmax(each)
        np.testing.assert_array_equal(metric([hypothesis], [references]), [best])


def long_cases(n: int) -> tuple[list[str | None], list[str | None]]:
    """Cases of very different sizes that fill several blocks, some of them not measured."""
    sentences = [f"Случай {case}. {LONG * (case % 40)} Конец {case % 7}." for case in range(n)]
    hypotheses: list[str | None] = [sentence.replace("поиска", "поиск") for sentence in sentences]
    references: list[str | None] = [*sentences]
    hypotheses[5:n:50], references[7:n:50] = [None] * len(hypotheses[5:n:50]), [None] * len(references[7:n:50])
    return hypotheses, references


@pytest.mark.parametrize("name", METRICS)
def test_blocks_do_not_change_values(name: str) -> None:
    hypotheses, references = long_cases(120)
    batch_values = METRICS[name](hypotheses, references)
    single = [METRICS[name]([text], [expected])[0] for text, expected in zip(hypotheses, references, strict=True)]
    np.testing.assert_array_equal(batch_values, single)


def test_blocks_cover_all_cases_in_order() -> None:
    hypotheses, references = long_cases(250)
    cases = read_text_pairs(hypotheses, references, fold_yo=False)
    blocks = list(cases.blocks(10_000))
    assert len(blocks) > 50
    assert np.concatenate([block.index for block in blocks]).tolist() == cases.index.tolist()
    assert [text for block in blocks for text in block.hypotheses] == cases.hypotheses
    assert [text for block in blocks for text in block.references] == cases.references
    # A block ends with the case that fills it: never more than a block and one case.
    longest = max(len(text) for text in cases.hypotheses + cases.references)
    assert all(sum(map(len, block.hypotheses + block.references)) <= 10_000 + 2 * longest for block in blocks)


@pytest.mark.parametrize(("arguments", "each"), [((), 32_768), ((CHARACTER_BLOCK,), 16_384)])
def test_block_sizes(arguments: tuple[int, ...], each: int) -> None:
    """65,536 characters of both sides, half of it where every character is a token: one such case fills it."""
    for length, sizes in ((each, [1] * 5), (each - 1, [2, 1, 1, 1])):
        texts = ["а" * length] * 5
        blocks = read_text_pairs(texts, texts, fold_yo=False).blocks(*arguments)
        assert [len(block.hypotheses) for block in blocks] == sizes


def test_text_pairs_are_immutable() -> None:
    cases = read_text_pairs(["а"], ["б"], fold_yo=False)
    with pytest.raises(AttributeError):
        cases.n = 2  # type: ignore[misc]


def peak_bytes(function: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# A token of seven letters costs a string, a place in a list and some integers; a character of chrF some integers.
BYTES_A_CHARACTER = 100


@pytest.mark.slow("breadth: long texts")
@pytest.mark.parametrize("name", ["bleu", "rouge1", "rougeL", "chrf", "chrf++", "wer", "jaro_winkler"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LONG * 9000, id="half a million letters, 1 MB"),
        pytest.param("да " * 100_000, id="100,000 equal tokens"),
    ],
)
def test_memory_is_proportional_to_one_long_text(name: str, text: str) -> None:
    values: list[float] = []
    peak = peak_bytes(lambda: values.extend(METRICS[name]([text], [text])))
    assert values == [0 if name == "wer" else 1]
    assert peak < BYTES_A_CHARACTER * 2 * len(text)


@pytest.mark.slow("breadth: long texts")
def test_memory_does_not_grow_with_the_batch() -> None:
    """Beyond the results themselves: the work is done block by block."""
    texts = [LONG * 15] * 600
    for metric in (bleu, rouge_all, chrf, wer):
        few = peak_bytes(lambda metric=metric: metric(texts[:150], texts[:150]))
        many = peak_bytes(lambda metric=metric: metric(texts, texts))
        assert many < few * 1.5, metric.__name__


def test_shared_ngrams_of_equal_tokens() -> None:
    """100,000 against 50,000 of one word: 49,997 of 99,997 four-grams, and so on."""
    many, few = "да " * 100_000, "да " * 50_000
    expected = (50_000 / 100_000 * 49_999 / 99_999 * 49_998 / 99_998 * 49_997 / 99_997) ** 0.25
    assert bleu([many], [few], smoothing=False) == pytest.approx([expected], rel=1e-12)
    assert {name: values[0] for name, values in rouge_all([many], [few]).items()} == pytest.approx(
        {"rouge1": 2 / 3, "rouge2": 2 * 49_999 / (99_999 + 49_999), "rougeL": 2 / 3}, rel=1e-12
    )
    assert wer([many], [few]).tolist() == [1.0]


@pytest.mark.slow("breadth: long texts")
@pytest.mark.parametrize("words", [60_000, 1_120_000])
def test_more_distinct_words_than_characters(words: int) -> None:
    """Words are compared as characters, but for surrogates; where there are more words, as numbers."""
    numbers = [str(number) for number in range(words)]
    reference = " ".join(numbers)
    position = words - 500
    swapped = [*numbers[:position], numbers[position + 1], numbers[position], *numbers[position + 2 :]]
    assert wer([" ".join(swapped)], [reference]) * words == pytest.approx([2])


@given(st.text())
def test_tokens_do_not_depend_on_the_normal_form(text: str) -> None:
    for name in ("words", "13a", "char"):
        assert tokenize(unicodedata.normalize("NFD", text), name) == tokenize(unicodedata.normalize("NFC", text), name)
