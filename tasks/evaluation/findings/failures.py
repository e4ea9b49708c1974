"""Stages at which the cases of an evaluation failed, and which to fix first."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from yarus.tasks.cases.table import Case
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.findings.finding import MeasuredEvaluation
from yarus.tasks.evaluation.findings_schema import Failures
from yarus.tasks.evaluation.queries import format_conditions, match_condition

FAILURE_STAGES = ("retrieval", "generation", "refusal", "gate", "label")
MAX_LISTED = 5


def count_failures(cases: pa.Table) -> Failures:
    """Count the failed cases by stage, and select the few that are most useful to fix.

    Cases with the right passage come first, because only the steps after retrieval must be fixed for them; doubtful
    labels come last. Among equals the lowest e2e_score comes first, then the order of the cases.

    Args:
        cases: with `failure`.
    """
    columns = ("case_id", "failure", "relevant", "retrieved", "e2e_score")
    failed = cases.select(columns).filter(pc.is_valid(cases["failure"])).to_pylist()
    counts = {name: sum(case["failure"] == name for case in failed) for name in FAILURE_STAGES}
    failed.sort(key=_urgency)
    return {"counts": counts, "fix_first": [case["case_id"] for case in failed[:MAX_LISTED]]}


def find(evaluated: MeasuredEvaluation) -> dict[str, Failures | int]:
    """See `Feature`."""
    cases, doubtful = evaluated.cases, TIERS[evaluated.run.tier].doubtful
    documents: dict[str, Failures | int] = {}
    if "failure" in cases.column_names:
        documents["failures"] = count_failures(cases)
    if doubtful and doubtful["metric"] in cases.column_names:
        documents["doubtful"] = pc.sum(match_condition(cases, format_conditions(doubtful)[0]), min_count=0).as_py()
    return documents


def sentences(summary: Mapping[str, Any]) -> Iterator[TranslatedText]:
    """Yield how many answers fail at each stage, the most frequent first, and which cases to start with."""
    document: Failures | None = summary.get("failures")
    if document and any(document["counts"].values()):
        yield {language: _failure_sentence(document, language) for language in LANGUAGES}


def _failure_sentence(document: Failures, language: str) -> str:
    words = texts("terminal", language)
    by_frequency = sorted(document["counts"].items(), key=lambda item: -item[1])
    counts = ", ".join(words[f"failed in {name}"].format(n=n) for name, n in by_frequency if n)
    return words["failures"].format(counts=counts, first=", ".join(document["fix_first"]))


def _urgency(case: Case) -> tuple[bool, bool, float]:
    score = case["e2e_score"]
    return case["failure"] == "label", has_relevant_result(case) is not True, 1.0 if score is None else score


def has_relevant_result(case: Case) -> bool | None:
    """Return whether a relevant result was retrieved; None if that is not known."""
    if not case["relevant"] or case["retrieved"] is None:
        return None
    return not set(case["relevant"]).isdisjoint(case["retrieved"])
