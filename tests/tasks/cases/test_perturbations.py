"""Perturbed questions: the effect of each change, and evaluations that ask but do not judge by it."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import DamerauLevenshtein

from tests.support.evaluations import (
    evaluate,
    load,
    make_role_variables,
    question,
    read_cases,
    read_rows,
    set_variables,
    texts,
)
from tests.support.llm_server import Action, FakeLLMServer, make_completion
from yarus.db.errors import InputError
from yarus.tasks.cases.perturbations import (
    TO_CYRILLIC,
    TO_LATIN,
    add_typos,
    perturb_question,
    perturbation_signature,
    swap_layout,
)
from yarus.tasks.config.tiers import TIERS

QUESTION = "Ещё раз: как получить социальную стипендию после сессии?"


def test_change_of_one_question_by_kind() -> None:
    assert perturb_question(QUESTION, "yo", seed=0) == "Еще раз: как получить социальную стипендию после сессии?"
    assert perturb_question("Е\u0308лка", "yo", seed=0) == "Елка"
    assert perturb_question(QUESTION, "lower", seed=0) == QUESTION.lower()
    assert perturb_question("привет", "layout", seed=0) == "ghbdtn"
    assert perturb_question("ПГАС?", "layout", seed=0) == "GUFC&"
    assert perturb_question("wifi", "layout", seed=0) == "цшаш"
    assert add_typos(QUESTION, seed=0) != QUESTION
    with pytest.raises(ValueError, match="paraphrase"):
        perturb_question(QUESTION, "paraphrase", seed=0)


def test_keyboard_layouts_are_inverse() -> None:
    russian = "".join(map(chr, TO_LATIN))
    assert russian.translate(TO_LATIN).translate(TO_CYRILLIC) == russian
    assert swap_layout(swap_layout("Где взять справку, ёж?")) == "Где взять справку, ёж?"


@given(st.text(max_size=80), st.integers(0, 3))
def test_typos_are_few_and_seeded(text: str, seed: int) -> None:
    changed = add_typos(text, seed=seed)
    assert changed == add_typos(text, seed=seed)
    words = [word for word in text.split() if any(letter.isalpha() for letter in word)]
    assert DamerauLevenshtein.distance(text, changed) <= max(1, len(words))


@pytest.mark.parametrize("text", ["", "?", "да", "12345", "🎄🎄🎄🎄", "日本語の質問です"])
def test_change_accepts_texts_without_letters(text: str) -> None:
    for kind in ("typos", "yo", "lower", "layout"):
        assert isinstance(perturb_question(text, kind, seed=0), str)
    assert add_typos("да", seed=0) == "да"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("asked")


@pytest.mark.slow("breadth: two evaluations")
def test_evaluation_asks_perturbed_and_judges_original(
    at_home: Path, folder: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(folder, "asked_otherwise", [question(i) for i in range(6)])

    def script(number: int, request: dict[str, object]) -> bytes | Action:
        prompt_texts = texts(request)
        if "контекст" not in str(request["messages"]).casefold() and "context" not in prompt_texts:
            return make_completion(f"Другими словами: {prompt_texts['question']}")
        return make_completion("Сдать книгу.")

    llm_server.script = script
    set_variables(monkeypatch, make_role_variables(llm_server.url, "generator"))
    original = evaluate("tier3", source=source)
    lower = evaluate("tier3", source=source, perturbation="lower")
    paraphrased = evaluate("tier3", source=source, perturbation="paraphrase")
    for row in read_rows(lower):
        assert row["question"] != row["asked"] == row["question"].lower()
    for row in read_rows(paraphrased):
        assert row["asked"] == f"Другими словами: {row['question']}"
    assert "asked" not in read_cases(original).column_names
    generations = [texts(request)["question"] for request in llm_server.requests if "context" in texts(request)]
    assert set(generations) == {row["question"] for row in read_rows(original)} | {
        row["asked"] for summary in (lower, paraphrased) for row in read_rows(summary)
    }
    keys = {summary["comparability_key"] for summary in (original, lower, paraphrased)}
    assert len(keys) == 3, "other questions are not comparable in a trend"
    assert original["case_set_hash"] == lower["case_set_hash"], "but they are the same cases"


def test_question_without_paraphrase_is_not_measured(
    at_home: Path, folder: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(folder, "not_paraphrased", [question(i) for i in range(6)])
    llm_server.script = lambda number, request: make_completion(
        "   " if "правило 3," in str(request) else "Что велит правило?"
    )
    set_variables(monkeypatch, make_role_variables(llm_server.url, "generator"))
    summary = evaluate("tier1", source=source, perturbation="paraphrase")
    (unmeasured,) = [row for row in read_rows(summary) if row["status"] != "ok"]
    assert (unmeasured["question_id"], unmeasured["status"], unmeasured["asked"]) == ("3", "not_applicable", None)
    assert unmeasured["mrr"] is None
    assert summary["metrics"]["mrr"]["n_scored"] == 5
    assert summary["state"] == "completed"


@pytest.mark.parametrize("tier", ["tier1", "tier3"])
def test_perturbed_rejects_paraphrase_without_a_model(at_home: Path, tier: str) -> None:
    with pytest.raises(InputError, match="YARUS_GENERATOR__BASE_URL"):
        perturbation_signature(TIERS[tier].parameters.model_validate({"perturbation": "paraphrase"}))
    assert perturbation_signature(TIERS[tier].parameters.model_validate({})) is None


def test_reuse_answers_rejects_a_perturbation(at_home: Path, folder: Path) -> None:
    with pytest.raises(InputError, match="leave out --perturbation"):
        evaluate("tier3", perturbation="typos", reuse_answers="last")


def test_column_asked_is_in_the_schema(at_home: Path, folder: Path) -> None:
    source = load(folder, "schema_of_asked", [question(i) for i in range(2)])
    cases = read_cases(evaluate("tier1", source=source, perturbation="typos"))
    assert cases.schema.field("asked").type == pa.string()
