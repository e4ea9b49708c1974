"""Labels missing at random or where retrieval is hard: whether it is detected, with rankings of XQuAD-ru."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.simulations import Claim, share_claim
from yarus.db.importers import squad
from yarus.metrics.statistics.corrected import BoolArray
from yarus.metrics.statistics.groups import Floats
from yarus.tasks.cases.rankings import add_metrics
from yarus.tasks.cases.table import make_cases, set_columns
from yarus.tasks.config.settings import Settings
from yarus.tasks.evaluation.findings.incomplete import find_incomplete_labels
from yarus.tasks.models.embedding.embedders import LEXICAL, get_embedder_pair
from yarus.tasks.systems.retrievers.dense import DenseRetriever, normalise_vectors
from yarus.tasks.systems.retrievers.protocol import Ranking

XQUAD = Path(__file__).parents[3] / "shared" / "data" / "xquad" / "xquad.ru.json"
SEEDS = 400
K = 10


def claims(effort: float) -> Iterator[Claim]:
    """Yield how often labelled questions are called different from the rest; nothing without XQuAD."""
    if not XQUAD.exists():
        return
    cases = _rank_questions()
    is_hit = np.asarray(cases["mrr"].to_numpy()) >= 1
    settings: dict[str, tuple[Floats, float, float]] = {
        "half of the labels dropped at random": (np.full(len(cases), 0.5), 0.0, 0.05),
        "a fifth of the labels kept, at random": (np.full(len(cases), 0.2), 0.0, 0.05),
        "labels dropped where retrieval is hard (kept 62 % and 20 %)": (np.where(is_hit, 0.62, 0.2), 0.9, 1.0),
    }
    seeds = max(20, round(SEEDS * effort))
    for what, (share, low, high) in settings.items():
        warned = [_has_warning(cases, np.random.default_rng(seed).random(len(cases)) < share) for seed in range(seeds)]
        yield share_claim(f"{what}: told that labelled questions are other than the rest", low, high, warned)


def _has_warning(cases: pa.Table, labelled: BoolArray) -> bool:
    partly_labelled = set_columns(
        cases,
        relevant=[
            relevant if is_labelled else []
            for relevant, is_labelled in zip(cases["relevant"].to_pylist(), labelled, strict=True)
        ],
        mrr=np.where(labelled, cases["mrr"].to_numpy(), np.nan),
    )
    questions = find_incomplete_labels(partly_labelled, ["mrr"])["questions"]
    return questions is not None and bool(questions["differ_in"])


def retrieve_lexically(ids: list[str], texts: list[str], questions: list[str], k: int) -> list[Ranking]:
    """Return the rankings of the lexical embedder."""
    question_embedder, chunk_embedder = get_embedder_pair(LEXICAL, Settings())
    retriever = DenseRetriever(ids, normalise_vectors(chunk_embedder.encode(texts)), question_embedder)
    return retriever.retrieve(questions, question_embedder.encode(questions), k, timed=0)


@cache
def _rank_questions() -> pa.Table:
    """Return every question with its ranking by the lexical embedder, scored."""
    source = squad.read_squad(XQUAD)
    chunks = [row.values for row in source.chunks]
    questions = [row.values["question"] for row in source.questions]
    rankings = retrieve_lexically([chunk["id"] for chunk in chunks], [chunk["text"] for chunk in chunks], questions, K)
    cases = make_cases(
        question=questions,
        group=[None] * len(questions),
        relevant=[row.values["relevant_chunk_ids"] for row in source.annotations],
        irrelevant=[[]] * len(questions),
        grades=[None] * len(questions),
        retrieved=[ranking.ids for ranking in rankings],
        distances=[ranking.distances for ranking in rankings],
    )
    return add_metrics(cases, {}, K)
