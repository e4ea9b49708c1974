"""Plotly figures as plain dictionaries, independent of language and theme.

Texts with the prefix `@c:` name a colour of the theme, and texts with `@w:` a word of the language. The page replaces
them when it draws a figure, and again when the reader changes the theme or language.
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

from yarus.metrics.table import metrics_for_tier
from yarus.tasks.cases.table import column_values, iterate_rows
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.report.embedded_data import Document

Figure = dict[str, Any]
"""A Plotly figure: `data` with one item per trace, and `layout`."""
Trace = dict[str, Any]
"""A part of a Plotly figure: a trace, a shape or an axis."""
N_BINS = 20
MAX_DISTRIBUTIONS = 6
"""Maximum number of distributions per tier; the headline metrics come first."""
NOT_FOUND = "@w:not found"
TAIL_PERCENTILE = 98
"""Percentile of times above which the last bar collects all values."""
SHORT_HEIGHT, TALL_HEIGHT = 200, 260
DAY_S, MAX_TICKS = 86_400, 4
MAX_LABEL_CHARS = 90
"""Maximum characters of a label."""


def metric_histograms(tier: Any, cases: pa.Table) -> list[Document]:
    """Return histograms of the per-case metrics with more than two values.

    Returns:
        One document per metric: its stored name and the figure.
    """
    headline = TIERS[tier].headlines
    declared = sorted(metrics_for_tier(tier), key=lambda metric: metric.name not in headline)
    histograms = []
    families = set()
    for metric in declared:
        values = _finite_values(cases, metric.column)
        family = metric.name.partition("@")[0]  # recall@5 resembles recall@10
        if metric.unit == "ms" or metric.aggregate != "mean" or family in families or len(np.unique(values)) <= 2:
            continue
        families.add(family)
        histograms.append({"metric": metric.name, "figure": histogram(values, marks=metric.thresholds or ())})
    return histograms[:MAX_DISTRIBUTIONS]


def histogram(values: NDArray[np.float64], *, marks: Sequence[float] = ()) -> Figure:
    """Return a histogram of values over the cases.

    Args:
        values: (n,) finite values.
        marks: values with a vertical line, such as the bounds of grades.
    """
    counts, edges = np.histogram(values, bins=N_BINS, range=_axis_range(values))
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
    return plotly_figure([trace], shapes=lines, height=SHORT_HEIGHT)


def rank_figure(cases: pa.Table) -> Figure | None:
    """Return the ranks of the first relevant result of questions that have one; None without rankings."""
    if not {"relevant", "retrieved"} <= set(cases.column_names):
        return None
    first_ranks = [
        _first_relevant_rank(relevant, retrieved)
        for relevant, retrieved in iterate_rows(cases, "relevant", "retrieved")
        if relevant and retrieved is not None
    ]
    if not first_ranks:
        return None
    depth = max(len(retrieved or ()) for retrieved in column_values(cases, "retrieved"))
    counts = Counter(first_ranks)
    names = [str(rank) for rank in range(1, depth + 1)]
    heights = [counts[rank] for rank in range(1, depth + 1)]
    trace = {
        "type": "bar",
        "x": [*names, NOT_FOUND],
        "y": [*heights, counts[0]],
        "marker": {"color": ["@c:accent"] * depth + ["@c:attention"]},
        "hovertemplate": "%{x}: %{y}<extra></extra>",
    }
    return plotly_figure([trace], height=SHORT_HEIGHT, xaxis={"type": "category"})


def latency_figure(cases: pa.Table) -> Figure | None:
    """Return the latency per question; None if it was not measured."""
    values = _finite_values(cases, "latency_ms")
    if len(values) < 2:
        return None
    tail_value = float(np.percentile(values, TAIL_PERCENTILE))
    figure = histogram(np.minimum(values, tail_value))
    shapes = [_line(float(np.percentile(values, share)), "@c:ink", "dot") for share in (50, 95)]
    figure["layout"] |= {"shapes": shapes}
    figure["layout"]["xaxis"] |= {"ticksuffix": " ms"}
    return figure


def risk_coverage_figures(curve_document: Mapping[str, Any]) -> dict[str, Figure]:
    """Return risk over coverage and cost over threshold, with points for the current and the cheapest decisions.

    Args:
        curve_document: risk-coverage curve of an evaluation's summary.
    """
    curve_points = [point for point in curve_document["curve"] if point["risk"] is not None]
    current, best = curve_document["decided"], curve_document["cheapest"]
    points = [(current, "@c:ink")] + ([(best, "@c:attention")] if best and best["threshold"] is not None else [])
    risk = [_curve([point["coverage"] for point in curve_points], [point["risk"] for point in curve_points])]
    risk += [_marker(point["coverage"], point["risk"], colour) for point, colour in points if point["risk"] is not None]
    cost_points = [point for point in curve_document["curve"] if point["threshold"] is not None]
    cost = [_curve([point["threshold"] for point in cost_points], [point["cost"] for point in cost_points])]
    cost += [_marker(point["threshold"], point["cost"], colour) for point, colour in points if "threshold" in point]
    ends = [best["threshold_low"], best["threshold_high"]] if best else []
    percents = {"tickformat": ".0%", "rangemode": "tozero"}
    return {
        "showing risk": plotly_figure(risk, height=TALL_HEIGHT, xaxis=percents, yaxis=percents),
        "showing cost": plotly_figure(
            cost, height=TALL_HEIGHT, yaxis={"rangemode": "tozero"}, shapes=[_line(x, "@c:muted", "dot") for x in ends]
        ),
    }


def _curve(x: Sequence[float], y: Sequence[float]) -> Trace:
    line = {"color": "@c:accent", "shape": "linear"}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line}


def _marker(x: float, y: float, colour: str) -> Trace:
    return {"type": "scatter", "mode": "markers", "x": [x], "y": [y], "marker": {"color": colour, "size": 10}}


def trend_figure(document: Mapping[str, Any]) -> Figure:
    """Return the history of a metric: a line with its interval, interrupted between incomparable evaluations.

    Args:
        document: result of yarus.tasks.comparison.trend.trend.
    """
    nights = document["nights"]
    segments: list[list[Document]] = []
    for night in nights:
        if night["is_break"] or not segments:
            segments.append([])
        segments[-1].append(night)
    traces = [trace for segment in segments for trace in _history_traces(segment)]
    outliers = [night for night in nights if night["is_out_of_band"]]
    if outliers:
        traces.append(_points(outliers, "@c:attention", size=11, symbol="circle-open"))
    if document["accepted"]:
        traces.insert(0, _level([nights[0]["started_at"], nights[-1]["started_at"]], document["accepted"]["value"]))
    shapes = [_line(segment[0]["started_at"], "@c:muted", "dot") for segment in segments[1:]]
    return plotly_figure(
        traces, shapes=shapes, height=TALL_HEIGHT, xaxis=_time_axis([night["started_at"] for night in nights])
    )


def _time_axis(starts: Sequence[str]) -> Trace:
    """Return a time axis with distinct tick labels: days at least one day apart, or times within a few hours."""
    ends = [datetime.fromisoformat(start) for start in (starts[0], starts[-1])]
    span = (ends[1] - ends[0]).total_seconds()
    if span < 2 * DAY_S:
        moment = "%H:%M" if span > 60 * MAX_TICKS else "%H:%M:%S"
        return {"type": "date", "tickformat": f"{moment}\n%Y-%m-%d", "nticks": MAX_TICKS, "tickangle": 0}
    step = math.ceil(span / DAY_S / MAX_TICKS)
    return {
        "type": "date",
        "tickformat": "%Y-%m-%d",
        "tick0": starts[0][:10],
        "dtick": step * DAY_S * 1000,
        "tickangle": 0,
    }


def escape_label(text: str | None) -> str:
    """Escape a text for Plotly's labels, which interpret markup, and cut it to the maximum length."""
    return (text or "")[:MAX_LABEL_CHARS].replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")


def _history_traces(nights: list[Document]) -> list[Trace]:
    times = [night["started_at"] for night in nights]
    low, high = ([night[end] for night in nights] for end in ("ci_low", "ci_high"))
    hidden = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "connectgaps": False}
    traces = [
        {**hidden, "x": times, "y": low},
        {**hidden, "x": times, "y": high, "fill": "tonexty", "fillcolor": "@c:band"},
    ]
    for end in ("band_low", "band_high"):
        if any(night[end] is not None for night in nights):
            line = {"color": "@c:muted", "width": 1, "dash": "dot"}
            traces.append({**hidden, "x": times, "y": [night[end] for night in nights], "line": line})
    return [*traces, _points(nights, "@c:accent", size=6, symbol="circle") | {"mode": "lines+markers"}]


def _level(ends: list[str], value: float) -> Trace:
    """Return a horizontal line; as a trace, it extends the range of the axis."""
    line = {"color": "@c:ink", "width": 1, "dash": "dash"}
    return {"type": "scatter", "mode": "lines", "x": ends, "y": [value, value], "line": line, "hoverinfo": "skip"}


def _points(nights: list[Document], colour: str, *, size: int, symbol: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [night["started_at"] for night in nights],
        "y": [night["value"] for night in nights],
        "text": [escape_label(night["name"] or night["sut_label"] or night["evaluation_id"]) for night in nights],
        "line": {"color": colour, "width": 2},
        "marker": {"color": colour, "size": size, "symbol": symbol, "line": {"width": 2, "color": colour}},
        "hovertemplate": "%{x|%Y-%m-%d %H:%M}<br>%{y:.3f}<br>%{text}<extra></extra>",
    }


def _first_relevant_rank(relevant: list[str], retrieved: list[str]) -> int:
    """Return the rank of the first relevant result, from 1; 0 if there is none."""
    relevant_ids = set(relevant)
    return next((rank for rank, result in enumerate(retrieved, 1) if result in relevant_ids), 0)


def _finite_values(cases: pa.Table, name: str | None) -> NDArray[np.float64]:
    """Return the finite values of a column; empty if there is no such column."""
    if name is None or name not in cases.column_names:
        return np.empty(0)
    values = pc.drop_null(cases[name]).to_numpy().astype(np.float64)
    finite: NDArray[np.float64] = values[np.isfinite(values)]
    return finite


def _axis_range(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return a round range: 0 to 1 for shares, 0 to 100 for percent."""
    low, high = float(values.min()), float(values.max())
    for bottom, top in ((0, 1), (-1, 1), (0, 100)):
        if bottom <= low and high <= top and (high - low) > (top - bottom) / 20:
            return float(bottom), float(top)
    return low, high if high > low else low + 1.0


def _line(position: float | str, colour: str, dash: str) -> Trace:
    return {
        "type": "line",
        "x0": position,
        "x1": position,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": colour, "width": 1.5, "dash": dash},
    }


def plotly_figure(data: list[Trace], *, height: int, shapes: Sequence[Trace] = (), **layout: Any) -> Figure:
    """Return a Plotly figure in the report's layout, with names of colours that the page resolves."""
    axis = {"gridcolor": "@c:line", "zerolinecolor": "@c:line", "linecolor": "@c:line", "fixedrange": True}
    axis |= {"automargin": True}  # fonts have different widths
    ticks = {"ticks": "outside", "ticklen": 6, "tickcolor": "rgba(0,0,0,0)"}  # otherwise the zeros of both axes overlap
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
