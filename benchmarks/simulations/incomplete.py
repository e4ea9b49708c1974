"""Labels that are missing at random, or where retrieval is hard: is it seen? By a retriever's rankings of XQuAD-ru."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.simulations import Claim, counted
from yarus.db.importers import squad
from yarus.metrics.statistics.corrected import Bools
from yarus.metrics.statistics.groups import Floats
from yarus.tasks.cases.rankings import score
from yarus.tasks.cases.table import table, with_columns
from yarus.tasks.config.settings import Settings
from yarus.tasks.evaluation.findings.incomplete import incomplete
from yarus.tasks.models.embedding.embedders import LEXICAL, embedders
from yarus.tasks.systems.retrievers.dense import Dense, unit_vectors
from yarus.tasks.systems.retrievers.protocol import Ranking

XQUAD = Path(__file__).parents[3] / "shared" / "data" / "xquad" / "xquad.ru.json"
SEEDS = 400
K = 10


def claims(effort: float) -> Iterator[Claim]:
    """How often labelled questions are called other than the rest. Nothing where XQuAD is not there."""
    if not XQUAD.exists():
        return
    cases = _ranked()
    found = np.asarray(cases["mrr"].to_numpy()) >= 1
    kept: dict[str, tuple[Floats, float, float]] = {
        "half of the labels dropped at random": (np.full(len(cases), 0.5), 0.0, 0.05),
        "a fifth of the labels kept, at random": (np.full(len(cases), 0.2), 0.0, 0.05),
        "labels dropped where retrieval is hard (kept 62 % and 20 %)": (np.where(found, 0.62, 0.2), 0.9, 1.0),
    }
    seeds = max(20, round(SEEDS * effort))
    for what, (chance, low, high) in kept.items():
        told = [_warned(cases, np.random.default_rng(seed).random(len(cases)) < chance) for seed in range(seeds)]
        yield counted(f"{what}: told that labelled questions are other than the rest", low, high, told)


def _warned(cases: pa.Table, labelled: Bools) -> bool:
    some = with_columns(
        cases,
        relevant=[of if has else [] for of, has in zip(cases["relevant"].to_pylist(), labelled, strict=True)],
        mrr=np.where(labelled, cases["mrr"].to_numpy(), np.nan),
    )
    questions = incomplete(some, ["mrr"])["questions"]
    return questions is not None and bool(questions["differ_in"])


def retrieved(ids: list[str], texts: list[str], questions: list[str], k: int) -> list[Ranking]:
    """What the lexical embedder finds."""
    of_questions, of_chunks = embedders(LEXICAL, Settings())
    retriever = Dense(ids, unit_vectors(of_chunks.encode(texts)), of_questions)
    return retriever.retrieve(questions, of_questions.encode(questions), k, timed=0)


@cache
def _ranked() -> pa.Table:
    """Every question with its ranking by the lexical embedder, scored."""
    read = squad.read(XQUAD)
    chunks = [row.values for row in read.chunks]
    asked = [row.values["question"] for row in read.questions]
    rankings = retrieved([chunk["id"] for chunk in chunks], [chunk["text"] for chunk in chunks], asked, K)
    cases = table(
        question=asked,
        group=[None] * len(asked),
        relevant=[row.values["relevant_chunk_ids"] for row in read.annotations],
        irrelevant=[[]] * len(asked),
        grades=[None] * len(asked),
        retrieved=[ranking.ids for ranking in rankings],
        distances=[ranking.distances for ranking in rankings],
    )
    return score(cases, {}, K)
