"""Nights that ask other questions: what moves because of these raises no alarm, what the answers lost does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, select

from tests.support.evaluation_history import History
from yarus.db.tables import evaluation
from yarus.tasks.steps.question_mix import draw_topics, topic_of

RATES = {"оплата": 0.95, "пропуск": 0.8, "виза": 0.4}
ASKED = {
    "оплата": ("Как оплатить обучение картой онлайн?", "Куда платить за обучение, если карта не проходит?"),
    "пропуск": ("Где получить пропуск в корпус общежития?", "Потерял пропуск, как теперь войти в корпус?"),
    "виза": ("Как продлить визу иностранному студенту?", "Сколько ждать приглашения для визы студенту?"),
}
N = 300


def asked(history: History, shares: Sequence[float], *, lost: float = 0.0, annotated: bool = True, night: int) -> str:
    """The verdict of a night of new questions with that mix of topics."""
    topics = np.repeat([*RATES], [round(N * share) for share in shares]).tolist()
    hits = [
        place < (RATES[topic] - lost) * topics.count(topic)
        for topic, place in ((topic, topics[:number].count(topic)) for number, topic in enumerate(topics))
    ]
    questions = [f"{ASKED[topic][number % 2]} {night} {number}" for number, topic in enumerate(topics)]
    columns = {"question": questions} | ({"topic": topics} if annotated else {})
    return history.night(hits, cases=f"{night}-", columns=columns)


@pytest.mark.parametrize("annotated", [True, False])
def test_a_season_of_harder_questions_raises_no_alarm_and_is_told(
    history: History, annotated: bool, caplog: Any
) -> None:
    caplog.set_level("INFO", "yarus")
    for night in range(6):
        assert asked(history, (0.5, 0.3, 0.2), annotated=annotated, night=night) == "good"
    assert "вопросы сложнее" not in caplog.text
    for night in range(6, 12):
        assert asked(history, (0.2, 0.3, 0.5), annotated=annotated, night=night) == "good"
    assert "вопросы сложнее" in caplog.text
    assert history.open == []


@pytest.mark.parametrize("annotated", [True, False])
def test_a_loss_among_harder_questions_raises_one(history: History, annotated: bool) -> None:
    for night in range(6):
        asked(history, (0.5, 0.3, 0.2), annotated=annotated, night=night)
    told = [asked(history, (0.3, 0.3, 0.4), lost=0.1, annotated=annotated, night=night) for night in range(6, 14)]
    assert "regressed" in told


def test_topics_are_drawn_once_and_no_question_is_kept_with_them(history: History, engine: Engine) -> None:
    for night in range(3):
        asked(history, (0.5, 0.3, 0.2), annotated=False, night=night)
    mixes = select(evaluation.c.resolved["mix"]).where(evaluation.c.source == history.source)
    with engine.connect() as connection:
        first, *later = connection.scalars(mixes.order_by(evaluation.c.started_at))
    assert {"карто", "пропу", "визу"} <= {*first["topics"]}
    assert [[*mix] for mix in later] == [["cells"]] * 2
    assert {*first["cells"]["mrr"]} == {*later[1]["cells"]["mrr"]}


def test_what_few_people_wrote_and_what_has_digits_is_no_word_of_a_topic() -> None:
    texts = [f"{ASKED[topic][number % 2]}" for topic in RATES for number in range(40)]
    texts += ["Почему Кожемякина из комнаты 417б без пропуска в корпус?", "Где пропуск в корпус, Кожемякина, 417б?"]
    users = [*(f"{number}" for number in range(len(texts) - 2)), "same", "same"]
    told = draw_topics(texts, users)
    assert told
    assert not {"кожем", "417б"} & {*told}


def test_questions_that_are_all_alike_are_of_no_topic(history: History) -> None:
    for night in range(3):
        questions = ["Где взять пропуск в общежитие?"] * 40
        history.night([True] * 40, cases=f"{night}-", columns={"question": questions})
    assert history.open == []


def test_words_of_a_topic_sort_questions_that_are_asked_later() -> None:
    texts = [f"{ASKED[topic][number % 2]}" for topic in RATES for number in range(40)]
    told = draw_topics(texts, [f"{number % 9}" for number in range(len(texts))])
    sorted_ = [topic_of(text, told) for text in texts]
    assert len({*sorted_[:40]} & {*sorted_[40:80]}) == 0
    assert topic_of("Оплата обучения: какой картой?", told) == sorted_[0]
    assert topic_of("Совсем другое", told) is None
    assert draw_topics(["a", "b"], [None, None]) == {}
