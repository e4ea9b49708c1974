"""Two evaluations on their common cases: what changed, whether it is more than chance, and in which cases."""

from collections.abc import Mapping, Sequence

import numpy as np
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from threadpoolctl import threadpool_limits

from yarus.db.errors import InputError, unknown
from yarus.db.words import Words
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.differences.comparison import Comparison, adjusted
from yarus.metrics.statistics.differences.numbers import Compared
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.metrics.statistics.differences.unpaired import compare_independent
from yarus.metrics.table import metric
from yarus.metrics.table.corrected import SUFFIX
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import values_of
from yarus.tasks.comparison.changes import changed_settings, kept, labelled_alike, only_cases_differ, with_statements
from yarus.tasks.comparison.common_cases import (
    Pairs,
    changed_cases,
    common,
    differences,
    evaluations_of,
    headline,
    read_cases,
    refusal,
    require_cases,
    same_cases,
)
from yarus.tasks.comparison.comparison_schema import (
    Changes,
    EvaluationComparison,
    MetricComparison,
    Side,
    Sides,
)
from yarus.tasks.comparison.corrected_means import Lacking, compare_means, is_corrected, unequally_judged
from yarus.tasks.comparison.noise_floor import noise
from yarus.tasks.comparison.slices import compare_slices
from yarus.tasks.comparison.totals import ERRORS, count_failures, numbers
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.aggregate import measured_by
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.numbers import finite

SEED = 0


def compare(engine: Engine, a: str, b: str, *, force: bool = False, only: Sequence[str] = ()) -> EvaluationComparison:
    """Compares two evaluations of one tier on the cases that both have.

    Args:
        engine: of our own database.
        a: the evaluation before: its id, the beginning or end of it, `last`, `baseline` (what b is judged against) or
            `previous` (b's predecessor).
        b: the evaluation after.
        force: compare even where the comparability keys differ: paired where the case set is the same, else over all
            cases of each side, unpaired.
        only: metrics to compare; all of the tier by default. Corrected means are compared where they are named here.

    Raises:
        InputError: no such evaluation or metric, no cases, nothing in common, or not comparable and not forced.
    """
    before, after = evaluations_of(engine, a, b)
    for row in (before, after):
        require_cases(row)
    declared = _declared(before, after, only)
    corrected = [name for name in only if is_corrected(name)]
    only = list(declared) if only else ()
    differs = differences(before, after)
    changed, alike = labelled_alike(before, after) if only_cases_differ(differs) and not force else (None, None)
    if changed is not None:
        differs = []
    if differs and not force:
        raise refusal(before, after, differs)
    tested = _headlines(before, after)
    sides = Pairs(*(headline(read_cases(row, {*declared.values(), *tested})) for row in (before, after)))
    pairs = common(*(sides if alike is None else (kept(cases, alike) for cases in sides)))
    paired = bool(len(pairs.a)) and all(same_cases(part["part"]) for part in differs)
    if not paired and not force:
        raise InputError(
            "evaluations {before} and {after} have no case in common; --force compares them unpaired",
            before=before["id"],
            after=after["id"],
        )
    document: Sides = {
        "a": side(before),
        "b": side(after),
        "differs": differs,
        "changed_settings": changed_settings(before, after),
        "comparable": not differs,
        "paired": paired,
        "n_common": len(pairs.a),
        "labels_changed": changed,
        "noise": {} if differs else noise(engine, after["comparability_key"]),
    }
    with threadpool_limits(1):  # threads add up in another order: the same comparison would differ in the last digits
        found = compare_pairs(pairs, declared, tested, only) if paired else compare_sides(sides, declared, tested)
        for name in corrected:
            one = (
                compare_means(engine, before, after, name)
                if paired
                else Words("corrected means are compared on one case set")
            )
            why = one.reason if isinstance(one, Lacking) else one
            found["metrics"][name] = _not_compared(why) if isinstance(why, str) else _metric(why, None)
    return with_statements(document, as_shown(found, after["source"]))


def compare_pairs(
    pairs: Pairs, declared: Mapping[str, Metric], headlines: Sequence[Metric], only: Sequence[str]
) -> Changes:
    """Compare common cases."""
    found, reasons = numbers({*declared.values(), *headlines}, *pairs)
    groups = values_of(pairs.a, "group")
    main = list(only) or [metric.name for metric in headlines]
    slices, small = compare_slices(
        pairs, {name: found[name] for name in main if name in found}, groups=groups, seed=SEED
    )
    return {
        "metrics": _metrics(declared, compare_numbers(found, seed=SEED, groups=groups), headlines, reasons),
        "failed_cases": count_failures(headlines, *pairs),
        "cases": changed_cases(pairs, [declared[name] for name in main]),
        "slices": slices,
        "small_slices": small,
        "unequally_judged": unequally_judged(pairs, headlines, SEED),
    }


def compare_sides(sides: Pairs, declared: Mapping[str, Metric], headlines: Sequence[Metric]) -> Changes:
    """Compare different cases: metrics only."""
    found, reasons = numbers({*declared.values(), *headlines}, *sides, failures_are_losses=False)
    counts = [name for name in found if metric(name).unit == "count"]
    reasons |= dict.fromkeys(counts, Words("counts of different cases say nothing about each other"))
    found = {name: number for name, number in found.items() if name not in counts}
    compared = compare_independent(found, seed=SEED, groups=(values_of(sides.a, "group"), values_of(sides.b, "group")))
    return {
        "metrics": _metrics(declared, compared, headlines, reasons),
        "failed_cases": None,
        "cases": {"broke": [], "fixed": [], "changed_status": []},
        "slices": {},
        "small_slices": {},
        "unequally_judged": None,
    }


def under_holm(compared: Mapping[str, Compared], headlines: Sequence[Metric]) -> dict[str, Comparison]:
    """The headline metrics as they decide: Holm's method over all of them, and over nothing else.

    Errors of the system take no part where there were none: a test that cannot find anything costs the others nothing
    (Tarone 1990).
    """
    family = {row.name: compared[row.name] for row in headlines if row.name in compared}
    errors = family.get(ERRORS)
    if errors is not None and errors.a == errors.b == 0:
        del family[ERRORS]
    return adjusted({name: one.comparison for name, one in family.items()})


def as_shown(found: Changes, source: str) -> Changes:
    """The comparison as people may see it: the questions of cases, and the names of slices."""
    ways = pseudonyms.ways(source)
    slices = {
        name: {ways.get(name, str)(value): said for value, said in values.items()}
        for name, values in found["slices"].items()
    }
    return {**found, "cases": pseudonyms.document(found["cases"], source), "slices": slices}


def _declared(a: RowMapping, b: RowMapping, only: Sequence[str]) -> dict[str, Metric]:
    """The metrics that both tiers have, or those of them that were asked for, or that are corrected."""
    tiers = [row["tier"] for row in (a, b)]
    declared = {row.name: row for row in measured_by(tiers[0], EvaluationConfig.of(a)) if tiers[1] in row.tiers}
    if not declared:
        raise InputError(
            "tiers {one} and {other} have no metric in common: there is nothing to compare",
            one=tiers[0],
            other=tiers[1],
        )
    for name in only:
        try:
            metric(name)
        except ValueError as error:
            raise InputError(str(error)) from None
        if name.removesuffix(SUFFIX) not in declared:
            raise unknown(Words("metric of {one}:", one=tiers[0]), name, declared)
    return {name: declared[name] for name in (name.removesuffix(SUFFIX) for name in only)} if only else declared


def headlines_of(tier: str) -> list[Metric]:
    """What a tier is judged by, as far as it is better in one direction."""
    return [row for row in map(metric, TIERS[tier].headlines) if row.better != "neither"]


def _headlines(a: RowMapping, b: RowMapping) -> list[Metric]:
    return [row for row in headlines_of(b["tier"]) if a["tier"] in row.tiers]


def _metrics(
    declared: Mapping[str, Metric],
    compared: Mapping[str, Compared],
    headlines: Sequence[Metric],
    reasons: Mapping[str, str],
) -> dict[str, MetricComparison]:
    strict = under_holm(compared, headlines)
    return {
        name: _metric(compared[name], strict.get(name)) if name in compared else _not_compared(reasons[name])
        for name in declared
    }


def _metric(one: Compared, strict: Comparison | None) -> MetricComparison:
    """The document of a metric; `strict`: as one of the headline metrics."""
    alone = one.comparison
    found = strict or alone
    reason = None
    if np.isnan(alone.p):
        reason = f"{alone.n} cases were measured on both sides" if alone.n < 2 else alone.method.removeprefix("none: ")
    document: MetricComparison = {
        "a": one.a,
        "b": one.b,
        "difference": found.difference,
        "ci_low": found.interval.low,
        "ci_high": found.interval.high,
        "p": alone.p,
        "p_holm": strict.p if strict else None,
        "verdict": found.verdict,
        "smallest_detectable": found.smallest_detectable,
        "margin": found.margin,
        "n": found.n,
        "groups": found.units if found.units < found.n else None,
        "n_missing": found.n_missing,
        "method": found.method,
        "reason": reason,
    }
    return finite(document)


def _not_compared(reason: str) -> MetricComparison:
    return {
        "a": None,
        "b": None,
        "difference": None,
        "ci_low": None,
        "ci_high": None,
        "p": None,
        "p_holm": None,
        "verdict": "inconclusive",
        "smallest_detectable": None,
        "margin": None,
        "n": 0,
        "groups": None,
        "n_missing": 0,
        "method": "none",
        "reason": reason,
    }


def side(row: RowMapping) -> Side:
    """What a document says of one of the evaluations."""
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
