"""The price of showing an answer: figures, JSON and sentences."""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any

import numpy as np

from yarus.metrics.selective import RiskCoveragePoint, best_threshold, decision_costs, risk_coverage_curve
from yarus.metrics.statistics import mean_interval
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts
from yarus.tasks.evaluation.findings.finding import MeasuredEvaluation
from yarus.tasks.evaluation.findings_schema import CheapestThreshold, ShowingCosts, ThresholdPoint
from yarus.tasks.evaluation.number_format import format_percent, format_rounded, replace_non_finite

FEWEST = 10
"""Right answers, and wrong ones, needed to choose a threshold."""


def find(evaluated: MeasuredEvaluation) -> Mapping[str, ShowingCosts]:
    """See `Feature`."""
    cases, seed = evaluated.cases, evaluated.run.parameters.seed
    columns = np.array([float_column(cases, name) for name in ("show_score", "decision", "shown")])
    is_kept = ~np.isnan(columns).any(axis=0)
    if not is_kept.any():
        return {}
    scores, decisions, is_right = columns[:, is_kept]
    groups = list(compress(column_values(cases, "group"), is_kept))
    price = {"wrong_shown": get_settings().cost_false_positive, "right_hidden": get_settings().cost_false_negative}
    cost_by_answer = decision_costs(is_right, decisions, **price)
    low, high = mean_interval(cost_by_answer, low=0.0, high=max(price.values()), groups=groups, seed=seed)
    is_shown = decisions == 1
    cheapest: CheapestThreshold | None = None
    if min(is_right.sum(), (1 - is_right).sum()) >= FEWEST:
        best = best_threshold(scores, is_right, decisions, groups=groups, seed=seed, **price)
        cheapest = {
            **_point_document(best.shown),
            "threshold_low": best.interval.low,
            "threshold_high": best.interval.high,
            "saved": best.saved,
            "saved_low": best.saved_interval.low,
            "saved_high": best.saved_interval.high,
        }
    showing: ShowingCosts = {
        "n": len(scores),
        "wrong_shown": price["wrong_shown"],
        "right_hidden": price["right_hidden"],
        "decided": {
            "coverage": float(is_shown.mean()),
            "risk": float(1 - is_right[is_shown].mean()) if is_shown.any() else None,
            "cost": float(cost_by_answer.mean()),
            "ci_low": low,
            "ci_high": high,
        },
        "cheapest": cheapest,
        "curve": [_point_document(point) for point in risk_coverage_curve(scores, is_right, **price)],
    }
    return {"showing": replace_non_finite(showing)}


def _point_document(point: RiskCoveragePoint) -> ThresholdPoint:
    return {"threshold": point.threshold, "coverage": point.coverage, "risk": point.risk, "cost": point.cost}


def sentences(summary: Mapping[str, Any]) -> Iterator[TranslatedText]:
    """Yield what the gate's decisions cost, and which threshold would cost least."""
    if document := summary.get("showing"):
        yield {language: _cost_sentence(document, language) for language in LANGUAGES}


def _cost_sentence(document: ShowingCosts, language: str) -> str:
    words, decided, best = texts("showing", language), document["decided"], document["cheapest"]
    risk = "—" if decided["risk"] is None else format_percent(decided["risk"])
    decided_sentence = words["decided"].format(
        n=document["n"],
        wrong_shown=f"{document['wrong_shown']:g}",
        right_hidden=f"{document['right_hidden']:g}",
        coverage=format_percent(decided["coverage"]),
        risk=risk,
        cost=_format_value(decided["cost"], decided["ci_low"], decided["ci_high"]),
    )
    if best is None:
        return f"{decided_sentence} {words['too few']}"
    interval = f"{best['threshold_low']:.2f} … {best['threshold_high']:.2f}"
    if best["threshold"] is None:
        threshold_sentence = words["show nothing"].format(within=interval)
    else:
        risk = "—" if best["risk"] is None else format_percent(best["risk"])
        coverage = format_percent(best["coverage"])
        threshold_sentence = words["cheapest"].format(
            threshold=f"{best['threshold']:.2f}", within=interval, coverage=coverage, risk=risk
        )
    key = "saves" if best["saved_low"] > 0 else "saves nothing"
    saved_text = _format_value(best["saved"], best["saved_low"], best["saved_high"])
    return f"{decided_sentence} {threshold_sentence} {words[key].format(saved=saved_text)}"


def _format_value(value: float, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" ({format_rounded(low, 'share')} … {format_rounded(high, 'share')})"
    return format_rounded(value, "share") + ends
