"""Loading rows into a source: idempotent, all rows or none, and reporting what was skipped."""

import threading
from typing import Any

import pytest
from sqlalchemy import Engine, text

from yarus.db import tables
from yarus.db.errors import InputError
from yarus.db.loading.load_rows import ImportedRows, IncomingRow, LoadCounts, load_rows
from yarus.db.source_rows import read_corpus, read_questions
from yarus.db.sources import find_loaded_source, open_snapshot, validate_source_name


def make_rows(
    *questions: dict[str, Any], chunks: tuple[dict[str, Any], ...] = (), labels: tuple[dict[str, Any], ...] = ()
) -> ImportedRows:
    """Return rows as an importer makes them, at places q0, q1 …, c0 …, a0 …."""
    return ImportedRows(
        questions=[IncomingRow(f"q{number}", values) for number, values in enumerate(questions)],
        chunks=[IncomingRow(f"c{number}", values) for number, values in enumerate(chunks)],
        annotations=[IncomingRow(f"a{number}", values) for number, values in enumerate(labels)],
    )


def make_question(id_: str, text: str = "Где столовая?") -> dict[str, Any]:
    return {"id": id_, "question": text}


def make_chunk(id_: str, passage: str = "Столовая в корпусе 1.") -> dict[str, Any]:
    return {"id": id_, "confluence_url": "https://c.example/1", "text": passage}


def make_label(question_id: str, answer: str = "В корпусе 1.", **values: Any) -> dict[str, Any]:
    return {"question_id": question_id, "ground_truth_answer": answer, "relevant_chunk_ids": ["c1"], **values}


def make_counts(read: int, added: int, updated: int = 0, skipped: int = 0) -> LoadCounts:
    return LoadCounts(read=read, added=added, updated=updated, skipped=skipped)


def read_all(engine: Engine, name: str) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    source = find_loaded_source(engine, name)
    with open_snapshot(source) as connection:
        corpus = read_corpus(connection, source, vectors=False)
        return read_questions(connection, source), corpus.ids, corpus.texts


def test_fill_twice_adds_nothing_and_counts_changes(engine: Engine) -> None:
    first = make_rows(make_question("q1"), make_question("q2"), chunks=(make_chunk("c1"),), labels=(make_label("q1"),))
    report = load_rows(engine, "twice", first, language="ru", origin="a file")
    assert (report.questions, report.chunks) == (make_counts(2, 2), make_counts(1, 1))
    report = load_rows(engine, "twice", first, language="ru", origin="a file")
    assert (report.questions, report.chunks) == (make_counts(2, 0), make_counts(1, 0))
    changed = make_rows(
        make_question("q1", "А где столовая?"),
        make_question("q2"),
        chunks=(make_chunk("c1", "Столовая в корпусе 2."),),
        labels=(make_label("q1"), make_label("q2")),
    )
    report = load_rows(engine, "twice", changed, language="ru", origin="a file")
    assert report.questions == make_counts(2, 0, updated=2)  # one by its text, one by its new label
    assert report.chunks == make_counts(1, 0, updated=1)


def test_fill_keeps_rows_missing_from_the_file(engine: Engine) -> None:
    load_rows(engine, "stay", make_rows(make_question("q1"), chunks=(make_chunk("c1"),)), language="ru", origin="1")
    load_rows(engine, "stay", make_rows(make_question("q2"), chunks=(make_chunk("c2"),)), language="ru", origin="2")
    questions, ids, _ = read_all(engine, "stay")
    assert ([row["question_id"] for row in questions], ids) == (["q1", "q2"], ["c1", "c2"])


def test_fill_stores_texts_and_labels_exactly(engine: Engine) -> None:
    passages = ("Ёж 🦔\tи\\N табуляция", "строка\nи ещё", "漢字 \\. конец", "{'json': \"нет\"}", "=1+1; DROP TABLE x")
    load_rows(
        engine,
        "exact",
        make_rows(
            make_question("q'1", passages[0]),
            chunks=tuple(make_chunk(f"c{number}", passage) for number, passage in enumerate(passages)),
            labels=(make_label("q'1", relevant_urls={"https://c.example/1": 2}, answerable=False, turn=3),),
        ),
        language="ru",
        origin="x",
    )
    questions, _, texts = read_all(engine, "exact")
    assert texts == list(passages)
    assert questions[0]["question"] == passages[0]
    assert (questions[0]["relevant_urls"], questions[0]["answerable"]) == ({"https://c.example/1": 2}, False)
    assert (questions[0]["turn"], questions[0]["score"]) == (3, None)


def test_fill_skips_and_names_rows_it_cannot_store(engine: Engine) -> None:
    rows = make_rows(
        make_question("q1"),
        make_question("q2", "  "),
        make_question("q1", "Та же?"),
        make_question("q4", "половина пары \ud83d"),
        make_question("q5"),
        chunks=(make_chunk("c1"), make_chunk("c2", "нуль \0"), make_chunk("c1", "другой"), make_chunk("c4", "")),
        labels=(make_label("q1"), make_label("q1", "второй раз"), make_label("q5", "нуль \0"), make_label("q9")),
    )
    report = load_rows(engine, "defects", rows, language="ru", origin="x")
    assert (report.questions, report.chunks) == (make_counts(5, 2, skipped=3), make_counts(4, 1, skipped=3))
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
    questions, _, texts = read_all(engine, "defects")
    assert [(row["question"], row["ground_truth_answer"]) for row in questions] == [
        ("Где столовая?", "В корпусе 1."),
        ("Где столовая?", None),
    ]
    assert texts == ["Столовая в корпусе 1."]


def test_fill_skips_the_label_of_a_skipped_duplicate(engine: Engine) -> None:
    rows = make_rows(
        make_question("q1"), make_question("q1", "Та же?"), labels=(make_label("q1"), make_label("q1", "чужой"))
    )
    rows.annotations = [
        IncomingRow(question.place, annotation.values)
        for question, annotation in zip(rows.questions, rows.annotations, strict=True)
    ]
    report = load_rows(engine, "duplicate", rows, language="ru", origin="x")
    assert report.problems == ["q1: skipped, id 'q1' was already at q0"]
    assert read_all(engine, "duplicate")[0][0]["ground_truth_answer"] == "В корпусе 1."


def test_fill_reports_twenty_of_many_problems(engine: Engine) -> None:
    report = load_rows(
        engine, "many", make_rows(*(make_question(f"q{n}", "") for n in range(30))), language="ru", origin="x"
    )
    assert (len(report.problems), report.problems[-1]) == (21, "and 10 more")


def test_fill_loads_all_rows_or_none(engine: Engine) -> None:
    broken = make_rows(make_question("q1"), chunks=(make_chunk("c1"),), labels=(make_label("q1", turn="третий"),))
    with pytest.raises(Exception, match="integer"):
        load_rows(engine, "whole", broken, language="ru", origin="x")
    with pytest.raises(InputError, match="no source 'whole'"):
        find_loaded_source(engine, "whole")
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT to_regclass('source_whole.chunk')")) is None


def test_fill_registers_no_source_without_rows(engine: Engine) -> None:
    load_rows(engine, "empty_file", ImportedRows(), language="ru", origin="x")
    with pytest.raises(InputError, match="no source 'empty_file'"):
        find_loaded_source(engine, "empty_file")


def test_fill_adds_each_row_once_in_parallel(engine: Engine) -> None:
    rows = make_rows(
        *(make_question(f"q{n}") for n in range(500)), chunks=tuple(make_chunk(f"c{n}") for n in range(500))
    )
    added: list[int] = []

    def load() -> None:
        added.append(load_rows(engine, "at_once", rows, language="ru", origin="x").questions.added)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [0, 0, 0, 500]


def test_fill_creates_tables_shaped_as_in_production(engine: Engine) -> None:
    load_rows(engine, "shaped", make_rows(make_question("q1")), language="ru", origin="x")
    columns = text(
        "SELECT table_name, column_name, udt_name FROM information_schema.columns WHERE table_schema = 'source_shaped'"
    )
    with engine.connect() as connection:
        types_by_column = {(row[0], row[1]): row[2] for row in connection.execute(columns)}
    for name in tables.REQUIRED_TABLES:
        for column in tables.source_tables(None)[name].columns:
            assert (name, column.name) in types_by_column
    assert types_by_column["chunk", "embedding"] == types_by_column["question_answer", "embedding"] == "vector"


@pytest.mark.parametrize("name", ["", "Большой", "1st", "a-b", "a b", 'a"; DROP', "A", "a" * 41, "production"])
def test_fill_rejects_an_invalid_source_name(engine: Engine, name: str) -> None:
    with pytest.raises(InputError, match="source name") as refused:
        load_rows(engine, name, ImportedRows(), language="ru", origin="x")
    assert repr(name) in str(refused.value)


@pytest.mark.parametrize("name", ["a", "xquad_ru", "a" * 40, "z9"])
def test_validate_source_name_accepts_valid_names(name: str) -> None:
    assert validate_source_name(name) == name
