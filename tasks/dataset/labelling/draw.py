"""Which answers people are asked about: at random, with a known probability, by the judge's score and the status.

Every stratum is asked about in a seeded order, and the strata in turn, so that after any number of labels each has
had its share: the root of its size. Of a tenth of low scores that makes a quarter of the labels, so that it is seen
soon what the judge is worth there, and an interval of the mean is little wider than that of equal chances.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from yarus.db.stores.labels import Label
from yarus.tasks.cases.table import values_of

BOUNDS = (0.4, 0.75)
"""Scores from which on a stratum is a higher one."""


@dataclass(frozen=True)
class OfCases:
    """The cases of an evaluation that people label, whatever of them it is."""

    evaluation_id: str
    source: str
    tier: str
    judge_key: str
    cases: pa.Table
    """With `case_id` and `group`."""

    @property
    def strata(self) -> list[str]:
        """What each case is drawn from."""
        raise NotImplementedError

    @cached_property
    def sizes(self) -> Counter[str]:
        """Stratum -> cases."""
        return Counter(self.strata)

    @cached_property
    def ids(self) -> list[str]:
        """Of the cases."""
        return values_of(self.cases, "case_id")

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Id -> its row."""
        return {name: row for row, name in enumerate(self.ids)}

    @cached_property
    def groups(self) -> list[str | None]:
        """The user, dialog or page of each case; None where it stands alone."""
        return values_of(self.cases, "group")

    @cached_property
    def group_names(self) -> list[str]:
        """The group of each case; of one that stands alone, its own id."""
        return [group or name for group, name in zip(self.groups, self.ids, strict=True)]

    def labelled(self, row: int, **said: Any) -> Label:
        """The label of a case, now: what is said, beside what is known of the case."""
        stratum = self.strata[row]
        return Label(
            evaluation_id=self.evaluation_id,
            case_id=self.ids[row],
            stratum=stratum,
            stratum_size=self.sizes[stratum],
            case_group=self.groups[row],
            judge_key=self.judge_key,
            source=self.source,
            tier=self.tier,
            at=datetime.now(UTC),
            **said,
        )


class Drawn(NamedTuple):
    """A case that people are to label."""

    row: int
    """Its place among the cases."""
    stratum: str
    stratum_size: int
    probability: float
    """Of being among those that were drawn until it was: share of its stratum."""


def strata(scores: Sequence[float], statuses: Sequence[str]) -> list[str]:
    """The stratum of each case: how high the judge's score is, and its status.

    Example:
        >>> from yarus.tasks.dataset.labelling.draw import strata
        >>> strata([0.1, 0.5, 1.0], ["ok", "ok", "refused"])
        ['low ok', 'middle ok', 'high refused']
    """
    levels = ("low", "middle", "high")
    return [
        f"{levels[sum(score >= bound for bound in BOUNDS)]} {status}"
        for score, status in zip(scores, statuses, strict=True)
    ]


def drawn(ids: Sequence[str], of: Sequence[str], *, seed: str | int) -> list[Drawn]:
    """All cases in the order in which people are asked about them; any first part of it is a stratified sample.

    Args:
        ids: of the cases.
        of: the stratum of each, as `strata` gives it.
        seed: others give other orders.

    Example:
        >>> from yarus.tasks.dataset.labelling.draw import drawn
        >>> order = drawn(["a", "b", "c", "d", "e"], ["low ok", *["high ok"] * 4], seed=1)
        >>> [one.row for one in order], order[-1].probability
        ([4, 0, 2, 1, 3], 1.0)
    """
    sizes = Counter(of)
    chances = [hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=8).digest() for name in ids]
    ranks: Counter[str] = Counter()
    keyed = []
    for row in sorted(range(len(ids)), key=lambda row: (chances[row], ids[row])):
        stratum = of[row]
        ranks[stratum] += 1
        found = Drawn(row, stratum, sizes[stratum], ranks[stratum] / sizes[stratum])
        keyed.append(((ranks[stratum] - 0.5) / sizes[stratum] ** 0.5, chances[row], found))
    return [found for *_, found in sorted(keyed, key=lambda one: one[:2])]
