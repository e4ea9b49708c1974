"""How the corpus is used: the share of chunks and pages that were ever retrieved, the dead and the over-used ones."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlalchemy.engine import RowMapping

from yarus.tasks.cases.privacy.pseudonyms import cut
from yarus.tasks.cases.table import values_of
from yarus.tasks.dataset.corpus.corpus_schema import CorpusItem, Usage, Utilisation
from yarus.tasks.dataset.corpus.question_log import Log, columns_of
from yarus.tasks.evaluation.config import EvaluationConfig

SHOWN = 20
OVER_USED, FEWEST = 3.0, 5
"""Over-used: retrieved for so many times as many questions as a retrieved one on average, and for so many at least."""
WORDS = 120
Counts = NDArray[np.int64]


def utilisation(log: Log, evaluations: list[RowMapping]) -> tuple[Utilisation, Counts]:
    """Chunks and pages by how many questions they were retrieved for, in any of the evaluations.

    Args:
        log: the source.
        evaluations: with rankings; each in its own top k.

    Returns:
        The document, and (n chunks,) the number of questions of each chunk. Without evaluations the shares are None.
    """
    pages = list(dict.fromkeys(filter(None, log.pages.values())))
    place = {page: number for number, page in enumerate(pages)}
    page_of = np.array([place.get(page or "", -1) for page in log.pages.values()], dtype=np.int64)
    numbers: dict[str, int] = {}
    by_chunk, by_page = _Pairs(len(log.corpus.ids)), _Pairs(len(pages))
    used, depth, by_chunks = [], 0, False
    for row in evaluations:
        cases = columns_of(row, "question_id", "retrieved")
        if cases is None:
            continue
        used.append(row["id"])
        config = EvaluationConfig.of(row)
        depth = max(depth, config.k or 0)
        is_chunk = config.unit == "chunk"
        by_chunks |= is_chunk
        asked, found = _retrieved(cases, log.corpus.ids if is_chunk else pages, numbers)
        if is_chunk:
            by_chunk.add(asked, found)
        by_page.add(asked, page_of[found] if is_chunk else found)
    chunk_uses, page_uses = by_chunk.counts(), by_page.counts()
    described: list[CorpusItem] = [
        {"id": chunk, "page": page, "text": cut(" ".join(text.split()), WORDS)}
        for (chunk, page), text in zip(log.pages.items(), log.corpus.texts, strict=True)
    ]
    document: Utilisation = {
        "evaluations": used,
        "k": depth or None,
        "n_questions": len(numbers),
        "reason": None if used else f"no evaluation has rankings yet: yarus run tier1 --source {log.name}",
        "chunks": _shares(chunk_uses, described, known=by_chunks),
        "pages": _shares(page_uses, [{"page": page} for page in pages], known=bool(used)),
    }
    return document, chunk_uses


class _Pairs:
    """Distinct (question, item) pairs."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._seen: Counts = np.zeros(0, dtype=np.int64)

    def add(self, questions: Counts, items: Counts) -> None:
        """Notes that each item was retrieved for the question beside it; -1 is no item."""
        codes = questions[items >= 0] * self._items + items[items >= 0]
        self._seen = np.union1d(self._seen, codes)

    def counts(self) -> Counts:
        """How many questions each item was retrieved for."""
        return np.bincount(self._seen % self._items, minlength=self._items)


def _retrieved(cases: pa.Table, ids: list[str], numbers: dict[str, int]) -> tuple[Counts, Counts]:
    """Question and item of every place of every ranking, as numbers; an id that is not there is -1."""
    rankings = cases["retrieved"].combine_chunks()
    for question in values_of(cases, "question_id"):
        numbers.setdefault(question, len(numbers))
    by_row = np.array([numbers[question] for question in values_of(cases, "question_id")], dtype=np.int64)
    found = pc.index_in(pc.list_flatten(rankings), value_set=pa.array(ids, pa.string()))
    rows = pc.list_parent_indices(rankings).to_numpy()
    return by_row[rows], pc.fill_null(found, -1).to_numpy().astype(np.int64)


def _shares(uses: Counts, described: list[CorpusItem], *, known: bool) -> Usage:
    """Total, retrieved ones and their share; the first dead ones and the most over-used ones."""
    if not known:
        return {"total": len(described), "retrieved": None, "share": None, "dead": [], "n_dead": None, "over_used": []}
    dead = np.flatnonzero(uses == 0)
    mean = float(uses[uses > 0].mean()) if (uses > 0).any() else 0.0
    over = [item for item in np.argsort(-uses, kind="stable") if uses[item] >= max(FEWEST, OVER_USED * mean)]
    return {
        "total": len(described),
        "retrieved": len(described) - len(dead),
        "share": (len(described) - len(dead)) / len(described) if described else None,
        "n_dead": len(dead),
        "dead": [described[item] for item in dead[:SHOWN]],
        "over_used": [
            {**described[item], "questions": int(uses[item]), "times": float(uses[item] / mean)}
            for item in map(int, over[:SHOWN])
        ],
    }
