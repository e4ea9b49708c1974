"""Filling a source: idempotent, whole or not at all, and honest about what was left out."""

import threading
from typing import Any

import pytest
from sqlalchemy import Engine, text

from yarus.db import tables
from yarus.db.errors import InputError
from yarus.db.loading.fill import Counts, Row, Rows, fill
from yarus.db.source_rows import read_corpus, read_questions
from yarus.db.sources import checked_name, loaded, snapshot


def rows(
    *questions: dict[str, Any], chunks: tuple[dict[str, Any], ...] = (), labels: tuple[dict[str, Any], ...] = ()
) -> Rows:
    """Rows as an importer makes them, at places q0, q1 …, c0 …, a0 …."""
    return Rows(
        questions=[Row(f"q{number}", values) for number, values in enumerate(questions)],
        chunks=[Row(f"c{number}", values) for number, values in enumerate(chunks)],
        annotations=[Row(f"a{number}", values) for number, values in enumerate(labels)],
    )


def question(name: str, asked: str = "Где столовая?") -> dict[str, Any]:
    return {"id": name, "question": asked}


def chunk(name: str, passage: str = "Столовая в корпусе 1.") -> dict[str, Any]:
    return {"id": name, "confluence_url": "https://c.example/1", "text": passage}


def label(name: str, answer: str = "В корпусе 1.", **values: Any) -> dict[str, Any]:
    return {"question_id": name, "ground_truth_answer": answer, "relevant_chunk_ids": ["c1"], **values}


def counts(read: int, added: int, updated: int = 0, skipped: int = 0) -> Counts:
    return Counts(read=read, added=added, updated=updated, skipped=skipped)


def everything(engine: Engine, name: str) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    where = loaded(engine, name)
    with snapshot(where) as connection:
        corpus = read_corpus(connection, where, vectors=False)
        return read_questions(connection, where), corpus.ids, corpus.texts


def test_a_second_time_adds_nothing_and_changes_say_so(engine: Engine) -> None:
    first = rows(question("q1"), question("q2"), chunks=(chunk("c1"),), labels=(label("q1"),))
    report = fill(engine, "twice", first, language="ru", origin="a file")
    assert (report.questions, report.chunks) == (counts(2, 2), counts(1, 1))
    report = fill(engine, "twice", first, language="ru", origin="a file")
    assert (report.questions, report.chunks) == (counts(2, 0), counts(1, 0))
    changed = rows(
        question("q1", "А где столовая?"),
        question("q2"),
        chunks=(chunk("c1", "Столовая в корпусе 2."),),
        labels=(label("q1"), label("q2")),
    )
    report = fill(engine, "twice", changed, language="ru", origin="a file")
    assert report.questions == counts(2, 0, updated=2)  # one by its text, one by its new label
    assert report.chunks == counts(1, 0, updated=1)


def test_rows_that_are_not_in_the_file_stay(engine: Engine) -> None:
    fill(engine, "stay", rows(question("q1"), chunks=(chunk("c1"),)), language="ru", origin="1")
    fill(engine, "stay", rows(question("q2"), chunks=(chunk("c2"),)), language="ru", origin="2")
    questions, ids, _ = everything(engine, "stay")
    assert ([row["question_id"] for row in questions], ids) == (["q1", "q2"], ["c1", "c2"])


def test_what_is_read_back_is_what_was_loaded(engine: Engine) -> None:
    passages = ("Ёж 🦔\tи\\N табуляция", "строка\nи ещё", "漢字 \\. конец", "{'json': \"нет\"}", "=1+1; DROP TABLE x")
    fill(
        engine,
        "exact",
        rows(
            question("q'1", passages[0]),
            chunks=tuple(chunk(f"c{number}", passage) for number, passage in enumerate(passages)),
            labels=(label("q'1", relevant_urls={"https://c.example/1": 2}, answerable=False, turn=3),),
        ),
        language="ru",
        origin="x",
    )
    questions, _, texts = everything(engine, "exact")
    assert texts == list(passages)
    assert questions[0]["question"] == passages[0]
    assert (questions[0]["relevant_urls"], questions[0]["answerable"]) == ({"https://c.example/1": 2}, False)
    assert (questions[0]["turn"], questions[0]["score"]) == (3, None)


def test_rows_that_cannot_be_stored_are_left_out_by_name(engine: Engine) -> None:
    given = rows(
        question("q1"),
        question("q2", "  "),
        question("q1", "Та же?"),
        question("q4", "половина пары \ud83d"),
        question("q5"),
        chunks=(chunk("c1"), chunk("c2", "нуль \0"), chunk("c1", "другой"), chunk("c4", "")),
        labels=(label("q1"), label("q1", "второй раз"), label("q5", "нуль \0"), label("q9")),
    )
    report = fill(engine, "defects", given, language="ru", origin="x")
    assert (report.questions, report.chunks) == (counts(5, 2, skipped=3), counts(4, 1, skipped=3))
    reasons = {
        "c1": "NUL",
        "c2": "'c1' was already at c0",
        "c3": "no text",
        "q1": "no question",
        "q2": "'q1' was already at q0",
        "q3": "surrogate",
        "a1": "'q1' was already at a0",
        "a2": "NUL",
        "a3": "'q9'",
    }
    problems = dict(problem.split(": skipped, ", 1) for problem in report.problems)
    assert problems.keys() == reasons.keys()
    for place, reason in reasons.items():
        assert reason in problems[place]
    questions, _, texts = everything(engine, "defects")
    assert [(row["question"], row["ground_truth_answer"]) for row in questions] == [
        ("Где столовая?", "В корпусе 1."),
        ("Где столовая?", None),
    ]
    assert texts == ["Столовая в корпусе 1."]


def test_the_label_of_a_skipped_duplicate_is_not_the_first_ones(engine: Engine) -> None:
    given = rows(question("q1"), question("q1", "Та же?"), labels=(label("q1"), label("q1", "чужой")))
    given.annotations = [
        Row(question.place, values.values) for question, values in zip(given.questions, given.annotations, strict=True)
    ]
    report = fill(engine, "duplicate", given, language="ru", origin="x")
    assert report.problems == ["q1: skipped, id 'q1' was already at q0"]
    assert everything(engine, "duplicate")[0][0]["ground_truth_answer"] == "В корпусе 1."


def test_of_many_problems_twenty_are_shown(engine: Engine) -> None:
    report = fill(engine, "many", rows(*(question(f"q{n}", "") for n in range(30))), language="ru", origin="x")
    assert (len(report.problems), report.problems[-1]) == (21, "and 10 more")


def test_it_is_loaded_whole_or_not_at_all(engine: Engine) -> None:
    broken = rows(question("q1"), chunks=(chunk("c1"),), labels=(label("q1", turn="третий"),))
    with pytest.raises(Exception, match="integer"):
        fill(engine, "whole", broken, language="ru", origin="x")
    with pytest.raises(InputError, match="no source 'whole'"):
        loaded(engine, "whole")
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT to_regclass('source_whole.chunk')")) is None


def test_nothing_is_registered_where_nothing_was_loaded(engine: Engine) -> None:
    fill(engine, "empty_file", Rows(), language="ru", origin="x")
    with pytest.raises(InputError, match="no source 'empty_file'"):
        loaded(engine, "empty_file")


def test_two_at_once_add_every_row_once(engine: Engine) -> None:
    given = rows(*(question(f"q{n}") for n in range(500)), chunks=tuple(chunk(f"c{n}") for n in range(500)))
    added: list[int] = []

    def load() -> None:
        added.append(fill(engine, "at_once", given, language="ru", origin="x").questions.added)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [0, 0, 0, 500]


def test_the_tables_are_shaped_as_in_production(engine: Engine) -> None:
    fill(engine, "shaped", rows(question("q1")), language="ru", origin="x")
    columns = text(
        "SELECT table_name, column_name, udt_name FROM information_schema.columns WHERE table_schema = 'source_shaped'"
    )
    with engine.connect() as connection:
        there = {(row[0], row[1]): row[2] for row in connection.execute(columns)}
    for name in tables.REQUIRED:
        for column in tables.source_tables(None)[name].columns:
            assert (name, column.name) in there
    assert there["chunk", "embedding"] == there["question_answer", "embedding"] == "vector"


@pytest.mark.parametrize("name", ["", "Большой", "1st", "a-b", "a b", 'a"; DROP', "A", "a" * 41, "production"])
def test_a_name_that_a_source_cannot_have(engine: Engine, name: str) -> None:
    with pytest.raises(InputError, match="source name") as refused:
        fill(engine, name, Rows(), language="ru", origin="x")
    assert repr(name) in str(refused.value)


@pytest.mark.parametrize("name", ["a", "xquad_ru", "a" * 40, "z9"])
def test_a_name_that_a_source_can_have(name: str) -> None:
    assert checked_name(name) == name
