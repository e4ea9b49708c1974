"""Where the cases of an evaluation failed, and which to mend first."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from yarus.tasks.cases.table import Case
from yarus.tasks.config.texts import LANGUAGES, Text, texts
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.findings.finding import Evaluated
from yarus.tasks.evaluation.findings_schema import Failures
from yarus.tasks.evaluation.queries import matching, where

FAILURES = ("retrieval", "generation", "refusal", "gate", "label")
SHOWN = 5


def failures(cases: pa.Table) -> Failures:
    """How many cases failed where, and the few that are most useful to fix.

    First those that had the right passage at hand, because only what comes after retrieval has to be mended for them;
    then the others, doubtful labels last. Among equals the lowest e2e_score, then the order of the cases.

    Args:
        cases: with `failure`.
    """
    kept = ("case_id", "failure", "relevant", "retrieved", "e2e_score")
    failed = cases.select(kept).filter(pc.is_valid(cases["failure"])).to_pylist()
    counts = {name: sum(case["failure"] == name for case in failed) for name in FAILURES}
    failed.sort(key=_urgency)
    return {"counts": counts, "fix_first": [case["case_id"] for case in failed[:SHOWN]]}


def find(evaluated: Evaluated) -> dict[str, Failures | int]:
    """See `Feature`."""
    cases, doubtful = evaluated.cases, TIERS[evaluated.run.tier].doubtful
    found: dict[str, Failures | int] = {}
    if "failure" in cases.column_names:
        found["failures"] = failures(cases)
    if doubtful and doubtful["metric"] in cases.column_names:
        found["doubtful"] = pc.sum(matching(cases, where(doubtful)), min_count=0).as_py()
    return found


def sentences(summary: Mapping[str, Any]) -> Iterator[Text]:
    """Yield how many answers fail at each stage, the most frequent first, and which cases to begin with."""
    known: Failures | None = summary.get("failures")
    if known and any(known["counts"].values()):
        yield {language: _sentence(known, language) for language in LANGUAGES}


def _sentence(known: Failures, language: str) -> str:
    words = texts("terminal", language)
    most_first = sorted(known["counts"].items(), key=lambda item: -item[1])
    counts = ", ".join(words[f"failed in {name}"].format(n=n) for name, n in most_first if n)
    return words["failures"].format(counts=counts, first=", ".join(known["fix_first"]))


def _urgency(case: Case) -> tuple[bool, bool, float]:
    score = case["e2e_score"]
    return case["failure"] == "label", found(case) is not True, 1.0 if score is None else score


def found(case: Case) -> bool | None:
    """Whether something relevant was retrieved; None where that is not known."""
    if not case["relevant"] or case["retrieved"] is None:
        return None
    return not set(case["relevant"]).isdisjoint(case["retrieved"])
