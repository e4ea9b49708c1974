"""Nights with other questions: harder questions raise no alarm, worse answers do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, select

from tests.support.evaluation_history import NightHistory
from yarus.db.tables import evaluation
from yarus.tasks.steps.question_mix import draw_topics, match_topic

RATES = {"оплата": 0.95, "пропуск": 0.8, "виза": 0.4}
ASKED = {
    "оплата": ("Как оплатить обучение картой онлайн?", "Куда платить за обучение, если карта не проходит?"),
    "пропуск": ("Где получить пропуск в корпус общежития?", "Потерял пропуск, как теперь войти в корпус?"),
    "виза": ("Как продлить визу иностранному студенту?", "Сколько ждать приглашения для визы студенту?"),
}
N = 300


def verdict(
    history: NightHistory, shares: Sequence[float], *, lost: float = 0.0, annotated: bool = True, night: int
) -> str:
    """Return the verdict of a night of new questions with that mix of topics."""
    topics = np.repeat([*RATES], [round(N * share) for share in shares]).tolist()
    hits = [
        position < (RATES[topic] - lost) * topics.count(topic)
        for topic, position in ((topic, topics[:number].count(topic)) for number, topic in enumerate(topics))
    ]
    questions = [f"{ASKED[topic][number % 2]} {night} {number}" for number, topic in enumerate(topics)]
    columns = {"question": questions} | ({"topic": topics} if annotated else {})
    return history.night(hits, cases=f"{night}-", columns=columns)


@pytest.mark.parametrize("annotated", [True, False])
def test_harder_questions_raise_no_alarm_and_are_logged(history: NightHistory, annotated: bool, caplog: Any) -> None:
    caplog.set_level("INFO", "yarus")
    for night in range(6):
        assert verdict(history, (0.5, 0.3, 0.2), annotated=annotated, night=night) == "good"
    assert "вопросы сложнее" not in caplog.text
    for night in range(6, 12):
        assert verdict(history, (0.2, 0.3, 0.5), annotated=annotated, night=night) == "good"
    assert "вопросы сложнее" in caplog.text
    assert history.open == []


@pytest.mark.parametrize("annotated", [True, False])
def test_loss_among_harder_questions_raises_an_alarm(history: NightHistory, annotated: bool) -> None:
    for night in range(6):
        verdict(history, (0.5, 0.3, 0.2), annotated=annotated, night=night)
    verdicts = [verdict(history, (0.3, 0.3, 0.4), lost=0.1, annotated=annotated, night=night) for night in range(6, 14)]
    assert "regressed" in verdicts


def test_topics_are_stored_once_without_questions(history: NightHistory, engine: Engine) -> None:
    for night in range(3):
        verdict(history, (0.5, 0.3, 0.2), annotated=False, night=night)
    mixes = select(evaluation.c.resolved["mix"]).where(evaluation.c.source == history.source)
    with engine.connect() as connection:
        first_mix, *later = connection.scalars(mixes.order_by(evaluation.c.started_at))
    assert {"карто", "пропу", "визу"} <= {*first_mix["topics"]}
    assert [[*mix] for mix in later] == [["cells"]] * 2
    assert {*first_mix["cells"]["mrr"]} == {*later[1]["cells"]["mrr"]}


def test_draw_topics_omits_rare_words_and_digits() -> None:
    texts = [f"{ASKED[topic][number % 2]}" for topic in RATES for number in range(40)]
    texts += ["Почему Кожемякина из комнаты 417б без пропуска в корпус?", "Где пропуск в корпус, Кожемякина, 417б?"]
    users = [*(f"{number}" for number in range(len(texts) - 2)), "same", "same"]
    topics = draw_topics(texts, users)
    assert topics
    assert not {"кожем", "417б"} & {*topics}


def test_equal_questions_have_no_topic(history: NightHistory) -> None:
    for night in range(3):
        questions = ["Где взять пропуск в общежитие?"] * 40
        history.night([True] * 40, cases=f"{night}-", columns={"question": questions})
    assert history.open == []


def test_match_topic_assigns_later_questions() -> None:
    texts = [f"{ASKED[topic][number % 2]}" for topic in RATES for number in range(40)]
    topics = draw_topics(texts, [f"{number % 9}" for number in range(len(texts))])
    assigned = [match_topic(text, topics) for text in texts]
    assert len({*assigned[:40]} & {*assigned[40:80]}) == 0
    assert match_topic("Оплата обучения: какой картой?", topics) == assigned[0]
    assert match_topic("Совсем другое", topics) is None
    assert draw_topics(["a", "b"], [None, None]) == {}
