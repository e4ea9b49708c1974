"""Shared n-grams, counted by sorting packed integers, against counting them one by one."""

from collections import Counter

import numpy as np

from tests.support.examples import for_all
from yarus.metrics.text.ngrams import encode_tokens, shared_ngrams
from yarus.metrics.text.tokenizers import TEXT_END


def ngrams(tokens: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))


@for_all("references", [1, 3, 9])
@for_all("words", [2, 17, 30, 5_000])
def test_shared_ngrams_equal_naive_counts(references: int, words: int) -> None:
    """From two words to more than two fit into one key, over several keys, with one reference and with many."""
    generator = np.random.default_rng(words)
    cases, order = 5, 13
    common = generator.integers(0, words, 40)

    def text() -> list[str]:
        own = np.where(generator.random(40) < 0.1, generator.integers(0, words, 40), common)
        return [str(word) for word in own[: generator.integers(0, 41)]]

    hypotheses = [text() for _ in range(cases)]
    expected = [[text() for _ in range(references)] for _ in range(cases)]
    flat = [*hypotheses, *(text for texts_of_case in expected for text in texts_of_case)]
    encoded = encode_tokens([token for tokens in flat for token in (*tokens, TEXT_END)])
    naive = np.zeros((cases, order), dtype=int)
    for case in range(cases):
        for n in range(1, order + 1):
            most: Counter[tuple[str, ...]] = Counter()
            for reference in expected[case]:
                most |= ngrams(reference, n)
            naive[case, n - 1] = (ngrams(hypotheses[case], n) & most).total()
    counts = shared_ngrams(encoded, np.repeat(np.arange(cases), references), order=order)
    np.testing.assert_array_equal(counts, naive)
