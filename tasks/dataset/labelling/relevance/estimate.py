"""Means of filled labels as people's labels of some results correct them."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine

from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.metrics.statistics.corrected import Labelled
from yarus.tasks.cases.table import floats
from yarus.tasks.dataset.labelling.relevance.pools import Heard, Pools, heard
from yarus.tasks.dataset.labelling.relevance.walk import is_whole, metrics_by_people, wanted
from yarus.tasks.evaluation.standings import FILLING


def complete(of: Pools, said: Sequence[Heard], passed_over: frozenset[tuple[str, str]] = frozenset()) -> list[int]:
    """The drawn questions of which people have judged what was wanted: rows of the cases.

    Of each stratum they are the first in the order of the draw, up to one that is waiting, for who comes to be judged
    must not depend on what is found. A question with a result that people could not decide is passed over.

    Args:
        of: the evaluation.
        said: of each case, what people have said.
        passed_over: case and result, where people have said that they cannot tell.
    """
    found, waiting = [], set[str]()
    for one in of.order:
        if one.stratum in waiting:
            continue
        name = of.ids[one.row]
        asked = wanted(of.pools[one.row], said[one.row], whole=is_whole(name))
        missing = next((result["result"] for result in asked if result["result"] not in said[one.row]), None)
        if missing is None:
            found.append(one.row)
        elif (name, missing) not in passed_over:
            waiting.add(one.stratum)
    return found


def known(of: Pools, labels: Sequence[Label]) -> dict[str, Labelled]:
    """By column of a metric: what the judge makes of every question, and people of those that were drawn."""
    said = heard(of, labels)
    undecided = frozenset((label.case_id, label.result) for label in labels if label.value is None)
    rows = complete(of, said, undecided)
    names = [metric.column or "" for metric in of.metrics]
    done = Counter(of.strata[row] for row in rows)
    chances = np.array([done[name] / of.sizes[name] or np.nan for name in of.strata])
    some = of.cases.take(pa.array(rows, pa.int64()))
    people = metrics_by_people(some, [said[row] for row in rows], 1 / chances[rows], names, of.k)
    found = {}
    for name in names:
        values = np.full(len(of.ids), np.nan)
        values[rows] = people[name]
        counted = np.ones(len(of.ids), dtype=bool)
        found[name] = Labelled(floats(of.cases, name), values, chances, of.group_names, counted, bounded=False)
    return found


def results_labelled(engine: Engine, source: str) -> list[Label]:
    """Everything that people have said of results over a source, whoever judged, and whatever found them."""
    return store.labels_of_source(engine, source, FILLING)
