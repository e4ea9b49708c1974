"""Parse runs of LangSmith, as its API, SDK and bulk export write them."""

from collections.abc import Mapping
from typing import Any

from yarus.db.importers.literals import parse_object
from yarus.db.importers.traces.extraction import extract_answer, extract_passages, extract_question, extract_reference
from yarus.db.importers.traces.langfuse import parse_user_vote
from yarus.db.importers.traces.otlp import SPAN_KINDS, is_retriever, parse_token_usage, parse_usd
from yarus.db.importers.traces.plain_values import MissingIds
from yarus.db.importers.traces.spans import Span, parse_time_ns
from yarus.db.loading.recorded import Record, text_or_none
from yarus.db.messages import Words

DIALOG_KEYS = ("session_id", "thread_id", "conversation_id")
"""Metadata names of the dialog that a run belongs to; `session_id` of the run itself is its project."""
USER_KEYS = ("user_id", "userId", "ls_user_id")
MAX_LEVELS_OF_USAGE = 4


def parse_run(raw: Mapping[str, Any]) -> Span:
    """Return a run as a span.

    Raises:
        MissingIds: the run has no id.
    """
    span_id = text_or_none(raw.get("id")) or text_or_none(raw.get("run_id"))
    if span_id is None:
        raise MissingIds(Words("a run without an id"))
    trace_id, parent = text_or_none(raw.get("trace_id")), text_or_none(raw.get("parent_run_id"))
    kind = str(raw.get("run_type") or "").casefold()
    span = Span(trace_id or span_id, span_id, parent, SPAN_KINDS.get(kind, kind))
    span.start_ns, span.end_ns = parse_time_ns(raw.get("start_time")), parse_time_ns(raw.get("end_time"))
    span.first_token_ns = parse_time_ns(raw.get("first_token_time"))
    span.question, span.history = extract_question(raw.get("inputs"))
    span.answer = extract_answer(raw.get("outputs"))
    if is_retriever(span.kind, str(raw.get("name") or "")):
        span.passages = extract_passages(raw.get("outputs"))
        span.kind = "retriever" if span.passages is not None else span.kind
    span.error = text_or_none(raw.get("error"))
    if span.kind == "llm":
        span.tokens_in, span.tokens_out = _find_tokens(raw)
        span.cost_usd = parse_usd(raw.get("total_cost"))
    _add_metadata(span, raw)
    return span


def _add_metadata(span: Span, raw: Mapping[str, Any]) -> None:
    extra_metadata = parse_object(parse_object(raw.get("extra")).get("metadata"))
    metadata = extra_metadata | parse_object(raw.get("metadata"))
    span.session = next((value for key in DIALOG_KEYS if (value := text_or_none(metadata.get(key)))), None)
    span.user = next((value for key in USER_KEYS if (value := text_or_none(metadata.get(key)))), None)
    span.reference = extract_reference(metadata, raw)
    votes = parse_object(raw.get("feedback_stats")).items()
    span.score = parse_user_vote(
        [{"name": name, "value": vote.get("avg")} for name, vote in votes if isinstance(vote, dict)]
    )


def _find_tokens(raw: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the input and output tokens of the run, or of the usage in its output."""
    levels: list[Any] = [raw]
    for _ in range(MAX_LEVELS_OF_USAGE):
        for level in levels:
            if (tokens := parse_token_usage(_select_token_counts(parse_object(level)))) != (None, None):
                return tokens
        names = ("outputs", "llm_output", "token_usage", "usage_metadata", "usage")
        levels = [level[name] for level in map(parse_object, levels) for name in names if name in level]
    return None, None


def _select_token_counts(usage: Record) -> Record:
    names = ("input_tokens", "prompt_tokens", "output_tokens", "completion_tokens")
    return {name: usage[name] for name in names if name in usage}
