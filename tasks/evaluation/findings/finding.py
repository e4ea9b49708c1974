"""A finding: results from all cases of an evaluation in addition to its metrics, and their sentences."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from yarus.tasks.config.texts import TranslatedText
from yarus.tasks.evaluation.run import EvaluationRun


class MeasuredEvaluation(NamedTuple):
    """An evaluation whose cases are all measured."""

    run: EvaluationRun
    cases: pa.Table
    metrics: Mapping[str, tuple[float | None, float | None, float | None]]
    """Metric -> its value and the ends of its interval."""


class Feature(Protocol):
    """A module that computes a finding and its sentences."""

    def find(self, evaluated: MeasuredEvaluation) -> Mapping[str, Any]:
        """Return the documents that are stored and printed, by their keys in `Findings`; empty if there are none."""

    def sentences(self, summary: Mapping[str, Any]) -> Iterator[TranslatedText]:
        """Yield sentences for people, from the summary of an evaluation."""
