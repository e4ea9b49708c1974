"""Print on stdout what people's labels show."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from yarus.metrics.table.corrected import CORRECTED_SUFFIX
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.number_format import format_rounded
from yarus.tasks.evaluation.summary import MetricSummary

if TYPE_CHECKING:
    from yarus.tasks.dataset.labelling.plan import LabelPlan


def list_correction_lines(metrics: Mapping[str, MetricSummary], language: str) -> Iterator[str]:
    """Yield on which labels the corrected means rest, and how far the judge is off according to people."""
    words = texts("labels", language)
    filled = False
    for name, metric in metrics.items():
        if "n_results" in (metric.get("labels") or {}):
            if not filled:  # one sentence for all metrics of relevance, because they use the same labels
                yield describe_results_labels(name, metric, words)
            filled = True
        elif (labels := metric.get("labels")) and labels["judge_error"] is not None:
            figures = {"metric": name, "error": format_rounded(labels["judge_error"], "share", "+")}
            key = "of others" if labels["n_others"] else "of its own" if labels["acted_on"] else "few"
            yield words[key].format(n=labels["n_labels"], own=labels["n_own"], **figures)


def describe_results_labels(name: str, metric: MetricSummary, words: Mapping[str, str]) -> str:
    """Return how many of the labels that a judge added people have checked."""
    labels = metric["labels"]
    error = labels["judge_error"]
    key = "of results" if labels["acted_on"] and error is not None else "few results"
    error_text = format_rounded(error, "share", "+") if error is not None else ""
    return words[key].format(
        metric=name.removesuffix(CORRECTED_SUFFIX), results=labels["n_results"], n=labels["n_labels"], error=error_text
    )


def list_plan_lines(plan: "LabelPlan", language: str) -> Iterator[str]:
    """Yield how many labels are needed, and how that was estimated."""
    words = texts("labels", language)
    figures = {name: plan[name] for name in ("metric", "cases", "n_own")} | {"width": f"{plan['width']:g}"}
    if plan["n_labels_needed"] is None:
        yield words["not enough cases"].format(**figures)
    else:
        yield words["needed"].format(needed=plan["n_labels_needed"], missing=plan["n_labels_missing"], **figures)
    if plan["width_now"] is not None:
        yield words["width now"].format(width=format_rounded(plan["width_now"], "share"))
    yield words[f"by {plan['basis']}"].format(correlation=format_rounded(plan["correlation"], "share"))
    if plan["n_labels_without_judge"] is not None and plan["basis"] != "nothing":
        yield words["alone"].format(needed=plan["n_labels_without_judge"])
