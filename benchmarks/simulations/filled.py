"""Labels that a judge fills up and people correct: do the intervals hold what all labels say? By XQuAD-ru."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.simulations import Claim
from benchmarks.simulations.incomplete import XQUAD, K
from db.importers import squad
from db.source_rows import Corpus
from db.stores.labels import Label
from metrics.statistics import mean_interval
from metrics.statistics.corrected import Bools
from metrics.statistics.groups import Floats
from metrics.table import METRICS
from tasks.cases.labels import NO_TWINS
from tasks.cases.pools import Pool, by_judge, seen, to_judge
from tasks.cases.rankings import distinct, score
from tasks.cases.table import floats, table
from tasks.config.settings import Settings
from tasks.dataset.twins import twins_of
from tasks.labelling.estimate import estimate_of
from tasks.labelling.relevance.estimate import known
from tasks.labelling.relevance.pools import Pools
from tasks.labelling.relevance.walk import is_whole, wanted
from tasks.models.embedders import LEXICAL, embedders
from tasks.retrievers.dense import Dense, unit_vectors

SEEDS, LABELS = 400, 100
SENSITIVITY, SPECIFICITY = 0.85, 0.95
MEASURED = tuple(METRICS[name] for name in ("hit_rate@1", "recall@10", "ndcg@10"))


class World(NamedTuple):
    """Every question of XQuAD-ru with its ranking and the truth."""

    questions: list[str]
    rankings: list[list[str]]
    relevant: list[str]
    true: dict[str, float]
    """Metric -> its value by all labels."""


class Measured(NamedTuple):
    """A metric by one seed."""

    holds: bool
    width: float
    raw_holds: bool
    raw: float
    judged: float


def claims(effort: float) -> Iterator[Claim]:
    """How often the corrected intervals hold the values by all labels. Nothing where XQuAD is not there."""
    if not XQUAD.exists():
        return
    world = _world()
    first = np.array([ranking[0] == of for ranking, of in zip(world.rankings, world.relevant, strict=True)])
    dropped = {
        "half of the labels dropped at random": np.full(len(first), 0.5),
        "labels dropped where retrieval is hard (kept 62 % and 20 %)": np.where(first, 0.62, 0.2),
    }
    seeds = max(10, round(SEEDS * effort))
    for what, chance in dropped.items():
        found = [_measured(world, chance, seed) for seed in range(seeds)]
        for metric in MEASURED:
            of = [one[metric.name] for one in found]
            yield Claim(
                f"{what}: {metric.name} corrected by {LABELS} labels of people", 0.93, 1.0, _share(of, "holds"), seeds
            )
        raw = [one["hit_rate@1"] for one in found]
        fails = np.ptp(chance) > 0
        yield Claim(
            f"{what}: hit_rate@1 by the labels that are left",
            *((0.0, 0.1) if fails else (0.93, 1.0)),
            _share(raw, "raw_holds"),
            seeds,
        )


def _share(of: list[Measured], name: str) -> float:
    return float(np.mean([getattr(one, name) for one in of]))


def _measured(world: World, chance: Floats, seed: int) -> dict[str, Measured]:
    rng = np.random.default_rng(seed)
    of = _judged(world, rng.random(len(chance)) < chance, rng, seed)
    by_column = known(of, _by_people(of, world))
    labelled = np.array([any(one["label"] for one in pool) for pool in of.pools])
    raw = score(seen(of.cases, [_by_labels(pool) for pool in of.pools]), NO_TWINS, K)
    found = {}
    for metric in MEASURED:
        estimate, true = estimate_of(by_column[metric.name]), world.true[metric.name]
        low, high = estimate["ci_low"], estimate["ci_high"]
        if low is None or high is None:
            raise ValueError("no interval from so many labels")
        values = np.where(labelled, floats(raw, metric.name), np.nan)
        raw_low, raw_high = mean_interval(values, seed=0, low=0.0, high=1.0)
        found[metric.name] = Measured(
            low <= true <= high,
            high - low,
            raw_low <= true <= raw_high,
            float(np.nanmean(values)),
            estimate["judge_value"],
        )
    return found


def _by_labels(pool: Pool) -> dict[str, bool]:
    return {one["result"]: bool(one["label"]) for one in pool}


def _judged(world: World, labelled: Bools, rng: np.random.Generator, seed: int) -> Pools:
    """An evaluation whose labels a judge has filled up that errs as it should."""
    pools: list[Pool] = []
    for ranking, relevant, has_label in zip(world.rankings, world.relevant, labelled, strict=True):
        pool: Pool = []
        for rank, (result, luck) in enumerate(zip(ranking, rng.random(len(ranking)), strict=True), start=1):
            yes = result == relevant
            grade = 3 * int(yes == (luck < (SENSITIVITY if yes else SPECIFICITY)))
            label = True if yes and has_label else None
            pool.append(
                {
                    "result": result,
                    "rank": rank,
                    "label": label,
                    "grade": grade if label is None else None,
                }
            )
        if has_label and relevant not in ranking:
            pool.append({"result": relevant, "rank": None, "label": True, "grade": None})
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
    return Pools(f"tier1-{seed}", str(seed), "tier1", "judge", K, MEASURED, scored)


def _by_people(of: Pools, world: World) -> list[Label]:
    """The truth of the first results that people are asked about."""
    labels: list[Label] = []
    for one in of.order:
        name, relevant, said = of.ids[one.row], world.relevant[one.row], dict[str, bool]()
        for result in wanted(of.pools[one.row], said, whole=is_whole(name)):
            if len(labels) == LABELS:
                return labels
            said[result["result"]] = result["result"] == relevant
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
    of_questions, of_chunks = embedders(LEXICAL, Settings())
    retriever = Dense(ids, unit_vectors(of_chunks.encode(texts)), of_questions)
    found = retriever.retrieve(asked, of_questions.encode(asked), 2 * K, timed=0)
    rankings = [distinct(ranking.ids, twins)[:K] for ranking in found]
    relevant = [row.values["relevant_chunk_ids"][0] for row in read.annotations]
    relevant = [twins.get(name, name) for name in relevant]
    n = len(asked)
    cases = table(
        retrieved=rankings, relevant=[[name] for name in relevant], irrelevant=[[]] * n, grades=[None] * n
    )  # fmt: skip
    scored: pa.Table = score(cases, NO_TWINS, K)
    return World(
        asked, rankings, relevant, {metric.name: float(floats(scored, metric.name).mean()) for metric in MEASURED}
    )
