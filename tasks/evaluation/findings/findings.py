"""The features that find something beside the metrics, in the order in which people are told of it."""

from typing import Any

from yarus.tasks.evaluation.findings import exam, failures, incomplete, persistence, production, showing
from yarus.tasks.evaluation.findings.finding import Evaluated, Feature

FINDINGS: tuple[Feature, ...] = (exam, persistence, production, incomplete, showing, failures)


def find_all(evaluated: Evaluated) -> dict[str, Any]:
    """Return what every feature finds, by key."""
    return {name: document for feature in FINDINGS for name, document in feature.find(evaluated).items()}
