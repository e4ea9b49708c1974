"""Stratified random order in which people label answers, with known probabilities.

Strata combine the judge's score and the status. Each stratum has a seeded order, and strata alternate, so that labels
are always allocated in proportion to the square root of the stratum size. If a tenth of the scores is low, it gets a
quarter of the labels. The judge's errors there show early, and the interval of the mean is little wider than that of a
simple random sample.
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
from yarus.tasks.cases.table import column_values

BOUNDS = (0.4, 0.75)
"""Scores at which the next higher stratum begins."""


@dataclass(frozen=True)
class LabelledCases:
    """The cases of an evaluation that people label."""

    evaluation_id: str
    source: str
    tier: str
    judge_key: str
    cases: pa.Table
    """Table with `case_id` and `group`."""

    @property
    def strata(self) -> list[str]:
        """Return the sampling stratum of each case."""
        raise NotImplementedError

    @cached_property
    def sizes(self) -> Counter[str]:
        """Return stratum -> number of cases."""
        return Counter(self.strata)

    @cached_property
    def ids(self) -> list[str]:
        """Return the ids of the cases."""
        return column_values(self.cases, "case_id")

    @cached_property
    def row_by_case(self) -> dict[str, int]:
        """Return case id -> row."""
        return {case_id: row for row, case_id in enumerate(self.ids)}

    @cached_property
    def groups(self) -> list[str | None]:
        """Return the user, dialog or page of each case; None for a single case."""
        return column_values(self.cases, "group")

    @cached_property
    def group_names(self) -> list[str]:
        """Return the group of each case, or its own id if it has no group."""
        return [group or case_id for group, case_id in zip(self.groups, self.ids, strict=True)]

    def make_label(self, row: int, **values: Any) -> Label:
        """Return the label of a case now, with the values and the details of the case."""
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
            **values,
        )


class SampledCase(NamedTuple):
    """A case to label."""

    row: int
    """Index of the case."""
    stratum: str
    stratum_size: int
    probability: float
    """Inclusion probability up to this case: share of its stratum."""


def assign_strata(scores: Sequence[float], statuses: Sequence[str]) -> list[str]:
    """Return the stratum of each case: the level of the judge's score, and its status.

    Example:
        >>> from yarus.tasks.dataset.labelling.sampling import assign_strata
        >>> assign_strata([0.1, 0.5, 1.0], ["ok", "ok", "refused"])
        ['low ok', 'middle ok', 'high refused']
    """
    levels = ("low", "middle", "high")
    return [
        f"{levels[sum(score >= bound for bound in BOUNDS)]} {status}"
        for score, status in zip(scores, statuses, strict=True)
    ]


def sampling_order(ids: Sequence[str], case_strata: Sequence[str], *, seed: str | int) -> list[SampledCase]:
    """Return all cases in labelling order; each prefix is a stratified sample.

    Args:
        ids: ids of the cases.
        case_strata: stratum of each case, from `assign_strata`.
        seed: seed of the order.

    Example:
        >>> from yarus.tasks.dataset.labelling.sampling import sampling_order
        >>> order = sampling_order(["a", "b", "c", "d", "e"], ["low ok", *["high ok"] * 4], seed=1)
        >>> [case.row for case in order], order[-1].probability
        ([4, 0, 2, 1, 3], 1.0)
    """
    sizes = Counter(case_strata)
    digests = [hashlib.blake2b(f"{seed}|{case_id}".encode(), digest_size=8).digest() for case_id in ids]
    ranks: Counter[str] = Counter()
    keyed = []
    for row in sorted(range(len(ids)), key=lambda row: (digests[row], ids[row])):
        stratum = case_strata[row]
        ranks[stratum] += 1
        sampled = SampledCase(row, stratum, sizes[stratum], ranks[stratum] / sizes[stratum])
        keyed.append(((ranks[stratum] - 0.5) / sizes[stratum] ** 0.5, digests[row], sampled))
    return [sampled for *_, sampled in sorted(keyed, key=lambda entry: entry[:2])]
