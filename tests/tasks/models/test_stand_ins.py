"""Stand-ins: their formulas worked out by hand, and their names."""

import pytest

from yarus.tasks.cases.text import word_stems
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.stand_ins import OfflineModel, extract_answer
from yarus.tasks.models.verdicts import parse_score, parse_yes_no

PROMPTS = read_prompts(Settings(_env_file=None))
CONTEXT = "Общежитие дают иногородним. Заявление подают до 25 июля! Оплата 900 рублей."


def test_words_equal_hand_made_sets():
    assert word_stems("Ещё подаём ДОКУМЕНТЫ, документов и т.") == {"подае", "докум", "т"}
    assert word_stems("") == word_stems("—!? 😀") == set()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("До какого июля подавать заявления?", "Заявление подают до 25 июля!"),
        ("Кому положено общежитие?", "Общежитие дают иногородним."),
        ("Где парковка?", "ответ не найден"),
        ("Where is the parking?", "answer not found"),
        ("", "answer not found"),
    ],
)
def test_generator_extracts_a_sentence(question, answer):
    assert extract_answer(question, CONTEXT) == answer


# «Заявление подают 30 июля»: W = {заявл, подаю, 30, июля}; the context has 3 of 4.
# Question «Когда подают заявление»: W = {подаю, заявл} (когда is common), both in the answer: 1 of 2 more than enough.
# Reference «25 июля»: W = {25, июля}; one in common: F1 = 2 / (4 + 2), recall 1 / 2.
@pytest.mark.parametrize(
    ("metric", "value"),
    [("faithfulness", 0.75), ("answer_relevance", 1.0), ("answer_correctness", 1 / 3), ("e2e_score", 0.5)],
)
async def test_judge_follows_its_formula(metric, value):
    texts = {"question": "Когда подают заявление", "context": CONTEXT, "reference": "25 июля"}
    texts["answer"] = "Заявление подают 30 июля"
    reply = await OfflineModel("judge").ask(Call(PROMPTS[metric], texts))
    assert parse_score(reply.raw).value == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("metric", ["faithfulness", "answer_relevance", "answer_correctness", "e2e_score"])
async def test_score_is_0_without_common_words(metric):
    judge = OfflineModel("judge")
    for answer in ("собака", "", "😀"):
        texts = {"question": "кошка", "context": "кошка", "reference": "кошка", "answer": answer}
        assert parse_score((await judge.ask(Call(PROMPTS[metric], texts))).raw).value == 0


@pytest.mark.parametrize(
    ("answer", "passes"),
    [("Заявление подают до 25 июля", True), ("Парковка за углом", False), ("Ответ не найден.", False), ("", False)],
)
async def test_gate_accepts_supported_answers(answer, passes):
    texts = {"question": "Когда?", "context": CONTEXT + " Ответ не найден.", "answer": answer}
    assert parse_yes_no((await OfflineModel("gate").ask(Call(PROMPTS["gate"], texts))).raw).value is passes


async def test_rubric_needs_a_model(tmp_path):
    (tmp_path / "politeness.txt").write_text("name: politeness\nquestion: Вежлив?\n1: да\n0: нет", encoding="utf-8")
    rubric = read_prompts(Settings(_env_file=None, rubrics=tmp_path))["rubric_politeness"]
    reply = await OfflineModel("judge").ask(Call(rubric, {"question": "?", "answer": "!"}))
    assert (reply.status, reply.raw) == ("not_applicable", "")


async def test_results_name_the_stand_in():
    assert OfflineModel("judge").describe() == OfflineModel("gate").describe() == "lexical (no language model)"
    assert OfflineModel("generator").describe() == "extractive (no language model)"
    texts = {"question": "Когда подают?", "context": CONTEXT}
    first, second = await OfflineModel("generator").complete([Call(PROMPTS["generation"], texts)] * 2)
    assert first == second
    assert (first.status, first.served_model, first.cost_usd) == ("ok", "extractive (no language model)", 0)
