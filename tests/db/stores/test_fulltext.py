"""Text search: matches any word of the question in any form, ranked by frequency."""

import threading

import pytest
from sqlalchemy import Engine, func, select

from yarus.db.stores.fulltext import TEXT_SEARCH_CONFIGURATIONS, index_corpus, search_fulltext
from yarus.db.tables import fulltext

TEXTS = [
    "Стипендия назначается приказом ректора.",
    "Общежитие находится на улице Ленина.",
    "Студентам общежития: заселение в общежитие начинается в августе.",
    "",
    "Расписание занятий: https://example.org/расписание & столовая | 'кавычки'",
]


def search_positions(engine: Engine, question: str, k: int = 10, configuration: str = "russian") -> list[int]:
    corpus = index_corpus(engine, configuration, TEXTS)
    return [position for position, _ in search_fulltext(engine, corpus, configuration, question, k)]


@pytest.mark.parametrize(
    ("question", "positions"),
    [
        ("Кто назначает стипендию?", [0]),  # another form of both words
        ("общежитие", [2, 1]),  # twice in the third text
        ("где ближайшее общежитие и почём стипендии", [2, 0, 1]),  # any word is enough
        ("ОБЩЕЖИТИЯ ЛЕНИНА", [1, 2]),  # two of its words
        ("столовая & кавычки | нет ! (", [4]),  # operators are treated as words
        ("'", []),
        ("и в на", []),  # stop words only
        ("", []),
        ("марсоход", []),
        ("漢字 🦔", []),
    ],
)
def test_search_ranks_matching_texts(engine: Engine, question: str, positions: list[int]) -> None:
    assert sorted(search_positions(engine, question)) == sorted(positions)
    assert search_positions(engine, question)[:1] == positions[:1]


def test_search_returns_at_most_k_best_first(engine: Engine) -> None:
    corpus = index_corpus(engine, "russian", TEXTS)
    ranks = [rank for _, rank in search_fulltext(engine, corpus, "russian", "общежитие стипендия столовая", 10)]
    assert ranks == sorted(ranks, reverse=True)
    assert len(search_positions(engine, "общежитие стипендия столовая", k=2)) == 2


def test_search_orders_equal_texts_by_position(engine: Engine) -> None:
    corpus = index_corpus(engine, "english", ["same words"] * 20)
    assert [position for position, _ in search_fulltext(engine, corpus, "english", "words", 5)] == [0, 1, 2, 3, 4]


def test_index_corpus_indexes_once_in_parallel(engine: Engine) -> None:
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


def test_corpus_name_depends_on_texts_language_and_order(engine: Engine) -> None:
    corpora = [(["a", "b"], "russian"), (["b", "a"], "russian"), (["ab"], "russian"), (["a", "b"], "english")]
    assert len({index_corpus(engine, configuration, texts) for texts, configuration in corpora}) == 4


def test_configurations_exist_in_postgresql(engine: Engine) -> None:
    for configuration in TEXT_SEARCH_CONFIGURATIONS.values():
        assert index_corpus(engine, configuration, ["слово word"])
