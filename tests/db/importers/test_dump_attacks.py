"""Test hostile dumps: none of their code is executed, and only the temporary tables change."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text

from tests.support.database.dumps import dump_database, load_dump, query_rows, run_statements
from yarus.db.embedded.cluster import find_programs
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.importers.dump import open_dump
from yarus.db.importers.postgres import open_source_snapshot
from yarus.db.loading.load_rows import LoadCounts
from yarus.db.sources import Source
from yarus.db.tables import source_tables

Production = Callable[..., str]

DATABASE_STATE = """
    SELECT array_agg(rolname::text || rolsuper ORDER BY 1),
        (SELECT array_agg(datname::text ORDER BY 1) FROM pg_database),
        (SELECT array_agg(nspname::text ORDER BY 1) FROM pg_namespace WHERE nspname NOT LIKE 'pg_t%'),
        (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_event_trigger), (SELECT count(*) FROM pg_largeobject),
        (SELECT array_agg(name || setting ORDER BY 1) FROM pg_file_settings)
    FROM pg_roles
"""
"""State that must not change when an existing source is loaded again."""

TEMPORARY_TABLES = "SELECT count(*) FROM pg_class WHERE relname = 'question_answer' AND relpersistence = 't'"


@pytest.fixture
def marker() -> Iterator[Path]:
    """Return a path where an attack would write a file, in a folder that every user can write to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder, "was_here")


def load_unsafely(path: Path, url: str, *, program: str) -> None:
    """Load the dump in the unsafe way, to prove that the attack works."""
    address = make_url(url)
    connection_options = [f"--host={address.query['host']}", f"--port={address.query['port']}", "--username=yarus"]
    command = [str(find_programs("18") / program), *connection_options, f"--dbname={address.database}"]
    command += [f"--file={path}"] if program == "psql" else [str(path)]
    subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, check=False)
    run_statements(url, "SELECT * FROM passages")


def load_twice(engine: Engine, name: str, path: Path, marker: Path, **mapping: object) -> LoadCounts:
    """Return the counts of a first load; a second one must not change anything."""
    load_dump(engine, name, path, **mapping)
    state = query_rows(engine, DATABASE_STATE)
    counts = load_dump(engine, name, path, **mapping).chunks
    assert query_rows(engine, DATABASE_STATE) == state
    assert not marker.exists()
    return counts


HOSTILE_SCHEMA = """
    CREATE TABLE secret (line text);
    CREATE FUNCTION evil() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
        EXECUTE 'COPY (SELECT 1) TO PROGRAM ''cat > {marker}'''; RETURN 'x'; END $$;
    CREATE FUNCTION evil_event() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM evil(); END $$;
    CREATE FUNCTION evil_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM evil(); RETURN NEW; END $$;
    CREATE FUNCTION evil_immutable(text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
        $$ BEGIN PERFORM evil(); RETURN true; END $$;
    ALTER TABLE chunk ADD extra text DEFAULT evil(), ADD CHECK (evil_immutable(text)) NOT VALID;
    CREATE TRIGGER evil BEFORE INSERT ON chunk FOR EACH ROW EXECUTE FUNCTION evil_row();
    ALTER TABLE chunk ENABLE ALWAYS TRIGGER evil;
    CREATE RULE evil AS ON INSERT TO question_answer DO ALSO SELECT evil();
    CREATE VIEW passages AS SELECT evil() AS id, evil() AS text, evil() AS confluence_url;
    CREATE MATERIALIZED VIEW kept AS SELECT evil() AS id WITH NO DATA;
    CREATE DOMAIN word AS text CHECK (evil_immutable(VALUE));
    ALTER TABLE secret ADD w word;
    CREATE EVENT TRIGGER evil ON ddl_command_end EXECUTE FUNCTION evil_event();
    ALTER EVENT TRIGGER evil DISABLE;
"""


@pytest.mark.slow("breadth: every form of a dump")
@pytest.mark.parametrize("form", ["-Fc", "-Fd", "-Ft", "-Fp"])
def test_code_in_a_dump_is_not_executed(
    engine: Engine, production: Production, tmp_path: Path, marker: Path, form: str
) -> None:
    """Cover functions, triggers, rules, defaults, checks, domains, event triggers and views."""
    url = production(f"hostile{form[2]}", HOSTILE_SCHEMA.format(marker=marker))
    path = dump_database(url, tmp_path / "evil.dump", form)
    marker.unlink(missing_ok=True)
    assert load_twice(engine, f"hostile{form[2]}", path, marker) == LoadCounts(3)
    with pytest.raises(InputError, match="passages is a view, whose rows are not in a dump"):
        load_dump(engine, "hostile_view", path, names={"chunk": "passages"})
    assert not marker.exists()
    empty = production(f"hostile_armed{form[2]}", "DROP TABLE chunk, question_answer; DROP EXTENSION vector")
    load_unsafely(path, empty, program="psql" if form == "-Fp" else "pg_restore")
    assert marker.exists()


HOSTILE_COMMANDS = r"""\! touch {marker}
\o {marker}
\connect postgres yarus
CREATE ROLE evil SUPERUSER;
SELECT lo_import('/etc/passwd');
COPY (SELECT 1) TO PROGRAM 'touch {marker}';
CREATE SCHEMA evil; CREATE TABLE evil.t (x text);
COPY evil.t FROM PROGRAM 'touch {marker}';
ALTER SYSTEM SET log_min_messages = 'debug1';
\copy evil.t from program 'touch {marker}'
SELECT 'touch {marker}' \g | sh
;
"""


@pytest.mark.parametrize("position", ["before", "between", "within", "after"])
def test_commands_in_a_plain_dump_are_not_executed(
    engine: Engine, production: Production, tmp_path: Path, marker: Path, position: str
) -> None:
    path = dump_database(production(f"commands_{position}"), tmp_path / "evil.sql", "--no-comments")
    content, commands = path.read_text(encoding="utf-8"), HOSTILE_COMMANDS.format(marker=marker)
    if position == "before":
        content = commands + content
    elif position == "between":
        content = content.replace("\nCOPY public.chunk", f"\n{commands}\nCOPY public.chunk", 1)
    elif position == "within":
        content = content.replace(
            "CREATE TABLE public.chunk (\n", f"CREATE TABLE public.chunk (\n  t int); {commands};\n", 1
        )
    else:
        content = content.replace(
            "--\n-- PostgreSQL database dump complete", f"{commands}\n-- PostgreSQL database dump complete"
        )
    assert commands in content
    path.write_text(content, encoding="utf-8")
    if position == "within":
        with pytest.raises(InputError, match='column "id" of relation "chunk" does not exist'):
            load_dump(engine, "commands_within", path)
    else:
        assert load_twice(engine, f"commands_{position}", path, marker) == LoadCounts(3)
    assert not marker.exists()
    assert query_rows(engine, "SELECT rolname FROM pg_roles WHERE rolname = 'evil'") == []


def test_sql_in_an_edited_archive_is_not_executed(
    engine: Engine, production: Production, tmp_path: Path, marker: Path
) -> None:
    """Replace the SQL that creates a table by other SQL in the archive's entry."""
    padding = "X" * 900
    path = dump_database(
        production("edited", f"ALTER TABLE chunk ADD extra text DEFAULT '{padding}'"), tmp_path / "d", "-Fc"
    )
    content = path.read_bytes()
    original_sql = f"extra text DEFAULT '{padding}'::text\n);\n".encode()
    assert content.count(original_sql) == 1
    hostile_sql = f"""extra text);
COPY (SELECT 1) TO PROGRAM 'touch {marker}';
CREATE FUNCTION pg_temp.f() RETURNS text LANGUAGE sql AS $a$ SELECT pg_read_file('/etc/passwd') $a$;
INSERT INTO public.chunk SELECT 7, pg_temp.f();
\\! touch {marker}
--""".encode()
    path.write_bytes(content.replace(original_sql, hostile_sql + b"-" * (len(original_sql) - len(hostile_sql))))
    with pytest.raises(InputError, match="an INSERT of something else than the literals that pg_dump writes"):
        load_dump(engine, "edited", path)
    harmless_sql = hostile_sql.replace(b"INSERT INTO public.chunk SELECT 7, pg_temp.f();", b"")
    path.write_bytes(content.replace(original_sql, harmless_sql + b"-" * (len(original_sql) - len(harmless_sql))))
    assert load_twice(engine, "edited", path, marker) == LoadCounts(3)


NAMES = ['a";DROP SCHEMA yarus CASCADE;--', "new\nline\n\\! touch", "%s %(x)s {} :name", "'; COPY", "пол\tе", "x" * 63]


@pytest.mark.parametrize("form", ["-Fc", "-Fp", "--column-inserts"])
def test_hostile_names_are_quoted(engine: Engine, production: Production, tmp_path: Path, form: str) -> None:
    quoted = ['"' + name.replace('"', '""') + '"' for name in NAMES]
    url = production(f"names{form.lower().replace('-', '_')}")
    run_statements(url, "ALTER TABLE chunk RENAME TO " + quoted[0])
    run_statements(url, *(f"ALTER TABLE {quoted[0]} ADD {name} text DEFAULT 'v'" for name in quoted))
    mapping = {"names": {"chunk": NAMES[0]}, "columns": {"chunk": {"text": NAMES[2], "confluence_url": NAMES[1]}}}
    name = f"names{form.lower().replace('-', '_')}"
    assert load_dump(engine, name, dump_database(url, tmp_path / "d", form), **mapping).chunks == LoadCounts(3, 3)
    assert query_rows(engine, f"SELECT text, confluence_url FROM source_{name}.chunk LIMIT 1") == [("v", "v")]


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("CREATE TABLE public.chunk (ctid text, text text);\nINSERT INTO public.chunk VALUES ('1', 'a');\n", "ctid"),
        ("CREATE TABLE public.chunk (" + ",".join(f"c{n} text" for n in range(2_000)) + ");\nCOPY public.chunk FROM "
         "stdin;\nx\n\\.\n", "at most 1600 columns"),
        ("CREATE TABLE public.chunk (id text);\nINSERT INTO public.chunk VALUES (now());\n", "of something else than"),
        ("CREATE TABLE public.chunk (id text);\nCOPY public.chunk FROM PROGRAM 'id';\n", "by another COPY"),
        ("CREATE TABLE public.chunk (id text);\nCOPY public.chunk FROM stdin CSV;\n1\n\\.\n", "by another COPY"),
        ("CREATE TABLE public.chunk (id text);\nINSERT INTO public.chunk VALUES ('a' || 'b');\n", "something else"),
        ("CREATE TABLE public.chunk (id text);\nINSERT INTO public.chunk VALUES (E'\\x41');\n", "something else"),
        ("CREATE TABLE public.chunk (id text);\nINSERT INTO public.chunk VALUES ('a', 'b');\n", "2 values for 1 col"),
        ("CREATE TABLE public.chunk (id text);\nINSERT INTO public.chunk VALUES ('a\0b');\n", "null character|0x00"),
        ("INSERT INTO public.chunk VALUES ('a');\n", "without its CREATE TABLE"),
        ("CREATE TABLE public.chunk (id int);\nCREATE TABLE public.chunk (id text);\n", "a second table public.chunk"),
        ("CREATE TABLE public.chunk (id integer);\nINSERT INTO public.chunk VALUES ('a');\n", "invalid input syntax"),
        ("SET client_encoding = 'EUC_JP';\n", "the encoding 'EUC_JP', which is not read here"),
        ("CREATE FUNCTION f() AS $a$ never closed\n", "a text that never ends"),
        ("ALTER TABLE ONLY public.a ATTACH PARTITION public.b;\nALTER TABLE ONLY public.b ATTACH PARTITION public.a;\n"
         "COPY public.a FROM stdin;\n\\.\n", "no table in .*'public.question_answer'"),
    ],
)  # fmt: skip
def test_statements_unlike_pg_dump_are_rejected(engine: Engine, tmp_path: Path, statements: str, message: str) -> None:
    path = tmp_path / "odd.sql"
    path.write_text(f"{statements}--\n-- PostgreSQL database dump complete\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_dump(engine, "odd", path)


def test_dump_bomb_is_not_unpacked(
    engine: Engine, production: Production, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Load a file of zeros, packed 1,000 to 1; the limit is lowered to keep the test fast."""
    url = production("bomb", "INSERT INTO chunk SELECT n, '', repeat('0', 1000000) FROM generate_series(20, 50) AS n")
    path = dump_database(url, tmp_path / "d", "-Fc", "--compress=9")
    assert path.stat().st_size < 100_000
    monkeypatch.setattr("yarus.db.importers.dump.MIN_UNPACKED_LIMIT", 1 << 20)
    with pytest.raises(InputError, match=r"unpacks to more than [\d,]+ bytes; nothing was loaded"):
        load_dump(engine, "bomb", path)


@pytest.mark.slow("process: a load that dies")
def test_parallel_loads_survive_a_killed_connection(engine: Engine, production: Production, tmp_path: Path) -> None:
    """Check that temporary tables belong to one connection and disappear with it."""
    path = dump_database(production("at_once"), tmp_path / "d", "-Fc")
    source = Source("helpdesk", "loaded", "ru", engine, source_tables(None))
    with open_dump(path, source) as first_source, open_dump(path, source) as second_source:
        for dump_source in (first_source, second_source):
            with dump_source.engine.connect() as connection:
                assert connection.scalar(text("SELECT count(*) FROM pg_temp.chunk")) == 3
                pid = connection.scalar(text("SELECT pg_backend_pid()"))
        assert load_dump(engine, "at_once", path).chunks == LoadCounts(3, 3)
        query_rows(engine, f"SELECT pg_terminate_backend({pid}, 10000)")
        with pytest.raises(DatabaseUnavailable), open_source_snapshot(second_source):
            pytest.fail("it was killed")
    deadline = time.monotonic() + 30  # the server cleans up a moment after the connection is closed
    while query_rows(engine, TEMPORARY_TABLES) != [(0,)] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert query_rows(engine, TEMPORARY_TABLES) == [(0,)]
