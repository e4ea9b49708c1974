"""Questions that changed or failed, asked again: how many changes and failures persist."""

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
from yarus.db.messages import Words
from yarus.metrics.metric import Metric
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.table import get_metric
from yarus.tasks.cases.table import CASE_COLUMNS
from yarus.tasks.cases.vocabulary import FAILED_STATUSES
from yarus.tasks.config.connections import database
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import stored_findings
from yarus.tasks.evaluation.findings.finding import MeasuredEvaluation
from yarus.tasks.evaluation.findings_schema import FailedAgain, PersistedMetric, Persistence
from yarus.tasks.evaluation.set_metrics import metric_columns, metric_parts

MIN_COMMON_SHARE = 0.5
"""Share of its questions that an evaluation must have in common with the one that it is compared with."""
TOLERANCE = 1e-9


class EvaluationPair(NamedTuple):
    """An evaluation and the earlier one that it is compared with: common questions, in the same order."""

    id: str
    """Id of the earlier one."""
    before: pa.Table
    after: pa.Table


def find_reference_pair(engine: Engine, row: RowMapping) -> EvaluationPair:
    """Return the pair of an evaluation and its reference: the accepted one, or the previous night.

    The previous night is used if the accepted one asked other questions or cannot be read.

    Args:
        engine: of our own database.
        row: of a completed evaluation.

    Raises:
        InputError: there is no reference, or none that asked most of its questions.
        ResultsUnavailable: the file of the evaluation or of every possible reference is missing or damaged.
    """
    after = _read(row)
    paired = stored_findings(row).get("paired") or {}
    references = [name for name in (journal.find_baseline(engine, row["id"]), paired.get("since")) if name]
    unavailable: ResultsUnavailable | None = None
    for name in references:
        try:
            before = _read(journal.find_evaluation(engine, name))
        except InputError:  # deleted meanwhile
            continue
        except ResultsUnavailable as error:
            unavailable = error
            continue
        positions = pc.index_in(after["case_id"], value_set=before["case_id"].combine_chunks())
        if len(after) and positions.null_count <= (1 - MIN_COMMON_SHARE) * len(after):
            return EvaluationPair(name, before.take(positions.drop_null()), after.filter(pc.is_valid(positions)))
    if unavailable:
        raise unavailable
    why = (
        Words(
            "neither the accepted evaluation of its comparability key nor the night before asked most of its questions"
        )
        if references
        else Words("no evaluation of its comparability key was accepted before it")
    )
    raise InputError("evaluation {id} cannot be confirmed: {why}; confirm a later one", id=row["id"], why=why)


def changed_questions(engine: Engine, evaluation_id: str) -> set[str]:
    """Return the ids of the cases with a changed value of a headline metric.

    Raises:
        InputError: as `find_reference_pair`, or nothing changed.
        ResultsUnavailable: as `find_reference_pair`.
    """
    row = journal.find_evaluation(engine, evaluation_id)
    pair = find_reference_pair(engine, row)
    changed = np.zeros(len(pair.after), dtype=bool)
    for headline in _common_headlines(row["tier"], pair.before, pair.after):
        changed |= _is_changed(_metric_columns(headline, pair.before), _metric_columns(headline, pair.after))
    if not changed.any():
        raise InputError(
            "evaluation {id}: no question changed since {since}, there is nothing to ask again",
            id=row["id"],
            since=pair.id,
        )
    return set(pair.after["case_id"].filter(pa.array(changed)).to_pylist())


def _measure_persistence(engine: Engine, confirmed: str, asked_again: str, again: pa.Table) -> Persistence:
    """Return whether changes of the confirmed evaluation persist in the cases of the one that asks again."""
    row = journal.find_evaluation(engine, confirmed)
    pair = find_reference_pair(engine, row)
    positions = pc.index_in(pair.after["case_id"], value_set=again["case_id"].combine_chunks()).fill_null(-1).to_numpy()
    metrics: dict[str, PersistedMetric] = {}
    for headline in _common_headlines(row["tier"], pair.before, pair.after, again):
        before, after, repeated = (_metric_columns(headline, cases) for cases in (pair.before, pair.after, again))
        aligned = np.full_like(after, np.nan)
        aligned[positions >= 0] = repeated[positions[positions >= 0]]
        counts = _count_persisted(before, after, aligned)
        if counts["n"]:
            metrics[headline.name] = counts
    return {"confirms": row["id"], "asked_again": asked_again, "since": pair.id, "metrics": metrics}


def _read(row: RowMapping) -> pa.Table:
    columns = {
        "case_id",
        *(column for name in TIERS[row["tier"]].headlines for column in metric_columns(get_metric(name))),
    }
    return result_files.read_results(row["parquet"], without=CASE_COLUMNS.keys() - columns)


def _common_headlines(tier: str, *sides: pa.Table) -> Iterator[Metric]:
    """Yield the headline metrics whose columns all sides have."""
    for headline in map(get_metric, TIERS[tier].headlines):
        if all(set(metric_columns(headline)) <= set(cases.column_names) for cases in sides):
            yield headline


def _metric_columns(headline: Metric, cases: pa.Table) -> Floats:
    """Return (n, p): each case's value of a metric, or its contribution to totals; NaN if not measured."""
    return metric_parts(headline, cases).reshape(len(cases), -1)


def _is_changed(before: Floats, after: Floats) -> NDArray[np.bool_]:
    """Return the mask of cases that were measured both times, with different values."""
    return np.asarray(np.abs(after - before).max(axis=1, initial=0.0) > TOLERANCE)  # comparisons with NaN are false


def _count_persisted(before: Floats, after: Floats, repeated: Floats) -> PersistedMetric:
    is_changed = _is_changed(before, after)
    is_measured = is_changed & ~np.isnan(repeated).any(axis=1)
    to_after, to_before = (np.abs(repeated - side).sum(axis=1) for side in (after, before))
    return {
        "n": int(is_changed.sum()),
        "persisted": int((is_measured & (to_after < to_before)).sum()),
        "unmeasured": int((is_changed & ~is_measured).sum()),
    }


def failed_cases(row: RowMapping) -> set[str]:
    """Return the ids of the cases that failed in an evaluation.

    Raises:
        ResultsUnavailable: its file is missing or damaged.
    """
    cases = result_files.read_results(row["parquet"])
    return set(cases["case_id"].filter(_has_status(cases, FAILED_STATUSES)).to_pylist())


def _failed_again(engine: Engine, evaluation_id: str, again: pa.Table) -> FailedAgain:
    """Return the outcome of an evaluation's failed cases; in dialogs `again` includes the preceding turns."""
    failed = failed_cases(journal.find_evaluation(engine, evaluation_id))
    repeated = again.filter(pc.is_in(again["case_id"], value_set=pa.array(sorted(failed), pa.string())))
    n_failed = pc.sum(_has_status(repeated, FAILED_STATUSES), min_count=0).as_py()  # unlabelled cases are not failures
    return {"of": evaluation_id, "n": len(failed), "asked": len(repeated), "succeeded": len(repeated) - n_failed}


def _has_status(cases: pa.Table, statuses: tuple[str, ...]) -> pa.ChunkedArray:
    return pc.is_in(cases["status"], value_set=pa.array(statuses, pa.string()))


def find(evaluated: MeasuredEvaluation) -> Mapping[str, Persistence | FailedAgain]:
    """See `Feature`."""
    run, cases = evaluated.run, evaluated.cases
    confirms, repeats_failed = getattr(run.parameters, "recheck", None), getattr(run.parameters, "retry_failed", None)
    documents: dict[str, Persistence | FailedAgain] = {}
    if confirms:
        documents["persistence"] = _measure_persistence(database(), confirms, run.id, cases)
    if repeats_failed:
        documents["failed_again"] = _failed_again(database(), repeats_failed, cases)
    return documents


def sentences(summary: Mapping[str, Any]) -> Iterator[TranslatedText]:
    """See `Feature`."""
    yield from persistence_sentences(summary.get("persistence"))
    if document := summary.get("failed_again"):
        yield translations("persistence", "failed again", **document)
        if n_gone := document["n"] - document["asked"]:
            yield translations("persistence", "failed gone", n=n_gone)


def persistence_sentences(document: Persistence | None) -> Iterator[TranslatedText]:
    """Yield for every changed headline metric how many of the changes persisted; empty if none was asked again."""
    for name, counts in (document["metrics"] if document else {}).items():
        yield {language: _metric_sentence(name, counts, language) for language in LANGUAGES}


def _metric_sentence(name: str, counts: PersistedMetric, language: str) -> str:
    words, n, unmeasured = texts("persistence", language), counts["n"], counts["unmeasured"]
    if unmeasured == n:
        return words["nothing"].format(metric=name, n=n)
    sentence = words["persisted"].format(metric=name, n=n - unmeasured, persisted=counts["persisted"])
    return sentence + (" " + words["unmeasured"].format(n=unmeasured) if unmeasured else "")
