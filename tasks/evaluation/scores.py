"""Scores for the store of traces that the answers came from, joined by the ids of these.

As OpenTelemetry's event `gen_ai.evaluation.result` or Langfuse's event `score-create`.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import Json
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import Case
from yarus.tasks.cases.vocabulary import FAILED
from yarus.tasks.evaluation.aggregate import measured_by
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.export import PORTION, replacing
from yarus.tasks.evaluation.numbers import finite
from yarus.tasks.evaluation.queries import cases_where

AT_ONCE = 200
"""Scores a request; of Langfuse none may have more than 3.5 MB."""
LONGEST = 4_000
"""Characters of a reason."""
INFO = 9
"""OpenTelemetry's number of the severity."""


class Score(NamedTuple):
    """One value of one case, and what it belongs to; without a value, why there is none."""

    id: str
    """The same for the same value of the same evaluation, so that a second import changes nothing."""
    evaluation_id: str
    case_id: str
    at: datetime
    trace_id: str
    span_id: str | None
    name: str
    value: float | None
    status: str
    why: str | None
    """What the judge said, or why nothing was measured."""


def otlp_ids(trace_id: str | None, span_id: str | None) -> tuple[str | None, str | None]:
    """The ids as OpenTelemetry has them, 32 and 16 hexadecimal digits; None for what is of another form."""
    of_trace, of_span = ((text or "").replace("-", "").lower() for text in (trace_id, span_id))
    return (
        of_trace if re.fullmatch("[0-9a-f]{32}", of_trace) else None,
        of_span if re.fullmatch("[0-9a-f]{16}", of_span) else None,
    )


def otlp(scores: Iterable[Score]) -> Iterator[str]:
    """Requests to export logs, as a collector reads them from a file: one event a score, in the span that it is about.

    What was not measured has no score: its label is the status of the case, its explanation the reason.
    """
    scope = {"name": "yarus", "version": version("yarus")}
    resource = {"attributes": _attributes({"service.name": "yarus"})}
    for some in _portions(scores):
        records = [_event(score) for score in some]
        yield _line({"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": records}]}]})


def langfuse(scores: Iterable[Score]) -> Iterator[str]:
    """Requests to `POST /api/public/ingestion`: one event a score; what was not measured has none."""
    for some in _portions(score for score in scores if score.value is not None):
        yield _line({"batch": [_creation(score) for score in some]})


def _event(score: Score) -> Json:
    attributes = {
        "gen_ai.evaluation.name": score.name,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": None if score.value is not None else score.status,
        "gen_ai.evaluation.explanation": _cut(score.why),
        "error.type": score.status if score.value is None and score.status in FAILED else None,
        "yarus.evaluation.id": score.evaluation_id,
        "yarus.case.id": score.case_id,
        "yarus.score.id": score.id,
    }
    ns = str(int(score.at.timestamp() * 1_000_000) * 1_000)
    return {
        "timeUnixNano": ns,
        "observedTimeUnixNano": ns,
        "severityNumber": INFO,
        "eventName": "gen_ai.evaluation.result",
        "attributes": _attributes(attributes),
        "traceId": score.trace_id,
        **({"spanId": score.span_id} if score.span_id else {}),
    }


def _creation(score: Score) -> Json:
    body = {
        "id": score.id,
        "traceId": score.trace_id,
        "observationId": score.span_id,
        "name": score.name,
        "value": score.value,
        "dataType": "NUMERIC",
        "comment": _cut(score.why),
        "metadata": {"evaluation": score.evaluation_id, "case": score.case_id},
    }
    known = {name: value for name, value in body.items() if value is not None}
    return {"id": score.id, "timestamp": score.at.isoformat(), "type": "score-create", "body": known}


def _attributes(values: dict[str, str | float | None]) -> list[Json]:
    """Attributes as OTLP's JSON types them, without those that have no value."""
    return [
        {"key": key, "value": {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}}
        for key, value in values.items()
        if value is not None
    ]


def _portions(scores: Iterable[Score]) -> Iterator[list[Score]]:
    left = iter(scores)
    while some := list(islice(left, AT_ONCE)):
        yield some


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _line(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


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
    config = EvaluationConfig.of(row)
    metrics = measured_by(row["tier"], config)
    averaged = dict.fromkeys(one.column for one in metrics if one.column is not None and one.aggregate == "mean")
    named = [name for name in averaged if name in cases.column_names]
    judged = set((config.judge or {}).get("prompts", ()))
    for batch in cases.to_batches(max_chunksize=PORTION):
        for case in map(finite, batch.to_pylist()):
            ids = otlp_ids(case["trace_id"], case["span_id"]) if form == "otlp" else (case["trace_id"], case["span_id"])
            if not ids[0]:
                done["unjoined"] += 1
                continue
            done["cases"] += 1
            for name in named:
                score = _score(case, name, ids, row)
                if score.value is not None:
                    done["rows"] += 1
                    yield score
                elif name in judged and score.why is not None:
                    done["unmeasured"] += 1
                    yield score


def _score(case: Case, name: str, ids: tuple[str | None, str | None], row: RowMapping) -> Score:
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


def _why(case: Case, name: str) -> str | None:
    """What the judge said of it, or why there is none; None where nobody was asked."""
    said: list[str] = [*(case.get("judge_reasons") or ()), case["reason"] or ""]
    own = next((one for one in said if one.startswith(f"{name}: ")), None)
    if own is not None:
        return own.removeprefix(f"{name}: ")
    by_judge = case["status"] in ("ok", "judge_error", "parse_error")  # whose reason is of another value
    return None if by_judge or case["reason"] is None else str(case["reason"])
