"""Alpha with its interval: little in common, one user, and what becomes JSON."""

from typing import Any

import pytest

from yarus.tasks.dataset.labelling.alpha import alpha
from yarus.tasks.evaluation.summary import as_json

APART = [{"anna": float(i % 2), "boris": 1.0 - i % 2} for i in range(4)]


@pytest.mark.parametrize(("n", "groups"), [(1, None), (2, None), (4, "one user")])
def test_little_in_common_has_a_wide_interval_and_no_nan(n: int, groups: Any) -> None:
    found = alpha(APART[:n], [groups] * n)
    as_json(found)  # which refuses NaN
    assert found["alpha"] is not None and found["ci_low"] is not None and found["ci_high"] is not None
    assert found["ci_low"] <= found["alpha"] <= found["ci_high"]
    assert found["ci_low"] == pytest.approx(-1, abs=1e-3)  # two of whom each says the other's opposite
    assert found["ci_high"] - found["ci_low"] > 1
