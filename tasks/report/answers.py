"""Side-by-side answers: the common questions of several evaluations of a tier, one column per evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any

from yarus.metrics.table import METRICS
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.report.embedded_data import Document
from yarus.tasks.report.entries import ReportEntry

SETTINGS: tuple[str, ...] = ("sut", "generator", "generator_prompt", "retriever", "reranker", "embedder", "k")
SETTINGS += ("perturbation", "context_perturbation", "judge")
"""Settings that may distinguish two evaluations."""


def build_answers_pages(entries: Sequence[ReportEntry], evaluations: Sequence[Document]) -> list[Document]:
    """Return one page per tier with answers of several evaluations; the case lists contain the cases.

    Args:
        entries: entries of the report, the newest of a tier first.
        evaluations: views of the entries for the templates.
    """
    pages = []
    for tier in TIERS:
        answered = [
            (entry, view)
            for entry, view in zip(entries, evaluations, strict=True)
            if entry.tier == tier and view["pack"] and "answer" in view["pack"]["listed"]
        ]
        if len(answered) > 1:
            pages.append(_build_page(tier, answered[::-1]))
    return pages


def _build_page(tier: str, answered: Sequence[tuple[ReportEntry, Document]]) -> Document:
    """Return the page of a tier, the oldest evaluation first."""
    configs = [EvaluationConfig.of(entry.row) for entry, _ in answered]
    columns = [
        {
            "key": view["key"],
            "label": entry.row["name"] or entry.row["sut_label"],
            "about": difference,
            "started": view["started"][:16],
        }
        for (entry, view), difference in zip(answered, _describe_differences(configs), strict=True)
    ]
    common = set.intersection(*(set(view["pack"]["numbers"]) for _, view in answered))
    first = [name.removeprefix("avg_") for name in TIERS[tier].headlines]
    metrics = [name for name in dict.fromkeys((*first, *answered[-1][1]["pack"]["numbers"])) if name in common]
    better_by_metric = {declared.column: declared.better for declared in METRICS.values() if declared.column}
    judges = [config.judge or {} for config in configs]
    is_same_judge = all(judge == judges[0] for judge in judges)
    if not is_same_judge:  # scores of different judges are not compared
        better_by_metric |= {name: "neither" for judge in judges for name in judge.get("prompts", {})}
    return {
        "key": f"answers-{tier}",
        "tier": tier,
        "same_judge": is_same_judge,
        "columns": columns,
        "metrics": [{"name": name, "better": better_by_metric.get(name, "neither")} for name in metrics],
        "shown": [name for name in first if name in common],
    }


def _describe_differences(configs: Sequence[EvaluationConfig]) -> list[str]:
    """Return the settings that distinguish each evaluation, in one line: `retriever fulltext, k 5`."""
    settings = [{name: _setting_value(config, name) for name in SETTINGS} for config in configs]
    differing = [name for name in SETTINGS if len({repr(values[name]) for values in settings}) > 1]
    return [", ".join(f"{name} {values[name]}" for name in differing if values[name]) for values in settings]


def _setting_value(config: EvaluationConfig, name: str) -> Any:
    value = getattr(config, name)
    return value.get("model") if isinstance(value, Mapping) else value
