"""Numbers about the numbers: intervals around one evaluation's values, and the comparison of two evaluations."""

from metrics.intervals import (
    Interval,
    bootstrap_interval,
    bootstrap_statistic,
    bootstrap_totals,
    missingness_bounds,
    quantile_interval,
    wilson_interval,
)

__all__ = [
    "Interval",
    "bootstrap_interval",
    "bootstrap_statistic",
    "bootstrap_totals",
    "missingness_bounds",
    "quantile_interval",
    "wilson_interval",
]
