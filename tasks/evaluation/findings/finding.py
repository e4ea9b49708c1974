"""A finding: what a feature finds in all cases of an evaluation, beside its metrics, and how it says it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from yarus.tasks.config.texts import Text
from yarus.tasks.evaluation.run import Run


class Evaluated(NamedTuple):
    """An evaluation whose cases are all measured."""

    run: Run
    cases: pa.Table
    metrics: Mapping[str, tuple[float | None, float | None, float | None]]
    """Metric -> its value and the ends of its interval."""


class Feature(Protocol):
    """A module that finds something and says it."""

    def find(self, evaluated: Evaluated) -> Mapping[str, Any]:
        """Return the documents that are stored and printed, by their keys in `Findings`; none where cases tell none."""

    def sentences(self, summary: Mapping[str, Any]) -> Iterator[Text]:
        """Yield what people are told, from the summary of an evaluation."""
