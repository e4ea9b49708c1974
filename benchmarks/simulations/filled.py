"""Labels that a judge fills up and people correct: do the intervals hold what all labels say? By XQuAD-ru."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.simulations import Claim, counted
from benchmarks.simulations.incomplete import XQUAD, K, retrieved
from yarus.db.importers import squad
from yarus.db.source_rows import Corpus
from yarus.db.stores.labels import Label
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.corrected import Bools
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.table import METRICS
from yarus.tasks.cases.labels import NO_TWINS
from yarus.tasks.cases.rankings import Pool, by_judge, distinct, score, seen, to_judge
from yarus.tasks.cases.table import floats, table
from yarus.tasks.dataset.duplicates import twins_of
from yarus.tasks.dataset.labelling.estimate import estimate_of
from yarus.tasks.dataset.labelling.relevance.estimate import known
from yarus.tasks.dataset.labelling.relevance.pools import Pools
from yarus.tasks.dataset.labelling.relevance.walk import is_whole, wanted

SEEDS, LABELS, MORE_LABELS = 400, 100, 300
SENSITIVITY, SPECIFICITY = 0.85, 0.95
MEASURED = tuple(METRICS[name] for name in ("hit_rate@1", "recall@10", "ndcg@10"))


class World(NamedTuple):
    """Questions with their rankings and the truth."""

    questions: list[str]
    rankings: list[list[str]]
    relevant: list[list[str]]
    """Of the labelled questions, the first is labelled."""
    true: dict[str, float]
    """Metric -> its value by all labels."""


class Measured(NamedTuple):
    """A metric by one seed: whether the corrected interval and that by the labels alone hold the truth."""

    holds: bool
    raw_holds: bool


def claims(effort: float) -> Iterator[Claim]:
    """How often the corrected intervals hold the values by all labels. Nothing where XQuAD is not there."""
    if not XQUAD.exists():
        return
    world = _world()
    first = np.array([ranking[0] in of for ranking, of in zip(world.rankings, world.relevant, strict=True)])
    half, hard = np.full(len(first), 0.5), np.where(first, 0.62, 0.2)
    seeds = max(10, round(SEEDS * effort))
    for what, chance, labels in (
        ("half of the labels dropped at random", half, LABELS),
        ("labels dropped where retrieval is hard (kept 62 % and 20 %)", hard, LABELS),
    ):
        found = _all_measured(world, chance, labels, seeds)
        yield from _held(f"{what}, {labels} results judged by people", found)
        raw = 0.0 if chance is hard else 0.93
        by_rest = [of["hit_rate@1"].raw_holds for of in found]
        yield counted(f"{what}: hit_rate@1 by the labels that are left", raw, raw + 0.07, by_rest)
    found = _all_measured(_many(), half, MORE_LABELS, seeds)
    yield from _held(
        f"four relevant results a question, half of the questions with one label, {MORE_LABELS} judged", found
    )


def _all_measured(world: World, chance: Floats, labels: int, seeds: int) -> list[dict[str, Measured]]:
    """By seed; those of which nothing is known yet are left out."""
    every = (_measured(world, chance, labels, seed) for seed in range(seeds))
    return [one for one in every if one is not None]


def _held(what: str, found: list[dict[str, Measured]]) -> Iterator[Claim]:
    for metric in MEASURED:
        yield counted(f"{what}: {metric.name} corrected", 0.93, 1.0, [of[metric.name].holds for of in found])


def _measured(world: World, chance: Floats, labels: int, seed: int) -> dict[str, Measured] | None:
    rng = np.random.default_rng(seed)
    of = _judged(world, rng.random(len(chance)) < chance, rng, seed)
    by_column = known(of, _by_people(of, world, labels))
    labelled = np.array([any(one["label"] for one in pool) for pool in of.pools])
    raw = score(seen(of.cases, [_by_labels(pool) for pool in of.pools]), NO_TWINS, K)
    found = {}
    for metric in MEASURED:
        estimate, true = estimate_of(by_column[metric.name]), world.true[metric.name]
        low, high = estimate["ci_low"], estimate["ci_high"]
        if low is None or high is None:  # too few questions were judged as a whole: one must go on
            return None
        raw_low, raw_high = mean_interval(
            np.where(labelled, floats(raw, metric.name), np.nan), seed=0, low=0.0, high=1.0
        )
        found[metric.name] = Measured(low <= true <= high, raw_low <= true <= raw_high)
    return found


def _by_labels(pool: Pool) -> dict[str, bool]:
    return {one["result"]: bool(one["label"]) for one in pool}


def _judged(world: World, labelled: Bools, rng: np.random.Generator, seed: int) -> Pools:
    """An evaluation whose labels a judge has filled up that errs as it should."""
    pools: list[Pool] = []
    for ranking, relevant, has_label in zip(world.rankings, world.relevant, labelled, strict=True):
        pool: Pool = []
        for rank, (result, luck) in enumerate(zip(ranking, rng.random(len(ranking)), strict=True), start=1):
            yes = result in relevant
            grade = 3 * int(yes == (luck < (SENSITIVITY if yes else SPECIFICITY)))
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
    cases = table(
        case_id=[f"{seed}:{number}" for number in range(n)],
        question=world.questions,
        group=[None] * n,
        pooled=pools,
        passages=[[one["result"] if to_judge(one) else None for one in pool] for pool in pools],
    )
    scored = score(seen(cases, [by_judge(pool) for pool in pools]), NO_TWINS, K)
    return Pools(f"tier1-{seed}", str(seed), "tier1", "judge", scored, K, MEASURED)


def _by_people(of: Pools, world: World, most: int) -> list[Label]:
    """The truth of the first results that people are asked about."""
    labels: list[Label] = []
    for one in of.order:
        name, relevant, said = of.ids[one.row], world.relevant[one.row], dict[str, bool]()
        for result in wanted(of.pools[one.row], said, whole=is_whole(name)):
            if len(labels) == most:
                return labels
            said[result["result"]] = result["result"] in relevant
            labels.append(of.label(one.row, result, "anna", float(said[result["result"]]), None))
    return labels


@cache
def _world() -> World:
    """By the lexical embedder, where a fifth of the paragraphs stands there twice under ids that sort first."""
    read = squad.read(XQUAD)
    chunks = [row.values for row in read.chunks]
    again = np.random.default_rng(0).choice(len(chunks), len(chunks) // 5, replace=False)
    ids = [*(f"0-{chunks[number]['id']}" for number in again), *(chunk["id"] for chunk in chunks)]
    texts = [*(chunks[number]["text"] for number in again), *(chunk["text"] for chunk in chunks)]
    twins = twins_of(Corpus(ids, list(ids), texts, None), "chunk")
    asked = [row.values["question"] for row in read.questions]
    rankings = [distinct(ranking.ids, twins)[:K] for ranking in retrieved(ids, texts, asked, 2 * K)]
    labels = [row.values["relevant_chunk_ids"][0] for row in read.annotations]
    return _true(asked, rankings, [[twins.get(name, name)] for name in labels])


@cache
def _many() -> World:
    """As many questions, of whose first ten results any may be relevant, the first rather than the last."""
    rng = np.random.default_rng(7)
    n = len(_world().questions)
    chance = np.clip(rng.beta(1.2, 1.8, (n, 1)) * np.linspace(1.5, 0.5, K), 0, 0.95)
    rankings = [[f"{number}-{place}" for place in range(K)] for number in range(n)]
    relevant = [
        [name for name, yes in zip(ranking, row, strict=True) if yes] or [f"{number}-none"]
        for number, (ranking, row) in enumerate(zip(rankings, rng.random((n, K)) < chance, strict=True))
    ]
    return _true([str(number) for number in range(n)], rankings, relevant)


def _true(questions: list[str], rankings: list[list[str]], relevant: list[list[str]]) -> World:
    n = len(questions)
    cases = table(retrieved=rankings, relevant=relevant, irrelevant=[[]] * n, grades=[None] * n)
    scored = score(cases, NO_TWINS, K)
    return World(questions, rankings, relevant, {of.name: float(floats(scored, of.name).mean()) for of in MEASURED})
