"""What a system is told of the dialog before a question: its own answers, in order, and nothing of other dialogs."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.bots import CODES
from tests.support.odd_servers import says, stranger
from yarus.db.errors import InputError
from yarus.tasks.cases.dialogs import spoken
from yarus.tasks.config.settings import Settings, SystemService
from yarus.tasks.systems.external import filled
from yarus.tasks.systems.sut import Answered, Message, System, system
from yarus.tasks.systems.yarus_worker.functions import takes_history

ROUNDS, DIALOGS = 5, 6
QUESTIONS = [f"{dialog}: вопрос {turn}" for turn in range(1, ROUNDS + 1) for dialog in "абвгде"]
OF = [question[0] for question in QUESTIONS]


def asked(ask: Callable[[str, Any], Any], *, concurrency: int = 4, **more: bool) -> dict[str, Answered]:
    """Five turns of six dialogs, which stand mixed in the log, by their questions."""
    found = asyncio.run(System(ask, concurrency, takes_history=more.get("history", True)).answers(QUESTIONS, OF))
    return dict(zip(QUESTIONS, found, strict=True))


def words_of(history: Sequence[Message]) -> list[str]:
    return [f"{message['role']} {message['content']}" for message in history]


def test_every_dialog_hears_its_own_answers_in_order_side_by_side() -> None:
    inside, most, lock = 0, 0, threading.Lock()

    def ask(question: str, history: list[Message]) -> dict[str, Any]:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.005 * (1 + ord(question[0]) % 3))
        with lock:
            inside -= 1
        return {"answer": f"ответ на «{question}» после {len(history)}"}

    told = asked(ask)
    assert most == 4  # as many at once as it takes
    for question, said in told.items():
        dialog, turn = question[0], int(question[-1])
        before = [
            (f"{dialog}: вопрос {n}", f"ответ на «{dialog}: вопрос {n}» после {2 * (n - 1)}") for n in range(1, turn)
        ]
        assert words_of(said.history) == [line for q, a in before for line in (f"user {q}", f"assistant {a}")]
        assert said.text == f"ответ на «{question}» после {2 * (turn - 1)}"


def test_a_turn_that_failed_was_hidden_or_said_nothing_leaves_its_question_alone() -> None:
    ways: dict[str, Any] = {
        "а: вопрос 2": OSError("нет связи"),
        "б: вопрос 2": {"answer": "скрыто", "path": "hidden"},
        "в: вопрос 2": {"answer": " "},
        "г: вопрос 2": {"answer": "Ответ не найден"},  # a refusal in its own words is what the user saw
        "д: вопрос 2": SystemExit("вышел"),
    }

    def ask(question: str, history: list[Message]) -> dict[str, Any]:
        way = ways.get(question, {"answer": "да"})
        if isinstance(way, BaseException):
            raise way
        return way  # type: ignore[no-any-return]

    told = asked(ask)
    assert (told["а: вопрос 2"].text, "нет связи" in (told["а: вопрос 2"].error or "")) == (None, True)
    for dialog, heard in {"а": None, "б": None, "в": None, "г": "Ответ не найден", "д": None, "е": "да"}.items():
        lines = words_of(told[f"{dialog}: вопрос 3"].history)
        expected = [f"user {dialog}: вопрос 1", "assistant да", f"user {dialog}: вопрос 2"]
        assert lines == expected + ([f"assistant {heard}"] if heard else [])
        assert len(told[f"{dialog}: вопрос 5"].history) == 7 + bool(heard)  # the dialog goes on


def test_what_a_system_does_to_its_history_stays_with_it() -> None:
    def ask(question: str, history: list[dict[str, str]]) -> dict[str, Any]:
        for message in history:
            message["content"] = "забудь"
        history.clear()
        return {"answer": question}

    told = asked(ask)
    assert words_of(told["а: вопрос 3"].history) == [
        line for n in (1, 2) for line in (f"user а: вопрос {n}", f"assistant а: вопрос {n}")
    ]


def test_a_system_that_takes_none_is_told_nothing_and_does_not_wait() -> None:
    together = threading.Barrier(ROUNDS * DIALOGS, timeout=20)  # all at once, the turns of a dialog too

    def ask(question: str, history: Sequence[Message]) -> dict[str, Any]:
        together.wait()
        return {"answer": str(len(history))}

    told = asked(ask, concurrency=ROUNDS * DIALOGS, history=False)
    assert {(said.text, said.history) for said in told.values()} == {("0", ())}


def test_questions_of_no_dialog_stand_alone() -> None:
    taking = System(lambda question, history: {"answer": str(len(history))}, 2, takes_history=True)
    found = asyncio.run(taking.answers(["1", "2", "3", "4"], [None, "d", None, "d"]))
    assert [said.text for said in found] == ["0", "0", "0", "2"]
    assert [said.text for said in asyncio.run(taking.answers(["1", "2"]))] == ["0", "0"]


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (lambda question: 0, False),
        (lambda question, history: 0, True),
        (lambda question, before: 0, True),  # it could not be called without
        (lambda question, history=(): 0, True),
        (lambda question, k=3: 0, False),
        (lambda question, *more: 0, False),
        (lambda question, **named: 0, False),
        (dict, False),
    ],
)
def test_which_functions_take_it(function: Callable[..., Any], takes: bool) -> None:
    assert takes_history(function) is takes


def test_messages_stand_in_a_request_as_a_list_or_within_one() -> None:
    history = [*spoken("раз", "да"), *spoken("два", None)]
    values = {"$question": "три", "$history": history}
    within = {"messages": ["$history", {"role": "user", "content": "$question"}], "n": [["$question"], 1]}
    assert filled(within, values) == {"messages": [*history, {"role": "user", "content": "три"}], "n": [["три"], 1]}
    assert filled({"before": "$history", "text": "$question"}, values) == {"before": history, "text": "три"}
    assert filled(["$history"], {"$history": []}) == []


def test_a_request_that_names_the_history_takes_it() -> None:
    with stranger(says({"answer": "да"})) as server:
        taking, plain = (
            system(
                server.url, Settings(sut_service=SystemService(request=f'{{"q": "$question", "past": {past}}}')), CODES
            )
            for past in ('{"all": "$history"}', '"the $history"')
        )
    assert (taking.takes_history, plain.takes_history) == (True, False)


@pytest.mark.parametrize("request_", ['{"prompt": "Ответь: $question"}', '{"q": "x"}'])
def test_a_request_that_asks_nothing_is_refused(request_: str) -> None:
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE__REQUEST has no place for the question"):
        system("http://127.0.0.1:1/", Settings(sut_service=SystemService(request=request_)), CODES)
