"""Whose column is which of ours: by name and content, and never by guessing."""

from collections.abc import Sequence
from typing import Any

import pytest

from db.importers.recognise import propose

Rows = list[dict[str, Any]]


def rows(*names: str, of: Sequence[Sequence[Any]]) -> Rows:
    return [dict(zip(names, row, strict=True)) for row in of]


URL = "https://wiki.example/pages/viewpage.action?pageId=7"
RUSSIAN = rows(
    "№", "Дата", "Пользователь", "Вопрос", "Ответ", "Ссылка", "Оценка", "Канал",
    of=[
        (1, "18.08.2025 06:32", "u1", "Где справка?", "В деканате.", URL, "5", "vk"),
        (2, "18.08.2025 7:15", "u2", "Когда стипендия?", "", "", "", "vk"),
        (3, "19.08.2025", "u1", "Кто ректор?", "Иванов.", URL, "1", "tg"),
    ],
)  # fmt: skip
ENGLISH = rows(
    "messageId", "userQuery", "botResponse", "pageUrl", "rating", "createdAt",
    of=[("a", "Where is it?", "Here.", URL, 5, "2026-01-01T10:00:00Z"), ("b", "When?", "Now.", URL, 2, "2026-01-02")],
)  # fmt: skip


@pytest.mark.parametrize(
    ("table", "kind", "mapping", "unused"),
    [
        (RUSSIAN, "questions", {
            "id": "№", "question": "Вопрос", "answer": "Ответ", "confluence_url": "Ссылка", "score": "Оценка",
            "user_id": "Пользователь", "created_at": "Дата",
        }, ["Канал"]),
        (ENGLISH, "questions", {
            "id": "messageId", "question": "userQuery", "answer": "botResponse", "confluence_url": "pageUrl",
            "score": "rating", "created_at": "createdAt",
        }, []),
        (rows("url", "title", "content", of=[(URL, "A", "text " * 90)]), "chunks",
         {"confluence_url": "url", "text": "content", "page_title": "title"}, []),
        (rows("Вопрос", "куда", "когда", of=[("Где?", URL, "2026-01-01"), ("Как?", URL, "2026-01-02")]), "questions",
         {"question": "Вопрос", "confluence_url": "куда", "created_at": "когда"}, []),
        (rows("a", "b", of=[("x", "y")]), None, {}, ["a", "b"]),
    ],
    ids=["Russian", "English in camel case", "pages", "by content", "nothing that is known"],
)  # fmt: skip
def test_columns_are_told(table: Rows, kind: str | None, mapping: dict[str, str], unused: list[str]) -> None:
    found = propose(list(table[0]), table)
    assert (found.kind, found.mapping, found.doubtful, found.unused) == (kind, mapping, {}, unused)


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([5, 1, 3], True),
        (["5", "", "1"], True),
        ([0, 1, 1], False),  # where 1 is good: it would be read as the worst
        ([-1, 1, 1], False),
        (["👍", "👎", "👍"], False),
        ([10, 7, 5], False),
        ([1, 2, 1], False),  # perhaps of two
    ],
)
def test_a_score_of_another_scale_is_not_taken_for_ours(scores: list[Any], told: bool) -> None:
    table = rows("question", "оценка", of=[(f"{n}?", score) for n, score in enumerate(scores)])
    found = propose(["question", "оценка"], table)
    assert ("score" in found.mapping, found.doubtful) == (told, {} if told else {"score": ["оценка"]})


def test_of_several_that_could_be_it_none_is_taken() -> None:
    table = rows("вопрос", "ответ_системы", "ответ_бота", of=[("Где?", "тут", "там")])
    found = propose(list(table[0]), table)
    assert "answer" not in found.mapping
    assert found.doubtful == {"answer": ["ответ_бота", "ответ_системы"]}
    links = rows("вопрос", "a", "b", of=[("Где?", URL, URL)])
    assert propose(list(links[0]), links).doubtful == {"confluence_url": ["a", "b"]}


def test_ids_that_come_twice_are_none() -> None:
    table = rows("id", "question", of=[(7, "Где?"), (7, "Как?")])
    assert propose(["id", "question"], table).doubtful == {"id": ["id"]}
