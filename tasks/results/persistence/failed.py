"""The cases of an evaluation that failed to be measured, which are evaluated again: how many succeed now?"""

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine, or_, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import evaluation
from yarus.tasks.results import parquet_files
from yarus.tasks.results.persistence.documents import FailedAgain

FAILED = ("sut_error", "judge_error", "parse_error", "skipped_budget")
"""Statuses of cases that something stood in the way of; a bad score is a result, and no failure."""


class NothingFailedError(InputError):
    """There is nothing to evaluate again, which is good news."""

    @property
    def of(self) -> object:
        """The evaluation."""
        return self.args[0].values["id"]


def evaluation_with_failures(engine: Engine, name: str, tier: str, source: str) -> RowMapping:
    """The evaluation whose failed cases are meant.

    Args:
        engine: of our own database.
        name: its id, the beginning or end of it, its name, or `last`: of that tier and source, one of failed cases too.
        tier: of the `last`.
        source: of the `last`.

    Raises:
        InputError: there is none, or it has no cases.
        NothingFailedError: none of its cases failed.
    """
    row = _last(engine, tier, source) if name == "last" else journal.find(engine, name)
    if row is None:
        raise InputError("--failed: no finished evaluation of {tier} and {source!r} yet", tier=tier, source=source)
    if row["parquet"] is None:
        raise InputError(
            "--failed {id}: it is {state} and has no cases; finish it first: yarus run {tier} --resume {id}",
            id=row["id"],
            state=row["state"],
            tier=row["tier"],
        )
    if not any((row["statuses"] or {}).get(status) for status in FAILED):
        raise NothingFailedError("{id}: no case failed, there is nothing to evaluate again", id=row["id"])
    return row


def _last(engine: Engine, tier: str, source: str) -> RowMapping | None:
    """The newest finished evaluation that says something of the system, or of what failed in one."""
    of = evaluation.c
    meant = or_(journal.LIVE, of.parameters["failed"].astext.is_not(None))
    found = select(evaluation).where(of.tier == tier, of.source == source, of.state.in_(journal.FINISHED), meant)
    with engine.connect() as connection:
        return connection.execute(found.order_by(of.started_at.desc(), of.id.desc()).limit(1)).mappings().first()


def failed_cases(row: RowMapping) -> set[str]:
    """The ids of the cases that failed in an evaluation.

    Raises:
        ResultsUnavailable: its file is gone or damaged.
    """
    cases = parquet_files.read(row["parquet"])
    return set(cases["case_id"].filter(_in(cases, FAILED)).to_pylist())


def failed_again(engine: Engine, evaluation_id: str, again: pa.Table) -> FailedAgain:
    """What became of the failed cases of an evaluation.

    Args:
        engine: of our own database.
        evaluation_id: that evaluation.
        again: the cases of the one that evaluates them again; in dialogs also what was said before.
    """
    failed = failed_cases(journal.find(engine, evaluation_id))
    asked = again.filter(pc.is_in(again["case_id"], value_set=pa.array(sorted(failed), pa.string())))
    still = pc.sum(_in(asked, FAILED), min_count=0).as_py()  # what has no label cannot be measured, and need not fail
    return {"of": evaluation_id, "n": len(failed), "asked": len(asked), "succeeded": len(asked) - still}


def _in(cases: pa.Table, statuses: tuple[str, ...]) -> pa.ChunkedArray:
    return pc.is_in(cases["status"], value_set=pa.array(statuses, pa.string()))
