"""Pass or fail: an evaluation against floors, ceilings and a pinned baseline, so that a script can stop on it."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from threadpoolctl import threadpool_limits

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.words import Words, joined
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.differences.numbers import Compared
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.metrics.statistics.groups import effective_groups, group_codes
from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM, tier_of_stratum
from yarus.tasks.comparison.common_cases import common, differences, headline, read_cases, require_cases
from yarus.tasks.comparison.compare import SEED, headlines_of, under_holm
from yarus.tasks.comparison.corrected_means import compare_means, is_corrected
from yarus.tasks.comparison.gate_rules import COSTS, Policy, Rule, measure
from yarus.tasks.comparison.gate_verdicts import (
    NOTHING_MEASURED,
    BaselineKind,
    Found,
    GateResult,
    RuleResult,
    bounded,
    document,
    regressions,
)
from yarus.tasks.comparison.totals import find_losses, number_of, numbers
from yarus.tasks.dataset.labelling.corrected import correct
from yarus.tasks.dataset.labelling.relevance.pools import is_filled
from yarus.tasks.evaluation.aggregate import within
from yarus.tasks.evaluation.numbers import finite
from yarus.tasks.evaluation.summary import GateVerdict

NO_BASELINE = "no earlier comparable evaluation"
NOTHING_IN_COMMON = "no case in common with the baseline"
FILLED = "a judge has filled the labels up: ask about the corrected metric, and label results"
NOT_COMPARED = "not compared case by case"
WORST_FIRST: tuple[GateVerdict, ...] = ("invalid", "fail", "inconclusive", "pass")


def gate(engine: Engine, evaluation_id: str, policy: Policy, *, baseline: str | None = None) -> GateResult:
    """Judges an evaluation by every rule that is about its tier.

    A floor fails where the whole 95 % interval lies below it and passes where none of it does; a ceiling likewise. No
    regression fails where a loss is shown (paired test, Holm's p < 0.05), with a margin where the whole one-sided 95 %
    interval of the loss lies beyond it. It passes where no loss is shown, and with a margin where none beyond it is
    left possible; the smallest detectable difference says what that is worth. Everything else is inconclusive.

    Args:
        engine: of our own database.
        evaluation_id: its id, the beginning or end of it, or `last`.
        policy: the rules, and the baselines where `baseline` is not given.
        baseline: what to compare with, `previous` for the evaluation before; default: the policy's of that tier, else
            the accepted one.

    Raises:
        InputError: no such evaluation or baseline, they do not compare, or no rule is about the tier.
    """
    row = journal.find(engine, evaluation_id)
    if row["state"] not in journal.FINISHED:
        raise InputError(
            "evaluation {id} is {state}: only a finished one can be judged; {error}",
            id=row["id"],
            state=row["state"],
            error=row["error"],
        )
    rules = [rule for rule in policy.rules if applies(rule, row["tier"])]
    if not rules:
        raise InputError(
            "{file}: no rule applies to {tier}, and a gate without a rule would pass anything",
            file=policy.file,
            tier=row["tier"],
        )
    compares = baseline is not None or any(rule.kind == "no regression" for rule in rules)
    before, kind = _baseline(engine, row, policy, baseline) if compares else (None, None)
    decided = (
        _decide(engine, row, before, rules)
        if row["state"] == "completed"
        else [document(rule, "invalid", {}) for rule in rules]
    )
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
        "baseline_kind": kind,
        "rules": decided,
    }


def applies(rule: Rule, tier: str) -> bool:
    """Whether a rule is about a tier."""
    if rule.stratum is not None and tier != tier_of_stratum(rule.stratum):
        return False
    return rule.tier == tier if rule.tier is not None else tier in measure(rule.metric).tiers


def _baseline(
    engine: Engine, row: RowMapping, policy: Policy, given: str | None
) -> tuple[RowMapping | None, BaselineKind | None]:
    """The evaluation to compare with, and why that one; None where none is pinned and there is none before.

    Raises:
        InputError: one that is pinned is not there, or one that is to be used does not compare.
    """
    for tier, pinned in policy.baselines.items():  # all: a typo is found now, not when that tier is judged
        _pinned(engine, pinned, tier, f"gate file {policy.file}: [baseline] {tier}")
    name = given or policy.baselines.get(row["tier"])
    if not name or given == "previous":
        earlier = (journal.previous if given else journal.baseline)(engine, row["id"])
        if earlier is None:
            return None, None
        before = journal.find(engine, earlier)
        first = before["accepted_at"] == before["finished_at"]  # accepted when it ended, and by nobody since
        return before, "previous" if given else "first" if first else "accepted"
    place = (
        f"--baseline {given}"
        if given
        else Words("gate file {file}: [baseline] {tier}", file=policy.file, tier=row["tier"])
    )
    found = _pinned(engine, name, row["tier"], place)
    if found["id"] == row["id"]:
        raise InputError("{place}: {id} is the evaluation itself; name an earlier one", place=place, id=row["id"])
    if differs := differences(found, row):
        parts = joined(
            Words("{part}: {before!r} and {after!r}", part=part["part"], before=part["a"], after=part["b"])
            for part in differs
        )
        raise InputError(
            "{place}: {id} does not compare with {own}, they differ in {parts}",
            place=place,
            id=found["id"],
            own=row["id"],
            parts=parts,
        )
    return found, "given" if given else "pinned"


def _pinned(engine: Engine, name: str, tier: str, place: str) -> RowMapping:
    try:
        found = journal.find(engine, name)
    except InputError as error:
        raise InputError("{place}: {error}", place=place, error=error) from None
    if found["tier"] != tier:
        raise InputError(
            "{place}: {id} is of {tier}, not of {other}", place=place, id=found["id"], tier=found["tier"], other=tier
        )
    if found["state"] != "completed":
        raise InputError(
            "{place}: {id} is {state}; pin a completed evaluation", place=place, id=found["id"], state=found["state"]
        )
    return found


def _decide(engine: Engine, row: RowMapping, before: RowMapping | None, rules: Sequence[Rule]) -> list[RuleResult]:
    compared = [rule for rule in rules if rule.kind == "no regression"]
    values = _values(engine, row, [rule for rule in rules if rule.kind != "no regression"])
    decided = _regressions(engine, row, before, compared) | {
        rule: bounded(rule, found) for rule, found in values.items()
    }
    return [_unless_filled(row, rule, decided[rule]) for rule in rules]


def _unless_filled(row: RowMapping, rule: Rule, decided: RuleResult) -> RuleResult:
    """Of labels that a judge has filled up nothing passes or fails, but for what people's labels have corrected."""
    if is_corrected(rule.metric) or not is_filled(row) or not measure(rule.metric).of_relevance:
        return decided
    return document(rule, "inconclusive", {**decided, "reason": FILLED})


def _values(engine: Engine, row: RowMapping, rules: Sequence[Rule]) -> dict[Rule, Found]:
    """The value and interval that each rule is about."""
    if any(is_corrected(rule.metric) for rule in rules):
        correct(engine, row["id"])  # by the labels that there are now
    stored = {(metric["metric"], metric["stratum"]): metric for metric in journal.metrics_of(engine, row["id"])}
    cases = _cases_if_kept(row) if rules else None
    found: dict[Rule, Found] = {}
    for rule in rules:
        metric = stored.get((rule.metric, rule.stratum or _headline(row["tier"])))
        if rule.metric in COSTS:
            found[rule] = _mean(rule, _within(_read(row) if cases is None else cases, rule.stratum))
        elif metric is None:
            found[rule] = {"value": None, "reason": NOTHING_MEASURED}
        else:
            found[rule] = {**metric, "n": metric["n_scored"]}
        if cases is not None:
            groups = _within(cases, rule.stratum)["group"].to_pylist()
            found[rule] = {**found[rule], "effective_units": effective_groups(group_codes(groups, len(groups)))}
    return found


def _mean(rule: Rule, cases: pa.Table) -> Found:
    values = floats(cases, rule.metric)
    n = int(np.count_nonzero(~np.isnan(values)))
    if not n:
        return {"value": None, "reason": NOTHING_MEASURED}
    declared = measure(rule.metric)
    groups = values_of(cases, "group")
    low, high = mean_interval(values, seed=0, low=declared.low, high=declared.high, groups=groups)
    return finite({"value": float(np.nanmean(values)), "n": n, "ci_low": low, "ci_high": high})


def _regressions(
    engine: Engine, row: RowMapping, before: RowMapping | None, rules: Sequence[Rule]
) -> dict[Rule, RuleResult]:
    if before is None or not rules:
        return regressions(dict.fromkeys(rules, NO_BASELINE), {})
    both = [_read(side) for side in (before, row)]
    pairs = common(*(headline(cases) for cases in both))
    if not len(pairs.a):
        return regressions(dict.fromkeys(rules, NOTHING_IN_COMMON), {})
    headlines = headlines_of(row["tier"])
    named = {measure(rule.metric) for rule in rules if _in_comparison(rule, row["tier"])}
    found, _ = numbers({*headlines, *named}, *pairs)
    with threadpool_limits(1):  # as `compare` does: the same difference to the last digit
        compared = compare_numbers(found, seed=SEED, groups=values_of(pairs.a, "group"))
    differences = {
        rule: compare_means(engine, before, row, rule.metric)
        if is_corrected(rule.metric)
        else compared.get(rule.metric, NOT_COMPARED)
        if _in_comparison(rule, row["tier"])
        else _paired(rule, *both)
        for rule in rules
    }
    return regressions(differences, under_holm(compared, headlines))


def _in_comparison(rule: Rule, tier: str) -> bool:
    """Whether `yarus.tasks.comparison.compare` compares what the rule is about."""
    return rule.metric in METRICS and (rule.stratum or _headline(tier)) == _headline(tier)


def _paired(rule: Rule, before: pa.Table, after: pa.Table) -> Compared | str:
    """Compare a column that `yarus.tasks.comparison.compare` leaves out: a cost, a rubric, another stratum."""
    metric = measure(rule.metric)
    one, other = common(*(_within(cases, rule.stratum) for cases in (before, after)))
    if metric.aggregate != "mean" or metric.column is None:
        return NOT_COMPARED
    number = number_of(metric, one, other, find_losses(one, other))
    found = compare_numbers({metric.name: number}, seed=SEED, groups=values_of(one, "group"))[metric.name]
    return found if found.comparison.n else NOTHING_MEASURED


def _headline(tier: str) -> str:
    return HEADLINE_STRATUM if tier == "real_users" else ""


def _within(cases: pa.Table, stratum: str | None) -> pa.Table:
    return within(cases, stratum or HEADLINE_STRATUM)


def _cases_if_kept(row: RowMapping) -> pa.Table | None:
    """The cases; without them a stored value is judged all the same, and how many more it needs is not known."""
    try:
        return _read(row)
    except (InputError, ResultsUnavailable):
        return None


def _read(row: RowMapping) -> pa.Table:
    require_cases(row)
    return read_cases(row)
