"""Facts of short Russian answers against ROUGE-1+2+L of rouge-score on the same pairs; how time grows with length."""

import sys
from collections.abc import Iterator
from importlib.metadata import version

from benchmarks import Row, time_in_turn
from benchmarks.text import XQUAD, paragraphs, peer_rouge
from yarus.metrics import facts

CHARACTERS = (80, 120)
PAIRS = 1_000


def run() -> Iterator[Row]:
    """Compare sentences of about 100 characters with rouge-score; then a text with one ten times as long."""
    if not XQUAD.exists():
        print(f"facts: left out, it needs {XQUAD}", file=sys.stderr)
        return
    low, high = CHARACTERS
    sentences = [text for paragraph in paragraphs() for text in paragraph["context"].split(". ")]
    sentences = [text for text in sentences if low <= len(text) <= high and facts.facts(text)]
    answers = (sentences * (PAIRS // len(sentences) + 1))[:PAIRS]
    sources = [*answers[1:], answers[0]]
    ours_s, peer_s = time_in_turn(lambda: facts.unsupported(answers, sources), lambda: peer_rouge(answers, sources))
    yield Row("facts of 100 characters", f"rouge-score {version('rouge-score')}", ours_s, peer_s, 1, "at least")
    long = " ".join(paragraph["context"] for paragraph in paragraphs()[:100])
    long_s, ten_short_s = time_in_turn(lambda: facts.facts(long * 10), lambda: [facts.facts(long) for _ in range(10)])
    yield Row(f"facts of {len(long) * 10:,} characters", "ten texts of a tenth", long_s, ten_short_s, 1.2)
