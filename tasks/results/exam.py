"""What an exam says of a judge, prompt by prompt, and what follows for every number that it gives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from db.stores.exams import Sat, newest_exams
from metrics.metric import Metric
from tasks.models.stand_ins import JUDGE
from tasks.results.system import JudgeIdentity, System

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Engine

EXAM_NIGHTS = 30
"""Nights for which an exam holds; what it asks is bought anew once in so many."""
FEWEST = 10
"""Examined cases below which nothing is said."""
PASSED = 0.7
"""What the area under the curve, and the mean of sensitivity and specificity, must reach for scores to be graded."""
SUBTLE = ("number", "entity", "negation")
"""Damage that leaves nearly all words in place: the kind that matters most, and that comparing words does not see."""
BY_LENGTH = 0.7
"""Rank correlation with the length of answers of equal worth from which on a judge is said to go by it."""
WORST = 5
Outcome = Literal["sound", "weak", "scale", "coarse", "chance", "inverted", "constant", "length", "incomplete", "few"]


class KindOutcome(TypedDict):
    """How a prompt scored the answers of one kind."""

    kind: str
    """Of `metrics.exam_kinds.KINDS`."""
    damaged: bool
    """Whether the score must be low."""
    right: int
    """Answers that got a score of the kind that they deserve."""
    n: int
    """Answers that got a score."""
    failed: int
    """Answers without one."""


class Mistake(TypedDict):
    """An answer whose score is farthest from what it deserves."""

    case_id: str
    kind: str
    score: float


class PromptExam(TypedDict):
    """What the exam says of one prompt."""

    outcome: Outcome
    """`sound`: it tells damaged answers from sound ones. `weak`: above chance, but under 0.7. `scale`: in their order,
    but on another scale: too many damaged ones get full scores, or sound ones low ones. `coarse`: all but changed
    numbers, names and negations. `chance`: no better than it; `inverted`: worse. `constant`: it gives one score;
    `length`: it goes by the length of the answer. `incomplete`: too many of its replies failed; `few`: too few cases.
    """
    cases: int
    """Examined cases with a score."""
    scored: int
    """Answers that got a score."""
    asked: int
    score: float | None
    """The one score of a judge that is `constant`."""
    length_correlation: float | None
    """Of the score with the length of the answer, among answers of equal worth; null where either does not vary."""
    kinds: list[KindOutcome]
    worst: list[Mistake]


Row = dict[str, Any]
Exam = dict[str, PromptExam]
"""Prompt -> what its exam says."""


def judge_key(identity: JudgeIdentity, prompt: str) -> str:
    """What a judge's numbers of one prompt stand or fall with: model, its parameters, and that prompt's wording."""
    whole = {**identity, "prompts": {prompt: identity.get("prompts", {}).get(prompt)}}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


Standing = Literal["passed", "failed", "missing", "old", "stand-in"]
"""Of the judge whose opinion a number is: it passed the newest exam of its key; it failed it; it sat none; the exam is
older than 30 nights; or no language model judged."""
CONCLUSIVE: tuple[Outcome, ...] = ("sound", "weak", "scale", "coarse", "chance", "inverted", "constant", "length")
"""The outcomes that say something of a judge; an older exam goes before one of the others."""


def exams_of(engine: Engine, resolved: Iterable[System]) -> dict[str, Sat]:
    """The newest exams of the judges of evaluations, by `judge_key`.

    Args:
        engine: of our own database.
        resolved: of each evaluation, its judge and whom it examined.
    """
    keys = {key for of in resolved for key in _keys(of).values() if key}
    return newest_exams(engine, keys, CONCLUSIVE) if keys else {}


def standings(sat: Mapping[str, Sat], resolved: System, at: datetime) -> dict[str, Standing]:
    """How every prompt stands that judged an evaluation.

    Args:
        sat: the newest exams, as `exams_of` finds them.
        resolved: of the evaluation: its judge, and what it examined itself.
        at: when it began: an exam of the nights before holds, and any after.

    Returns:
        Prompt -> standing; empty where nothing was judged.
    """
    own = {key: Sat(outcome, at) for key, outcome in resolved.get("examined", {}).items() if outcome in CONCLUSIVE}
    known = own | dict(sat)
    return {prompt: _standing(known.get(key), at) if key else "stand-in" for prompt, key in _keys(resolved).items()}


def standing_of(metric: Metric, by_prompt: Mapping[str, Standing]) -> Standing | None:
    """How the judge stands whose opinion a metric is; None where it is nobody's.

    What was held against known answers needs no exam, but of a stand-in it is worth nothing either.
    """
    found = by_prompt.get(metric.opinion)
    return found if not metric.checked or found == "stand-in" else None


def _keys(resolved: System) -> dict[str, str | None]:
    """The key of every judged prompt; None of a stand-in."""
    return {
        prompt: None if identity.get("model") == JUDGE else judge_key(identity, prompt)
        for identity in _identities(resolved)
        for prompt in identity.get("prompts", {})
    }


def _identities(resolved: System) -> list[JudgeIdentity]:
    """The judges of an evaluation: whom it asked, and whom it examined."""
    examined = resolved.get("exam_of", {})
    found = [resolved.get("judge"), examined.get("judge"), examined.get("gate")]
    return [identity for identity in found if identity]


def _standing(sat: Sat | None, at: datetime) -> Standing:
    if sat is None:
        return "missing"
    if sat.at < at - timedelta(days=EXAM_NIGHTS):
        return "old"
    return "passed" if sat.outcome == "sound" else "failed"


def exam_of(cases: pa.Table, metrics: Mapping[str, Any], *, least_scored: float) -> Exam:
    """What the exam says of every prompt.

    Args:
        cases: with `exam_scores`.
        metrics: name -> (value, ci_low, ci_high) of the evaluation, for the areas under the curve.
        least_scored: share of the answers that must have got a score.
    """
    rows = [
        {**score, "case_id": case_id}
        for case_id, scores in zip(cases["case_id"].to_pylist(), cases["exam_scores"].to_pylist(), strict=True)
        for score in scores or ()
        if score["damaged"] is not None
    ]
    names = dict.fromkeys(row["prompt"] for row in rows)
    return {
        name: _prompt([row for row in rows if row["prompt"] == name], metrics[f"exam_auc_{name}"], least_scored)
        for name in names
    }


def examined(resolved: System, exam: Exam) -> dict[str, str]:
    """Key of judge and prompt -> outcome, by which the exam is found again; no language model sits none."""
    return {key: exam[prompt]["outcome"] for prompt, key in _keys(resolved).items() if key and prompt in exam}


def _prompt(rows: list[Row], auc: tuple[float | None, ...], least_scored: float) -> PromptExam:
    scored = [row for row in rows if row["score"] is not None]
    scores = {row["score"] for row in scored}
    by_length = length_correlation(scored)
    cases = len({row["case_id"] for row in scored})
    enough = len(scored) >= least_scored * len(rows)
    return {
        "outcome": _outcome(scored, by_length, auc) if enough else "incomplete",
        "cases": cases,
        "scored": len(scored),
        "asked": len(rows),
        "score": scores.pop() if len(scores) == 1 else None,
        "length_correlation": by_length,
        "kinds": _kinds(rows),
        "worst": _worst(scored),
    }


def _outcome(scored: list[Row], by_length: float | None, auc: tuple[float | None, ...]) -> Outcome:
    """What is wrong, what makes the others meaningless first."""
    value, low, high = auc
    if value is None or len({row["case_id"] for row in scored}) < FEWEST:
        return "few"
    if len({row["score"] for row in scored}) == 1:
        return "constant"
    if by_length is not None and abs(by_length) >= BY_LENGTH:
        return "length"
    if high is not None and high < 0.5:
        return "inverted"
    if low is None or low <= 0.5:
        return "chance"
    if value < PASSED:
        return "weak"
    if _rightly(scored) < PASSED:
        return "scale"
    subtle = [row for row in scored if row["kind"] in SUBTLE or not row["damaged"]]
    return "coarse" if sum(row["damaged"] for row in subtle) >= FEWEST and _rightly(subtle) < PASSED else "sound"


def _rightly(scored: list[Row]) -> float:
    """The mean of sensitivity and specificity: one half for whoever does not look."""
    from metrics.exam import sensitivity, specificity

    damaged, sound = ([row["score"] for row in scored if row["damaged"] is worth] for worth in (True, False))
    return (sensitivity(damaged) + specificity(sound)) / 2


def length_correlation(rows: list[Row]) -> float | None:
    """Spearman's correlation of score and length within sound and within damaged answers; the mean of the two.

    Answers of equal worth deserve equal scores, whatever their length.

    Args:
        rows: with `score`, `characters` and `damaged`.

    Returns:
        -1 to 1; None where on neither side both vary.
    """
    from metrics.agreement import spearman

    found = []
    for damaged in (False, True):
        side = [row for row in rows if row["damaged"] is damaged]
        rho = spearman([row["score"] for row in side], [row["characters"] for row in side])
        if rho == rho:
            found.append(rho)
    return sum(found) / len(found) if found else None


def _kinds(rows: list[Row]) -> list[KindOutcome]:
    from metrics.exam_kinds import FULL, KINDS

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
