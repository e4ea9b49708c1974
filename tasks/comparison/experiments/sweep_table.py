"""Format a sweep for people: its rows as texts, and its plot."""

from collections.abc import Mapping
from typing import Any

from yarus.tasks.comparison.experiments.experiments_schema import ArmDifference, Sweep

COLOURS = {True: "@c:accent", False: "@c:muted"}
"""Colours of the report's theme, by whether an arm is on the front."""
SIGNIFICANT_VERDICTS = ("improved", "regressed", "changed")
"""Verdicts of a difference beyond chance."""


def table_rows(document: Sweep) -> list[dict[str, str]]:
    """Return one row per arm: headline metrics with intervals, cost, latency, whether it is on the Pareto front."""
    return [
        {
            "variant_name": arm["variant_name"],
            "state": arm["state"],
            **{name: format_interval(arm["metrics"].get(name)) for name in document["metrics"]},
            "USD / 1000": format_figure(arm["cost_usd"]),
            "USD": format_figure(arm["spent_usd"]),
            "p50 ms": format_figure(arm["latency_ms_p50"]),
            "p95 ms": format_figure(arm["latency_ms_p95"]),
            "Pareto": "*" if arm["pareto"] else "",
            "error": arm["error"] or "",
        }
        for arm in document["variants"]
    ]


def is_across_sources(document: Mapping[str, Any]) -> bool:
    """Return whether arms differ in their source."""
    return len(document["parameters"].get("sources", ())) > 1


def format_interval(metric: Mapping[str, Any] | None) -> str:
    """Format a value with its interval; a dash if it was not measured."""
    if metric is None or metric["value"] is None:
        return "—"
    if metric["ci_low"] is None:
        return f"{metric['value']:.3f}"
    if metric["ci_high"] is None:
        return f"{metric['value']:.3f} (≥ {metric['ci_low']:.3f})"
    return f"{metric['value']:.3f} ({metric['ci_low']:.3f} – {metric['ci_high']:.3f})"


def format_difference(compared: ArmDifference | None) -> str:
    """Format a difference with its interval, with a star if it is significant; a dash if nothing was compared."""
    if compared is None or compared["difference"] is None:
        return "—"
    interval_text = "" if compared["ci_low"] is None else f" ({compared['ci_low']:+.3f} … {compared['ci_high']:+.3f})"
    return f"{compared['difference']:+.3f}{interval_text}{'*' if compared['verdict'] in SIGNIFICANT_VERDICTS else ''}"


def format_figure(value: float | None) -> str:
    """Format money or time in four digits; empty if unknown."""
    return "" if value is None else f"{value:.4g}"


def numbered_name(number: int, arm: str) -> str:
    """Return the numbered name of an arm, for tables next to a plot that has no room for names."""
    return f"{number}. {arm}"


def front_trace(arms: list[dict[str, Any]], axis: str, quality: str) -> dict[str, Any]:
    """Return quality against cost or latency as a Plotly trace, with the Pareto front marked and the arms numbered.

    Args:
        arms: the arms of a sweep; the first is number 1.
        axis: `cost_usd` or `latency_ms_p50`.
        quality: a headline metric of the sweep.

    Returns:
        The trace of the arms for which both values are known.
    """
    measured = [(number, arm, arm["metrics"].get(quality)) for number, arm in enumerate(arms, start=1)]
    plotted = [part for part in measured if part[1][axis] is not None and part[2] and part[2]["value"] is not None]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [arm[axis] for _, arm, _ in plotted],
        "y": [metric["value"] for *_, metric in plotted],
        "text": [str(number) for number, *_ in plotted],
        "hovertext": [numbered_name(number, arm["variant_name"]) for number, arm, _ in plotted],
        "hovertemplate": "%{hovertext}: %{y:.3f}<extra></extra>",
        "textposition": "top right",
        "cliponaxis": False,
        "marker": {"color": [COLOURS[arm["pareto"]] for _, arm, _ in plotted], "size": 10},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "color": "@c:muted",
            "thickness": 1,
            "array": [_error_length(metric["ci_high"], metric["value"]) for *_, metric in plotted],
            "arrayminus": [_error_length(metric["value"], metric["ci_low"]) for *_, metric in plotted],
        },
    }


def _error_length(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else high - low
