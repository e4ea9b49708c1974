"""What the numbers say and what to do next, a sentence each: for people who meet these metrics for the first time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from yarus.metrics.metric import LADDERS
from yarus.metrics.table import GOALS, METRICS, Grades
from yarus.tasks.cases.vocabulary import CANNOT_BE_MEASURED, MEASURED
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.findings.exam import exam_text
from yarus.tasks.evaluation.numbers import percent
from yarus.tasks.evaluation.summary import EvaluationSummary, FailedEvaluation, MetricSummary, has_metrics

Condition = dict[str, Any]
"""A filter of cases: metric, min, max, failure, status."""
FAIR = 0.4
"""A kappa that may be as high as this is not the agreement of chance, whatever else it may be."""


class Weakest(NamedTuple):
    """The tier to look at first, and the metric that says so."""

    tier: str
    metric: str
    value: float
    grades: Grades
    bound: float
    """Where the next better grade than the lower of them begins."""


def weakest(summaries: Iterable[EvaluationSummary]) -> Weakest | None:
    """The tier to look at first: of those that users feel the worst graded; among equals the furthest below its bound.

    An embedding without structure or a judge that wavers is named only where no tier that users feel needs attention,
    for it explains or measures, and does not answer anybody.

    Args:
        summaries: of evaluations, as yarus.tasks.evaluation.summary.summary gives them.

    Returns:
        The tier with the metric it is graded by; None where nothing is graded.
    """
    return min((found for summary in summaries for found in _graded(summary)), key=_rank, default=None)


def first(summaries: Sequence[EvaluationSummary]) -> EvaluationSummary | None:
    """The evaluation to look at first: one that failed, else one that measured too little, else of the weakest tier."""
    graded = weakest(summaries)
    urgent = [summary for summary in summaries if summary["state"] == "failed"]
    urgent += [summary for summary in summaries if _is_too_little(summary)]
    urgent += [summary for summary in summaries if graded and summary["tier"] == graded.tier]
    return next(iter(urgent), None)


def lead(found: Sequence[EvaluationSummary | FailedEvaluation]) -> Text:
    """What a report begins with: which tiers failed, or measured too little to go by, and which is the weakest."""
    failed = [_tier(one["tier"]) for one in found if one["state"] == "failed"]
    summaries = [one for one in found if has_metrics(one)]
    if failed:
        return _text("failed", {"tiers": _joined(*failed, between=", ")})
    invalid = [_covered(summary) for summary in summaries if _is_too_little(summary)]
    graded = _weakest_text(summaries)
    return _joined(_text("invalid", {"tiers": _joined(*invalid, between=", ")}), graded) if invalid else graded


def _is_too_little(summary: EvaluationSummary) -> bool:
    """Whether a tier measured too little to go by. If users do not feel the tier and the source has no labels for it,
    the night does not begin with it: its own summary gives the reason.
    """
    labelled = TIERS[summary["tier"]].felt is not None or summary["coverage"] is not None
    return summary["state"] == "invalid" and labelled


def _covered(summary: EvaluationSummary) -> Text:
    """A tier, and how much of what could be measured was; nothing where nothing could be."""
    share = summary["coverage"]
    return {of: name if share is None else f"{name} ({share:.1%})" for of, name in _tier(summary["tier"]).items()}


def _weakest_text(summaries: Sequence[EvaluationSummary]) -> Text:
    found = weakest(summaries)
    if found is None:
        return _text("nothing graded")
    key = {
        "excellent": "all excellent",
        "strong": "all excellent",
        "good": "weakest good",
        "reasonable": "weakest good",
    }
    sure = found.grades.low == found.grades.high
    label = translations("metric_labels", found.metric)
    words = {"tier": _tier(found.tier), "label": {of: text[0].lower() + text[1:] for of, text in label.items()}}
    values = {"value": f"{found.value:.3f}", "bound": f"{found.bound:g}"}
    return _text(key.get(found.grades.low, "weakest" if sure else "weakest unsure"), words, **values)


def says(summary: EvaluationSummary) -> Text:
    """One sentence: what the numbers of an evaluation say."""
    values = _values(summary["metrics"])
    if summary["state"] not in ("completed", "invalid") or not values:
        return _text("not run")
    if summary["tier"] == "judge":
        return _joined(exam_text(summary), _of_judge(summary))
    main = TIERS[summary["tier"]].headlines[0]
    if main not in values:
        return _text("not measured", label=main)
    apart = summary["tier"] == "tier0" and summary["metrics"]["silhouette_score"]["grade"] in ("strong", "reasonable")
    try:
        told = translations(f"tiers.{summary['tier']}", "says apart" if apart else "says", **_shares(values))
    except LookupError:  # a value that the sentence speaks of was not measured
        return _text("value only", {"label": translations("metric_labels", main)}, value=f"{values[main]:.3f}")
    return _joined(told, _resting_on(summary), unsupported_facts(summary))


def _resting_on(summary: EvaluationSummary) -> Text | None:
    """Of how many cases the main metric was measured, where that is not all."""
    main = summary["metrics"][TIERS[summary["tier"]].headlines[0]]
    if main["n_scored"] == main["n_total"]:
        return None
    return _text("resting on", {"cases": cases_are(summary)}, n=str(main["n_scored"]), of=str(main["n_total"]))


def unsupported_facts(summary: EvaluationSummary) -> Text | None:
    """How many answers state a fact that has no support; None where none does."""
    rate = summary["metrics"].get("unsupported_fact_rate")
    if rate is None or not rate["value"]:
        return None
    n = round(rate["value"] * rate["n_scored"])
    key = "unsupported facts shown" if summary["tier"] == "judge_pipeline" else "unsupported facts"
    return _text(key, n=str(n), of=str(rate["n_scored"]))


def case_kind(summary: EvaluationSummary) -> str:
    """What the cases of an evaluation are: questions, answers or texts."""
    if summary["tier"] == "tier0":
        return "questions" if summary["system"].get("texts") == "questions" else "texts"
    return "answers" if summary["tier"] in ("judge", "judge_pipeline") else "questions"


def cases_are(summary: EvaluationSummary) -> Text:
    """What the cases of an evaluation are called, in the plural."""
    return translations("case_names", case_kind(summary))


def next_step(summary: EvaluationSummary) -> tuple[Text, Condition]:
    """What to do next about an evaluation, and the filter that shows the cases in question.

    Returns:
        The advice, and {"metric", "min" or "max"} or {"failure"} or {"status"}, which at least one case is of; empty
        where no case is in question.
    """
    values = _values(summary["metrics"])
    if summary["state"] in ("failed", "cancelled"):
        return _text("resume", id=summary["evaluation_id"], tier=summary["tier"]), {}
    if summary["state"] == "invalid" or summary["coverage"] is None:
        return _about_coverage(summary)
    if summary["tier"] in ("tier1", "real_users") and {"hit_rate@1", "hit_rate@10"} <= values.keys():
        return _about_ranking(values["hit_rate@1"], values["hit_rate@10"])
    if "failures" in summary and summary["failures"]["counts"]:
        return _about_failures(summary["failures"]["counts"])
    return _about_doubtful(summary, values)


def _graded(summary: EvaluationSummary) -> Iterator[Weakest]:
    """The graded headline metrics of an evaluation."""
    for name in TIERS[summary["tier"]].headlines:
        metric, bounds = summary["metrics"].get(name), METRICS[name].thresholds
        if metric and bounds and metric["grade"] and metric["grade_high"] and metric["value"] is not None:
            place = LADDERS[len(bounds)].index(metric["grade"])
            grades = Grades(metric["grade"], metric["grade_high"])
            yield Weakest(summary["tier"], name, metric["value"], grades, bounds[min(place, len(bounds) - 1)])


def _rank(found: Weakest) -> tuple[int, float]:
    """Worst first: what surely needs attention and is felt, what does and explains, what may, then what is better."""
    bad = ("attention", "absent", "weak")
    level = {"good": 3, "reasonable": 3}.get(found.grades.low, 4)
    if found.grades.low in bad:
        level = 2 if found.grades.high not in bad else 0 if TIERS[found.tier].felt else 1
    return level, found.value / found.bound


def _about_coverage(summary: EvaluationSummary) -> tuple[Text, Condition]:
    """The cases that were not measured: those that failed, or where none could be measured, those without a label."""
    none = summary["coverage"] is None
    geometry = none and summary["tier"] == "tier0" and bool(_values(summary["metrics"]))
    wanted = {
        status: n
        for status, n in summary["statuses"].items()
        if status not in MEASURED and (status in CANNOT_BE_MEASURED) == none
    }
    most = max(wanted, key=lambda status: wanted[status], default=None)
    advice = _text(
        "nothing clustered" if geometry else "nothing measurable" if none else "restore coverage",
        {"cases": cases_are(summary)},
    )
    if most is None:
        return advice, {}
    often = _text("most often", {"status": translations("statuses", most)}, n=str(wanted[most]))
    return _joined(advice, None if none else often), {"status": most}


def _about_doubtful(summary: EvaluationSummary, values: Mapping[str, float]) -> tuple[Text, Condition]:
    """The cases that a tier would have read, as far as there are any; evaluations of earlier versions do not say."""
    tier, n = summary["tier"], summary.get("doubtful")
    if n == 0 and TIERS[tier].headlines[0] in values:
        return _text("none doubtful"), {}
    return translations(f"tiers.{tier}", "advice"), TIERS[tier].doubtful if n else {}


def _about_ranking(first: float, ten: float) -> tuple[Text, Condition]:
    if first == 1:
        return _text("nothing to do"), {}
    if ten - first > 1 - ten:
        return _text("re-rank", gap=percent(ten - first)), {"metric": "hit_rate@1", "max": 0}
    return _text("missed", missed=percent(1 - ten)), {"metric": "hit_rate@10", "max": 0}


def _about_failures(counts: Mapping[str, int]) -> tuple[Text, Condition]:
    stage = max(counts, key=lambda name: counts[name])
    if not counts[stage]:
        return _text("nothing to do"), {}
    words = {"stage": translations("failures", stage)}
    return _text("failures", words, n=str(counts[stage]), of=str(sum(counts.values()))), {"failure": stage}


def _of_judge(summary: EvaluationSummary) -> Text | None:
    """Whether the judge repeats itself; None where nothing was judged twice, or no language model judges."""
    metrics = summary["metrics"]
    asked_twice = "weighted_kappa" in metrics and metrics["consistency_score"]["value"] is not None
    if not asked_twice or metrics["consistency_score"]["judge"] == "stand-in":
        return None
    try:
        return translations("tiers.judge", _agreement(metrics["weighted_kappa"]), **_shares(_values(metrics)))
    except LookupError:  # a value that the sentence speaks of was not measured
        return None


def _joined(*parts: Text | None, between: str = " ") -> Text:
    return {language: between.join(text[language] for text in parts if text) for language in LANGUAGES}


def _agreement(kappa: MetricSummary) -> str:
    """Whether the judge agrees with itself more than guesses would, by the interval of kappa."""
    if kappa["value"] is None:
        return "says one score"
    if kappa["ci_low"] is not None and kappa["ci_low"] > 0:
        return "says beyond chance"
    return "says unclear" if kappa["ci_high"] is None or kappa["ci_high"] >= FAIR else "says by chance"


def _values(metrics: Mapping[str, MetricSummary]) -> dict[str, float]:
    return {name: metric["value"] for name, metric in metrics.items() if metric["value"] is not None}


def _shares(values: Mapping[str, float]) -> dict[str, str]:
    """Values as words in a sentence: shares in percent, counts whole; `@` and dots cannot stand in a template."""
    said = {}
    for name, value in values.items():
        unit = METRICS[name].unit if name in METRICS else "share"
        said[name.replace("@", "_at_")] = (
            f"{value:.0f}" if unit == "count" else percent(value) if unit == "share" else f"{value:.2f}"
        )
    return said


def _tier(tier: str) -> Text:
    """The name of a tier inside a sentence."""
    return translations(f"tiers.{tier}", "sentence")


def _text(key: str, words: Mapping[str, Text] | None = None, **values: str) -> Text:
    return {
        language: texts("guidance", language)[key].format(
            **{name: text[language] for name, text in (words or {}).items()}, **values
        )
        for language in LANGUAGES
    }


class GoalMetric(MetricSummary):
    """A metric that answers a question, with its value in a tier."""

    tier: str
    metric: str


class AnsweredGoal(TypedDict):
    """A question and the metrics that answer it."""

    key: str
    label: Text
    names: tuple[str, ...]
    """Of all its metrics, measured or not."""
    metrics: list[GoalMetric]


def goals(summaries: Sequence[EvaluationSummary]) -> list[AnsweredGoal]:
    """Which metrics answer which question, with their values.

    Returns:
        One document a goal: key, label by language, metrics: tier, metric, value, grade.
    """
    found: list[AnsweredGoal] = []
    for goal in GOALS:
        metrics: list[GoalMetric] = [
            {"tier": summary["tier"], "metric": name, **summary["metrics"][name]}
            for summary in summaries
            for name in goal.metrics
            if name in TIERS[summary["tier"]].headlines and name in summary["metrics"]
        ]
        label = translations("goals", goal.key)
        found.append({"key": goal.key, "label": label, "names": goal.metrics, "metrics": metrics})
    return found
