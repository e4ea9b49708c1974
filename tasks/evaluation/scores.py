"""Export scores to the store of traces that the answers came from, joined by trace ids.

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
from yarus.db.tables import JsonObject
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.table import Case
from yarus.tasks.cases.vocabulary import FAILED_STATUSES
from yarus.tasks.evaluation.aggregate import list_metrics
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.export import ROWS_PER_PORTION, open_replacement
from yarus.tasks.evaluation.number_format import replace_non_finite
from yarus.tasks.evaluation.queries import filter_cases

REQUEST_SIZE = 200
"""Scores per request; Langfuse accepts at most 3.5 MB."""
MAX_REASON_LENGTH = 4_000
"""Longest reason, in characters."""
INFO_SEVERITY = 9
"""OpenTelemetry's severity number for information."""


class TraceScore(NamedTuple):
    """One value of one case with its ids; without a value, the reason."""

    id: str
    """Equal for the same value of the same evaluation, so that a second import changes nothing."""
    evaluation_id: str
    case_id: str
    at: datetime
    trace_id: str
    span_id: str | None
    name: str
    value: float | None
    status: str
    why: str | None
    """The judge's reason, or the reason why nothing was measured."""


def otlp_ids(trace_id: str | None, span_id: str | None) -> tuple[str | None, str | None]:
    """Return the ids in OpenTelemetry's form, 32 and 16 hexadecimal digits; None for other forms."""
    trace, span = ((text or "").replace("-", "").lower() for text in (trace_id, span_id))
    return (
        trace if re.fullmatch("[0-9a-f]{32}", trace) else None,
        span if re.fullmatch("[0-9a-f]{16}", span) else None,
    )


def format_otlp(scores: Iterable[TraceScore]) -> Iterator[str]:
    """Yield requests to export logs, as a collector reads them from a file: one event per score, in its span.

    Cases that were not measured have no score: their label is the status of the case, their explanation the reason.
    """
    scope = {"name": "yarus", "version": version("yarus")}
    resource = {"attributes": _otlp_attributes({"service.name": "yarus"})}
    for portion in _split(scores):
        records = [_otlp_event(score) for score in portion]
        yield _line({"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": records}]}]})


def format_langfuse(scores: Iterable[TraceScore]) -> Iterator[str]:
    """Yield requests to `POST /api/public/ingestion`: one event per score; unmeasured cases have none."""
    for portion in _split(score for score in scores if score.value is not None):
        yield _line({"batch": [_langfuse_event(score) for score in portion]})


def _otlp_event(score: TraceScore) -> JsonObject:
    attributes = {
        "gen_ai.evaluation.name": score.name,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": None if score.value is not None else score.status,
        "gen_ai.evaluation.explanation": _cut(score.why),
        "error.type": score.status if score.value is None and score.status in FAILED_STATUSES else None,
        "yarus.evaluation.id": score.evaluation_id,
        "yarus.case.id": score.case_id,
        "yarus.score.id": score.id,
    }
    ns = str(int(score.at.timestamp() * 1_000_000) * 1_000)
    return {
        "timeUnixNano": ns,
        "observedTimeUnixNano": ns,
        "severityNumber": INFO_SEVERITY,
        "eventName": "gen_ai.evaluation.result",
        "attributes": _otlp_attributes(attributes),
        "traceId": score.trace_id,
        **({"spanId": score.span_id} if score.span_id else {}),
    }


def _langfuse_event(score: TraceScore) -> JsonObject:
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
    present = {name: value for name, value in body.items() if value is not None}
    return {"id": score.id, "timestamp": score.at.isoformat(), "type": "score-create", "body": present}


def _otlp_attributes(values: dict[str, str | float | None]) -> list[JsonObject]:
    """Return attributes as OTLP's JSON types them, without those that have no value."""
    return [
        {"key": key, "value": {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}}
        for key, value in values.items()
        if value is not None
    ]


def _split(scores: Iterable[TraceScore]) -> Iterator[list[TraceScore]]:
    remaining = iter(scores)
    while portion := list(islice(remaining, REQUEST_SIZE)):
        yield portion


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_REASON_LENGTH else f"{text[:MAX_REASON_LENGTH]}…"


def _line(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


ScoreFormat = Literal["otlp", "langfuse"]
SCORE_FORMATTERS: dict[ScoreFormat, Callable[[Iterable[TraceScore]], Iterator[str]]] = {
    "otlp": format_otlp,
    "langfuse": format_langfuse,
}
"""Target of a file of scores -> its formatter: one request per line."""
SCORE_NAMESPACE = uuid.UUID("6f1d2c0e-7a52-5b0b-9d0c-3f6f2b1f5a11")
"""Namespace of the UUIDs of scores."""


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


def export_scores(engine: Engine, evaluation_id: str, form: ScoreFormat, *, overwrite: bool = False) -> ExportedScores:
    """Write all measured values of cases with a trace into `EVALUATION.FORM.jsonl`, one request per line.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        form: of the requests.
        overwrite: replace an existing file.

    Raises:
        InputError: no such evaluation, it has no cases, none of them has a trace, or the file exists.
        OSError: the file cannot be written; nothing of it is left.
    """
    row = journal.find_evaluation(engine, evaluation_id)
    cases = pseudonyms.mask_cases(filter_cases(engine, row["id"], ()), row["source"])
    if "trace_id" not in cases.column_names or cases["trace_id"].null_count == len(cases):
        raise InputError(
            "evaluation {id}: no case has the id of a trace; it needs a source filled by yarus load traces, and its "
            "recorded answers: yarus run tier3 --sut recorded --source NAME",
            id=row["id"],
        )
    target = Path(f"{row['id']}.{form}.jsonl")
    counts: ExportedScores = {
        "evaluation_id": row["id"],
        "file": str(target),
        "rows": 0,
        "cases": 0,
        "unjoined": 0,
        "unmeasured": 0,
    }
    with (
        open_replacement(target, overwrite=overwrite) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for line in SCORE_FORMATTERS[form](_list_scores(cases, row, form, counts)):
            file.write(line + "\n")
    return counts


def _list_scores(cases: pa.Table, row: RowMapping, form: ScoreFormat, counts: ExportedScores) -> Iterator[TraceScore]:
    """Yield the scores of all cases, and count them."""
    config = EvaluationConfig.of(row)
    metrics = list_metrics(row["tier"], config)
    averaged = dict.fromkeys(
        metric.column for metric in metrics if metric.column is not None and metric.aggregate == "mean"
    )
    names = [name for name in averaged if name in cases.column_names]
    judged = set((config.judge or {}).get("prompts", ()))
    for batch in cases.to_batches(max_chunksize=ROWS_PER_PORTION):
        for case in map(replace_non_finite, batch.to_pylist()):
            ids = otlp_ids(case["trace_id"], case["span_id"]) if form == "otlp" else (case["trace_id"], case["span_id"])
            if not ids[0]:
                counts["unjoined"] += 1
                continue
            counts["cases"] += 1
            for name in names:
                score = _build_score(case, name, ids, row)
                if score.value is not None:
                    counts["rows"] += 1
                    yield score
                elif name in judged and score.why is not None:
                    counts["unmeasured"] += 1
                    yield score


def _build_score(case: Case, name: str, ids: tuple[str | None, str | None], row: RowMapping) -> TraceScore:
    value = case[name]
    return TraceScore(
        id=str(uuid.uuid5(SCORE_NAMESPACE, f"{row['id']}|{case['case_id']}|{name}")),
        evaluation_id=row["id"],
        case_id=case["case_id"],
        at=row["finished_at"] or row["started_at"],
        trace_id=str(ids[0]),
        span_id=ids[1],
        name=name,
        value=None if value is None else float(value),
        status=case["status"],
        why=_judge_reason(case, name),
    )


def _judge_reason(case: Case, name: str) -> str | None:
    """Return the judge's reason for a value, or why there is no value; None if the judge was not asked."""
    reasons: list[str] = [*(case.get("judge_reasons") or ()), case["reason"] or ""]
    own_reason = next((reason for reason in reasons if reason.startswith(f"{name}: ")), None)
    if own_reason is not None:
        return own_reason.removeprefix(f"{name}: ")
    is_judged = case["status"] in ("ok", "judge_error", "parse_error")  # its reason is about another value
    return None if is_judged or case["reason"] is None else str(case["reason"])
