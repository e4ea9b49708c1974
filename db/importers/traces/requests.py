"""Extract requests (a question and its answer) from the spans of a trace, which may be incomplete."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from yarus.db.importers.traces.extraction import deduplicate_passages
from yarus.db.importers.traces.langfuse import TRACE_SPAN_ID
from yarus.db.importers.traces.spans import Span
from yarus.db.importers.traces.tree import SpanTree
from yarus.db.loading.recorded import Record, make_record

REQUEST_KINDS = ("chain", "agent", "")
"""Kinds of spans that may represent a whole request; spans of unknown kinds may, too."""
STEP_KINDS = ("llm", "retriever", "reranker", "embedding", "tool")
IGNORED_KINDS = ("evaluator", "guardrail", "prompt")
"""Kinds whose texts do not belong to the request."""
TIMED_KINDS = ("llm", "retriever", "reranker")
CLOCK_TOLERANCE_NS = 50_000_000
"""How long before its request a step may begin, or end after it: clocks of one host differ by less."""
MAX_LATENCY_MS = 24 * 3_600_000


@dataclass
class RecordedRequest:
    """A question and how it was answered."""

    id: str
    question: str | None
    answer: str | None
    start_ns: int | None
    user: str | None
    session: str | None
    score: int | None
    reference: str | None
    recorded: Record | None


@dataclass
class ParsedTrace:
    """The requests of a trace, and the problems met while parsing it."""

    requests: list[RecordedRequest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Problems, each as the end of a sentence about traces."""
    missing: str = ""
    """Why there is no request."""


@dataclass
class RequestSpans:
    """The spans of a request, with the texts found in them."""

    root: Span
    group: list[Span]
    """All spans of the request, by their start."""
    question: str | None
    history: list[Record]
    last: Span
    """The span that has the answer."""


def extract_requests(spans: Sequence[Span]) -> ParsedTrace:
    """Return the requests of a trace: one, or one per root that has question and answer.

    Args:
        spans: all of one trace, in the order of their ids.
    """
    parsed = ParsedTrace()
    relevant = [span for span in spans if span.kind not in IGNORED_KINDS]
    tree = SpanTree(relevant)
    by_root: dict[str, list[Span]] = {}
    ids = {span.span_id for span in relevant if _may_be_request(span) and span.question and (span.answer or span.error)}
    for span in tree.outermost(ids):
        by_root.setdefault(tree.root[span.span_id], []).append(span)
    candidates = _split_by_root(by_root, tree) if by_root else _join_steps(tree, parsed)
    if tree.incomplete and candidates:
        parsed.notes.append("have spans whose parent is missing: they go with the request that was under way")
    if len(candidates) > 1:
        parsed.notes.append("have several roots with a question: each is a case of its own")
    parsed.requests = [_build_request(entry, tree, parsed, has_others=len(candidates) > 1) for entry in candidates]
    return parsed


def _may_be_request(span: Span) -> bool:
    return span.kind in REQUEST_KINDS or span.kind not in STEP_KINDS


def _split_by_root(by_root: dict[str, list[Span]], tree: SpanTree) -> list[RequestSpans]:
    """Return a request for every root with question and answer; other steps join the request running at that time."""
    starts = {name: min(map(_start_key, root_spans)) for name, root_spans in by_root.items()}
    in_order = sorted(by_root, key=lambda name: starts[name])
    groups: dict[str, list[Span]] = {name: [] for name in in_order}
    for span in sorted(tree.order, key=_start_key):
        name = tree.root[span.span_id]
        if name not in groups:
            name = next((root_id for root_id in reversed(in_order) if starts[root_id] <= _start_key(span)), in_order[0])
        groups[name].append(span)
    requests = []
    for name, group in groups.items():
        first, last = min(by_root[name], key=_start_key), max(by_root[name], key=_end_key)
        root = next((span for span in group if span.span_id == name), first)
        if _may_be_request(root):  # its own texts are the request's; spans below it are steps
            first = root if root.question else first
            last = root if root.answer else last
        requests.append(RequestSpans(root, group, first.question, first.history, last))
    return requests


def _join_steps(tree: SpanTree, parsed: ParsedTrace) -> list[RequestSpans]:
    """Return the request of a trace without a span that has both question and answer, from the texts of its steps."""
    group = sorted(tree.order, key=_start_key)
    outer_spans = [
        span for span in group if span.span_id not in tree.parent and span.parent_id is None and _may_be_request(span)
    ]
    question_span = next((span for span in outer_spans if span.question), None)
    query = next((span.question for span in group if span.kind == "retriever" and span.question), None)
    calls = [span for span in _model_calls(tree, tree.order) if span.answer or span.error]
    answer_spans = [span for span in outer_spans if span.answer] or (calls if question_span or query else [])
    answer_spans = answer_spans or [span for span in calls if span.question]
    last = max(answer_spans, key=_end_key, default=None)
    question = last and (question_span.question if question_span else query or last.question)
    if last is None or not question:
        has_question = any(span.question for span in tree.order)
        missing_part = "an answer" if has_question else "a question in words (input.value, gen_ai.input.messages, …)"
        parsed.missing = f"no span has {missing_part}; is content recorded?"
        return []
    root = outer_spans[0] if outer_spans else last
    return [RequestSpans(root, group, question, (question_span or last).history, last)]


def _build_request(spans: RequestSpans, tree: SpanTree, parsed: ParsedTrace, *, has_others: bool) -> RecordedRequest:
    root, last = spans.root, spans.last
    latency_ms, first_token_ms = _measure_times(spans, parsed)
    calls = _model_calls(tree, spans.group)
    values = {
        "contexts": _find_contexts(spans.group),
        "history": spans.history or None,
        "latency_ms": latency_ms,
        "first_token_ms": first_token_ms,
        **{part: _sum_over_calls(part, calls, spans, parsed) for part in ("tokens_in", "tokens_out", "cost_usd")},
        "error": last.error or root.error,
        "trace_id": root.trace_id,
        "span_id": root.span_id or None,
    }
    nearest_first = (root, last, *spans.group)
    user, session, score, reference = (
        next((value for span in nearest_first if (value := getattr(span, part)) is not None), None)
        for part in ("user", "session", "score", "reference")
    )
    name = f"{root.trace_id}:{root.span_id}" if has_others else root.trace_id
    start = root.start_ns or min((span.start_ns for span in spans.group if span.start_ns), default=None)
    return RecordedRequest(
        name, spans.question, last.answer, start, user, session, score, reference, make_record(values)
    )


def _model_calls(tree: SpanTree, group: Iterable[Span]) -> list[Span]:
    """Return the model calls in a group; of a client within a client, the outer one."""
    return tree.outermost({span.span_id for span in group if span.kind == "llm"})


def _find_contexts(group: Iterable[Span]) -> list[Record] | None:
    """Return the passages given to the model: those of the last re-ranker, else all retrieved ones."""
    spans = [span for span in group if span.passages is not None]
    reranked = [span for span in spans if span.kind == "reranker"]
    return (
        deduplicate_passages(passage for span in (reranked[-1:] or spans) for passage in span.passages or ())
        if spans
        else None
    )


def _sum_over_calls(name: str, calls: Sequence[Span], spans: RequestSpans, parsed: ParsedTrace) -> int | float | None:
    """Return the tokens or cost of all model calls; None if a call does not record them."""
    amounts = [getattr(call, name) for call in calls]
    recorded = [value for value in amounts if value is not None]
    if not recorded:
        total: int | float | None = getattr(spans.last, name)
        return total if total is not None else getattr(spans.root, name)
    if len(recorded) < len(amounts):
        parsed.notes.append(f"have calls of models that do not tell {name}: it is not known of the whole")
        return None
    result: int | float = sum(recorded)
    return result


def _measure_times(spans: RequestSpans, parsed: ParsedTrace) -> tuple[float | None, float | None]:
    """Return the latency and the time to the first token, in milliseconds; None if the clocks do not agree."""
    start, end = spans.root.start_ns, spans.root.end_ns
    timed_spans = [span for span in spans.group if span.kind in TIMED_KINDS]
    if spans.root.span_id == TRACE_SPAN_ID:  # Langfuse times observations; a trace has only a start
        starts = [span.start_ns for span in spans.group if span.start_ns is not None]
        ends = [span.end_ns for span in spans.group if span.end_ns is not None]
        start, end = min(starts, default=None), max(ends, default=None)
    if start is None or end is None:
        parsed.notes.append("do not tell their times: no latency")
        return None, None
    is_inconsistent = any(
        (span.start_ns or start) < start - CLOCK_TOLERANCE_NS
        or (span.end_ns or end) > end + CLOCK_TOLERANCE_NS
        or _ends_before_start(span)
        for span in timed_spans
    )
    latency_ms = (end - start) / 1e6
    if is_inconsistent or not 0 <= latency_ms <= MAX_LATENCY_MS:
        parsed.notes.append(
            "have times of clocks that differ (an end before its start, a step outside of it): no latency"
        )
        return None, None
    last = max((span for span in timed_spans if span.kind == "llm"), key=_end_key, default=spans.root)
    first_ms = None if last.first_token_ns is None else (last.first_token_ns - start) / 1e6
    return latency_ms, first_ms if first_ms is not None and 0 <= first_ms <= latency_ms else None


def _ends_before_start(span: Span) -> bool:
    return span.start_ns is not None and span.end_ns is not None and span.end_ns < span.start_ns


def _start_key(span: Span) -> tuple[int, str]:
    return span.start_ns or 0, span.span_id


def _end_key(span: Span) -> tuple[int, str]:
    return span.end_ns or span.start_ns or 0, span.span_id
