"""What a trace tells of a question and its answer: one request or several, from spans that may be incomplete."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from yarus.db.importers.traces.langfuse import TRACE
from yarus.db.importers.traces.spans import Span
from yarus.db.importers.traces.tree import Tree
from yarus.db.importers.traces.values import distinct
from yarus.db.loading.recorded import Record, record

WHOLE = ("chain", "agent", "")
"""Kinds of spans that may stand for a request as a whole; a kind that nobody knows does not say."""
STEPS = ("llm", "retriever", "reranker", "embedding", "tool")
ASIDE = ("evaluator", "guardrail", "prompt")
"""Kinds whose texts are not the request's."""
TIMED = ("llm", "retriever", "reranker")
LATE_NS = 50_000_000
"""How far a step may begin before its request or end after it: clocks of one host differ by less."""
LONGEST_MS = 24 * 3_600_000


@dataclass
class Request:
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
class Read:
    """What was read from a trace."""

    requests: list[Request] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was met, each as the end of a sentence about traces."""
    missing: str = ""
    """Why there is no request."""


@dataclass
class Found:
    """A request as its spans tell it."""

    root: Span
    group: list[Span]
    """All of its spans, by their start."""
    question: str | None
    history: list[Record]
    last: Span
    """Which has the answer."""


def requests_of(spans: Sequence[Span]) -> Read:
    """The requests of a trace: one, or as many as it has roots that each have question and answer.

    Args:
        spans: all of one trace, in the order of their ids.
    """
    read = Read()
    used = [one for one in spans if one.kind not in ASIDE]
    tree = Tree(used)
    whole: dict[str, list[Span]] = {}
    telling = {one.span_id for one in used if _is_whole(one) and one.question and (one.answer or one.error)}
    for span in tree.topmost(telling):
        whole.setdefault(tree.root[span.span_id], []).append(span)
    found = _several(whole, tree) if whole else _alone(tree, read)
    if tree.incomplete and found:
        read.notes.append("have spans whose parent is missing: they go with the request that was under way")
    if len(found) > 1:
        read.notes.append("have several roots with a question: each is a case of its own")
    read.requests = [_request(one, tree, read, several=len(found) > 1) for one in found]
    return read


def _is_whole(span: Span) -> bool:
    return span.kind in WHOLE or span.kind not in STEPS


def _several(whole: dict[str, list[Span]], tree: Tree) -> list[Found]:
    """A request for every root that has question and answer; steps of other roots go with the one under way."""
    begins = {name: min(map(_start, of)) for name, of in whole.items()}
    in_order = sorted(whole, key=lambda name: begins[name])
    groups: dict[str, list[Span]] = {name: [] for name in in_order}
    for span in sorted(tree.order, key=_start):
        name = tree.root[span.span_id]
        if name not in groups:
            name = next((one for one in reversed(in_order) if begins[one] <= _start(span)), in_order[0])
        groups[name].append(span)
    found = []
    for name, group in groups.items():
        first, last = min(whole[name], key=_start), max(whole[name], key=_end)
        root = next((one for one in group if one.span_id == name), first)
        if _is_whole(root):  # what it says itself is the request; what is below it, a step
            first = root if root.question else first
            last = root if root.answer else last
        found.append(Found(root, group, first.question, first.history, last))
    return found


def _alone(tree: Tree, read: Read) -> list[Found]:
    """The request of a trace that has no span with question and answer: what its steps were asked and said."""
    group = sorted(tree.order, key=_start)
    outer = [one for one in group if one.span_id not in tree.parent and one.parent_id is None and _is_whole(one)]
    asked = next((one for one in outer if one.question), None)
    searched = next((one.question for one in group if one.kind == "retriever" and one.question), None)
    calls = [one for one in _calls(tree, tree.order) if one.answer or one.error]
    answered = [one for one in outer if one.answer] or (calls if asked or searched else [])
    answered = answered or [one for one in calls if one.question]
    last = max(answered, key=_end, default=None)
    question = last and (asked.question if asked else searched or last.question)
    if last is None or not question:
        known = any(one.question for one in tree.order)
        what = "an answer" if known else "a question in words (input.value, gen_ai.input.messages, …)"
        read.missing = f"no span has {what}; is content recorded?"
        return []
    root = outer[0] if outer else last
    return [Found(root, group, question, (asked or last).history, last)]


def _request(found: Found, tree: Tree, read: Read, *, several: bool) -> Request:
    root, last = found.root, found.last
    latency_ms, first_token_ms = _times(found, read)
    calls = _calls(tree, found.group)
    known = {
        "contexts": _contexts(found.group),
        "history": found.history or None,
        "latency_ms": latency_ms,
        "first_token_ms": first_token_ms,
        **{part: _spent(part, calls, found, read) for part in ("tokens_in", "tokens_out", "cost_usd")},
        "error": last.error or root.error,
        "trace_id": root.trace_id,
        "span_id": root.span_id or None,
    }
    near = (root, last, *found.group)
    user, session, score, reference = (
        next((value for one in near if (value := getattr(one, part)) is not None), None)
        for part in ("user", "session", "score", "reference")
    )
    name = f"{root.trace_id}:{root.span_id}" if several else root.trace_id
    start = root.start_ns or min((one.start_ns for one in found.group if one.start_ns), default=None)
    return Request(name, found.question, last.answer, start, user, session, score, reference, record(known))


def _calls(tree: Tree, group: Iterable[Span]) -> list[Span]:
    """The calls of models in a group; of a client within a client the outer one."""
    return tree.topmost({one.span_id for one in group if one.kind == "llm"})


def _contexts(group: Iterable[Span]) -> list[Record] | None:
    """What the answer was given: what the last re-ranker left, else everything that was retrieved."""
    found = [one for one in group if one.passages is not None]
    ranked = [one for one in found if one.kind == "reranker"]
    return distinct(one for span in (ranked[-1:] or found) for one in span.passages or ()) if found else None


def _spent(part: str, calls: Sequence[Span], found: Found, read: Read) -> int | float | None:
    """Tokens or money of all calls of models; None where one of them does not say."""
    spent = [getattr(one, part) for one in calls]
    known = [value for value in spent if value is not None]
    if not known:
        total: int | float | None = getattr(found.last, part)
        return total if total is not None else getattr(found.root, part)
    if len(known) < len(spent):
        read.notes.append(f"have calls of models that do not tell {part}: it is not known of the whole")
        return None
    added: int | float = sum(known)
    return added


def _times(found: Found, read: Read) -> tuple[float | None, float | None]:
    """How long the answer took, and until its first part, in milliseconds; None where the clocks do not agree."""
    start, end = found.root.start_ns, found.root.end_ns
    parts = [one for one in found.group if one.kind in TIMED]
    if found.root.span_id == TRACE:  # Langfuse times its observations; a trace has only its beginning
        begun = [one.start_ns for one in found.group if one.start_ns is not None]
        ended = [one.end_ns for one in found.group if one.end_ns is not None]
        start, end = min(begun, default=None), max(ended, default=None)
    if start is None or end is None:
        read.notes.append("do not tell their times: no latency")
        return None, None
    outside = any(
        (one.start_ns or start) < start - LATE_NS or (one.end_ns or end) > end + LATE_NS or _backwards(one)
        for one in parts
    )
    latency_ms = (end - start) / 1e6
    if outside or not 0 <= latency_ms <= LONGEST_MS:
        read.notes.append(
            "have times of clocks that differ (an end before its start, a step outside of it): no latency"
        )
        return None, None
    last = max((one for one in parts if one.kind == "llm"), key=_end, default=found.root)
    first_ms = None if last.first_token_ns is None else (last.first_token_ns - start) / 1e6
    return latency_ms, first_ms if first_ms is not None and 0 <= first_ms <= latency_ms else None


def _backwards(span: Span) -> bool:
    return span.start_ns is not None and span.end_ns is not None and span.end_ns < span.start_ns


def _start(span: Span) -> tuple[int, str]:
    return span.start_ns or 0, span.span_id


def _end(span: Span) -> tuple[int, str]:
    return span.end_ns or span.start_ns or 0, span.span_id
