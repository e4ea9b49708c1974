"""What people's labels say, on stdout."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from yarus.metrics.table.corrected import SUFFIX
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.numbers import rounded
from yarus.tasks.evaluation.summary import MetricSummary

if TYPE_CHECKING:
    from yarus.tasks.dataset.labelling.plan import LabelPlan


def corrected_lines(metrics: Mapping[str, MetricSummary], language: str) -> Iterator[str]:
    """What the corrected means of an evaluation are made of, and how far people say that the judge is off."""
    words = texts("labels", language)
    filled = False
    for name, metric in metrics.items():
        if "n_results" in (metric.get("labels") or {}):
            if not filled:  # one sentence for all metrics of relevance, which rest on the same labels
                yield results_line(name, metric, words)
            filled = True
        elif (found := metric.get("labels")) and found["judge_error"] is not None:
            figures = {"metric": name, "error": rounded(found["judge_error"], "share", "+")}
            key = "of others" if found["n_others"] else "of its own" if found["acted_on"] else "few"
            yield words[key].format(n=found["n_labels"], own=found["n_own"], **figures)


def results_line(name: str, metric: MetricSummary, words: Mapping[str, str]) -> str:
    """How much of what a judge has filled up people have seen."""
    found = metric["labels"]
    error = found["judge_error"]
    key = "of results" if found["acted_on"] and error is not None else "few results"
    shown = rounded(error, "share", "+") if error is not None else ""
    return words[key].format(
        metric=name.removesuffix(SUFFIX), results=found["n_results"], n=found["n_labels"], error=shown
    )


def plan_lines(plan: "LabelPlan", language: str) -> Iterator[str]:
    """How many labels are needed, and by what that is known."""
    words = texts("labels", language)
    figures = {name: plan[name] for name in ("metric", "cases", "n_own")} | {"width": f"{plan['width']:g}"}
    if plan["needed"] is None:
        yield words["not enough cases"].format(**figures)
    else:
        yield words["needed"].format(needed=plan["needed"], missing=plan["missing"], **figures)
    if plan["width_now"] is not None:
        yield words["width now"].format(width=rounded(plan["width_now"], "share"))
    yield words[f"by {plan['basis']}"].format(correlation=rounded(plan["correlation"], "share"))
    if plan["needed_alone"] is not None and plan["basis"] != "nothing":
        yield words["alone"].format(needed=plan["needed_alone"])
