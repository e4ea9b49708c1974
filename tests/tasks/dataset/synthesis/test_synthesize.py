"""Synthetic questions: faults of the generator, checks, and calls after a restart."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import (
    get_requested_metric,
    hash_to_unit,
    load,
    make_role_variables,
    set_variables,
    texts,
)
from tests.support.llm_server import FakeLLMServer, make_completion, make_score_completion
from yarus.db.errors import InputError
from yarus.db.loading.load_rows import ImportedRows, IncomingRow, load_rows
from yarus.db.source_rows import read_questions
from yarus.db.sources import find_loaded_source, open_snapshot
from yarus.tasks.dataset.synthesis.checks import (
    MAX_TRIES,
    KnownQuestions,
    is_copied,
    is_wrong_language,
    longest_common_run,
    plan_questions,
    split_by_kind,
)
from yarus.tasks.dataset.synthesis.generator import SynthesisParameters, parse_pair
from yarus.tasks.dataset.synthesis.synthesize import gather, keep, write
from yarus.tasks.models.calls import Reply

TEXT = "Правило {0} велит студентам группы {0} сдать книгу {1} в библиотеку до мая, иначе штраф {2} рублей."
THINGS = ("сопромат", "химия", "логика", "алгебра", "ботаника", "история", "физика", "право", "этика", "латынь")


def synthesize(**values: Any) -> dict[str, Any]:
    """Run the flow's steps in order."""

    async def run_steps() -> dict[str, Any]:
        parameters = SynthesisParameters.model_validate(values)
        material = await gather.fn(parameters)
        return await keep.fn(parameters, material, await write.fn(parameters, material))

    return asyncio.run(run_steps())


@pytest.fixture(scope="module")
def library(engine: Engine) -> str:
    """Load ten pages of two chunks, one chunk of one word, and one of 100 kB."""
    chunks = [
        {
            "id": f"c{i}",
            "confluence_url": f"https://wiki.example/{i // 2}",
            "text": TEXT.format(i, THINGS[i // 2], i + 99),
        }
        for i in range(20)
    ]
    chunks += [
        {"id": "word", "confluence_url": "https://wiki.example/word", "text": "Пусто"},
        {
            "id": "huge",
            "confluence_url": "https://wiki.example/huge",
            "text": "Очень длинная страница правил. " * 3_300,
        },
    ]
    questions = [{"id": str(i), "question": f"как вернуть книгу по предмету {THINGS[i]}"} for i in range(10)]
    rows = ImportedRows([IncomingRow("q", row) for row in questions], [IncomingRow("c", row) for row in chunks])
    load_rows(engine, "library", rows, language="ru", origin="a test")
    return "library"


def read_rows(engine: Engine, name: str) -> list[dict[str, Any]]:
    data_source = find_loaded_source(engine, name)
    with open_snapshot(data_source) as connection:
        return read_questions(connection, data_source, all_rows=True)


def pair_reply(question: str, answer: str = "Сдать книгу до мая.", **more: Any) -> bytes:
    return make_completion(json.dumps({"question": question, "answer": answer}, ensure_ascii=False), **more)


def request_kind(request: dict[str, Any]) -> str:
    """Return the kind of a generator's request, or of the judge's."""
    content = request["messages"][0]["content"]
    if "examples" not in texts(request):
        return "faithfulness" if get_requested_metric(request) == "faithfulness" else "answerability"
    return "multi" if "Фрагменты:" in content else "unanswerable" if "ответ не найден" in content else "single"


def new_question(request: dict[str, Any], start: str = "А что мне будет") -> str:
    """Return a unique question for each request."""
    number = int(hash_to_unit(request["messages"][0]["content"]) * 10**8)
    letters = "".join("абвгдежзик"[int(digit)] for digit in str(number))
    return f"{start}, если {letters} {letters[::-1]} потерять?"


def reply_well(number: int, request: dict[str, Any]) -> bytes:
    """Reply as a good generator, and as a judge that accepts its pairs; one of two chunks does not suffice."""
    kind = request_kind(request)
    if kind in ("single", "multi", "unanswerable"):
        return pair_reply(new_question(request, kind))
    question = texts(request).get("question", "")
    has_both = len(re.findall("Правило", texts(request)["context"])) > 1
    supported = kind == "faithfulness" or question.startswith("single") or (question.startswith("multi") and has_both)
    return make_score_completion(1.0 if supported else 0.0)


@pytest.fixture
def model_server(at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    set_variables(monkeypatch, make_role_variables(llm_server.url, "generator", "judge"))
    return llm_server


def test_synthesis_fills_source(engine: Engine, library: str, model_server: FakeLLMServer) -> None:
    model_server.script = reply_well
    result = synthesize(source=library, into="made_good", n=9)
    assert (result["n_accepted"], result["kinds"]) == (9, {"single": 3, "multi": 3, "unanswerable": 3})
    rows = read_rows(engine, "made_good")
    assert {row["origin"] for row in rows} == {"synthetic"}
    by_kind = {kind: [row for row in rows if row["review"]["kind"] == kind] for kind in result["kinds"]}
    assert all(len(row["relevant_chunk_ids"]) == 1 and row["answerable"] for row in by_kind["single"])
    assert all(len(row["relevant_chunk_ids"]) == 2 for row in by_kind["multi"])
    for row in by_kind["unanswerable"]:
        assert (row["answerable"], row["relevant_chunk_ids"], row["ground_truth_answer"]) == (False, [], None)
        assert row["confluence_url"] is None
    prompt_texts = [texts(request) for request in model_server.requests if "examples" in texts(request)]
    assert all("как вернуть книгу по предмету" in prompt["examples"] for prompt in prompt_texts)
    assert max(len(prompt["context"]) for prompt in prompt_texts) <= 9_100  # the chunk of 100 kB is cut
    assert not any(prompt["context"] == "Пусто" for prompt in prompt_texts)


@pytest.mark.slow("breadth: two syntheses")
def test_synthesis_repeats_without_new_calls(engine: Engine, library: str, model_server: FakeLLMServer) -> None:
    model_server.script = reply_well
    first = synthesize(source=library, into="made_twice", n=6, seed=5)
    n_calls = len(model_server.requests)
    assert first["n_new_calls"] == n_calls > 0
    repeated = synthesize(source=library, into="made_twice", n=6, seed=5)
    assert len(model_server.requests) == n_calls and repeated["n_new_calls"] == 0
    assert repeated["examples"] == first["examples"]
    assert len(read_rows(engine, "made_twice")) == 6
    other_result = synthesize(source=library, into="made_twice", n=6, seed=6)
    assert len(read_rows(engine, "made_twice")) == 6 + other_result["n_accepted"]


@pytest.mark.slow("process: it is killed")
def test_synthesis_resumes_from_call_store(library: str, model_server: FakeLLMServer) -> None:
    """The second half of the calls fails as after a kill; the first half is not repeated."""
    model_server.script = lambda number, request: (
        reply_well(number, request) if number <= 10 else make_completion("", finish="stop")
    )
    synthesize(source=library, into="made_killed", n=6, seed=9)
    before = [request["messages"][0]["content"] for request in model_server.requests[:10]]
    model_server.requests.clear()
    model_server.script = reply_well
    result = synthesize(source=library, into="made_killed", n=6, seed=9)
    after = [request["messages"][0]["content"] for request in model_server.requests]
    assert result["n_accepted"] > 0
    assert not set(before) & set(after)


FAULTY_REPLIES: dict[str, tuple[Any, str]] = {
    "it repeats itself": (lambda request: pair_reply("Что мне грозит, если книгу потерять?"), "duplicate"),
    "it repeats the log": (lambda request: pair_reply("Как вернуть книгу по предмету Сопромат?"), "duplicate"),
    "another language": (lambda request: pair_reply("What if I lose the book?", "Pay."), "wrong_language"),
    "the answer in another language": (lambda request: pair_reply(new_question(request), "You pay."), "wrong_language"),
    "a copy": (lambda request: pair_reply(texts(request)["context"][:200]), "copy"),
    "prose": (lambda request: make_completion("Вот вопрос: где книга?"), "unreadable"),
    "a list": (lambda request: make_completion('["вопрос", "ответ"]'), "unreadable"),
    "no answer": (lambda request: pair_reply("Где книга?", " "), "unreadable"),
    "numbers": (lambda request: make_completion('{"question": 1, "answer": 2}'), "unreadable"),
    "endless": (lambda request: pair_reply("Где " * 200), "too_long"),
}


@pytest.mark.slow("breadth: every fault of a generator")
@pytest.mark.parametrize("name", FAULTY_REPLIES)
def test_faulty_replies_are_counted(library: str, model_server: FakeLLMServer, name: str) -> None:
    reply, reason = FAULTY_REPLIES[name]
    model_server.script = lambda number, request: (
        reply(request) if "examples" in texts(request) else make_score_completion(1.0)
    )
    result = synthesize(source=library, into="made_bad", n=2, kinds="single")
    assert result["n_accepted"] <= (name == "it repeats itself")
    assert result["rejected"][reason] >= MAX_TRIES * 2 - result["n_accepted"] - 1
    assert set(result["rejected"]) == {reason}


VERDICTS: dict[str, tuple[str, str, dict[str, float]]] = {
    "not in the chunk": ("single", "not_answerable", {"answerability": 0.0, "faithfulness": 1.0}),
    "half in the chunk": ("single", "not_answerable", {"answerability": 0.5, "faithfulness": 1.0}),
    "an answer of its own": ("single", "unfaithful", {"answerability": 1.0, "faithfulness": 0.2}),
    "one chunk will do": ("multi", "one_chunk_is_enough", {"answerability": 1.0, "faithfulness": 1.0}),
    "answered after all": ("unanswerable", "answerable", {"answerability": 0.9, "faithfulness": 0.0}),
}


@pytest.mark.slow("breadth: every fault of a generator")
@pytest.mark.parametrize("name", VERDICTS)
def test_judge_rejections_are_counted(library: str, model_server: FakeLLMServer, name: str) -> None:
    kind, reason, scores = VERDICTS[name]

    def script(number: int, request: dict[str, Any]) -> bytes:
        prompt = request_kind(request)
        return make_score_completion(scores[prompt]) if prompt in scores else pair_reply(new_question(request))

    model_server.script = script
    result = synthesize(source=library, into="made_judged", n=1, kinds=kind)
    assert (result["n_accepted"], result["rejected"], result["state"]) == (0, {reason: MAX_TRIES}, "invalid")
    assert result["into"] is None


@pytest.mark.slow("breadth: more of what a judge finds")
def test_failing_judge_rejects_questions(library: str, model_server: FakeLLMServer) -> None:
    model_server.script = lambda n, request: (
        pair_reply(new_question(request)) if "examples" in texts(request) else make_completion("0.9")
    )
    assert synthesize(source=library, into="made_judged", n=1, kinds="single")["rejected"] == {"judge_error": MAX_TRIES}


def test_budget_ends_synthesis(library: str, model_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    price = {"input": 1000, "output": 1000, "as_of": "2026-01-01"}
    models = {f"{role}-{model_server.own}": price for role in ("generator", "judge")}
    set_variables(monkeypatch, {"YARUS_BUDGET_USD": "3", "YARUS_PRICES": json.dumps(models)})
    model_server.script = reply_well
    result = synthesize(source=library, into="made_poor", n=20, kinds="single")
    assert result["n_accepted"] < 20 and result["rejected"]["budget"] > 0
    assert result["cost_usd"] is None or result["cost_usd"] <= 3


def test_offline_synthesis_is_extractive(engine: Engine, at_home: Path, library: str) -> None:
    result = synthesize(source=library, into="made_offline", n=6)
    assert result["generator"] == "extractive (no language model)"
    assert result["n_new_calls"] == 0 and result["n_accepted"] >= 4
    texts_by_chunk = {f"c{i}": TEXT.format(i, THINGS[i // 2], i + 99) for i in range(20)}
    for row in read_rows(engine, "made_offline"):
        if row["review"]["kind"] == "single" and row["relevant_chunk_ids"] != ["huge"]:
            assert row["ground_truth_answer"] in texts_by_chunk[row["relevant_chunk_ids"][0]]


def test_synthesis_rejects_unusable_sources(engine: Engine, at_home: Path, library: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a source of their own"):
        synthesize(source=library, into=library)
    load(tmp_path, "somebody", [{"id": "1", "question": "где?"}])
    with pytest.raises(InputError, match=r"holds .*choose another name"):
        synthesize(source=library, into="somebody")
    one_word_rows = ImportedRows(
        [IncomingRow("q", {"id": "1", "question": "где?"})], [IncomingRow("c", {"id": "1", "text": "Пусто"})]
    )
    load_rows(engine, "words_only", one_word_rows, language="ru", origin="a test")
    with pytest.raises(InputError, match="no chunk of a sentence or more"):
        synthesize(source="words_only", into="made_of_nothing")
    single_chunk_rows = ImportedRows([], [IncomingRow("c", {"id": "1", "text": "Одна фраза из пяти слов."})])
    load_rows(engine, "lone", single_chunk_rows, language="ru", origin="a test")
    result = synthesize(source="lone", into="made_of_little", n=2, kinds="multi")
    assert result["rejected"] == {"no_page_with_two_chunks": 2}


def test_plan_questions_is_a_stratified_sample(engine: Engine, at_home: Path, library: str) -> None:
    material = asyncio.run(gather.fn(SynthesisParameters(source=library, into="made_plan")))
    plan = plan_questions("single", 10, material.corpus, material.questions, 1)
    assert plan == plan_questions("single", 10, material.corpus, material.questions, 1)
    assert plan != plan_questions("single", 10, material.corpus, material.questions, 2)
    assert len(plan) == MAX_TRIES * 10
    assert len({material.corpus.urls[planned.chunks[0]] for planned in plan[:10]}) >= 9  # eleven pages, ten questions
    assert len({planned.chunks for planned in plan[:21]}) == 21  # every chunk once before any is repeated
    assert {planned.repeat for planned in plan} == {0, 1}
    assert split_by_kind(["single", "multi", "unanswerable"], 8) == {"single": 3, "multi": 3, "unanswerable": 2}


@pytest.mark.parametrize(
    ("text", "language", "is_wrong"),
    [("Где книга?", "ru", False), ("Where is it?", "ru", True), ("Где взять VPN для LMS", "ru", False),
     ("123?", "ru", True), ("Where is it?", "en", False), ("Где?", "en", True), ("", "ru", True)],
)  # fmt: skip
def test_is_wrong_language_by_alphabet(text: str, language: str, is_wrong: bool) -> None:
    assert is_wrong_language(text, language) is is_wrong


def test_is_copied_detects_long_runs() -> None:
    chunk = "Стипендию назначают приказом ректора два раза в год после сессии, если нет троек и долгов по учёбе."
    assert is_copied("Назначают приказом ректора два раза в год после сессии?", chunk)
    assert not is_copied("Когда дают степуху?", chunk)
    assert not is_copied("Назначают стипендию приказом ректора или как-то иначе делают?", chunk)
    assert longest_common_run(["а", "б", "в", "г"], ["х", "а", "б", "в"]) == 3
    assert longest_common_run([], ["а"]) == 0


def test_known_questions_match_near_duplicates() -> None:
    known_questions = KnownQuestions(["Когда дают стипендию?", "где столовая"])
    assert (
        known_questions.has("когда  дают СТИПЕНДИЮ")
        and known_questions.has("стипендию дают когда")
        and known_questions.has("когда дают степендию")
    )
    assert not known_questions.has("когда дают общежитие")
    known_questions.add("где общежитие")
    assert known_questions.has("Где общежитие?!")


def test_parse_pair_is_strict() -> None:
    fenced = '```json\n{"question": "Где?", "answer": "Тут."}\n```'
    assert parse_pair(Reply("ok", raw=fenced))[:2] == ("Где?", "Тут.")
    assert parse_pair(Reply("ok", raw='<think>хм</think>{"question": "Где?", "answer": "Тут."}')).question == "Где?"
    assert parse_pair(Reply("ok", raw='Вот: {"question": "Где?", "answer": "Тут."}')).problem == "unreadable"
    assert parse_pair(Reply("error", "нет")).problem == "model_error"
    assert parse_pair(Reply("skipped_budget")).problem == "budget"
