"""Pass or fail: an evaluation against floors, ceilings and a pinned baseline, so that a script can stop on it."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from db import journal
from db.errors import InputError
from metrics.metric import Metric
from metrics.statistics import bootstrap_interval, compare_paired, holm
from metrics.statistics.power import fewest_pairs
from metrics.table import METRICS
from tasks.cases.table import floats
from tasks.comparison.common_cases import common, headline, read_cases, require_cases
from tasks.comparison.compare import compare, differences
from tasks.comparison.documents import GateResult, RuleResult
from tasks.comparison.gate_rules import COSTS, Policy, Rule, measure
from tasks.results.summary import HEADLINE_STRATUM, GateVerdict

ALPHA = 0.05
NO_BASELINE = "no earlier comparable evaluation"
NOTHING_IN_COMMON = "no case in common with the baseline"
NOT_COMPARED = "not compared case by case"
NOTHING_MEASURED = "nothing was measured"
NO_INTERVAL = "too few cases, or groups of cases, for an interval"
WORST_FIRST: tuple[GateVerdict, ...] = ("invalid", "fail", "inconclusive", "pass")
Found = Mapping[str, Any]
"""A value with its interval (`value`, `ci_low`, `ci_high`, `n`), or a paired difference as `compare` gives it."""


def gate(engine: Engine, evaluation_id: str, policy: Policy, *, baseline: str | None = None) -> GateResult:
    """Judges an evaluation by every rule that is about its tier.

    A floor fails where the whole 95 % interval lies below it and passes where none of it does; a ceiling likewise. No
    regression fails where a loss is shown (paired test, Holm over these rules, p < 0.05) that is larger than the
    margin. With a margin it passes where the interval leaves no larger loss possible, without one where no loss is
    shown; the smallest detectable difference says what that is worth. Everything else is inconclusive.

    Args:
        engine: of our own database.
        evaluation_id: its id, the beginning or end of it, or `last`.
        policy: the rules, and the baselines where `baseline` is not given.
        baseline: what to compare with; default: the policy's of that tier, else the evaluation before.

    Raises:
        InputError: no such evaluation or baseline, they do not compare, or no rule is about the tier.
    """
    row = journal.find(engine, evaluation_id)
    if row["state"] not in journal.FINISHED:
        raise InputError(f"evaluation {row['id']} is {row['state']}: only a finished one can be judged; {row['error']}")
    rules = [rule for rule in policy.rules if applies(rule, row["tier"])]
    if not rules:
        raise InputError(
            f"{policy.file}: no rule applies to {row['tier']}, and a gate without a rule would pass anything"
        )
    compares = baseline is not None or any(rule.kind == "no regression" for rule in rules)
    before = _baseline(engine, row, policy, baseline) if compares else None
    decided = _decide(engine, row, before, rules) if row["state"] == "completed" else [_invalid(rule) for rule in rules]
    verdicts = [rule["verdict"] for rule in decided]
    return {
        "evaluation_id": row["id"],
        "tier": row["tier"],
        "source": row["source"],
        "state": row["state"],
        "sut_label": row["sut_label"],
        "error": row["error"],
        "verdict": next(verdict for verdict in WORST_FIRST if verdict in verdicts),
        "file": policy.file,
        "baseline": before["id"] if before else None,
        "rules": decided,
    }


def applies(rule: Rule, tier: str) -> bool:
    """Whether a rule is about a tier."""
    if rule.stratum is not None and tier != "real_users":
        return False
    return rule.tier == tier if rule.tier is not None else tier in measure(rule.metric).tiers


def _baseline(engine: Engine, row: RowMapping, policy: Policy, given: str | None) -> RowMapping | None:
    """The evaluation to compare with; None where none is pinned and there is none before.

    Raises:
        InputError: one that is pinned is not there, or one that is to be used does not compare.
    """
    for tier, pinned in policy.baselines.items():  # all: a typo is found now, not when that tier is judged
        _pinned(engine, pinned, tier, f"gate file {policy.file}: [baseline] {tier}")
    name = given or policy.baselines.get(row["tier"])
    if not name:
        earlier = journal.previous(engine, row["id"])
        return journal.find(engine, earlier) if earlier else None
    place = f"--baseline {given}" if given else f"gate file {policy.file}: [baseline] {row['tier']}"
    found = _pinned(engine, name, row["tier"], place)
    if found["id"] == row["id"]:
        raise InputError(f"{place}: {row['id']} is the evaluation itself; name an earlier one")
    if differs := differences(found, row):
        parts = "; ".join(f"{part['part']}: {part['a']!r} and {part['b']!r}" for part in differs)
        raise InputError(f"{place}: {found['id']} does not compare with {row['id']}, they differ in {parts}")
    return found


def _pinned(engine: Engine, name: str, tier: str, place: str) -> RowMapping:
    try:
        found = journal.find(engine, name)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    if found["tier"] != tier:
        raise InputError(f"{place}: {found['id']} is of {found['tier']}, not of {tier}")
    if found["state"] != "completed":
        raise InputError(f"{place}: {found['id']} is {found['state']}; pin a completed evaluation")
    return found


def _decide(engine: Engine, row: RowMapping, before: RowMapping | None, rules: Sequence[Rule]) -> list[RuleResult]:
    compared = [rule for rule in rules if rule.kind == "no regression"]
    pairs = dict(zip(compared, _compared(engine, row, before, compared), strict=True)) if compared else {}
    values = _values(engine, row, [rule for rule in rules if rule.kind != "no regression"])
    decided = regressions(pairs) | {rule: _bounded(rule, found) for rule, found in values.items()}
    return [decided[rule] for rule in rules]


def regressions(pairs: Mapping[Rule, Found]) -> dict[Rule, RuleResult]:
    """The no-regression rules of one gate, each with its verdict; Holm's method over all of them.

    Args:
        pairs: the paired difference that each is about, as `tasks.comparison.compare` gives it.
    """
    adjusted = holm([np.nan if found.get("p") is None else found["p"] for found in pairs.values()])
    # Of m rules the first must pass alpha / m: below so many cases no loss whatever could fail.
    fewest = fewest_pairs(ALPHA / max(1, int(np.count_nonzero(~np.isnan(adjusted)))))
    return {
        rule: _no_regression(rule, found, p, fewest)
        for (rule, found), p in zip(pairs.items(), adjusted.tolist(), strict=True)
    }


def _bounded(rule: Rule, found: Found) -> RuleResult:
    """A floor or a ceiling, judged by the interval of the value."""
    value, bound = found["value"], rule.bound
    if value is None or bound is None:
        return _document(rule, "inconclusive", found)
    if found["ci_low"] is None and measure(rule.metric).unit != "count":
        return _document(rule, "inconclusive", {**found, "reason": NO_INTERVAL})
    low, high = (value if found[end] is None else found[end] for end in ("ci_low", "ci_high"))
    below, above = high < bound, low >= bound
    if rule.kind == "ceiling":
        below, above = low > bound, high <= bound
    if below or above:
        return _document(rule, "fail" if below else "pass", found)
    return _document(rule, "inconclusive", found, needs=_needed(found["n"], (high - low) / 2, abs(value - bound)))


def _no_regression(rule: Rule, found: Found, p: float, fewest: int) -> RuleResult:
    """No loss, or none beyond the margin, judged by the paired difference."""
    difference, n = found.get("difference"), found.get("n") or 0
    if difference is None or np.isnan(p) or found["ci_low"] is None:
        lacking = fewest - n
        return _document(rule, "inconclusive", found, needs=lacking if lacking > 0 and found.get("n") else None)
    worse = -1 if measure(rule.metric).better == "higher" else 1
    loss = worse * difference
    ends = sorted((worse * found["ci_low"], worse * found["ci_high"]))
    found = {**found, "p_holm": p}
    if p < ALPHA and loss > (rule.bound or 0):
        return _document(rule, "fail", found)
    if rule.bound is None:
        # Pairs that do not vary at all show no regression either; few that vary show nothing.
        tested = n >= fewest and (found["smallest_detectable"] is not None or ends[0] == ends[1])
        needs = None if tested else max(1, fewest - n)
        return _document(rule, "pass" if tested else "inconclusive", found, needs=needs)
    if ends[1] <= rule.bound:
        return _document(rule, "pass", found)
    room = rule.bound - loss if loss < rule.bound else loss
    return _document(rule, "inconclusive", found, needs=_needed(n, ends[1] - loss, room))


def _needed(n: int, reach: float, room: float) -> int | None:
    """About how many more cases make the interval reach no further than the room that it has; None: no number would."""
    return max(1, ceil(n * ((reach / room) ** 2 - 1))) if room > 0 and n else None


def _document(rule: Rule, verdict: GateVerdict, found: Found, *, needs: int | None = None) -> RuleResult:
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


def _invalid(rule: Rule) -> RuleResult:
    return _document(rule, "invalid", {})


def _values(engine: Engine, row: RowMapping, rules: Sequence[Rule]) -> dict[Rule, Found]:
    """The value and interval that each rule is about."""
    stored = {(metric["metric"], metric["stratum"]): metric for metric in journal.metrics_of(engine, row["id"])}
    cases = _read(row) if any(rule.metric in COSTS for rule in rules) else None
    found: dict[Rule, Found] = {}
    for rule in rules:
        metric = stored.get((rule.metric, rule.stratum or _headline(row["tier"])))
        if cases is not None and rule.metric in COSTS:
            found[rule] = _mean(rule, _within(cases, rule.stratum))
        elif metric is None:
            found[rule] = {"value": None, "reason": NOTHING_MEASURED}
        else:
            found[rule] = {**metric, "n": metric["n_scored"]}
    return found


def _mean(rule: Rule, cases: pa.Table) -> Found:
    values = floats(cases, rule.metric)
    n = int(np.count_nonzero(~np.isnan(values)))
    if not n:
        return {"value": None, "reason": NOTHING_MEASURED}
    low, high = bootstrap_interval(values, seed=0, groups=cases["group"].to_pylist())
    ends = {name: None if np.isnan(end) else end for name, end in (("ci_low", low), ("ci_high", high))}
    return {"value": float(np.nanmean(values)), "n": n, **ends}


def _compared(engine: Engine, row: RowMapping, before: RowMapping | None, rules: Sequence[Rule]) -> list[Found]:
    """The paired difference that each rule is about, from the baseline to the evaluation."""
    if before is None:
        return [{"reason": NO_BASELINE}] * len(rules)
    both = [_read(side) for side in (before, row)]
    if not len(common(*(headline(cases).select(["case_id"]) for cases in both)).a):
        return [{"reason": NOTHING_IN_COMMON}] * len(rules)
    names = list(dict.fromkeys(rule.metric for rule in rules if _in_comparison(rule, row["tier"])))
    known = compare(engine, before["id"], row["id"], only=names)["metrics"] if names else {}
    return [
        _as_found(known.get(rule.metric)) if _in_comparison(rule, row["tier"]) else _paired(rule, *both)
        for rule in rules
    ]


def _in_comparison(rule: Rule, tier: str) -> bool:
    """Whether `tasks.comparison.compare` compares what the rule is about."""
    return rule.metric in METRICS and (rule.stratum or _headline(tier)) == _headline(tier)


def _as_found(compared: Found | None) -> Found:
    if compared is None:
        return {"reason": NOT_COMPARED}
    return {**compared, "value": compared["b"], "baseline": compared["a"]}


def _paired(rule: Rule, before: pa.Table, after: pa.Table) -> Found:
    """The difference of a column that `tasks.comparison.compare` leaves out: a cost, a rubric, another stratum."""
    metric: Metric = measure(rule.metric)
    one, other = common(*(_within(cases, rule.stratum) for cases in (before, after)))
    if metric.aggregate != "mean" or metric.column is None:
        return {"reason": NOT_COMPARED}
    a, b = (floats(cases, metric.column) for cases in (one, other))
    kept = ~(np.isnan(a) | np.isnan(b))
    if not kept.any():
        return {"reason": NOTHING_MEASURED}
    found = compare_paired(a, b, seed=0, better=metric.better, groups=one["group"].to_pylist())
    numbers = {"difference": found.difference, "ci_low": found.interval.low, "ci_high": found.interval.high}
    numbers |= {"p": found.p, "smallest_detectable": found.smallest_detectable}
    means = {"baseline": float(a[kept].mean()), "value": float(b[kept].mean()), "n": found.n}
    return means | {name: None if np.isnan(value) else value for name, value in numbers.items()}


def _headline(tier: str) -> str:
    return HEADLINE_STRATUM if tier == "real_users" else ""


def _within(cases: pa.Table, stratum: str | None) -> pa.Table:
    if "stratum" not in cases.column_names or stratum == "all":
        return cases
    return cases.filter(pc.equal(cases["stratum"], stratum or HEADLINE_STRATUM))


def _read(row: RowMapping) -> pa.Table:
    require_cases(row)
    return read_cases(row)
