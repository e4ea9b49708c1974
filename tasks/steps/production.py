"""What production did with the same question, beside what the evaluated system does."""

import asyncio

import pyarrow as pa

from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.table import with_columns
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_stored_corpus, read_twins

NEEDED = ("outcome", "decision", "production_shown", "production_page", "retrieved")
ANSWERED = {"answered": True, "refused": False, "failed": None, None: None}
"""What the system did -> whether it answered; None where that is not known."""


async def beside_production(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `same_page` and `same_decision`: 1 where the system does what the log says of production, 0 where not.

    What the log does not say, and a question that the system failed on, has no value.
    """
    if "production_shown" not in cases.column_names:  # of an evaluation that was begun before it was asked for
        return cases
    return await asyncio.to_thread(_beside, run, cases)


def _beside(run: Run, cases: pa.Table) -> pa.Table:
    rows = cases.select([name for name in NEEDED if name in cases.column_names]).to_pylist()
    theirs = [row["production_shown"] for row in rows]
    ours = [row["decision"] if "decision" in row else ANSWERED[row["outcome"]] for row in rows]
    decisions = [None if None in pair else float(pair[0] == pair[1]) for pair in zip(ours, theirs, strict=True)]
    if "retrieved" not in cases.column_names:
        return with_columns(cases, same_decision=decisions)
    twins = read_twins(run)
    pages_named = pages_of(read_stored_corpus(run))
    if pages_named and not any(pages_named.values()):  # no passage says whose page it is: nothing can be the same
        return with_columns(cases, same_decision=decisions, same_page=[None] * len(rows))
    page_of = pages_named if run.resolved["unit"] == "chunk" else {}

    def same(page: str | None, retrieved: list[str] | None) -> float | None:
        if page is None or retrieved is None:
            return None
        first = page_of.get(retrieved[0], retrieved[0]) if retrieved else None
        return float(first is not None and twins.get(first, first) == twins.get(page, page))

    pages = [same(row["production_page"], row["retrieved"]) for row in rows]
    return with_columns(cases, same_decision=decisions, same_page=pages)
