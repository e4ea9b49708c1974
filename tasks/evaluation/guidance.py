"""Explain the results and the next step in one sentence each, for people who see these metrics for the first time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from yarus.metrics.metric import BAD_GRADES, GRADE_LADDERS
from yarus.metrics.table import GOALS, METRICS, GradeRange
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES, UNMEASURABLE_STATUSES
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts, translations
from yarus.tasks.config.tiers import TIERS, shown_headlines
from yarus.tasks.evaluation.findings import failures, showing
from yarus.tasks.evaluation.findings.exam import exam_text
from yarus.tasks.evaluation.findings.finding import Feature
from yarus.tasks.evaluation.findings.findings import FINDINGS
from yarus.tasks.evaluation.number_format import format_metric, format_percent, format_plain_interval
from yarus.tasks.evaluation.summary import EvaluationSummary, FailedEvaluation, MetricSummary, has_metrics

Condition = dict[str, Any]
"""A filter of cases: metric, min, max, failure, status."""
FOUND_NOT_FIRST: Condition = {"metric": "mrr", "min": 0.1, "max": 0.5}
"""The first right passage has a rank between 2 and 10: its reciprocal is in this range."""
JUDGED_FINDINGS: tuple[Feature, ...] = (failures, showing)
"""Findings that rest on what the judge scored."""
EXPLAINING_TIER = "tier0"
"""The tier that explains others and leads a report only if nothing else was measured."""
FAIR_KAPPA = 0.4
"""If the interval of a kappa reaches this value, the agreement may be better than chance."""


class WeakestTier(NamedTuple):
    """The tier to look at first, with the metric that it was chosen by."""

    tier: str
    metric: str
    value: float
    grades: GradeRange
    bound: float
    """Threshold of the grade above the lower of them."""
    formatted: TranslatedText
    """The value with its interval."""


def find_weakest_tier(summaries: Iterable[EvaluationSummary]) -> WeakestTier | None:
    """Return the tier to look at first: the worst graded one, or among equals the furthest below its threshold.

    The judge is named only if no tier that users notice needs attention. Embeddings are named only if nothing else was
    measured.

    Args:
        summaries: of evaluations, as yarus.tasks.evaluation.summary.read_summary gives them.

    Returns:
        The tier with the metric it is graded by; None if nothing is graded.
    """
    all_summaries = [*summaries]
    named = [summary for summary in all_summaries if summary["tier"] != EXPLAINING_TIER]
    chosen = named if any(map(_is_measured, named)) else all_summaries
    return min((candidate for summary in chosen for candidate in _graded(summary)), key=_urgency, default=None)


def choose_first_evaluation(summaries: Sequence[EvaluationSummary]) -> EvaluationSummary | None:
    """Return the evaluation to look at first.

    One that failed comes first, then one that measured too little, then one of the weakest tier.
    """
    graded = find_weakest_tier(summaries)
    urgent = [summary for summary in summaries if summary["state"] == "failed"]
    urgent += [summary for summary in summaries if _is_too_little(summary)]
    urgent += [summary for summary in summaries if graded and summary["tier"] == graded.tier]
    return next(iter(urgent), None)


def lead_sentence(evaluations: Sequence[EvaluationSummary | FailedEvaluation]) -> TranslatedText:
    """Return the first sentence of a report: tiers that failed or measured too little, and the weakest tier.

    If only embeddings failed, what users notice comes first.
    """
    tiers = {evaluation["tier"] for evaluation in evaluations if evaluation["state"] == "failed"}
    failed = sorted(tiers, key=tier_rank)
    summaries = [evaluation for evaluation in evaluations if has_metrics(evaluation)]
    failed_text = _text("failed", {"tiers": _join(*map(_tier_name, failed), between=", ")}) if failed else None
    if failed_text and (failed != [EXPLAINING_TIER] or not any(map(_is_measured, summaries))):
        return failed_text
    invalid = [_coverage(summary) for summary in summaries if _is_too_little(summary)]
    invalid_text = _text("invalid", {"tiers": _join(*invalid, between=", ")}) if invalid else None
    return _join(invalid_text, _weakest_text(summaries), _unjudged_text(summaries), failed_text)


def _unjudged_text(summaries: Sequence[EvaluationSummary]) -> TranslatedText | None:
    """Return which tiers no language model judged, if another tier leads the report."""
    tiers = [_tier_name(summary["tier"]) for summary in summaries if has_stand_in(summary)]
    if not tiers or find_weakest_tier(summaries) is None:
        return None
    return _text("tiers not judged", {"tiers": _join(*tiers, between=", ")})


def tier_rank(tier: str) -> tuple[bool, int]:
    """Return the sort key of a tier: the more directly users notice it, the earlier; embeddings last."""
    return tier == EXPLAINING_TIER, TIERS[tier].felt or len(TIERS)


def _is_measured(summary: EvaluationSummary) -> bool:
    """Return whether an evaluation has enough measured cases and a value of a headline metric."""
    names = shown_headlines(summary["tier"], summary["metrics"])
    return not _is_too_little(summary) and any(name in _values(summary["metrics"]) for name in names)


def _is_too_little(summary: EvaluationSummary) -> bool:
    """Return whether a tier measured too little for a conclusion.

    The night's report does not begin with a tier that users do not notice and that the source has no labels for; its
    own summary gives the reason.
    """
    labelled = TIERS[summary["tier"]].felt is not None or summary["coverage"] is not None
    return summary["state"] == "invalid" and labelled


def _coverage(summary: EvaluationSummary) -> TranslatedText:
    """Return the name of a tier with its coverage, if anything could be measured."""
    share = summary["coverage"]
    return {
        language: name if share is None else f"{name} ({share:.1%})"
        for language, name in _tier_name(summary["tier"]).items()
    }


def _weakest_text(summaries: Sequence[EvaluationSummary]) -> TranslatedText:
    candidate = find_weakest_tier(summaries)
    if candidate is None:
        ungraded = sorted(filter(has_stand_in, summaries), key=lambda summary: tier_rank(summary["tier"]))
        return summary_sentence(ungraded[0]) if ungraded else _text("nothing graded")
    key = {
        "excellent": "all excellent",
        "strong": "all excellent",
        "good": "weakest good",
        "reasonable": "weakest good",
    }
    is_certain = candidate.grades.low == candidate.grades.high
    chosen = key.get(candidate.grades.low, "weakest" if is_certain else "weakest unsure")
    values = {"tier": _tier_name(candidate.tier), "value": candidate.formatted}
    embeddings = [graded for summary in summaries if summary["tier"] == EXPLAINING_TIER for graded in _graded(summary)]
    if chosen == "all excellent" and embeddings and embeddings[0].grades.low != "strong":
        chosen = "weakest good"
    if candidate.grades.low in key and embeddings and embeddings[0].grades.low in BAD_GRADES:
        chosen, values["grade"] = "weakest but embeddings", translations("grades", embeddings[0].grades.low)
    return _text(chosen, values, metric=candidate.metric, bound=f"{candidate.bound:g}")


def summary_sentence(summary: EvaluationSummary) -> TranslatedText:
    """Return what sums up an evaluation: its numbers, the main one with its interval, and doubts about its judge."""
    values = _values(summary["metrics"])
    if summary["state"] not in ("completed", "invalid") or not values:
        return _text("not run")
    if summary["tier"] == "judge":
        return _join(exam_text(summary), _of_judge(summary))
    if has_stand_in(summary):
        return _stand_in_text(summary)
    main = TIERS[summary["tier"]].headlines[0]
    if main not in values:
        return _text("not measured", label=main)
    metric = summary["metrics"][main]
    apart = summary["tier"] == "tier0" and metric["grade"] in ("strong", "reasonable")
    try:
        sentence = _fill(f"tiers.{summary['tier']}", "says apart" if apart else "says", _format(summary))
    except LookupError:  # a value that the sentence speaks of was not measured
        value = _format_value(values[main], metric, partial(format_metric, main))
        sentence = _text("value only", {"label": translations("metric_labels", main), "value": value})
    return _join(sentence, _resting_on(summary), _doubt_text(metric), unsupported_facts_sentence(summary))


def has_stand_in(summary: EvaluationSummary) -> bool:
    """Return whether a stand-in, not a language model, judged a headline metric of an evaluation."""
    judged = (summary["metrics"].get(name) for name in TIERS[summary["tier"]].headlines)
    return any(metric["judge"] == "stand-in" for metric in judged if metric and metric["value"] is not None)


def _stand_in_text(summary: EvaluationSummary) -> TranslatedText:
    """Return that no model judged, and the headline metrics that need no judge, the first with its interval."""
    metrics, values, names = summary["metrics"], _values(summary["metrics"]), _sound_headlines(summary)
    if not names:
        return _join(_text("no model judged"), unsupported_facts_sentence(summary))
    first = _format_value(values[names[0]], metrics[names[0]], partial(format_metric, names[0]))
    others = "".join(f", {name} {format_metric(name, values[name])}" for name in names[1:])
    without = _text("without a judge", {"value": first}, metric=names[0], others=others)
    doubt = _doubt_text(metrics[names[0]])
    return _join(_text("no model judged"), without, doubt, unsupported_facts_sentence(summary))


def _doubt_text(metric: MetricSummary) -> TranslatedText | None:
    """Return what is doubtful about the judge of a metric; None if it passed its exam, or if no judge is involved."""
    if metric["judge"] in (None, "passed"):
        return None
    return _text("doubtful judge", {"standing": translations("standings", metric["judge"])})


def list_shown_features(summary: EvaluationSummary) -> list[Feature]:
    """Return the features whose findings are shown: if a stand-in judged, only those that need no judge."""
    return [feature for feature in FINDINGS if not (has_stand_in(summary) and feature in JUDGED_FINDINGS)]


def finding_sentences(summary: EvaluationSummary) -> Iterator[TranslatedText]:
    """Yield the sentences of an evaluation's findings."""
    yield from (sentence for feature in list_shown_features(summary) for sentence in feature.sentences(summary))


def _sound_headlines(summary: EvaluationSummary) -> list[str]:
    """Return the first metrics that have a value and do not depend on a stand-in, the main one first."""
    metrics = summary["metrics"]
    names = shown_headlines(summary["tier"], metrics)
    sound = [name for name in names if name in _values(metrics) and metrics[name]["judge"] != "stand-in"]
    also_shown = TIERS[summary["tier"]].also_shown
    return sorted(sound, key=lambda name: name not in also_shown) if has_stand_in(summary) else sound


def _resting_on(summary: EvaluationSummary) -> TranslatedText | None:
    """Return how many cases the main metric was measured on, if not all."""
    main = summary["metrics"][TIERS[summary["tier"]].headlines[0]]
    if main["n_scored"] == main["n_total"]:
        return None
    return _text("resting on", {"cases": case_names(summary)}, n=str(main["n_scored"]), of=str(main["n_total"]))


def unsupported_facts_sentence(summary: EvaluationSummary) -> TranslatedText | None:
    """Return how many answers state a fact without support; None if no answer does."""
    rate = summary["metrics"].get("unsupported_fact_rate")
    if rate is None or not rate["value"]:
        return None
    n = round(rate["value"] * rate["n_scored"])
    key = "unsupported facts shown" if summary["tier"] == "judge_pipeline" else "unsupported facts"
    return _text(key, n=str(n), of=str(rate["n_scored"]))


def case_kind(summary: EvaluationSummary) -> str:
    """Return the kind of an evaluation's cases: questions, answers or texts."""
    if summary["tier"] == "tier0":
        return "questions" if summary["system"].get("texts") == "questions" else "texts"
    return "answers" if summary["tier"] in ("judge", "judge_pipeline") else "questions"


def case_names(summary: EvaluationSummary) -> TranslatedText:
    """Return the plural name of an evaluation's cases."""
    return translations("case_names", case_kind(summary))


def advise_next_step(summary: EvaluationSummary) -> tuple[TranslatedText, Condition]:
    """Return the advice what to do next about an evaluation, and the filter of the cases in question.

    Returns:
        The advice, and {"metric" with "min", "max" or both} or {"failure"} or {"status"}, which at least one case
        matches; empty if no case is in question.
    """
    values = _values(summary["metrics"])
    if summary["state"] in ("failed", "cancelled"):
        return _text("resume", id=summary["evaluation_id"], tier=summary["tier"]), {}
    if summary["state"] == "invalid" or summary["coverage"] is None:
        return _about_coverage(summary)
    ranking = _about_ranking(summary["metrics"])
    if has_stand_in(summary):
        needs_attention = ranking and summary["metrics"]["hit_rate@1"]["grade"] in BAD_GRADES
        advice, condition = ranking if ranking and needs_attention else (None, {})
        return _join(advice, _text("set a judge")), condition
    if summary["tier"] in ("tier1", "real_users") and ranking:
        return ranking
    if "failures" in summary and summary["failures"]["counts"]:
        return _advise_on_commonest_failure(summary["failures"]["counts"])
    return _about_doubtful(summary, values)


def _graded(summary: EvaluationSummary) -> Iterator[WeakestTier]:
    """Yield the graded headline metrics of an evaluation."""
    for name in TIERS[summary["tier"]].headlines:
        metric, bounds = summary["metrics"].get(name), METRICS[name].thresholds
        if metric and bounds and metric["grade"] and metric["grade_high"] and metric["value"] is not None:
            position = GRADE_LADDERS[len(bounds)].index(metric["grade"])
            grades = GradeRange(metric["grade"], metric["grade_high"])
            bound = bounds[min(position, len(bounds) - 1)]
            formatted = _format_value(metric["value"], metric, partial(format_metric, name))
            yield WeakestTier(summary["tier"], name, metric["value"], grades, bound, formatted)


def _urgency(candidate: WeakestTier) -> tuple[int, float]:
    """Return the sort key: certainly bad and noticed by users, certainly bad, possibly bad, then the better ones."""
    level = {"good": 3, "reasonable": 3}.get(candidate.grades.low, 4)
    if candidate.grades.low in BAD_GRADES:
        level = 2 if candidate.grades.high not in BAD_GRADES else 0 if TIERS[candidate.tier].felt else 1
    return level, candidate.value / candidate.bound


def _about_coverage(summary: EvaluationSummary) -> tuple[TranslatedText, Condition]:
    """Return advice on cases that were not measured: failed ones, or unlabelled ones if none could be measured."""
    is_unmeasurable = summary["coverage"] is None
    has_geometry = is_unmeasurable and summary["tier"] == "tier0" and bool(_values(summary["metrics"]))
    counts = {
        status: n
        for status, n in summary["statuses"].items()
        if status not in MEASURED_STATUSES and (status in UNMEASURABLE_STATUSES) == is_unmeasurable
    }
    most = max(counts, key=lambda status: counts[status], default=None)
    advice = _text(
        "nothing clustered" if has_geometry else "nothing measurable" if is_unmeasurable else "restore coverage",
        {"cases": case_names(summary)},
    )
    if most is None:
        return advice, {}
    most_often = _text("most often", {"status": translations("statuses", most)}, n=str(counts[most]))
    return _join(advice, None if is_unmeasurable else most_often), {"status": most}


def _about_doubtful(summary: EvaluationSummary, values: Mapping[str, float]) -> tuple[TranslatedText, Condition]:
    """Return advice to read a tier's doubtful cases, if there are any; earlier versions did not count them."""
    tier, n = summary["tier"], summary.get("doubtful")
    if n == 0 and TIERS[tier].headlines[0] in values:
        return _text("none doubtful"), {}
    return translations(f"tiers.{tier}", "advice"), TIERS[tier].doubtful if n else {}


def _about_ranking(metrics: Mapping[str, MetricSummary]) -> tuple[TranslatedText, Condition] | None:
    """Return advice on questions whose right passage is not first; None if the hit rates were not measured."""
    values = _values(metrics)
    if not {"hit_rate@1", "hit_rate@10"} <= values.keys():
        return None
    share_first, share_in_ten = values["hit_rate@1"], values["hit_rate@10"]
    if share_first == 1:
        return _text("nothing to do"), {}
    if share_in_ten - share_first > 1 - share_in_ten and "mrr" in values:
        return _text("re-rank", gap=format_percent(share_in_ten - share_first)), FOUND_NOT_FIRST
    return _text("missed", missed=format_percent(1 - share_in_ten)), {"metric": "hit_rate@10", "max": 0}


def _advise_on_commonest_failure(counts: Mapping[str, int]) -> tuple[TranslatedText, Condition]:
    stage = max(counts, key=lambda name: counts[name])
    if not counts[stage]:
        return _text("nothing to do"), {}
    words = {"stage": translations("failures", stage)}
    return _text("failures", words, n=str(counts[stage]), of=str(sum(counts.values()))), {"failure": stage}


def _of_judge(summary: EvaluationSummary) -> TranslatedText | None:
    """Return whether the judge repeats itself; None if nothing was judged twice or no language model judges."""
    metrics = summary["metrics"]
    judged_twice = "weighted_kappa" in metrics and metrics["consistency_score"]["value"] is not None
    if not judged_twice or metrics["consistency_score"]["judge"] == "stand-in":
        return None
    try:
        return _fill("tiers.judge", _agreement(metrics["weighted_kappa"]), _format(summary))
    except LookupError:  # a value that the sentence speaks of was not measured
        return None


def _join(*parts: TranslatedText | None, between: str = " ") -> TranslatedText:
    return {language: between.join(text[language] for text in parts if text) for language in LANGUAGES}


def _agreement(kappa: MetricSummary) -> str:
    """Return the text key for the judge's agreement with itself, by the interval of kappa."""
    if kappa["value"] is None:
        return "says one score"
    if kappa["ci_low"] is not None and kappa["ci_low"] > 0:
        return "says beyond chance"
    return "says unclear" if kappa["ci_high"] is None or kappa["ci_high"] >= FAIR_KAPPA else "says by chance"


def _values(metrics: Mapping[str, MetricSummary]) -> dict[str, float]:
    return {name: metric["value"] for name, metric in metrics.items() if metric["value"] is not None}


def _format(summary: EvaluationSummary) -> dict[str, TranslatedText]:
    """Format values for a sentence: shares in percent, counts whole, the main metric with its interval.

    `@` and dots are not allowed in templates.
    """
    formatted, main = {}, TIERS[summary["tier"]].headlines[0]
    for name, metric in summary["metrics"].items():
        if metric["value"] is not None:
            unit = METRICS[name].unit if name in METRICS else "share"
            write = format_percent if unit == "share" else partial(format_metric, name)
            formatted[name.replace("@", "_at_")] = (
                _format_value(metric["value"], metric, write)
                if name == main
                else dict.fromkeys(LANGUAGES, write(metric["value"]))
            )
    return formatted


def _format_value(value: float, metric: MetricSummary, write: Callable[[float], str]) -> TranslatedText:
    """Format the value of a metric with its 95 % interval, if it has one."""
    text, interval = write(value), format_plain_interval(metric, write).replace(" % –", " –")
    return _text("with interval", value=text, interval=interval) if interval else dict.fromkeys(LANGUAGES, text)


def _tier_name(tier: str) -> TranslatedText:
    """Return the name of a tier inside a sentence."""
    return translations(f"tiers.{tier}", "sentence")


def _text(key: str, words: Mapping[str, TranslatedText] | None = None, **values: str) -> TranslatedText:
    return _fill("guidance", key, words or {}, **values)


def _fill(section: str, key: str, words: Mapping[str, TranslatedText], **values: str) -> TranslatedText:
    """Return a text in every language, formatted with values and words of that language."""
    return {
        language: texts(section, language)[key].format(
            **{name: text[language] for name, text in words.items()}, **values
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
    label: TranslatedText
    names: tuple[str, ...]
    """Names of all its metrics, measured or not."""
    metrics: list[GoalMetric]


def list_goals(summaries: Sequence[EvaluationSummary]) -> list[AnsweredGoal]:
    """Return which metrics answer which question, with their values.

    Returns:
        One document per goal: key, label by language, metrics: tier, metric, value, grade.
    """
    answered: list[AnsweredGoal] = []
    for goal in GOALS:
        metrics: list[GoalMetric] = [
            {"tier": summary["tier"], "metric": name, **summary["metrics"][name]}
            for summary in summaries
            for name in goal.metrics
            if name in TIERS[summary["tier"]].headlines and name in summary["metrics"]
        ]
        label = translations("goals", goal.key)
        answered.append({"key": goal.key, "label": label, "names": goal.metrics, "metrics": metrics})
    return answered
