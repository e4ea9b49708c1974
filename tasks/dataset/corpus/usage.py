"""Usage of the corpus: shares of retrieved chunks and pages, never retrieved and over-retrieved ones."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlalchemy.engine import RowMapping

from yarus.tasks.cases.privacy.pseudonyms import truncate_text
from yarus.tasks.cases.table import column_values
from yarus.tasks.dataset.corpus.corpus_schema import CorpusItem, CorpusUsage, RetrievalUsage
from yarus.tasks.dataset.corpus.question_log import QuestionLog, read_columns
from yarus.tasks.evaluation.config import EvaluationConfig

MAX_ITEMS = 20
OVER_USE_RATIO, MIN_USES = 3.0, 5
"""Over-retrieved items have at least this ratio to the mean number of questions of retrieved items, and this many."""
MAX_TEXT_CHARS = 120
Counts = NDArray[np.int64]


def measure_usage(log: QuestionLog, evaluations: list[RowMapping]) -> tuple[CorpusUsage, Counts]:
    """Return usage of chunks and pages by the number of questions that retrieved them in any evaluation.

    Args:
        log: log of the source.
        evaluations: evaluations with rankings, each with its own top k.

    Returns:
        The document, and (n chunks,) number of questions per chunk. Without evaluations the shares are None.
    """
    pages = list(dict.fromkeys(filter(None, log.pages.values())))
    page_numbers = {page: index for index, page in enumerate(pages)}
    page_by_chunk = np.array([page_numbers.get(page or "", -1) for page in log.pages.values()], dtype=np.int64)
    numbers: dict[str, int] = {}
    by_chunk, by_page = _Pairs(len(log.corpus.ids)), _Pairs(len(pages))
    evaluation_ids, depth, by_chunks = [], 0, False
    for row in evaluations:
        cases = read_columns(row, "question_id", "retrieved")
        if cases is None:
            continue
        evaluation_ids.append(row["id"])
        config = EvaluationConfig.of(row)
        depth = max(depth, config.k or 0)
        is_chunk = config.unit == "chunk"
        by_chunks |= is_chunk
        question_numbers, item_numbers = _retrieved_pairs(cases, log.corpus.ids if is_chunk else pages, numbers)
        if is_chunk:
            by_chunk.add(question_numbers, item_numbers)
        by_page.add(question_numbers, page_by_chunk[item_numbers] if is_chunk else item_numbers)
    chunk_uses, page_uses = by_chunk.counts(), by_page.counts()
    corpus_items: list[CorpusItem] = [
        {"id": chunk, "page": page, "text": truncate_text(" ".join(text.split()), MAX_TEXT_CHARS)}
        for (chunk, page), text in zip(log.pages.items(), log.corpus.texts, strict=True)
    ]
    document: CorpusUsage = {
        "evaluations": evaluation_ids,
        "k": depth or None,
        "n_questions": len(numbers),
        "reason": None if evaluation_ids else f"no evaluation has rankings yet: yarus run tier1 --source {log.name}",
        "chunks": _measure_items(chunk_uses, corpus_items, is_known=by_chunks),
        "pages": _measure_items(page_uses, [{"page": page} for page in pages], is_known=bool(evaluation_ids)),
    }
    return document, chunk_uses


class _Pairs:
    """Distinct (question, item) pairs."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._seen: Counts = np.zeros(0, dtype=np.int64)

    def add(self, questions: Counts, items: Counts) -> None:
        """Add pairs of a question and a retrieved item; -1 is not an item."""
        codes = questions[items >= 0] * self._items + items[items >= 0]
        self._seen = np.union1d(self._seen, codes)

    def counts(self) -> Counts:
        """Return the number of questions that retrieved each item."""
        return np.bincount(self._seen % self._items, minlength=self._items)


def _retrieved_pairs(cases: pa.Table, ids: list[str], numbers: dict[str, int]) -> tuple[Counts, Counts]:
    """Return the question and item numbers of all positions of all rankings; -1 for an unknown id."""
    rankings = cases["retrieved"].combine_chunks()
    for question in column_values(cases, "question_id"):
        numbers.setdefault(question, len(numbers))
    by_row = np.array([numbers[question] for question in column_values(cases, "question_id")], dtype=np.int64)
    item_indices = pc.index_in(pc.list_flatten(rankings), value_set=pa.array(ids, pa.string()))
    rows = pc.list_parent_indices(rankings).to_numpy()
    return by_row[rows], pc.fill_null(item_indices, -1).to_numpy().astype(np.int64)


def _measure_items(uses: Counts, items: list[CorpusItem], *, is_known: bool) -> RetrievalUsage:
    """Return total, retrieved items and their share, and examples of never retrieved and over-retrieved items."""
    if not is_known:
        return {
            "total": len(items),
            "retrieved": None,
            "share": None,
            "never_retrieved": [],
            "n_never_retrieved": None,
            "over_retrieved": [],
        }
    never_retrieved = np.flatnonzero(uses == 0)
    mean = float(uses[uses > 0].mean()) if (uses > 0).any() else 0.0
    overused = [item for item in np.argsort(-uses, kind="stable") if uses[item] >= max(MIN_USES, OVER_USE_RATIO * mean)]
    return {
        "total": len(items),
        "retrieved": len(items) - len(never_retrieved),
        "share": (len(items) - len(never_retrieved)) / len(items) if items else None,
        "n_never_retrieved": len(never_retrieved),
        "never_retrieved": [items[item] for item in never_retrieved[:MAX_ITEMS]],
        "over_retrieved": [
            {**items[item], "questions": int(uses[item]), "ratio_to_mean": float(uses[item] / mean)}
            for item in map(int, overused[:MAX_ITEMS])
        ],
    }
