"""Incomplete labels: the questions with a label against those without, as figures, JSON and sentences."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from yarus.metrics.incomplete.selection import FEWEST, Feature, chances, compare_feature, reweighted_mean
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.statistics.significance import holm
from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.findings.finding import Evaluated
from yarus.tasks.evaluation.findings_schema import (
    FeatureDifference,
    FeatureName,
    Incomplete,
    LabelledQuestions,
)
from yarus.tasks.evaluation.numbers import finite, percent, shown

CHANCE = 0.03
"""Holm's p below which questions with a label are called others than those without."""
TOPICS = 8
"""Most frequent pages whose questions are told apart."""
NO_NUMBER = 0.5
"""The place of a question that has no number: in the middle."""


def incomplete(cases: pa.Table, headlines: Sequence[str]) -> Incomplete:
    """What the cases of a tier that ranks tell of their labels.

    Args:
        cases: of an evaluation, also those that could not be measured.
        headlines: metrics whose means are weighted anew.
    """
    counted = np.ones(len(cases), dtype=bool)
    if "stratum" in cases.column_names:
        counted = np.asarray(pc.equal(cases["stratum"], HEADLINE_STRATUM).fill_null(False))
    if_right = cases.filter(pa.array(counted))["if_right"].combine_chunks()
    names = [field.name for field in if_right.type]
    means = {name: pc.mean(pc.struct_field(if_right, name)).as_py() for name in names}
    return {
        "if_right": {name: mean for name, mean in means.items() if mean is not None},
        "questions": _labelled_questions(cases, counted, headlines),
    }


def _labelled_questions(
    cases: pa.Table, counted: np.typing.NDArray[np.bool_], headlines: Sequence[str]
) -> LabelledQuestions | None:
    """Questions with a label that counts against all others; None where there is nothing to compare."""
    has = counted & np.array([bool(of) for of in values_of(cases, "relevant")], dtype=bool)
    n, n_others = int(has.sum()), int((~has).sum())
    if not n or not n_others:
        return None
    found: LabelledQuestions = {"n": n, "n_others": n_others, "differ_in": [], "features": {}, "reweighted": {}}
    if min(n, n_others) < FEWEST:
        return found
    # Pages are groups of labelled questions alone; users are known of all.
    groups = [group if (group or "").startswith("user ") else None for group in values_of(cases, "group")]
    features = _features(cases)
    compared = {name: compare_feature(values, has, groups) for name, values in features.items()}
    compared = {name: one for name, one in compared.items() if one.p == one.p}
    adjusted = holm([one.p for one in compared.values()])
    found["features"] = {
        name: _difference(name, one, p) for (name, one), p in zip(compared.items(), adjusted, strict=True)
    }
    found["differ_in"] = [name for name, one in found["features"].items() if one["p"] < CHANCE]
    if found["differ_in"]:
        chance = chances(np.column_stack([features[name] for name in compared]), has)
        for name in headlines:
            values = np.where(has, floats(cases, name), np.nan)
            mean = reweighted_mean(values, chance, values_of(cases, "group"))
            if mean.value == mean.value:
                low, high = finite(mean.interval)
                value = float(np.nanmean(values))
                found["reweighted"][name] = {"value": value, "reweighted": mean.value, "ci_low": low, "ci_high": high}
    return found


def _difference(name: FeatureName, one: Feature, p: float) -> FeatureDifference:
    if name == "topic":
        return {"labelled": None, "others": None, "p": float(p)}
    return {"labelled": float(one.labelled[0]), "others": float(one.others[0]), "p": float(p)}


def _features(cases: pa.Table) -> dict[FeatureName, Floats]:
    """What is known of every question before anybody labels it; numbers as places from 0 to 1."""
    found: dict[FeatureName, Floats] = {
        "length": _places(np.array([float(len((text or "").split())) for text in values_of(cases, "question")])),
    }
    if "distances" in cases.column_names:
        distances = [of or [] for of in values_of(cases, "distances")]
        first = np.array([of[0] if of else np.nan for of in distances])
        second = np.array([of[1] if len(of) > 1 else np.nan for of in distances])
        found["score"], found["lead"] = _places(-first), _places(second - first)
    if "asked_at" in cases.column_names:
        found["time"] = _places(cases["asked_at"].cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.float64))
    pages = [(of or [None])[0] for of in values_of(cases, "retrieved")]
    frequent = [page for page, n in Counter(pages).most_common(TOPICS + 1) if page is not None and n >= FEWEST][:TOPICS]
    if frequent:
        found["topic"] = np.array([[float(page == one) for one in frequent] for page in pages])
    return found


def _places(values: Floats) -> Floats:
    """The place of each value among all, 0 to 1; equal values share one, and a missing one stands in the middle."""
    known = np.isfinite(values)
    places = np.full(len(values), NO_NUMBER)
    if known.any():
        ordered = np.sort(values[known])
        below, upto = (np.searchsorted(ordered, values[known], side=side) for side in ("left", "right"))
        places[known] = (below + upto) / (2 * len(ordered))
    return places


def find(evaluated: Evaluated) -> Mapping[str, Incomplete]:
    """See `Feature`."""
    names = evaluated.cases.column_names
    if "if_right" not in names or "pooled" in names:
        return {}
    headlines = [name for name in TIERS[evaluated.run.tier].headlines if name in names]
    return {"incomplete": incomplete(evaluated.cases, headlines)}


def sentences(summary: Mapping[str, Any]) -> Iterator[Text]:
    """Yield how far the headlines could be wrong because labels are missing; none where they need no such labels."""
    found: Incomplete | None = summary.get("incomplete")
    headlines = TIERS[summary["tier"]].headlines
    if found is None or not any(METRICS[name].needs == "relevant" for name in headlines):
        return
    if summary["tier"] == "real_users":
        yield translations("incomplete", "from production")
    if bounds := _bounds(summary, found):
        judged = summary["metrics"]["judged@10"]["value"] or 0
        yield translations("incomplete", "unjudged", judged=percent(judged), bounds=bounds)
    if questions := found["questions"]:
        yield from _questions(questions, headlines)


def _bounds(summary: Mapping[str, Any], found: Incomplete) -> str:
    """From the stored value to the highest that there can be, of every headline that could be higher."""
    highest = found["if_right"]
    values = {name: summary["metrics"][name]["value"] for name in TIERS[summary["tier"]].headlines if name in highest}
    return ", ".join(
        f"{name} {shown(name, value)}\N{EN DASH}{shown(name, highest[name])}"
        for name, value in values.items()
        if value is not None and highest[name] > value
    )


def _questions(found: LabelledQuestions, headlines: Sequence[str]) -> Iterator[Text]:
    counts = {"n": found["n"], "others": found["n_others"]}
    if not found["features"]:
        yield translations("incomplete", "few", **counts)
    elif not found["differ_in"]:
        yield translations("incomplete", "alike", **counts)
    else:
        yield {language: _differ(found, headlines, language) for language in LANGUAGES}


def _differ(found: LabelledQuestions, headlines: Sequence[str], language: str) -> str:
    words = texts("incomplete", language)
    how = []
    for name in found["differ_in"]:
        labelled, others = found["features"][name]["labelled"], found["features"][name]["others"]
        sign = "" if labelled is None or others is None else " more" if labelled > others else " less"
        how.append(words[f"{name}{sign}"])
    moved = [
        words["moved"].format(
            metric=name,
            value=shown(name, one["value"]),
            reweighted=shown(name, one["reweighted"]),
            low=shown(name, one["ci_low"]),
            high=shown(name, one["ci_high"]),
        )
        for name in headlines
        if (one := found["reweighted"].get(name))
    ]
    return words["differ"].format(how=", ".join(how), moved="; ".join(moved), n=found["n"], others=found["n_others"])
