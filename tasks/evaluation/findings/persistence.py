"""Questions that changed or failed, asked again: how many stay so."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.words import Words
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.table import metric
from yarus.tasks.cases.table import COLUMNS
from yarus.tasks.cases.vocabulary import FAILED
from yarus.tasks.config.connections import database
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import stored_findings
from yarus.tasks.evaluation.findings.finding import Evaluated
from yarus.tasks.evaluation.findings_schema import FailedAgain, PersistedMetric, Persistence
from yarus.tasks.evaluation.set_metrics import columns_of, parts_of

MOST = 0.5
"""Share of its questions that an evaluation must have in common with the one that it is held against."""
SAME = 1e-9


class Before(NamedTuple):
    """An evaluation and the one that it is held against: their common questions, in the same order."""

    id: str
    """Of the one before."""
    before: pa.Table
    after: pa.Table


def before_of(engine: Engine, row: RowMapping) -> Before:
    """What an evaluation is held against: the accepted one, or where that asked other questions, the night before.

    Args:
        engine: of our own database.
        row: of a completed evaluation.

    Raises:
        InputError: there is none, or none that asked most of its questions.
        ResultsUnavailable: the evaluation's own file is gone or damaged, or those of all that it could be held against.
    """
    after = _read(row)
    paired = stored_findings(row).get("paired") or {}
    names = [name for name in (journal.baseline(engine, row["id"]), paired.get("since")) if name]
    gone: ResultsUnavailable | None = None
    for name in names:
        try:
            before = _read(journal.find(engine, name))
        except InputError:  # it was removed
            continue
        except ResultsUnavailable as error:
            gone = error
            continue
        places = pc.index_in(after["case_id"], value_set=before["case_id"].combine_chunks())
        if len(after) and places.null_count <= (1 - MOST) * len(after):
            return Before(name, before.take(places.drop_null()), after.filter(pc.is_valid(places)))
    if gone:
        raise gone
    why = (
        Words(
            "neither the accepted evaluation of its comparability key nor the night before asked most of its questions"
        )
        if names
        else Words("no evaluation of its comparability key was accepted before it")
    )
    raise InputError("evaluation {id} cannot be confirmed: {why}; confirm a later one", id=row["id"], why=why)


def changed_questions(engine: Engine, evaluation_id: str) -> set[str]:
    """The ids of the cases by which a headline metric changed.

    Raises:
        InputError: as `before_of`, or nothing changed.
        ResultsUnavailable: as `before_of`.
    """
    row = journal.find(engine, evaluation_id)
    since = before_of(engine, row)
    changed = np.zeros(len(since.after), dtype=bool)
    for one in _headlines(row["tier"], since.before, since.after):
        changed |= _changed(_columns(one, since.before), _columns(one, since.after))
    if not changed.any():
        raise InputError(
            "evaluation {id}: no question changed since {since}, there is nothing to ask again",
            id=row["id"],
            since=since.id,
        )
    return set(since.after["case_id"].filter(pa.array(changed)).to_pylist())


def _persistence(engine: Engine, confirmed: str, asked_again: str, again: pa.Table) -> Persistence:
    """Whether what changed in the confirmed evaluation is changed in the cases of the one that asks again."""
    row = journal.find(engine, confirmed)
    since = before_of(engine, row)
    places = pc.index_in(since.after["case_id"], value_set=again["case_id"].combine_chunks()).fill_null(-1).to_numpy()
    metrics: dict[str, PersistedMetric] = {}
    for one in _headlines(row["tier"], since.before, since.after, again):
        before, after, anew = (_columns(one, cases) for cases in (since.before, since.after, again))
        asked = np.full_like(after, np.nan)
        asked[places >= 0] = anew[places[places >= 0]]
        found = _persisted(before, after, asked)
        if found["n"]:
            metrics[one.name] = found
    return {"confirms": row["id"], "asked_again": asked_again, "since": since.id, "metrics": metrics}


def _read(row: RowMapping) -> pa.Table:
    needed = {"case_id", *(name for one in TIERS[row["tier"]].headlines for name in columns_of(metric(one)))}
    return result_files.read(row["parquet"], without=COLUMNS.keys() - needed)


def _headlines(tier: str, *sides: pa.Table) -> Iterator[Metric]:
    """The headline metrics that all sides have what is needed for."""
    for one in map(metric, TIERS[tier].headlines):
        if all(set(columns_of(one)) <= set(cases.column_names) for cases in sides):
            yield one


def _columns(one: Metric, cases: pa.Table) -> Floats:
    """(n, p): what each case has of a metric, or adds to its totals; NaN where it was not measured."""
    return parts_of(one, cases).reshape(len(cases), -1)


def _changed(before: Floats, after: Floats) -> NDArray[np.bool_]:
    """Measured both times, and not the same."""
    return np.asarray(np.abs(after - before).max(axis=1, initial=0.0) > SAME)  # NaN is not more


def _persisted(before: Floats, after: Floats, asked: Floats) -> PersistedMetric:
    changed = _changed(before, after)
    measured = changed & ~np.isnan(asked).any(axis=1)
    to_after, to_before = (np.abs(asked - side).sum(axis=1) for side in (after, before))
    return {
        "n": int(changed.sum()),
        "persisted": int((measured & (to_after < to_before)).sum()),
        "unmeasured": int((changed & ~measured).sum()),
    }


def failed_cases(row: RowMapping) -> set[str]:
    """The ids of the cases that failed in an evaluation.

    Raises:
        ResultsUnavailable: its file is gone or damaged.
    """
    cases = result_files.read(row["parquet"])
    return set(cases["case_id"].filter(_in(cases, FAILED)).to_pylist())


def _failed_again(engine: Engine, evaluation_id: str, again: pa.Table) -> FailedAgain:
    """What became of the failed cases of an evaluation; in dialogs `again` also has what was said before."""
    failed = failed_cases(journal.find(engine, evaluation_id))
    asked = again.filter(pc.is_in(again["case_id"], value_set=pa.array(sorted(failed), pa.string())))
    still = pc.sum(_in(asked, FAILED), min_count=0).as_py()  # what has no label cannot be measured, and need not fail
    return {"of": evaluation_id, "n": len(failed), "asked": len(asked), "succeeded": len(asked) - still}


def _in(cases: pa.Table, statuses: tuple[str, ...]) -> pa.ChunkedArray:
    return pc.is_in(cases["status"], value_set=pa.array(statuses, pa.string()))


def find(evaluated: Evaluated) -> Mapping[str, Persistence | FailedAgain]:
    """See `Feature`."""
    run, cases = evaluated.run, evaluated.cases
    confirms, failed = getattr(run.parameters, "confirms", None), getattr(run.parameters, "failed", None)
    found: dict[str, Persistence | FailedAgain] = {}
    if confirms:
        found["persistence"] = _persistence(database(), confirms, run.id, cases)
    if failed:
        found["failed_again"] = _failed_again(database(), failed, cases)
    return found


def sentences(summary: Mapping[str, Any]) -> Iterator[Text]:
    """See `Feature`."""
    yield from persistence_sentences(summary.get("persistence"))
    if found := summary.get("failed_again"):
        yield translations("persistence", "failed again", **found)
        if gone := found["n"] - found["asked"]:
            yield translations("persistence", "failed gone", n=gone)


def persistence_sentences(found: Persistence | None) -> Iterator[Text]:
    """Of every headline metric that changed, how many of the changes persisted; nothing where nothing was asked."""
    for name, of in (found["metrics"] if found else {}).items():
        yield {language: _said(name, of, language) for language in LANGUAGES}


def _said(name: str, found: PersistedMetric, language: str) -> str:
    words, n, unmeasured = texts("persistence", language), found["n"], found["unmeasured"]
    if unmeasured == n:
        return words["nothing"].format(metric=name, n=n)
    said = words["persisted"].format(metric=name, n=n - unmeasured, persisted=found["persisted"])
    return said + (" " + words["unmeasured"].format(n=unmeasured) if unmeasured else "")
