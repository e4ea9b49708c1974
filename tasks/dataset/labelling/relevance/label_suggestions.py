"""Suggest results to label: those whose relevance affects the ranking of two systems most."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.table import METRICS
from yarus.tasks.cases.labels import NO_DUPLICATES
from yarus.tasks.cases.privacy.pseudonyms import mask_message
from yarus.tasks.cases.rankings import (
    MIN_ANSWERING_GRADE,
    Pool,
    PooledResult,
    add_metrics,
    grades_by_id,
    judged_passages,
    relabel_cases,
)
from yarus.tasks.cases.table import Case, float_column, make_cases
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES
from yarus.tasks.dataset.labelling.relevance.estimate import load_result_labels
from yarus.tasks.dataset.labelling.relevance.pools import has_llm_labels, majority_relevance, text_digest
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import EvaluationConfig

MAX_SUGGESTIONS = 20
"""Maximum number of suggested results."""
BATCH_SIZE = 20_000
"""Rankings that are scored together."""
CASE_COLUMNS = ("case_id", "question", "status", "retrieved", "relevant", "irrelevant", "grades", "pooled", "passages")


class ResultToLabel(TypedDict):
    """A result without a label of a person."""

    case_id: str
    question: str
    result: str
    passage: str | None
    """Null if no judge has read it."""
    rank_a: int | None
    """Rank in `a`; null if it was not retrieved."""
    rank_b: int | None
    grade: int | None
    """The judge's grade, 0 to 3; null if no judge graded it."""
    effect: float
    """Change of the difference b - a if its label were the opposite of the one that counts now."""


class LabelSuggestions(TypedDict):
    """Results to label next."""

    a: str
    """Id of the evaluation before."""
    b: str
    metric: str
    value_a: float
    """Mean over the questions that both measured, by labels of the source, of people and of the judge; relevance is yes
    or no."""
    value_b: float
    unjudged: int
    """Number of results without a person's label that influence the difference."""
    results: list[ResultToLabel]
    """Results with the largest effect first; among equals the one of which the judge is least certain."""


class _Question(NamedTuple):
    """A question that both evaluations have measured."""

    case_id: str
    text: str
    pools: tuple[Pool, Pool]
    """The same results for both evaluations, each with its own ranks."""
    passages: Mapping[str, str]
    """Result -> text, for results that a judge has read."""
    relevance: Mapping[str, bool]
    """Result -> whether it counts as relevant."""
    unjudged: list[str]
    """Results without a label and without a judgement of people."""


class _Flip(NamedTuple):
    """One result with the opposite relevance."""

    row: int
    """Index of the question."""
    result: str | None
    """None if nothing is changed."""


def suggest_labels(engine: Engine, a: str, b: str, metric: str = "ndcg@10") -> LabelSuggestions:
    """Return the results that affect the ranking of two evaluations' systems most.

    Args:
        engine: engine of Yarus's own database.
        a, b: evaluation ids, or their beginnings or ends.
        metric: a metric of rankings.

    Raises:
        InputError: an evaluation does not exist or has no rankings, the tiers or sources differ, or the metric does not
            measure rankings.
    """
    declared = METRICS.get(metric)
    if declared is None or not declared.of_relevance or declared.column is None:
        raise InputError("{metric!r} says nothing of rankings; name one such as ndcg@10 or hit_rate@1", metric=metric)
    first, second = (journal.find_evaluation(engine, name) for name in (a, b))
    sides = _load_cases(first), _load_cases(second)
    if _comparison_key(first) != _comparison_key(second):
        raise InputError(
            "{first} and {second} are not of one tier, source and unit: nothing to compare",
            first=first["id"],
            second=second["id"],
        )
    relevance = majority_relevance(load_result_labels(engine, first["source"]))
    questions = [_merge_cases(case, sides[1][name], relevance) for name, case in sides[0].items() if name in sides[1]]
    if not questions:
        raise InputError(
            "{first} and {second} have no question in common that both have measured",
            first=first["id"],
            second=second["id"],
        )
    depths = EvaluationConfig.of(first).k, EvaluationConfig.of(second).k
    unchanged = [_Flip(row, None) for row in range(len(questions))]
    flips = [_Flip(row, name) for row, candidate in enumerate(questions) for name in candidate.unjudged]
    before, after = (
        [_metric_values(questions, side, changes, declared.column, depths[side]) for side in (0, 1)]
        for changes in (unchanged, flips)
    )
    rows = np.array([flip.row for flip in flips], dtype=np.intp)
    effects = np.round(np.abs((after[1] - after[0]) - (before[1] - before[0])[rows]) / len(questions), 12)
    margins = [_distance_to_boundary(questions[flip.row], str(flip.result)) for flip in flips]
    order = sorted(np.flatnonzero(effects).tolist(), key=lambda index: (-effects[index], margins[index], flips[index]))
    source = first["source"]
    return {
        "a": first["id"],
        "b": second["id"],
        "metric": declared.name,
        "value_a": float(before[0].mean()),
        "value_b": float(before[1].mean()),
        "unjudged": len(order),
        "results": [
            _result_to_label(source, questions[flips[index].row], flips[index], float(effects[index]))
            for index in order[:MAX_SUGGESTIONS]
        ],
    }


def _comparison_key(row: RowMapping) -> tuple[str, str, str]:
    return row["tier"], row["source"], EvaluationConfig.of(row).unit


def _load_cases(row: RowMapping) -> dict[str, Case]:
    """Return the measured cases of an evaluation with a pool each: the judge's pool, or one of ranking and labels.

    Raises:
        InputError: it has no rankings, or its corpus has duplicates whose labels only a judge's pool combines.
    """
    config = EvaluationConfig.of(row)
    if not row["parquet"] or config.retriever is None or config.k is None:
        raise InputError(
            "evaluation {id} ({tier}, {state}) has no rankings", id=row["id"], tier=row["tier"], state=row["state"]
        )
    if not has_llm_labels(row) and any(note["note"].startswith("twin ") for note in config.notes):
        raise InputError(
            "evaluation {id}: its corpus has twins, whose labels count as one, which is known only of evaluations "
            "with --labels llm, or --merge-duplicates false",
            id=row["id"],
        )
    cases = result_files.read_results(row["parquet"], CASE_COLUMNS)
    judgements_by_case = grades_by_id(cases, NO_DUPLICATES)
    texts = judged_passages(cases) if "pooled" in cases.column_names else [dict[str, str]() for _ in judgements_by_case]
    cases_by_id = {}
    for case, labels, passages in zip(cases.to_pylist(), judgements_by_case, texts, strict=True):
        if case["status"] in MEASURED_STATUSES and case["retrieved"] is not None:
            case["pool"] = case.get("pooled") or _build_pool(
                case["retrieved"], {str(result): grade > 0 for result, grade in labels.items()}
            )
            case["passages"] = passages
            cases_by_id[case["case_id"]] = case
    return cases_by_id


def _build_pool(ranking: Sequence[str], labels: Mapping[str, bool]) -> Pool:
    ranks = {name: rank for rank, name in enumerate(ranking, start=1)}
    return [
        {"result": name, "rank": ranks.get(name), "label": labels.get(name), "grade": None}
        for name in dict.fromkeys([*ranking, *labels])
    ]


def _merge_cases(a: Case, b: Case, relevance_by_text: Mapping[str, bool]) -> _Question:
    pools = a["pool"], b["pool"]
    by_result = {result["result"]: result for pool in pools for result in pool}
    judged = [result for pool in pools for result in pool if result["label"] is not None or result["grade"] is not None]
    by_result |= {result["result"]: result for result in judged}  # prefer results with a label or grade
    passages = a["passages"] | b["passages"]
    relevance, unjudged = {}, []
    for name, result in by_result.items():
        people = relevance_by_text.get(text_digest(a["question"], passages[name])) if name in passages else None
        label = result["label"] if result["label"] is not None else people
        if label is None:
            unjudged.append(name)
        # Unjudged results count as not relevant, as in the metrics.
        relevance[name] = (
            label if label is not None else result["grade"] is not None and result["grade"] >= MIN_ANSWERING_GRADE
        )
    ranks = _rank_by_result(pools[0]), _rank_by_result(pools[1])
    ranked = _with_ranks(by_result.values(), ranks[0]), _with_ranks(by_result.values(), ranks[1])
    return _Question(a["case_id"], a["question"], ranked, passages, relevance, unjudged if ranks[0] != ranks[1] else [])


def _with_ranks(pool: Iterable[PooledResult], ranks: Mapping[str, int]) -> Pool:
    return [{**result, "rank": ranks.get(result["result"])} for result in pool]


def _rank_by_result(pool: Pool) -> dict[str, int]:
    return {result["result"]: result["rank"] for result in pool if result["rank"] is not None}


def _metric_values(questions: Sequence[_Question], side: int, flips: Sequence[_Flip], column: str, k: int) -> Floats:
    """Return the metric of one side per flip: its question's value with one result changed."""
    values = [np.empty(0)]
    for start in range(0, len(flips), BATCH_SIZE):
        batch = flips[start : start + BATCH_SIZE]
        cases = make_cases(pooled=[questions[flip.row].pools[side] for flip in batch])
        relevance = [_flip_relevance(questions[flip.row].relevance, flip.result) for flip in batch]
        values.append(float_column(add_metrics(relabel_cases(cases, relevance), NO_DUPLICATES, k), column))
    return np.concatenate(values)


def _flip_relevance(relevance: Mapping[str, bool], result: str | None) -> Mapping[str, bool]:
    return relevance if result is None else {**relevance, result: not relevance[result]}


def _distance_to_boundary(question: _Question, result: str) -> float:
    """Return the distance of the judge's grade from the relevance boundary; 0 without a grade."""
    grade = next(pooled["grade"] for pooled in question.pools[0] if pooled["result"] == result)
    return 0.0 if grade is None else abs(grade - MIN_ANSWERING_GRADE + 0.5)


def _result_to_label(source: str, question: _Question, flip: _Flip, effect: float) -> ResultToLabel:
    result_a, result_b = (next(result for result in pool if result["result"] == flip.result) for pool in question.pools)
    return {
        "case_id": question.case_id,
        "question": mask_message(question.text, source),
        "result": result_a["result"],
        "passage": mask_message(question.passages[result_a["result"]], source)
        if result_a["result"] in question.passages
        else None,
        "rank_a": result_a["rank"],
        "rank_b": result_b["rank"],
        "grade": result_a["grade"],
        "effect": effect,
    }
