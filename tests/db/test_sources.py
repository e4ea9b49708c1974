"""Reading a source: loaded or in production, by the same queries, in one snapshot, and nothing taken for granted."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from tests.support.database.dumps import alter
from yarus.db.engine import read_only
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.source_rows import Corpus, read_corpus, read_questions
from yarus.db.sources import Source, loaded, snapshot
from yarus.db.tables import source_tables
from yarus.tasks.cases.outcomes import reference_of

Production = Callable[..., str]


def opened(url: str, **mapping: Any) -> Source:
    return Source("production", "production", "ru", read_only(url, timeout_s=5), source_tables(None, **mapping))


def questions(source: Source) -> list[dict[str, Any]]:
    with snapshot(source) as connection:
        return read_questions(connection, source)


def corpus(source: Source, *, vectors: bool = False) -> Corpus:
    with snapshot(source) as connection:
        return read_corpus(connection, source, vectors=vectors)


@pytest.fixture(scope="session")
def plain(production: Production) -> str:
    return production("plain")


def test_rows_come_by_id_and_ids_become_text(plain: str) -> None:
    source = opened(plain)
    asked = questions(source)
    assert [row["question_id"] for row in asked] == ["1", "2", "3", "4"]
    assert (asked[2]["question"], asked[2]["score"]) == ("Кому назначается стипендия?", 5)
    assert corpus(source).ids == ["8", "9", "10"]  # by number, not by text
    assert corpus(source, vectors=True).vectors is None


def test_a_row_without_a_question_or_a_text_is_none(production: Production) -> None:
    source = opened(
        production(
            "blanks",
            "INSERT INTO question_answer (id, question) VALUES (5, NULL), (6, ''), (7, E' \\n\\t')",
            "INSERT INTO chunk (id) VALUES (1)",
        )
    )
    assert (len(questions(source)), len(corpus(source).ids)) == (4, 3)


def test_stored_vectors_are_read_exactly_and_null_is_nan(production: Production) -> None:
    source = opened(production("vectors", "UPDATE chunk SET embedding = '[0.1, -2.5e-3, 1e10]' WHERE id <> 9"))
    expected = np.array([0.1, -2.5e-3, 1e10], dtype=np.float32)
    found = corpus(source, vectors=True).vectors
    assert found is not None
    np.testing.assert_array_equal(found, [expected, [np.nan] * 3, expected])


def test_vectors_of_mixed_dimension_are_refused_with_an_example_of_each(production: Production) -> None:
    url = production(
        "mixed",
        "UPDATE chunk SET embedding = '[1, 2, 3]'",
        "UPDATE chunk SET embedding = '[1, 2]' WHERE id = 9",
    )
    with pytest.raises(InputError, match="different numbers of dimensions") as refused:
        corpus(opened(url), vectors=True)
    assert "2 (chunk 9), 3 (chunk 8)" in str(refused.value)
    assert "--vectors computed" in str(refused.value)
    assert corpus(opened(url)).vectors is None  # and not read where they are not asked for


def test_a_missing_table_is_named_with_the_nearest_and_its_setting(production: Production) -> None:
    source = opened(production("renamed", "ALTER TABLE question_answer RENAME TO questions_answers"))
    with pytest.raises(InputError) as refused:
        questions(source)
    for words in ("'question_answer'", "'questions_answers'", "YARUS_SOURCE_TABLES__QUESTION_ANSWER=NAME"):
        assert words in str(refused.value)


def test_a_missing_column_is_named_with_the_nearest_and_its_setting(production: Production) -> None:
    source = opened(production("other_column", "ALTER TABLE chunk RENAME text TO texts"))
    with pytest.raises(InputError) as refused:
        corpus(source)
    for words in ("'text'", "'chunk'", "'texts'", "YARUS_SOURCE_COLUMNS__CHUNK__TEXT=NAME"):
        assert words in str(refused.value)


def test_tables_and_columns_can_be_mapped(production: Production) -> None:
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
    assert [row["question"] for row in questions(opened(url, **mapping))][3] == "Кто ректор?"
    assert corpus(opened(url, **mapping)).ids == ["8", "9", "10"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"names": {"questions": "log"}}, "no source table 'questions'; did you mean 'question_answer'?"),
        ({"columns": {"chunks": {"text": "body"}}}, "no source table 'chunks'; did you mean 'chunk'?"),
        ({"columns": {"chunk": {"txt": "body"}}}, "no column of chunk: 'txt'; did you mean 'text'?"),
    ],
)
def test_a_mapping_of_nothing_is_refused(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        source_tables(None, **mapping)
    assert message in str(refused.value)


def test_a_view_without_unique_ids_is_refused(production: Production) -> None:
    twice = "CREATE VIEW twice AS SELECT * FROM {0} UNION ALL SELECT * FROM {0} WHERE id IN (3, 9)"
    url = production(
        "twice",
        twice.format("chunk"),
        "CREATE SCHEMA q",
        twice.format("question_answer").replace("twice", "q.twice", 1),
    )
    alter(url, "CREATE ROLE twice LOGIN", "GRANT USAGE ON SCHEMA q TO twice", "GRANT SELECT ON twice, q.twice TO twice")
    source = opened(url.replace("yarus@", "twice@"), names={"chunk": "twice", "question_answer": "q.twice"})
    with pytest.raises(InputError, match=r"id '9' stands 2 times in 'twice'"):
        corpus(source)
    with pytest.raises(InputError, match=r"id '3' stands 2 times in 'q.twice'"):
        questions(source)


def test_annotations_of_a_production_database_join_whatever_the_type_of_the_id(production: Production) -> None:
    url = production(
        "annotated",
        """CREATE TABLE annotation (question_id text, ground_truth_answer text, relevant_chunk_ids jsonb,
           relevant_urls jsonb, ground_truth_show boolean, answerable boolean, cluster text, dialog_id text,
           turn integer, origin text)""",
        "INSERT INTO annotation (question_id, relevant_chunk_ids, origin) VALUES ('3', '[10]', 'manual')",
    )
    assert [row["relevant_chunk_ids"] for row in questions(opened(url))] == [None, None, [10], None]


def test_annotations_count_without_other_columns(production: Production) -> None:
    """Neither an origin nor any other label is needed beside one; what the settings map must be there."""
    url = production(
        "one_label",
        "CREATE TABLE annotation (question_id bigint, ground_truth_answer text, reviewer text)",
        "INSERT INTO annotation VALUES (1, 'На улице Ленина.', 'Анна'), (3, NULL, 'Анна')",
    )
    rows = questions(opened(url))
    assert [reference_of(row) for row in rows] == ["На улице Ленина.", None, "Студентам.", None]
    mapped = opened(url, columns={"annotation": {"relevant_urls": "pages"}})
    with pytest.raises(InputError, match=r"no column.*'pages'.*ANNOTATION__RELEVANT_URLS=NAME"):
        questions(mapped)


def test_annotations_without_any_label_are_refused(production: Production) -> None:
    source = opened(production("no_label", "CREATE TABLE annotation (question_id bigint, note text)"))
    with pytest.raises(InputError, match="ANNOTATION__GROUND_TRUTH_ANSWER=NAME"):
        questions(source)


def test_a_column_of_another_type_is_refused_with_the_databases_words(production: Production) -> None:
    source = opened(production("typed", "ALTER TABLE chunk ALTER embedding TYPE real[] USING NULL"))
    with pytest.raises(InputError, match=r"vector_send\(real\[\]\) does not exist.*YARUS_SOURCE_COLUMNS"):
        corpus(source, vectors=True)


@pytest.mark.parametrize(("kind", "shown"), [("text", "TEXT"), ("boolean", "BOOLEAN")])
def test_a_score_that_is_no_number_is_refused(production: Production, kind: str, shown: str) -> None:
    source = opened(production(f"score_{kind}", f"ALTER TABLE question_answer ALTER score TYPE {kind} USING NULL"))
    with pytest.raises(InputError, match=rf"'score' of 'question_answer' is {shown}, not INTEGER.*__SCORE=NAME"):
        questions(source)


@pytest.mark.parametrize("kind", ["numeric", "real", "double precision"])
def test_a_score_that_is_not_whole_is_none(production: Production, kind: str) -> None:
    """Neither rounded nor cut to a verdict."""
    url = production(
        f"fraction_{kind.split()[0]}",
        f"ALTER TABLE question_answer ALTER score TYPE {kind}",
        "UPDATE question_answer SET score = 4.5 WHERE id = 1",
        "UPDATE question_answer SET score = 'NaN' WHERE id = 4",
    )
    scores = [row["score"] for row in questions(opened(url))]
    assert scores == [None, 1, 5, None]
    assert [type(score) for score in scores[1:3]] == [int, int]


def test_columns_of_other_types_are_read_as_ours(production: Production) -> None:
    """A page's number for its address, codes for texts, a day for a moment, which begins at midnight UTC."""
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
    source = opened(url, columns={"question_answer": page, "chunk": page})
    row = questions(source)[2]
    assert (row["question"], row["answer"], row["confluence_url"], row["user_id"]) == ("3", "3", "42", "7")
    assert row["created_at"] == datetime(2026, 3, 5, tzinfo=UTC)
    assert (row["ground_truth_answer"], row["cluster"], row["dialog_id"], row["turn"]) == ("7", "8", "9", 2)
    found = corpus(source)
    assert (found.texts, found.urls) == (["8", "9", "10"], ["42"] * 3)


def test_a_time_without_a_zone_stays_without(plain: str) -> None:
    assert questions(opened(plain))[0]["created_at"].tzinfo is None


def test_another_table_of_the_name_annotation_is_not_ours(production: Production) -> None:
    source = opened(production("other_annotation", "CREATE TABLE annotation (id integer, note text)"))
    assert "origin" not in questions(source)[0]


def test_nothing_can_be_written_and_long_statements_end(plain: str) -> None:
    source = opened(plain)
    with pytest.raises(InputError, match="read-only transaction"), snapshot(source) as connection:
        connection.execute(text("DELETE FROM chunk"))
    slow = Source("production", "production", "ru", read_only(plain, timeout_s=0.05), source.tables)
    with pytest.raises(DatabaseUnavailable, match="statement timeout"), snapshot(slow) as connection:
        connection.execute(text("SELECT pg_sleep(5)"))


def test_one_snapshot_does_not_see_what_is_written_meanwhile(production: Production) -> None:
    url = production("moving")
    source, writer = opened(url), create_engine(url)
    with snapshot(source) as connection:
        before = read_questions(connection, source)
        with writer.begin() as other:
            other.execute(text("DELETE FROM chunk"))
        assert len(read_corpus(connection, source, vectors=False).ids) == 3
    writer.dispose()
    assert (len(before), corpus(source).ids) == (4, [])


def test_an_unknown_source_is_answered_with_the_nearest(engine: Any, xquad_source: str) -> None:
    with pytest.raises(InputError, match=f"no source 'xquad_r'; did you mean '{xquad_source}'"):
        loaded(engine, "xquad_r")


def test_a_column_of_the_same_name_as_the_record_is_another_thing_unless_it_is_json(production: Production) -> None:
    taken = production("timed", "ALTER TABLE question_answer ADD COLUMN recorded timestamptz DEFAULT now()")
    assert "recorded" not in questions(opened(taken))[0]
    kept = production("traced", "ALTER TABLE question_answer ADD COLUMN recorded json DEFAULT '{\"latency_ms\": 7}'")
    assert questions(opened(kept))[0]["recorded"] == {"latency_ms": 7}
