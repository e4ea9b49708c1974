"""Score citations: whether named pages exist, contain the answer's facts, and support its statements."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict

from yarus.metrics import facts
from yarus.metrics.claims import citation_known, citation_precision, citation_recall
from yarus.tasks.cases.table import Case, set_columns
from yarus.tasks.cases.text import CONTEXT_SEPARATOR
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import read_texts
from yarus.tasks.steps.claims.facts import blank_pseudonyms
from yarus.tasks.steps.claims.pages import NamedPage, find_links, find_named_pages, list_hosts, page_label

Floats = np.ndarray[Any, np.dtype[np.float64]]


def score_citations(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the pages that the system names and the metrics of citations, including the judge's if it was asked."""
    texts = read_texts(run)
    rows = cases.to_pylist()
    hosts = list_hosts(texts)
    pages_by_case = [find_named_pages(row, texts, hosts) for row in rows]
    matrices = [_support_verdicts(row, pages) for row, pages in zip(rows, pages_by_case, strict=True)]
    cases = set_columns(
        cases,
        citations=[
            None if pages is None else [_stored_citation(page, number, matrix) for number, page in enumerate(pages)]
            for pages, matrix in zip(pages_by_case, matrices, strict=True)
        ],
        citation_known=citation_known(
            [None if pages is None else [page.text is not None for page in pages] for pages in pages_by_case]
        ),
        citation_fact_precision=_fact_precision(rows, pages_by_case),
    )
    if run.config.citations is None:
        return cases
    return set_columns(
        cases, citation_precision=citation_precision(matrices), citation_recall=citation_recall(matrices)
    )


def _fact_precision(rows: Sequence[Case], pages_by_case: Sequence[list[NamedPage] | None]) -> Floats:
    """Compute the share of the answers' facts that are on the named pages, if all of these are known completely.

    Addresses of pages are not facts that these must contain.
    """
    page_texts = [
        CONTEXT_SEPARATOR.join(page.text or "" for page in pages)
        if pages and not any(page.text is None or page.cut for page in pages)
        else None
        for pages in pages_by_case
    ]
    asides = [CONTEXT_SEPARATOR.join((row["question"], *find_links(row["answer"] or ""))) for row in rows]
    answers = blank_pseudonyms(row["answer"] for row in rows)
    return facts.supported_shares(facts.check_facts(answers, page_texts, aside=asides))


def _support_verdicts(case: Case, pages: list[NamedPage] | None) -> Floats | None:
    """Return the judge's verdicts, (statements, pages); NaN without a verdict, and for pages that it has not read."""
    claims = case.get("claims")
    if pages is None or claims is None:
        return None
    statements = [claim["supported_by"] for claim in claims if claim["of"] == "answer"]
    matrix = np.full((len(statements), len(pages)), np.nan)
    for row, sources in enumerate(statements):
        for column, page in enumerate(pages):
            if sources is not None and page.text is not None and not page.cut:
                matrix[row, column] = float(page_label(column) in sources)
    return matrix


class StoredCitation(TypedDict):
    """A page that the system names, as stored with the case."""

    page: str
    in_corpus: bool
    retrieved: bool
    supports: bool | None


def _stored_citation(page: NamedPage, number: int, supports: Floats | None) -> StoredCitation:
    column = np.empty(0) if supports is None else supports[:, number]
    verdicts = column[~np.isnan(column)]
    support = True if (verdicts == 1).any() else None if not verdicts.size or len(verdicts) < len(column) else False
    return {"page": page.id, "in_corpus": page.text is not None, "retrieved": page.retrieved, "supports": support}
