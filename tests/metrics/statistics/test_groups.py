"""Cases that come in groups."""

import math

import pytest

from yarus.metrics.statistics.groups import group_codes

NAN = math.nan


def test_group_codes_count_in_order_of_appearance() -> None:
    assert group_codes(["b", None, "a", "b", None, NAN], 6).tolist() == [0, 1, 2, 0, 3, 4]
    with pytest.raises(ValueError, match="3 cases but 2 groups"):
        group_codes(["a", "b"], 3)
