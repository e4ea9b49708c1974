"""Labels filled by a judge and corrected by people: whether intervals contain the values by all labels, on XQuAD-ru."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.simulations import Claim, share_claim
from benchmarks.simulations.incomplete import XQUAD, K, retrieve_lexically
from yarus.db.importers import squad
from yarus.db.source_rows import Corpus
from yarus.db.stores.labels import Label
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.corrected import BoolArray
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.table import METRICS
from yarus.tasks.cases.labels import NO_DUPLICATES
from yarus.tasks.cases.rankings import (
    Pool,
    add_metrics,
    merge_duplicates,
    needs_judgement,
    relabel_cases,
    relevance_by_judge,
)
from yarus.tasks.cases.table import float_column, make_cases
from yarus.tasks.dataset.duplicates import duplicate_representatives
from yarus.tasks.dataset.labelling.estimate import estimate_from_labelled
from yarus.tasks.dataset.labelling.relevance.estimate import estimate_inputs
from yarus.tasks.dataset.labelling.relevance.pools import Pools
from yarus.tasks.dataset.labelling.relevance.result_order import is_fully_judged, results_to_judge

SEEDS, LABELS, MORE_LABELS = 400, 100, 300
SENSITIVITY, SPECIFICITY = 0.85, 0.95
MEASURED = tuple(METRICS[name] for name in ("hit_rate@1", "recall@10", "ndcg@10"))


class World(NamedTuple):
    """Questions with their rankings and the truth."""

    questions: list[str]
    rankings: list[list[str]]
    relevant: list[list[str]]
    """Relevant ids by question, of which the first may be labelled."""
    true: dict[str, float]
    """Metric -> its value by all labels."""


class Measured(NamedTuple):
    """A metric of one seed: whether the corrected interval and that by the labels alone contain the truth."""

    holds: bool
    raw_holds: bool


def claims(effort: float) -> Iterator[Claim]:
    """Yield the coverage of corrected intervals of the values by all labels; nothing without XQuAD."""
    if not XQUAD.exists():
        return
    world = _build_world()
    first = np.array([ranking[0] in relevant for ranking, relevant in zip(world.rankings, world.relevant, strict=True)])
    half, hard = np.full(len(first), 0.5), np.where(first, 0.62, 0.2)
    seeds = max(10, round(SEEDS * effort))
    for what, probabilities, labels in (
        ("half of the labels dropped at random", half, LABELS),
        ("labels dropped where retrieval is hard (kept 62 % and 20 %)", hard, LABELS),
    ):
        results = _measure_seeds(world, probabilities, labels, seeds)
        yield from _coverage_claims(f"{what}, {labels} results judged by people", results)
        raw = 0.0 if probabilities is hard else 0.93
        by_rest = [by_metric["hit_rate@1"].raw_holds for by_metric in results]
        yield share_claim(f"{what}: hit_rate@1 by the labels that are left", raw, raw + 0.07, by_rest)
    results = _measure_seeds(_build_wide_world(), half, MORE_LABELS, seeds)
    yield from _coverage_claims(
        f"four relevant results a question, half of the questions with one label, {MORE_LABELS} judged", results
    )


def _measure_seeds(world: World, probabilities: Floats, labels: int, seeds: int) -> list[dict[str, Measured]]:
    """Return the results by seed, without seeds whose estimates are undefined."""
    results = (_measure(world, probabilities, labels, seed) for seed in range(seeds))
    return [result for result in results if result is not None]


def _coverage_claims(what: str, results: list[dict[str, Measured]]) -> Iterator[Claim]:
    for metric in MEASURED:
        yield share_claim(f"{what}: {metric.name} corrected", 0.93, 1.0, [row[metric.name].holds for row in results])


def _measure(world: World, probabilities: Floats, labels: int, seed: int) -> dict[str, Measured] | None:
    rng = np.random.default_rng(seed)
    judged = _judge_pools(world, rng.random(len(probabilities)) < probabilities, rng, seed)
    by_column = estimate_inputs(judged, _label_by_people(judged, world, labels))
    is_labelled = np.array([any(result["label"] for result in pool) for pool in judged.pools])
    raw = add_metrics(relabel_cases(judged.cases, [_by_labels(pool) for pool in judged.pools]), NO_DUPLICATES, K)
    measured = {}
    for metric in MEASURED:
        estimate, true = estimate_from_labelled(by_column[metric.name]), world.true[metric.name]
        low, high = estimate["ci_low"], estimate["ci_high"]
        if low is None or high is None:  # too few questions were judged completely: more labels are needed
            return None
        raw_low, raw_high = mean_interval(
            np.where(is_labelled, float_column(raw, metric.name), np.nan), seed=0, low=0.0, high=1.0
        )
        measured[metric.name] = Measured(low <= true <= high, raw_low <= true <= raw_high)
    return measured


def _by_labels(pool: Pool) -> dict[str, bool]:
    return {result["result"]: bool(result["label"]) for result in pool}


def _judge_pools(world: World, is_labelled: BoolArray, rng: np.random.Generator, seed: int) -> Pools:
    """Return an evaluation whose labels were filled by a judge with the given error rates."""
    pools: list[Pool] = []
    for ranking, relevant, has_label in zip(world.rankings, world.relevant, is_labelled, strict=True):
        pool: Pool = []
        for rank, (result, luck) in enumerate(zip(ranking, rng.random(len(ranking)), strict=True), start=1):
            is_relevant = result in relevant
            grade = 3 * int(is_relevant == (luck < (SENSITIVITY if is_relevant else SPECIFICITY)))
            label = True if has_label and result == relevant[0] else None
            pool.append(
                {
                    "result": result,
                    "rank": rank,
                    "label": label,
                    "grade": grade if label is None else None,
                }
            )
        if has_label and relevant[0] not in ranking:
            pool.append({"result": relevant[0], "rank": None, "label": True, "grade": None})
        pools.append(pool)
    n = len(pools)
    cases = make_cases(
        case_id=[f"{seed}:{number}" for number in range(n)],
        question=world.questions,
        group=[None] * n,
        pooled=pools,
        passages=[[result["result"] if needs_judgement(result) else None for result in pool] for pool in pools],
    )
    scored = add_metrics(relabel_cases(cases, [relevance_by_judge(pool) for pool in pools]), NO_DUPLICATES, K)
    return Pools(f"tier1-{seed}", str(seed), "tier1", "judge", scored, K, MEASURED)


def _label_by_people(pools: Pools, world: World, most: int) -> list[Label]:
    """Return the true labels of the first results that people are asked about."""
    labels: list[Label] = []
    for entry in pools.order:
        name, relevant, labels_of_question = pools.ids[entry.row], world.relevant[entry.row], dict[str, bool]()
        for result in results_to_judge(pools.pools[entry.row], labels_of_question, whole=is_fully_judged(name)):
            if len(labels) == most:
                return labels
            labels_of_question[result["result"]] = result["result"] in relevant
            labels.append(pools.label(entry.row, result, "anna", float(labels_of_question[result["result"]]), None))
    return labels


@cache
def _build_world() -> World:
    """Build the world of the lexical embedder, with a fifth of the paragraphs duplicated under ids that sort first."""
    source = squad.read_squad(XQUAD)
    chunks = [row.values for row in source.chunks]
    duplicated = np.random.default_rng(0).choice(len(chunks), len(chunks) // 5, replace=False)
    ids = [*(f"0-{chunks[number]['id']}" for number in duplicated), *(chunk["id"] for chunk in chunks)]
    texts = [*(chunks[number]["text"] for number in duplicated), *(chunk["text"] for chunk in chunks)]
    twins = duplicate_representatives(Corpus(ids, list(ids), texts, None), "chunk")
    questions = [row.values["question"] for row in source.questions]
    rankings = [merge_duplicates(hits.ids, twins)[:K] for hits in retrieve_lexically(ids, texts, questions, 2 * K)]
    labels = [row.values["relevant_chunk_ids"][0] for row in source.annotations]
    return _with_truth(questions, rankings, [[twins.get(name, name)] for name in labels])


@cache
def _build_wide_world() -> World:
    """Build a world with as many questions, whose first ten results may be relevant, the first ones more often."""
    rng = np.random.default_rng(7)
    n = len(_build_world().questions)
    probabilities = np.clip(rng.beta(1.2, 1.8, (n, 1)) * np.linspace(1.5, 0.5, K), 0, 0.95)
    rankings = [[f"{number}-{position}" for position in range(K)] for number in range(n)]
    relevant = [
        [name for name, is_relevant in zip(ranking, row, strict=True) if is_relevant] or [f"{number}-none"]
        for number, (ranking, row) in enumerate(zip(rankings, rng.random((n, K)) < probabilities, strict=True))
    ]
    return _with_truth([str(number) for number in range(n)], rankings, relevant)


def _with_truth(questions: list[str], rankings: list[list[str]], relevant: list[list[str]]) -> World:
    n = len(questions)
    cases = make_cases(retrieved=rankings, relevant=relevant, irrelevant=[[]] * n, grades=[None] * n)
    scored = add_metrics(cases, NO_DUPLICATES, K)
    return World(
        questions, rankings, relevant, {row.name: float(float_column(scored, row.name).mean()) for row in MEASURED}
    )
