"""Compare two evaluations on their common cases: changes, their significance, and the cases that changed."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from threadpoolctl import threadpool_limits

from yarus.db.errors import InputError, unknown
from yarus.db.messages import Words
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.differences.compared_statistics import StatisticComparison
from yarus.metrics.statistics.differences.comparison import Comparison, adjust_for_multiple_tests
from yarus.metrics.statistics.differences.paired import compare_statistics
from yarus.metrics.statistics.differences.unpaired import compare_independent
from yarus.metrics.table import get_metric
from yarus.metrics.table.corrected import CORRECTED_SUFFIX
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import column_values
from yarus.tasks.comparison.changes import (
    add_statements,
    changed_settings,
    differ_only_in_cases,
    find_equally_labelled,
    find_unjudged,
    select_cases,
)
from yarus.tasks.comparison.common_cases import (
    CommonCases,
    changed_cases,
    find_key_differences,
    match_cases,
    may_have_same_cases,
    not_comparable_error,
    read_cases,
    require_cases,
    resolve_evaluations,
    select_headline_cases,
)
from yarus.tasks.comparison.comparison_schema import (
    Changes,
    EvaluationComparison,
    MetricComparison,
    Side,
    Sides,
)
from yarus.tasks.comparison.corrected_means import MissingLabels, compare_means, find_unequal_judging, is_corrected
from yarus.tasks.comparison.metric_values import ERROR_RATE, comparable_numbers, count_failures
from yarus.tasks.comparison.noise_floor import noise_bands
from yarus.tasks.comparison.slices import compare_slices
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.aggregate import list_metrics
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.number_format import replace_non_finite

SEED = 0


def compare(engine: Engine, a: str, b: str, *, force: bool = False, only: Sequence[str] = ()) -> EvaluationComparison:
    """Compare two evaluations of one tier on the cases that both have.

    Args:
        engine: the engine of Yarus's database.
        a: the evaluation before: its id, the beginning or end of it, `last`, `baseline` (what b is judged against) or
            `previous` (b's predecessor).
        b: the evaluation after.
        force: compare even if the comparability keys differ: paired if the case set is the same, else unpaired over all
            cases of each side.
        only: metrics to compare; default: all of the tier. Corrected means are compared only if they are named here.

    Raises:
        InputError: an evaluation or metric does not exist, there are no common cases, or the two are not comparable
            and `force` is not set.
    """
    before, after = resolve_evaluations(engine, a, b)
    for row in (before, after):
        require_cases(row)
    declared = _select_metrics(before, after, only)
    corrected = [name for name in only if is_corrected(name)]
    only = list(declared) if only else ()
    differs = find_key_differences(before, after)
    labels, ids = find_equally_labelled(before, after) if differ_only_in_cases(differs) and not force else (None, None)
    if labels is not None:
        differs = []
    if differs and not force:
        raise not_comparable_error(before, after, differs)
    headlines = _common_metrics(before, after)
    sides = CommonCases(
        *(select_headline_cases(read_cases(row, {*declared.values(), *headlines})) for row in (before, after))
    )
    pairs = match_cases(*(sides if ids is None else (select_cases(cases, ids) for cases in sides)))
    paired = bool(len(pairs.a)) and all(may_have_same_cases(part["part"]) for part in differs)
    if not paired and not force:
        raise InputError(
            "evaluations {before} and {after} have no case in common; --force compares them unpaired",
            before=before["id"],
            after=after["id"],
        )
    document: Sides = {
        "a": describe_evaluation(before),
        "b": describe_evaluation(after),
        "key_differences": differs,
        "changed_settings": changed_settings(before, after),
        "comparable": not differs,
        "paired": paired,
        "n_common": len(pairs.a),
        "labels_changed": labels,
        "noise": {} if differs else noise_bands(engine, after["comparability_key"]),
    }
    with threadpool_limits(1):  # threads add up in another order: the same comparison would differ in the last digits
        changes = (
            compare_pairs(pairs, declared, headlines, only, find_unjudged(document, declared))
            if paired
            else compare_sides(sides, declared, headlines)
        )
        for name in corrected:
            difference = (
                compare_means(engine, before, after, name)
                if paired
                else Words("corrected means are compared on one case set")
            )
            result = difference.reason if isinstance(difference, MissingLabels) else difference
            changes["metrics"][name] = (
                _describe_missing(result) if isinstance(result, str) else _describe_metric(result, None)
            )
    return add_statements(document, pseudonymise_changes(changes, after["source"]))


def compare_pairs(
    pairs: CommonCases,
    declared: Mapping[str, Metric],
    headlines: Sequence[Metric],
    only: Sequence[str],
    unjudged: Collection[str] = (),
) -> Changes:
    """Compare the common cases of two evaluations; `unjudged` metrics, of a stand-in, decide about no case."""
    numbers, reasons = comparable_numbers({*declared.values(), *headlines}, *pairs)
    groups = column_values(pairs.a, "group")
    names = list(only) or [metric.name for metric in headlines]
    slices, small = compare_slices(
        pairs, {name: numbers[name] for name in names if name in numbers}, groups=groups, seed=SEED
    )
    return {
        "metrics": _describe_metrics(
            declared, compare_statistics(numbers, seed=SEED, groups=groups), headlines, reasons
        ),
        "failed_cases": count_failures(headlines, *pairs),
        "cases": changed_cases(pairs, [declared[name] for name in names if name in declared and name not in unjudged]),
        "slices": slices,
        "small_slices": small,
        "judged_share_difference": find_unequal_judging(pairs, headlines, SEED),
    }


def compare_sides(sides: CommonCases, declared: Mapping[str, Metric], headlines: Sequence[Metric]) -> Changes:
    """Compare the metrics of two evaluations with different cases."""
    numbers, reasons = comparable_numbers({*declared.values(), *headlines}, *sides, failures_are_losses=False)
    counts = [name for name in numbers if get_metric(name).unit == "count"]
    reasons |= dict.fromkeys(counts, Words("counts of different cases say nothing about each other"))
    numbers = {name: number for name, number in numbers.items() if name not in counts}
    compared = compare_independent(
        numbers, seed=SEED, groups=(column_values(sides.a, "group"), column_values(sides.b, "group"))
    )
    return {
        "metrics": _describe_metrics(declared, compared, headlines, reasons),
        "failed_cases": None,
        "cases": {"regressed_cases": [], "improved_cases": [], "changed_status": []},
        "slices": {},
        "small_slices": {},
        "judged_share_difference": None,
    }


def adjust_headlines(compared: Mapping[str, StatisticComparison], headlines: Sequence[Metric]) -> dict[str, Comparison]:
    """Return the comparisons of these metrics, with Holm's method over them alone.

    The system's error rate is not counted if neither side failed: a test that cannot find anything costs the others
    nothing (Tarone 1990).
    """
    family = {metric.name: compared[metric.name] for metric in headlines if metric.name in compared}
    errors = family.get(ERROR_RATE)
    if errors is not None and errors.a == errors.b == 0:
        del family[ERROR_RATE]
    return adjust_for_multiple_tests({name: change.comparison for name, change in family.items()})


def pseudonymise_changes(changes: Changes, source: str) -> Changes:
    """Return the comparison with pseudonyms for the questions of cases and the names of slices."""
    pseudonymisers = pseudonyms.maskers_by_name(source)
    slices = {
        name: {pseudonymisers.get(name, str)(value): document for value, document in by_label.items()}
        for name, by_label in changes["slices"].items()
    }
    return {**changes, "cases": pseudonyms.mask_document(changes["cases"], source), "slices": slices}


def _select_metrics(a: RowMapping, b: RowMapping, only: Sequence[str]) -> dict[str, Metric]:
    """Return the metrics that both tiers have, or those of them that `only` names."""
    tiers = [row["tier"] for row in (a, b)]
    declared = {
        metric.name: metric for metric in list_metrics(tiers[0], EvaluationConfig.of(a)) if tiers[1] in metric.tiers
    }
    if not declared:
        raise InputError(
            "tiers {one} and {other} have no metric in common: there is nothing to compare",
            one=tiers[0],
            other=tiers[1],
        )
    for name in only:
        try:
            get_metric(name)
        except ValueError as error:
            raise InputError(str(error)) from None
        if name.removesuffix(CORRECTED_SUFFIX) not in declared:
            raise unknown(Words("metric of {one}:", one=tiers[0]), name, declared)
    return (
        {name: declared[name] for name in (name.removesuffix(CORRECTED_SUFFIX) for name in only)} if only else declared
    )


def directed_headlines(tier: str) -> list[Metric]:
    """Return the headline metrics of a tier that have a better direction."""
    return [metric for metric in map(get_metric, TIERS[tier].headlines) if metric.better != "neither"]


def directed_metrics(tier: str) -> list[Metric]:
    """Return the metrics whose change a comparison may claim: the headlines and those shown with them."""
    also_shown = map(get_metric, TIERS[tier].also_shown)
    return [*directed_headlines(tier), *(metric for metric in also_shown if metric.better != "neither")]


def _common_metrics(a: RowMapping, b: RowMapping) -> list[Metric]:
    return [metric for metric in directed_metrics(b["tier"]) if a["tier"] in metric.tiers]


def _describe_metrics(
    declared: Mapping[str, Metric],
    compared: Mapping[str, StatisticComparison],
    headlines: Sequence[Metric],
    reasons: Mapping[str, str],
) -> dict[str, MetricComparison]:
    strict = adjust_headlines(compared, headlines)
    return {
        name: _describe_metric(compared[name], strict.get(name))
        if name in compared
        else _describe_missing(reasons[name])
        for name in declared
    }


def _describe_metric(compared: StatisticComparison, strict: Comparison | None) -> MetricComparison:
    """Return the document of a metric; `strict` is its comparison under Holm's method if it has one."""
    unadjusted = compared.comparison
    comparison = strict or unadjusted
    reason = None
    if np.isnan(unadjusted.p):
        reason = (
            f"{unadjusted.n} cases were measured on both sides"
            if unadjusted.n < 2
            else unadjusted.method.removeprefix("none: ")
        )
    document: MetricComparison = {
        "a": compared.a,
        "b": compared.b,
        "difference": comparison.difference,
        "ci_low": comparison.interval.low,
        "ci_high": comparison.interval.high,
        "p": unadjusted.p,
        "p_holm": strict.p if strict else None,
        "verdict": comparison.verdict,
        "min_detectable_effect": comparison.smallest_detectable,
        "margin": comparison.margin,
        "n": comparison.n,
        "groups": comparison.units if comparison.units < comparison.n else None,
        "n_missing": comparison.n_missing,
        "method": comparison.method,
        "reason": reason,
    }
    return replace_non_finite(document)


def _describe_missing(reason: str) -> MetricComparison:
    return {
        "a": None,
        "b": None,
        "difference": None,
        "ci_low": None,
        "ci_high": None,
        "p": None,
        "p_holm": None,
        "verdict": "inconclusive",
        "min_detectable_effect": None,
        "margin": None,
        "n": 0,
        "groups": None,
        "n_missing": 0,
        "method": "none",
        "reason": reason,
    }


def describe_evaluation(row: RowMapping) -> Side:
    """Return the description of an evaluation in the document of a comparison."""
    return {
        "evaluation_id": row["id"],
        "name": row["name"],
        "started_at": row["started_at"].isoformat(),
        "tier": row["tier"],
        "source": row["source"],
        "sut_label": row["sut_label"],
        "state": row["state"],
        "error": row["error"],
        "comparability_key": row["comparability_key"],
        "system": EvaluationConfig.of(row).document(),
    }
