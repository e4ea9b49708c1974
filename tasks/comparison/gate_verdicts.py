"""Decide the verdict of a gate rule from a value with its interval, or from the difference from the baseline."""

from collections.abc import Mapping
from math import ceil
from typing import Any, Literal

import numpy as np
from typing_extensions import TypedDict

from yarus.metrics.statistics.differences.compared_statistics import StatisticComparison
from yarus.metrics.statistics.differences.comparison import Comparison
from yarus.metrics.statistics.intervals import STANDARD_NORMAL
from yarus.metrics.statistics.power import POWER, min_pairs
from yarus.metrics.statistics.significance import holm
from yarus.tasks.comparison.corrected_means import FEW_LABELS, MissingLabels, is_corrected
from yarus.tasks.comparison.gate_rules import GateRule, Kind, find_measure
from yarus.tasks.comparison.metric_values import ERROR_RATE
from yarus.tasks.dataset.labelling.estimate import count_missing_labels
from yarus.tasks.evaluation.config import EvaluationState
from yarus.tasks.evaluation.number_format import replace_non_finite
from yarus.tasks.evaluation.summary import GateVerdict

BaselineKind = Literal["accepted", "first", "pinned", "given", "previous"]


class RuleResult(TypedDict):
    """Result of one rule of the gate."""

    metric: str
    stratum: str | None
    rule: Kind
    bound: float | None
    """Floor, ceiling, or largest tolerated loss."""
    verdict: GateVerdict
    value: float | None
    ci_low: float | None
    """Lower end of the 95 % confidence interval of the value, or of the difference if the rule compares."""
    ci_high: float | None
    n: int | None
    """Cases on which the value is based."""
    baseline: float | None
    """Value of the baseline."""
    difference: float | None
    p: float | None
    """Two-sided p-value of no difference; with a margin, one-sided p-value of a loss of at most the margin."""
    p_holm: float | None
    """p-value with Holm's adjustment: for a headline metric without a margin over the tier's headline metrics; for the
    other comparing rules over all of these. `compare` adjusts headline metrics together with those shown with them."""
    min_detectable_effect: float | None
    """True difference that a comparison of this size detects four times in five; with a margin, the excess over the
    margin that a loss must have for this."""
    reason: str | None
    """Why it could not be judged; null if it was."""
    n_cases_needed: int | None
    """Approximate number of further cases, or of further labels of a corrected metric, that would decide it."""


class GateResult(TypedDict):
    """Results of all rules for one evaluation."""

    evaluation_id: str
    tier: str
    source: str
    state: EvaluationState
    sut_label: str | None
    error: str | None
    verdict: GateVerdict
    """The worst verdict of its rules."""
    file: str | None
    """Path of the gate file; null for the rules that apply without one."""
    baseline: str | None
    """Id of the baseline; null if there is none or none is needed."""
    baseline_kind: BaselineKind | None
    """`given`: on the command line; `pinned`: in the gate file; `accepted`: by a person; `first`: the first of its
    comparability key; `previous`: the evaluation before, which was requested and may be bad."""
    unjudged_metrics: list[str]
    """Metrics of the rules that a stand-in judged, not a language model; their verdicts do not measure quality."""
    rules: list[RuleResult]


ALPHA = 0.05
NO_INTERVAL = "too few cases, or groups of cases, for an interval"
NOTHING_MEASURED = "nothing was measured"
ERROR_QUANTILES = (np.arange(15) + 0.5) / 15
"""Quantiles of equal weight for the estimation error."""
MAX_FACTOR = 100
"""Largest multiple of the present number of cases that is reported as needed."""
MeasuredValue = Mapping[str, Any]
"""A value with its interval: `value`, `ci_low`, `ci_high`, `n`; or only the `reason` why it is missing."""


def judge_regressions(
    differences: Mapping[GateRule, StatisticComparison | MissingLabels | str], headlines: Mapping[str, Comparison]
) -> dict[GateRule, RuleResult]:
    """Return the result of each no-regression rule of one gate.

    Holm's method adjusts rules without a margin about headline metrics over the tier's headline metrics; `yarus
    compare` adjusts over those shown with them, too. All other rules form another family.

    Args:
        differences: the difference from the baseline per rule, or the reason why it is missing.
        headlines: the tier's headline metrics under Holm's method, as `yarus.tasks.comparison.compare.adjust_headlines`
            returns them.
    """
    shared = {rule for rule in differences if rule.bound is None and rule.stratum is None and rule.metric in headlines}
    p_values = {rule: _p_value(rule, difference) for rule, difference in differences.items() if rule not in shared}
    p_holm = dict(zip(p_values, holm(list(p_values.values())).tolist(), strict=True))
    p_holm |= {rule: headlines[rule.metric].p for rule in shared}
    test_counts = {
        True: _count_tests([comparison.p for comparison in headlines.values()]),
        False: _count_tests(list(p_values.values())),
    }
    return {
        rule: build_rule_result(rule, "inconclusive", {"reason": difference})
        if isinstance(difference, str)
        else build_rule_result(rule, "inconclusive", {"reason": difference.reason}, needs=difference.labels)
        if isinstance(difference, MissingLabels)
        else _judge_regression(rule, difference, p_holm[rule], test_counts[rule in shared])
        for rule, difference in differences.items()
    }


def judge_bound(rule: GateRule, figures: MeasuredValue) -> RuleResult:
    """Judge a floor or a ceiling by the interval of the value."""
    value, bound = figures["value"], rule.bound
    if is_corrected(rule.metric) and (
        n_missing := count_missing_labels((figures.get("labels") or {"n_own": 0})["n_own"])
    ):
        return build_rule_result(rule, "inconclusive", {**figures, "reason": FEW_LABELS}, needs=n_missing)
    if value is None or bound is None:
        return build_rule_result(rule, "inconclusive", figures)
    if figures["ci_low"] is None and find_measure(rule.metric).unit != "count":
        return build_rule_result(rule, "inconclusive", {**figures, "reason": NO_INTERVAL})
    low, high = (value, value) if figures["ci_low"] is None else (figures["ci_low"], figures["ci_high"])
    high = np.inf if high is None else high  # open: with few cases, no latency is surely above the 95th percentile
    below, above = high < bound, low >= bound
    if rule.kind == "ceiling":
        below, above = low > bound, high <= bound
    if below or above:
        return build_rule_result(rule, "fail" if below else "pass", figures)
    if (units := figures.get("effective_units")) is None:
        return build_rule_result(rule, "inconclusive", figures)
    reach = STANDARD_NORMAL.inv_cdf(1 - ALPHA / 2)
    n_needed = estimate_cases_needed(figures["n"], abs(value - bound), (high - low) / 2 / reach, reach, units)
    return build_rule_result(rule, "inconclusive", figures, needs=n_needed)


def estimate_cases_needed(n: int, distance: float, error: float, reach: float, units: float) -> int | None:
    """Estimate how many more cases decide it with a chance of 80 %.

    The true value lies about the estimate as far as its error allows, without prior knowledge. The estimate from N
    cases lies about the true value. It is decided if the bound is further away than `reach` standard errors from N
    cases. The error itself is an estimate. With a few users who ask at different rates, it is as uncertain as with half
    as many equal users (by simulation; see benchmarks/simulations/users.py).

    Args:
        n: the present number of cases.
        distance: the distance of estimate and bound, at least 0.
        error: the standard error of the estimate.
        reach: the number of standard errors.
        units: the effective number of independent cases, or of groups of equal size.

    Returns:
        At least 1; None if it would be more than a hundred times the present number.

    Example:
        >>> from yarus.tasks.comparison.gate_verdicts import estimate_cases_needed
        >>> estimate_cases_needed(200, 0.03, 0.02, 1.96, 200), estimate_cases_needed(200, 0.03, 0.02, 1.96, 10)
        (1208, 1804)
    """
    from scipy.special import chdtri, ndtr  # here, because it costs 0.1 s to import

    if not n or not 0 < error < np.inf:
        return None
    degrees = max(1.0, (units - 1) / 2)
    possible_errors = error * np.sqrt(degrees / chdtri(degrees, ERROR_QUANTILES))

    def decision_chance(factor: float) -> float:
        spread, cutoff = possible_errors * (1 - 1 / factor) ** 0.5, reach * possible_errors / factor**0.5
        return float(np.mean(ndtr((distance - cutoff) / spread) + ndtr((-distance - cutoff) / spread)))

    low, high = 1.0, float(MAX_FACTOR)
    if decision_chance(high) < POWER:
        return None
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if decision_chance(middle) >= POWER else (middle, high)
    return max(1, ceil(n * (high - 1)))


def _p_value(rule: GateRule, difference: StatisticComparison | MissingLabels | str) -> float:
    if isinstance(difference, str | MissingLabels) or (rule.metric == ERROR_RATE and difference.a == difference.b == 0):
        return float("nan")  # if the system never failed, a test of failures finds nothing (Tarone 1990)
    paired = difference.comparison
    return paired.p if rule.bound is None else paired.p_of_loss_within(rule.bound) if paired.enough else float("nan")


def _count_tests(p_values: list[float]) -> int:
    return max(1, int(np.count_nonzero(~np.isnan(p_values))))


def _judge_regression(rule: GateRule, compared: StatisticComparison, p_holm: float, tests: int) -> RuleResult:
    """Judge by the paired difference that there is no loss, or none beyond the margin."""
    paired, margin = compared.comparison, rule.bound
    # The smallest of m p-values must be below alpha / m: with fewer cases than this, no loss could fail.
    n_missing = min_pairs(ALPHA / tests) - paired.units
    detectable = paired.detectable_at(ALPHA / tests if margin is None else 2 * ALPHA / tests, margin or 0.0)
    figures = {
        "value": compared.b,
        "baseline": compared.a,
        "difference": paired.difference,
        "ci_low": paired.interval.low,
        "ci_high": paired.interval.high,
        "n": paired.n,
        "p": _p_value(rule, compared),
        "p_holm": p_holm,
        "min_detectable_effect": detectable if n_missing <= 0 else float("nan"),
    }
    rounded: MeasuredValue = replace_non_finite(figures)
    if n_missing > 0 or np.isnan(paired.p):
        reason = None if paired.n else NOTHING_MEASURED
        n_needed = n_missing if paired.n and n_missing > 0 else None
        return build_rule_result(rule, "inconclusive", {**rounded, "reason": reason}, needs=n_needed)
    loss = -paired.difference if paired.better == "higher" else paired.difference
    if p_holm < ALPHA and loss > (margin or 0):
        return build_rule_result(rule, "fail", rounded)
    if margin is None:
        # If nothing varies, there is no difference to detect.
        is_constant = paired.interval.low == paired.interval.high
        return build_rule_result(
            rule, "pass" if is_constant or rounded["min_detectable_effect"] is not None else "inconclusive", rounded
        )
    low, high = paired.loss_between(1 - 2 * ALPHA)
    if high <= margin:
        return build_rule_result(rule, "pass", rounded)
    reach = STANDARD_NORMAL.inv_cdf(1 - ALPHA)
    error = (high - low) / 2 / reach
    n_needed = estimate_cases_needed(paired.n, abs(loss - margin), error, reach, paired.effective_units)
    return build_rule_result(rule, "inconclusive", rounded, needs=n_needed)


def build_rule_result(
    rule: GateRule, verdict: GateVerdict, figures: MeasuredValue, *, needs: int | None = None
) -> RuleResult:
    """Return the result of a rule, with the given figures."""
    return {
        "metric": rule.metric,
        "stratum": rule.stratum,
        "rule": rule.kind,
        "bound": rule.bound,
        "verdict": verdict,
        "value": figures.get("value"),
        "ci_low": figures.get("ci_low"),
        "ci_high": figures.get("ci_high"),
        "n": figures.get("n"),
        "baseline": figures.get("baseline"),
        "difference": figures.get("difference"),
        "p": figures.get("p"),
        "p_holm": figures.get("p_holm"),
        "min_detectable_effect": figures.get("min_detectable_effect"),
        "reason": figures.get("reason"),
        "n_cases_needed": needs,
    }
