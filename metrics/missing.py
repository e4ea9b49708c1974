"""What cases that were not measured leave possible; without NumPy, for whoever only shows it."""


def bounds_of_mean(mean: float, n: int, missing: int, *, low: float, high: float) -> tuple[float, float]:
    """The mean if all missing cases had had the worst value, and if they had had the best.

    Args:
        mean: of the measured cases; of none, any.
        n: how many were measured.
        missing: how many were not; n + missing is at least 1.
        low, high: the metric's range.

    For values see `yarus.metrics.statistics.missingness_bounds`.

    Reference: Manski 1989, Anatomy of the selection problem.

    Example:
        >>> from yarus.metrics.missing import bounds_of_mean
        >>> bounds_of_mean(0.8, 90, 10, low=0, high=1)
        (0.72, 0.82)
    """
    return (mean * n + low * missing) / (n + missing), (mean * n + high * missing) / (n + missing)
