"""Means of LLM relevance labels, corrected by people's labels of some results."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine

from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.metrics.statistics.corrected import LabelledScores
from yarus.tasks.cases.table import float_column
from yarus.tasks.dataset.labelling.relevance.pools import Judgements, Pools, people_judgements
from yarus.tasks.dataset.labelling.relevance.result_order import (
    estimate_people_metrics,
    is_fully_judged,
    results_to_judge,
)
from yarus.tasks.evaluation.judge_standing import LABELLING_PROMPT


def find_complete_questions(
    pools: Pools, judgements: Sequence[Judgements], passed_over: frozenset[tuple[str, str]] = frozenset()
) -> list[int]:
    """Return the rows of drawn questions for which people have judged all required results.

    Each stratum contributes the first questions in sampling order, up to the first incomplete one, so that
    selection does not depend on the labels. Questions with a result that people could not decide are skipped.

    Args:
        pools: pools of the evaluation.
        judgements: judgements of people per case.
        passed_over: (case, result) pairs that people could not decide.
    """
    rows, waiting_strata = [], set[str]()
    for sampled in pools.order:
        if sampled.stratum in waiting_strata:
            continue
        case_id = pools.ids[sampled.row]
        needed = results_to_judge(pools.pools[sampled.row], judgements[sampled.row], whole=is_fully_judged(case_id))
        missing = next((result["result"] for result in needed if result["result"] not in judgements[sampled.row]), None)
        if missing is None:
            rows.append(sampled.row)
        elif (case_id, missing) not in passed_over:
            waiting_strata.add(sampled.stratum)
    return rows


def estimate_inputs(pools: Pools, labels: Sequence[Label]) -> dict[str, LabelledScores]:
    """Return column of a metric -> the judge's values for all questions and people's values for the sampled ones."""
    judgements = people_judgements(pools, labels)
    undecided = frozenset((label.case_id, label.result) for label in labels if label.value is None)
    rows = find_complete_questions(pools, judgements, undecided)
    names = [metric.column or "" for metric in pools.metrics]
    complete_counts = Counter(pools.strata[row] for row in rows)
    probabilities = np.array([complete_counts[stratum] / pools.sizes[stratum] or np.nan for stratum in pools.strata])
    cases = pools.cases.take(pa.array(rows, pa.int64()))
    people = estimate_people_metrics(cases, [judgements[row] for row in rows], 1 / probabilities[rows], names, pools.k)
    inputs = {}
    for name in names:
        values = np.full(len(pools.ids), np.nan)
        values[rows] = people[name]
        is_counted = np.ones(len(pools.ids), dtype=bool)
        inputs[name] = LabelledScores(
            float_column(pools.cases, name), values, probabilities, pools.group_names, is_counted, bounded=False
        )
    return inputs


def load_result_labels(engine: Engine, source: str) -> list[Label]:
    """Return all labels of results over a source, by all annotators and from all evaluations."""
    return store.read_labels_of_source(engine, source, LABELLING_PROMPT)
