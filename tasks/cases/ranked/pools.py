"""Pools: the results of a question that a judge has looked at, and the cases as it, or people, see them.

A result is relevant or not: what the labels say, else a judge's grade of 2 or 3 (it has an answer), else what people
say. A question about which nothing found is relevant counts as one whose answer was not found.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from typing_extensions import TypedDict

from yarus.tasks.cases.table import with_columns

ANSWERS = 2
"""Grade from which on a passage has an answer."""
NOT_FOUND = "\0"
"""Stands for the answer of a question that nobody has found."""
Said = Mapping[str, bool]
"""Result -> whether it is relevant."""


class Pooled(TypedDict):
    """One result of a pool."""

    result: str
    """A chunk or page; of twins the first."""
    rank: int | None
    """In the evaluation's own ranking, from 1; null where only others have found it."""
    label: bool | None
    """Whether it is relevant by the labels of the source; null where these do not tell. What the corpus does not have
    is not."""
    grade: int | None
    """The judge's, 0 to 3; null where the labels tell, or the judge failed."""


Pool = list[Pooled]


def fillable(cases: pa.Table, answerable: Sequence[bool | None]) -> pa.Table:
    """The cases, where those without a label can be measured too, unless it is annotated that there is no answer."""
    rows = zip(cases["status"].to_pylist(), cases["reason"].to_pylist(), answerable, strict=True)
    states = [
        ("ok", None) if status in ("unlabelled", "stale_label") and has_answer is not False else (status, reason)
        for status, reason, has_answer in rows
    ]
    return with_columns(cases, status=[status for status, _ in states], reason=[reason for _, reason in states])


def to_judge(one: Pooled) -> bool:
    """Whether the labels say nothing of it."""
    return one["label"] is None


def passages_of(cases: pa.Table) -> list[dict[str, str]]:
    """Result -> what the judge was shown of it: of each case, where it was shown something.

    Args:
        cases: with `pooled` and `passages`.
    """
    rows = zip(cases["pooled"].to_pylist(), cases["passages"].to_pylist(), strict=True)
    return [
        {one["result"]: text for one, text in zip(pool or (), texts or (), strict=True) if text is not None}
        for pool, texts in rows
    ]


def graded(one: Pooled) -> int:
    """The judge's grade of a result that it has graded.

    Raises:
        ValueError: it has none: a failure is no grade.
    """
    if one["grade"] is None:
        raise ValueError(f"{one['result']!r} has no grade")
    return one["grade"]


def by_judge(pool: Pool) -> Said | None:
    """What is relevant by the labels, else by the judge; None where the judge has failed."""
    if any(to_judge(one) and one["grade"] is None for one in pool):
        return None
    return {one["result"]: graded(one) >= ANSWERS if one["label"] is None else one["label"] for one in pool}


def seen(cases: pa.Table, said: Sequence[Said | None]) -> pa.Table:
    """The cases with rankings and labels as somebody sees them; without labels where it is not known.

    Args:
        cases: with `pooled`.
        said: of each case, what is relevant.
    """
    pools: list[Pool | None] = cases["pooled"].to_pylist()
    known = [of if pool is not None else None for pool, of in zip(pools, said, strict=True)]
    return with_columns(
        cases,
        retrieved=[pool and ranking(pool) for pool in pools],
        relevant=[_relevant(of) if of is not None else [] for of in known],
        irrelevant=[[name for name, yes in (of or {}).items() if not yes] for of in known],
        grades=[None] * len(cases),
    )


def ranking(pool: Pool) -> list[str]:
    """The evaluation's own, best first."""
    own: list[Any] = sorted((one["rank"], one["result"]) for one in pool if one["rank"] is not None)
    return [result for _, result in own]


def _relevant(said: Said) -> list[str]:
    return [name for name, yes in said.items() if yes] or [NOT_FOUND]
