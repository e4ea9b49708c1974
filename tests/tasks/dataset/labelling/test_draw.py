"""Which answers people are asked about: any first part of the order is a stratified random sample."""

from collections import Counter

import numpy as np
import pytest

from yarus.tasks.dataset.labelling.draw import drawn, strata

IDS = [f"s:{i}" for i in range(1_000)]
OF = strata([0.1] * 100 + [0.5] * 100 + [1.0] * 800, ["ok"] * 1_000)


def test_a_stratum_is_a_level_of_the_score_and_a_status() -> None:
    assert strata([0.0, 0.39, 0.4, 0.74, 0.75, 1.0], ["ok"] * 5 + ["refused"]) == [
        "low ok", "low ok", "middle ok", "middle ok", "high ok", "high refused",
    ]  # fmt: skip


def test_every_case_is_drawn_once_and_the_order_is_that_of_its_seed() -> None:
    order = drawn(IDS, OF, seed="one")
    assert sorted(one.row for one in order) == list(range(1_000))
    assert drawn(IDS, OF, seed="one") == order
    assert drawn(IDS, OF, seed="two") != order
    mixed = np.random.default_rng(0).permutation(1_000)
    again = drawn([IDS[i] for i in mixed], [OF[i] for i in mixed], seed="one")
    assert [IDS[mixed[one.row]] for one in again] == [IDS[one.row] for one in order]


def test_after_any_number_of_labels_strata_have_had_the_root_of_their_size() -> None:
    order = drawn(IDS, OF, seed="one")
    for n in (24, 48, 97, 144):
        counts = Counter(OF[one.row] for one in order[:n])
        whole = 2 * 100**0.5 + 800**0.5
        for name, size in (("low ok", 100), ("middle ok", 100), ("high ok", 800)):
            assert abs(counts[name] - n * size**0.5 / whole) <= 1


def test_its_probability_is_the_share_of_its_stratum_that_is_drawn_by_then() -> None:
    seen: Counter[str] = Counter()
    for one in drawn(IDS, OF, seed="one"):
        seen[one.stratum] += 1
        assert one.stratum == OF[one.row]
        assert one.probability == seen[one.stratum] / one.stratum_size


@pytest.mark.slow("simulation: many draws")
def test_all_cases_of_a_stratum_are_as_likely() -> None:
    """Of 400 draws of 50, each of the 100 low ones is in about 400 x 10 / 100."""
    counts = Counter(one.row for seed in range(400) for one in drawn(IDS, OF, seed=seed)[:50] if one.row < 100)
    share = sum(counts.values()) / 100 / 400
    assert share == 0.1
    assert max(abs(counts[row] / 400 - share) for row in range(100)) < 4.5 * (share * (1 - share) / 400) ** 0.5
