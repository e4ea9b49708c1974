"""Plotly figures as plain dictionaries, without words and colours of their own.

A text that begins with `@c:` names a colour of the page's theme, one with `@w:` a word of its language: the page puts
them in when it draws, and again when the reader changes either.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from yarus.metrics.table import metrics_of
from yarus.tasks.cases.table import rows_of, values_of
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.report.embedded_data import Document

Figure = dict[str, Any]
"""A figure of Plotly: `data`, a trace each, and `layout`."""
Trace = dict[str, Any]
"""A part of a figure, as Plotly has it: a trace, a shape or an axis."""
BINS = 20
DISTRIBUTIONS = 6
"""Most distributions of a tier: the headline's first."""
NOT_FOUND = "@w:not found"
TAIL = 98
"""Percent of the times that are shown one by one; the rest is the last bar."""
SHORT, TALL = 200, 260
DAY_S, TICKS = 86_400, 4
LABEL = 90
"""Characters of a label."""


def distributions(tier: Any, cases: pa.Table) -> list[Document]:
    """Histograms of the per-case metrics that take more than two values.

    Returns:
        One document a metric: its stored name, and the figure.
    """
    headline = TIERS[tier].headlines
    declared = sorted(metrics_of(tier), key=lambda metric: metric.name not in headline)
    found = []
    families = set()
    for metric in declared:
        values = _values(cases, metric.column)
        family = metric.name.partition("@")[0]  # recall@5 looks much as recall@10
        if metric.unit == "ms" or metric.aggregate != "mean" or family in families or len(np.unique(values)) <= 2:
            continue
        families.add(family)
        found.append({"metric": metric.name, "figure": histogram(values, marks=metric.thresholds or ())})
    return found[:DISTRIBUTIONS]


def histogram(values: NDArray[np.float64], *, marks: Sequence[float] = ()) -> Figure:
    """How many cases have which value.

    Args:
        values: (n,) finite.
        marks: values to draw a line at, such as the bounds of grades.
    """
    counts, edges = np.histogram(values, bins=BINS, range=_range(values))
    middles, width = (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]
    spans = [f"{low:.3g} – {high:.3g}" for low, high in pairwise(edges)]
    trace = {
        "type": "bar",
        "x": [float(f"{value:.5g}") for value in middles],
        "y": counts.tolist(),
        "width": float(f"{width * 0.92:.4g}"),
        "customdata": spans,
        "hovertemplate": "%{customdata}: %{y}<extra></extra>",
        "marker": {"color": "@c:accent"},
    }
    lines = [_line(mark, "@c:muted", "dot") for mark in marks] + [_line(float(values.mean()), "@c:ink", "solid")]
    return framed([trace], shapes=lines, height=SHORT)


def ranks(cases: pa.Table) -> Figure | None:
    """At which rank the first relevant result stands, over the questions that have one; None without rankings."""
    if not {"relevant", "retrieved"} <= set(cases.column_names):
        return None
    found = [
        _rank(relevant, retrieved)
        for relevant, retrieved in rows_of(cases, "relevant", "retrieved")
        if relevant and retrieved is not None
    ]
    if not found:
        return None
    depth = max(len(retrieved or ()) for retrieved in values_of(cases, "retrieved"))
    counts = Counter(found)
    names = [str(rank) for rank in range(1, depth + 1)]
    heights = [counts[rank] for rank in range(1, depth + 1)]
    trace = {
        "type": "bar",
        "x": [*names, NOT_FOUND],
        "y": [*heights, counts[0]],
        "marker": {"color": ["@c:accent"] * depth + ["@c:attention"]},
        "hovertemplate": "%{x}: %{y}<extra></extra>",
    }
    return framed([trace], height=SHORT, xaxis={"type": "category"})


def latency(cases: pa.Table) -> Figure | None:
    """How long the system took for a question; None where it was not timed."""
    values = _values(cases, "latency_ms")
    if len(values) < 2:
        return None
    most = float(np.percentile(values, TAIL))
    figure = histogram(np.minimum(values, most))
    shapes = [_line(float(np.percentile(values, share)), "@c:ink", "dot") for share in (50, 95)]
    figure["layout"] |= {"shapes": shapes}
    figure["layout"]["xaxis"] |= {"ticksuffix": " ms"}
    return figure


def showing(found: Mapping[str, Any]) -> dict[str, Figure]:
    """Risk against coverage, and cost against threshold; a point for the decisions as they are, one for the cheapest.

    Args:
        found: what the summary of an evaluation has of the price of showing.
    """
    shown = [point for point in found["curve"] if point["risk"] is not None]
    decided, best = found["decided"], found["cheapest"]
    marked = [(decided, "@c:ink")] + ([(best, "@c:attention")] if best and best["threshold"] is not None else [])
    risk = [_curve([point["coverage"] for point in shown], [point["risk"] for point in shown])]
    risk += [_mark(point["coverage"], point["risk"], colour) for point, colour in marked if point["risk"] is not None]
    priced = [point for point in found["curve"] if point["threshold"] is not None]
    cost = [_curve([point["threshold"] for point in priced], [point["cost"] for point in priced])]
    cost += [_mark(point["threshold"], point["cost"], colour) for point, colour in marked if "threshold" in point]
    ends = [best["threshold_low"], best["threshold_high"]] if best else []
    percents = {"tickformat": ".0%", "rangemode": "tozero"}
    return {
        "showing risk": framed(risk, height=TALL, xaxis=percents, yaxis=percents),
        "showing cost": framed(
            cost, height=TALL, yaxis={"rangemode": "tozero"}, shapes=[_line(x, "@c:muted", "dot") for x in ends]
        ),
    }


def _curve(x: Sequence[float], y: Sequence[float]) -> Trace:
    line = {"color": "@c:accent", "shape": "linear"}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line}


def _mark(x: float, y: float, colour: str) -> Trace:
    return {"type": "scatter", "mode": "markers", "x": [x], "y": [y], "marker": {"color": colour, "size": 10}}


def trend(document: Mapping[str, Any]) -> Figure:
    """The history of a metric: a line with its interval, broken where the evaluations do not compare.

    Args:
        document: as yarus.tasks.comparison.trend.trend gives it.
    """
    nights = document["nights"]
    segments: list[list[Document]] = []
    for night in nights:
        if night["break"] or not segments:
            segments.append([])
        segments[-1].append(night)
    traces = [trace for segment in segments for trace in _segment(segment)]
    out = [night for night in nights if night["out"]]
    if out:
        traces.append(_points(out, "@c:attention", size=11, symbol="circle-open"))
    if document["accepted"]:
        traces.insert(0, _level([nights[0]["started_at"], nights[-1]["started_at"]], document["accepted"]["value"]))
    shapes = [_line(segment[0]["started_at"], "@c:muted", "dot") for segment in segments[1:]]
    return framed(traces, shapes=shapes, height=TALL, xaxis=_days([night["started_at"] for night in nights]))


def _days(starts: Sequence[str]) -> Trace:
    """An axis of time on which no two ticks say the same: days at least one day apart, or times of a few hours."""
    ends = [datetime.fromisoformat(at) for at in (starts[0], starts[-1])]
    span = (ends[1] - ends[0]).total_seconds()
    if span < 2 * DAY_S:
        moment = "%H:%M" if span > 60 * TICKS else "%H:%M:%S"
        return {"type": "date", "tickformat": f"{moment}\n%Y-%m-%d", "nticks": TICKS, "tickangle": 0}
    step = math.ceil(span / DAY_S / TICKS)
    return {
        "type": "date",
        "tickformat": "%Y-%m-%d",
        "tick0": starts[0][:10],
        "dtick": step * DAY_S * 1000,
        "tickangle": 0,
    }


def escaped(text: str | None) -> str:
    """A text for Plotly's labels, which would take some of it for markup; as long as a label may be."""
    return (text or "")[:LABEL].replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")


def _segment(nights: list[Document]) -> list[Trace]:
    at = [night["started_at"] for night in nights]
    low, high = ([night[end] for night in nights] for end in ("ci_low", "ci_high"))
    hidden = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "connectgaps": False}
    traces = [
        {**hidden, "x": at, "y": low},
        {**hidden, "x": at, "y": high, "fill": "tonexty", "fillcolor": "@c:band"},
    ]
    for end in ("band_low", "band_high"):
        if any(night[end] is not None for night in nights):
            line = {"color": "@c:muted", "width": 1, "dash": "dot"}
            traces.append({**hidden, "x": at, "y": [night[end] for night in nights], "line": line})
    return [*traces, _points(nights, "@c:accent", size=6, symbol="circle") | {"mode": "lines+markers"}]


def _level(ends: list[str], value: float) -> Trace:
    """A line across the figure; a trace, so that the axis reaches as far."""
    line = {"color": "@c:ink", "width": 1, "dash": "dash"}
    return {"type": "scatter", "mode": "lines", "x": ends, "y": [value, value], "line": line, "hoverinfo": "skip"}


def _points(nights: list[Document], colour: str, *, size: int, symbol: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [night["started_at"] for night in nights],
        "y": [night["value"] for night in nights],
        "text": [escaped(night["name"] or night["sut_label"] or night["evaluation_id"]) for night in nights],
        "line": {"color": colour, "width": 2},
        "marker": {"color": colour, "size": size, "symbol": symbol, "line": {"width": 2, "color": colour}},
        "hovertemplate": "%{x|%Y-%m-%d %H:%M}<br>%{y:.3f}<br>%{text}<extra></extra>",
    }


def _rank(relevant: list[str], retrieved: list[str]) -> int:
    """Rank of the first relevant result, from 1; 0 if there is none."""
    wanted = set(relevant)
    return next((rank for rank, one in enumerate(retrieved, 1) if one in wanted), 0)


def _values(cases: pa.Table, name: str | None) -> NDArray[np.float64]:
    """The finite values of a column; none where there is no such column."""
    if name is None or name not in cases.column_names:
        return np.empty(0)
    values = pc.drop_null(cases[name]).to_numpy().astype(np.float64)
    finite: NDArray[np.float64] = values[np.isfinite(values)]
    return finite


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    """From a round number to a round number: 0 to 1 for shares, 0 to 100 for percent."""
    low, high = float(values.min()), float(values.max())
    for bottom, top in ((0, 1), (-1, 1), (0, 100)):
        if bottom <= low and high <= top and (high - low) > (top - bottom) / 20:
            return float(bottom), float(top)
    return low, high if high > low else low + 1.0


def _line(at: float | str, colour: str, dash: str) -> Trace:
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": colour, "width": 1.5, "dash": dash},
    }


def framed(data: list[Trace], *, height: int, shapes: Sequence[Trace] = (), **layout: Any) -> Figure:
    """A figure of Plotly in the report's frame, colours as names that the page resolves."""
    axis = {"gridcolor": "@c:line", "zerolinecolor": "@c:line", "linecolor": "@c:line", "fixedrange": True}
    axis |= {"automargin": True}  # fonts differ in their widths
    ticks = {"ticks": "outside", "ticklen": 6, "tickcolor": "rgba(0,0,0,0)"}  # or the zeros of both axes meet
    return {
        "data": data,
        "layout": {
            "height": height,
            "margin": {"l": 46, "r": 10, "t": 8, "b": 30},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": "@c:muted", "size": 12, "family": "inherit"},
            "hoverlabel": {"bgcolor": "@c:surface", "bordercolor": "@c:line", "font": {"color": "@c:ink"}},
            "showlegend": False,
            "bargap": 0.1,
            "shapes": list(shapes),
            "xaxis": {**axis, **ticks, "showgrid": False, **layout.pop("xaxis", {})},
            "yaxis": {**axis, **layout.pop("yaxis", {})},
            **layout,
        },
    }
