"""What moved between two evaluations: other questions or other answers, at which stage, and because of which pages."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Engine

from yarus.db.errors import InputError
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.differences.decomposition import Part, cells, decompose
from yarus.metrics.statistics.groups import Floats
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import values_of
from yarus.tasks.comparison.changes import changed_settings
from yarus.tasks.comparison.common_cases import (
    differences,
    evaluations_of,
    headline,
    read_cases,
    require_cases,
    same_cases,
)
from yarus.tasks.comparison.compare import headlines_of, side
from yarus.tasks.comparison.explanation.explanation_schema import (
    ExplainedMetric,
    ExplainedPart,
    Explanation,
    PartOfPages,
)
from yarus.tasks.comparison.explanation.largest import (
    FEW,
    explained_cases,
    explained_pages,
    explained_topics,
    lost_measures,
    new_topics,
    served,
    weightiest,
)
from yarus.tasks.comparison.explanation.questions import LABELS, Questions, read_questions
from yarus.tasks.comparison.totals import case_values
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.corpus_versions import FATES, Fate, Version, fates, read_version
from yarus.tasks.evaluation.findings.failures import FAILURES

NO_FAILURE = "none"


def explain(engine: Engine, a: str, b: str, *, force: bool = False, only: Sequence[str] = ()) -> Explanation:
    """Splits what changed between two evaluations of one tier.

    Args:
        engine: of our own database.
        a: the evaluation before, as `compare` takes it: also `baseline` or `previous`.
        b: the evaluation after.
        force: also where they differ in more than their questions.
        only: headline metrics; all by default.

    Raises:
        InputError: no such evaluation, none of its cases, another tier, or not comparable and not forced.
        ResultsUnavailable: a file is gone or damaged.
    """
    rows = evaluations_of(engine, a, b)
    for row in rows:
        require_cases(row)
    if rows[0]["tier"] != rows[1]["tier"]:
        raise InputError(
            "{before} is of {tier}, {after} of {other}: one tier each",
            before=rows[0]["id"],
            tier=rows[0]["tier"],
            after=rows[1]["id"],
            other=rows[1]["tier"],
        )
    differs = [part for part in differences(*rows) if not same_cases(part["part"])]
    other = [part for part in differences(*rows) if same_cases(part["part"])]
    if other and not force:
        said = ", ".join(part["part"] for part in other)
        raise InputError(
            "evaluations {before} and {after} differ in more than their questions: {said}; yarus compare shows how; "
            "--force explains them anyway",
            before=rows[0]["id"],
            after=rows[1]["id"],
            said=said,
        )
    declared = headlines_of(rows[1]["tier"])
    if unknown := [name for name in only if name not in [metric.name for metric in declared]]:
        named = ", ".join(metric.name for metric in declared)
        raise InputError(
            "--metric {name}: expected one of {tier}'s headline metrics: {named}",
            name=unknown[0],
            tier=rows[1]["tier"],
            named=named,
        )
    sides = [headline(read_cases(row, declared, *LABELS, "failure")) for row in rows]
    kept = [read_version(engine, EvaluationConfig.of(row).corpus) for row in rows]
    versions = (kept[0], kept[1]) if kept[0] and kept[1] else None
    questions = read_questions(sides, versions, _page_of(kept))
    document: Explanation = {
        "a": side(rows[0]),
        "b": side(rows[1]),
        "changed_settings": changed_settings(*rows),
        "differs": [*differs, *other],
        "topics_by": questions.topics_by,
        "n_relabelled": questions.n_relabelled,
        "corpus": _counted(versions),
        "lost": lost_measures(questions),
        "new_topics": new_topics(questions, *served(sides[1], declared, questions)),
        "metrics": {},
        "not_split": {},
    }
    for metric in declared:
        if only and metric.name not in only:
            continue
        before, after = (case_values(metric, cases) for cases in sides)
        if isinstance(before, str) or isinstance(after, str):
            document["not_split"][metric.name] = before if isinstance(before, str) else str(after)
            continue
        explained = explained_metric(metric, questions, (before, after), [_failures(cases) for cases in sides])
        if explained is None:
            document["not_split"][metric.name] = "a side has not measured it"
        else:
            document["metrics"][metric.name] = explained
    shown: Explanation = pseudonyms.document(document, rows[1]["source"])
    return shown


def _page_of(versions: Sequence[Version | None]) -> dict[str, str | None]:
    """Chunk -> page, as it was before, else as it is after."""
    found: dict[str, str | None] = {}
    for version in reversed(versions):
        found |= version.page_of if version else {}
    return found


def _counted(versions: tuple[Version, Version] | None) -> dict[Fate, int] | None:
    if versions is None:
        return None
    counts = Counter(fates(*versions).values())
    return {fate: counts[fate] for fate in FATES}


def _failures(cases: pa.Table) -> list[str] | None:
    if "failure" not in cases.column_names:
        return None
    return [failure or NO_FAILURE for failure in values_of(cases, "failure")]


def explained_metric(
    metric: Metric, questions: Questions, values: tuple[Floats, Floats], failures: Sequence[list[str] | None]
) -> ExplainedMetric | None:
    """The difference of one metric, split; None where a side has not measured it.

    Args:
        metric: of which.
        questions: of both sides.
        values: of each side's cases.
        failures: of each side's cases, where they failed; None where the tier does not say.
    """
    before, after = (questions.of(number, own) for number, own in enumerate(values))
    there = [~np.isnan(own) for own in (before, after)]
    if not all(own.any() for own in there):
        return None
    first = list(zip(questions.fates, questions.topics, strict=True))
    kinds = cells([first, questions.lengths, questions.scripts], *there)
    of_cell = dict(zip(kinds.tolist(), questions.fates, strict=True))
    mixed = {cell for cell, fate in zip(kinds.tolist(), questions.fates, strict=True) if fate != of_cell[cell]}
    if mixed:  # rare kinds were put together: what became of their pages parts them again
        kinds = np.unique(
            [f"{cell} {fate}" for cell, fate in zip(kinds.tolist(), questions.fates, strict=True)], return_inverse=True
        )[1]
        of_cell = dict(zip(kinds.tolist(), questions.fates, strict=True))
    span = metric.high - metric.low if np.isfinite(metric.high - metric.low) else _span(before, after)
    split = partial(decompose, cells=kinds, span=span, groups=questions.groups, parts=of_cell)
    found = split(before, after)
    by_case, comparable = found.by_case, not np.isnan(found.answers.value)
    stages: dict[str, ExplainedPart] | None = None
    if comparable and failures[0] is not None and failures[1] is not None:
        best = metric.high if metric.better == "higher" else metric.low
        stages = {}
        for stage in (*FAILURES, NO_FAILURE):
            lost = [
                questions.of(number, np.where([one == stage for one in failures[number] or ()], own - best, own * 0))
                for number, own in enumerate(values)
            ]
            if any(np.nan_to_num(own).any() for own in lost):
                stages[stage] = _part(split(*lost).answers)
    fates_found: dict[Fate, PartOfPages] | None = None
    if comparable and any(fate is not None for fate in questions.fates):
        fates_found = {
            fate: _of_pages(fate, found.parts[fate], questions, by_case, there[1])
            for fate in FATES
            if fate in found.parts
        }
    return {
        "a": float(before[there[0]].mean()),
        "b": float(after[there[1]].mean()),
        "difference": found.difference,
        "n_a": int(there[0].sum()),
        "n_b": int(there[1].sum()),
        "n_common": int((there[0] & there[1]).sum()),
        "cells": len(np.unique(kinds[there[0] | there[1]])),
        "questions": _part(found.questions),
        "answers": _part(found.answers) if comparable else None,
        "stages": stages,
        "fates": fates_found,
        "topics": explained_topics(questions, before, after, by_case),
        "pages": explained_pages(questions, by_case, there[1]),
        "cases": explained_cases(questions, before, after, by_case),
    }


def _span(*sides: Floats) -> float:
    known = np.concatenate([side[~np.isnan(side)] for side in sides])
    return float(np.ptp(known)) or 1.0


def _part(found: Part) -> ExplainedPart:
    return {"value": found.value, "ci_low": found.interval.low, "ci_high": found.interval.high}


def _of_pages(
    fate: Fate, part: Part, questions: Questions, by_case: Floats, measured: NDArray[np.bool_]
) -> PartOfPages:
    rows = [row for row, own in enumerate(questions.fates) if own == fate and measured[row]]
    return {
        **_part(part),
        "n": len(rows),
        "pages": len({questions.pages[row] for row in rows}),
        "topics": weightiest(((questions.topics[row], by_case[row]) for row in rows), FEW),
    }
