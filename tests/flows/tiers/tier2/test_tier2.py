"""Tier 2 on the sample: figures equal to the peers' on the stored texts, statuses that are no scores."""

import json
import math
from collections.abc import Callable
from typing import Any

import jiwer
import pytest
import sacrebleu
from rapidfuzz.distance import JaroWinkler
from rouge_score.rouge_scorer import RougeScorer

from tests.support.evaluations import JUDGED, rows_of, value
from yarus.metrics.text.tokenizers import tokenize
from yarus.tasks.cases.text import words as stems
from yarus.tasks.models.stand_ins import f1

Document = dict[str, Any]


class Words:
    """rouge-score's interface to our tokenizer: its own drops every Cyrillic letter."""

    def tokenize(self, text: str) -> list[str]:
        return tokenize(text)


ROUGE = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Words())
BLEU = sacrebleu.BLEU(effective_order=True, smooth_method="add-k", smooth_value=1, tokenize="none")
CORPUS_BLEU = sacrebleu.BLEU(smooth_method="add-k", smooth_value=1, tokenize="none")


def spaced(text: str) -> str:
    return " ".join(tokenize(text))


def rouge(name: str) -> Callable[[str, str], float | None]:
    """F of ROUGE; None where the reference has no n-gram, which rouge-score calls 0."""

    def score(answer: str, reference: str) -> float | None:
        if len(tokenize(reference)) < (2 if name == "rouge2" else 1):
            return None
        return float(ROUGE.score(reference, answer)[name].fmeasure)

    return score


PEERS: dict[str, Callable[[str, str], float | None]] = {
    "rouge1_f": rouge("rouge1"),
    "rouge2_f": rouge("rouge2"),
    "rougeL_f": rouge("rougeL"),
    "bleu": lambda answer, reference: BLEU.sentence_score(spaced(answer), [spaced(reference)]).score,
    "chrf": lambda answer, reference: sacrebleu.sentence_chrf(answer, [reference]).score,
    "wer": lambda answer, reference: jiwer.wer(spaced(reference), spaced(answer)),
    "string_similarity": lambda answer, reference: JaroWinkler.similarity(answer.lower(), reference.lower()),
}


@pytest.fixture(scope="module")
def sample_rows(night: dict[str, Document]) -> list[Document]:
    return rows_of(night["tier2"])


@pytest.mark.parametrize("column", PEERS)
def test_text_metrics_are_the_peers(night: dict[str, Document], sample_rows: list[Document], column: str) -> None:
    theirs = [
        PEERS[column](row["answer"], row["reference"]) if row["answer"] is not None and row["reference"] else None
        for row in sample_rows
    ]
    assert [row[column] for row in sample_rows] == pytest.approx(theirs, abs=1e-9)
    measured = [figure for figure in theirs if figure is not None]
    metric = night["tier2"]["metrics"][f"avg_{column}"]
    assert metric["value"] == pytest.approx(sum(measured) / len(measured), abs=1e-9)
    assert (metric["n_scored"], metric["n_total"]) == (len(measured), len(sample_rows))


def test_corpus_bleu_is_sacrebleus(night: dict[str, Document], sample_rows: list[Document]) -> None:
    pairs = [(row["answer"], row["reference"]) for row in sample_rows if row["answer"] is not None and row["reference"]]
    theirs = CORPUS_BLEU.corpus_score([spaced(pair[0]) for pair in pairs], [[spaced(pair[1]) for pair in pairs]])
    assert value(night["tier2"], "corpus_bleu") == pytest.approx(theirs.score, abs=1e-9)


@pytest.mark.parametrize("column", JUDGED)
def test_judged_means_are_those_of_the_stored_replies(
    night: dict[str, Document], sample_rows: list[Document], column: str
) -> None:
    replies = [
        (row["case_id"], json.loads(reply["reply"])["score"])
        for row in sample_rows
        for reply in row["judge_raw"]
        if reply["metric"] == column
    ]
    refused = [row["case_id"] for row in sample_rows if row["status"] == "sut_refusal" and row[column] is not None]
    metric = night["tier2"]["metrics"][f"avg_{column}"]
    scored = [score for _, score in replies] + [0.0] * len(refused)
    assert metric["value"] == pytest.approx(math.fsum(scored) / len(scored), abs=1e-12)
    assert metric["n_scored"] == len(scored)
    assert {row["case_id"]: row[column] for row in sample_rows if row[column] is not None} == {
        **dict(replies),
        **dict.fromkeys(refused, 0.0),
    }


def test_the_stand_in_judges_by_words_as_it_says(sample_rows: list[Document]) -> None:
    row = next(row for row in sample_rows if row["answer_correctness"])
    expected = f1(stems(row["answer"]), stems(row["reference"]))
    assert row["answer_correctness"] == pytest.approx(expected, abs=1e-6)


def test_a_refusal_is_worth_nothing_and_faithful_to_nothing(sample_rows: list[Document]) -> None:
    refused = [row for row in sample_rows if row["status"] == "sut_refusal"]
    assert refused
    for row in refused:
        assert row["faithfulness"] is None
        assert row["answer_relevance"] == 0
        assert row["answer_correctness"] == (0 if row["reference"] else None)


def test_what_the_corpus_cannot_answer_is_not_asked(sample_rows: list[Document]) -> None:
    left_out = [row for row in sample_rows if row["answerable"] is False]
    assert len(left_out) == 22  # see db/sample/README.md
    assert {row["status"] for row in left_out} == {"not_applicable"}
    assert {row["answer"] for row in left_out} == {None}
