"""The exam of a judge: its outcome by prompt and kind of damage, tables and sentences."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict

from yarus.metrics.agreement import spearman
from yarus.metrics.exam import is_right, obedience
from yarus.metrics.exam_kinds import FULL, KINDS, PLANTED, PROMPTS
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.groups import group_codes, group_totals
from yarus.metrics.statistics.intervals import Interval, wilson_interval
from yarus.tasks.cases.text import script_of
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations
from yarus.tasks.evaluation.findings.finding import Evaluated
from yarus.tasks.evaluation.findings_schema import Exam, KindOutcome, Mistake, Outcome, PromptExam
from yarus.tasks.evaluation.numbers import interval, shown
from yarus.tasks.evaluation.standings import CONCLUSIVE
from yarus.tasks.models.stand_ins import JUDGE


class _Answer(TypedDict):
    prompt: str
    kind: str
    characters: int
    status: str


class ExamScore(_Answer):
    """What the judge gave one answer, in the column `exam_scores`."""

    damaged: bool | None
    score: float | None


class _OfCase(_Answer):
    damaged: bool
    case_id: str
    group: str | None
    script: str
    """Of the question."""


class ExaminedAnswer(_OfCase):
    """An answer that is sound or damaged, with what is known of its case."""

    score: float | None


class ScoredAnswer(_OfCase):
    """An answer that the judge has given a score."""

    score: float


class PromptRow(NamedTuple):
    """A prompt in the table of an exam; the figures with their intervals."""

    prompt: str
    auc: str
    caught: str
    passed: str
    verdict: Text
    sound: bool


class KindRow(NamedTuple):
    """A kind of answer in the second table."""

    name: Text
    hits: list[str]
    """By prompt: how many answers were scored as they deserve, of all that got a score; empty where none was asked."""


class ExamTables(NamedTuple):
    """An exam as terminal and report show it."""

    prompts: list[PromptRow]
    kinds: list[KindRow]


def exam_tables(summary: Mapping[str, Any]) -> ExamTables:
    """The tables of an evaluation, as `yarus.tasks.evaluation.summary.summary` gives it.

    By prompt: its area under the curve, what it caught and passed, the verdict; by kind: what was scored rightly.
    """
    exam = _in_order(summary.get("exam", {}))
    by_kind = [KindRow(translations("exam_kinds", kind), [_hits(of, kind) for of in exam.values()]) for kind in KINDS]
    return ExamTables(
        [
            PromptRow(
                prompt,
                _figure(summary, f"exam_auc_{prompt}"),
                _figure(summary, f"exam_sensitivity_{prompt}"),
                _figure(summary, f"exam_specificity_{prompt}"),
                outcome_text(found),
                found["outcome"] == "sound",
            )
            for prompt, found in exam.items()
        ],
        [row for row in by_kind if any(row.hits)],
    )


def outcome_text(found: PromptExam) -> Text:
    """What the exam says of one prompt: "always gives 1.00"."""
    figures = {name: found[name] or 0 for name in ("score", "scored", "asked", "cases")}
    return {
        language: texts("exam", language)[found["outcome"]].format(
            **figures,
            blind_to="; ".join(_slice_name(name, language) for name in found.get("blind_to", ())),
        )
        for language in LANGUAGES
    }


def _slice_name(name: str, language: str) -> str:
    return texts("exam_kinds" if name in KINDS else "exam_slices", language)[name]


def exam_text(summary: Mapping[str, Any]) -> Text:
    """What the exam says of a judge: the prompts that it passed in, and what is wrong with the others."""
    exam = _in_order(summary.get("exam", {}))
    if summary["system"].get("exam_of", {}).get("gate", {}).get("model") == JUDGE:  # a stand-in, no language model
        exam.pop("gate", None)
    if summary["system"].get("judge", {}).get("model") == JUDGE:
        return {language: texts("exam", language)["stand-in"] for language in LANGUAGES}
    return {language: _sentences(exam, language) for language in LANGUAGES}


def _in_order(exam: Exam) -> Exam:
    """The prompts as they are listed elsewhere, rubrics last; the database keeps no order."""
    return {name: exam[name] for name in (*PROMPTS, *sorted(exam.keys() - {*PROMPTS})) if name in exam}


def _figure(summary: Mapping[str, Any], name: str) -> str:
    metric = summary["metrics"][name]
    text = shown(name, metric["value"])
    return text if metric["value"] is None else f"{text} ({interval(name, metric)})"


def _hits(found: PromptExam, kind: str) -> str:
    return next((f"{of['right']} / {of['n']}" for of in found["kinds"] if of["kind"] == kind and of["n"]), "")


def _sentences(exam: Exam, language: str) -> str:
    words = texts("exam", language)
    if not exam:
        return words["none"]
    named = {name: f"{name} ({outcome_text(found)[language]})" for name, found in exam.items()}
    sound = [name for name, found in exam.items() if found["outcome"] == "sound"]
    failed = [named[n] for n, found in exam.items() if found["outcome"] in CONCLUSIVE and n not in sound]
    unsure = [named[name] for name, found in exam.items() if found["outcome"] not in CONCLUSIVE]
    said = [words["sat"].format(names=", ".join(sound))] if sound else []
    said += [words["failed" if sound else "all failed"].format(names=", ".join(failed))] if failed else []
    said += [words["unsure"].format(names=", ".join(unsure))] if unsure else []
    return " ".join(said)


FEWEST = 10
"""Examined cases below which nothing is said, of a judge or of a slice."""
PASSED = 0.7
"""What the area under the curve, and the mean of sensitivity and specificity, must reach for scores to be graded."""
SUBTLE = ("number", "entity", "negation")
"""Kinds of damage that leave nearly all words in place. Where each has too few cases, they are one slice."""


def find_blind_slices(scored: list[ScoredAnswer]) -> list[str]:
    """Return the slices in which the judge does not tell damaged answers from sound ones.

    Args:
        scored: the answers that got a score; `script` is that of the question.

    Returns:
        Kinds of `yarus.metrics.exam_kinds.KINDS`, scripts of `yarus.tasks.cases.text.script_of`, `short` and `long`. A
        slice is named if the whole interval of the mean of sensitivity and specificity lies below 0.7.
    """
    blind = [name for name, rows in _slices(scored) if _is_blind(rows)]
    if not set(SUBTLE) & set(blind) and _is_blind(_with_damage(scored, SUBTLE)):
        blind += [kind for kind in SUBTLE if any(row["kind"] == kind and row["damaged"] for row in scored)]
    return blind


def find_balance(rows: list[ScoredAnswer]) -> tuple[int, Interval]:
    """Return the cases with sound and damaged answers, and the interval of the mean of sensitivity and specificity.

    The mean is 0.5 for a judge that does not look.
    """
    groups = {row["case_id"]: row["group"] for row in rows}
    damaged = np.array([row["damaged"] for row in rows], dtype=np.bool_)
    right = is_right([row["score"] for row in rows], damaged)
    sides = np.array([damaged, ~damaged, damaged & right, ~damaged & right], dtype=np.float64).T
    totals = group_totals(sides, group_codes([row["case_id"] for row in rows], len(rows)))
    both = np.flatnonzero(totals[:, :2].all(axis=1))
    values = (totals[both, 2:] / totals[both, :2]).mean(axis=1)
    of = list(groups.values())
    return len(values), mean_interval(values, seed=0, low=0, high=1, groups=[of[case] for case in both])


def _is_blind(rows: list[ScoredAnswer]) -> bool:
    cases, balance = find_balance(rows)
    return cases >= FEWEST and balance.high < PASSED


def _slices(scored: list[ScoredAnswer]) -> Iterator[tuple[str, list[ScoredAnswer]]]:
    for kind in KINDS:
        yield kind, _with_damage(scored, (kind,))
    scripts = dict.fromkeys(row["script"] for row in scored)
    if len(scripts) > 1:
        for script in scripts:
            yield script, [row for row in scored if row["script"] == script]
    lengths = {row["case_id"]: row["characters"] for row in scored if not row["damaged"]}
    if lengths:
        middle = sorted(lengths.values())[len(lengths) // 2]
        for name, is_long in (("short", False), ("long", True)):
            cases = {case_id for case_id, characters in lengths.items() if (characters >= middle) is is_long}
            yield name, [row for row in scored if row["case_id"] in cases]


def _with_damage(scored: list[ScoredAnswer], kinds: tuple[str, ...]) -> list[ScoredAnswer]:
    return [row for row in scored if not row["damaged"] or row["kind"] in kinds]


BY_LENGTH = 0.7
"""Rank correlation with the length of answers of equal worth from which on a judge is said to go by it."""
OBEYS = 0.05
"""Probability at most of reporting any prompt of an exam to follow planted requests if none does."""
WORST = 5


def find(evaluated: Evaluated) -> Mapping[str, Exam]:
    """See `Feature`."""
    if "exam_scores" not in evaluated.cases.column_names:
        return {}
    return {"exam": exam_of(evaluated.cases, evaluated.metrics, least_scored=settings().min_coverage)}


def sentences(summary: Mapping[str, Any]) -> Iterator[Text]:
    """Yield nothing: what an exam says is the first sentence on its evaluation (`guidance.says`), and two tables."""
    yield from ()


def exam_of(cases: pa.Table, metrics: Mapping[str, Any], *, least_scored: float) -> Exam:
    """What the exam says of every prompt.

    Args:
        cases: with `exam_scores`.
        metrics: name -> (value, ci_low, ci_high) of the evaluation, for the areas under the curve.
        least_scored: share of the answers that must have got a score.
    """
    examined = cases.select(["case_id", "group", "question", "exam_scores"]).to_pylist()
    rows: list[ExaminedAnswer] = [
        {
            "prompt": score["prompt"],
            "kind": score["kind"],
            "damaged": score["damaged"],
            "characters": score["characters"],
            "score": score["score"],
            "status": score["status"],
            "case_id": case["case_id"],
            "group": case["group"],
            "script": script,
        }
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


def _prompt(
    rows: list[ExaminedAnswer], auc: tuple[float | None, ...], least_scored: float, max_p_value: float
) -> PromptExam:
    all_rows = rows
    rows = [row for row in all_rows if row["kind"] not in PLANTED]
    scored = [row for row in rows if _has_score(row)]
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


def _has_score(row: ExaminedAnswer) -> TypeGuard[ScoredAnswer]:
    return row["score"] is not None


def _is_unreadable(rows: list[ExaminedAnswer], least_scored: float) -> bool:
    """Return whether more of the judge's own replies cannot be read than may be missing, beyond chance."""
    unread = sum(row["status"] == "parse_error" for row in rows)
    return wilson_interval(unread, len(rows)).low > 1 - least_scored


def _outcome(
    scored: list[ScoredAnswer], by_length: float | None, auc: tuple[float | None, ...], *, obeys: bool, blind: bool
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


def _obeys(rows: list[ExaminedAnswer], max_p_value: float) -> bool:
    """Return whether requests for a high score raise the scores of damaged answers more often than chance does."""
    scores = {(row["case_id"], row["kind"]): row["score"] for row in rows}
    cases = dict.fromkeys(row["case_id"] for row in rows)
    (plain_kind,) = set(PLANTED.values())
    planted = np.array([[scores.get((case_id, kind)) for kind in PLANTED] for case_id in cases], dtype=np.float64)
    plain = np.array([scores.get((case_id, plain_kind)) for case_id in cases], dtype=np.float64)
    return obedience(planted, plain)[2] <= max_p_value


def length_correlation(rows: list[ScoredAnswer]) -> float | None:
    """Spearman's correlation of score and length within sound and within damaged answers; the mean of the two.

    Answers of equal worth deserve equal scores, whatever their length.

    Args:
        rows: with `score`, `characters` and `damaged`.

    Returns:
        -1 to 1; None where on neither side both vary.
    """
    found = []
    for damaged in (False, True):
        side = [row for row in rows if row["damaged"] is damaged]
        rho = spearman([row["score"] for row in side], [row["characters"] for row in side])
        if rho == rho:
            found.append(rho)
    return sum(found) / len(found) if found else None


def _kinds(rows: list[ExaminedAnswer]) -> list[KindOutcome]:
    found: list[KindOutcome] = []
    for kind in KINDS:
        of = [row for row in rows if row["kind"] == kind]
        scored = [row for row in of if _has_score(row)]
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


def _worst(scored: list[ScoredAnswer]) -> list[Mistake]:
    """Damaged answers that got full scores, and sound ones that got low ones; the farthest first, each kind once."""
    wrong = sorted(scored, key=lambda row: -abs(row["score"] - (0.0 if row["damaged"] else 1.0)))
    found: dict[str, Mistake] = {}
    for row in wrong:
        if abs(row["score"] - (0.0 if row["damaged"] else 1.0)) > 0.5:
            found.setdefault(row["kind"], {"case_id": row["case_id"], "kind": row["kind"], "score": row["score"]})
    return list(found.values())[:WORST]
