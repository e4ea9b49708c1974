"""Differences that people would see: corrected means, and rankings that people have not judged equally far."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db.stores.labels import labels_of
from yarus.db.words import Words
from yarus.metrics.metric import Direction, Metric
from yarus.metrics.statistics.corrected import Labelled
from yarus.metrics.statistics.differences.corrected import compare_corrected
from yarus.metrics.statistics.differences.numbers import Compared, Number
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.metrics.table import metric
from yarus.metrics.table.corrected import SUFFIX
from yarus.tasks.cases.table import floats, values_of
from yarus.tasks.comparison.common_cases import Pairs, common
from yarus.tasks.dataset.labelling.answers import Answers, judged, of_row
from yarus.tasks.dataset.labelling.estimate import lacking, together
from yarus.tasks.dataset.labelling.relevance.estimate import known as known_results
from yarus.tasks.dataset.labelling.relevance.estimate import results_labelled
from yarus.tasks.dataset.labelling.relevance.pools import Pools, is_filled
from yarus.tasks.dataset.labelling.relevance.pools import of_row as filled
from yarus.tasks.evaluation.findings_schema import Bounds, UnequallyJudged

L = TypeVar("L", Answers, Pools)
FEW_LABELS = Words("too few labels of people")
OTHER_JUDGE = Words("other judges have scored the two, and labels hold for one")


def is_corrected(name: str) -> bool:
    """Whether it names a mean as people's labels correct it."""
    return name.endswith(SUFFIX)


class Lacking(NamedTuple):
    """Why a corrected mean is not acted on: labels that are missing."""

    labels: int
    reason: str = FEW_LABELS


def compare_means(engine: Engine, a: RowMapping, b: RowMapping, name: str) -> Compared | Lacking | str:
    """The difference of a corrected mean over the common cases of two evaluations, or why there is none.

    Each side is corrected by labels of its own answers: others' would only repeat what the judge says of the
    difference.

    Args:
        engine: of our own database.
        a, b: rows of the journal: before and after.
        name: of the corrected metric.
    """
    of = name.removesuffix(SUFFIX)
    if is_filled(a) and is_filled(b):
        return _of_filled(engine, a, b, metric(of))
    keys = [judged(row).get(of) for row in (a, b)]
    if keys[0] is None or keys[0] != keys[1]:
        return OTHER_JUDGE
    both = [of_row(row, metric(of), keys[0], texts=False) for row in (a, b)]
    pairs = common(*(answers.cases for answers in both))
    sides = [_common(answers, cases) for answers, cases in zip(both, pairs, strict=True)]
    known = [together(answers, labels_of(engine, answers.evaluation_id, of)) for answers in sides]
    return _compared(known, metric(name).better)


def _of_filled(engine: Engine, a: RowMapping, b: RowMapping, of: Metric) -> Compared | Lacking | str:
    """The same where a judge has filled labels up: by what people have said of the results of both."""
    both = [filled(row) for row in (a, b)]
    if both[0].judge_key != both[1].judge_key:
        return OTHER_JUDGE
    said = results_labelled(engine, both[0].source)
    pairs = common(*(side.cases for side in both))
    sides = [_common(side, cases) for side, cases in zip(both, pairs, strict=True)]
    return _compared([known_results(side, said)[of.column or ""] for side in sides], of.better)


def _compared(sides: Sequence[Labelled], better: Direction) -> Compared | Lacking:
    if missing := sum(lacking(int((~np.isnan(side.labels)).sum())) for side in sides):
        return Lacking(missing)
    return compare_corrected(*sides, better=better)


def _common(of: L, cases: pa.Table) -> L:
    kept = pc.is_in(of.cases["case_id"], value_set=cases["case_id"].combine_chunks())
    return replace(of, cases=of.cases.filter(kept))


SHARE = "judged@10"
CHANCE = 0.05


def unequally_judged(pairs: Pairs, headlines: Sequence[Metric], seed: int) -> UnequallyJudged | None:
    """Whether the sides' shares of judged results differ by more than chance, and what that leaves of differences.

    Args:
        pairs: the common cases.
        headlines: of which bounds are told.
        seed: of the draws.

    Returns:
        None where the shares do not differ by more than chance, or are not known, or no headline rests on them.
    """
    a, b = (floats(side, SHARE) for side in pairs)
    share = Number(a=a, b=b, better="neither")
    one = compare_numbers({SHARE: share}, seed=seed, groups=values_of(pairs.a, "group"))[SHARE]
    if not one.comparison.p < CHANCE or any("if_right" not in side.column_names for side in pairs):
        return None
    known = set.intersection(*({field.name for field in side["if_right"].type} for side in pairs))
    found = {row.name: _bounds(row.name, *pairs) for row in headlines if row.name in known}
    bounds = {name: both for name, both in found.items() if both}
    return {"a": one.a, "b": one.b, "p": one.comparison.p, "bounds": bounds} if bounds else None


def _bounds(name: str, a: pa.Table, b: pa.Table) -> Bounds | None:
    """The difference if every unjudged result of the one side were wrong and every one of the other right."""
    lowest = [floats(side, name) for side in (a, b)]
    highest = [
        pc.struct_field(side["if_right"].combine_chunks(), name).to_numpy(zero_copy_only=False) for side in (a, b)
    ]
    both = ~np.isnan(lowest[0] + lowest[1])
    if not both.any():
        return None
    return {
        "low": float((lowest[1] - highest[0])[both].mean()),
        "high": float((highest[1] - lowest[0])[both].mean()),
    }
