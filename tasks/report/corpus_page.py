"""The page of the corpus, where its analytics are stored: what is used, what people ask about, what to write next."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine

from yarus.db import analyses
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.texts import LANGUAGES, translations
from yarus.tasks.dataset.corpus.profile import outside, rests_on
from yarus.tasks.evaluation.numbers import percent
from yarus.tasks.report import figures
from yarus.tasks.report.case_list import in_languages
from yarus.tasks.report.embedded_data import Document

MAP = 460
"""Pixels."""
MAP_COLOURS = {
    "text": "@c:grey",
    "unknown": "@c:muted",
    "hit": "@c:accent",
    "miss": "@c:attention",
    "missing": "@c:lost",
}
MAP_SYMBOLS = {"miss": "diamond", "missing": "x"}
TOPICS, NEXT, DEAD, EXAMPLES = 30, 6, 8, 3
"""Most of each that are shown."""
LENGTH = 160
"""Characters of an example."""


def newest_analytics(engine: Engine, source: str) -> analyses.StoredDocument | None:
    """What was last kept of a source, with `corpus_id` and `described_at`; None where nothing was."""
    rows = analyses.listing(engine, "corpus", source=source, limit=5)
    row = next((row for row in rows if row["document"]), None)
    if row is None:
        return None
    return dict(row["document"]) | {"corpus_id": row["id"], "described_at": row["started_at"].isoformat()}


def stored(engine: Engine, source: str) -> Document | None:
    """What was last found of a source's corpus, as the template reads it; None where nobody looked."""
    found = pseudonyms.document(newest_analytics(engine, source), source)
    if found is None:
        return None
    used = found["utilisation"]
    drawn = found.get("map")
    told = found if "chatter" in found else {"next": [], "topics": [], "chatter": []}  # of a release that named bags
    return {
        "described_at": found["described_at"][:16].replace("T", " ") + " UTC",
        "unused": in_languages(used["reason"]) if used["reason"] else None,
        "parts": [
            {"name": name, **used[name]}
            for name in ("chunks", "pages")
            if (used.get(name) or {}).get("total") is not None
        ],
        "dead": [
            {"id": chunk["id"], "text": (chunk["text"] or "")[:LENGTH]}
            for chunk in ((used.get("chunks") or {}).get("dead") or [])[:DEAD]
        ],
        "next": [_advised(topic) for topic in told["next"][:NEXT]],
        "topics": [_topic(topic) for topic in told["topics"][:TOPICS]],
        "outside": {name: " ".join(outside(told, name)) for name in LANGUAGES} if told is found else None,
        "apart": [_apart(row) for row in told["chatter"]],
        "figure": corpus_map(drawn) if drawn and drawn["x"] else None,
    }


def _advised(topic: Document) -> Document:
    return {
        "label": topic["label"],
        "rests": {name: "; ".join(rests_on(topic, name)) for name in LANGUAGES},
        "examples": [text[:LENGTH] for text in topic["examples_unserved"][:EXAMPLES]],
    }


def _topic(topic: Document) -> Document:
    return {
        "label": topic["label"],
        "n": topic["n"],
        "n_missing": topic["n_missing"] or "—",
        "cohesion": f"{topic['cohesion']:.2f}",
        "hit_rate": _percent(topic.get("hit_rate")),
        "failure_rate": _percent(topic.get("failure_rate")),
        "examples": [text[:LENGTH] for text in topic["examples"][:EXAMPLES]],
    }


def _apart(row: Document) -> Document:
    return {
        "kind": translations("corpus", f"kind {row['kind']}"),
        "n": row["n"],
        "examples": [text[:LENGTH] for text in row["examples"]],
    }


def _percent(share: Any) -> str:
    return "—" if share is None else percent(share)


def corpus_map(document: Document) -> figures.Figure:
    """Questions by what came of them, over the texts of the corpus.

    Args:
        document: columns x, y, kind, outcome and text, as yarus.tasks.dataset.corpus.analytics keeps them.
    """
    kinds = [
        "text" if kind == "chunk" else outcome
        for kind, outcome in zip(document["kind"], document["outcome"], strict=True)
    ]
    traces = [_dots(document, kinds, name, colour) for name, colour in MAP_COLOURS.items() if name in kinds]
    legend = {"orientation": "h", "y": 1.08, "x": 0}
    figure = figures.framed(traces, height=MAP, showlegend=True, legend=legend, hovermode="closest")
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis] |= {"showticklabels": False, "showgrid": False, "zeroline": False}
    return figure


def _dots(document: Document, kinds: Sequence[str], name: str, colour: str) -> figures.Trace:
    at = [number for number, kind in enumerate(kinds) if kind == name]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"@w:map {name}",
        "x": [document["x"][number] for number in at],
        "y": [document["y"][number] for number in at],
        "text": [figures.escaped(document["text"][number]) for number in at],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": colour, "size": 6, "opacity": 0.75, "symbol": MAP_SYMBOLS.get(name, "circle")},
    }
