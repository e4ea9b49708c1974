"""Incomplete labels: the questions with a label against those without, as figures, JSON and sentences."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from yarus.metrics.incomplete.selection import (
    MIN_QUESTIONS,
    Feature,
    compare_feature,
    inverse_propensity_mean,
    labelling_propensities,
)
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.significance import holm
from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import column_values, float_column
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.findings.finding import MeasuredEvaluation
from yarus.tasks.evaluation.findings_schema import (
    FeatureDifference,
    FeatureName,
    Incomplete,
    LabelledQuestions,
)
from yarus.tasks.evaluation.number_format import format_metric, format_percent, replace_non_finite

MAX_P_VALUE = 0.03
"""Holm's p below which questions with a label count as different from those without."""
MAX_TOPICS = 8
"""Number of most frequent pages that are compared."""
MIDDLE_RANK = 0.5
"""Relative rank of a question without a value: the middle."""


ONE_LABEL_METRICS = ("hit_rate@10", "recall@10", "hit_rate@1", "judged@1")
"""The first two are equal with one relevant label per question, the others without labels of irrelevant results."""


def find_incomplete_labels(cases: pa.Table, headlines: Sequence[str]) -> Incomplete:
    """Compute how incomplete labels affect a tier that ranks.

    Args:
        cases: of an evaluation, including those that could not be measured.
        headlines: metrics whose means are weighted again.
    """
    is_counted = np.ones(len(cases), dtype=bool)
    if "stratum" in cases.column_names:
        is_counted = np.asarray(pc.equal(cases["stratum"], HEADLINE_STRATUM).fill_null(False))
    if_right = cases.filter(pa.array(is_counted))["if_right"].combine_chunks()
    names = [field.name for field in if_right.type]
    means = {name: pc.mean(pc.struct_field(if_right, name)).as_py() for name in names}
    return {
        "if_right": {name: mean for name, mean in means.items() if mean is not None},
        "questions": _labelled_questions(cases, is_counted, headlines),
    }


def _labelled_questions(
    cases: pa.Table, is_counted: np.typing.NDArray[np.bool_], headlines: Sequence[str]
) -> LabelledQuestions | None:
    """Compare questions with a counting label with all others; None if either group is empty."""
    is_labelled = is_counted & np.array([bool(relevant) for relevant in column_values(cases, "relevant")], dtype=bool)
    n, n_others = int(is_labelled.sum()), int((~is_labelled).sum())
    if not n or not n_others:
        return None
    result: LabelledQuestions = {"n": n, "n_others": n_others, "differ_in": [], "features": {}, "reweighted": {}}
    if min(n, n_others) < MIN_QUESTIONS:
        return result
    # Only labelled questions have pages as groups; users are known for all.
    groups = [group if (group or "").startswith("user ") else None for group in column_values(cases, "group")]
    features = _question_features(cases)
    compared = {name: compare_feature(values, is_labelled, groups) for name, values in features.items()}
    compared = {name: feature for name, feature in compared.items() if feature.p == feature.p}
    adjusted = holm([feature.p for feature in compared.values()])
    result["features"] = {
        name: _feature_difference(name, feature, p_value)
        for (name, feature), p_value in zip(compared.items(), adjusted, strict=True)
    }
    result["differ_in"] = [name for name, feature in result["features"].items() if feature["p"] < MAX_P_VALUE]
    if result["differ_in"]:
        propensities = labelling_propensities(np.column_stack([features[name] for name in compared]), is_labelled)
        for name in headlines:
            values = np.where(is_labelled, float_column(cases, name), np.nan)
            mean = inverse_propensity_mean(values, propensities, column_values(cases, "group"))
            if mean.value == mean.value:
                low, high = replace_non_finite(mean.interval)
                value = float(np.nanmean(values))
                result["reweighted"][name] = {"value": value, "reweighted": mean.value, "ci_low": low, "ci_high": high}
    return result


def _feature_difference(name: FeatureName, feature: Feature, p_value: float) -> FeatureDifference:
    if name == "topic":
        return {"labelled": None, "others": None, "p": float(p_value)}
    return {"labelled": float(feature.labelled[0]), "others": float(feature.others[0]), "p": float(p_value)}


def _question_features(cases: pa.Table) -> dict[FeatureName, Floats]:
    """Compute what is known of every question before it is labelled; numbers as relative ranks from 0 to 1."""
    features: dict[FeatureName, Floats] = {
        "length": _ranks(np.array([float(len((text or "").split())) for text in column_values(cases, "question")]))
    }
    if "distances" in cases.column_names:
        distances = [values or [] for values in column_values(cases, "distances")]
        nearest = np.array([values[0] if values else np.nan for values in distances])
        runner_up = np.array([values[1] if len(values) > 1 else np.nan for values in distances])
        features["score"], features["lead"] = _ranks(-nearest), _ranks(runner_up - nearest)
    if "asked_at" in cases.column_names:
        features["time"] = _ranks(cases["asked_at"].cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.float64))
    pages = [(values or [None])[0] for values in column_values(cases, "retrieved")]
    frequent = [
        page for page, n in Counter(pages).most_common(MAX_TOPICS + 1) if page is not None and n >= MIN_QUESTIONS
    ][:MAX_TOPICS]
    if frequent:
        features["topic"] = np.array([[float(page == topic) for topic in frequent] for page in pages])
    return features


def _ranks(values: Floats) -> Floats:
    """Return the relative rank of each value, 0 to 1; ties share one, and a missing value gets the middle."""
    is_known = np.isfinite(values)
    ranks = np.full(len(values), MIDDLE_RANK)
    if is_known.any():
        ordered = np.sort(values[is_known])
        below, up_to = (np.searchsorted(ordered, values[is_known], side=side) for side in ("left", "right"))
        ranks[is_known] = (below + up_to) / (2 * len(ordered))
    return ranks


def find(evaluated: MeasuredEvaluation) -> Mapping[str, Incomplete]:
    """See `Feature`."""
    names = evaluated.cases.column_names
    if "if_right" not in names or "pooled" in names:
        return {}
    headlines = [name for name in TIERS[evaluated.run.tier].headlines if name in names]
    return {"incomplete": find_incomplete_labels(evaluated.cases, headlines)}


def sentences(summary: Mapping[str, Any]) -> Iterator[TranslatedText]:
    """Yield how far missing labels could change the headlines; nothing if these need no such labels."""
    document: Incomplete | None = summary.get("incomplete")
    headlines = TIERS[summary["tier"]].headlines
    if document is None or not any(METRICS[name].needs == "relevant" for name in headlines):
        return
    if summary["tier"] == "real_users":
        yield translations("incomplete", "from production")
    values = {name: metric["value"] for name, metric in summary["metrics"].items()}
    if not has_one_label_per_question(summary["tier"], values) and (bounds := _format_bounds(summary, document)):
        judged = summary["metrics"]["judged@10"]["value"] or 0
        yield translations("incomplete", "unjudged", judged=format_percent(judged), bounds=bounds)
    if questions := document["questions"]:
        yield from _question_sentences(questions, headlines)


def has_one_label_per_question(tier: str, values: Mapping[str, float | None]) -> bool:
    """Return whether metric values show that each question has one relevant label and no other.

    Sets like SQuAD are labelled so on purpose; their unjudged results do not mean that labels are missing. Users
    confirm one page although others may be relevant, too.

    Args:
        tier: of the evaluation.
        values: metric -> mean over the questions.
    """
    hit_rate, recall, first, judged = (values.get(name) for name in ONE_LABEL_METRICS)
    if tier == "real_users" or not hit_rate or recall is None or first is None or judged is None:
        return False
    return math.isclose(hit_rate, recall) and math.isclose(first, judged, abs_tol=1e-9)


def _format_bounds(summary: Mapping[str, Any], document: Incomplete) -> str:
    """Format, for every headline that could be higher, its stored value and the highest possible one."""
    highest = document["if_right"]
    values = {name: summary["metrics"][name]["value"] for name in TIERS[summary["tier"]].headlines if name in highest}
    return ", ".join(
        f"{name} {format_metric(name, value)}\N{EN DASH}{format_metric(name, highest[name])}"
        for name, value in values.items()
        if value is not None and highest[name] > value
    )


def _question_sentences(document: LabelledQuestions, headlines: Sequence[str]) -> Iterator[TranslatedText]:
    counts = {"n": document["n"], "others": document["n_others"]}
    if not document["features"]:
        yield translations("incomplete", "few", **counts)
    elif not document["differ_in"]:
        yield translations("incomplete", "alike", **counts)
    else:
        yield {language: _difference_sentence(document, headlines, language) for language in LANGUAGES}


def _difference_sentence(document: LabelledQuestions, headlines: Sequence[str], language: str) -> str:
    words = texts("incomplete", language)
    feature_differences = []
    for name in document["differ_in"]:
        labelled, unlabelled = document["features"][name]["labelled"], document["features"][name]["others"]
        sign = "" if labelled is None or unlabelled is None else " more" if labelled > unlabelled else " less"
        feature_differences.append(words[f"{name}{sign}"])
    moved = [
        words["moved"].format(
            metric=name,
            value=format_metric(name, change["value"]),
            reweighted=format_metric(name, change["reweighted"]),
            low=format_metric(name, change["ci_low"]),
            high=format_metric(name, change["ci_high"]),
        )
        for name in headlines
        if (change := document["reweighted"].get(name))
    ]
    return words["differ"].format(
        how=", ".join(feature_differences), moved="; ".join(moved), n=document["n"], others=document["n_others"]
    )
