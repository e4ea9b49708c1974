"""How the spans of a trace belong together, also where some are missing, or a span is its own ancestor."""

from collections import deque
from collections.abc import Collection, Sequence

from yarus.db.importers.traces.langfuse import TRACE
from yarus.db.importers.traces.spans import Span


class Tree:
    """The spans of a trace from the roots down."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """Takes all spans of one trace, in an order that does not change."""
        by_id = {one.span_id: one for one in spans}
        named = {one.span_id: _parent(one, by_id) for one in spans}
        below: dict[str | None, list[Span]] = {}
        for span in spans:
            parent = named[span.span_id]
            below.setdefault(parent if parent in by_id else None, []).append(span)
        self.incomplete = any(parent is not None and parent not in by_id for parent in named.values())
        """Whether a span names a parent that is not there."""
        self.parent: dict[str, str] = {}
        self.root: dict[str, str] = {}
        """Span -> its root, or the missing parent that it and others name."""
        self.order: list[Span] = []
        """Parents before their children."""
        waiting = deque(below.get(None, ()))
        for first in (None, *spans):  # from the roots, then from whatever circle is left
            if first is not None and first.span_id not in self.root:
                waiting.append(first)
            while waiting:
                span = waiting.popleft()
                if span.span_id in self.root:
                    continue
                parent = named[span.span_id]
                if parent in self.root and parent in by_id:
                    self.parent[span.span_id] = str(parent)
                    self.root[span.span_id] = self.root[str(parent)]
                else:
                    self.root[span.span_id] = parent if parent is not None and parent not in by_id else span.span_id
                self.order.append(span)
                waiting.extend(below.get(span.span_id, ()))

    def topmost(self, ids: Collection[str]) -> list[Span]:
        """Those of the spans that none of the others is above."""
        below = set[str]()
        for span in self.order:
            parent = self.parent.get(span.span_id)
            if parent is not None and (parent in ids or parent in below):
                below.add(span.span_id)
        return [one for one in self.order if one.span_id in ids and one.span_id not in below]


def _parent(span: Span, by_id: dict[str, Span]) -> str | None:
    """The id of its parent; of Langfuse's observations without one the trace itself."""
    if TRACE in by_id and span.span_id != TRACE and (span.parent_id is None or span.parent_id not in by_id):
        return TRACE
    return span.parent_id if span.parent_id != span.span_id else None
