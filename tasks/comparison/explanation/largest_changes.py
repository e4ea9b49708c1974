"""Find where a change is largest: topics, pages and questions that explain most of it, and the sentences on them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.metrics.metric import Metric
from yarus.metrics.statistics.differences.decomposition import ROUNDING
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.table import get_metric
from yarus.tasks.cases.table import float_column
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES
from yarus.tasks.comparison.changes import find_unjudged
from yarus.tasks.comparison.explanation.explanation_schema import (
    ExplainedCase,
    ExplainedMetric,
    ExplainedPage,
    ExplainedPart,
    ExplainedTopic,
    Explanation,
    LostMeasure,
    NewTopic,
)
from yarus.tasks.comparison.explanation.questions import Questions
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.corpus_versions import PageChange
from yarus.tasks.evaluation.number_format import format_metric

MOST, FEW = 5, 3
"""Numbers of topics, pages and cases that are named, and of topics of a part."""
NEW, GREW, UNSERVED = 5, 4.0, 0.1
"""Thresholds for a new topic: number of questions, growth factor, largest share that may be served."""


def heaviest_names(weights: Iterable[tuple[str | None, float]], most: int) -> list[str]:
    """Return the names that weigh most, in the direction of the total."""
    totals: dict[str, float] = defaultdict(float)
    for name, weight in weights:
        if name is not None:
            totals[name] += float(weight)
    direction = 1 if sum(totals.values()) >= 0 else -1
    ordered = sorted(totals, key=lambda name: (-direction * totals[name], name))
    return [name for name in ordered if direction * totals[name] > 0][:most]


def explained_topics(questions: Questions, before: Floats, after: Floats, by_case: Floats) -> list[ExplainedTopic]:
    """Return the five topics that add most to the difference of a metric."""
    is_measured = [~np.isnan(side) for side in (before, after)]
    totals = [int(side.sum()) for side in is_measured]
    middle = (float(before[is_measured[0]].mean()) + float(after[is_measured[1]].mean())) / 2
    topics: list[ExplainedTopic] = []
    for topic in sorted({topic for topic in questions.topics if topic is not None}):
        in_topic = np.array([name == topic for name in questions.topics])
        n_a, n_b = (int((in_topic & side).sum()) for side in is_measured)
        change = float((after[in_topic & is_measured[1]] - middle).sum()) / totals[1]
        change -= float((before[in_topic & is_measured[0]] - middle).sum()) / totals[0]
        answers = float(by_case[in_topic].sum())
        questions_part = change - answers if abs(change - answers) > ROUNDING else 0.0
        topics.append({"topic": topic, "n_a": n_a, "n_b": n_b, "questions": questions_part, "answers": answers})
    topics.sort(key=lambda explained: -max(abs(explained["questions"]), abs(explained["answers"])))
    return [explained for explained in topics if explained["n_a"] or explained["n_b"]][:MOST]


def explained_pages(questions: Questions, by_case: Floats, measured: NDArray[np.bool_]) -> list[ExplainedPage]:
    """Return the five pages whose questions explain most of the changed answers."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, page in enumerate(questions.pages):
        if page is not None and measured[row]:
            rows[page].append(row)
    pages = heaviest_names(((page, by_case[page_rows].sum()) for page, page_rows in rows.items()), MOST)
    return [
        {
            "page": page,
            "page_change": questions.fates[rows[page][0]],
            "n": len(rows[page]),
            "answers": float(by_case[rows[page]].sum()),
        }
        for page in pages
    ]


def explained_cases(questions: Questions, before: Floats, after: Floats, by_case: Floats) -> list[ExplainedCase]:
    """Return the five questions that explain most of the changed answers."""
    direction = 1 if by_case.sum() >= 0 else -1
    order = np.argsort(-direction * by_case, kind="stable")[:MOST]
    return [
        {
            "case_id": questions.case_ids[row],
            "question": questions.texts[row],
            "before": None if np.isnan(before[row]) else float(before[row]),
            "after": float(after[row]),
            "answers": float(by_case[row]),
        }
        for row in order.tolist()
        if direction * by_case[row] > 0
    ]


def lost_measures(questions: Questions) -> list[LostMeasure]:
    """Return the questions that were measured before and could not be measured after."""
    rows: dict[tuple[str, PageChange | None], list[int]] = defaultdict(list)
    for row, (status_before, status_after) in enumerate(zip(*questions.statuses, strict=True)):
        if status_before in MEASURED_STATUSES and status_after is not None and status_after not in MEASURED_STATUSES:
            rows[status_after, questions.fates[row]].append(row)
    groups = [(status, fate, group_rows) for (status, fate), group_rows in rows.items()]
    return [
        {
            "status": status,  # type: ignore[typeddict-item]
            "page_change": fate,
            "n": len(group_rows),
            "topics": [
                topic for topic, _ in Counter(questions.topics[row] for row in group_rows).most_common(FEW) if topic
            ],
        }
        for status, fate, group_rows in sorted(groups, key=lambda group: -len(group[2]))
    ]


def headline_values(cases: pa.Table, metrics: Sequence[Metric], questions: Questions) -> Floats | None:
    """Return the first metric that the cases have and that is 0 for unserved questions, by question; None without."""
    for metric in metrics:
        if metric.column in cases.column_names and metric.low == 0:
            return questions.of(1, float_column(cases, metric.column))
    return None


def new_topics(questions: Questions, values: Floats | None) -> list[NewTopic]:
    """Return topics with few questions before and few served questions after, the largest first.

    Args:
        questions: the questions of both evaluations.
        values: a metric after, by question: above 0 if the question was served; None if unknown.
    """
    if values is None:
        return []
    totals = [max(1, int((side_rows >= 0).sum())) for side_rows in questions.rows]
    rows: Mapping[str, list[int]] = defaultdict(list)
    for row, topic in enumerate(questions.topics):
        if topic is not None:
            rows[topic].append(row)
    topics: list[NewTopic] = []
    for topic, topic_rows in rows.items():
        rows_by_side = [[row for row in topic_rows if side_rows[row] >= 0] for side_rows in questions.rows]
        shares = [len(side_rows) / total for side_rows, total in zip(rows_by_side, totals, strict=True)]
        served_rows = [row for row in rows_by_side[1] if values[row] > 0]
        has_grown = len(rows_by_side[0]) < NEW <= len(rows_by_side[1]) and shares[1] >= GREW * shares[0]
        if has_grown and len(served_rows) <= UNSERVED * len(rows_by_side[1]):
            candidates = [questions.texts[row] for row in rows_by_side[1]]
            examples = list(dict.fromkeys(text for text in candidates if text))[:FEW]
            topics.append({"topic": topic, "n": len(rows_by_side[1]), "served": len(served_rows), "examples": examples})
    return sorted(topics, key=lambda topic: -topic["n"])[:MOST]


STAGES = ("retrieval", "generation", "refusal", "gate")


def find_main_change(document: Explanation) -> str | None:
    """Return the first metric that changed beyond chance, because of questions or answers; else the first metric.

    Metrics of a stand-in judge count only if they are the only ones.
    """
    metrics = document["metrics"]
    unjudged = find_unjudged(document, metrics)
    judged = {name: metric for name, metric in metrics.items() if name not in unjudged} or metrics
    return next((name for name, metric in judged.items() if _find_main_cause(metric)), next(iter(judged), None))


def answer_sentence(document: Explanation, language: str) -> str | None:
    """Return which metric changed, by how much, and mostly why; None if no metric could be split."""
    name = find_main_change(document)
    if name is None:
        return None
    explained, words = document["metrics"][name], texts("explanation", language)
    cause = words[f"mostly {_find_main_cause(explained) or 'unclear'}"]
    return _mark_unjudged(document, name, language) + _format_move(name, explained, cause, language)


def _find_main_cause(explained: ExplainedMetric) -> str | None:
    """Return `questions` or `answers`, the larger of the parts in the direction of the change that are beyond chance.

    None if neither is.
    """
    parts = {"questions": explained["questions"], "answers": explained["answers"]}
    causes = {
        name: abs(part["value"])
        for name, part in parts.items()
        if part and is_significant(part) and part["value"] * explained["difference"] > 0
    }
    return max(causes, key=causes.__getitem__, default=None)


def _mark_unjudged(document: Explanation, name: str, language: str) -> str:
    """Return a remark to precede a sentence about a stand-in's metric; empty for other metrics."""
    return f"{texts('standings', language)['stand-in']}: " if find_unjudged(document, [name]) else ""


def _format_move(name: str, explained: ExplainedMetric, parts: str, language: str) -> str:
    numbers = {side: format_metric(name, explained[side]) for side in ("a", "b")}
    difference = format_metric(name, explained["difference"], sign=True)
    return texts("explanation", language)["moved"].format(metric=name, **numbers, difference=difference, parts=parts)


def explanation_sentences(document: Explanation, language: str) -> Iterator[str]:
    """Yield the sentences on what changed every headline metric, then on lost and new questions.

    Args:
        document: the explanation, as `yarus.tasks.comparison.explanation.explain.explain` returns it.
        language: ru or en.
    """
    for name, explained in document["metrics"].items():
        first, *others = metric_sentences(name, explained, language)
        yield _mark_unjudged(document, name, language) + first
        yield from others
    words, fates, statuses = (texts(section, language) for section in ("explanation", "fates", "statuses"))
    for lost in document["no_longer_measured"]:
        fate = fates[lost["page_change"]] if lost["page_change"] in ("removed", "edited") else ""
        about = words["about"].format(topics=", ".join(lost["topics"])) if lost["topics"] else ""
        sentence = words["lost"].format(n=lost["n"], status=statuses[lost["status"]])
        yield sentence + (f", {words['pages'].format(fate=fate)}" if fate else "") + about + "."
    for new in document["new_topics"]:
        yield words["new topic"].format(topic=new["topic"], n=new["n"], served=new["served"])


def metric_sentences(name: str, explained: ExplainedMetric, language: str) -> Iterator[str]:
    """Yield the sentences on one metric: the parts of questions and answers, and significant causes among answers."""
    words = texts("explanation", language)
    answers = explained["answers"]
    has_same_questions = explained["n_a"] == explained["n_b"] == explained["n_common"]
    parts = [
        words["same questions"]
        if has_same_questions
        else words["questions"].format(part=_format_part(name, explained["questions"]))
    ]
    if answers is None:
        parts.append(words["no common kind"])
    else:
        parts.append(words[_answers_key(name, answers)].format(part=_format_part(name, answers)))
    yield _format_move(name, explained, "; ".join(parts), language)
    causes = [
        words["cause"].format(
            pages=words["pages"].format(fate=texts("fates", language)[fate]),
            part=_format_part(name, part),
            n=part["n"],
            n_pages=part["pages"],
        )
        + (words["about"].format(topics=", ".join(part["topics"])) if part["topics"] else "")
        for fate, part in (explained["page_changes"] or {}).items()
        if fate != "untouched" and is_significant(part)
    ]
    if causes:
        yield words["causes"].format(causes="; ".join(causes))
    stages = {
        name: part for name, part in (explained["stages"] or {}).items() if name in STAGES and is_significant(part)
    }
    if stages:
        stage_names = texts("explained_stages", language)
        yield words["stages"].format(
            stages="; ".join(f"{stage_names[stage]} {_format_part(name, part)}" for stage, part in stages.items())
        )


def is_significant(part: ExplainedPart) -> bool:
    """Return whether the interval of a part excludes 0."""
    return part["ci_low"] > 0 or part["ci_high"] < 0


def _answers_key(name: str, answers: ExplainedPart) -> str:
    if not is_significant(answers):
        return "answers"
    return "better" if (answers["value"] > 0) == (get_metric(name).better == "higher") else "worse"


def _format_part(name: str, part: ExplainedPart) -> str:
    value, low, high = (format_metric(name, part[key], sign=True) for key in ("value", "ci_low", "ci_high"))
    return f"{value} ({low} … {high})"
