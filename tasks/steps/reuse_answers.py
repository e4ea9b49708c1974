"""Answers that were given before, scored with nothing generated: those that an earlier evaluation has stored, scored
again by another judge or metric, and those that the source has recorded.
"""

from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.words import Words
from yarus.tasks.cases.outcomes import Done, with_outcomes
from yarus.tasks.cases.refusals import declined
from yarus.tasks.cases.table import with_columns
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.resolved import Resolved
from yarus.tasks.evaluation.run import Run
from yarus.tasks.results import parquet_files

ANSWERED: tuple[str, ...] = ("answer", "answers", "logprobs", "context", "truncated", "retrieved", "path")
ANSWERED += ("passage_starts", "latency_ms", "first_token_ms", "retrieval_latency_ms", "history", "trace_id", "span_id")
ANSWERED += ("sut_tokens_in", "sut_tokens_out", "sut_cost_usd")
"""What the system under test has said, done and taken: the columns that are taken over."""
RECORDED: Final = "recorded"
"""The system under test whose answers are in the source."""
SYSTEM: tuple[str, ...] = ("sut", "unit", "k", "retriever", "embedder", "embedder_identity", "vectors", "generator")
SYSTEM += ("context_tokens", "takes_history", "reranker", "reranker_identity", "rerank_depth", "generator_prompt")
"""What the answers were made with."""


def stored(run: Run) -> bool:
    """Whether the answers of an evaluation were there before it."""
    return bool(run.resolved.get("answers_of")) or run.resolved.get("sut") == RECORDED


def copy_answers(run: Run, evaluation_id: str) -> Resolved:
    """Copies the answers of an evaluation into the working folder of this one.

    Args:
        run: the evaluation that scores them.
        evaluation_id: the one that got them, or the beginning or end of its id.

    Returns:
        What they were made with, to be recorded as resolved parameters of this evaluation too.

    Raises:
        InputError: no such evaluation, of another tier or source, not finished, or it asked the questions otherwise.
        ResultsUnavailable: its file cannot be read.
    """
    row = journal.find(database(), evaluation_id)
    place = f"--{'anchor' if getattr(run.parameters, 'anchor', None) else 'reuse-answers'} {evaluation_id}"
    for what, theirs, ours in (
        (Words("tier"), row["tier"], run.tier),
        (Words("source"), row["source"], run.parameters.source),
    ):
        if theirs != ours:
            raise InputError(
                "{place}: its {what} is {theirs!r}, not {ours!r}; name an evaluation of {ours!r}",
                place=place,
                what=what,
                theirs=theirs,
                ours=ours,
            )
    if row["parquet"] is None:
        raise InputError(
            "{place}: evaluation {id} is {state} and has no file; finish it: --resume",
            place=place,
            id=row["id"],
            state=row["state"],
        )
    for option, what in (("perturbation", Words("questions")), ("context_perturbation", Words("contexts"))):
        if option in row["resolved"]:
            raise InputError(
                "{place}: evaluation {id} was run with --{option} {value}: its answers are to changed {what}; name "
                "an evaluation that asked the questions as they are",
                place=place,
                id=row["id"],
                option=option.replace("_", "-"),
                value=row["resolved"][option],
                what=what,
            )
    known = parquet_files.read(row["parquet"])
    kept = [name for name in ("case_id", "question", "status", "reason", *ANSWERED) if name in known.column_names]
    pq.write_table(known.select(kept), run.work / "answers.parquet")
    journal.describe(database(), run.id, sut_label=row["sut_label"])
    first = row["resolved"].get("answers_of", row["id"])
    made_with = {name: value for name, value in row["resolved"].items() if name in SYSTEM}
    sut = RECORDED if made_with.get("sut") == RECORDED else f"answers of {first}"  # which are judged as such again
    return cast(Resolved, made_with | {"answers_of": first, "sut": sut})


def reuse_answers(run: Run, cases: pa.Table) -> pa.Table:
    """Adds what the system under test had answered; a question that it was not asked then, or that was another one
    then, is `not_applicable`.
    """
    given = parquet_files.parquet(run.work / "answers.parquet")
    now = dict(zip(cases["case_id"].to_pylist(), cases["question"].to_pylist(), strict=True))
    known = {row["case_id"]: row for row in given.to_pylist() if row["case_id"] in now}
    changed = {case_id for case_id, row in known.items() if row["question"] != now[case_id]}
    rows = [{"changed": True} if case_id in changed else known.get(case_id, {}) for case_id in now]
    refusals = configured(run).refusals
    cases = with_outcomes(_not_asked(run, cases, rows), [_done(row, refusals) for row in rows])
    taken = {name: [row.get(name) for row in rows] for name in ANSWERED if name in given.column_names}
    nothing = [None] * len(cases)  # is spent on what was paid for then
    return with_columns(
        cases,
        **taken,
        tokens_in=nothing,
        tokens_out=nothing,
        cost_usd=nothing,
    )


def _done(row: dict[str, Any], refusals: list[str]) -> Done:
    if row.get("answer") is not None:
        why = declined(row["answer"], refusals, row.get("path"))
        return Done("refused", why) if why else Done("answered")
    return Done("failed", row["reason"]) if row.get("status") == "sut_error" and not row.get("changed") else Done()


def _not_asked(run: Run, cases: pa.Table, rows: list[dict[str, Any]]) -> pa.Table:
    """The cases, with those in their status that could be measured and have no answer, since none was asked for."""
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    for number, row in enumerate(rows):
        if statuses[number] == "ok" and row.get("answer") is None and row.get("status") != "sut_error":
            statuses[number], reasons[number] = _why_none(run, row)
    return with_columns(cases, status=statuses, reason=reasons)


def _why_none(run: Run, row: dict[str, Any]) -> tuple[str, str | None]:
    if row.get("status") == "skipped_budget" or "answers_of" not in run.resolved:
        return row["status"], row["reason"]
    if row.get("changed"):
        return "not_applicable", Words(
            "the question has changed since evaluation {evaluation} asked it", evaluation=run.resolved["answers_of"]
        )
    return "not_applicable", Words(
        "evaluation {evaluation} did not ask this question", evaluation=run.resolved["answers_of"]
    )
