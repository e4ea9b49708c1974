"""Explain what changed between two evaluations: questions or answers, at which stage, and because of which pages."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Engine

from yarus.db.errors import InputError
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.differences.decomposition import Component, assign_cells, decompose
from yarus.metrics.statistics.groups import Floats
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import column_values
from yarus.tasks.comparison.changes import changed_settings, find_unjudged
from yarus.tasks.comparison.common_cases import (
    find_key_differences,
    may_have_same_cases,
    read_cases,
    require_cases,
    resolve_evaluations,
    select_headline_cases,
)
from yarus.tasks.comparison.compare import describe_evaluation, directed_metrics
from yarus.tasks.comparison.explanation.explanation_schema import (
    ExplainedMetric,
    ExplainedPart,
    Explanation,
    PartOfPages,
)
from yarus.tasks.comparison.explanation.largest_changes import (
    FEW,
    explained_cases,
    explained_pages,
    explained_topics,
    headline_values,
    heaviest_names,
    lost_measures,
    new_topics,
)
from yarus.tasks.comparison.explanation.questions import LABEL_COLUMNS, Questions, align_questions
from yarus.tasks.comparison.metric_values import case_values
from yarus.tasks.config.former_names import present_setting
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.corpus_versions import (
    PAGE_CHANGES,
    CorpusVersion,
    PageChange,
    compare_versions,
    read_version,
)
from yarus.tasks.evaluation.findings.failures import FAILURE_STAGES

NO_FAILURE = "none"


def explain(engine: Engine, a: str, b: str, *, force: bool = False, only: Sequence[str] = ()) -> Explanation:
    """Split the difference between two evaluations of one tier into its causes.

    Args:
        engine: the engine of Yarus's database.
        a: the evaluation before, as `compare` takes it: also `baseline` or `previous`.
        b: the evaluation after.
        force: explain even if they differ in more than their questions.
        only: headline metrics, or those shown with them; all by default.

    Raises:
        InputError: an evaluation does not exist or has no cases, the tiers differ, or the two are not comparable and
            `force` is not set.
        ResultsUnavailable: a file is missing or damaged.
    """
    rows = resolve_evaluations(engine, a, b)
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
    differs = [part for part in find_key_differences(*rows) if not may_have_same_cases(part["part"])]
    others = [part for part in find_key_differences(*rows) if may_have_same_cases(part["part"])]
    if others and not force:
        parts = ", ".join(present_setting(part["part"]) for part in others)
        raise InputError(
            "evaluations {before} and {after} differ in more than their questions: {said}; yarus compare shows how; "
            "--force explains them anyway",
            before=rows[0]["id"],
            after=rows[1]["id"],
            said=parts,
        )
    declared = directed_metrics(rows[1]["tier"])
    if unknown := [name for name in only if name not in [metric.name for metric in declared]]:
        names = ", ".join(metric.name for metric in declared)
        raise InputError(
            "--metric {name}: expected one of {tier}'s headline metrics: {named}",
            name=unknown[0],
            tier=rows[1]["tier"],
            named=names,
        )
    sides = [select_headline_cases(read_cases(row, declared, *LABEL_COLUMNS, "failure")) for row in rows]
    corpora = [read_version(engine, EvaluationConfig.of(row).corpus) for row in rows]
    versions = (corpora[0], corpora[1]) if corpora[0] and corpora[1] else None
    questions = align_questions(sides, versions, _page_of(corpora))
    document: Explanation = {
        "a": describe_evaluation(rows[0]),
        "b": describe_evaluation(rows[1]),
        "changed_settings": changed_settings(*rows),
        "key_differences": [*differs, *others],
        "topic_source": questions.topics_by,
        "n_relabelled": questions.n_relabelled,
        "corpus": _count_fates(versions),
        "no_longer_measured": lost_measures(questions),
        "new_topics": [],
        "metrics": {},
        "not_decomposed": {},
    }
    unjudged = find_unjudged(document, [metric.name for metric in declared])
    judged = [metric for metric in declared if metric.name not in unjudged]
    document["new_topics"] = new_topics(questions, headline_values(sides[1], judged, questions))
    for metric in sorted(declared, key=lambda metric: metric.name in unjudged):
        if only and metric.name not in only:
            continue
        before, after = (case_values(metric, cases) for cases in sides)
        if isinstance(before, str) or isinstance(after, str):
            document["not_decomposed"][metric.name] = before if isinstance(before, str) else str(after)
            continue
        explained = explain_metric(metric, questions, (before, after), [_read_failures(cases) for cases in sides])
        if explained is None:
            document["not_decomposed"][metric.name] = "a side has not measured it"
        else:
            document["metrics"][metric.name] = explained
    masked: Explanation = pseudonyms.mask_document(document, rows[1]["source"])
    return masked


def _page_of(versions: Sequence[CorpusVersion | None]) -> dict[str, str | None]:
    """Return the page of each chunk, as before the change, else as after it."""
    pages: dict[str, str | None] = {}
    for version in reversed(versions):
        pages |= version.page_of if version else {}
    return pages


def _count_fates(versions: tuple[CorpusVersion, CorpusVersion] | None) -> dict[PageChange, int] | None:
    if versions is None:
        return None
    counts = Counter(compare_versions(*versions).values())
    return {fate: counts[fate] for fate in PAGE_CHANGES}


def _read_failures(cases: pa.Table) -> list[str] | None:
    if "failure" not in cases.column_names:
        return None
    return [failure or NO_FAILURE for failure in column_values(cases, "failure")]


def explain_metric(
    metric: Metric, questions: Questions, values: tuple[Floats, Floats], failures: Sequence[list[str] | None]
) -> ExplainedMetric | None:
    """Return the difference of one metric, split into parts; None if a side has not measured it.

    Args:
        metric: the metric.
        questions: the questions of both sides.
        values: the values of each side's cases.
        failures: the failed stage of each side's cases; None if the tier does not record it.
    """
    before, after = (questions.of(side, column) for side, column in enumerate(values))
    is_measured = [~np.isnan(side) for side in (before, after)]
    if not all(side.any() for side in is_measured):
        return None
    first = list(zip(questions.fates, questions.topics, strict=True))
    kinds = assign_cells([first, questions.lengths, questions.scripts], *is_measured)
    fate_of_cell = dict(zip(kinds.tolist(), questions.fates, strict=True))
    mixed = {cell for cell, fate in zip(kinds.tolist(), questions.fates, strict=True) if fate != fate_of_cell[cell]}
    if mixed:  # rare kinds were merged: split them again by the fate of their pages
        kinds = np.unique(
            [f"{cell} {fate}" for cell, fate in zip(kinds.tolist(), questions.fates, strict=True)], return_inverse=True
        )[1]
        fate_of_cell = dict(zip(kinds.tolist(), questions.fates, strict=True))
    span = metric.high - metric.low if np.isfinite(metric.high - metric.low) else _value_range(before, after)
    split = partial(decompose, cells=kinds, span=span, groups=questions.groups, parts=fate_of_cell)
    decomposition = split(before, after)
    by_case, comparable = decomposition.by_case, not np.isnan(decomposition.answers.value)
    stages: dict[str, ExplainedPart] | None = None
    if comparable and failures[0] is not None and failures[1] is not None:
        best = metric.high if metric.better == "higher" else metric.low
        stages = {}
        for stage in (*FAILURE_STAGES, NO_FAILURE):
            losses = [
                questions.of(
                    side, np.where([failure == stage for failure in failures[side] or ()], column - best, column * 0)
                )
                for side, column in enumerate(values)
            ]
            if any(np.nan_to_num(side).any() for side in losses):
                stages[stage] = _describe_part(split(*losses).answers)
    by_fate: dict[PageChange, PartOfPages] | None = None
    if comparable and any(fate is not None for fate in questions.fates):
        by_fate = {
            fate: _describe_pages(fate, decomposition.parts[fate], questions, by_case, is_measured[1])
            for fate in PAGE_CHANGES
            if fate in decomposition.parts
        }
    return {
        "a": float(before[is_measured[0]].mean()),
        "b": float(after[is_measured[1]].mean()),
        "difference": decomposition.difference,
        "n_a": int(is_measured[0].sum()),
        "n_b": int(is_measured[1].sum()),
        "n_common": int((is_measured[0] & is_measured[1]).sum()),
        "n_question_kinds": len(np.unique(kinds[is_measured[0] | is_measured[1]])),
        "questions": _describe_part(decomposition.questions),
        "answers": _describe_part(decomposition.answers) if comparable else None,
        "stages": stages,
        "page_changes": by_fate,
        "topics": explained_topics(questions, before, after, by_case),
        "pages": explained_pages(questions, by_case, is_measured[1]),
        "cases": explained_cases(questions, before, after, by_case),
    }


def _value_range(*sides: Floats) -> float:
    known_values = np.concatenate([side[~np.isnan(side)] for side in sides])
    return float(np.ptp(known_values)) or 1.0


def _describe_part(part: Component) -> ExplainedPart:
    return {"value": part.value, "ci_low": part.interval.low, "ci_high": part.interval.high}


def _describe_pages(
    fate: PageChange, part: Component, questions: Questions, by_case: Floats, measured: NDArray[np.bool_]
) -> PartOfPages:
    rows = [row for row, row_fate in enumerate(questions.fates) if row_fate == fate and measured[row]]
    return {
        **_describe_part(part),
        "n": len(rows),
        "pages": len({questions.pages[row] for row in rows}),
        "topics": heaviest_names(((questions.topics[row], by_case[row]) for row in rows), FEW),
    }
