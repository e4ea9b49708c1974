"""Check tier 2 on the sample: figures equal to peer libraries', statuses without scores."""

import json
import math
from collections.abc import Callable
from typing import Any

import jiwer
import pytest
import sacrebleu
from rapidfuzz.distance import JaroWinkler
from rouge_score.rouge_scorer import RougeScorer

from tests.support.evaluations import JUDGED_METRICS, get_value, read_rows
from yarus.metrics.text.tokenizers import tokenize
from yarus.tasks.cases.text import word_stems
from yarus.tasks.models.stand_ins import f1

Document = dict[str, Any]


class Words:
    """rouge-score's interface to Yarus's tokenizer; its own drops every Cyrillic letter."""

    def tokenize(self, text: str) -> list[str]:
        return tokenize(text)


ROUGE = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Words())
BLEU = sacrebleu.BLEU(effective_order=True, smooth_method="add-k", smooth_value=1, tokenize="none")
CORPUS_BLEU = sacrebleu.BLEU(smooth_method="add-k", smooth_value=1, tokenize="none")


def join_tokens(text: str) -> str:
    return " ".join(tokenize(text))


def make_rouge(name: str) -> Callable[[str, str], float | None]:
    """Return a function for ROUGE's F; it gives None, not 0 as rouge-score, if the reference has no n-gram."""

    def score(answer: str, reference: str) -> float | None:
        if len(tokenize(reference)) < (2 if name == "rouge2" else 1):
            return None
        return float(ROUGE.score(reference, answer)[name].fmeasure)

    return score


PEERS: dict[str, Callable[[str, str], float | None]] = {
    "rouge1_f": make_rouge("rouge1"),
    "rouge2_f": make_rouge("rouge2"),
    "rougeL_f": make_rouge("rougeL"),
    "bleu": lambda answer, reference: BLEU.sentence_score(join_tokens(answer), [join_tokens(reference)]).score,
    "chrf": lambda answer, reference: sacrebleu.sentence_chrf(answer, [reference]).score,
    "wer": lambda answer, reference: jiwer.wer(join_tokens(reference), join_tokens(answer)),
    "string_similarity": lambda answer, reference: JaroWinkler.similarity(answer.lower(), reference.lower()),
}


@pytest.fixture(scope="module")
def sample_rows(night: dict[str, Document]) -> list[Document]:
    return read_rows(night["tier2"])


@pytest.mark.parametrize("column", PEERS)
def test_text_metrics_match_peers(night: dict[str, Document], sample_rows: list[Document], column: str) -> None:
    expected = [
        PEERS[column](row["answer"], row["reference"]) if row["answer"] is not None and row["reference"] else None
        for row in sample_rows
    ]
    assert [row[column] for row in sample_rows] == pytest.approx(expected, abs=1e-9)
    measured = [figure for figure in expected if figure is not None]
    metric = night["tier2"]["metrics"][f"avg_{column}"]
    assert metric["value"] == pytest.approx(sum(measured) / len(measured), abs=1e-9)
    assert (metric["n_scored"], metric["n_total"]) == (len(measured), len(sample_rows))


def test_corpus_bleu_matches_sacrebleu(night: dict[str, Document], sample_rows: list[Document]) -> None:
    pairs = [(row["answer"], row["reference"]) for row in sample_rows if row["answer"] is not None and row["reference"]]
    expected = CORPUS_BLEU.corpus_score([join_tokens(p[0]) for p in pairs], [[join_tokens(p[1]) for p in pairs]])
    assert get_value(night["tier2"], "corpus_bleu") == pytest.approx(expected.score, abs=1e-9)


@pytest.mark.parametrize("column", JUDGED_METRICS)
def test_judged_means_match_stored_replies(
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


def test_stand_in_judges_by_words(sample_rows: list[Document]) -> None:
    row = next(row for row in sample_rows if row["answer_correctness"])
    expected = f1(word_stems(row["answer"]), word_stems(row["reference"]))
    assert row["answer_correctness"] == pytest.approx(expected, abs=1e-6)


def test_refusal_scores_zero_and_has_no_faithfulness(sample_rows: list[Document]) -> None:
    refused = [row for row in sample_rows if row["status"] == "sut_refusal"]
    assert refused
    for row in refused:
        assert row["faithfulness"] is None
        assert row["answer_relevance"] == 0
        assert row["answer_correctness"] == (0 if row["reference"] else None)


def test_unanswerable_questions_are_not_asked(sample_rows: list[Document]) -> None:
    left_out = [row for row in sample_rows if row["answerable"] is False]
    assert len(left_out) == 22  # see db/sample/README.md
    assert {row["status"] for row in left_out} == {"not_applicable"}
    assert {row["answer"] for row in left_out} == {None}
