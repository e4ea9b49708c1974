"""The smallest detectable difference: its power is 0.8, by simulation and by published figures."""

import math
from functools import cache

import numpy as np
import pytest

from yarus.metrics.statistics import mcnemar_exact, min_detectable_effect, permutation_p


@cache
def found_upwards(total: int) -> np.ndarray:
    """Return the numbers of upward changes, of all changes, that McNemar's test calls a rise."""
    return np.array([up for up in range(total // 2 + 1, total + 1) if mcnemar_exact(total - up, up) < 0.05], dtype=int)


@pytest.mark.parametrize(("n", "changed"), [(200, 10), (200, 40), (60, 0), (1_000, 50)])
def test_yes_no_detectable_difference_has_power(n: int, changed: int) -> None:
    """Exact power by summing over all outcomes, with the noise of the pairs and the difference beside it."""

    from scipy import stats

    differences = np.zeros(n)
    differences[:changed] = np.tile([1, -1], n)[:changed]
    smallest = min_detectable_effect(differences, yes_no=True)

    def power(difference: float) -> float:
        changing = changed / n + difference
        upwards = (1 + difference / changing) / 2
        total_power = 0.0
        for total in range(n + 1):
            chance = stats.binom.pmf(total, n, changing)
            if chance > 1e-9:
                up = found_upwards(total)
                total_power += chance * float(stats.binom.pmf(up, total, upwards).sum())
        return total_power

    assert 0.7999 <= power(smallest) < 0.805
    assert power(smallest * 0.97) < 0.8


def test_detectable_difference_excludes_loss_from_noise() -> None:
    """Ten changes each way, and forty more for the worse: the noise of the next difference is that of twenty."""
    noise = [1.0, -1.0] * 10 + [0.0] * 380
    lost = [1.0, -1.0] * 10 + [-1.0] * 40 + [0.0] * 340
    both = [min_detectable_effect(pairs, yes_no=True) for pairs in (noise, lost)]
    assert both[0] == both[1]


@pytest.mark.parametrize("churn", [0.02, 0.1])
def test_detectable_difference_has_power_under_noise(churn: float) -> None:
    """Reciprocal ranks: what changes by itself goes on doing so while a share of the cases is lost."""
    generator, n = np.random.default_rng(8), 1_000

    def noise() -> np.ndarray:
        before, after = 1 / generator.integers(1, 6, (2, n))
        return np.where(generator.random(n) < churn, after - before, 0.0)

    n_detected = 0
    for seed in range(200):
        smallest = min_detectable_effect(noise())
        lost = np.where(generator.random(n) < smallest / 0.5, -0.5, 0.0)
        n_detected += permutation_p(noise() + lost, seed=seed, resamples=500) < 0.05
    assert 0.71 <= n_detected / 200 <= 0.89  # 0.8, binomial, 99.7 %


def test_detectable_difference_beyond_margin() -> None:
    """A share with so many changes by chance, a loss of the margin, and the excess: by the normal approximation."""
    differences = [1.0, -1.0] * 10 + [0.0] * 980
    detectable = min_detectable_effect(differences, alpha=0.1, yes_no=True, margin=0.03)
    spread = math.sqrt((20 / 1_000 + 0.03 + detectable) / 1_000)
    assert detectable / spread == pytest.approx(1.6448536 + 0.8416212, rel=0.01)
    assert detectable > min_detectable_effect(differences, alpha=0.1, yes_no=True)


def test_detectable_difference_without_changes() -> None:
    """Of 200 values that lie within 1 of each other none changed: each lost one would cost up to 1 / 200."""
    detectable = min_detectable_effect(np.zeros(200), span=1.0)
    assert detectable == pytest.approx((1.959964 + 0.841621) ** 2 / 200, rel=1e-6)
    assert min_detectable_effect(np.zeros(200), span=0.1) == pytest.approx(detectable / 10)


def test_mean_detectable_difference_has_power() -> None:
    generator = np.random.default_rng(3)
    smallest = min_detectable_effect(generator.normal(0, 2, 100_000)) * math.sqrt(100_000 / 80)
    n_detected = sum(permutation_p(generator.normal(smallest, 2, 80), seed=i, resamples=500) < 0.05 for i in range(400))
    assert 0.74 <= n_detected / 400 <= 0.86  # binomial, 99.7 %


def test_detectable_difference_of_means_by_formula() -> None:
    """(1.959964 + 0.841621) * sd / sqrt(n), with sd = sqrt(10 / 9) of ten differences of 1 and -1."""
    differences = [1.0, -1.0] * 5
    assert min_detectable_effect(differences) == pytest.approx(2.8015852 * math.sqrt(10 / 9 / 10), rel=1e-7)
    assert min_detectable_effect(np.add(differences, 7)) == pytest.approx(2.8015852 / 3, rel=1e-7)
    narrower = min_detectable_effect(differences, alpha=0.1, power=0.5)
    assert narrower == pytest.approx(1.6448536 / 3, rel=1e-7)


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
    ],
)
def test_detectable_difference_undefined(differences: list[float], options: dict[str, object]) -> None:
    assert math.isnan(min_detectable_effect(differences, **options))  # type: ignore[arg-type]


def test_min_pairs_is_six() -> None:
    assert min_detectable_effect([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) > 0
    # All six must change for the better: p ** 6 = 0.8.
    assert min_detectable_effect([0.0] * 6, yes_no=True) == pytest.approx(0.8 ** (1 / 6), abs=2e-6)


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 1.0}, {"power": 0.0}, {"power": 1.0}])
def test_detectable_difference_refuses_bad_shares(options: dict[str, float]) -> None:
    (name, value) = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"{name} must lie between 0 and 1, got {value}"):
        min_detectable_effect([0.1] * 10, **options)  # type: ignore[arg-type]
