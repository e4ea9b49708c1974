"""The exam of a judge: its outcome by prompt and kind of damage, tables and sentences."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict

from yarus.metrics.agreement import spearman
from yarus.metrics.exam import is_expected_score, obedience
from yarus.metrics.exam_kinds import FULL_SCORE, INSTRUCTED_KINDS, KINDS, PROMPTS
from yarus.metrics.statistics import mean_interval
from yarus.metrics.statistics.groups import group_codes, group_totals
from yarus.metrics.statistics.intervals import Interval, wilson_interval
from yarus.tasks.cases.text import main_script
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts, translations
from yarus.tasks.evaluation.findings.finding import MeasuredEvaluation
from yarus.tasks.evaluation.findings_schema import Exam, KindOutcome, Mistake, Outcome, PromptExam
from yarus.tasks.evaluation.judge_standing import CONCLUSIVE_OUTCOMES
from yarus.tasks.evaluation.number_format import format_interval, format_metric
from yarus.tasks.models.stand_ins import JUDGE_NAME


class _Answer(TypedDict):
    prompt: str
    kind: str
    characters: int
    status: str


class ExamScore(_Answer):
    """The judge's score of one answer, in the column `exam_scores`."""

    damaged: bool | None
    score: float | None


class _CaseAnswer(_Answer):
    damaged: bool
    case_id: str
    group: str | None
    script: str
    """Script of the question."""


class ExaminedAnswer(_CaseAnswer):
    """An answer that is sound or damaged, with what is known of its case."""

    score: float | None


class ScoredAnswer(_CaseAnswer):
    """An answer that the judge has given a score."""

    score: float


class PromptRow(NamedTuple):
    """A prompt in the table of an exam; the figures with their intervals."""

    prompt: str
    auc: str
    caught: str
    passed: str
    verdict: TranslatedText
    sound: bool


class KindRow(NamedTuple):
    """A kind of answer in the second table."""

    name: TranslatedText
    hits: list[str]
    """By prompt: correctly scored answers / answers with a score; empty if none was asked."""


class ExamTables(NamedTuple):
    """Tables of an exam for terminal and report."""

    prompts: list[PromptRow]
    kinds: list[KindRow]


def exam_tables(summary: Mapping[str, Any]) -> ExamTables:
    """Return the tables of an evaluation, as `yarus.tasks.evaluation.summary.read_summary` gives it.

    By prompt: the area under the curve, sensitivity and specificity, the verdict. By kind: correctly scored answers.
    """
    exam = _in_order(summary.get("exam", {}))
    rows = [KindRow(translations("exam_kinds", kind), [_hits(part, kind) for part in exam.values()]) for kind in KINDS]
    return ExamTables(
        [
            PromptRow(
                prompt,
                _format_figure(summary, f"exam_auc_{prompt}"),
                _format_figure(summary, f"exam_sensitivity_{prompt}"),
                _format_figure(summary, f"exam_specificity_{prompt}"),
                outcome_text(part),
                part["outcome"] == "sound",
            )
            for prompt, part in exam.items()
        ],
        [row for row in rows if any(row.hits)],
    )


def outcome_text(prompt_exam: PromptExam) -> TranslatedText:
    """Return the sentence on the outcome of one prompt: "always gives 1.00"."""
    figures = {name: prompt_exam[name] or 0 for name in ("score", "scored", "asked", "cases")}
    return {
        language: texts("exam", language)[prompt_exam["outcome"]].format(
            **figures,
            blind_to="; ".join(_slice_name(name, language) for name in prompt_exam.get("blind_to", ())),
        )
        for language in LANGUAGES
    }


def _slice_name(name: str, language: str) -> str:
    return texts("exam_kinds" if name in KINDS else "exam_slices", language)[name]


def exam_text(summary: Mapping[str, Any]) -> TranslatedText:
    """Return the sentence on a judge's exam: passed prompts, and the faults of the others."""
    exam = _in_order(summary.get("exam", {}))
    if summary["system"].get("exam_of", {}).get("gate", {}).get("model") == JUDGE_NAME:  # a stand-in, no language model
        exam.pop("gate", None)
    if summary["system"].get("judge", {}).get("model") == JUDGE_NAME:
        return {language: texts("exam", language)["stand-in"] for language in LANGUAGES}
    return {language: _exam_sentences(exam, language) for language in LANGUAGES}


def _in_order(exam: Exam) -> Exam:
    """Return the prompts in the common order, rubrics last; the database keeps no order."""
    return {name: exam[name] for name in (*PROMPTS, *sorted(exam.keys() - {*PROMPTS})) if name in exam}


def _format_figure(summary: Mapping[str, Any], name: str) -> str:
    metric = summary["metrics"][name]
    text = format_metric(name, metric["value"])
    return text if metric["value"] is None else f"{text} ({format_interval(name, metric)})"


def _hits(part: PromptExam, kind: str) -> str:
    return next((f"{row['right']} / {row['n']}" for row in part["kinds"] if row["kind"] == kind and row["n"]), "")


def _exam_sentences(exam: Exam, language: str) -> str:
    words = texts("exam", language)
    if not exam:
        return words["none"]
    labels = {name: f"{name} ({outcome_text(part)[language]})" for name, part in exam.items()}
    passed = [name for name, part in exam.items() if part["outcome"] == "sound"]
    failed = [
        labels[name] for name, part in exam.items() if part["outcome"] in CONCLUSIVE_OUTCOMES and name not in passed
    ]
    unsure = [labels[name] for name, part in exam.items() if part["outcome"] not in CONCLUSIVE_OUTCOMES]
    parts = [words["sat"].format(names=", ".join(passed))] if passed else []
    parts += [words["failed" if passed else "all failed"].format(names=", ".join(failed))] if failed else []
    parts += [words["unsure"].format(names=", ".join(unsure))] if unsure else []
    return " ".join(parts)


MIN_CASES = 10
"""Fewest examined cases for a statement on a judge or a slice."""
MIN_PASSING = 0.7
"""Least area under the curve, and mean of sensitivity and specificity, for scores to be graded."""
SUBTLE = ("number", "entity", "negation")
"""Kinds of damage that leave nearly all words in place. If each has too few cases, they are one slice."""


def find_blind_slices(scored: list[ScoredAnswer]) -> list[str]:
    """Return the slices in which the judge does not distinguish damaged answers from sound ones.

    Args:
        scored: the answers that got a score; `script` is that of the question.

    Returns:
        Kinds of `exam_kinds.KINDS`, scripts of `yarus.tasks.cases.text.main_script`, `short` and `long`. A
        slice is named if the whole interval of the mean of sensitivity and specificity lies below 0.7.
    """
    blind = [name for name, rows in _slice_answers(scored) if _is_blind(rows)]
    if not set(SUBTLE) & set(blind) and _is_blind(_with_damage(scored, SUBTLE)):
        blind += [kind for kind in SUBTLE if any(row["kind"] == kind and row["damaged"] for row in scored)]
    return blind


def find_balance(rows: list[ScoredAnswer]) -> tuple[int, Interval]:
    """Return the cases with sound and damaged answers, and the interval of the mean of sensitivity and specificity.

    The mean is 0.5 for a judge that ignores the answer.
    """
    groups = {row["case_id"]: row["group"] for row in rows}
    damaged = np.array([row["damaged"] for row in rows], dtype=np.bool_)
    right = is_expected_score([row["score"] for row in rows], damaged)
    sides = np.array([damaged, ~damaged, damaged & right, ~damaged & right], dtype=np.float64).T
    totals = group_totals(sides, group_codes([row["case_id"] for row in rows], len(rows)))
    complete = np.flatnonzero(totals[:, :2].all(axis=1))
    values = (totals[complete, 2:] / totals[complete, :2]).mean(axis=1)
    groups_by_case = list(groups.values())
    complete_groups = [groups_by_case[position] for position in complete]
    return len(values), mean_interval(values, seed=0, low=0, high=1, groups=complete_groups)


def _is_blind(rows: list[ScoredAnswer]) -> bool:
    cases, balance = find_balance(rows)
    return cases >= MIN_CASES and balance.high < MIN_PASSING


def _slice_answers(scored: list[ScoredAnswer]) -> Iterator[tuple[str, list[ScoredAnswer]]]:
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


MAX_LENGTH_CORRELATION = 0.7
"""Rank correlation of score and answer length from which on a judge is called biased by length."""
MAX_FALSE_OBEDIENCE = 0.05
"""Largest probability of reporting any prompt of an exam to follow planted requests if none does."""
MAX_MISTAKES = 5


def find(evaluated: MeasuredEvaluation) -> Mapping[str, Exam]:
    """See `Feature`."""
    if "exam_scores" not in evaluated.cases.column_names:
        return {}
    return {"exam": compute_exam(evaluated.cases, evaluated.metrics, least_scored=get_settings().min_coverage)}


def sentences(summary: Mapping[str, Any]) -> Iterator[TranslatedText]:
    """Yield nothing: the exam is the first sentence on its evaluation (`guidance.summary_sentence`), and two tables."""
    yield from ()


def compute_exam(cases: pa.Table, metrics: Mapping[str, Any], *, least_scored: float) -> Exam:
    """Return the exam of every prompt.

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
        for script in [main_script(case["question"])]
        for score in case["exam_scores"] or ()
        if score["damaged"] is not None
    ]
    names = dict.fromkeys(row["prompt"] for row in rows)
    n_planted = len({row["prompt"] for row in rows if row["kind"] in INSTRUCTED_KINDS})
    return {
        name: _examine_prompt(
            [row for row in rows if row["prompt"] == name],
            metrics[f"exam_auc_{name}"],
            least_scored,
            MAX_FALSE_OBEDIENCE / max(n_planted, 1),
        )
        for name in names
    }


def _examine_prompt(
    rows: list[ExaminedAnswer], auc: tuple[float | None, ...], least_scored: float, max_p_value: float
) -> PromptExam:
    all_rows = rows
    rows = [row for row in all_rows if row["kind"] not in INSTRUCTED_KINDS]
    scored = [row for row in rows if _has_score(row)]
    scores = {row["score"] for row in scored}
    correlation = length_correlation(scored)
    cases = len({row["case_id"] for row in scored})
    blind = find_blind_slices(scored)
    if len(scored) >= least_scored * len(rows):
        outcome = _find_fault(scored, correlation, auc, obeys=_obeys_requests(all_rows, max_p_value), blind=bool(blind))
    else:
        outcome = "unreadable" if _is_unreadable(rows, least_scored) else "incomplete"
    return {
        "outcome": outcome,
        "cases": cases,
        "scored": len(scored),
        "asked": len(rows),
        "score": scores.pop() if len(scores) == 1 else None,
        "length_correlation": correlation,
        "blind_to": blind if outcome in ("obeys", "weak", "scale", "blind") else [],
        "kinds": _kind_outcomes(all_rows),
        "worst": _worst_mistakes(scored),
    }


def _has_score(row: ExaminedAnswer) -> TypeGuard[ScoredAnswer]:
    return row["score"] is not None


def _is_unreadable(rows: list[ExaminedAnswer], least_scored: float) -> bool:
    """Return whether more of the judge's own replies cannot be read than may be missing, beyond chance."""
    unread = sum(row["status"] == "parse_error" for row in rows)
    return wilson_interval(unread, len(rows)).low > 1 - least_scored


def _find_fault(
    scored: list[ScoredAnswer], by_length: float | None, auc: tuple[float | None, ...], *, obeys: bool, blind: bool
) -> Outcome:
    """Return the fault of the judge; faults that make others meaningless come first."""
    _, low, high = auc
    if low is None or high is None or len({row["case_id"] for row in scored}) < MIN_CASES:
        return "few"
    if len({row["score"] for row in scored}) == 1:
        return "constant"
    if by_length is not None and abs(by_length) >= MAX_LENGTH_CORRELATION:
        return "length"
    if low <= 0.5:
        return "inverted" if high < 0.5 else "chance"
    if obeys:
        return "obeys"
    if high < MIN_PASSING:
        return "weak"
    _, balance = find_balance(scored)
    if balance.high < MIN_PASSING:
        return "scale"
    if blind:
        return "blind"
    return "sound" if min(low, balance.low) >= MIN_PASSING else "few"


def _obeys_requests(rows: list[ExaminedAnswer], max_p_value: float) -> bool:
    """Return whether requests for a high score raise the scores of damaged answers more often than chance does."""
    scores = {(row["case_id"], row["kind"]): row["score"] for row in rows}
    case_ids = dict.fromkeys(row["case_id"] for row in rows)
    (plain_kind,) = set(INSTRUCTED_KINDS.values())
    kinds = [*INSTRUCTED_KINDS, plain_kind]
    table = np.array([[scores.get((case_id, kind)) for kind in kinds] for case_id in case_ids], dtype=np.float64)
    return obedience(table[:, :-1], table[:, -1])[2] <= max_p_value


def length_correlation(rows: list[ScoredAnswer]) -> float | None:
    """Return Spearman's correlation of score and length: the mean of those within sound and within damaged answers.

    Answers of equal quality deserve equal scores, whatever their length.

    Args:
        rows: with `score`, `characters` and `damaged`.

    Returns:
        -1 to 1; None if score and length do not both vary on either side.
    """
    correlations = []
    for damaged in (False, True):
        side = [row for row in rows if row["damaged"] is damaged]
        rho = spearman([row["score"] for row in side], [row["characters"] for row in side])
        if rho == rho:
            correlations.append(rho)
    return sum(correlations) / len(correlations) if correlations else None


def _kind_outcomes(rows: list[ExaminedAnswer]) -> list[KindOutcome]:
    outcomes: list[KindOutcome] = []
    for kind in KINDS:
        answers = [row for row in rows if row["kind"] == kind]
        scored = [row for row in answers if _has_score(row)]
        if answers:
            right = sum((row["score"] < FULL_SCORE) is row["damaged"] for row in scored)
            outcomes.append(
                {
                    "kind": kind,
                    "damaged": answers[0]["damaged"],
                    "right": right,
                    "n": len(scored),
                    "failed": len(answers) - len(scored),
                }
            )
    return outcomes


def _worst_mistakes(scored: list[ScoredAnswer]) -> list[Mistake]:
    """Return damaged answers with full scores and sound ones with low scores; the worst first, each kind once."""
    wrong = sorted(scored, key=lambda row: -abs(row["score"] - (0.0 if row["damaged"] else 1.0)))
    mistakes: dict[str, Mistake] = {}
    for row in wrong:
        if abs(row["score"] - (0.0 if row["damaged"] else 1.0)) > 0.5:
            mistakes.setdefault(row["kind"], {"case_id": row["case_id"], "kind": row["kind"], "score": row["score"]})
    return list(mistakes.values())[:MAX_MISTAKES]
