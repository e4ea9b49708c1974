"""The scores of an evaluation for the store of traces that its answers came from, joined by the ids of these."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.cases import pseudonyms
from yarus.tasks.results.aggregate import measured_by
from yarus.tasks.results.exports.export import PORTION, replacing
from yarus.tasks.results.numbers import finite
from yarus.tasks.results.queries import cases_where
from yarus.tasks.results.scores.forms import Score, langfuse, otlp, otlp_ids

Form = Literal["otlp", "langfuse"]
FORMS: dict[Form, Callable[[Iterable[Score]], Iterator[str]]] = {"otlp": otlp, "langfuse": langfuse}
"""What a file of scores is written for, and how: one request a line."""
OF_ALL = uuid.UUID("6f1d2c0e-7a52-5b0b-9d0c-3f6f2b1f5a11")
"""Of the names that the ids of scores are made of."""


class ExportedScores(TypedDict):
    """Scores that were written for a store of traces."""

    evaluation_id: str
    file: str
    rows: int
    """Scores written."""
    cases: int
    """That have a trace to be joined to."""
    unjoined: int
    """Cases without the id of a trace, or with one that OpenTelemetry has no place for."""
    unmeasured: int
    """Judged values of the joined cases that could not be measured: OTLP names them with their reason, not a score."""


def export_scores(engine: Engine, evaluation_id: str, form: Form, *, overwrite: bool = False) -> ExportedScores:
    """Writes every value that was measured of every case with a trace into `EVALUATION.FORM.jsonl`, one request a line.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        form: whose requests they are.
        overwrite: replace a file that is there.

    Raises:
        InputError: no such evaluation, it has no cases, none of them has a trace, or the file is there already.
        OSError: the file cannot be written; nothing of it is left.
    """
    row = journal.find(engine, evaluation_id)
    cases = pseudonyms.cases(cases_where(engine, row["id"], ()), row["source"])
    if "trace_id" not in cases.column_names or cases["trace_id"].null_count == len(cases):
        raise InputError(
            "evaluation {id}: no case has the id of a trace; it needs a source filled by yarus load traces, and its "
            "recorded answers: yarus run tier3 --sut recorded --source NAME",
            id=row["id"],
        )
    target = Path(f"{row['id']}.{form}.jsonl")
    done: ExportedScores = {
        "evaluation_id": row["id"],
        "file": str(target),
        "rows": 0,
        "cases": 0,
        "unjoined": 0,
        "unmeasured": 0,
    }
    with replacing(target, overwrite=overwrite) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        for line in FORMS[form](_scores(cases, row, form, done)):
            file.write(line + "\n")
    return done


def _scores(cases: pa.Table, row: RowMapping, form: Form, done: ExportedScores) -> Iterator[Score]:
    """The scores of all cases; counts them."""
    resolved: Any = row["resolved"] or {}
    metrics = measured_by(row["tier"], resolved)
    named = [one.column for one in metrics if one.column in cases.column_names and one.aggregate == "mean"]
    judged = set(resolved.get("judge", {}).get("prompts", ()))
    for batch in cases.to_batches(max_chunksize=PORTION):
        for case in map(finite, batch.to_pylist()):
            ids = otlp_ids(case["trace_id"], case["span_id"]) if form == "otlp" else (case["trace_id"], case["span_id"])
            if not ids[0]:
                done["unjoined"] += 1
                continue
            done["cases"] += 1
            for name in dict.fromkeys(str(column) for column in named):
                score = _score(case, name, ids, row)
                if score.value is not None:
                    done["rows"] += 1
                    yield score
                elif name in judged and score.why is not None:
                    done["unmeasured"] += 1
                    yield score


def _score(case: dict[str, Any], name: str, ids: tuple[str | None, str | None], row: RowMapping) -> Score:
    value = case[name]
    return Score(
        id=str(uuid.uuid5(OF_ALL, f"{row['id']}|{case['case_id']}|{name}")),
        evaluation_id=row["id"],
        case_id=case["case_id"],
        at=row["finished_at"] or row["started_at"],
        trace_id=str(ids[0]),
        span_id=ids[1],
        name=name,
        value=None if value is None else float(value),
        status=case["status"],
        why=_why(case, name),
    )


def _why(case: dict[str, Any], name: str) -> str | None:
    """What the judge said of it, or why there is none; None where nobody was asked."""
    said: list[str] = [*(case.get("judge_reasons") or ()), case["reason"] or ""]
    own = next((one for one in said if one.startswith(f"{name}: ")), None)
    if own is not None:
        return own.removeprefix(f"{name}: ")
    by_judge = case["status"] in ("ok", "judge_error", "parse_error")  # whose reason is of another value
    return None if by_judge or case["reason"] is None else str(case["reason"])
