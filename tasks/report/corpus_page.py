"""The page of the corpus, where its analytics are stored: what is used, what people ask about, what to write next."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Engine

from yarus.db import analyses
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.texts import LANGUAGES, Text, translations
from yarus.tasks.config.texts.messages import told as told_in
from yarus.tasks.dataset.corpus.profile import outside, rests_on
from yarus.tasks.evaluation.numbers import percent
from yarus.tasks.report import figures
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
    kept = [row for row in analyses.listing(engine, "corpus", source=source, limit=5) if row["document"]]
    if not kept:
        return None
    row = kept[0]
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
        "unused": _in_every_language(partial(told_in, used["reason"])) if used["reason"] else None,
        "parts": [
            {"name": name, **used[name]}
            for name in ("chunks", "pages")
            if (used.get(name) or {}).get("total") is not None
        ],
        "dead": [_cut(chunk) for chunk in ((used.get("chunks") or {}).get("dead") or [])[:DEAD]],
        "next": [_advised(topic) for topic in told["next"][:NEXT]],
        "topics": [_topic(topic) for topic in told["topics"][:TOPICS]],
        "outside": _in_every_language(lambda language: " ".join(outside(told, language))) if told is found else None,
        "apart": [_apart(row) for row in told["chatter"]],
        "figure": corpus_map(drawn) if drawn and drawn["x"] else None,
    }


def _advised(topic: Document) -> Document:
    return {
        "label": topic["label"],
        "rests": _in_every_language(lambda language: "; ".join(rests_on(topic, language))),
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


def _in_every_language(says: Callable[[str], str]) -> Text:
    return {language: says(language) for language in LANGUAGES}


def _cut(chunk: Document) -> Document:
    return {"id": chunk["id"], "text": (chunk["text"] or "")[:LENGTH]}


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
