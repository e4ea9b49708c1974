"""Where people's labels teach: what they say of each judged metric of an evaluation, as the templates read it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine

from yarus.db.stores.labels import Label, labels_of
from yarus.metrics.agreement import weighted_kappa
from yarus.metrics.statistics.corrected import corrected_mean
from yarus.tasks.cases.privacy import pseudonyms as to_people
from yarus.tasks.comparison.slices import labels_of as slices_of
from yarus.tasks.comparison.slices import lengths
from yarus.tasks.config.texts import LANGUAGES, texts, translations
from yarus.tasks.dataset.labelling.alpha import alpha
from yarus.tasks.evaluation.numbers import MINUS, rounded
from yarus.tasks.report.embedded_data import Document

BINS = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Where the bins of the judge's scores begin; the last ends with 1."""
SAID = (0.25, 0.75)
"""Of a label: below the first people say no, from the second on yes."""
FEWEST = 10
"""Labels of a slice below which nothing is said of it."""
WORST = 8
LONGEST = 400
"""Characters of a text that is shown."""


class Weighted(NamedTuple):
    """A mean within 0..1, and its interval."""

    value: float
    low: float
    high: float


class Labelled(NamedTuple):
    """An answer that people have labelled."""

    case_id: str
    score: float
    value: float
    """The mean of what people have said."""
    weight: float
    """One over its probability."""
    group: str
    said: Sequence[Label]


def lessons(engine: Engine, evaluation_id: str, source: str, cases: pa.Table | None) -> list[Document]:
    """What labels say, a part a metric; none where there are no labels.

    Args:
        engine: of our own database.
        evaluation_id: whose labels.
        source: of the evaluation.
        cases: of the evaluation, as people are shown them; None where the file is gone.
    """
    by_metric: dict[str, list[Label]] = defaultdict(list)
    for label in labels_of(engine, evaluation_id):
        if label.value is not None and not label.result:
            by_metric[label.metric].append(label)
    return [_lesson(metric, labels, source, cases) for metric, labels in sorted(by_metric.items())]


def _lesson(metric: str, labels: Sequence[Label], source: str, cases: pa.Table | None) -> Document:
    every = list(_answers(labels))
    rows = _rows(every, cases)
    found = [one for one in every if cases is None or one.case_id in rows]  # as the corrected mean counts them
    counts = Counter(label.annotator for label in labels)
    return {
        "metric": metric,
        "n": len(found),
        "annotators": [{"name": name, "n": n} for name, n in sorted(counts.items())],
        "agreement": _agreement(labels),
        "confusion": _confusion(found),
        "calibration": list(_calibration(found)),
        "worst": _worst(found, rows, source),
        "slices": list(_slices(found, rows)),
        "fewest": FEWEST,
        "gone": len(every) - len(found),
    }


def _answers(labels: Sequence[Label]) -> Iterator[Labelled]:
    by_case: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_case[label.case_id].append(label)
    counts = Counter(said[0].stratum for said in by_case.values())
    for case, said in by_case.items():
        first = said[0]
        value = fmean(label.value for label in said if label.value is not None)
        weight = first.stratum_size / counts[first.stratum]
        yield Labelled(case, first.score, value, weight, first.case_group or case, said)


def _agreement(labels: Sequence[Label]) -> Document | None:
    """Krippendorff's alpha of all annotators, and kappa of every two; None where one alone has labelled."""
    names = sorted({label.annotator for label in labels})
    if len(names) < 2:
        return None
    by_case: dict[str, dict[str, float]] = defaultdict(dict)
    groups: dict[str, str | None] = {}
    for label in labels:
        if label.value is not None:
            by_case[label.case_id][label.annotator] = label.value
            groups[label.case_id] = label.case_group
    of = alpha(list(by_case.values()), [groups[case] for case in by_case])
    columns = {name: [said.get(name, np.nan) for said in by_case.values()] for name in names}
    kappas = [
        {"names": f"{a} / {b}", "kappa": _number(weighted_kappa(columns[a], columns[b]))}
        for a, b in combinations(names, 2)
    ]
    low, high = _number(of["ci_low"]), _number(of["ci_high"])
    return {"n": of["n"], "alpha": _number(of["alpha"]), "low": low, "high": high, "kappas": kappas}


def _confusion(found: Sequence[Labelled]) -> list[Document]:
    """By bin of the judge's score, how many answers people call bad, in between and good."""
    table = np.zeros((len(BINS), 3), dtype=int)
    for one in found:
        table[_bin(one.score), sum(one.value >= bound for bound in SAID)] += 1
    names = [f"{low:g}–{high:g}" for low, high in pairwise((*BINS, 1.0))]
    return [{"bin": name, "counts": row.tolist()} for name, row in zip(names, table, strict=True) if row.any()]


def _calibration(found: Sequence[Labelled]) -> Iterator[Document]:
    """By bin of the judge's score, what people say on average, with its interval."""
    for number in range(len(BINS)):
        own = [one for one in found if _bin(one.score) == number]
        if own:
            people = _weighted(own, [one.value for one in own])
            yield {
                "n": len(own),
                "score": round(100 * fmean(one.score for one in own), 1),
                **{name: round(100 * value, 1) for name, value in people._asdict().items()},
                "text": f"{people.value:.2f} ({people.low:.2f}–{people.high:.2f})",
            }


def _worst(found: Sequence[Labelled], rows: Mapping[str, Document], source: str) -> list[Document]:
    """Where judge and people differ most, with their texts and what annotators noted."""
    apart = sorted(found, key=lambda one: (-abs(one.score - one.value), one.case_id))
    return [
        {
            "case_id": one.case_id,
            "score": f"{one.score:.2f}",
            "value": f"{one.value:.2f}",
            "question": _cut(rows.get(one.case_id, {}).get("question")),
            "answer": _cut(rows.get(one.case_id, {}).get("answer")),
            "notes": [f"{label.annotator}: {to_people.text(label.note, source)}" for label in one.said if label.note],
        }
        for one in apart[:WORST]
        if abs(one.score - one.value) > 0
    ]


def _slices(found: Sequence[Labelled], rows: Mapping[str, Document]) -> Iterator[Document]:
    """Of topics, pages, lengths and kinds of questions, and lengths of answers: how far the judge is off there."""
    there = [one for one in found if one.case_id in rows]
    if not there:
        return
    table = pa.table({name: [rows[one.case_id].get(name) for one in there] for name in rows[there[0].case_id]})
    kinds = slices_of(table) if "question" in table.column_names else {}
    kinds["answer length"] = lengths([rows[one.case_id].get("answer") for one in there])
    for kind, values in kinds.items():
        by_value: dict[str, list[Labelled]] = defaultdict(list)
        for one, value in zip(there, values, strict=True):
            if value is not None:
                by_value[value].append(one)
        told = {value: own for value, own in by_value.items() if len(own) >= FEWEST}
        small = [own for value, own in by_value.items() if value not in told]
        if len(by_value) > 1 and told:
            yield {
                "kind": kind,
                "values": [_slice(value, own) for value, own in sorted(told.items(), key=lambda item: -len(item[1]))],
                "small": len(small),
                "small_labels": sum(map(len, small)),
            }


def _slice(value: str, own: Sequence[Labelled]) -> Document:
    judge, people = (_weighted(own, values).value for values in ([o.score for o in own], [o.value for o in own]))
    half = _weighted(own, [(one.score - one.value + 1) / 2 for one in own])  # from -1..1 to 0..1, and back
    error, low, high = (2 * end - 1 for end in half)
    is_ours = value in texts("slice_values", "ru")
    return {
        "value": translations("slice_values", value) if is_ours else dict.fromkeys(LANGUAGES, value),
        "n": len(own),
        "judge": f"{judge:.2f}",
        "people": f"{people:.2f}",
        "error": _signed(error),
        "interval": f"{_signed(low)} … {_signed(high)}",
        "off": low > 0 or high < 0,
    }


def _rows(found: Sequence[Labelled], cases: pa.Table | None) -> dict[str, Document]:
    if cases is None:
        return {}
    wanted = ("case_id", "question", "answer", "cluster", "topic", "page", "group", "stratum", "answerable", "turn")
    named = cases.select([name for name in wanted if name in cases.column_names])
    ids = {one.case_id for one in found}
    return {row["case_id"]: row for row in named.to_pylist() if row["case_id"] in ids}


def _bin(score: float) -> int:
    return sum(score >= bound for bound in BINS) - 1


def _weighted(own: Sequence[Labelled], values: Sequence[float]) -> Weighted:
    """The mean of labelled answers, each by how unlikely it was to be drawn; with its interval from two on."""
    if len(own) < 2:
        return Weighted(values[0], 0.0, 1.0)
    nothing, chances = np.full(len(own), 0.5), [1 / one.weight for one in own]
    found = corrected_mean(nothing, values, chances, groups=[one.group for one in own])
    return Weighted(found.value, found.low, found.high)


def _cut(text: str | None) -> str:
    return "" if not text else text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _signed(value: float) -> str:
    return rounded(round(value, 3) + 0.0, "share", "+").replace("-", MINUS)  # -0.0 is 0.0


def _number(value: float | None) -> str:
    return "—" if value is None or value != value else f"{value:.2f}".replace("-", MINUS)
