"""Which metrics answer which question of those who run a bot."""

from collections.abc import Sequence
from typing import Any

from yarus.metrics.table import GOALS
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.results.summary import EvaluationSummary
from yarus.tasks.texts import translations


def goals(summaries: Sequence[EvaluationSummary]) -> list[dict[str, Any]]:
    """Which metrics answer which question, with their values.

    Returns:
        One document a goal: key, label by language, metrics: tier, metric, value, grade.
    """
    found = []
    for goal in GOALS:
        metrics = [
            {"tier": summary["tier"], "metric": name, **summary["metrics"][name]}
            for summary in summaries
            for name in goal.metrics
            if name in TIERS[summary["tier"]].headlines and name in summary["metrics"]
        ]
        label = translations("goals", goal.key)
        found.append({"key": goal.key, "label": label, "names": goal.metrics, "metrics": metrics})
    return found
