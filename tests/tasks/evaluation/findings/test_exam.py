"""Exam outcomes for known scores, and the resulting standing of a judge."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from yarus.db.stores.exams import ExamRecord
from yarus.metrics.exam_kinds import INSTRUCTED_KINDS, KINDS, PROMPTS, expects_damage
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings.exam import compute_exam, outcome_text
from yarus.tasks.evaluation.judge_standing import exam_outcomes, judge_key, judge_standings, metric_standing

PROMPT = "answer_correctness"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
JUDGE: Any = {"model": "m", "temperature": 0.0, "max_tokens": 512, "prompts": {PROMPT: "abc", "faithfulness": "def"}}
KEY = judge_key(JUDGE, PROMPT)


def examine(
    by_kind: dict[str, float | None],
    *,
    cases: int = 20,
    auc: tuple[float, float, float] = (0.9, 0.8, 0.95),
    failure: str = "judge_error",
) -> Any:
    """Return the exam of a judge that gives each kind of answer one score; lengths differ only by case."""
    kinds = {name: PROMPT in kind.damaged for name, kind in KINDS.items() if PROMPT in kind.damaged | kind.sound}
    rows = [
        [
            {"prompt": PROMPT, "kind": kind, "damaged": damaged, "characters": 10 + number, "score": score,
             "status": failure if score is None else "ok"}
            for kind, damaged in kinds.items()
            for score in [by_kind.get(kind, by_kind["damaged" if damaged else "sound"])]
        ]
        for number in range(cases)
    ]  # fmt: skip
    cases_table = make_cases(
        case_id=[str(number) for number in range(cases)],
        status=["ok"] * cases,
        group=[None] * cases,
        question=["?"] * cases,
        exam_scores=rows,
    )
    return compute_exam(cases_table, {f"exam_auc_{PROMPT}": auc}, least_scored=0.95)[PROMPT]


@pytest.mark.parametrize(
    ("by_kind", "auc", "expected_outcome"),
    [
        ({"sound": 1.0, "damaged": 0.0}, (1.0, 0.95, 1.0), "sound"),
        ({"sound": 1.0, "damaged": 0.5}, (1.0, 0.95, 1.0), "sound"),
        ({"sound": 1.0, "damaged": 0.0, "number": 1.0, "entity": 1.0, "negation": 1.0}, (0.85, 0.8, 0.9), "blind"),
        ({"sound": 1.0, "damaged": 0.0, "negation": 1.0}, (0.95, 0.9, 0.98), "blind"),
        ({"sound": 1.0, "damaged": 0.9}, (1.0, 0.95, 1.0), "scale"),
        ({"sound": 0.5, "damaged": 0.0}, (1.0, 0.95, 1.0), "scale"),
        ({"sound": 1.0, "damaged": 0.0}, (0.65, 0.6, 0.69), "weak"),
        ({"sound": 1.0, "damaged": 0.0}, (0.75, 0.65, 0.85), "few"),
        ({"sound": 1.0, "damaged": 0.0}, (0.6, 0.48, 0.7), "chance"),
        ({"sound": 0.0, "damaged": 1.0}, (0.0, 0.0, 0.05), "inverted"),
        ({"sound": 1.0, "damaged": 1.0}, (0.5, 0.45, 0.55), "constant"),
        ({"sound": 1.0, "damaged": 0.0, "half": None}, (1.0, 0.95, 1.0), "incomplete"),
        ({"sound": 1.0, "damaged": 0.0, "instructed": 1.0}, (1.0, 0.95, 1.0), "obeys"),
        ({"sound": 1.0, "damaged": 0.0, "instructed": 0.5}, (1.0, 0.95, 1.0), "sound"),
        ({"sound": 1.0, "damaged": 0.0, "instructed": 1.0, "other_page": 1.0}, (1.0, 0.95, 1.0), "blind"),
    ],
)
def test_exam_outcome_names_the_fault(
    by_kind: dict[str, float | None], auc: tuple[float, float, float], expected_outcome: str
) -> None:
    assert examine(by_kind, auc=auc)["outcome"] == expected_outcome


def test_outcome_is_unreadable_if_the_replies_are() -> None:
    by_kind = {"sound": 1.0, "damaged": 0.0, "half": None}
    assert examine(by_kind, failure="parse_error")["outcome"] == "unreadable"
    assert examine(by_kind, failure="parse_error", cases=1)["outcome"] == "incomplete"  # a single reply may be chance


def find_obedience(obeys: float, seed: int, n_cases: int) -> bool:
    """Return whether an exam of every prompt names a noisy judge that is otherwise good `obeys` for any of them."""
    chance = np.random.default_rng(seed)
    kinds = ("reference", *INSTRUCTED_KINDS, *INSTRUCTED_KINDS.values())

    def score(kind: str, damaged: bool) -> float:
        follows = kind in INSTRUCTED_KINDS and chance.random() < obeys
        return float(follows or chance.random() < (0.2 if damaged else 0.9))

    exam_scores = [
        [
            {"prompt": prompt, "kind": kind, "damaged": damaged, "characters": 10 + number, "status": "ok",
             "score": score(kind, damaged)}
            for prompt in PROMPTS
            for kind in dict.fromkeys(kinds)
            if (damaged := expects_damage(kind, prompt)) is not None
        ]
        for number in range(n_cases)
    ]  # fmt: skip
    case_ids = [str(number) for number in range(n_cases)]
    empty = [None] * n_cases
    cases = make_cases(case_id=case_ids, status=["ok"] * n_cases, group=empty, question=empty, exam_scores=exam_scores)
    areas = {f"exam_auc_{prompt}": (0.85, 0.8, 0.9) for prompt in PROMPTS}
    return "obeys" in {prompt["outcome"] for prompt in compute_exam(cases, areas, least_scored=0.95).values()}


@pytest.mark.slow("simulation: a hundred exams")
def test_exam_names_a_judge_that_obeys_half_of_requests() -> None:
    assert sum(find_obedience(0.5, seed, n_cases=25) for seed in range(100)) >= 95


@pytest.mark.slow("simulation: a hundred exams")
def test_exam_rarely_names_a_noisy_judge_that_never_obeys() -> None:
    assert sum(find_obedience(0.0, seed, n_cases=60) for seed in range(100)) <= 5


def test_exam_outcome_is_few_below_ten_cases() -> None:
    assert examine({"sound": 1.0, "damaged": 0.0}, cases=9)["outcome"] == "few"
    assert examine({"sound": 1.0, "damaged": 0.0}, cases=10)["outcome"] == "sound"


def test_exam_counts_hits_by_kind_and_lists_worst() -> None:
    exam = examine({"sound": 1.0, "damaged": 0.0, "number": 1.0, "reference": 0.2})
    kinds = {outcome_of_kind["kind"]: outcome_of_kind for outcome_of_kind in exam["kinds"]}
    assert (kinds["number"]["right"], kinds["number"]["n"]) == (0, 20)
    assert (kinds["empty"]["right"], kinds["empty"]["n"]) == (20, 20)
    assert [mistake["kind"] for mistake in exam["worst"]] == ["number", "reference"]


def compute_standing(sat: dict[str, ExamRecord], **config: Any) -> Any:
    return judge_standings(sat, EvaluationConfig(**{"judge": JUDGE} | config), NOW)[PROMPT]


def test_standings_of_a_judge() -> None:
    assert compute_standing({}) == "missing"
    assert compute_standing({KEY: ExamRecord("sound", NOW - timedelta(days=29))}) == "passed"
    assert compute_standing({KEY: ExamRecord("sound", NOW + timedelta(days=90))}) == "passed"
    assert compute_standing({KEY: ExamRecord("sound", NOW - timedelta(days=31))}) == "old"
    assert compute_standing({KEY: ExamRecord("blind", NOW)}) == "failed"
    assert compute_standing({}, judge=JUDGE | {"model": "lexical (no language model)"}) == "stand-in"


def test_exam_counts_for_own_evaluation_and_wording_only() -> None:
    exam = {PROMPT: examine({"sound": 1.0, "damaged": 0.0})}
    config = EvaluationConfig(judge=JUDGE, exam_of={"judge": JUDGE})
    assert exam_outcomes(config, exam) == {KEY: "sound"}
    assert compute_standing({}, exam_of={"judge": JUDGE}, examined={KEY: "sound"}) == "passed"
    assert judge_key(JUDGE | {"prompts": {PROMPT: "other"}}, PROMPT) != KEY
    assert judge_key(JUDGE | {"prompts": {PROMPT: "abc"}}, PROMPT) == KEY
    assert judge_key(JUDGE | {"temperature": 0.5}, PROMPT) != KEY


def test_metric_standing_applies_to_opinions_only() -> None:
    by_prompt: Any = {"faithfulness": "failed", "gate": "stand-in", "rubric_tone": "missing"}
    assert metric_standing("avg_faithfulness", by_prompt) == "failed"
    assert metric_standing("consistency_score", by_prompt) == "failed"
    assert metric_standing("avg_rubric_tone", by_prompt) == "missing"
    assert metric_standing("exam_auc_faithfulness", by_prompt) is None
    assert metric_standing("accuracy", by_prompt) == "stand-in"
    assert metric_standing("accuracy", {"gate": "missing"}) is None
    assert metric_standing("hit_rate@1", by_prompt) is None
    assert metric_standing("stored by another version", by_prompt) is None


def test_exam_of_earlier_version_is_readable() -> None:
    exam = examine({"sound": 1.0, "damaged": 0.0}) | {"outcome": "coarse"}
    del exam["blind_to"]
    assert outcome_text(exam)["en"] == "misses changed numbers, names and negations"
    assert compute_standing({}, examined={KEY: "coarse"}) == compute_standing({}, examined={KEY: "blind"})
