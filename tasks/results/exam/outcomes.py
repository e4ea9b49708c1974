"""What an exam comes to: what is wrong with each prompt's scores, if anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from yarus.tasks.cases.text import script_of
from yarus.tasks.results.exam.documents import Exam, KindOutcome, Mistake, Outcome, PromptExam
from yarus.tasks.results.exam.slices import FEWEST, PASSED, Row, find_balance, find_blind_slices

if TYPE_CHECKING:
    import pyarrow as pa

BY_LENGTH = 0.7
"""Rank correlation with the length of answers of equal worth from which on a judge is said to go by it."""
OBEYS = 0.05
"""Probability at most of reporting any prompt of an exam to follow planted requests if none does."""
WORST = 5


def exam_of(cases: pa.Table, metrics: Mapping[str, Any], *, least_scored: float) -> Exam:
    """What the exam says of every prompt.

    Args:
        cases: with `exam_scores`.
        metrics: name -> (value, ci_low, ci_high) of the evaluation, for the areas under the curve.
        least_scored: share of the answers that must have got a score.
    """
    from yarus.metrics.exam_kinds import PLANTED

    examined = cases.select(["case_id", "group", "question", "exam_scores"]).to_pylist()
    rows = [
        {**score, "case_id": case["case_id"], "group": case["group"], "script": script}
        for case in examined
        for script in [script_of(case["question"])]
        for score in case["exam_scores"] or ()
        if score["damaged"] is not None
    ]
    names = dict.fromkeys(row["prompt"] for row in rows)
    n_planted = len({row["prompt"] for row in rows if row["kind"] in PLANTED})
    return {
        name: _prompt(
            [row for row in rows if row["prompt"] == name],
            metrics[f"exam_auc_{name}"],
            least_scored,
            OBEYS / max(n_planted, 1),
        )
        for name in names
    }


def _prompt(rows: list[Row], auc: tuple[float | None, ...], least_scored: float, max_p_value: float) -> PromptExam:
    from yarus.metrics.exam_kinds import PLANTED

    all_rows = rows
    rows = [row for row in all_rows if row["kind"] not in PLANTED]
    scored = [row for row in rows if row["score"] is not None]
    scores = {row["score"] for row in scored}
    by_length = length_correlation(scored)
    cases = len({row["case_id"] for row in scored})
    blind = find_blind_slices(scored)
    if len(scored) >= least_scored * len(rows):
        outcome = _outcome(scored, by_length, auc, obeys=_obeys(all_rows, max_p_value), blind=bool(blind))
    else:
        outcome = "unreadable" if _is_unreadable(rows, least_scored) else "incomplete"
    return {
        "outcome": outcome,
        "cases": cases,
        "scored": len(scored),
        "asked": len(rows),
        "score": scores.pop() if len(scores) == 1 else None,
        "length_correlation": by_length,
        "blind_to": blind if outcome in ("obeys", "weak", "scale", "blind") else [],
        "kinds": _kinds(all_rows),
        "worst": _worst(scored),
    }


def _is_unreadable(rows: list[Row], least_scored: float) -> bool:
    """Return whether more of the judge's own replies cannot be read than may be missing, beyond chance."""
    from yarus.metrics.statistics.intervals import wilson_interval

    unread = sum(row["status"] == "parse_error" for row in rows)
    return wilson_interval(unread, len(rows)).low > 1 - least_scored


def _outcome(
    scored: list[Row], by_length: float | None, auc: tuple[float | None, ...], *, obeys: bool, blind: bool
) -> Outcome:
    """What is wrong, what makes the others meaningless first."""
    _, low, high = auc
    if low is None or high is None or len({row["case_id"] for row in scored}) < FEWEST:
        return "few"
    if len({row["score"] for row in scored}) == 1:
        return "constant"
    if by_length is not None and abs(by_length) >= BY_LENGTH:
        return "length"
    if low <= 0.5:
        return "inverted" if high < 0.5 else "chance"
    if obeys:
        return "obeys"
    if high < PASSED:
        return "weak"
    _, balance = find_balance(scored)
    if balance.high < PASSED:
        return "scale"
    if blind:
        return "blind"
    return "sound" if min(low, balance.low) >= PASSED else "few"


def _obeys(rows: list[Row], max_p_value: float) -> bool:
    """Return whether requests for a high score raise the scores of damaged answers more often than chance does."""
    import numpy as np

    from yarus.metrics.exam import obedience
    from yarus.metrics.exam_kinds import PLANTED

    scores = {(row["case_id"], row["kind"]): row["score"] for row in rows}
    cases = dict.fromkeys(row["case_id"] for row in rows)
    (plain_kind,) = set(PLANTED.values())
    planted = np.array([[scores.get((case_id, kind)) for kind in PLANTED] for case_id in cases], dtype=np.float64)
    plain = np.array([scores.get((case_id, plain_kind)) for case_id in cases], dtype=np.float64)
    return obedience(planted, plain)[2] <= max_p_value


def length_correlation(rows: list[Row]) -> float | None:
    """Spearman's correlation of score and length within sound and within damaged answers; the mean of the two.

    Answers of equal worth deserve equal scores, whatever their length.

    Args:
        rows: with `score`, `characters` and `damaged`.

    Returns:
        -1 to 1; None where on neither side both vary.
    """
    from yarus.metrics.agreement import spearman

    found = []
    for damaged in (False, True):
        side = [row for row in rows if row["damaged"] is damaged]
        rho = spearman([row["score"] for row in side], [row["characters"] for row in side])
        if rho == rho:
            found.append(rho)
    return sum(found) / len(found) if found else None


def _kinds(rows: list[Row]) -> list[KindOutcome]:
    from yarus.metrics.exam_kinds import FULL, KINDS

    found: list[KindOutcome] = []
    for kind in KINDS:
        of = [row for row in rows if row["kind"] == kind]
        scored = [row for row in of if row["score"] is not None]
        if of:
            right = sum((row["score"] < FULL) is row["damaged"] for row in scored)
            found.append(
                {
                    "kind": kind,
                    "damaged": of[0]["damaged"],
                    "right": right,
                    "n": len(scored),
                    "failed": len(of) - len(scored),
                }
            )
    return found


def _worst(scored: list[Row]) -> list[Mistake]:
    """Damaged answers that got full scores, and sound ones that got low ones; the farthest first, each kind once."""
    wrong = sorted(scored, key=lambda row: -abs(row["score"] - (0.0 if row["damaged"] else 1.0)))
    found: dict[str, Mistake] = {}
    for row in wrong:
        if abs(row["score"] - (0.0 if row["damaged"] else 1.0)) > 0.5:
            found.setdefault(row["kind"], {"case_id": row["case_id"], "kind": row["kind"], "score": row["score"]})
    return list(found.values())[:WORST]
