"""Where the cases of an evaluation failed, and which to mend first."""

from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

if TYPE_CHECKING:
    import pyarrow as pa

FAILURES = ("retrieval", "generation", "refusal", "gate", "label")
SHOWN = 5
Case = dict[str, Any]


class Failures(TypedDict):
    """Where cases failed, and which to mend first."""

    counts: dict[str, int]
    """Stage -> cases that failed there."""
    fix_first: list[str]
    """Ids of up to five cases."""


def failures(cases: "pa.Table") -> Failures:
    """How many cases failed where, and the few that are most useful to fix.

    First those that had the right passage at hand, because only what comes after retrieval has to be mended for them;
    then the others, doubtful labels last. Among equals the lowest e2e_score, then the order of the cases.

    Args:
        cases: with `failure`.
    """
    import pyarrow.compute as pc

    kept = ("case_id", "failure", "relevant", "retrieved", "e2e_score")
    failed = cases.select(kept).filter(pc.is_valid(cases["failure"])).to_pylist()
    counts = {name: sum(case["failure"] == name for case in failed) for name in FAILURES}
    failed.sort(key=_urgency)
    return {"counts": counts, "fix_first": [case["case_id"] for case in failed[:SHOWN]]}


def _urgency(case: Case) -> tuple[bool, bool, float]:
    score = case["e2e_score"]
    return case["failure"] == "label", found(case) is not True, 1.0 if score is None else score


def found(case: Case) -> bool | None:
    """Whether something relevant was retrieved; None where that is not known."""
    if not case["relevant"] or case["retrieved"] is None:
        return None
    return not set(case["relevant"]).isdisjoint(case["retrieved"])
