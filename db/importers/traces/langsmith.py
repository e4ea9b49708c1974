"""Runs of LangSmith, as its API, its SDK and its bulk export write them."""

from collections.abc import Mapping
from typing import Any

from yarus.db.importers.said import parsed_object
from yarus.db.importers.traces.langfuse import feedback
from yarus.db.importers.traces.otlp import KINDS, retrieves, usage_of, usd
from yarus.db.importers.traces.plain_values import MissingIds
from yarus.db.importers.traces.spans import Span, moment_ns
from yarus.db.importers.traces.values import answer_in, passages_in, question_in, reference_in
from yarus.db.loading.recorded import Record, word
from yarus.db.words import Words

THREADS = ("session_id", "thread_id", "conversation_id")
"""Names in the metadata of a run that tie the runs of one dialog; `session_id` of the run itself is its project."""
USERS = ("user_id", "userId", "ls_user_id")
MOST_LEVELS = 4


def parse_run(given: Mapping[str, Any]) -> Span:
    """Return a run as a span.

    Raises:
        MissingIds: it has no id.
    """
    span_id = word(given.get("id")) or word(given.get("run_id"))
    if span_id is None:
        raise MissingIds(Words("a run without an id"))
    trace_id, parent = word(given.get("trace_id")), word(given.get("parent_run_id"))
    kind = str(given.get("run_type") or "").casefold()
    found = Span(trace_id or span_id, span_id, parent, KINDS.get(kind, kind))
    found.start_ns, found.end_ns = moment_ns(given.get("start_time")), moment_ns(given.get("end_time"))
    found.first_token_ns = moment_ns(given.get("first_token_time"))
    found.question, found.history = question_in(given.get("inputs"))
    found.answer = answer_in(given.get("outputs"))
    if retrieves(found.kind, str(given.get("name") or "")):
        found.passages = passages_in(given.get("outputs"))
        found.kind = "retriever" if found.passages is not None else found.kind
    found.error = word(given.get("error"))
    if found.kind == "llm":
        found.tokens_in, found.tokens_out = _tokens(given)
        found.cost_usd = usd(given.get("total_cost"))
    _add_metadata(found, given)
    return found


def _add_metadata(found: Span, given: Mapping[str, Any]) -> None:
    inner = parsed_object(parsed_object(given.get("extra")).get("metadata"))
    metadata = inner | parsed_object(given.get("metadata"))
    found.session = next((name for one in THREADS if (name := word(metadata.get(one)))), None)
    found.user = next((name for one in USERS if (name := word(metadata.get(one)))), None)
    found.reference = reference_in(metadata, given)
    votes = parsed_object(given.get("feedback_stats")).items()
    found.score = feedback([{"name": name, "value": one.get("avg")} for name, one in votes if isinstance(one, dict)])


def _tokens(given: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the tokens read and written, by the run itself or by the usage that its output names."""
    places: list[Any] = [given]
    for _ in range(MOST_LEVELS):
        for place in places:
            if (found := usage_of(_known(parsed_object(place)))) != (None, None):
                return found
        names = ("outputs", "llm_output", "token_usage", "usage_metadata", "usage")
        places = [place[name] for place in map(parsed_object, places) for name in names if name in place]
    return None, None


def _known(usage: Record) -> Record:
    names = ("input_tokens", "prompt_tokens", "output_tokens", "completion_tokens")
    return {name: usage[name] for name in names if name in usage}
