"""Made questions: what the generator may do wrong, what the checks let pass, and what a second start buys."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import chance, load, metric_of, roles, texts, use
from tests.support.llm_server import FakeLLMServer, says, scores
from yarus.db.errors import InputError
from yarus.db.loading.fill import Row, Rows, fill
from yarus.db.source_rows import read_questions
from yarus.db.sources import loaded, snapshot
from yarus.tasks.dataset.synthesis.checks import TRIES, Known, copied, longest_run, plans, quotas, wrong_language
from yarus.tasks.dataset.synthesis.generator import Synthesis, read_pair
from yarus.tasks.dataset.synthesis.synthesize import gather, keep, write
from yarus.tasks.models.calls import Reply

TEXT = "Правило {0} велит студентам группы {0} сдать книгу {1} в библиотеку до мая, иначе штраф {2} рублей."
THINGS = ("сопромат", "химия", "логика", "алгебра", "ботаника", "история", "физика", "право", "этика", "латынь")


def synthesize(**given: Any) -> dict[str, Any]:
    """The flow's steps in their order."""

    async def steps() -> dict[str, Any]:
        parameters = Synthesis.model_validate(given)
        material = await gather.fn(parameters)
        return await keep.fn(parameters, material, await write.fn(parameters, material))

    return asyncio.run(steps())


@pytest.fixture(scope="module")
def library(engine: Engine) -> str:
    """Ten pages of two chunks, one chunk of one word, one of 100 kB."""
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
    asked = [{"id": str(i), "question": f"как вернуть книгу по предмету {THINGS[i]}"} for i in range(10)]
    rows = Rows([Row("q", row) for row in asked], [Row("c", row) for row in chunks])
    fill(engine, "library", rows, language="ru", origin="a test")
    return "library"


def rows_of(engine: Engine, name: str) -> list[dict[str, Any]]:
    where = loaded(engine, name)
    with snapshot(where) as connection:
        return read_questions(connection, where, all_rows=True)


def pair(question: str, answer: str = "Сдать книгу до мая.", **more: Any) -> bytes:
    return says(json.dumps({"question": question, "answer": answer}, ensure_ascii=False), **more)


def kind_of(request: dict[str, Any]) -> str:
    """single, multi, unanswerable; or what the judge is asked."""
    content = request["messages"][0]["content"]
    if "examples" not in texts(request):
        return "faithfulness" if metric_of(request) == "faithfulness" else "answerability"
    return "multi" if "Фрагменты:" in content else "unanswerable" if "ответ не найден" in content else "single"


def fresh(request: dict[str, Any], start: str = "А что мне будет") -> str:
    """A question of words of its own, another one for every request."""
    number = int(chance(request["messages"][0]["content"]) * 10**8)
    letters = "".join("абвгдежзик"[int(digit)] for digit in str(number))
    return f"{start}, если {letters} {letters[::-1]} потерять?"


def good(number: int, request: dict[str, Any]) -> bytes:
    """A generator that does well, and a judge that says so: of two chunks one alone is not enough."""
    kind = kind_of(request)
    if kind in ("single", "multi", "unanswerable"):
        return pair(fresh(request, kind))
    asked = texts(request).get("question", "")
    whole = len(re.findall("Правило", texts(request)["context"])) > 1
    enough = kind == "faithfulness" or asked.startswith("single") or (asked.startswith("multi") and whole)
    return scores(1.0 if enough else 0.0)


@pytest.fixture
def served(at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    use(monkeypatch, roles(llm_server.url, "generator", "judge"))
    return llm_server


def test_a_good_generator_fills_a_source(engine: Engine, library: str, served: FakeLLMServer) -> None:
    served.script = good
    made = synthesize(source=library, into="made_good", n=9)
    assert (made["accepted"], made["kinds"]) == (9, {"single": 3, "multi": 3, "unanswerable": 3})
    rows = rows_of(engine, "made_good")
    assert {row["origin"] for row in rows} == {"synthetic"}
    by_kind = {kind: [row for row in rows if row["review"]["kind"] == kind] for kind in made["kinds"]}
    assert all(len(row["relevant_chunk_ids"]) == 1 and row["answerable"] for row in by_kind["single"])
    assert all(len(row["relevant_chunk_ids"]) == 2 for row in by_kind["multi"])
    for row in by_kind["unanswerable"]:
        assert (row["answerable"], row["relevant_chunk_ids"], row["ground_truth_answer"]) == (False, [], None)
        assert row["confluence_url"] is None
    asked = [texts(request) for request in served.requests if "examples" in texts(request)]
    assert all("как вернуть книгу по предмету" in given["examples"] for given in asked)
    assert max(len(given["context"]) for given in asked) <= 9_100  # the chunk of 100 kB is cut
    assert not any(given["context"] == "Пусто" for given in asked)


@pytest.mark.slow("breadth: two syntheses")
def test_started_again_it_buys_nothing_and_comes_to_the_same(
    engine: Engine, library: str, served: FakeLLMServer
) -> None:
    served.script = good
    first = synthesize(source=library, into="made_twice", n=6, seed=5)
    bought = len(served.requests)
    assert first["bought"] == bought > 0
    again = synthesize(source=library, into="made_twice", n=6, seed=5)
    assert len(served.requests) == bought and again["bought"] == 0
    assert again["examples"] == first["examples"]
    assert len(rows_of(engine, "made_twice")) == 6
    other = synthesize(source=library, into="made_twice", n=6, seed=6)
    assert len(rows_of(engine, "made_twice")) == 6 + other["accepted"]


@pytest.mark.slow("process: it is killed")
def test_killed_half_way_it_goes_on_from_the_store(library: str, served: FakeLLMServer) -> None:
    """The second half of the calls fails as a kill would; the first half is never bought again."""
    served.script = lambda number, request: good(number, request) if number <= 10 else says("", finish="stop")
    synthesize(source=library, into="made_killed", n=6, seed=9)
    before = [request["messages"][0]["content"] for request in served.requests[:10]]
    served.requests.clear()
    served.script = good
    made = synthesize(source=library, into="made_killed", n=6, seed=9)
    after = [request["messages"][0]["content"] for request in served.requests]
    assert made["accepted"] > 0
    assert not set(before) & set(after)


BAD: dict[str, tuple[Any, str]] = {
    "it repeats itself": (lambda request: pair("Что мне грозит, если книгу потерять?"), "duplicate"),
    "it repeats the log": (lambda request: pair("Как вернуть книгу по предмету Сопромат?"), "duplicate"),
    "another language": (lambda request: pair("What if I lose the book?", "Pay."), "wrong_language"),
    "the answer in another language": (lambda request: pair(fresh(request), "You pay."), "wrong_language"),
    "a copy": (lambda request: pair(texts(request)["context"][:200]), "copy"),
    "prose": (lambda request: says("Вот вопрос: где книга?"), "unreadable"),
    "a list": (lambda request: says('["вопрос", "ответ"]'), "unreadable"),
    "no answer": (lambda request: pair("Где книга?", " "), "unreadable"),
    "numbers": (lambda request: says('{"question": 1, "answer": 2}'), "unreadable"),
    "endless": (lambda request: pair("Где " * 200), "too_long"),
}


@pytest.mark.slow("breadth: every fault of a generator")
@pytest.mark.parametrize("name", BAD)
def test_what_a_generator_does_wrong_is_counted(library: str, served: FakeLLMServer, name: str) -> None:
    wrong, reason = BAD[name]
    served.script = lambda number, request: wrong(request) if "examples" in texts(request) else scores(1.0)
    made = synthesize(source=library, into="made_bad", n=2, kinds="single")
    assert made["accepted"] <= (name == "it repeats itself")
    assert made["rejected"][reason] >= TRIES * 2 - made["accepted"] - 1
    assert set(made["rejected"]) == {reason}


VERDICTS: dict[str, tuple[str, str, dict[str, float]]] = {
    "not in the chunk": ("single", "not_answerable", {"answerability": 0.0, "faithfulness": 1.0}),
    "half in the chunk": ("single", "not_answerable", {"answerability": 0.5, "faithfulness": 1.0}),
    "an answer of its own": ("single", "unfaithful", {"answerability": 1.0, "faithfulness": 0.2}),
    "one chunk will do": ("multi", "one_chunk_is_enough", {"answerability": 1.0, "faithfulness": 1.0}),
    "answered after all": ("unanswerable", "answerable", {"answerability": 0.9, "faithfulness": 0.0}),
}


@pytest.mark.slow("breadth: every fault of a generator")
@pytest.mark.parametrize("name", VERDICTS)
def test_what_the_judge_finds_is_counted(library: str, served: FakeLLMServer, name: str) -> None:
    kind, reason, given = VERDICTS[name]

    def script(number: int, request: dict[str, Any]) -> bytes:
        asked = kind_of(request)
        return scores(given[asked]) if asked in given else pair(fresh(request))

    served.script = script
    made = synthesize(source=library, into="made_judged", n=1, kinds=kind)
    assert (made["accepted"], made["rejected"], made["state"]) == (0, {reason: TRIES}, "invalid")
    assert made["into"] is None


@pytest.mark.slow("breadth: more of what a judge finds")
def test_a_judge_that_fails_rejects(library: str, served: FakeLLMServer) -> None:
    served.script = lambda n, request: pair(fresh(request)) if "examples" in texts(request) else says("0.9")
    assert synthesize(source=library, into="made_judged", n=1, kinds="single")["rejected"] == {"judge_error": TRIES}


def test_the_budget_ends_it(library: str, served: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    price = {"input": 1000, "output": 1000, "as_of": "2026-01-01"}
    models = {f"{role}-{served.own}": price for role in ("generator", "judge")}
    use(monkeypatch, {"YARUS_BUDGET_USD": "3", "YARUS_PRICES": json.dumps(models)})
    served.script = good
    made = synthesize(source=library, into="made_poor", n=20, kinds="single")
    assert made["accepted"] < 20 and made["rejected"]["budget"] > 0
    assert made["cost_usd"] is None or made["cost_usd"] <= 3


def test_offline_it_is_extractive_and_says_so(engine: Engine, at_home: Path, library: str) -> None:
    made = synthesize(source=library, into="made_offline", n=6)
    assert made["generator"] == "extractive (no language model)"
    assert made["bought"] == 0 and made["accepted"] >= 4
    chunk = {f"c{i}": TEXT.format(i, THINGS[i // 2], i + 99) for i in range(20)}
    for row in rows_of(engine, "made_offline"):
        if row["review"]["kind"] == "single" and row["relevant_chunk_ids"] != ["huge"]:
            assert row["ground_truth_answer"] in chunk[row["relevant_chunk_ids"][0]]


def test_what_cannot_be_made(engine: Engine, at_home: Path, library: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a source of their own"):
        synthesize(source=library, into=library)
    load(tmp_path, "somebody", [{"id": "1", "question": "где?"}])
    with pytest.raises(InputError, match=r"holds .*choose another name"):
        synthesize(source=library, into="somebody")
    words = Rows([Row("q", {"id": "1", "question": "где?"})], [Row("c", {"id": "1", "text": "Пусто"})])
    fill(engine, "words_only", words, language="ru", origin="a test")
    with pytest.raises(InputError, match="no chunk of a sentence or more"):
        synthesize(source="words_only", into="made_of_nothing")
    lone = Rows([], [Row("c", {"id": "1", "text": "Одна фраза из пяти слов."})])
    fill(engine, "lone", lone, language="ru", origin="a test")
    made = synthesize(source="lone", into="made_of_little", n=2, kinds="multi")
    assert made["rejected"] == {"no_page_with_two_chunks": 2}


def test_a_plan_is_a_stratified_sample(engine: Engine, at_home: Path, library: str) -> None:
    material = asyncio.run(gather.fn(Synthesis(source=library, into="made_plan")))
    plan = plans("single", 10, material.corpus, material.questions, 1)
    assert plan == plans("single", 10, material.corpus, material.questions, 1)
    assert plan != plans("single", 10, material.corpus, material.questions, 2)
    assert len(plan) == TRIES * 10
    assert len({material.corpus.urls[of.chunks[0]] for of in plan[:10]}) >= 9  # eleven pages, ten questions
    assert len({of.chunks for of in plan[:21]}) == 21  # every chunk once before any comes again
    assert {of.repeat for of in plan} == {0, 1}
    assert quotas(["single", "multi", "unanswerable"], 8) == {"single": 3, "multi": 3, "unanswerable": 2}


@pytest.mark.parametrize(
    ("text", "language", "wrong"),
    [("Где книга?", "ru", False), ("Where is it?", "ru", True), ("Где взять VPN для LMS", "ru", False),
     ("123?", "ru", True), ("Where is it?", "en", False), ("Где?", "en", True), ("", "ru", True)],
)  # fmt: skip
def test_the_language_of_a_text(text: str, language: str, wrong: bool) -> None:
    assert wrong_language(text, language) is wrong


def test_copies() -> None:
    chunk = "Стипендию назначают приказом ректора два раза в год после сессии, если нет троек и долгов по учёбе."
    assert copied("Назначают приказом ректора два раза в год после сессии?", chunk)
    assert not copied("Когда дают степуху?", chunk)
    assert not copied("Назначают стипендию приказом ректора или как-то иначе делают?", chunk)
    assert longest_run(["а", "б", "в", "г"], ["х", "а", "б", "в"]) == 3
    assert longest_run([], ["а"]) == 0


def test_known_questions() -> None:
    known = Known(["Когда дают стипендию?", "где столовая"])
    assert (
        known.has("когда  дают СТИПЕНДИЮ") and known.has("стипендию дают когда") and known.has("когда дают степендию")
    )
    assert not known.has("когда дают общежитие")
    known.add("где общежитие")
    assert known.has("Где общежитие?!")


def test_a_reply_is_read_strictly() -> None:
    fenced = '```json\n{"question": "Где?", "answer": "Тут."}\n```'
    assert read_pair(Reply("ok", raw=fenced))[:2] == ("Где?", "Тут.")
    assert read_pair(Reply("ok", raw='<think>хм</think>{"question": "Где?", "answer": "Тут."}')).question == "Где?"
    assert read_pair(Reply("ok", raw='Вот: {"question": "Где?", "answer": "Тут."}')).problem == "unreadable"
    assert read_pair(Reply("error", "нет")).problem == "model_error"
    assert read_pair(Reply("skipped_budget")).problem == "budget"
