"""Where a difference comes from: the same comparison within topics, pages, lengths and kinds of questions."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from yarus.metrics.statistics.differences.numbers import Number
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.tasks.cases.table import values_if_any, values_of
from yarus.tasks.cases.text import WORD
from yarus.tasks.comparison.common_cases import Pairs
from yarus.tasks.comparison.comparison_schema import Slice, SmallSlices

FEWEST = 5
"""Pairs below which a slice is only counted."""
DRAWS = 1_000
SLICES = ("topic", "page", "group", "length", "type", "stratum", "answerable", "place", "turn")
YES_NO = re.compile(
    r"\bли\b|^\W*(можно|нужно|надо|обязательно|правда|есть|могу|может|будет|is|are|am|was|were|do|does|did|can|could|"
    r"may|must|should|has|have|had|will|would)\b",
    re.IGNORECASE,
)
KINDS = {
    "who": r"кто|кого|кому|кем|ком|чей|чья|чьё|чьи|who|whom|whose",
    "when": r"когда|во сколько|в какое время|до какого|с какого|when|what time",
    "where": r"где|куда|откуда|where",
    "how": r"как|каким образом|сколько|how",
}
"""Words that tell the kind of a question, Russian and English; the first in the question decides."""
WORDS_OF_KIND = re.compile("|".join(rf"(?P<{kind}>\b(?:{words})\b)" for kind, words in KINDS.items()), re.IGNORECASE)


def kind_of(question: str | None) -> str | None:
    """who, when, where, how, yes-no or other, by the question's words; None without a question."""
    if not question:
        return None
    if YES_NO.search(question):
        return "yes-no"
    found = WORDS_OF_KIND.search(question)
    return "other" if found is None or found.lastgroup is None else found.lastgroup


def labels_of(cases: pa.Table) -> dict[str, list[str | None]]:
    """The slice that each case is in, by kind of slice; None where it is in none."""
    questions = values_of(cases, "question")
    turns = values_if_any(cases, "turn")
    labels: dict[str, list[Any]] = {
        "topic": values_if_any(cases, "cluster" if "cluster" in cases.column_names else "topic"),
        "page": values_if_any(cases, "page"),
        "group": values_if_any(cases, "group"),
        "length": lengths(questions),
        "type": [kind_of(question) for question in questions],
        "stratum": values_if_any(cases, "stratum"),
        "answerable": [None if can is None else "yes" if can else "no" for can in values_if_any(cases, "answerable")],
        "place": ["follow_up" if (turn or 1) > 1 else "standalone" for turn in turns],
        "turn": [turn and str(turn) for turn in turns],
    }
    if {*labels["turn"]} <= {None, "1", "2"}:  # as the place
        del labels["turn"]
    if labels["group"] in (labels["topic"], labels["page"]):
        del labels["group"]
    if labels["page"] == labels["topic"]:
        del labels["page"]
    return {name: values for name, values in labels.items() if len({*values} - {None}) > 1}


def compare_slices(
    pairs: Pairs, numbers: Mapping[str, Number], *, groups: Sequence[str | None], seed: int
) -> tuple[dict[str, dict[str, Slice]], dict[str, SmallSlices]]:
    """The comparison within every slice.

    Args:
        pairs: the common cases.
        numbers: the metrics to compare, over these cases.
        groups: of the cases, None for one that stands alone.
        seed: of the draws.

    Returns:
        By kind of slice, the slices with at least five pairs, the largest first; and the smaller ones, only counted.
    """
    shown: dict[str, dict[str, Slice]] = {}
    small: dict[str, SmallSlices] = {}
    for name, labels in labels_of(pairs.a).items():
        sizes = Counter(label for label in labels if label is not None)
        large = [label for label, size in sizes.most_common() if size >= FEWEST]
        rows: dict[str, list[int]] = {label: [] for label in large}
        for row, label in enumerate(labels):
            if label in rows:
                rows[label].append(row)
        found = {label: _within(np.array(own), numbers, groups, seed) for label, own in rows.items()}
        shown[name] = {label: document for label, document in found.items() if len(document) > 1}
        left = {label: size for label, size in sizes.items() if label not in shown[name]}
        small[name] = {"values": len(left), "cases": sum(left.values())}
    return {name: values for name, values in shown.items() if values}, small


def _within(rows: Any, numbers: Mapping[str, Number], groups: Sequence[str | None], seed: int) -> Slice:
    own = {name: replace(number, a=number.a[rows], b=number.b[rows]) for name, number in numbers.items()}
    compared = compare_numbers(own, seed=seed, groups=[groups[row] for row in rows], count=DRAWS)
    document: Slice = {"n": len(rows)}
    for name, one in compared.items():
        found = one.comparison
        if found.n >= FEWEST and not np.isnan(found.p):
            document[name] = {
                "difference": found.difference,
                "ci_low": found.interval.low,
                "ci_high": found.interval.high,
                "p": found.p,
                "n": found.n,
            }
    return document


def lengths(texts: Sequence[str | None]) -> list[str | None]:
    """short, medium or long: terciles of the number of words; None of no text."""
    words = [None if not text else len(WORD.findall(text)) for text in texts]
    known = [count for count in words if count is not None]
    if not known:
        return [None] * len(texts)
    short, medium = np.quantile(known, [1 / 3, 2 / 3])
    return [
        None if count is None else "short" if count <= short else "medium" if count <= medium else "long"
        for count in words
    ]
