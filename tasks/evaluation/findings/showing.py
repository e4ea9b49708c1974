"""The price of showing an answer: figures, JSON and sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from yarus.metrics.selective import Shown, cheapest, costs, curve
from yarus.metrics.statistics import mean_interval
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import LANGUAGES, Text, texts
from yarus.tasks.evaluation.findings.finding import Evaluated
from yarus.tasks.evaluation.findings_schema import CheapestThreshold, Showing, ShownFrom
from yarus.tasks.evaluation.numbers import finite, percent, rounded

FEWEST = 10
"""Right answers, and wrong ones, that a threshold is chosen by."""


def find(evaluated: Evaluated) -> Mapping[str, Showing]:
    """See `Feature`."""
    cases, seed = evaluated.cases, evaluated.run.parameters.seed
    columns = np.array([floats(cases, name) for name in ("show_score", "decision", "shown")])
    kept = ~np.isnan(columns).any(axis=0)
    if not kept.any():
        return {}
    scores, decided, right = columns[:, kept]
    groups = [group for group, keep in zip(values_of(cases, "group"), kept, strict=True) if keep]
    price = {"wrong_shown": settings().cost_wrong_shown, "right_hidden": settings().cost_right_hidden}
    spent = costs(right, decided, **price)
    low, high = mean_interval(spent, low=0.0, high=max(price.values()), groups=groups, seed=seed)
    shown = decided == 1
    found: CheapestThreshold | None = None
    if min(right.sum(), (1 - right).sum()) >= FEWEST:
        best = cheapest(scores, right, decided, groups=groups, seed=seed, **price)
        found = {
            **_shown(best.shown),
            "threshold_low": best.interval.low,
            "threshold_high": best.interval.high,
            "saved": best.saved,
            "saved_low": best.saved_interval.low,
            "saved_high": best.saved_interval.high,
        }
    showing: Showing = {
        "n": len(scores),
        "wrong_shown": price["wrong_shown"],
        "right_hidden": price["right_hidden"],
        "decided": {
            "coverage": float(shown.mean()),
            "risk": float(1 - right[shown].mean()) if shown.any() else None,
            "cost": float(spent.mean()),
            "ci_low": low,
            "ci_high": high,
        },
        "cheapest": found,
        "curve": [_shown(point) for point in curve(scores, right, **price)],
    }
    return {"showing": finite(showing)}


def _shown(point: Shown) -> ShownFrom:
    return {"threshold": point.threshold, "coverage": point.coverage, "risk": point.risk, "cost": point.cost}


def sentences(summary: Mapping[str, Any]) -> Iterator[Text]:
    """Yield what the gate's decisions cost, and which threshold would cost least."""
    if found := summary.get("showing"):
        yield {language: _said(found, language) for language in LANGUAGES}


def _said(found: Showing, language: str) -> str:
    words, decided, best = texts("showing", language), found["decided"], found["cheapest"]
    risk = "—" if decided["risk"] is None else percent(decided["risk"])
    said = words["decided"].format(
        n=found["n"],
        wrong_shown=f"{found['wrong_shown']:g}",
        right_hidden=f"{found['right_hidden']:g}",
        coverage=percent(decided["coverage"]),
        risk=risk,
        cost=_interval(decided["cost"], decided["ci_low"], decided["ci_high"]),
    )
    if best is None:
        return f"{said} {words['too few']}"
    within = f"{best['threshold_low']:.2f} … {best['threshold_high']:.2f}"
    if best["threshold"] is None:
        told = words["show nothing"].format(within=within)
    else:
        risk = "—" if best["risk"] is None else percent(best["risk"])
        coverage = percent(best["coverage"])
        told = words["cheapest"].format(
            threshold=f"{best['threshold']:.2f}", within=within, coverage=coverage, risk=risk
        )
    saves = "saves" if best["saved_low"] > 0 else "saves nothing"
    saved = _interval(best["saved"], best["saved_low"], best["saved_high"])
    return f"{said} {told} {words[saves].format(saved=saved)}"


def _interval(value: float, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" ({rounded(low, 'share')} … {rounded(high, 'share')})"
    return rounded(value, "share") + ends
