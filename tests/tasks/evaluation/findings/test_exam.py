"""What an exam comes to, by scores that were planted, and how a judge stands by it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from yarus.db.stores.exams import Sat
from yarus.metrics.exam_kinds import KINDS, PLANTED, PROMPTS, expected
from yarus.tasks.cases.table import table
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings.exam import exam_of, outcome_text
from yarus.tasks.evaluation.standings import examined, judge_key, standing_of, standings

PROMPT = "answer_correctness"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
JUDGE: Any = {"model": "m", "temperature": 0.0, "max_tokens": 512, "prompts": {PROMPT: "abc", "faithfulness": "def"}}
KEY = judge_key(JUDGE, PROMPT)


def outcome(
    by_kind: dict[str, float | None],
    *,
    cases: int = 20,
    auc: tuple[float, float, float] = (0.9, 0.8, 0.95),
    failure: str = "judge_error",
) -> Any:
    """The exam of a judge that gives every answer of a kind the same score; lengths differ by case alone."""
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
    given = table(
        case_id=[str(number) for number in range(cases)],
        status=["ok"] * cases,
        group=[None] * cases,
        question=["?"] * cases,
        exam_scores=rows,
    )
    return exam_of(given, {f"exam_auc_{PROMPT}": auc}, least_scored=0.95)[PROMPT]


@pytest.mark.parametrize(
    ("by_kind", "auc", "named"),
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
def test_what_is_wrong_is_named(by_kind: dict[str, float | None], auc: tuple[float, float, float], named: str) -> None:
    assert outcome(by_kind, auc=auc)["outcome"] == named


def test_outcome_is_unreadable_if_the_replies_are() -> None:
    by_kind = {"sound": 1.0, "damaged": 0.0, "half": None}
    assert outcome(by_kind, failure="parse_error")["outcome"] == "unreadable"
    assert outcome(by_kind, failure="parse_error", cases=1)["outcome"] == "incomplete"  # one reply may be an accident


def find_obedience(obeys: float, seed: int, n_cases: int) -> bool:
    """Return whether an exam of every prompt names a noisy judge that is otherwise good `obeys` for any of them."""
    chance = np.random.default_rng(seed)
    kinds = ("reference", *PLANTED, *PLANTED.values())

    def score(kind: str, damaged: bool) -> float:
        follows = kind in PLANTED and chance.random() < obeys
        return float(follows or chance.random() < (0.2 if damaged else 0.9))

    exam_scores = [
        [
            {"prompt": prompt, "kind": kind, "damaged": damaged, "characters": 10 + number, "status": "ok",
             "score": score(kind, damaged)}
            for prompt in PROMPTS
            for kind in dict.fromkeys(kinds)
            if (damaged := expected(kind, prompt)) is not None
        ]
        for number in range(n_cases)
    ]  # fmt: skip
    case_ids = [str(number) for number in range(n_cases)]
    nothing = [None] * n_cases
    cases = table(case_id=case_ids, status=["ok"] * n_cases, group=nothing, question=nothing, exam_scores=exam_scores)
    areas = {f"exam_auc_{prompt}": (0.85, 0.8, 0.9) for prompt in PROMPTS}
    return "obeys" in {prompt["outcome"] for prompt in exam_of(cases, areas, least_scored=0.95).values()}


@pytest.mark.slow("simulation: a hundred exams")
def test_exam_names_a_judge_that_obeys_half_of_requests() -> None:
    assert sum(find_obedience(0.5, seed, n_cases=25) for seed in range(100)) >= 95


@pytest.mark.slow("simulation: a hundred exams")
def test_exam_rarely_names_a_noisy_judge_that_never_obeys() -> None:
    assert sum(find_obedience(0.0, seed, n_cases=60) for seed in range(100)) <= 5


def test_nine_cases_are_too_few() -> None:
    assert outcome({"sound": 1.0, "damaged": 0.0}, cases=9)["outcome"] == "few"
    assert outcome({"sound": 1.0, "damaged": 0.0}, cases=10)["outcome"] == "sound"


def test_hits_are_counted_by_kind_and_the_worst_are_named() -> None:
    found = outcome({"sound": 1.0, "damaged": 0.0, "number": 1.0, "reference": 0.2})
    kinds = {of["kind"]: of for of in found["kinds"]}
    assert (kinds["number"]["right"], kinds["number"]["n"]) == (0, 20)
    assert (kinds["empty"]["right"], kinds["empty"]["n"]) == (20, 20)
    assert [mistake["kind"] for mistake in found["worst"]] == ["number", "reference"]


def stand(sat: dict[str, Sat], **config: Any) -> Any:
    return standings(sat, EvaluationConfig(**{"judge": JUDGE} | config), NOW)[PROMPT]


def test_how_a_judge_stands() -> None:
    assert stand({}) == "missing"
    assert stand({KEY: Sat("sound", NOW - timedelta(days=29))}) == "passed"
    assert stand({KEY: Sat("sound", NOW + timedelta(days=90))}) == "passed"
    assert stand({KEY: Sat("sound", NOW - timedelta(days=31))}) == "old"
    assert stand({KEY: Sat("blind", NOW)}) == "failed"
    assert stand({}, judge=JUDGE | {"model": "lexical (no language model)"}) == "stand-in"


def test_an_exam_holds_for_its_own_evaluation_at_once_and_for_its_own_wording() -> None:
    exam = {PROMPT: outcome({"sound": 1.0, "damaged": 0.0})}
    config = EvaluationConfig(judge=JUDGE, exam_of={"judge": JUDGE})
    assert examined(config, exam) == {KEY: "sound"}
    assert stand({}, exam_of={"judge": JUDGE}, examined={KEY: "sound"}) == "passed"
    assert judge_key(JUDGE | {"prompts": {PROMPT: "other"}}, PROMPT) != KEY
    assert judge_key(JUDGE | {"prompts": {PROMPT: "abc"}}, PROMPT) == KEY
    assert judge_key(JUDGE | {"temperature": 0.5}, PROMPT) != KEY


def test_only_opinions_depend_on_an_exam() -> None:
    by_prompt: Any = {"faithfulness": "failed", "gate": "stand-in", "rubric_tone": "missing"}
    assert standing_of("avg_faithfulness", by_prompt) == "failed"
    assert standing_of("consistency_score", by_prompt) == "failed"
    assert standing_of("avg_rubric_tone", by_prompt) == "missing"
    assert standing_of("exam_auc_faithfulness", by_prompt) is None
    assert standing_of("accuracy", by_prompt) == "stand-in"
    assert standing_of("accuracy", {"gate": "missing"}) is None
    assert standing_of("hit_rate@1", by_prompt) is None
    assert standing_of("stored by another version", by_prompt) is None


def test_exam_of_an_earlier_version_is_still_read() -> None:
    found = outcome({"sound": 1.0, "damaged": 0.0}) | {"outcome": "coarse"}
    del found["blind_to"]
    assert outcome_text(found)["en"] == "misses changed numbers, names and negations"
    assert stand({}, examined={KEY: "coarse"}) == stand({}, examined={KEY: "blind"})
