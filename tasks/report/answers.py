"""Answers side by side: the common questions of several evaluations of a tier, a column an evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any

from yarus.metrics.table import METRICS
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.report.embedded_data import Document
from yarus.tasks.report.entries import Entry

SETTINGS: tuple[str, ...] = ("sut", "generator", "generator_prompt", "retriever", "reranker", "embedder", "k")
SETTINGS += ("perturbation", "context_perturbation", "judge")
"""What may tell two evaluations apart, of what their parameters came to."""


def answers_pages(entries: Sequence[Entry], evaluations: Sequence[Document]) -> list[Document]:
    """A page for every tier of which several evaluations have answers; the cases themselves stand in their lists.

    Args:
        entries: of the report, the newest of a tier first.
        evaluations: the same as the templates read them.
    """
    found = []
    for tier in TIERS:
        shown = [
            (entry, one)
            for entry, one in zip(entries, evaluations, strict=True)
            if entry.tier == tier and one["pack"] and "answer" in one["pack"]["listed"]
        ]
        if len(shown) > 1:
            found.append(_page(tier, shown[::-1]))
    return found


def _page(tier: str, shown: Sequence[tuple[Entry, Document]]) -> Document:
    """The oldest stands first."""
    configs = [EvaluationConfig.of(entry.row) for entry, _ in shown]
    columns = [
        {
            "key": one["key"],
            "label": entry.row["name"] or entry.row["sut_label"],
            "about": about,
            "started": one["started"][:16],
        }
        for (entry, one), about in zip(shown, _differing(configs), strict=True)
    ]
    common = set.intersection(*(set(one["pack"]["numbers"]) for _, one in shown))
    first = [name.removeprefix("avg_") for name in TIERS[tier].headlines]
    metrics = [name for name in dict.fromkeys((*first, *shown[-1][1]["pack"]["numbers"])) if name in common]
    better = {declared.column: declared.better for declared in METRICS.values() if declared.column}
    judges = [config.judge or {} for config in configs]
    same = all(judge == judges[0] for judge in judges)
    if not same:  # no judge's score stands beside another's
        better |= {name: "neither" for judge in judges for name in judge.get("prompts", {})}
    return {
        "key": f"answers-{tier}",
        "tier": tier,
        "same_judge": same,
        "columns": columns,
        "metrics": [{"name": name, "better": better.get(name, "neither")} for name in metrics],
        "shown": [name for name in first if name in common],
    }


def _differing(configs: Sequence[EvaluationConfig]) -> list[str]:
    """What sets each apart from the others, in a line: `retriever fulltext, k 5`."""
    named = [{name: _named(config, name) for name in SETTINGS} for config in configs]
    apart = [name for name in SETTINGS if len({repr(of[name]) for of in named}) > 1]
    return [", ".join(f"{name} {of[name]}" for name in apart if of[name]) for of in named]


def _named(config: EvaluationConfig, name: str) -> Any:
    value = getattr(config, name)
    return value.get("model") if isinstance(value, Mapping) else value
