"""The smallest detectable difference: it is found about four times in five, by simulation and by published figures."""

import math

import numpy as np
import pytest
from scipy import stats

from metrics.statistics import mcnemar_exact, permutation_p, smallest_detectable_difference


@pytest.mark.parametrize(("n", "changed"), [(200, 10), (200, 40), (60, 0), (1_000, 50)])
def test_a_yes_no_difference_of_this_size_is_found_four_times_in_five(n: int, changed: int) -> None:
    """Exact power by summing over all outcomes: at least 80 % at the difference, less a little below it."""
    differences = np.zeros(n)
    differences[:changed] = np.tile([1, -1], n)[:changed]
    smallest = smallest_detectable_difference(differences, yes_no=True)

    def power(difference: float) -> float:
        changing = max(changed / n, difference)
        upwards = (1 + difference / changing) / 2
        found = 0.0
        for total in range(n + 1):
            chance = stats.binom.pmf(total, n, changing)
            if chance > 1e-9:
                up = np.arange(total + 1)
                hits = np.array([mcnemar_exact(total - int(k), int(k)) < 0.05 for k in up]) & (up > total / 2)
                found += chance * float(stats.binom.pmf(up, total, upwards)[hits].sum())
        return found

    assert 0.7999 <= power(smallest) < 0.805
    assert power(smallest * 0.97) < 0.8


def test_a_mean_difference_of_this_size_is_found_four_times_in_five() -> None:
    generator = np.random.default_rng(3)
    smallest = smallest_detectable_difference(generator.normal(0, 2, 100_000)) * math.sqrt(100_000 / 80)
    found = sum(permutation_p(generator.normal(smallest, 2, 80), seed=i, resamples=500) < 0.05 for i in range(400))
    assert 0.74 <= found / 400 <= 0.86  # binomial, 99.7 %


def test_the_formula_for_means() -> None:
    """(1.959964 + 0.841621) * sd / sqrt(n), with sd = sqrt(10 / 9) of ten differences of 1 and -1."""
    differences = [1.0, -1.0] * 5
    assert smallest_detectable_difference(differences) == pytest.approx(2.8015852 * math.sqrt(10 / 9 / 10), rel=1e-7)
    assert smallest_detectable_difference(np.add(differences, 7)) == pytest.approx(2.8015852 / 3, rel=1e-7)
    narrower = smallest_detectable_difference(differences, alpha=0.1, power=0.5)
    assert narrower == pytest.approx(1.6448536 / 3, rel=1e-7)


def test_groups_count_as_one() -> None:
    users = np.random.default_rng(4).normal(size=12)
    once = smallest_detectable_difference(users)
    repeated = smallest_detectable_difference(np.repeat(users, 5), groups=np.repeat(np.arange(12), 5).tolist())
    assert repeated == pytest.approx(once)
    assert smallest_detectable_difference(np.repeat(users, 5)) < once / 2
    yes_no = smallest_detectable_difference([1.0, 0.0] * 10, yes_no=True, groups=list(range(20)))
    assert yes_no == pytest.approx(smallest_detectable_difference([1.0, 0.0] * 10))


@pytest.mark.parametrize(
    ("differences", "options"),
    [
        ([], {}),
        ([0.1, 0.2, 0.3, 0.4, 0.5], {}),  # 2 of 32 sign patterns is p = 0.0625
        ([1.0] * 5, {"yes_no": True}),
        ([1.0] * 5, {"yes_no": True, "alpha": 1 / 16}),  # p is 1 / 16, not below it
        ([0.0] * 50, {}),
        ([0.3] * 50, {}),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], {"alpha": 0.03}),
        ([1.0, 0.0] * 20, {"groups": ["a"] * 20 + ["b"] * 20}),
    ],
)
def test_where_nothing_could_be_found(differences: list[float], options: dict[str, object]) -> None:
    assert math.isnan(smallest_detectable_difference(differences, **options))  # type: ignore[arg-type]


def test_six_pairs_are_the_fewest() -> None:
    assert smallest_detectable_difference([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) > 0
    # All six must change for the better: p ** 6 = 0.8.
    assert smallest_detectable_difference([0.0] * 6, yes_no=True) == pytest.approx(0.8 ** (1 / 6), abs=2e-6)


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 1.0}, {"power": 0.0}, {"power": 1.0}])
def test_shares_outside_their_range_are_refused(options: dict[str, float]) -> None:
    (name, value) = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"{name} must lie between 0 and 1, got {value}"):
        smallest_detectable_difference([0.1] * 10, **options)  # type: ignore[arg-type]
