"""What incomplete labels mean for an evaluation, in words: the same in terminal and report."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yarus.metrics.table import METRICS
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.results.incomplete.documents import Incomplete, LabelledQuestions
from yarus.tasks.results.numbers import percent, shown
from yarus.tasks.texts import LANGUAGES, Text, texts, translations


def label_sentences(summary: Mapping[str, Any]) -> Iterator[Text]:
    """How far the headlines could be wrong because labels are missing; none where headlines need no such labels.

    Args:
        summary: of an evaluation, as `yarus.tasks.results.summary.summary` gives it.
    """
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
    values = {
        name: summary["metrics"][name]["value"]
        for name in TIERS[summary["tier"]].headlines
        if name in found["if_right"]
    }
    ends = {name: (value, found["if_right"][name]) for name, value in values.items() if value is not None}
    return ", ".join(
        f"{name} {shown(name, low)}\N{EN DASH}{shown(name, high)}" for name, (low, high) in ends.items() if high > low
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
