"""The self-test finds nothing where all is well, finds what is broken, and takes milliseconds."""

import time

import numpy as np
import pytest

from yarus.metrics import retrieval, selftest, text
from yarus.metrics.selftest import CHECKS, Mismatch, self_test


def test_nothing_is_found_where_all_is_well() -> None:
    assert self_test() == []


def test_it_takes_milliseconds() -> None:
    """0.4 of what adding a million numbers takes, in the processor's time, since other tests run at the same time."""
    self_test()  # imports what is imported late
    ours, peer = [], []
    for _ in range(5):
        for work, times in ((self_test, ours), (lambda: sum(range(1_000_000)), peer)):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
    assert min(ours) < 2 * min(peer)


def test_a_tokenizer_that_drops_cyrillic_letters_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the usual ROUGE package does by default."""
    monkeypatch.setattr(text, "rouge1", lambda hypotheses, references: np.zeros(len(hypotheses)))
    found = self_test()
    assert {finding.metric for finding in found} == {"rouge1"}
    assert str(found[0]) == "rouge1 of identical Russian text must be 1, is 0"


def test_a_metric_out_of_range_or_without_a_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "ndcg", lambda *_, **__: np.array([1.2]))
    monkeypatch.setattr(text, "bleu", lambda *_: np.array([np.nan]))
    found = {(finding.metric, finding.of): finding.got for finding in self_test()}
    assert found["ndcg@3", "hits at ranks 2 and 3"] == 1.2
    assert np.isnan(found["bleu", "the reversed text"])


def test_a_value_just_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, count in ((1e-10, 0), (1e-8, 2), (-1e-8, 2)):
        monkeypatch.setattr(
            selftest.statistics, "wilson_interval", lambda *_, e=error: type("I", (), {"low": 0.49016247153664 + e})()
        )
        monkeypatch.setattr(selftest.statistics, "permutation_p", lambda *_, e=error, **__: 2 / 32 + e)
        assert len(self_test()) == count


def test_each_kind_of_metric_is_checked() -> None:
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
