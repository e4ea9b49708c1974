"""The first line of `explain`: which metric changed, by how much, and mostly why."""

from typing import Any

import pytest

from yarus.flows.terminal.comparisons.explanation import print_explanation
from yarus.metrics.table import METRICS
from yarus.tasks.comparison.explanation.largest_changes import answer_sentence, explanation_sentences
from yarus.tasks.models.stand_ins import JUDGE_NAME

STAND_IN = {"judge": {"model": JUDGE_NAME, "prompts": {METRICS["avg_e2e_score"].opinion: "hash"}}}
UNCLEAR = (0.01, -0.02, 0.04)


def make_part(value: float, low: float, high: float) -> Any:
    return {"value": value, "ci_low": low, "ci_high": high}


def make_metric(
    questions: tuple[float, float, float] = UNCLEAR, answers: tuple[float, float, float] = UNCLEAR
) -> dict[str, Any]:
    difference = questions[0] + answers[0]
    parts = {"questions": make_part(*questions), "answers": make_part(*answers), "stages": None, "page_changes": None}
    counts = {"n_a": 60, "n_b": 50, "n_common": 40, "n_question_kinds": 4}
    largest: Any = {"topics": [], "pages": [], "cases": []}
    return {"a": 0.5, "b": 0.5 + difference, "difference": difference} | parts | counts | largest


def make_explanation(metrics: dict[str, Any], system: dict[str, Any] = STAND_IN) -> Any:
    sides = {
        side: {"evaluation_id": f"tier3-{side}", "tier": "tier3", "source": "sample", "system": system} for side in "ab"
    }
    empty: dict[str, Any] = {name: [] for name in ("changed_settings", "key_differences", "no_longer_measured")}
    empty |= {"topic_source": "words", "n_relabelled": 0, "corpus": None, "new_topics": [], "not_decomposed": {}}
    return {**sides, **empty, "metrics": metrics}


@pytest.mark.parametrize(
    ("questions", "answers", "cause"),
    [
        ((-0.1, -0.15, -0.05), UNCLEAR, "mostly because of other questions"),
        ((-0.1, -0.15, -0.05), (-0.3, -0.4, -0.2), "mostly because of other answers"),
        ((0.1, 0.05, 0.15), (-0.3, -0.4, -0.2), "mostly because of other answers"),
        ((-0.4, -0.6, -0.3), (0.3, 0.2, 0.4), "mostly because of other questions"),
        (UNCLEAR, UNCLEAR, "neither other questions nor other answers changed it by more than chance"),
    ],
)
def test_answer_sentence_names_main_cause(
    questions: tuple[float, float, float], answers: tuple[float, float, float], cause: str
) -> None:
    explanation = make_explanation({"hit_rate@1": make_metric(questions, answers)})
    line = answer_sentence(explanation, "en")
    assert line is not None and line.startswith("hit_rate@1 0.500 → ") and line.endswith(f": {cause}.")


@pytest.mark.parametrize(
    ("language", "mark", "answer"),
    [
        ("en", "Scored without a model: ", "hit_rate@1 0.500 → 0.210 (−0.290): mostly because of other answers."),
        ("ru", "Оценка без модели: ", "hit_rate@1 0.500 → 0.210 (−0.290): в основном из-за других ответов."),
    ],
)
def test_explanation_begins_with_measured_metric(
    language: str, mark: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = make_metric(answers=(-0.3, -0.4, -0.2))
    explanation = make_explanation(
        {"avg_e2e_score": lost, "avg_semantic_similarity": make_metric(), "hit_rate@1": lost}
    )
    print_explanation(explanation, language)
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[0] == answer
    assert any(line.startswith(f"{mark}avg_e2e_score ") for line in lines)
    marks = [sentence.startswith(mark) for sentence in explanation_sentences(explanation, language)]
    assert marks == [True, False, False]


def test_only_stand_in_metric_is_marked() -> None:
    line = answer_sentence(make_explanation({"avg_e2e_score": make_metric()}), "en")
    assert line is not None and line.startswith("Scored without a model: avg_e2e_score ")
