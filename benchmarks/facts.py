"""Facts of short Russian answers against ROUGE-1+2+L of rouge-score on the same pairs; how time grows with length."""

import sys
from collections.abc import Iterator
from importlib.metadata import version

from benchmarks import Row, medians
from benchmarks.text import XQUAD, paragraphs, peer_rouge
from yarus.metrics import facts

CHARACTERS = (80, 120)
PAIRS = 1_000


def run() -> Iterator[Row]:
    """A sentence of about 100 characters against the next of its kind; a text against one ten times as long."""
    if not XQUAD.exists():
        print(f"facts: left out, it needs {XQUAD}", file=sys.stderr)
        return
    low, high = CHARACTERS
    found = [text for paragraph in paragraphs() for text in paragraph["context"].split(". ")]
    found = [text for text in found if low <= len(text) <= high and facts.facts(text)]
    answers = (found * (PAIRS // len(found) + 1))[:PAIRS]
    others = [*answers[1:], answers[0]]
    ours_s, peer_s = medians(lambda: facts.unsupported(answers, others), lambda: peer_rouge(answers, others))
    yield Row("facts of 100 characters", f"rouge-score {version('rouge-score')}", ours_s, peer_s, 1, "at least")
    long = " ".join(paragraph["context"] for paragraph in paragraphs()[:100])
    ten_s, one_s = medians(lambda: facts.facts(long * 10), lambda: [facts.facts(long) for _ in range(10)])
    yield Row(f"facts of {len(long) * 10:,} characters", "ten texts of a tenth", ten_s, one_s, 1.2)
