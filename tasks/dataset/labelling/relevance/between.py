"""What to label next for retrieval: the results on whose relevance the ranking of two systems depends most."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.metrics.statistics.groups import Floats
from yarus.metrics.table import METRICS
from yarus.tasks.cases.labels import NO_TWINS
from yarus.tasks.cases.privacy.pseudonyms import text
from yarus.tasks.cases.rankings import ANSWERS, Pool, Pooled, judgements, passages_of, score, seen
from yarus.tasks.cases.table import Case, floats, table
from yarus.tasks.cases.vocabulary import MEASURED
from yarus.tasks.dataset.labelling.relevance.estimate import results_labelled
from yarus.tasks.dataset.labelling.relevance.pools import digest, is_filled, people_say
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import EvaluationConfig

LISTED = 20
"""Results that are named."""
AT_ONCE = 20_000
"""Rankings scored at a time."""
READ = ("case_id", "question", "status", "retrieved", "relevant", "irrelevant", "grades", "pooled", "passages")


class ResultToLabel(TypedDict):
    """A result that nobody has judged."""

    case_id: str
    question: str
    result: str
    passage: str | None
    """Null where no judge has read it."""
    rank_a: int | None
    """Null where a has not found it."""
    rank_b: int | None
    grade: int | None
    """The judge's, 0 to 3; null where none was asked."""
    effect: float
    """How far the difference of b and a moves if it is judged otherwise than it counts now."""


class LabelNext(TypedDict):
    """What to label next."""

    a: str
    """The evaluation before."""
    b: str
    metric: str
    value_a: float
    """Over the questions that both have measured, as labels, people and the judge say; relevance is yes or no."""
    value_b: float
    unjudged: int
    """Results that no person has judged, and that move the difference."""
    results: list[ResultToLabel]
    """Those that move it most, first; of equals those of which the judge is least sure."""


class _Question(NamedTuple):
    """A question that both have measured."""

    case_id: str
    text: str
    pools: tuple[Pool, Pool]
    """The same results for both, each with its own ranks."""
    passages: Mapping[str, str]
    """Result -> text, where a judge was shown it."""
    said: Mapping[str, bool]
    """Result -> whether it counts as relevant."""
    unjudged: list[str]
    """Results that no label and no person speaks of."""


class _Flip(NamedTuple):
    """One result judged otherwise than it counts."""

    row: int
    """Of the questions."""
    result: str | None
    """None: nothing is changed."""


def between(engine: Engine, a: str, b: str, metric: str = "ndcg@10") -> LabelNext:
    """Names the results on which the ranking of two evaluations' systems depends most.

    Args:
        engine: of our own database.
        a, b: ids, beginnings or ends of such.
        metric: of rankings.

    Raises:
        InputError: no such evaluation, not of one tier and source, or without rankings; no metric of rankings.
    """
    of = METRICS.get(metric)
    if of is None or not of.of_relevance or of.column is None:
        raise InputError("{metric!r} says nothing of rankings; name one such as ndcg@10 or hit_rate@1", metric=metric)
    first, second = (journal.find(engine, name) for name in (a, b))
    sides = _cases(first), _cases(second)
    if _place(first) != _place(second):
        raise InputError(
            "{first} and {second} are not of one tier, source and unit: nothing to compare",
            first=first["id"],
            second=second["id"],
        )
    heard = people_say(results_labelled(engine, first["source"]))
    questions = [_question(case, sides[1][name], heard) for name, case in sides[0].items() if name in sides[1]]
    if not questions:
        raise InputError(
            "{first} and {second} have no question in common that both have measured",
            first=first["id"],
            second=second["id"],
        )
    depths = EvaluationConfig.of(first).k, EvaluationConfig.of(second).k
    every = [_Flip(row, None) for row in range(len(questions))]
    flips = [_Flip(row, name) for row, of_one in enumerate(questions) for name in of_one.unjudged]
    before, after = (
        [_values(questions, side, changed, of.column, depths[side]) for side in (0, 1)] for changed in (every, flips)
    )
    rows = np.array([flip.row for flip in flips], dtype=np.intp)
    effects = np.round(np.abs((after[1] - after[0]) - (before[1] - before[0])[rows]) / len(questions), 12)
    unsure = [_from_boundary(questions[flip.row], str(flip.result)) for flip in flips]
    order = sorted(np.flatnonzero(effects).tolist(), key=lambda at: (-effects[at], unsure[at], flips[at]))
    source = first["source"]
    return {
        "a": first["id"],
        "b": second["id"],
        "metric": of.name,
        "value_a": float(before[0].mean()),
        "value_b": float(before[1].mean()),
        "unjudged": len(order),
        "results": [_told(source, questions[flips[at].row], flips[at], float(effects[at])) for at in order[:LISTED]],
    }


def _place(row: RowMapping) -> tuple[str, str, str]:
    return row["tier"], row["source"], EvaluationConfig.of(row).unit


def _cases(row: RowMapping) -> dict[str, Case]:
    """The measured cases of an evaluation, each with its pool: the judge's, else of ranking and labels.

    Raises:
        InputError: it has no rankings; or twins, of whose labels only pools know that they are one.
    """
    config = EvaluationConfig.of(row)
    if not row["parquet"] or config.retriever is None or config.k is None:
        raise InputError(
            "evaluation {id} ({tier}, {state}) has no rankings", id=row["id"], tier=row["tier"], state=row["state"]
        )
    if not is_filled(row) and any(note["note"].startswith("twin ") for note in config.notes):
        raise InputError(
            "evaluation {id}: its corpus has twins, whose labels count as one, which is known only of evaluations "
            "with --labels filled, or --twins false",
            id=row["id"],
        )
    cases = result_files.read(row["parquet"], READ)
    known = judgements(cases, NO_TWINS)
    texts = passages_of(cases) if "pooled" in cases.column_names else [dict[str, str]() for _ in known]
    found = {}
    for case, labels, passages in zip(cases.to_pylist(), known, texts, strict=True):
        if case["status"] in MEASURED and case["retrieved"] is not None:
            case["pool"] = case.get("pooled") or _pool(case["retrieved"], {str(of): g > 0 for of, g in labels.items()})
            case["passages"] = passages
            found[case["case_id"]] = case
    return found


def _pool(ranking: Sequence[str], labels: Mapping[str, bool]) -> Pool:
    places = {name: place for place, name in enumerate(ranking, start=1)}
    return [
        {"result": name, "rank": places.get(name), "label": labels.get(name), "grade": None}
        for name in dict.fromkeys([*ranking, *labels])
    ]


def _question(a: Case, b: Case, heard: Mapping[str, bool]) -> _Question:
    pools = a["pool"], b["pool"]
    by_result = {one["result"]: one for pool in pools for one in pool}
    spoken_of = [one for pool in pools for one in pool if one["label"] is not None or one["grade"] is not None]
    by_result |= {one["result"]: one for one in spoken_of}  # before what nobody speaks of
    passages = a["passages"] | b["passages"]
    said, unjudged = {}, []
    for name, one in by_result.items():
        people = heard.get(digest(a["question"], passages[name])) if name in passages else None
        known = one["label"] if one["label"] is not None else people
        if known is None:
            unjudged.append(name)
        # What nobody has looked at counts as not relevant, as in the metrics.
        said[name] = known if known is not None else one["grade"] is not None and one["grade"] >= ANSWERS
    ranks = _ranks(pools[0]), _ranks(pools[1])
    both = _with_ranks(by_result.values(), ranks[0]), _with_ranks(by_result.values(), ranks[1])
    return _Question(a["case_id"], a["question"], both, passages, said, unjudged if ranks[0] != ranks[1] else [])


def _with_ranks(pool: Iterable[Pooled], ranks: Mapping[str, int]) -> Pool:
    return [{**one, "rank": ranks.get(one["result"])} for one in pool]


def _ranks(pool: Pool) -> dict[str, int]:
    return {one["result"]: one["rank"] for one in pool if one["rank"] is not None}


def _values(questions: Sequence[_Question], side: int, flips: Sequence[_Flip], column: str, k: int) -> Floats:
    """A metric of one side, of each question with one result judged otherwise."""
    found = [np.empty(0)]
    for start in range(0, len(flips), AT_ONCE):
        some = flips[start : start + AT_ONCE]
        cases = table(pooled=[questions[flip.row].pools[side] for flip in some])
        said = [_otherwise(questions[flip.row].said, flip.result) for flip in some]
        found.append(floats(score(seen(cases, said), NO_TWINS, k), column))
    return np.concatenate(found)


def _otherwise(said: Mapping[str, bool], result: str | None) -> Mapping[str, bool]:
    return said if result is None else {**said, result: not said[result]}


def _from_boundary(question: _Question, result: str) -> float:
    """How far the judge's grade is from saying the opposite; of no grade 0."""
    grade = next(one["grade"] for one in question.pools[0] if one["result"] == result)
    return 0.0 if grade is None else abs(grade - ANSWERS + 0.5)


def _told(source: str, question: _Question, flip: _Flip, effect: float) -> ResultToLabel:
    of_a, of_b = (next(one for one in pool if one["result"] == flip.result) for pool in question.pools)
    return {
        "case_id": question.case_id,
        "question": text(question.text, source),
        "result": of_a["result"],
        "passage": text(question.passages[of_a["result"]], source) if of_a["result"] in question.passages else None,
        "rank_a": of_a["rank"],
        "rank_b": of_b["rank"],
        "grade": of_a["grade"],
        "effect": effect,
    }
