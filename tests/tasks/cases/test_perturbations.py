"""The same question asked otherwise: what each change does, and that it is asked but not judged."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import DamerauLevenshtein

from tests.support.evaluations import cases_of, evaluate, load, question, roles, rows_of, texts, use
from tests.support.llm_server import Do, FakeLLMServer, says
from yarus.db.errors import InputError
from yarus.tasks.cases.perturbations import TO_CYRILLIC, TO_LATIN, change, perturbed, typos, wrong_layout
from yarus.tasks.config.tiers import TIERS

QUESTION = "Ещё раз: как получить социальную стипендию после сессии?"


def test_every_change_of_one_question() -> None:
    assert change(QUESTION, "yo", seed=0) == "Еще раз: как получить социальную стипендию после сессии?"
    assert change("Е\u0308лка", "yo", seed=0) == "Елка"
    assert change(QUESTION, "lower", seed=0) == QUESTION.lower()
    assert change("привет", "layout", seed=0) == "ghbdtn"
    assert change("ПГАС?", "layout", seed=0) == "GUFC&"
    assert change("wifi", "layout", seed=0) == "цшаш"
    assert typos(QUESTION, seed=0) != QUESTION
    with pytest.raises(ValueError, match="paraphrase"):
        change(QUESTION, "paraphrase", seed=0)


def test_the_layouts_are_each_others_inverse() -> None:
    russian = "".join(map(chr, TO_LATIN))
    assert russian.translate(TO_LATIN).translate(TO_CYRILLIC) == russian
    assert wrong_layout(wrong_layout("Где взять справку, ёж?")) == "Где взять справку, ёж?"


@given(st.text(max_size=80), st.integers(0, 3))
def test_typing_errors_are_few_and_the_same_for_the_same_seed(text: str, seed: int) -> None:
    changed = typos(text, seed=seed)
    assert changed == typos(text, seed=seed)
    words = [word for word in text.split() if any(letter.isalpha() for letter in word)]
    assert DamerauLevenshtein.distance(text, changed) <= max(1, len(words))


@pytest.mark.parametrize("text", ["", "?", "да", "12345", "🎄🎄🎄🎄", "日本語の質問です"])
def test_what_has_no_word_to_mistype_or_no_letters_stays_a_text(text: str) -> None:
    for kind in ("typos", "yo", "lower", "layout"):
        assert isinstance(change(text, kind, seed=0), str)
    assert typos("да", seed=0) == "да"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("asked")


@pytest.mark.slow("breadth: two evaluations")
def test_the_system_is_asked_the_change_and_judged_by_what_was_meant(
    at_home: Path, asked: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(asked, "asked_otherwise", [question(i) for i in range(6)])

    def script(number: int, request: dict[str, object]) -> bytes | Do:
        given = texts(request)
        if "контекст" not in str(request["messages"]).casefold() and "context" not in given:
            return says(f"Другими словами: {given['question']}")
        return says("Сдать книгу.")

    llm_server.script = script
    use(monkeypatch, roles(llm_server.url, "generator"))
    plain = evaluate("tier3", source=source)
    lower = evaluate("tier3", source=source, perturbation="lower")
    other = evaluate("tier3", source=source, perturbation="paraphrase")
    for row in rows_of(lower):
        assert row["question"] != row["asked"] == row["question"].lower()
    for row in rows_of(other):
        assert row["asked"] == f"Другими словами: {row['question']}"
    assert "asked" not in cases_of(plain).column_names
    generations = [texts(request)["question"] for request in llm_server.requests if "context" in texts(request)]
    assert set(generations) == {row["question"] for row in rows_of(plain)} | {
        row["asked"] for summary in (lower, other) for row in rows_of(summary)
    }
    keys = {summary["comparability_key"] for summary in (plain, lower, other)}
    assert len(keys) == 3, "other questions are not comparable in a trend"
    assert plain["case_set_hash"] == lower["case_set_hash"], "but they are the same cases"


def test_a_question_that_could_not_be_paraphrased_is_not_measured(
    at_home: Path, asked: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(asked, "not_paraphrased", [question(i) for i in range(6)])
    llm_server.script = lambda number, request: says("   " if "правило 3," in str(request) else "Что велит правило?")
    use(monkeypatch, roles(llm_server.url, "generator"))
    summary = evaluate("tier1", source=source, perturbation="paraphrase")
    (left,) = [row for row in rows_of(summary) if row["status"] != "ok"]
    assert (left["question_id"], left["status"], left["asked"]) == ("3", "not_applicable", None)
    assert left["mrr"] is None
    assert summary["metrics"]["mrr"]["n_scored"] == 5
    assert summary["state"] == "completed"


@pytest.mark.parametrize("tier", ["tier1", "tier3"])
def test_a_paraphrase_needs_a_model(at_home: Path, tier: str) -> None:
    with pytest.raises(InputError, match="YARUS_GENERATOR__BASE_URL"):
        perturbed(TIERS[tier].parameters.model_validate({"perturbation": "paraphrase"}))
    assert perturbed(TIERS[tier].parameters.model_validate({})) is None


def test_answers_to_the_questions_as_they_are_are_not_reused(at_home: Path, asked: Path) -> None:
    with pytest.raises(InputError, match="leave out --perturbation"):
        evaluate("tier3", perturbation="typos", reuse_answers="last")


def test_the_columns_are_in_the_schema(at_home: Path, asked: Path) -> None:
    source = load(asked, "schema_of_asked", [question(i) for i in range(2)])
    cases = cases_of(evaluate("tier1", source=source, perturbation="typos"))
    assert cases.schema.field("asked").type == pa.string()
