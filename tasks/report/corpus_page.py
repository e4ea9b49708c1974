"""Report page of the stored corpus analysis: usage, question topics and content gaps."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine

from yarus.db import analyses
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.texts import LANGUAGES, translations
from yarus.tasks.dataset.corpus.profile import content_gap_reasons, unclustered_texts
from yarus.tasks.evaluation.number_format import format_percent
from yarus.tasks.report import figures
from yarus.tasks.report.case_list import translate_reason
from yarus.tasks.report.embedded_data import Document

MAP_HEIGHT = 460
"""Height of the map in pixels."""
MAP_COLOURS = {
    "text": "@c:grey",
    "unknown": "@c:muted",
    "hit": "@c:accent",
    "miss": "@c:attention",
    "missing": "@c:lost",
}
MAP_SYMBOLS = {"miss": "diamond", "missing": "x"}
MAX_TOPICS, MAX_GAPS, MAX_NEVER_RETRIEVED, MAX_EXAMPLES = 30, 6, 8, 3
"""Maximum numbers of items that are shown."""
MAX_EXAMPLE_CHARS = 160
"""Maximum characters of an example."""


def load_newest_analysis(engine: Engine, source: str) -> analyses.StoredDocument | None:
    """Return the newest stored analysis of a source with `corpus_id` and `described_at`, or None."""
    rows = analyses.list_analyses(engine, "corpus", source=source, limit=5)
    row = next((row for row in rows if row["document"]), None)
    if row is None:
        return None
    return dict(row["document"]) | {"corpus_id": row["id"], "described_at": row["started_at"].isoformat()}


def corpus_view(engine: Engine, source: str) -> Document | None:
    """Return the newest analysis of a source's corpus for the template, or None."""
    analysis = pseudonyms.mask_document(load_newest_analysis(engine, source), source)
    if analysis is None:
        return None
    usage = analysis["utilisation"]
    map_columns = analysis.get("map")
    # Older analyses without `non_questions` have topics that are not comparable.
    topics = analysis if "non_questions" in analysis else {"content_gaps": [], "topics": [], "non_questions": []}
    return {
        "described_at": analysis["described_at"][:16].replace("T", " ") + " UTC",
        "unused": translate_reason(usage["reason"]) if usage["reason"] else None,
        "parts": [
            {"name": name, **usage[name]}
            for name in ("chunks", "pages")
            if (usage.get(name) or {}).get("total") is not None
        ],
        "never_retrieved": [
            {"id": chunk["id"], "text": (chunk["text"] or "")[:MAX_EXAMPLE_CHARS]}
            for chunk in ((usage.get("chunks") or {}).get("never_retrieved") or [])[:MAX_NEVER_RETRIEVED]
        ],
        "content_gaps": [_gap_view(topic) for topic in topics["content_gaps"][:MAX_GAPS]],
        "topics": [_topic_view(topic) for topic in topics["topics"][:MAX_TOPICS]],
        "outside": {name: " ".join(unclustered_texts(topics, name)) for name in LANGUAGES}
        if topics is analysis
        else None,
        "apart": [_non_question_view(row) for row in topics["non_questions"]],
        "figure": corpus_map_figure(map_columns) if map_columns and map_columns["x"] else None,
    }


def _gap_view(topic: Document) -> Document:
    return {
        "label": topic["label"],
        "rests": {name: "; ".join(content_gap_reasons(topic, name)) for name in LANGUAGES},
        "examples": [text[:MAX_EXAMPLE_CHARS] for text in topic["unserved_examples"][:MAX_EXAMPLES]],
    }


def _topic_view(topic: Document) -> Document:
    return {
        "label": topic["label"],
        "n": topic["n"],
        "n_missing": topic["n_missing"] or "—",
        "cohesion": f"{topic['cohesion']:.2f}",
        "hit_rate": _format_percent(topic.get("hit_rate")),
        "failure_rate": _format_percent(topic.get("failure_rate")),
        "examples": [text[:MAX_EXAMPLE_CHARS] for text in topic["examples"][:MAX_EXAMPLES]],
    }


def _non_question_view(row: Document) -> Document:
    return {
        "kind": translations("corpus", f"kind {row['kind']}"),
        "n": row["n"],
        "examples": [text[:MAX_EXAMPLE_CHARS] for text in row["examples"]],
    }


def _format_percent(share: Any) -> str:
    return "—" if share is None else format_percent(share)


def corpus_map_figure(document: Document) -> figures.Figure:
    """Return a map of questions by outcome, and of the texts of the corpus.

    Args:
        document: columns x, y, kind, outcome and text, as stored by yarus.tasks.dataset.corpus.analytics.
    """
    kinds = [
        "text" if kind == "chunk" else outcome
        for kind, outcome in zip(document["kind"], document["outcome"], strict=True)
    ]
    traces = [_dot_trace(document, kinds, name, colour) for name, colour in MAP_COLOURS.items() if name in kinds]
    legend = {"orientation": "h", "y": 1.08, "x": 0}
    figure = figures.plotly_figure(traces, height=MAP_HEIGHT, showlegend=True, legend=legend, hovermode="closest")
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis] |= {"showticklabels": False, "showgrid": False, "zeroline": False}
    return figure


def _dot_trace(document: Document, kinds: Sequence[str], name: str, colour: str) -> figures.Trace:
    indices = [index for index, kind in enumerate(kinds) if kind == name]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"@w:map {name}",
        "x": [document["x"][index] for index in indices],
        "y": [document["y"][index] for index in indices],
        "text": [figures.escape_label(document["text"][index]) for index in indices],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": colour, "size": 6, "opacity": 0.75, "symbol": MAP_SYMBOLS.get(name, "circle")},
    }
