"""Text search: any of the question's words, their forms, and how often they are there."""

import threading

import pytest
from sqlalchemy import Engine, func, select

from yarus.db.stores.fulltext import CONFIGURATIONS, index_corpus, search
from yarus.db.tables import fulltext

TEXTS = [
    "Стипендия назначается приказом ректора.",
    "Общежитие находится на улице Ленина.",
    "Студентам общежития: заселение в общежитие начинается в августе.",
    "",
    "Расписание занятий: https://example.org/расписание & столовая | 'кавычки'",
]


def found(engine: Engine, question: str, k: int = 10, configuration: str = "russian") -> list[int]:
    corpus = index_corpus(engine, configuration, TEXTS)
    return [position for position, _ in search(engine, corpus, configuration, question, k)]


@pytest.mark.parametrize(
    ("question", "positions"),
    [
        ("Кто назначает стипендию?", [0]),  # another form of both words
        ("общежитие", [2, 1]),  # twice in the third text
        ("где ближайшее общежитие и почём стипендии", [2, 0, 1]),  # any word is enough
        ("ОБЩЕЖИТИЯ ЛЕНИНА", [1, 2]),  # two of its words
        ("столовая & кавычки | нет ! (", [4]),  # what would be operators are words here
        ("'", []),
        ("и в на", []),  # stop words only
        ("", []),
        ("марсоход", []),
        ("漢字 🦔", []),
    ],
)
def test_ranking(engine: Engine, question: str, positions: list[int]) -> None:
    assert sorted(found(engine, question)) == sorted(positions)
    assert found(engine, question)[:1] == positions[:1]


def test_no_more_than_k_and_best_first(engine: Engine) -> None:
    corpus = index_corpus(engine, "russian", TEXTS)
    ranks = [rank for _, rank in search(engine, corpus, "russian", "общежитие стипендия столовая", 10)]
    assert ranks == sorted(ranks, reverse=True)
    assert len(found(engine, "общежитие стипендия столовая", k=2)) == 2


def test_equal_texts_are_in_the_order_of_their_positions(engine: Engine) -> None:
    corpus = index_corpus(engine, "english", ["same words"] * 20)
    assert [position for position, _ in search(engine, corpus, "english", "words", 5)] == [0, 1, 2, 3, 4]


def test_a_corpus_is_indexed_once_even_by_two_at_once(engine: Engine) -> None:
    texts = [f"текст номер {number}" for number in range(300)]
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(index_corpus(engine, "russian", texts))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 1
    with engine.connect() as connection:
        rows = connection.scalar(select(func.count()).select_from(fulltext).where(fulltext.c.corpus == names[0]))
    assert rows == 300


def test_another_text_language_or_order_is_another_corpus(engine: Engine) -> None:
    corpora = [(["a", "b"], "russian"), (["b", "a"], "russian"), (["ab"], "russian"), (["a", "b"], "english")]
    assert len({index_corpus(engine, configuration, texts) for texts, configuration in corpora}) == 4


def test_every_language_has_a_configuration_that_postgresql_knows(engine: Engine) -> None:
    for configuration in CONFIGURATIONS.values():
        assert index_corpus(engine, configuration, ["слово word"])
