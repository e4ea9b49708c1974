"""The verdict of a rule of the gate on a value with its interval, or on the difference from the baseline."""

from collections.abc import Mapping
from math import ceil
from typing import Any, Literal

import numpy as np
from typing_extensions import TypedDict

from yarus.metrics.statistics.differences.comparison import Comparison
from yarus.metrics.statistics.differences.numbers import Compared
from yarus.metrics.statistics.intervals import NORMAL
from yarus.metrics.statistics.power import POWER, fewest_pairs
from yarus.metrics.statistics.significance import holm
from yarus.tasks.comparison.corrected_means import FEW_LABELS, Lacking, is_corrected
from yarus.tasks.comparison.gate_rules import Kind, Rule, measure
from yarus.tasks.comparison.totals import ERRORS
from yarus.tasks.dataset.labelling.estimate import lacking
from yarus.tasks.evaluation.config import State
from yarus.tasks.evaluation.numbers import finite
from yarus.tasks.evaluation.summary import GateVerdict

BaselineKind = Literal["accepted", "first", "pinned", "given", "previous"]


class RuleResult(TypedDict):
    """A rule of the gate, judged."""

    metric: str
    stratum: str | None
    rule: Kind
    bound: float | None
    """The floor, the ceiling, or the largest tolerated loss."""
    verdict: GateVerdict
    value: float | None
    ci_low: float | None
    """Of the 95 % confidence interval: of the value, or of the difference where the rule is about one."""
    ci_high: float | None
    n: int | None
    """Cases that it is made of."""
    baseline: float | None
    """The value of the baseline."""
    difference: float | None
    p: float | None
    """Two-sided, for no difference at all; with a margin one-sided, for a loss of at most the margin."""
    p_holm: float | None
    """Holm's p: of a headline metric without a margin over the tier's headline metrics, as `compare` has it; of the
    other rules that compare over all of these."""
    smallest_detectable: float | None
    """The true difference that a comparison of this size, under that p, finds four times in five; with a margin what
    a loss has to exceed it by."""
    reason: str | None
    """Why it could not be judged."""
    needs: int | None
    """About how many more cases would decide it."""


class GateResult(TypedDict):
    """An evaluation judged by every rule that is about its tier."""

    evaluation_id: str
    tier: str
    source: str
    state: State
    sut_label: str | None
    error: str | None
    verdict: GateVerdict
    """The worst of its rules'."""
    file: str | None
    """Null: the rules that hold without one."""
    baseline: str | None
    """The evaluation compared with; null where there is none, or none is needed."""
    baseline_kind: BaselineKind | None
    """Why that one: named on the command line or pinned in the gate file; accepted by a person, or the first of its
    comparability key; or merely the one before, which was asked for and may be a bad one."""
    rules: list[RuleResult]


ALPHA = 0.05
NO_INTERVAL = "too few cases, or groups of cases, for an interval"
NOTHING_MEASURED = "nothing was measured"
CHANCES = (np.arange(15) + 0.5) / 15
"""Of how large an estimated error is: quantiles of equal weight."""
MOST = 100
"""Times as many cases as there are, beyond which nobody is told how many would decide it."""
Found = Mapping[str, Any]
"""A value with its interval: `value`, `ci_low`, `ci_high`, `n`; or only the `reason` why there is none."""


def regressions(
    found: Mapping[Rule, Compared | Lacking | str], headlines: Mapping[str, Comparison]
) -> dict[Rule, RuleResult]:
    """The no-regression rules of one gate, each with its verdict.

    A rule without a margin about a headline metric says what `yarus compare` says: Holm's method over the tier's
    headline metrics. All other rules are a family of their own.

    Args:
        found: the difference from the baseline that each is about, or the reason why there is none.
        headlines: the tier's headline metrics under Holm's method, by which rules are judged, as
            `yarus.tasks.comparison.compare.under_holm` returns them.
    """
    shared = {rule for rule in found if rule.bound is None and rule.stratum is None and rule.metric in headlines}
    own = {rule: _p(rule, one) for rule, one in found.items() if rule not in shared}
    strict = dict(zip(own, holm(list(own.values())).tolist(), strict=True))
    strict |= {rule: headlines[rule.metric].p for rule in shared}
    sizes = {True: _tests([one.p for one in headlines.values()]), False: _tests(list(own.values()))}
    return {
        rule: document(rule, "inconclusive", {"reason": one})
        if isinstance(one, str)
        else document(rule, "inconclusive", {"reason": one.reason}, needs=one.labels)
        if isinstance(one, Lacking)
        else _no_regression(rule, one, strict[rule], sizes[rule in shared])
        for rule, one in found.items()
    }


def bounded(rule: Rule, found: Found) -> RuleResult:
    """A floor or a ceiling, judged by the interval of the value."""
    value, bound = found["value"], rule.bound
    if is_corrected(rule.metric) and (few := lacking((found.get("labels") or {"n_own": 0})["n_own"])):
        return document(rule, "inconclusive", {**found, "reason": FEW_LABELS}, needs=few)
    if value is None or bound is None:
        return document(rule, "inconclusive", found)
    if found["ci_low"] is None and measure(rule.metric).unit != "count":
        return document(rule, "inconclusive", {**found, "reason": NO_INTERVAL})
    low, high = (value, value) if found["ci_low"] is None else (found["ci_low"], found["ci_high"])
    high = np.inf if high is None else high  # open: of few cases no latency is surely above the 95th percentile
    below, above = high < bound, low >= bound
    if rule.kind == "ceiling":
        below, above = low > bound, high <= bound
    if below or above:
        return document(rule, "fail" if below else "pass", found)
    error = (high - low) / 2 / NORMAL.inv_cdf(1 - ALPHA / 2)
    if (units := found.get("effective_units")) is None:
        return document(rule, "inconclusive", found)
    needs = needed(found["n"], abs(value - bound), error, NORMAL.inv_cdf(1 - ALPHA / 2), units)
    return document(rule, "inconclusive", found, needs=needs)


def needed(n: int, apart: float, error: float, reach: float, units: float) -> int | None:
    """About how many more cases decide it with a chance of 80 %, as far as these n can tell.

    What is true lies about the estimate as far as its error lets it (with no prior knowledge); the estimate from N
    cases lies about that; it is decided where the bound is further away than `reach` of the errors that N cases leave.
    The error itself is an estimate: of a few users who ask differently much it is known no better than that of half as
    many equal ones (by simulation; see benchmarks/simulations/users.py).

    Args:
        n: cases that there are.
        apart: of estimate and bound, at least 0.
        error: standard error of the estimate.
        reach: standard errors.
        units: what the cases are worth: as many, or as many groups of equal size.

    Returns:
        At least 1; None where it would be more than a hundred times as many as there are.

    Example:
        >>> from yarus.tasks.comparison.gate_verdicts import needed
        >>> needed(200, 0.03, 0.02, 1.96, 200), needed(200, 0.03, 0.02, 1.96, 10)
        (1208, 1804)
    """
    from scipy.special import chdtri, ndtr  # here, because it costs 0.1 s to import

    if not n or not 0 < error < np.inf:
        return None
    degrees = max(1.0, (units - 1) / 2)
    errors = error * np.sqrt(degrees / chdtri(degrees, CHANCES))

    def decided(times: float) -> float:
        spread, away = errors * (1 - 1 / times) ** 0.5, reach * errors / times**0.5
        return float(np.mean(ndtr((apart - away) / spread) + ndtr((-apart - away) / spread)))

    low, high = 1.0, float(MOST)
    if decided(high) < POWER:
        return None
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if decided(middle) >= POWER else (middle, high)
    return max(1, ceil(n * (high - 1)))


def _p(rule: Rule, found: Compared | Lacking | str) -> float:
    if isinstance(found, str | Lacking) or (rule.metric == ERRORS and found.a == found.b == 0):
        return float("nan")  # where nobody failed, a test of failures finds nothing (Tarone 1990)
    one = found.comparison
    return one.p if rule.bound is None else one.p_of_loss_within(rule.bound) if one.enough else float("nan")


def _tests(p_values: list[float]) -> int:
    return max(1, int(np.count_nonzero(~np.isnan(p_values))))


def _no_regression(rule: Rule, compared: Compared, p_holm: float, tests: int) -> RuleResult:
    """No loss, or none beyond the margin, judged by the paired difference."""
    one, margin = compared.comparison, rule.bound
    # Of m rules the first must pass alpha / m: below so many cases no loss whatever could fail.
    lacking = fewest_pairs(ALPHA / tests) - one.units
    detectable = one.detectable_at(ALPHA / tests if margin is None else 2 * ALPHA / tests, margin or 0.0)
    figures = {
        "value": compared.b,
        "baseline": compared.a,
        "difference": one.difference,
        "ci_low": one.interval.low,
        "ci_high": one.interval.high,
        "n": one.n,
        "p": _p(rule, compared),
        "p_holm": p_holm,
        "smallest_detectable": detectable if lacking <= 0 else float("nan"),
    }
    found: Found = finite(figures)
    if lacking > 0 or np.isnan(one.p):
        reason = None if one.n else NOTHING_MEASURED
        needs = lacking if one.n and lacking > 0 else None
        return document(rule, "inconclusive", {**found, "reason": reason}, needs=needs)
    loss = -one.difference if one.better == "higher" else one.difference
    if p_holm < ALPHA and loss > (margin or 0):
        return document(rule, "fail", found)
    if margin is None:
        # Where no difference could be found although nothing is left to vary, none is there.
        still = one.interval.low == one.interval.high
        return document(rule, "pass" if still or found["smallest_detectable"] is not None else "inconclusive", found)
    low, high = one.loss_between(1 - 2 * ALPHA)
    if high <= margin:
        return document(rule, "pass", found)
    reach = NORMAL.inv_cdf(1 - ALPHA)
    needs = needed(one.n, abs(loss - margin), (high - low) / 2 / reach, reach, one.effective_units)
    return document(rule, "inconclusive", found, needs=needs)


def document(rule: Rule, verdict: GateVerdict, found: Found, *, needs: int | None = None) -> RuleResult:
    """A rule judged; `found` has its figures."""
    return {
        "metric": rule.metric,
        "stratum": rule.stratum,
        "rule": rule.kind,
        "bound": rule.bound,
        "verdict": verdict,
        "value": found.get("value"),
        "ci_low": found.get("ci_low"),
        "ci_high": found.get("ci_high"),
        "n": found.get("n"),
        "baseline": found.get("baseline"),
        "difference": found.get("difference"),
        "p": found.get("p"),
        "p_holm": found.get("p_holm"),
        "smallest_detectable": found.get("smallest_detectable"),
        "reason": found.get("reason"),
        "needs": needs,
    }
