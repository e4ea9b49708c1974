"""The table of cases: one row per question; every step of a tier adds columns. This module declares its columns."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.metrics.metric import RUBRIC_PREFIX
from yarus.metrics.table import METRICS
from yarus.metrics.table.exam import exam_metric
from yarus.tasks.config.redaction import replace_surrogates

Case = dict[str, Any]
"""A case: column -> value."""
TEXTS = pa.list_(pa.string())

LONG_TEXT_COLUMNS: tuple[str, ...] = ("passages", "context", "text", "judge_reasons", "logprobs", "answers")
LONG_TEXT_COLUMNS += ("gold_context", "exam", "parallel", "unsupported_facts", "claims", "nuggets", "citations")
LONG_TEXT_COLUMNS += ("passage_starts", "history", "context_probe", "calls")
"""Columns of long texts from which no metric is computed."""


CALL_FIELDS: dict[str, pa.DataType] = {
    **dict.fromkeys(("role", "prompt", "model", "finish_reason", "reply"), pa.string()),
    **dict.fromkeys(("repeat", "tokens_in", "tokens_out"), pa.int64()),
    **dict.fromkeys(("cost_usd", "latency_ms"), pa.float64()),
    "stored": pa.bool_(),
}
"""Fields that are stored of a call."""


class Column(NamedTuple):
    """A column of the table of cases."""

    type: pa.DataType
    meaning: str


def _struct_type(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


CASE_COLUMNS: dict[str, Column] = {
    "case_id": Column(pa.string(), "the source and the row's own id; relabelling keeps it"),
    "question_id": Column(pa.string(), "id in question_answer"),
    "question": Column(pa.string(), "as the user wrote it"),
    "asked": Column(pa.string(), "what the system was asked instead, where the evaluation changes the question"),
    "status": Column(pa.string(), "ok, or why the case could not be measured; that the system failed comes first"),
    "reason": Column(pa.string(), "the status in words; NULL when ok"),
    "outcome": Column(
        pa.string(),
        "what the system did, whatever is labelled: answered, refused or failed; NULL where it was not asked",
    ),
    "unmeasurable": Column(
        pa.string(),
        "unlabelled, stale_label or not_applicable: why the case could not be measured whatever the system did; NULL "
        "where it could",
    ),
    "group": Column(pa.string(), "cases of one group are not independent: the page, user or dialog they share"),
    "labelled": Column(TEXTS, "every label, id=grade, whether its chunk or page is in the corpus or not"),
    "relevant": Column(TEXTS, "ids labelled relevant, of the evaluation's unit, and their twins: what says the same"),
    "irrelevant": Column(TEXTS, "ids labelled not relevant, and their twins"),
    "grades": Column(pa.list_(pa.float64()), "grade of each relevant one, NULL where the labels have none"),
    "own_document": Column(
        pa.string(),
        "the document that the question is itself, in a retrieval set: it is left out of the ranking; NULL elsewhere",
    ),
    "retrieved": Column(TEXTS, "ranking: ids of the evaluation's unit, best first; NULL when the retriever failed"),
    "distances": Column(pa.list_(pa.float64()), "distance of each, smaller is nearer"),
    "if_right": Column(
        pa.struct([(row.name, pa.float64()) for row in METRICS.values() if row.function.startswith("retrieval.")]),
        "each metric of rankings if every result that nobody has judged were relevant; at worst it is as it stands",
    ),
    "pooled": Column(
        pa.list_(_struct_type(result=pa.string(), rank=pa.int64(), label=pa.bool_(), grade=pa.int64())),
        "where a judge fills labels up: every result of the pool, its rank here, what the labels say, else the judge's "
        "grade (0 to 3)",
    ),
    "passages": Column(TEXTS, "what the judge was shown of each of the pool, NULL where the labels tell"),
    "reference": Column(pa.string(), "ground-truth answer"),
    "answerable": Column(pa.bool_(), "whether the corpus has the answer; NULL where nobody said"),
    "context": Column(pa.string(), "what the generator was given, or what the answer is judged against"),
    "passage_starts": Column(pa.list_(pa.int64()), "where each passage begins in the context, in characters"),
    "context_probe": Column(
        _struct_type(
            distractors=pa.list_(pa.int64()),
            original=pa.string(),
            substitute=pa.string(),
            instruction=pa.string(),
            canary=pa.string(),
            untouched=pa.string(),
        ),
        "where the evaluation changes the context: which passages, from 0, are of other pages; the sentence whose "
        "number or date was changed, and what it is now; the instruction, and the word that it asks for; or why "
        "nothing was changed",
    ),
    "truncated": Column(pa.bool_(), "the context was cut to the limit"),
    "answer": Column(pa.string(), "what the system under test answered; NULL when it failed"),
    "answers": Column(TEXTS, "all answers, where they were repeated"),
    "logprobs": Column(pa.list_(pa.float64()), "natural logarithms of the tokens' probabilities"),
    "unsupported_facts": Column(
        pa.list_(_struct_type(kind=pa.string(), text=pa.string(), start=pa.int64(), end=pa.int64())),
        "facts of the answer that neither context nor question has, with their places in it, in characters; NULL where "
        "it was not measured",
    ),
    "claims": Column(
        pa.list_(_struct_type(of=pa.string(), claim=pa.string(), sentence=pa.string(), supported_by=TEXTS)),
        "claims of answer and reference, the sentence that makes each, and what supports it: reference, answer, "
        "passage_1, page_1 and so on; NULL without a verdict. Of the answer its sentences, where only citations were "
        "asked for",
    ),
    "nuggets": Column(
        pa.list_(_struct_type(nugget=pa.string(), vital=pa.bool_(), support=pa.float64())),
        "what a good answer must contain (vital) or may; `support`: 1 where the answer has it, 0.5 where it has a "
        "part, 0 where not, NULL without a verdict",
    ),
    "citations": Column(
        pa.list_(_struct_type(page=pa.string(), in_corpus=pa.bool_(), retrieved=pa.bool_(), supports=pa.bool_())),
        "the pages or chunks that the system names: page_1, page_2 and so on among what supports claims; `supports`: "
        "whether it supports something that the answer says, NULL where that is not known",
    ),
    "judge_raw": Column(
        pa.list_(_struct_type(metric=pa.string(), repeat=pa.int64(), reply=pa.string(), status=pa.string())),
        "every reply of a judge, as received",
    ),
    "calls": Column(
        pa.list_(pa.struct(CALL_FIELDS)),
        "every call of a model for this case, the generator's first, then one a reply in `judge_raw`, in its order; "
        "`stored`: bought earlier, with the time and tokens of then and no cost; `reply`: the generator's as received, "
        "where the answer is not all of it",
    ),
    "judge_reasons": Column(pa.list_(pa.string()), "what the judge said for its scores, or why there is none"),
    "tokens_in": Column(pa.int64(), "read by the models for this case"),
    "tokens_out": Column(pa.int64(), "written by the models for this case"),
    "cost_usd": Column(pa.float64(), "of the calls bought for this case; NULL without prices"),
    "shown": Column(pa.bool_(), "whether the answer should have been shown"),
    "decision": Column(pa.bool_(), "whether the gate shows the answer"),
    "show_score": Column(
        pa.float64(), "how sure the gate is, 0..1: its yes and no repeated, or its token's probability"
    ),
    "production_page": Column(
        pa.string(), "the page that production showed for the question; NULL where the log has none"
    ),
    "production_shown": Column(pa.bool_(), "whether production answered the question; NULL where the log does not say"),
    "same_page": Column(
        pa.float64(), "1 where the first page is the one that production showed, 0 where it is another"
    ),
    "same_decision": Column(pa.float64(), "1 where both answer, or both decline or hide; 0 where they differ"),
    "human_score": Column(pa.float64(), "what the user said of the answer: 1 good, 0 bad"),
    "faithfulness_again": Column(pa.float64(), "the judge's second score for the same answer"),
    "gold_context": Column(pa.string(), "of an examined question, the text that answers it"),
    "exam": Column(
        pa.list_(
            _struct_type(
                kind=pa.string(), answer=pa.string(), of=pa.string(), planted=pa.string(), damaged=TEXTS, sound=TEXTS
            )
        ),
        "the answers that the judge is examined with, and by which prompts each is damaged or sound",
    ),
    "parallel": Column(
        pa.struct([(name, pa.string()) for name in ("question", "context", "answer", "language")]),
        "of an examined question, the same in another language",
    ),
    "exam_scores": Column(
        pa.list_(
            _struct_type(
                prompt=pa.string(),
                kind=pa.string(),
                damaged=pa.bool_(),
                characters=pa.int64(),
                score=pa.float64(),
                status=pa.string(),
            )
        ),
        "what the judge gave each of them, NULL where it failed",
    ),
    "page": Column(pa.string(), "the page that the answer came from, or the first that is labelled relevant"),
    "topic": Column(pa.string(), "what the question is about, as annotated; nothing is measured by it"),
    "score": Column(pa.int64(), "the user's, 5 good, 1 bad"),
    "asked_at": Column(pa.timestamp("us", tz="UTC"), "when the question was asked"),
    "dialog": Column(pa.string(), "the conversation that the question belongs to"),
    "turn": Column(pa.int64(), "the question's place in it, from 1"),
    "history": Column(
        pa.list_(_struct_type(role=pa.string(), content=pa.string())),
        "what the system was told had been said before in the dialog; NULL where it was told nothing",
    ),
    "nearest_earlier": Column(pa.string(), "case id of the nearest earlier question that was rated good"),
    "nearest_similarity": Column(pa.float64(), "its cosine"),
    "path": Column(pa.string(), "what the system under test says that it did, such as cache or hidden"),
    "failure": Column(pa.string(), "where the case failed first: retrieval, label, gate, refusal, generation"),
    "stratum": Column(pa.string(), "what users said of the answer: confirmed, agreement, contradicted"),
    "text": Column(pa.string(), "the text that was embedded"),
    "cluster": Column(pa.string(), "the text's page or topic"),
    "trace_id": Column(pa.string(), "of the recorded answer, in the store of traces that it came from"),
    "span_id": Column(pa.string(), "of the span in it that stands for the whole request"),
    "sut_tokens_in": Column(pa.int64(), "read by the system under test when it gave the recorded answer"),
    "sut_tokens_out": Column(pa.int64(), "written by it"),
    "sut_cost_usd": Column(pa.float64(), "what the recorded answer cost"),
    "latency_ms": Column(pa.float64(), "of the system under test; NULL where it was not timed alone"),
    "first_token_ms": Column(
        pa.float64(), "until the first part of a streamed answer was there; NULL where it came as a whole"
    ),
}
CASE_COLUMNS |= {
    metric.column: Column(pa.float64(), metric.measures)
    for metric in METRICS.values()
    if metric.column is not None and metric.column not in CASE_COLUMNS
}


def column_spec(name: str) -> Column:
    """Return the declaration of a column; a user's own rubric declares its own.

    Raises:
        KeyError: the column is not declared.
    """
    if name.startswith(RUBRIC_PREFIX):
        return Column(pa.float64(), "the judge's score by the user's own rubric, 0..1")
    if name.startswith("exam_") and RUBRIC_PREFIX in name:
        return Column(pa.float64(), exam_metric(name).measures)
    if name not in CASE_COLUMNS:
        raise KeyError(f"column {name!r} is not declared in tasks/cases/table.py")
    return CASE_COLUMNS[name]


def make_cases(**columns: Any) -> pa.Table:
    """Return a table of cases with these columns."""
    return set_columns(None, **columns)


def set_columns(cases: pa.Table | None, **columns: Any) -> pa.Table:
    """Add columns to the cases, or replace them, in their declared types.

    Args:
        cases: n rows; None for a new table.
        columns: name -> n values; NaN in a list or array of numbers becomes NULL.

    Raises:
        KeyError: a column is not declared.
        ValueError: values do not fit the column's type, or their number is not n.
    """
    for name, values in columns.items():
        type_ = column_spec(name).type
        array = _to_array(values, type_)
        field = pa.field(name, type_)
        if cases is None:
            cases = pa.table([array], schema=pa.schema([field]))
        elif len(array) != len(cases):
            raise ValueError(f"column {name!r} has {len(array)} values for {len(cases)} cases")
        elif name in cases.column_names:
            cases = cases.set_column(cases.column_names.index(name), field, array)
        else:
            cases = cases.append_column(field, array)
    if cases is None:
        raise ValueError("a table of cases needs a column")
    return cases


def column_values(cases: pa.Table, name: str) -> list[Any]:
    """Return the values of a column, row by row.

    Raises:
        KeyError: there is no such column.
    """
    values: list[Any] = cases[name].to_pylist()
    return values


def optional_column_values(cases: pa.Table, name: str) -> list[Any]:
    """Return the values of a column that only some evaluations have; None in every row without it."""
    return column_values(cases, name) if name in cases.column_names else [None] * len(cases)


def iterate_rows(cases: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """Iterate over the values of several columns, row by row, as read by `column_values`."""
    return zip(*(column_values(cases, name) for name in names), strict=True)


def float_column(cases: pa.Table, name: str | None) -> NDArray[np.float64]:
    """Return a numeric or boolean column as floats; NaN for missing values, and everywhere without the column."""
    if name not in cases.column_names:
        return np.full(len(cases), np.nan)
    return np.asarray(cases[name].to_numpy(), dtype=np.float64)


def _to_array(values: Any, type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type=type_, from_pandas=True)
    except UnicodeEncodeError:  # half of a surrogate pair, such as a cut emoji
        return pa.array(_make_encodable(values), type=type_, from_pandas=True)


def _make_encodable(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {name: _make_encodable(part) for name, part in value.items()}
    return [_make_encodable(part) for part in value] if isinstance(value, list | tuple) else value
