"""Judge an evaluation by floors, ceilings and a baseline, so that a script can stop on the verdict."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from threadpoolctl import threadpool_limits

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.messages import Words, join_messages
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.differences.compared_statistics import StatisticComparison
from yarus.metrics.statistics.differences.paired import compare_statistics
from yarus.metrics.statistics.groups import effective_groups, group_codes
from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM, tier_of_stratum
from yarus.tasks.comparison.common_cases import (
    find_key_differences,
    match_cases,
    read_cases,
    require_cases,
    select_headline_cases,
)
from yarus.tasks.comparison.compare import SEED, adjust_headlines, directed_headlines
from yarus.tasks.comparison.corrected_means import compare_means, is_corrected
from yarus.tasks.comparison.gate_rules import COSTS, GateRule, GateRules, find_measure
from yarus.tasks.comparison.gate_verdicts import (
    NOTHING_MEASURED,
    BaselineKind,
    GateResult,
    MeasuredValue,
    RuleResult,
    build_rule_result,
    judge_bound,
    judge_regressions,
)
from yarus.tasks.comparison.metric_values import comparable_numbers, find_losses, metric_number
from yarus.tasks.config.former_names import present_setting, present_value
from yarus.tasks.dataset.labelling.corrected import store_corrections
from yarus.tasks.dataset.labelling.relevance.pools import has_llm_labels
from yarus.tasks.evaluation.aggregate import select_stratum
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.judge_standing import find_stand_in_metrics
from yarus.tasks.evaluation.number_format import replace_non_finite
from yarus.tasks.evaluation.summary import GateVerdict

NO_BASELINE = "no earlier comparable evaluation"
NOTHING_IN_COMMON = "no case in common with the baseline"
FILLED = "a judge has filled the labels up: ask about the corrected metric, and label results"
NOT_COMPARED = "not compared case by case"
WORST_FIRST: tuple[GateVerdict, ...] = ("invalid", "fail", "inconclusive", "pass")


def gate(engine: Engine, evaluation_id: str, policy: GateRules, *, baseline: str | None = None) -> GateResult:
    """Judge an evaluation by every rule that applies to its tier.

    A floor fails if the whole 95 % interval lies below it and passes if no part of it does; a ceiling likewise. A
    no-regression rule fails if a loss is shown (paired test, Holm's p < 0.05); with a margin, if the whole one-sided 95
    % interval of the loss lies beyond it. It passes if no loss is shown; with a margin, if no loss beyond it remains
    possible. The smallest detectable difference states the strength of such a pass. All other results are inconclusive.

    Args:
        engine: the engine of Yarus's database.
        evaluation_id: its id, the beginning or end of it, or `last`.
        policy: the rules, and the baselines if `baseline` is not given.
        baseline: the evaluation to compare with, `previous` for the one before; default: the policy's of that tier,
            else the accepted one.

    Raises:
        InputError: the evaluation or baseline does not exist, they do not compare, or no rule applies to the tier.
    """
    row = journal.find_evaluation(engine, evaluation_id)
    if row["state"] not in journal.FINISHED_STATES:
        raise InputError(
            "evaluation {id} is {state}: only a finished one can be judged; {error}",
            id=row["id"],
            state=row["state"],
            error=row["error"],
        )
    rules = [rule for rule in policy.rules if applies_to_tier(rule, row["tier"])]
    if not rules:
        raise InputError(
            "{file}: no rule applies to {tier}, and a gate without a rule would pass anything",
            file=policy.file,
            tier=row["tier"],
        )
    is_comparing = baseline is not None or any(rule.kind == "no regression" for rule in rules)
    before, kind = _find_baseline(engine, row, policy, baseline) if is_comparing else (None, None)
    results = (
        _judge(engine, row, before, rules)
        if row["state"] == "completed"
        else [build_rule_result(rule, "invalid", {}) for rule in rules]
    )
    verdicts = [rule["verdict"] for rule in results]
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
        "unjudged_metrics": _list_unjudged_metrics(row, rules),
        "rules": results,
    }


def _list_unjudged_metrics(row: RowMapping, rules: Sequence[GateRule]) -> list[str]:
    """Return the metrics of the rules that a stand-in judged, not a language model."""
    metrics = list(dict.fromkeys(rule.metric for rule in rules))
    unjudged = find_stand_in_metrics(EvaluationConfig.of(row).document(), metrics)
    return [metric for metric in metrics if metric in unjudged]


def applies_to_tier(rule: GateRule, tier: str) -> bool:
    """Return whether a rule applies to a tier."""
    if rule.stratum is not None and tier != tier_of_stratum(rule.stratum):
        return False
    return rule.tier == tier if rule.tier is not None else tier in find_measure(rule.metric).tiers


def _find_baseline(
    engine: Engine, row: RowMapping, policy: GateRules, requested: str | None
) -> tuple[RowMapping | None, BaselineKind | None]:
    """Return the evaluation to compare with and its kind; None if none is pinned and there is no earlier one.

    Raises:
        InputError: a pinned evaluation does not exist, or the one to use does not compare.
    """
    for tier, pinned in policy.baselines.items():  # all of them, so that a typo is found before that tier is judged
        _find_pinned(engine, pinned, tier, f"gate file {policy.file}: [baseline] {tier}")
    name = requested or policy.baselines.get(row["tier"])
    if not name or requested == "previous":
        earlier = (journal.find_previous if requested else journal.find_baseline)(engine, row["id"])
        if earlier is None:
            return None, None
        before = journal.find_evaluation(engine, earlier)
        is_first = before["accepted_at"] == before["finished_at"]  # accepted when it ended, not by a person since
        return before, "previous" if requested else "first" if is_first else "accepted"
    place = (
        f"--baseline {requested}"
        if requested
        else Words("gate file {file}: [baseline] {tier}", file=policy.file, tier=row["tier"])
    )
    baseline_row = _find_pinned(engine, name, row["tier"], place)
    if baseline_row["id"] == row["id"]:
        raise InputError("{place}: {id} is the evaluation itself; name an earlier one", place=place, id=row["id"])
    if differs := find_key_differences(baseline_row, row):
        parts = join_messages(
            Words(
                "{part}: {before!r} and {after!r}",
                part=present_setting(part["part"]),
                before=present_value(part["part"], part["a"]),
                after=present_value(part["part"], part["b"]),
            )
            for part in differs
        )
        raise InputError(
            "{place}: {id} does not compare with {own}, they differ in {parts}",
            place=place,
            id=baseline_row["id"],
            own=row["id"],
            parts=parts,
        )
    return baseline_row, "given" if requested else "pinned"


def _find_pinned(engine: Engine, name: str, tier: str, place: str) -> RowMapping:
    try:
        row = journal.find_evaluation(engine, name)
    except InputError as error:
        raise InputError("{place}: {error}", place=place, error=error) from None
    if row["tier"] != tier:
        raise InputError(
            "{place}: {id} is of {tier}, not of {other}", place=place, id=row["id"], tier=row["tier"], other=tier
        )
    if row["state"] != "completed":
        raise InputError(
            "{place}: {id} is {state}; pin a completed evaluation", place=place, id=row["id"], state=row["state"]
        )
    return row


def _judge(engine: Engine, row: RowMapping, before: RowMapping | None, rules: Sequence[GateRule]) -> list[RuleResult]:
    regression_rules = [rule for rule in rules if rule.kind == "no regression"]
    values = _read_values(engine, row, [rule for rule in rules if rule.kind != "no regression"])
    results = _judge_regressions(engine, row, before, regression_rules) | {
        rule: judge_bound(rule, value) for rule, value in values.items()
    }
    return [_withhold_if_filled(row, rule, results[rule]) for rule in rules]


def _withhold_if_filled(row: RowMapping, rule: GateRule, result: RuleResult) -> RuleResult:
    """Make the result inconclusive if it depends on labels that a judge has filled up and people have not corrected."""
    if is_corrected(rule.metric) or not has_llm_labels(row) or not find_measure(rule.metric).of_relevance:
        return result
    return build_rule_result(rule, "inconclusive", {**result, "reason": FILLED})


def _read_values(engine: Engine, row: RowMapping, rules: Sequence[GateRule]) -> dict[GateRule, MeasuredValue]:
    """Return the value and interval of each rule."""
    if any(is_corrected(rule.metric) for rule in rules):
        store_corrections(engine, row["id"])  # uses the current labels
    stored = {(metric["metric"], metric["stratum"]): metric for metric in journal.read_metrics(engine, row["id"])}
    cases = _read_cases_if_kept(row) if rules else None
    values: dict[GateRule, MeasuredValue] = {}
    for rule in rules:
        metric = stored.get((rule.metric, rule.stratum or _headline_stratum(row["tier"])))
        if rule.metric in COSTS:
            values[rule] = _mean_cost(rule, _select_stratum(_read_cases(row) if cases is None else cases, rule.stratum))
        elif metric is None:
            values[rule] = {"value": None, "reason": NOTHING_MEASURED}
        else:
            values[rule] = {**metric, "n": metric["n_scored"]}
        if cases is not None:
            groups = _select_stratum(cases, rule.stratum)["group"].to_pylist()
            values[rule] = {**values[rule], "effective_units": effective_groups(group_codes(groups, len(groups)))}
    return values


def _mean_cost(rule: GateRule, cases: pa.Table) -> MeasuredValue:
    values = float_column(cases, rule.metric)
    n = int(np.count_nonzero(~np.isnan(values)))
    if not n:
        return {"value": None, "reason": NOTHING_MEASURED}
    declared = find_measure(rule.metric)
    groups = column_values(cases, "group")
    low, high = mean_interval(values, seed=0, low=declared.low, high=declared.high, groups=groups)
    return replace_non_finite({"value": float(np.nanmean(values)), "n": n, "ci_low": low, "ci_high": high})


def _judge_regressions(
    engine: Engine, row: RowMapping, before: RowMapping | None, rules: Sequence[GateRule]
) -> dict[GateRule, RuleResult]:
    if before is None or not rules:
        return judge_regressions(dict.fromkeys(rules, NO_BASELINE), {})
    sides = [_read_cases(side) for side in (before, row)]
    pairs = match_cases(*(select_headline_cases(cases) for cases in sides))
    if not len(pairs.a):
        return judge_regressions(dict.fromkeys(rules, NOTHING_IN_COMMON), {})
    headlines = directed_headlines(row["tier"])
    rule_metrics = {find_measure(rule.metric) for rule in rules if _is_compared(rule, row["tier"])}
    numbers, _ = comparable_numbers({*headlines, *rule_metrics}, *pairs)
    with threadpool_limits(1):  # as in `compare`, so that both report the same digits
        compared = compare_statistics(numbers, seed=SEED, groups=column_values(pairs.a, "group"))
    differences = {
        rule: compare_means(engine, before, row, rule.metric)
        if is_corrected(rule.metric)
        else compared.get(rule.metric, NOT_COMPARED)
        if _is_compared(rule, row["tier"])
        else _compare_column(rule, *sides)
        for rule in rules
    }
    return judge_regressions(differences, adjust_headlines(compared, headlines))


def _is_compared(rule: GateRule, tier: str) -> bool:
    """Return whether `yarus.tasks.comparison.compare` compares the rule's metric in its stratum."""
    return rule.metric in METRICS and (rule.stratum or _headline_stratum(tier)) == _headline_stratum(tier)


def _compare_column(rule: GateRule, before: pa.Table, after: pa.Table) -> StatisticComparison | str:
    """Compare a column that `yarus.tasks.comparison.compare` leaves out: a cost, a rubric, another stratum."""
    metric = find_measure(rule.metric)
    first, second = match_cases(*(_select_stratum(cases, rule.stratum) for cases in (before, after)))
    if metric.aggregate != "mean" or metric.column is None:
        return NOT_COMPARED
    number = metric_number(metric, first, second, find_losses(first, second))
    compared = compare_statistics({metric.name: number}, seed=SEED, groups=column_values(first, "group"))[metric.name]
    return compared if compared.comparison.n else NOTHING_MEASURED


def _headline_stratum(tier: str) -> str:
    return HEADLINE_STRATUM if tier == "real_users" else ""


def _select_stratum(cases: pa.Table, stratum: str | None) -> pa.Table:
    return select_stratum(cases, stratum or HEADLINE_STRATUM)


def _read_cases_if_kept(row: RowMapping) -> pa.Table | None:
    """Read the cases, or return None; without them stored values are judged, but not how many more cases are needed."""
    try:
        return _read_cases(row)
    except (InputError, ResultsUnavailable):
        return None


def _read_cases(row: RowMapping) -> pa.Table:
    require_cases(row)
    return read_cases(row)
