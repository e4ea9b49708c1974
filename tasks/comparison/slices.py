"""Compare two evaluations within topics, pages, lengths and kinds of questions, to locate a difference."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from yarus.metrics.statistics.differences.compared_statistics import SampleStatistic
from yarus.metrics.statistics.differences.paired import compare_statistics
from yarus.tasks.cases.table import column_values, optional_column_values
from yarus.tasks.cases.text import WORD_PATTERN
from yarus.tasks.comparison.common_cases import CommonCases
from yarus.tasks.comparison.comparison_schema import Slice, SmallSlices

MIN_PAIRS = 5
"""Number of pairs below which a slice is only counted."""
N_DRAWS = 1_000
SLICES = ("topic", "page", "group", "length", "type", "stratum", "answerable", "place", "turn")
YES_NO = re.compile(
    r"\bли\b|^\W*(можно|нужно|надо|обязательно|правда|есть|могу|может|будет|is|are|am|was|were|do|does|did|can|could|"
    r"may|must|should|has|have|had|will|would)\b",
    re.IGNORECASE,
)
KIND_WORDS = {
    "who": r"кто|кого|кому|кем|ком|чей|чья|чьё|чьи|who|whom|whose",
    "when": r"когда|во сколько|в какое время|до какого|с какого|when|what time",
    "where": r"где|куда|откуда|where",
    "how": r"как|каким образом|сколько|how",
}
"""Words that show the kind of a question, Russian and English; the first in the question decides."""
KIND = re.compile("|".join(rf"(?P<{kind}>\b(?:{words})\b)" for kind, words in KIND_WORDS.items()), re.IGNORECASE)


def question_kind(question: str | None) -> str | None:
    """Return who, when, where, how, yes-no or other, from the question's words; None without a question."""
    if not question:
        return None
    if YES_NO.search(question):
        return "yes-no"
    match = KIND.search(question)
    return "other" if match is None or match.lastgroup is None else match.lastgroup


def slice_labels(cases: pa.Table) -> dict[str, list[str | None]]:
    """Return the slice of each case per kind of slice; None if the case is in none."""
    questions = column_values(cases, "question")
    turns = optional_column_values(cases, "turn")
    labels: dict[str, list[Any]] = {
        "topic": optional_column_values(cases, "cluster" if "cluster" in cases.column_names else "topic"),
        "page": optional_column_values(cases, "page"),
        "group": optional_column_values(cases, "group"),
        "length": length_labels(questions),
        "type": [question_kind(question) for question in questions],
        "stratum": optional_column_values(cases, "stratum"),
        "answerable": [
            None if is_answerable is None else "yes" if is_answerable else "no"
            for is_answerable in optional_column_values(cases, "answerable")
        ],
        "place": ["follow_up" if (turn or 1) > 1 else "standalone" for turn in turns],
        "turn": [turn and str(turn) for turn in turns],
    }
    if {*labels["turn"]} <= {None, "1", "2"}:  # the same as the place
        del labels["turn"]
    if labels["group"] in (labels["topic"], labels["page"]):
        del labels["group"]
    if labels["page"] == labels["topic"]:
        del labels["page"]
    return {name: values for name, values in labels.items() if len({*values} - {None}) > 1}


def compare_slices(
    pairs: CommonCases, numbers: Mapping[str, SampleStatistic], *, groups: Sequence[str | None], seed: int
) -> tuple[dict[str, dict[str, Slice]], dict[str, SmallSlices]]:
    """Compare two evaluations within every slice.

    Args:
        pairs: the common cases.
        numbers: the metrics to compare, over these cases.
        groups: the group of each case, None for a case without a group.
        seed: the seed of the draws.

    Returns:
        Per kind of slice, the slices with at least five pairs, the largest first; and the counts of smaller slices.
    """
    documents: dict[str, dict[str, Slice]] = {}
    small: dict[str, SmallSlices] = {}
    for name, labels in slice_labels(pairs.a).items():
        sizes = Counter(label for label in labels if label is not None)
        large = [label for label, size in sizes.most_common() if size >= MIN_PAIRS]
        rows: dict[str, list[int]] = {label: [] for label in large}
        for row, label in enumerate(labels):
            if label in rows:
                rows[label].append(row)
        slices = {label: _compare_slice(np.array(members), numbers, groups, seed) for label, members in rows.items()}
        documents[name] = {label: document for label, document in slices.items() if len(document) > 1}
        small_sizes = {label: size for label, size in sizes.items() if label not in documents[name]}
        small[name] = {"values": len(small_sizes), "cases": sum(small_sizes.values())}
    return {name: slices for name, slices in documents.items() if slices}, small


def _compare_slice(rows: Any, numbers: Mapping[str, SampleStatistic], groups: Sequence[str | None], seed: int) -> Slice:
    slice_numbers = {name: replace(number, a=number.a[rows], b=number.b[rows]) for name, number in numbers.items()}
    compared = compare_statistics(slice_numbers, seed=seed, groups=[groups[row] for row in rows], count=N_DRAWS)
    document: Slice = {"n": len(rows)}
    for name, change in compared.items():
        comparison = change.comparison
        if comparison.n >= MIN_PAIRS and not np.isnan(comparison.p):
            document[name] = {
                "difference": comparison.difference,
                "ci_low": comparison.interval.low,
                "ci_high": comparison.interval.high,
                "p": comparison.p,
                "n": comparison.n,
            }
    return document


def length_labels(texts: Sequence[str | None]) -> list[str | None]:
    """Return short, medium or long per text, by terciles of the number of words; None without a text."""
    counts = [None if not text else len(WORD_PATTERN.findall(text)) for text in texts]
    known_counts = [count for count in counts if count is not None]
    if not known_counts:
        return [None] * len(texts)
    short, medium = np.quantile(known_counts, [1 / 3, 2 / 3])
    return [
        None if count is None else "short" if count <= short else "medium" if count <= medium else "long"
        for count in counts
    ]
