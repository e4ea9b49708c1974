"""Where a change is largest: topics, pages and questions that explain most of it, and the sentences on them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.metrics.metric import Metric
from yarus.metrics.statistics.differences.decomposition import ROUNDING
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.table import metric
from yarus.tasks.cases.table import floats
from yarus.tasks.cases.vocabulary import MEASURED
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
from yarus.tasks.evaluation.corpus_versions import Fate
from yarus.tasks.evaluation.numbers import shown

MOST, FEW = 5, 3
"""Topics, pages and cases that are named; topics of a part."""
NEW, GREW, UNSERVED = 5, 4.0, 0.1
"""Questions from which on a topic is looked at; how much more often it is asked; the share that may be served."""


def weightiest(weighed: Iterable[tuple[str | None, float]], most: int) -> list[str]:
    """The names that weigh most, in the direction of all together."""
    totals: dict[str, float] = defaultdict(float)
    for name, weight in weighed:
        if name is not None:
            totals[name] += float(weight)
    direction = 1 if sum(totals.values()) >= 0 else -1
    ordered = sorted(totals, key=lambda name: (-direction * totals[name], name))
    return [name for name in ordered if direction * totals[name] > 0][:most]


def explained_topics(questions: Questions, before: Floats, after: Floats, by_case: Floats) -> list[ExplainedTopic]:
    """What the topics add to the difference of a metric: five, those that add most first."""
    there = [~np.isnan(own) for own in (before, after)]
    totals = [int(own.sum()) for own in there]
    middle = (float(before[there[0]].mean()) + float(after[there[1]].mean())) / 2
    found: list[ExplainedTopic] = []
    for topic in sorted({topic for topic in questions.topics if topic is not None}):
        own = np.array([name == topic for name in questions.topics])
        n_a, n_b = (int((own & side).sum()) for side in there)
        moved = float((after[own & there[1]] - middle).sum()) / totals[1]
        moved -= float((before[own & there[0]] - middle).sum()) / totals[0]
        answers = float(by_case[own].sum())
        questions_part = moved - answers if abs(moved - answers) > ROUNDING else 0.0
        found.append({"topic": topic, "n_a": n_a, "n_b": n_b, "questions": questions_part, "answers": answers})
    found.sort(key=lambda one: -max(abs(one["questions"]), abs(one["answers"])))
    return [one for one in found if one["n_a"] or one["n_b"]][:MOST]


def explained_pages(questions: Questions, by_case: Floats, measured: NDArray[np.bool_]) -> list[ExplainedPage]:
    """The five pages whose questions explain most of what answers changed."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, page in enumerate(questions.pages):
        if page is not None and measured[row]:
            rows[page].append(row)
    named = weightiest(((page, by_case[of].sum()) for page, of in rows.items()), MOST)
    return [
        {
            "page": page,
            "fate": questions.fates[rows[page][0]],
            "n": len(rows[page]),
            "answers": float(by_case[rows[page]].sum()),
        }
        for page in named
    ]


def explained_cases(questions: Questions, before: Floats, after: Floats, by_case: Floats) -> list[ExplainedCase]:
    """The five questions that explain most of what answers changed."""
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
    """Questions that were measured before and could not be after."""
    rows: dict[tuple[str, Fate | None], list[int]] = defaultdict(list)
    for row, (then, now) in enumerate(zip(*questions.statuses, strict=True)):
        if then in MEASURED and now is not None and now not in MEASURED:
            rows[now, questions.fates[row]].append(row)
    found = [(status, fate, of) for (status, fate), of in rows.items()]
    return [
        {
            "status": status,  # type: ignore[typeddict-item]
            "fate": fate,
            "n": len(of),
            "topics": [topic for topic, _ in Counter(questions.topics[row] for row in of).most_common(FEW) if topic],
        }
        for status, fate, of in sorted(found, key=lambda one: -len(one[2]))
    ]


def served(cases: pa.Table, declared: Sequence[Metric], questions: Questions) -> tuple[Floats, float]:
    """The first headline metric that cases have, and its lowest value."""
    for headline in declared:
        if headline.column in cases.column_names and np.isfinite(headline.low):
            return questions.of(1, floats(cases, headline.column)), headline.low
    return np.full(len(questions.case_ids), np.nan), 0.0


def new_topics(questions: Questions, values: Floats, lowest: float) -> list[NewTopic]:
    """Topics that were hardly asked about before and that nothing serves, the largest first."""
    totals = [max(1, int((own >= 0).sum())) for own in questions.rows]
    rows: Mapping[str, list[int]] = defaultdict(list)
    for row, topic in enumerate(questions.topics):
        if topic is not None:
            rows[topic].append(row)
    found: list[NewTopic] = []
    for topic, of in rows.items():
        asked = [[row for row in of if own[row] >= 0] for own in questions.rows]
        shares = [len(own) / total for own, total in zip(asked, totals, strict=True)]
        served = [row for row in asked[1] if values[row] > lowest]
        grew = len(asked[0]) < NEW <= len(asked[1]) and shares[1] >= GREW * shares[0]
        if grew and len(served) <= UNSERVED * len(asked[1]):
            texts = [questions.texts[row] for row in asked[1]]
            examples = list(dict.fromkeys(text for text in texts if text))[:FEW]
            found.append({"topic": topic, "n": len(asked[1]), "served": len(served), "examples": examples})
    return sorted(found, key=lambda one: -one["n"])[:MOST]


STAGES = ("retrieval", "generation", "refusal", "gate")


def sentences(document: Explanation, language: str) -> Iterator[str]:
    """Of every headline metric what moved it; then what is lost and what is new.

    Args:
        document: as `yarus.tasks.comparison.explanation.explain.explain` gives it.
        language: ru or en.
    """
    for name, found in document["metrics"].items():
        yield from of_metric(name, found, language)
    words, fates, statuses = (texts(section, language) for section in ("explanation", "fates", "statuses"))
    for lost in document["lost"]:
        why = fates[lost["fate"]] if lost["fate"] in ("removed", "edited") else ""
        about = words["about"].format(topics=", ".join(lost["topics"])) if lost["topics"] else ""
        said = words["lost"].format(n=lost["n"], status=statuses[lost["status"]])
        yield said + (f", {words['pages'].format(fate=why)}" if why else "") + about + "."
    for new in document["new_topics"]:
        yield words["new topic"].format(topic=new["topic"], n=new["n"], served=new["served"])


def of_metric(name: str, found: ExplainedMetric, language: str) -> Iterator[str]:
    """What moved one metric: questions and answers, and of the answers what is beyond chance."""
    words = texts("explanation", language)
    numbers = {side: shown(name, found[side]) for side in ("a", "b")}
    answers = found["answers"]
    same = found["n_a"] == found["n_b"] == found["n_common"]
    split = [words["same questions"] if same else words["questions"].format(part=_part(name, found["questions"]))]
    if answers is None:
        split.append(words["no common kind"])
    else:
        split.append(words[_how(name, answers)].format(part=_part(name, answers)))
    difference = shown(name, found["difference"], sign=True)
    yield words["moved"].format(metric=name, **numbers, difference=difference, parts="; ".join(split))
    causes = [
        words["cause"].format(
            pages=words["pages"].format(fate=texts("fates", language)[fate]),
            part=_part(name, part),
            n=part["n"],
            n_pages=part["pages"],
        )
        + (words["about"].format(topics=", ".join(part["topics"])) if part["topics"] else "")
        for fate, part in (found["fates"] or {}).items()
        if fate != "untouched" and beyond_chance(part)
    ]
    if causes:
        yield words["causes"].format(causes="; ".join(causes))
    stages = {name: part for name, part in (found["stages"] or {}).items() if name in STAGES and beyond_chance(part)}
    if stages:
        named = texts("explained_stages", language)
        yield words["stages"].format(
            stages="; ".join(f"{named[stage]} {_part(name, part)}" for stage, part in stages.items())
        )


def beyond_chance(part: ExplainedPart) -> bool:
    """Whether its interval is all on one side of 0."""
    return part["ci_low"] > 0 or part["ci_high"] < 0


def _how(name: str, answers: ExplainedPart) -> str:
    if not beyond_chance(answers):
        return "answers"
    return "better" if (answers["value"] > 0) == (metric(name).better == "higher") else "worse"


def _part(name: str, part: ExplainedPart) -> str:
    value, low, high = (shown(name, part[key], sign=True) for key in ("value", "ci_low", "ci_high"))
    return f"{value} ({low} … {high})"
