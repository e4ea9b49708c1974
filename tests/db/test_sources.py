"""Reading sources, loaded or in production, by the same queries in one snapshot, without assumptions about them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from tests.support.database.dumps import run_statements
from yarus.db.engine import read_only_engine
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.source_rows import Corpus, read_corpus, read_questions
from yarus.db.sources import Source, find_loaded_source, open_snapshot
from yarus.db.tables import source_tables
from yarus.tasks.cases.outcomes import reference_answer

Production = Callable[..., str]


def open_production(url: str, **mapping: Any) -> Source:
    return Source("production", "production", "ru", read_only_engine(url, timeout_s=5), source_tables(None, **mapping))


def read_all_questions(source: Source) -> list[dict[str, Any]]:
    with open_snapshot(source) as connection:
        return read_questions(connection, source)


def read_whole_corpus(source: Source, *, vectors: bool = False) -> Corpus:
    with open_snapshot(source) as connection:
        return read_corpus(connection, source, vectors=vectors)


@pytest.fixture(scope="session")
def plain_url(production: Production) -> str:
    return production("plain")


def test_rows_are_sorted_by_id_with_text_ids(plain_url: str) -> None:
    source = open_production(plain_url)
    questions = read_all_questions(source)
    assert [row["question_id"] for row in questions] == ["1", "2", "3", "4"]
    assert (questions[2]["question"], questions[2]["score"]) == ("Кому назначается стипендия?", 5)
    assert read_whole_corpus(source).ids == ["8", "9", "10"]  # by number, not by text
    assert read_whole_corpus(source, vectors=True).vectors is None


def test_rows_without_question_or_text_are_skipped(production: Production) -> None:
    source = open_production(
        production(
            "blanks",
            "INSERT INTO question_answer (id, question) VALUES (5, NULL), (6, ''), (7, E' \\n\\t')",
            "INSERT INTO chunk (id) VALUES (1)",
        )
    )
    assert (len(read_all_questions(source)), len(read_whole_corpus(source).ids)) == (4, 3)


def test_read_corpus_returns_exact_vectors_and_nan_for_null(production: Production) -> None:
    source = open_production(production("vectors", "UPDATE chunk SET embedding = '[0.1, -2.5e-3, 1e10]' WHERE id <> 9"))
    expected = np.array([0.1, -2.5e-3, 1e10], dtype=np.float32)
    vectors = read_whole_corpus(source, vectors=True).vectors
    assert vectors is not None
    np.testing.assert_array_equal(vectors, [expected, [np.nan] * 3, expected])


def test_read_corpus_rejects_vectors_of_mixed_dimensions(production: Production) -> None:
    url = production(
        "mixed",
        "UPDATE chunk SET embedding = '[1, 2, 3]'",
        "UPDATE chunk SET embedding = '[1, 2]' WHERE id = 9",
    )
    with pytest.raises(InputError, match="different numbers of dimensions") as refused:
        read_whole_corpus(open_production(url), vectors=True)
    assert "2 (chunk 9), 3 (chunk 8)" in str(refused.value)
    assert "--vectors computed" in str(refused.value)
    assert read_whole_corpus(open_production(url)).vectors is None  # not read unless requested


def test_missing_table_error_names_nearest_and_setting(production: Production) -> None:
    source = open_production(production("renamed", "ALTER TABLE question_answer RENAME TO questions_answers"))
    with pytest.raises(InputError) as refused:
        read_all_questions(source)
    for words in ("'question_answer'", "'questions_answers'", "YARUS_SOURCE_TABLES__QUESTION_ANSWER=NAME"):
        assert words in str(refused.value)


def test_missing_column_error_names_nearest_and_setting(production: Production) -> None:
    source = open_production(production("other_column", "ALTER TABLE chunk RENAME text TO texts"))
    with pytest.raises(InputError) as refused:
        read_whole_corpus(source)
    for words in ("'text'", "'chunk'", "'texts'", "YARUS_SOURCE_COLUMNS__CHUNK__TEXT=NAME"):
        assert words in str(refused.value)


def test_source_tables_maps_tables_and_columns(production: Production) -> None:
    url = production(
        "mapped",
        'CREATE SCHEMA "Журнал"',
        'ALTER TABLE question_answer SET SCHEMA "Журнал"',
        'ALTER TABLE "Журнал".question_answer RENAME TO "Вопросы"',
        'ALTER TABLE "Журнал"."Вопросы" RENAME question TO "the text"',
        "ALTER TABLE chunk RENAME id TO key",
    )
    mapping = {
        "names": {"question_answer": "Журнал.Вопросы"},
        "columns": {"question_answer": {"question": "the text"}, "chunk": {"id": "key"}},
    }
    assert [row["question"] for row in read_all_questions(open_production(url, **mapping))][3] == "Кто ректор?"
    assert read_whole_corpus(open_production(url, **mapping)).ids == ["8", "9", "10"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"names": {"questions": "log"}}, "no source table 'questions'; did you mean 'question_answer'?"),
        ({"columns": {"chunks": {"text": "body"}}}, "no source table 'chunks'; did you mean 'chunk'?"),
        ({"columns": {"chunk": {"txt": "body"}}}, "no column of chunk: 'txt'; did you mean 'text'?"),
    ],
)
def test_source_tables_rejects_unknown_names(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        source_tables(None, **mapping)
    assert message in str(refused.value)


def test_reading_rejects_a_view_with_duplicate_ids(production: Production) -> None:
    view_template = "CREATE VIEW twice AS SELECT * FROM {0} UNION ALL SELECT * FROM {0} WHERE id IN (3, 9)"
    url = production(
        "twice",
        view_template.format("chunk"),
        "CREATE SCHEMA q",
        view_template.format("question_answer").replace("twice", "q.twice", 1),
    )
    run_statements(
        url, "CREATE ROLE twice LOGIN", "GRANT USAGE ON SCHEMA q TO twice", "GRANT SELECT ON twice, q.twice TO twice"
    )
    source = open_production(url.replace("yarus@", "twice@"), names={"chunk": "twice", "question_answer": "q.twice"})
    with pytest.raises(InputError, match=r"id '9' stands 2 times in 'twice'"):
        read_whole_corpus(source)
    with pytest.raises(InputError, match=r"id '3' stands 2 times in 'q.twice'"):
        read_all_questions(source)


def test_annotations_join_ids_of_another_type(production: Production) -> None:
    url = production(
        "annotated",
        """CREATE TABLE annotation (question_id text, ground_truth_answer text, relevant_chunk_ids jsonb,
           relevant_urls jsonb, ground_truth_show boolean, answerable boolean, cluster text, dialog_id text,
           turn integer, origin text)""",
        "INSERT INTO annotation (question_id, relevant_chunk_ids, origin) VALUES ('3', '[10]', 'manual')",
    )
    assert [row["relevant_chunk_ids"] for row in read_all_questions(open_production(url))] == [None, None, [10], None]


def test_annotations_need_only_one_label_column(production: Production) -> None:
    """One label column is enough, without an origin; a mapped column must exist."""
    url = production(
        "one_label",
        "CREATE TABLE annotation (question_id bigint, ground_truth_answer text, reviewer text)",
        "INSERT INTO annotation VALUES (1, 'На улице Ленина.', 'Анна'), (3, NULL, 'Анна')",
    )
    rows = read_all_questions(open_production(url))
    assert [reference_answer(row) for row in rows] == ["На улице Ленина.", None, "Студентам.", None]
    mapped = open_production(url, columns={"annotation": {"relevant_urls": "pages"}})
    with pytest.raises(InputError, match=r"no column.*'pages'.*ANNOTATION__RELEVANT_URLS=NAME"):
        read_all_questions(mapped)


def test_annotations_without_label_columns_are_rejected(production: Production) -> None:
    source = open_production(production("no_label", "CREATE TABLE annotation (question_id bigint, note text)"))
    with pytest.raises(InputError, match="ANNOTATION__GROUND_TRUTH_ANSWER=NAME"):
        read_all_questions(source)


def test_column_of_another_type_reports_the_database_error(production: Production) -> None:
    source = open_production(production("typed", "ALTER TABLE chunk ALTER embedding TYPE real[] USING NULL"))
    with pytest.raises(InputError, match=r"vector_send\(real\[\]\) does not exist.*YARUS_SOURCE_COLUMNS"):
        read_whole_corpus(source, vectors=True)


@pytest.mark.parametrize(("kind", "type_name"), [("text", "TEXT"), ("boolean", "BOOLEAN")])
def test_score_column_must_be_numeric(production: Production, kind: str, type_name: str) -> None:
    source = open_production(
        production(f"score_{kind}", f"ALTER TABLE question_answer ALTER score TYPE {kind} USING NULL")
    )
    with pytest.raises(InputError, match=rf"'score' of 'question_answer' is {type_name}, not INTEGER.*__SCORE=NAME"):
        read_all_questions(source)


@pytest.mark.parametrize("kind", ["numeric", "real", "double precision"])
def test_fractional_score_is_read_as_none(production: Production, kind: str) -> None:
    """Expect None: a rounded score would be a verdict that nobody gave."""
    url = production(
        f"fraction_{kind.split()[0]}",
        f"ALTER TABLE question_answer ALTER score TYPE {kind}",
        "UPDATE question_answer SET score = 4.5 WHERE id = 1",
        "UPDATE question_answer SET score = 'NaN' WHERE id = 4",
    )
    scores = [row["score"] for row in read_all_questions(open_production(url))]
    assert scores == [None, 1, 5, None]
    assert [type(score) for score in scores[1:3]] == [int, int]


def test_columns_of_other_types_are_converted(production: Production) -> None:
    """A page number becomes an address, codes become texts, and a date becomes midnight UTC."""
    url = production(
        "other_types",
        "ALTER TABLE question_answer ALTER answer TYPE bigint USING id, ALTER created_at TYPE date USING '2026-03-05'",
        "ALTER TABLE question_answer ALTER question TYPE integer USING id, ADD page_id bigint DEFAULT 42",
        "ALTER TABLE chunk ALTER text TYPE integer USING id, ADD page_id bigint DEFAULT 42",
        "CREATE TABLE annotation (question_id integer, ground_truth_answer integer, relevant_chunk_ids jsonb, "
        "relevant_urls jsonb, ground_truth_show boolean, answerable boolean, cluster integer, dialog_id bigint, "
        "turn numeric, origin varchar)",
        "INSERT INTO annotation (question_id, ground_truth_answer, cluster, dialog_id, turn) VALUES (3, 7, 8, 9, 2)",
        "ALTER DATABASE other_types SET timezone TO 'Asia/Tokyo'",
    )
    page = {"confluence_url": "page_id"}
    source = open_production(url, columns={"question_answer": page, "chunk": page})
    row = read_all_questions(source)[2]
    assert (row["question"], row["answer"], row["confluence_url"], row["user_id"]) == ("3", "3", "42", "7")
    assert row["created_at"] == datetime(2026, 3, 5, tzinfo=UTC)
    assert (row["ground_truth_answer"], row["cluster"], row["dialog_id"], row["turn"]) == ("7", "8", "9", 2)
    corpus = read_whole_corpus(source)
    assert (corpus.texts, corpus.urls) == (["8", "9", "10"], ["42"] * 3)


def test_time_without_a_zone_stays_naive(plain_url: str) -> None:
    assert read_all_questions(open_production(plain_url))[0]["created_at"].tzinfo is None


def test_foreign_table_named_annotation_is_ignored(production: Production) -> None:
    source = open_production(production("other_annotation", "CREATE TABLE annotation (id integer, note text)"))
    assert "origin" not in read_all_questions(source)[0]


def test_snapshot_forbids_writes_and_long_statements(plain_url: str) -> None:
    source = open_production(plain_url)
    with pytest.raises(InputError, match="read-only transaction"), open_snapshot(source) as connection:
        connection.execute(text("DELETE FROM chunk"))
    slow = Source("production", "production", "ru", read_only_engine(plain_url, timeout_s=0.05), source.tables)
    with pytest.raises(DatabaseUnavailable, match="statement timeout"), open_snapshot(slow) as connection:
        connection.execute(text("SELECT pg_sleep(5)"))


def test_snapshot_hides_concurrent_writes(production: Production) -> None:
    url = production("moving")
    source, writer = open_production(url), create_engine(url)
    with open_snapshot(source) as connection:
        before = read_questions(connection, source)
        with writer.begin() as concurrent:
            concurrent.execute(text("DELETE FROM chunk"))
        assert len(read_corpus(connection, source, vectors=False).ids) == 3
    writer.dispose()
    assert (len(before), read_whole_corpus(source).ids) == (4, [])


def test_find_loaded_source_suggests_the_nearest(engine: Any, xquad_source: str) -> None:
    with pytest.raises(InputError, match=f"no source 'xquad_r'; did you mean '{xquad_source}'"):
        find_loaded_source(engine, "xquad_r")


def test_column_recorded_is_read_only_if_it_is_json(production: Production) -> None:
    timestamp_url = production("timed", "ALTER TABLE question_answer ADD COLUMN recorded timestamptz DEFAULT now()")
    assert "recorded" not in read_all_questions(open_production(timestamp_url))[0]
    json_url = production(
        "traced", "ALTER TABLE question_answer ADD COLUMN recorded json DEFAULT '{\"latency_ms\": 7}'"
    )
    assert read_all_questions(open_production(json_url))[0]["recorded"] == {"latency_ms": 7}
