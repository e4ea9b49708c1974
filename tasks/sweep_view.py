"""A sweep for people: its rows as texts, and its plot."""

from typing import Any

from metrics.table import METRICS
from tasks.report import Document

COLOURS = {True: "#0072b2", False: "#999999"}
AXES = {"cost_usd": {"ru": "USD за 1000 ответов", "en": "USD for 1,000 answers"}}
AXES |= {"latency_ms_p50": {"ru": "Задержка, мс (медиана)", "en": "Latency, ms (median)"}}
QUALITY = {"ru": "Качество: {metric}", "en": "Quality: {metric}"}


def rows(document: Document) -> list[dict[str, Any]]:
    """One row an arm: its headline metrics with intervals, cost, latency, whether it is on the Pareto front."""
    return [
        {
            "arm": arm["arm"],
            "state": arm["state"],
            **{name: interval(arm["metrics"].get(name)) for name in document["metrics"]},
            "USD / 1000": figure_of(arm["cost_usd"]),
            "USD": figure_of(arm["spent_usd"]),
            "p50 ms": figure_of(arm["latency_ms_p50"]),
            "p95 ms": figure_of(arm["latency_ms_p95"]),
            "Pareto": "*" if arm["pareto"] else "",
            "error": arm["error"] or "",
        }
        for arm in document["arms"]
    ]


def interval(metric: Document | None) -> str:
    """A value with its interval; a dash where it was not measured."""
    if metric is None or metric["value"] is None:
        return "—"
    if metric["ci_low"] is None:
        return f"{metric['value']:.3f}"
    return f"{metric['value']:.3f} ({metric['ci_low']:.3f} – {metric['ci_high']:.3f})"


def figure_of(value: float | None) -> str:
    """Money or time in four digits; nothing where it is not known."""
    return "" if value is None else f"{value:.4g}"


def figure(document: Document, language: str) -> dict[str, Any]:
    """The plot of quality against cost and latency, the Pareto front marked, as a Plotly figure.

    Args:
        document: a sweep.
        language: ru or en.

    Returns:
        `data` and `layout`; a panel for each of cost and latency that is known of some arm and not 0 for all.
    """
    quality = document["metrics"][0]
    panels = [axis for axis in AXES if any(arm[axis] for arm in document["arms"])]
    data, layout = [], {"showlegend": False, "title": {"text": ""}, "margin": {"t": 24}}
    for place, axis in enumerate(panels):
        suffix = "" if place == 0 else str(place + 1)
        width = 1 / len(panels)
        layout[f"xaxis{suffix}"] = {
            "title": {"text": AXES[axis][language]},
            "domain": [place * width, (place + 1) * width - 0.05 * (len(panels) > 1)],
            "rangemode": "tozero",
        }
        layout[f"yaxis{suffix}"] = {"anchor": f"x{suffix}", "title": {"text": QUALITY[language].format(metric=quality)}}
        data.append(_trace(document["arms"], axis, quality, suffix))
    return {"data": data, "layout": layout}


def _trace(arms: list[Document], axis: str, quality: str, suffix: str) -> dict[str, Any]:
    shown = [
        arm for arm in arms if arm[axis] is not None and (arm["metrics"].get(quality) or {}).get("value") is not None
    ]
    metrics = [arm["metrics"][quality] for arm in shown]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [arm[axis] for arm in shown],
        "y": [metric["value"] for metric in metrics],
        "text": [arm["arm"] for arm in shown],
        "textposition": "top center",
        "marker": {"color": [COLOURS[arm["pareto"]] for arm in shown], "size": 10},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [_reach(metric["ci_high"], metric["value"]) for metric in metrics],
            "arrayminus": [_reach(metric["value"], metric["ci_low"]) for metric in metrics],
        },
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        "name": METRICS[quality].name,
    }


def _reach(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else high - low
