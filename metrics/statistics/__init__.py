"""Confidence intervals of one evaluation's values, and the comparison of two evaluations."""

from yarus.metrics.statistics.bootstrap import (
    bootstrap_interval,
    bootstrap_statistic,
    bootstrap_totals,
)
from yarus.metrics.statistics.differences.comparison import Comparison, ComparisonVerdict
from yarus.metrics.statistics.differences.means import compare_paired
from yarus.metrics.statistics.intervals import Interval, share_interval, wilson_interval
from yarus.metrics.statistics.means import mean_interval
from yarus.metrics.statistics.posterior import posterior_interval
from yarus.metrics.statistics.power import min_detectable_effect
from yarus.metrics.statistics.quantiles import quantile_interval
from yarus.metrics.statistics.significance import holm, mcnemar_exact, newcombe_paired_interval, permutation_p

__all__ = [
    "Comparison",
    "ComparisonVerdict",
    "Interval",
    "bootstrap_interval",
    "bootstrap_statistic",
    "bootstrap_totals",
    "compare_paired",
    "holm",
    "mcnemar_exact",
    "mean_interval",
    "min_detectable_effect",
    "newcombe_paired_interval",
    "permutation_p",
    "posterior_interval",
    "quantile_interval",
    "share_interval",
    "wilson_interval",
]
