"""Analysis of people's labels of each judged metric of an evaluation, for the templates."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine

from yarus.db.stores.labels import Label, read_labels
from yarus.metrics.agreement import weighted_kappa
from yarus.metrics.statistics.corrected import ppi_mean
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.comparison.slices import length_labels, slice_labels
from yarus.tasks.config.texts import LANGUAGES, texts, translations
from yarus.tasks.dataset.labelling.alpha import annotator_alpha
from yarus.tasks.evaluation.number_format import MINUS_SIGN, format_rounded
from yarus.tasks.report.embedded_data import Document

BIN_STARTS = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Lower bounds of the bins of the judge's scores; the last bin ends at 1."""
VERDICT_BOUNDS = (0.25, 0.75)
"""Bounds of labels: below the first people answer no, from the second on yes."""
MIN_SLICE_LABELS = 10
"""Minimum number of labels of a slice that is shown."""
MAX_DISAGREEMENTS = 8
MAX_TEXT_CHARS = 400
"""Maximum characters of a text."""


class WeightedMean(NamedTuple):
    """A mean within 0..1 and its interval."""

    value: float
    low: float
    high: float


class LabelledAnswer(NamedTuple):
    """A labelled answer."""

    case_id: str
    score: float
    value: float
    """Mean of the labels."""
    weight: float
    """Inverse of its probability."""
    group: str
    labels: Sequence[Label]


def label_analysis(engine: Engine, evaluation_id: str, source: str, cases: pa.Table | None) -> list[Document]:
    """Return the analysis of labels, one part per metric; empty without labels.

    Args:
        engine: engine of Yarus's own database.
        evaluation_id: evaluation with the labels.
        source: source of the evaluation.
        cases: cases of the evaluation as people see them; None if the file is missing.
    """
    by_metric: dict[str, list[Label]] = defaultdict(list)
    for label in read_labels(engine, evaluation_id):
        if label.value is not None and not label.result:
            by_metric[label.metric].append(label)
    return [_metric_analysis(metric, labels, source, cases) for metric, labels in sorted(by_metric.items())]


def _metric_analysis(metric: str, labels: Sequence[Label], source: str, cases: pa.Table | None) -> Document:
    labelled_answers = list(_labelled_answers(labels))
    rows = _case_rows(labelled_answers, cases)
    # The same answers as in the corrected mean.
    available = [answer for answer in labelled_answers if cases is None or answer.case_id in rows]
    counts = Counter(label.annotator for label in labels)
    return {
        "metric": metric,
        "n": len(available),
        "annotators": [{"name": name, "n": n} for name, n in sorted(counts.items())],
        "agreement": _annotator_agreement(labels),
        "confusion": _confusion_rows(available),
        "calibration": list(_calibration_points(available)),
        "worst": _largest_disagreements(available, rows, source),
        "slices": list(_slice_views(available, rows)),
        "fewest": MIN_SLICE_LABELS,
        "gone": len(labelled_answers) - len(available),
    }


def _labelled_answers(labels: Sequence[Label]) -> Iterator[LabelledAnswer]:
    by_case: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_case[label.case_id].append(label)
    counts = Counter(case_labels[0].stratum for case_labels in by_case.values())
    for case_id, case_labels in by_case.items():
        first = case_labels[0]
        value = fmean(label.value for label in case_labels if label.value is not None)
        weight = first.stratum_size / counts[first.stratum]
        yield LabelledAnswer(case_id, first.score, value, weight, first.case_group or case_id, case_labels)


def _annotator_agreement(labels: Sequence[Label]) -> Document | None:
    """Return Krippendorff's alpha of all annotators and kappa of each pair; None for a single annotator."""
    names = sorted({label.annotator for label in labels})
    if len(names) < 2:
        return None
    by_case: dict[str, dict[str, float]] = defaultdict(dict)
    groups: dict[str, str | None] = {}
    for label in labels:
        if label.value is not None:
            by_case[label.case_id][label.annotator] = label.value
            groups[label.case_id] = label.case_group
    result = annotator_alpha(list(by_case.values()), [groups[case_id] for case_id in by_case])
    columns = {name: [case_labels.get(name, np.nan) for case_labels in by_case.values()] for name in names}
    kappas = [
        {"names": f"{a} / {b}", "kappa": _format_number(weighted_kappa(columns[a], columns[b]))}
        for a, b in combinations(names, 2)
    ]
    low, high = _format_number(result["ci_low"]), _format_number(result["ci_high"])
    return {"n": result["n"], "alpha": _format_number(result["alpha"]), "low": low, "high": high, "kappas": kappas}


def _confusion_rows(labelled_answers: Sequence[LabelledAnswer]) -> list[Document]:
    """Return per bin of the judge's score how many answers people find bad, in between and good."""
    table = np.zeros((len(BIN_STARTS), 3), dtype=int)
    for answer in labelled_answers:
        table[_bin_index(answer.score), sum(answer.value >= bound for bound in VERDICT_BOUNDS)] += 1
    names = [f"{low:g}–{high:g}" for low, high in pairwise((*BIN_STARTS, 1.0))]
    return [{"bin": name, "counts": row.tolist()} for name, row in zip(names, table, strict=True) if row.any()]


def _calibration_points(labelled_answers: Sequence[LabelledAnswer]) -> Iterator[Document]:
    """Yield per bin of the judge's score the mean of people's labels with its interval."""
    for bin_index in range(len(BIN_STARTS)):
        bin_answers = [answer for answer in labelled_answers if _bin_index(answer.score) == bin_index]
        if bin_answers:
            people_mean = _weighted_mean(bin_answers, [answer.value for answer in bin_answers])
            yield {
                "n": len(bin_answers),
                "score": round(100 * fmean(answer.score for answer in bin_answers), 1),
                **{name: round(100 * value, 1) for name, value in people_mean._asdict().items()},
                "text": f"{people_mean.value:.2f} ({people_mean.low:.2f}–{people_mean.high:.2f})",
            }


def _largest_disagreements(
    labelled_answers: Sequence[LabelledAnswer], rows: Mapping[str, Document], source: str
) -> list[Document]:
    """Return the largest differences between judge and people, with texts and annotators' notes."""
    by_difference = sorted(labelled_answers, key=lambda answer: (-abs(answer.score - answer.value), answer.case_id))
    return [
        {
            "case_id": answer.case_id,
            "score": f"{answer.score:.2f}",
            "value": f"{answer.value:.2f}",
            "question": _shorten(rows.get(answer.case_id, {}).get("question")),
            "answer": _shorten(rows.get(answer.case_id, {}).get("answer")),
            "notes": [
                f"{label.annotator}: {pseudonyms.mask_message(label.note, source)}"
                for label in answer.labels
                if label.note
            ],
        }
        for answer in by_difference[:MAX_DISAGREEMENTS]
        if abs(answer.score - answer.value) > 0
    ]


def _slice_views(labelled_answers: Sequence[LabelledAnswer], rows: Mapping[str, Document]) -> Iterator[Document]:
    """Yield the judge's error by topic, page, length and kind of question, and length of answer."""
    usable = [answer for answer in labelled_answers if answer.case_id in rows]
    if not usable:
        return
    table = pa.table({name: [rows[answer.case_id].get(name) for answer in usable] for name in rows[usable[0].case_id]})
    kinds = slice_labels(table) if "question" in table.column_names else {}
    kinds["answer length"] = length_labels([rows[answer.case_id].get("answer") for answer in usable])
    for kind, values in kinds.items():
        by_value: dict[str, list[LabelledAnswer]] = defaultdict(list)
        for answer, value in zip(usable, values, strict=True):
            if value is not None:
                by_value[value].append(answer)
        large = {value: part for value, part in by_value.items() if len(part) >= MIN_SLICE_LABELS}
        small = [part for value, part in by_value.items() if value not in large]
        if len(by_value) > 1 and large:
            yield {
                "kind": kind,
                "values": [
                    _slice_view(value, part) for value, part in sorted(large.items(), key=lambda item: -len(item[1]))
                ],
                "small": len(small),
                "small_labels": sum(map(len, small)),
            }


def _slice_view(value: str, answers: Sequence[LabelledAnswer]) -> Document:
    judge, people = (
        _weighted_mean(answers, values).value
        for values in ([answer.score for answer in answers], [answer.value for answer in answers])
    )
    # Errors are scaled from -1..1 to 0..1, and back.
    scaled_error = _weighted_mean(answers, [(answer.score - answer.value + 1) / 2 for answer in answers])
    error, low, high = (2 * end - 1 for end in scaled_error)
    is_translated = value in texts("slice_values", "ru")
    return {
        "value": translations("slice_values", value) if is_translated else dict.fromkeys(LANGUAGES, value),
        "n": len(answers),
        "judge": f"{judge:.2f}",
        "people": f"{people:.2f}",
        "error": _format_signed(error),
        "interval": f"{_format_signed(low)} … {_format_signed(high)}",
        "off": low > 0 or high < 0,
    }


def _case_rows(labelled_answers: Sequence[LabelledAnswer], cases: pa.Table | None) -> dict[str, Document]:
    if cases is None:
        return {}
    columns = ("case_id", "question", "answer", "cluster", "topic", "page", "group", "stratum", "answerable", "turn")
    selected = cases.select([name for name in columns if name in cases.column_names])
    ids = {answer.case_id for answer in labelled_answers}
    return {row["case_id"]: row for row in selected.to_pylist() if row["case_id"] in ids}


def _bin_index(score: float) -> int:
    return sum(score >= bound for bound in BIN_STARTS) - 1


def _weighted_mean(answers: Sequence[LabelledAnswer], values: Sequence[float]) -> WeightedMean:
    """Return the weighted mean of labelled answers; the interval needs at least two of them."""
    if len(answers) < 2:
        return WeightedMean(values[0], 0.0, 1.0)
    constant_scores, probabilities = np.full(len(answers), 0.5), [1 / answer.weight for answer in answers]
    estimated = ppi_mean(constant_scores, values, probabilities, groups=[answer.group for answer in answers])
    return WeightedMean(estimated.value, estimated.low, estimated.high)


def _shorten(text: str | None) -> str:
    return "" if not text else text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}…"


def _format_signed(value: float) -> str:
    return format_rounded(round(value, 3) + 0.0, "share", "+").replace("-", MINUS_SIGN)  # -0.0 is 0.0


def _format_number(value: float | None) -> str:
    return "—" if value is None or value != value else f"{value:.2f}".replace("-", MINUS_SIGN)
