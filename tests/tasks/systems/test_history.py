"""History of a dialog that a system gets: its own answers, in order, and no turns of other dialogs."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.bots import USER_CODES
from tests.support.odd_servers import make_json_feed, open_odd_server
from yarus.db.errors import InputError
from yarus.tasks.cases.dialogs import history_messages
from yarus.tasks.config.settings import Settings, SystemService
from yarus.tasks.systems.external import fill_template
from yarus.tasks.systems.sut import Message, System, SystemAnswer, create_system
from yarus.tasks.systems.yarus_worker.functions import accepts_history

ROUNDS, DIALOGS = 5, 6
QUESTIONS = [f"{dialog}: вопрос {turn}" for turn in range(1, ROUNDS + 1) for dialog in "абвгде"]
DIALOG_OF_QUESTION = [question[0] for question in QUESTIONS]


def ask_all(ask: Callable[[str, Any], Any], *, concurrency: int = 4, **options: bool) -> dict[str, SystemAnswer]:
    """Ask five turns of six dialogs, which are mixed in the log, and return the answers by question."""
    answers = asyncio.run(
        System(ask, concurrency, takes_history=options.get("history", True)).answers(QUESTIONS, DIALOG_OF_QUESTION)
    )
    return dict(zip(QUESTIONS, answers, strict=True))


def format_turns(history: Sequence[Message]) -> list[str]:
    return [f"{message['role']} {message['content']}" for message in history]


def test_dialogs_run_in_parallel_with_their_own_history() -> None:
    n_running, max_running, lock = 0, 0, threading.Lock()

    def ask(question: str, history: list[Message]) -> dict[str, Any]:
        nonlocal n_running, max_running
        with lock:
            n_running += 1
            max_running = max(max_running, n_running)
        time.sleep(0.005 * (1 + ord(question[0]) % 3))
        with lock:
            n_running -= 1
        return {"answer": f"ответ на «{question}» после {len(history)}"}

    answers = ask_all(ask)
    assert max_running == 4  # the concurrency of the system
    for question, answer in answers.items():
        dialog, turn = question[0], int(question[-1])
        earlier_turns = [
            (f"{dialog}: вопрос {n}", f"ответ на «{dialog}: вопрос {n}» после {2 * (n - 1)}") for n in range(1, turn)
        ]
        assert format_turns(answer.history) == [
            line for earlier, reply in earlier_turns for line in (f"user {earlier}", f"assistant {reply}")
        ]
        assert answer.text == f"ответ на «{question}» после {2 * (turn - 1)}"


def test_turn_without_answer_keeps_only_its_question() -> None:
    results: dict[str, Any] = {
        "а: вопрос 2": OSError("нет связи"),
        "б: вопрос 2": {"answer": "скрыто", "path": "hidden"},
        "в: вопрос 2": {"answer": " "},
        "г: вопрос 2": {"answer": "Ответ не найден"},  # the user saw this refusal
        "д: вопрос 2": SystemExit("вышел"),
    }

    def ask(question: str, history: list[Message]) -> dict[str, Any]:
        result = results.get(question, {"answer": "да"})
        if isinstance(result, BaseException):
            raise result
        return result  # type: ignore[no-any-return]

    answers = ask_all(ask)
    assert (answers["а: вопрос 2"].text, "нет связи" in (answers["а: вопрос 2"].error or "")) == (None, True)
    for dialog, answer_text in {"а": None, "б": None, "в": None, "г": "Ответ не найден", "д": None, "е": "да"}.items():
        lines = format_turns(answers[f"{dialog}: вопрос 3"].history)
        expected = [f"user {dialog}: вопрос 1", "assistant да", f"user {dialog}: вопрос 2"]
        assert lines == expected + ([f"assistant {answer_text}"] if answer_text else [])
        assert len(answers[f"{dialog}: вопрос 5"].history) == 7 + bool(answer_text)  # the dialog continues


def test_system_cannot_change_the_history() -> None:
    def ask(question: str, history: list[dict[str, str]]) -> dict[str, Any]:
        for message in history:
            message["content"] = "забудь"
        history.clear()
        return {"answer": question}

    answers = ask_all(ask)
    assert format_turns(answers["а: вопрос 3"].history) == [
        line for n in (1, 2) for line in (f"user а: вопрос {n}", f"assistant а: вопрос {n}")
    ]


def test_system_without_history_gets_all_questions_at_once() -> None:
    barrier = threading.Barrier(ROUNDS * DIALOGS, timeout=20)  # all at once, including the turns of a dialog

    def ask(question: str, history: Sequence[Message]) -> dict[str, Any]:
        barrier.wait()
        return {"answer": str(len(history))}

    answers = ask_all(ask, concurrency=ROUNDS * DIALOGS, history=False)
    assert {(answer.text, answer.history) for answer in answers.values()} == {("0", ())}


def test_questions_without_dialog_get_no_history() -> None:
    history_system = System(lambda question, history: {"answer": str(len(history))}, 2, takes_history=True)
    answers = asyncio.run(history_system.answers(["1", "2", "3", "4"], [None, "d", None, "d"]))
    assert [answer.text for answer in answers] == ["0", "0", "0", "2"]
    assert [answer.text for answer in asyncio.run(history_system.answers(["1", "2"]))] == ["0", "0"]


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (lambda question: 0, False),
        (lambda question, history: 0, True),
        (lambda question, before: 0, True),  # a required argument
        (lambda question, history=(): 0, True),
        (lambda question, k=3: 0, False),
        (lambda question, *more: 0, False),
        (lambda question, **named: 0, False),
        (dict, False),
    ],
)
def test_accepts_history_follows_the_signature(function: Callable[..., Any], takes: bool) -> None:
    assert accepts_history(function) is takes


def test_fill_template_puts_history_into_lists() -> None:
    history = [*history_messages("раз", "да"), *history_messages("два", None)]
    values = {"$question": "три", "$history": history}
    template = {"messages": ["$history", {"role": "user", "content": "$question"}], "n": [["$question"], 1]}
    assert fill_template(template, values) == {
        "messages": [*history, {"role": "user", "content": "три"}],
        "n": [["три"], 1],
    }
    assert fill_template({"before": "$history", "text": "$question"}, values) == {"before": history, "text": "три"}
    assert fill_template(["$history"], {"$history": []}) == []


def test_request_with_history_placeholder_takes_history() -> None:
    with open_odd_server(make_json_feed({"answer": "да"})) as server:
        with_history, without_history = (
            create_system(
                server.url,
                Settings(sut_service=SystemService(request=f'{{"q": "$question", "past": {past}}}')),
                USER_CODES,
            )
            for past in ('{"all": "$history"}', '"the $history"')
        )
    assert (with_history.takes_history, without_history.takes_history) == (True, False)


@pytest.mark.parametrize("request_", ['{"prompt": "Ответь: $question"}', '{"q": "x"}'])
def test_request_without_question_is_rejected(request_: str) -> None:
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE__REQUEST has no place for the question"):
        create_system("http://127.0.0.1:1/", Settings(sut_service=SystemService(request=request_)), USER_CODES)
