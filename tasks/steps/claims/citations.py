"""Scoring citations: are the named pages there, do they hold the answer's facts, do they support what it says?"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict

from yarus.metrics import facts
from yarus.metrics.claims import citation_known, citation_precision, citation_recall
from yarus.tasks.cases.table import Case, with_columns
from yarus.tasks.cases.text import BETWEEN
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_texts
from yarus.tasks.steps.claims.facts import blanked
from yarus.tasks.steps.claims.pages import Named, hosts_of, label, links, named_pages

Floats = np.ndarray[Any, np.dtype[np.float64]]


def score_citations(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the pages that the system names and the metrics of citations, those of the judge where he was asked."""
    texts = read_texts(run)
    rows = cases.to_pylist()
    hosts = hosts_of(texts)
    named = [named_pages(row, texts, hosts) for row in rows]
    matrices = [_supports(row, pages) for row, pages in zip(rows, named, strict=True)]
    cases = with_columns(
        cases,
        citations=[
            None if pages is None else [_stored(page, number, matrix) for number, page in enumerate(pages)]
            for pages, matrix in zip(named, matrices, strict=True)
        ],
        citation_known=citation_known(
            [None if pages is None else [page.text is not None for page in pages] for pages in named]
        ),
        citation_fact_precision=_fact_precision(rows, named),
    )
    if run.config.citations is None:
        return cases
    return with_columns(
        cases, citation_precision=citation_precision(matrices), citation_recall=citation_recall(matrices)
    )


def _fact_precision(rows: Sequence[Case], named: Sequence[list[Named] | None]) -> Floats:
    """Share of the answers' own facts that stand on the named pages, where all of these are there and whole; the
    addresses of pages are no facts that these should hold.
    """
    whole = [
        BETWEEN.join(page.text or "" for page in pages)
        if pages and not any(page.text is None or page.cut for page in pages)
        else None
        for pages in named
    ]
    asides = [BETWEEN.join((row["question"], *links(row["answer"] or ""))) for row in rows]
    answers = blanked(row["answer"] for row in rows)
    return facts.shares(facts.held_against(answers, whole, aside=asides))


def _supports(case: Case, pages: list[Named] | None) -> Floats | None:
    """(statements, pages): what the judge has found; NaN without a verdict, and of pages that he has not read."""
    said = case.get("claims")
    if pages is None or said is None:
        return None
    statements = [one["supported_by"] for one in said if one["of"] == "answer"]
    found = np.full((len(statements), len(pages)), np.nan)
    for row, by in enumerate(statements):
        for column, page in enumerate(pages):
            if by is not None and page.text is not None and not page.cut:
                found[row, column] = float(label(column) in by)
    return found


class StoredCitation(TypedDict):
    """A page that the system names, as it is kept with the case."""

    page: str
    in_corpus: bool
    retrieved: bool
    supports: bool | None


def _stored(page: Named, number: int, supports: Floats | None) -> StoredCitation:
    column = np.empty(0) if supports is None else supports[:, number]
    known = column[~np.isnan(column)]
    right = True if (known == 1).any() else None if not known.size or len(known) < len(column) else False
    return {"page": page.id, "in_corpus": page.text is not None, "retrieved": page.retrieved, "supports": right}
