"""The self-test: no mismatch in a sound installation, detected breaks, and milliseconds of run time."""

import time

import numpy as np
import pytest

from yarus.metrics import retrieval, selftest, text
from yarus.metrics.selftest import CHECKS, Mismatch, self_test


def test_self_test_without_mismatch() -> None:
    assert self_test() == []


def test_self_test_takes_milliseconds() -> None:
    """0.4 of what adding a million numbers takes, in the processor's time, since other tests run at the same time."""
    self_test()  # imports what is imported late
    ours, peer = [], []
    for _ in range(5):
        for work, times in ((self_test, ours), (lambda: sum(range(1_000_000)), peer)):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
    assert min(ours) < 2 * min(peer)


def test_self_test_detects_tokenizer_without_cyrillic(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the usual ROUGE package does by default."""
    monkeypatch.setattr(text, "rouge1", lambda hypotheses, references: np.zeros(len(hypotheses)))
    mismatches = self_test()
    assert {finding.metric for finding in mismatches} == {"rouge1"}
    assert str(mismatches[0]) == "rouge1 of identical Russian text must be 1, is 0"


def test_self_test_detects_bad_or_missing_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "ndcg", lambda *_, **__: np.array([1.2]))
    monkeypatch.setattr(text, "bleu", lambda *_: np.array([np.nan]))
    values = {(mismatch.metric, mismatch.example): mismatch.got for mismatch in self_test()}
    assert values["ndcg@3", "hits at ranks 2 and 3"] == 1.2
    assert np.isnan(values["bleu", "the reversed text"])


def test_self_test_detects_small_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, count in ((1e-10, 0), (1e-8, 2), (-1e-8, 2)):
        monkeypatch.setattr(
            selftest.statistics, "wilson_interval", lambda *_, e=error: type("I", (), {"low": 0.49016247153664 + e})()
        )
        monkeypatch.setattr(selftest.statistics, "permutation_p", lambda *_, e=error, **__: 2 / 32 + e)
        assert len(self_test()) == count


def test_self_test_covers_every_kind() -> None:
    families = {
        "bleu",
        "rougeL",
        "chrf",
        "wer",
        "mrr",
        "ndcg@3",
        "silhouette_score",
        "weighted_kappa",
        "mcc",
        "wilson_interval",
    }
    assert families <= {check.metric for check in CHECKS}
    assert Mismatch("wer", "x", "0", 0.25) != Mismatch("wer", "x", "0", 0.5)
