"""All features that compute findings, in the order of their sentences."""

from typing import Any

from yarus.tasks.evaluation.findings import exam, failures, incomplete, persistence, production, showing
from yarus.tasks.evaluation.findings.finding import Feature, MeasuredEvaluation
from yarus.tasks.evaluation.findings_schema import Findings

FINDINGS: tuple[Feature, ...] = (exam, persistence, production, incomplete, showing, failures)


def find_all(evaluated: MeasuredEvaluation) -> dict[str, Any]:
    """Return the findings of every feature, by key.

    Raises:
        KeyError: a key that `Findings` does not declare.
    """
    documents = {name: document for feature in FINDINGS for name, document in feature.find(evaluated).items()}
    if undeclared := documents.keys() - Findings.__annotations__.keys():
        raise KeyError(f"{', '.join(sorted(undeclared))}: not declared in tasks/evaluation/findings_schema.py")
    return documents
