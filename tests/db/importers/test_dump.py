"""Test dumps in every format and form, with missing contents, and truncated."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.database.dumps import dump_database, load_dump, query_rows, run_statements
from yarus.db.errors import InputError
from yarus.db.loading.load_rows import LoadCounts

Production = Callable[..., str]

AWKWARD_SCHEMA = """
    CREATE EXTENSION vector;
    CREATE SCHEMA app;
    CREATE TABLE app."Log %" (
        n uuid PRIMARY KEY,
        "вопрос" text DEFAULT 'a;b''(' || chr(41) NOT NULL, reply varchar(200) COLLATE "C", page char(9),
        mark numeric(4, 2) CHECK (mark > 0 OR mark IN (0, -1)), "who ""is"" it" text, at timestamp(3) with time zone,
        tags integer[], "UNIQUE" bool, twice numeric GENERATED ALWAYS AS (mark * 2) STORED,
        number integer GENERATED ALWAYS AS IDENTITY);
    COMMENT ON TABLE app."Log %" IS 'it''s; COPY app."Log %" FROM stdin;
COPY app."Log %" (n) FROM stdin;';
    INSERT INTO app."Log %" (n, "вопрос", reply, page, mark, "who ""is"" it", at, tags, "UNIQUE") VALUES
        ('00000000-0000-0000-0000-000000000001', E'как?\\n\\\\.\\n\\tC:\\\\new''s; -- /* $$', 'так', 'стр', 5.00, 'я',
         '2026-01-01 10:00+03', '{1,2}', true),
        ('00000000-0000-0000-0000-000000000002', 'E''x\\', NULL, NULL, -1, '', NULL, NULL, NULL);
    CREATE TABLE app.passage (id int, url text, body text, v real[]) PARTITION BY RANGE (id);
    CREATE TABLE app.low (v real[], body text, url text, id int);
    ALTER TABLE app.passage ATTACH PARTITION app.low FOR VALUES FROM (0) TO (10);
    CREATE TABLE app."high.er" PARTITION OF app.passage FOR VALUES FROM (10) TO (20) PARTITION BY LIST (url);
    CREATE TABLE app.highest PARTITION OF app."high.er" DEFAULT;
    INSERT INTO app.passage VALUES (1, 'u1', 'раз', '{1,2}'), (11, 'u2', E'два\\ttab', NULL);
    CREATE TABLE public.low AS SELECT 'not this' AS body, 7 AS id;
    CREATE FUNCTION app.later() RETURNS text LANGUAGE sql BEGIN ATOMIC
        SELECT 'INSERT INTO app.passage'; SELECT $$;$$; END;
    CREATE FUNCTION app.body() RETURNS text LANGUAGE plpgsql AS $fn$
BEGIN
COPY app.passage (id) FROM stdin;
INSERT INTO app.passage VALUES (3, 'no', 'no', NULL);
END $fn$;
    CREATE TABLE app.other AS SELECT repeat('x', 100000) AS wide FROM generate_series(1, 30);
"""
MAPPING = {
    "names": {"question_answer": "app.Log %", "chunk": "app.passage"},
    "columns": {
        "question_answer": {
            "id": "n", "question": "вопрос", "answer": "reply", "confluence_url": "page", "score": "mark",
            "user_id": 'who "is" it', "created_at": "at",
        },
        "chunk": {"confluence_url": "url", "text": "body", "embedding": "v"},
    },
}  # fmt: skip
FORMS = {
    "custom": ["-Fc"],
    "folder": ["-Fd", "--compress=gzip:9"],
    "tar": ["-Ft"],
    "plain": ["-Fp", "--create"],
    "inserts": ["-Fp", "--inserts"],
    "columns": ["-Fc", "--column-inserts", "--on-conflict-do-nothing"],
    "many": ["-Fp", "--rows-per-insert=2", "--quote-all-identifiers"],
    "cyrillic": ["-Fc", "--encoding=WIN1251"],
}


@pytest.fixture(scope="module")
def awkward_database(production: Production) -> str:
    """Create a database with names and types that are difficult in dumps."""
    url = production("awkward")
    run_statements(url, "DROP EXTENSION vector CASCADE", "DROP TABLE question_answer, chunk", AWKWARD_SCHEMA)
    return url


@pytest.mark.slow("breadth: every form of a dump")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_dump_gives_same_rows(engine: Engine, awkward_database: str, tmp_path: Path, form: str) -> None:
    path = dump_database(awkward_database, tmp_path / "help desk", *FORMS[form])
    report = load_dump(engine, f"form_{form}", path, **MAPPING)
    assert (report.chunks, report.questions) == (LoadCounts(2, 2), LoadCounts(2, 2))
    columns = "id, question, answer, confluence_url, score, user_id, created_at"
    assert query_rows(engine, f"SELECT {columns} FROM source_form_{form}.question_answer ORDER BY id") == [
        ("00000000-0000-0000-0000-000000000001", "как?\n\\.\n\tC:\\new's; -- /* $$", "так", "стр", 5, "я",
         datetime(2026, 1, 1, 7, tzinfo=UTC)),
        ("00000000-0000-0000-0000-000000000002", "E'x\\", None, None, -1, "", None),
    ]  # fmt: skip
    assert query_rows(
        engine, f"SELECT id, text, CAST(embedding AS text) FROM source_form_{form}.chunk ORDER BY id"
    ) == [("1", "раз", "[1,2]"), ("11", "два\ttab", None)]
    assert load_dump(engine, f"form_{form}", path, **MAPPING).questions == LoadCounts(2)
    assert len(report.problems) == 1 and "loaded without vectors" in report.problems[0]


def test_labels_are_loaded_and_fractions_reported(engine: Engine, production: Production, tmp_path: Path) -> None:
    """Expect the rules of a copy from a server."""
    url = production(
        "dump_labels",
        "CREATE TABLE annotation (question_id bigint, relevant_chunk_ids int[], relevant_urls json, "
        "answerable boolean, turn numeric)",
        "INSERT INTO annotation VALUES (1, '{10}', '[\"u\"]', true, 1.5), (77, NULL, NULL, NULL, NULL)",
        "ALTER TABLE annotation ADD ground_truth_answer text, ADD ground_truth_show bool, ADD cluster text, "
        "ADD dialog_id text, ADD origin text",
    )
    report = load_dump(engine, "dump_labels", dump_database(url, tmp_path / "d", "-Fc"))
    assert (report.questions, report.labels) == (LoadCounts(4, 4, 0, 0), LoadCounts(2, 1, 0, 1))
    assert report.problems == [
        "annotation: 1 values of 'turn' are no whole numbers (question_id '1' first), loaded as NULL; a view can say "
        "what they mean",
        "annotation question_id=77: skipped, there is no question '77'",
    ]
    rows = query_rows(engine, "SELECT relevant_chunk_ids, relevant_urls, answerable FROM source_dump_labels.annotation")
    assert rows == [([10], ["u"], True)]


def test_same_table_name_in_another_schema_is_separate(engine: Engine, production: Production, tmp_path: Path) -> None:
    url = production("dump_twice", "CREATE SCHEMA a", "CREATE TABLE a.chunk AS SELECT 'no' AS id, 'no' AS text")
    path = dump_database(url, tmp_path / "d", "-Fc")
    assert load_dump(engine, "dump_twice", path).chunks == LoadCounts(3, 3)
    assert load_dump(engine, "dump_twice_a", dump_database(url, tmp_path / "e", "-Fp")).chunks == LoadCounts(3, 3)
    with pytest.raises(InputError, match=r"no column in table 'a\.chunk'.*confluence_url"):
        load_dump(engine, "dump_twice_b", path, names={"chunk": "a.chunk"})
    run_statements(url, "DROP TABLE public.chunk")
    with pytest.raises(InputError, match=r"no table in .*'public\.chunk'; did you mean .*a\.chunk.*__CHUNK=NAME"):
        load_dump(engine, "dump_twice_c", dump_database(url, tmp_path / "f", "-Fc"))


UNSUPPORTED_TABLES = {
    "view": ("ALTER TABLE chunk RENAME TO c; CREATE VIEW chunk AS SELECT * FROM c", "chunk is a view"),
    "materialized": (
        "ALTER TABLE chunk RENAME TO c; CREATE MATERIALIZED VIEW chunk AS SELECT * FROM c", "is a materialized view",
    ),
    "foreign": (
        "DROP TABLE chunk; CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
        "CREATE FOREIGN TABLE chunk (id text, text text) SERVER s",
        "is a foreign table",
    ),
    "parent": ("CREATE TABLE more () INHERITS (chunk)", "chunk is a table that shares rows with others by INHERITS"),
    "child": (
        "ALTER TABLE chunk RENAME TO c; CREATE TABLE chunk (extra int) INHERITS (c)", "shares rows with others",
    ),
    "computed": (
        "ALTER TABLE chunk DROP text, ADD text text GENERATED ALWAYS AS (confluence_url) STORED",
        r"the column 'text' of chunk is computed by its database \(GENERATED\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNSUPPORTED_TABLES)
@pytest.mark.parametrize("form", ["-Fc", "-Fp"])
def test_missing_contents_of_a_dump_are_reported_with_fix(
    engine: Engine, production: Production, tmp_path: Path, kind: str, form: str
) -> None:
    statements, message = UNSUPPORTED_TABLES[kind]
    path = dump_database(production(f"other_{kind}{form[2]}", statements), tmp_path / "d", form)
    with pytest.raises(InputError, match=f"{message}.*nothing was loaded.*restore the dump on a server of yours"):
        load_dump(engine, "dump_other", path)
    assert query_rows(engine, "SELECT to_regclass('source_dump_other.chunk')") == [(None,)]


@pytest.fixture(scope="module")
def plain_database(production: Production) -> str:
    return production("dumped")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def truncate_rows(path: Path) -> None:
    """Cut in the middle of the rows, but keep the last line."""
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"\\.\n")] + content[content.index(b"-- PostgreSQL database dump comp") :])


def truncate_tar(path: Path) -> None:
    """Cut before the rows of the last table; restore.sql, after them, is not needed."""
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b".dat\0", 0, content.index(b"restore.sql")) + 100])


def raise_version(path: Path) -> None:
    """Raise the archive's own version: major and minor, after its five letters."""
    content = bytearray(path.read_bytes())
    content[6] = 99
    path.write_bytes(content)


def replace_with_link(path: Path) -> None:
    file = next(path.glob("*.dat.gz"))
    file.unlink()
    file.symlink_to("/etc/passwd")


def name_outside_file(path: Path) -> None:
    toc, name = path / "toc.dat", next(path.glob("[0-9]*.dat.gz")).name.removesuffix(".gz").encode()
    outside_name = b"../" + b"x" * (len(name) - 3)
    assert toc.read_bytes().count(name) == 1
    toc.write_bytes(toc.read_bytes().replace(name, outside_name))


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        ("c", truncate, "cannot be read: .*end of file; nothing was loaded"),
        ("t", truncate_tar, "cannot be read: .*incomplete tar header.*nothing was loaded"),
        ("p", truncate, "whole plain one .*Was it cut off"),
        ("p", truncate_rows, r"rows of a table without their last line, \\\. .*at byte [\d,]+; nothing was loaded"),
        ("c", raise_version, "newer pg_dump than PostgreSQL 18"),
        ("c", lambda path: path.write_bytes(b"\x1f\x8b" + path.read_bytes()), "compressed file; unpack it first"),
        ("c", lambda path: path.write_bytes(b"id,question\n"), "neither pg_dump's"),
        ("c", lambda path: path.unlink(), "No such file"),
        ("d", lambda path: (path / "toc.dat").unlink(), "without toc.dat is no dump"),
        ("d", lambda path: next(path.glob("*.dat.gz")).unlink(), "cannot be read: .*nothing was loaded"),
        ("d", replace_with_link, "no file, and pg_dump -Fd writes only files"),
        ("d", name_outside_file, r"names '\.\./', which could lead out of the folder"),
    ],
)  # fmt: skip
def test_unreadable_dumps_are_rejected(
    engine: Engine, plain_database: str, tmp_path: Path, form: str, change: Callable[[Path], object], message: str
) -> None:
    path = dump_database(plain_database, tmp_path / "production.dump", f"--format={form}")
    change(path)
    with pytest.raises(InputError, match=message):
        load_dump(engine, "dump_bad", path)
    assert query_rows(engine, "SELECT to_regclass('source_dump_bad.chunk')") == [(None,)]
