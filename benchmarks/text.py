"""Text metrics against the packages whose numbers they equal, on pairs of Russian Wikipedia text (XQuAD).

Short: an answer against its sentence. Long: a paragraph against itself with a tenth of its words changed.
"""

import json
import random
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from benchmarks import Row, time_in_turn
from yarus.metrics import text
from yarus.metrics.text.rouge import ROUGE_VARIANTS

XQUAD = Path(__file__).parents[2] / "shared" / "data" / "xquad" / "xquad.ru.json"
PAIRS = {"short": 2_000, "long": 1_000}
Pair = tuple[str, str]


def run() -> Iterator[Row]:
    """Yield one row per metric and length of text, after a check that every value equals the peer's."""
    if not XQUAD.exists():
        print(f"text: left out, it needs {XQUAD}", file=sys.stderr)
        return
    for kind, pairs in {"short": short_pairs(), "long": long_pairs()}.items():
        hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        for what, (peer, ours, theirs, targets) in CONTESTS.items():
            np.testing.assert_allclose(ours(hypotheses, references), theirs(hypotheses, references), rtol=0, atol=1e-9)

            def call_ours(ours: Callable[..., Any] = ours) -> object:
                return ours(hypotheses, references)  # noqa: B023  # called before the loop goes on

            def call_peer(theirs: Callable[..., Any] = theirs) -> object:
                return theirs(hypotheses, references)  # noqa: B023

            ours_s, peer_s = time_in_turn(call_ours, call_peer, rounds=3)
            yield Row(f"{what}, {kind}", f"{peer} {version(peer)}", ours_s, peer_s, targets[kind], "at least")


def paragraphs() -> list[dict[str, Any]]:
    # One kind of space: jiwer does not split at a no-break space.
    data: list[dict[str, Any]] = json.loads(XQUAD.read_text(encoding="utf-8").replace(r"\u00a0", " "))["data"]
    return [paragraph for article in data for paragraph in article["paragraphs"]]


def short_pairs() -> list[Pair]:
    """Return answers with the sentence of each."""
    pairs = []
    for paragraph in paragraphs():
        context = paragraph["context"]
        for answer in (question["answers"][0] for question in paragraph["qas"]):
            start = context.rfind(". ", 0, answer["answer_start"]) + 1
            end = context.find(". ", answer["answer_start"] + len(answer["text"]))
            pairs.append((answer["text"], context[start : end + 1 if end >= 0 else None].strip()))
    return list(islice(cycle(pairs), PAIRS["short"]))


def long_pairs() -> list[Pair]:
    """Return paragraphs with a tenth of their words changed, and the originals."""
    rng = random.Random(0)
    words = [word for paragraph in paragraphs() for word in paragraph["context"].split()]
    pairs = []
    for paragraph in islice(cycle(paragraphs()), PAIRS["long"]):
        changed = [rng.choice(words) if rng.random() < 0.1 else word for word in paragraph["context"].split()]
        pairs.append((" ".join(changed), paragraph["context"]))
    return pairs


class Words:
    """Our tokenizer with the interface of rouge-score."""

    tokenize = staticmethod(text.tokenize)


def _ours_rouge(hypotheses: list[str], references: list[str]) -> Any:
    # A reference of one word has no bigram: undefined here, 0 there.
    return np.nan_to_num(np.column_stack(list(text.rouge_all(hypotheses, references).values())))


def peer_rouge(hypotheses: list[str], references: list[str]) -> Any:
    """Return ROUGE-1, 2 and L of rouge-score on our words, one row per pair."""
    scorer = RougeScorer(ROUGE_VARIANTS, tokenizer=Words())
    scores = [scorer.score(reference, hypothesis) for hypothesis, reference in zip(hypotheses, references, strict=True)]
    return np.array([[score.fmeasure for score in scores_of_pair.values()] for scores_of_pair in scores])


def _sentence_scores(hypotheses: list[str], references: list[str], scorer: Any) -> Any:
    # A new scorer has an empty cache of tokenized lines.
    pairs = zip(hypotheses, references, strict=True)
    return np.array([scorer.sentence_score(hypothesis, [reference]).score / 100 for hypothesis, reference in pairs])


def _peer_bleu(hypotheses: list[str], references: list[str]) -> Any:
    return _sentence_scores(hypotheses, references, BLEU(smooth_method="add-k", smooth_value=1, effective_order=True))


def _peer_wer(hypotheses: list[str], references: list[str]) -> Any:
    return np.array(
        [jiwer.wer(reference, hypothesis) for hypothesis, reference in zip(hypotheses, references, strict=True)]
    )


Function = Callable[[list[str], list[str]], Any]
CONTESTS: dict[str, tuple[str, Function, Function, dict[str, float]]] = {
    "ROUGE-1+2+L": ("rouge-score", _ours_rouge, peer_rouge, {"short": 5, "long": 25}),
    "BLEU, 13a": ("sacrebleu", lambda h, r: text.bleu(h, r, tokenizer="13a"), _peer_bleu, {"short": 4, "long": 5}),
    "chrF": ("sacrebleu", text.chrf, lambda h, r: _sentence_scores(h, r, CHRF()), {"short": 8, "long": 15}),
    "chrF++": (
        "sacrebleu",
        lambda h, r: text.chrf(h, r, word_order=2),
        lambda h, r: _sentence_scores(h, r, CHRF(word_order=2)),
        {"short": 5, "long": 9},
    ),
    "WER": ("jiwer", lambda h, r: text.wer(h, r, tokenizer="whitespace"), _peer_wer, {"short": 2.5, "long": 1.6}),
}
