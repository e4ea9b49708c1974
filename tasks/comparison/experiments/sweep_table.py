"""A sweep for people: its rows as texts, and its plot."""

from collections.abc import Mapping
from typing import Any

from yarus.tasks.comparison.experiments.experiments_schema import ArmDifference, Sweep

COLOURS = {True: "@c:accent", False: "@c:muted"}
"""Colours of the report's theme: on the front, or not."""
SHOWN = ("improved", "regressed", "changed")
"""Verdicts of a difference that is more than chance."""


def rows(document: Sweep) -> list[dict[str, str]]:
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


def across_sources(document: Mapping[str, Any]) -> bool:
    """Whether arms differ in their source."""
    return len(document["parameters"].get("sources", ())) > 1


def interval(metric: Mapping[str, Any] | None) -> str:
    """A value with its interval; a dash where it was not measured."""
    if metric is None or metric["value"] is None:
        return "—"
    if metric["ci_low"] is None:
        return f"{metric['value']:.3f}"
    if metric["ci_high"] is None:
        return f"{metric['value']:.3f} (≥ {metric['ci_low']:.3f})"
    return f"{metric['value']:.3f} ({metric['ci_low']:.3f} – {metric['ci_high']:.3f})"


def difference(compared: ArmDifference | None) -> str:
    """A difference with its interval, starred where it is shown; a dash where nothing was compared."""
    if compared is None or compared["difference"] is None:
        return "—"
    reach = "" if compared["ci_low"] is None else f" ({compared['ci_low']:+.3f} … {compared['ci_high']:+.3f})"
    return f"{compared['difference']:+.3f}{reach}{'*' if compared['verdict'] in SHOWN else ''}"


def figure_of(value: float | None) -> str:
    """Money or time in four digits; nothing where it is not known."""
    return "" if value is None else f"{value:.4g}"


def numbered(number: int, arm: str) -> str:
    """An arm as tables beside a plot name it, whose points have no room for names."""
    return f"{number}. {arm}"


def front(arms: list[dict[str, Any]], axis: str, quality: str) -> dict[str, Any]:
    """Quality against cost or latency, the Pareto front marked, as a Plotly trace; points bear the arms' numbers.

    Args:
        arms: of a sweep; the first is number 1.
        axis: `cost_usd` or `latency_ms_p50`.
        quality: a headline metric of the sweep.

    Returns:
        The trace of the arms of which both are known.
    """
    measured = [(number, arm, arm["metrics"].get(quality)) for number, arm in enumerate(arms, start=1)]
    known = [part for part in measured if part[1][axis] is not None and part[2] and part[2]["value"] is not None]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [arm[axis] for _, arm, _ in known],
        "y": [metric["value"] for *_, metric in known],
        "text": [str(number) for number, *_ in known],
        "hovertext": [numbered(number, arm["arm"]) for number, arm, _ in known],
        "hovertemplate": "%{hovertext}: %{y:.3f}<extra></extra>",
        "textposition": "top right",
        "cliponaxis": False,
        "marker": {"color": [COLOURS[arm["pareto"]] for _, arm, _ in known], "size": 10},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "color": "@c:muted",
            "thickness": 1,
            "array": [_reach(metric["ci_high"], metric["value"]) for *_, metric in known],
            "arrayminus": [_reach(metric["value"], metric["ci_low"]) for *_, metric in known],
        },
    }


def _reach(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else high - low
