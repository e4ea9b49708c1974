"""The features that find something beside the metrics, in the order in which people are told of it."""

from typing import Any

from yarus.tasks.evaluation.findings import exam, failures, incomplete, persistence, production, showing
from yarus.tasks.evaluation.findings.finding import Evaluated, Feature
from yarus.tasks.evaluation.findings_schema import Findings

FINDINGS: tuple[Feature, ...] = (exam, persistence, production, incomplete, showing, failures)


def find_all(evaluated: Evaluated) -> dict[str, Any]:
    """Return what every feature finds, by key.

    Raises:
        KeyError: a key that `Findings` does not declare.
    """
    found = {name: document for feature in FINDINGS for name, document in feature.find(evaluated).items()}
    if undeclared := found.keys() - Findings.__annotations__.keys():
        raise KeyError(f"{', '.join(sorted(undeclared))}: not declared in tasks/evaluation/findings_schema.py")
    return found
