"""Link the spans of a trace, even if some are missing or a span is its own ancestor."""

from collections import deque
from collections.abc import Collection, Sequence

from yarus.db.importers.traces.langfuse import TRACE_SPAN_ID
from yarus.db.importers.traces.spans import Span


class SpanTree:
    """The spans of a trace from the roots down."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """Link all spans of one trace; their order must not change."""
        by_id = {span.span_id: span for span in spans}
        parents = {span.span_id: _parent_id(span, by_id) for span in spans}
        children: dict[str | None, list[Span]] = {}
        for span in spans:
            parent = parents[span.span_id]
            children.setdefault(parent if parent in by_id else None, []).append(span)
        self.incomplete = any(parent is not None and parent not in by_id for parent in parents.values())
        """Whether a span names a missing parent."""
        self.parent: dict[str, str] = {}
        self.root: dict[str, str] = {}
        """Span -> its root, or the missing parent that it shares with other spans."""
        self.order: list[Span] = []
        """Parents before their children."""
        queue = deque(children.get(None, ()))
        for start in (None, *spans):  # from the roots, then from the remaining cycles
            if start is not None and start.span_id not in self.root:
                queue.append(start)
            while queue:
                span = queue.popleft()
                if span.span_id in self.root:
                    continue
                parent = parents[span.span_id]
                if parent in self.root and parent in by_id:
                    self.parent[span.span_id] = str(parent)
                    self.root[span.span_id] = self.root[str(parent)]
                else:
                    self.root[span.span_id] = parent if parent is not None and parent not in by_id else span.span_id
                self.order.append(span)
                queue.extend(children.get(span.span_id, ()))

    def outermost(self, ids: Collection[str]) -> list[Span]:
        """Return the spans of these ids that are not below another of them."""
        descendants = set[str]()
        for span in self.order:
            parent = self.parent.get(span.span_id)
            if parent is not None and (parent in ids or parent in descendants):
                descendants.add(span.span_id)
        return [span for span in self.order if span.span_id in ids and span.span_id not in descendants]


def _parent_id(span: Span, by_id: dict[str, Span]) -> str | None:
    """Return the id of the span's parent; for Langfuse observations without one, the trace itself."""
    if (
        TRACE_SPAN_ID in by_id
        and span.span_id != TRACE_SPAN_ID
        and (span.parent_id is None or span.parent_id not in by_id)
    ):
        return TRACE_SPAN_ID
    return span.parent_id if span.parent_id != span.span_id else None
