"""Alpha with its interval: little overlap, one user, and JSON output."""

from typing import Any

import pytest

from yarus.tasks.dataset.labelling.alpha import annotator_alpha
from yarus.tasks.evaluation.summary import to_json

OPPOSITE_LABELS = [{"anna": float(i % 2), "boris": 1.0 - i % 2} for i in range(4)]


@pytest.mark.parametrize(("n", "groups"), [(1, None), (2, None), (4, "one user")])
def test_alpha_has_wide_finite_interval_with_little_overlap(n: int, groups: Any) -> None:
    agreement = annotator_alpha(OPPOSITE_LABELS[:n], [groups] * n)
    to_json(agreement)  # it rejects NaN
    assert agreement["alpha"] is not None and agreement["ci_low"] is not None and agreement["ci_high"] is not None
    assert agreement["ci_low"] <= agreement["alpha"] <= agreement["ci_high"]
    assert agreement["ci_low"] == pytest.approx(-1, abs=1e-3)  # two annotators with opposite labels
    assert agreement["ci_high"] - agreement["ci_low"] > 1
