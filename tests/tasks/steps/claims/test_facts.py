"""Facts of answers against context, question and reference: metrics and undefined values."""

from pathlib import Path
from typing import Any

import pytest

from yarus.tasks.cases.table import make_cases
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.steps.claims.facts import score_facts

Document = dict[str, Any]
ANSWER = "Сбор 500 рублей, приём 12.05.2025."
GOOD: Document = {
    "status": "ok",
    "outcome": "answered",
    "question": "Какой сбор и когда приём?",
    "context": "Сбор 500 рублей. Приём: 12.05.2025.",
    "answer": ANSWER,
    "reference": "500 рублей, 12.05.2025.",
}


def score_answer(tier: str = "tier3", **changes: Any) -> Document:
    row = GOOD | changes
    run = EvaluationRun("x", tier, TIERS[tier].parameters(source="sample"), EvaluationConfig(language="ru"))
    scored: Document = score_facts(run, make_cases(**{name: [value] for name, value in row.items()})).to_pylist()[0]
    return scored


def read_metrics(row: Document) -> tuple[float | None, float | None, float | None]:
    return row["unsupported_fact_rate"], row["fact_precision"], row.get("fact_recall")


def test_score_facts_supports_facts_in_context(at_home: Path) -> None:
    row = score_answer()
    assert read_metrics(row) == (0, 1, 1)
    assert row["unsupported_facts"] == []


def test_score_facts_locates_unsupported_facts(at_home: Path) -> None:
    row = score_answer(context="Сбор 500 рублей.")
    assert read_metrics(row) == (1, 0.5, 1)
    (fact,) = row["unsupported_facts"]
    assert (fact["kind"], fact["text"]) == ("date", "12.05.2025")
    assert ANSWER[fact["start"] : fact["end"]] == fact["text"]


def test_score_facts_leaves_out_facts_of_the_question(at_home: Path) -> None:
    row = score_answer(context="Сбор 500 рублей.", question="Приём 12.05.2025?")
    assert read_metrics(row)[:2] == (0, 1)
    row = score_answer(context="Сбор 700 рублей.", question="Приём 12.05.2025?")
    assert read_metrics(row)[:2] == (1, 0)
    row = score_answer(context="Приём идёт.", answer="Да, 12.05.2025.", question="Приём 12.05.2025?")
    assert read_metrics(row)[:2] == (None, None) and row["unsupported_facts"] is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"context": None}, (None, None, 1)),
        ({"context": ""}, (None, None, 1)),
        ({"answer": None, "status": "sut_error", "outcome": "failed"}, (None, None, None)),
        ({"answer": "Не знаю.", "status": "sut_refusal", "outcome": "refused"}, (None, None, 0)),
        (
            {"answer": "Сбор 700 рублей запрещён к разглашению.", "status": "sut_refusal", "outcome": "refused"},
            (None, None, 0),
        ),
        ({"answer": "Приём идёт."}, (None, None, 0)),
        ({"reference": None}, (0, 1, None)),
        ({"reference": "Приём идёт."}, (0, 1, None)),
        ({"status": "judge_error"}, (0, 1, 1)),
        ({"status": "unlabelled", "outcome": "refused", "reference": None}, (None, None, None)),
    ],
)
def test_score_facts_is_none_when_not_measurable(at_home: Path, changes: Document, expected: tuple[Any, ...]) -> None:
    row = score_answer(**changes)
    assert read_metrics(row) == expected
    assert (row["unsupported_facts"] is None) is (expected[0] is None)


@pytest.mark.parametrize(
    ("decision", "cut", "rate", "listed"),
    [(True, False, 1, 1), (False, False, None, 1), (None, False, None, 1), (True, True, None, None)],
)
def test_score_facts_counts_shown_answers_of_the_gate(
    at_home: Path, decision: bool | None, cut: bool, rate: float | None, listed: int | None
) -> None:
    row = score_answer("judge_pipeline", context="Сбор 500 рублей.", decision=decision, truncated=cut)
    assert row["unsupported_fact_rate"] == rate
    assert (None if row["unsupported_facts"] is None else len(row["unsupported_facts"])) == listed


def test_score_facts_ignores_repeated_pseudonyms(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_MASK_MODEL_INPUT", "true")
    row = score_answer(
        context="Звоните +7 927 123-45-67 до 18.",
        answer="Звоните [телефон 3fa2c1] до 19.",
        reference="Звоните +7 927 123-45-67 до 19.",
    )
    (fact,) = row["unsupported_facts"]
    assert fact["text"].endswith("19") and row["answer"][fact["start"] : fact["end"]] == fact["text"]
    assert row["fact_recall"] == 1
