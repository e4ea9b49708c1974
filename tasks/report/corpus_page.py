"""The page of the corpus, where its analytics are stored: what is used, what people ask about, what to write next."""

from typing import Any

from sqlalchemy import Engine

from tasks.cases import pseudonyms
from tasks.corpus import stored as kept
from tasks.report import figures
from tasks.report.embedded_data import Document
from tasks.results.numbers import percent

TOPICS, NEXT, DEAD, EXAMPLES = 30, 6, 8, 3
"""Most of each that are shown."""
LENGTH = 160
"""Characters of an example."""


def stored(engine: Engine, source: str) -> Document | None:
    """What was last found of a source's corpus, as the template reads it; None where nobody looked."""
    found = pseudonyms.document(kept.stored(engine, source), source)
    if found is None:
        return None
    used = found["utilisation"]
    drawn = found.get("map")
    return {
        "described_at": found["described_at"][:16].replace("T", " ") + " UTC",
        "reason": used["reason"],
        "parts": [{"name": name, **used[name]} for name in ("chunks", "pages") if used.get(name)],
        "dead": [_cut(chunk) for chunk in ((used.get("chunks") or {}).get("dead") or [])[:DEAD]],
        "next": [_topic(topic, "examples_unserved") for topic in found["next"][:NEXT]],
        "topics": [_topic(topic, "examples") for topic in found["topics"][:TOPICS]],
        "figure": figures.corpus_map(drawn) if drawn and drawn["x"] else None,
    }


def _topic(topic: Document, examples: str) -> Document:
    return {
        "label": topic["label"],
        "n": topic["n"],
        "n_missing": topic["n_missing"],
        "hit_rate": _percent(topic.get("hit_rate")),
        "failure_rate": _percent(topic.get("failure_rate")),
        "examples": [text[:LENGTH] for text in topic[examples][:EXAMPLES]],
    }


def _cut(chunk: Document) -> Document:
    return {"id": chunk["id"], "text": (chunk["text"] or "")[:LENGTH]}


def _percent(share: Any) -> str:
    return "—" if share is None else percent(share)
