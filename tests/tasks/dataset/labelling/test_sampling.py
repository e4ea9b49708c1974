"""Sampling order for labels: each prefix is a stratified random sample."""

from collections import Counter

import numpy as np
import pytest

from yarus.tasks.dataset.labelling.sampling import assign_strata, sampling_order

IDS = [f"s:{i}" for i in range(1_000)]
CASE_STRATA = assign_strata([0.1] * 100 + [0.5] * 100 + [1.0] * 800, ["ok"] * 1_000)


def test_assign_strata_combines_score_level_and_status() -> None:
    assert assign_strata([0.0, 0.39, 0.4, 0.74, 0.75, 1.0], ["ok"] * 5 + ["refused"]) == [
        "low ok", "low ok", "middle ok", "middle ok", "high ok", "high refused",
    ]  # fmt: skip


def test_sampling_order_has_each_case_once_in_seeded_order() -> None:
    order = sampling_order(IDS, CASE_STRATA, seed="one")
    assert sorted(case.row for case in order) == list(range(1_000))
    assert sampling_order(IDS, CASE_STRATA, seed="one") == order
    assert sampling_order(IDS, CASE_STRATA, seed="two") != order
    permutation = np.random.default_rng(0).permutation(1_000)
    permuted_order = sampling_order([IDS[i] for i in permutation], [CASE_STRATA[i] for i in permutation], seed="one")
    assert [IDS[permutation[case.row]] for case in permuted_order] == [IDS[case.row] for case in order]


def test_sampling_order_allocates_by_root_of_stratum_size() -> None:
    order = sampling_order(IDS, CASE_STRATA, seed="one")
    for n in (24, 48, 97, 144):
        counts = Counter(CASE_STRATA[case.row] for case in order[:n])
        sum_of_roots = 2 * 100**0.5 + 800**0.5
        for name, size in (("low ok", 100), ("middle ok", 100), ("high ok", 800)):
            assert abs(counts[name] - n * size**0.5 / sum_of_roots) <= 1


def test_sampling_probability_is_share_of_stratum_so_far() -> None:
    seen: Counter[str] = Counter()
    for case in sampling_order(IDS, CASE_STRATA, seed="one"):
        seen[case.stratum] += 1
        assert case.stratum == CASE_STRATA[case.row]
        assert case.probability == seen[case.stratum] / case.stratum_size


@pytest.mark.slow("simulation: many draws")
def test_sampling_order_is_uniform_within_a_stratum() -> None:
    """Of 400 samples of 50, each of the 100 cases with low scores is in about 400 x 10 / 100."""
    counts = Counter(
        case.row for seed in range(400) for case in sampling_order(IDS, CASE_STRATA, seed=seed)[:50] if case.row < 100
    )
    share = sum(counts.values()) / 100 / 400
    assert share == 0.1
    assert max(abs(counts[row] / 400 - share) for row in range(100)) < 4.5 * (share * (1 - share) / 400) ** 0.5
