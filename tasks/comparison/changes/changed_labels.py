"""Two evaluations of one source whose questions or labels have changed: what of them is measured alike on both."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlalchemy.engine import RowMapping

from yarus.tasks.cases.table import COLUMNS
from yarus.tasks.comparison.documents import KeyDifference, LabelsChanged
from yarus.tasks.results import parquet_files

READ: tuple[str, ...] = ("case_id", "question", "text", "cluster", "stratum", "relevant", "grades", "reference")
READ += ("answerable", "shown", "human_score")
"""What a case is asked, and what its values rest on."""


def only_cases_differ(differs: Sequence[KeyDifference]) -> bool:
    """Whether nothing but the content of the case set parts two evaluations: not how it is measured, nor its name."""
    return bool(differs) and all(part["part"] == "cases.sha256" for part in differs)


def labelled_alike(a: RowMapping, b: RowMapping) -> tuple[LabelsChanged, set[str]]:
    """What changed, and the ids of the cases that are labelled alike on both sides.

    Raises:
        ResultsUnavailable: the file of one is gone, damaged or another one's.
    """
    before, after = (_content(row) for row in (a, b))
    common = before.keys() & after.keys()
    alike = {name for name in common if before[name] == after[name]}
    changed: LabelsChanged = {
        "n": len(common) - len(alike),
        "n_common": len(common),
        "only_a": len(before) - len(common),
        "only_b": len(after) - len(common),
    }
    return changed, alike


def kept(cases: pa.Table, ids: set[str]) -> pa.Table:
    """The cases of these ids."""
    return cases.filter(pa.array([name in ids for name in cases["case_id"].to_pylist()], pa.bool_()))


def _content(row: RowMapping) -> dict[str, Any]:
    """Case id -> what is asked and labelled; the order of labels means nothing."""
    cases = parquet_files.read(row["parquet"], without=[name for name in COLUMNS if name not in READ])
    return {case.pop("case_id"): _alike(case) for case in cases.to_pylist()}


def _alike(case: dict[str, Any]) -> dict[str, Any]:
    relevant = case.pop("relevant", None) or ()
    grades = case.pop("grades", None) or [1.0] * len(relevant)
    labels = dict(zip(relevant, grades, strict=True))
    return {name: value for name, value in case.items() if value is not None} | {"labels": labels}
