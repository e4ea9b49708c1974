"""Nugget recall against the four scores that TREC RAG's AutoNuggetizer names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.claims import Nuggets, nugget_recall

WORTH = {1.0: "support", 0.5: "partial_support", 0.0: "not_support"}


def score_by_definition(labels: list[str], vital: list[bool]) -> dict[str, float]:
    """Return strict_vital, vital, strict_all and all as in the paper, from its labels."""
    strict = [float(label == "support") for label in labels]
    mild = [score or 0.5 * (label == "partial_support") for score, label in zip(strict, labels, strict=True)]

    def mean(scores: list[float], counted: list[bool]) -> float:
        counted_scores = [score for score, counts in zip(scores, counted, strict=True) if counts]
        return sum(counted_scores) / len(counted_scores) if counted_scores else np.nan

    all_counted = [True] * len(labels)
    return {
        "strict_vital": mean(strict, vital), "vital": mean(mild, vital),
        "strict_all": mean(strict, all_counted), "all": mean(mild, all_counted),
    }  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), max_size=8))
def test_nugget_recall_equals_four_scores(verdicts: list[tuple[float, bool]]) -> None:
    support, vital = [score for score, _ in verdicts], [is_vital for _, is_vital in verdicts]
    expected = score_by_definition([WORTH[score] for score in support], vital)
    for name, options in {
        "strict_vital": {}, "vital": {"partial": True},
        "strict_all": {"okay": True}, "all": {"okay": True, "partial": True},
    }.items():  # fmt: skip
        recall = nugget_recall([Nuggets(support, vital)], **options)[0]
        assert recall == pytest.approx(expected[name], abs=1e-12, nan_ok=True)


def test_nugget_recall_leaves_out_nuggets_without_verdict() -> None:
    case = Nuggets([1, np.nan, np.nan], [True, True, False])
    assert nugget_recall([case])[0] == 1
    assert np.isnan(nugget_recall([Nuggets([np.nan, 0], [True, False])])[0])


def test_nugget_recall_refuses_bad_verdicts() -> None:
    with pytest.raises(ValueError, match="2 nuggets but verdicts on 1"):
        nugget_recall([Nuggets([1], [True, False])])
    with pytest.raises(ValueError, match=r"a nugget is supported 0, 0\.5 or 1, not 0\.7"):
        nugget_recall([Nuggets([0.7], [True])])
