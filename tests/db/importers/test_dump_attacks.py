"""Dumps that attack whoever loads them: nothing of them is executed, and nothing but the scratch tables is touched."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text

from tests.support.database.dumps import alter, dump, load, rows
from yarus.db.embedded.cluster import programs
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.importers.dump import unpacked
from yarus.db.importers.postgres import reading
from yarus.db.loading.fill import Counts
from yarus.db.sources import Source
from yarus.db.tables import source_tables

Production = Callable[..., str]

EVERYTHING = """
    SELECT array_agg(rolname::text || rolsuper ORDER BY 1),
        (SELECT array_agg(datname::text ORDER BY 1) FROM pg_database),
        (SELECT array_agg(nspname::text ORDER BY 1) FROM pg_namespace WHERE nspname NOT LIKE 'pg_t%'),
        (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_event_trigger), (SELECT count(*) FROM pg_largeobject),
        (SELECT array_agg(name || setting ORDER BY 1) FROM pg_file_settings)
    FROM pg_roles
"""
"""What must be the same after a load into a source that is there."""

LEFT = "SELECT count(*) FROM pg_class WHERE relname = 'question_answer' AND relpersistence = 't'"


@pytest.fixture
def marker() -> Iterator[Path]:
    """A file that an attack makes; anybody may make it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder, "was_here")


def armed(path: Path, url: str, *, by: str) -> None:
    """Loads the dump as it must not be loaded, so that the test knows that the attack is one."""
    address = make_url(url)
    where = [f"--host={address.query['host']}", f"--port={address.query['port']}", "--username=yarus"]
    command = [str(programs("18") / by), *where, f"--dbname={address.database}"]
    command += [f"--file={path}"] if by == "psql" else [str(path)]
    subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, check=False)
    alter(url, "SELECT * FROM passages")


def attacked(engine: Engine, name: str, path: Path, marker: Path, **mapping: object) -> Counts:
    """What a load brings; the second time nothing at all may be different afterwards."""
    load(engine, name, path, **mapping)
    before = rows(engine, EVERYTHING)
    counts = load(engine, name, path, **mapping).chunks
    assert rows(engine, EVERYTHING) == before
    assert not marker.exists()
    return counts


HOSTILE = """
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
def test_code_in_a_dump_stays_text(
    engine: Engine, production: Production, tmp_path: Path, marker: Path, form: str
) -> None:
    """Functions, triggers, rules, defaults, checks, domains, event triggers, views."""
    url = production(f"hostile{form[2]}", HOSTILE.format(marker=marker))
    path = dump(url, tmp_path / "evil.dump", form)
    marker.unlink(missing_ok=True)
    assert attacked(engine, f"hostile{form[2]}", path, marker) == Counts(3)
    with pytest.raises(InputError, match="passages is a view, whose rows are not in a dump"):
        load(engine, "hostile_view", path, names={"chunk": "passages"})
    assert not marker.exists()
    empty = production(f"hostile_armed{form[2]}", "DROP TABLE chunk, question_answer; DROP EXTENSION vector")
    armed(path, empty, by="psql" if form == "-Fp" else "pg_restore")
    assert marker.exists()


COMMANDS = r"""\! touch {marker}
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


@pytest.mark.parametrize("at", ["before", "between", "within", "after"])
def test_commands_in_a_plain_file_stay_text(
    engine: Engine, production: Production, tmp_path: Path, marker: Path, at: str
) -> None:
    path = dump(production(f"commands_{at}"), tmp_path / "evil.sql", "--no-comments")
    whole, commands = path.read_text(encoding="utf-8"), COMMANDS.format(marker=marker)
    if at == "before":
        whole = commands + whole
    elif at == "between":
        whole = whole.replace("\nCOPY public.chunk", f"\n{commands}\nCOPY public.chunk", 1)
    elif at == "within":
        whole = whole.replace(
            "CREATE TABLE public.chunk (\n", f"CREATE TABLE public.chunk (\n  t int); {commands};\n", 1
        )
    else:
        whole = whole.replace(
            "--\n-- PostgreSQL database dump complete", f"{commands}\n-- PostgreSQL database dump complete"
        )
    assert commands in whole
    path.write_text(whole, encoding="utf-8")
    if at == "within":
        with pytest.raises(InputError, match='column "id" of relation "chunk" does not exist'):
            load(engine, "commands_within", path)
    else:
        assert attacked(engine, f"commands_{at}", path, marker) == Counts(3)
    assert not marker.exists()
    assert rows(engine, "SELECT rolname FROM pg_roles WHERE rolname = 'evil'") == []


def test_an_archive_edited_by_hand_stays_text(
    engine: Engine, production: Production, tmp_path: Path, marker: Path
) -> None:
    """Its entries hold the SQL that makes a table; here other SQL stands behind the table's."""
    room = "X" * 900
    path = dump(production("edited", f"ALTER TABLE chunk ADD extra text DEFAULT '{room}'"), tmp_path / "d", "-Fc")
    content = path.read_bytes()
    old = f"extra text DEFAULT '{room}'::text\n);\n".encode()
    assert content.count(old) == 1
    evil = f"""extra text);
COPY (SELECT 1) TO PROGRAM 'touch {marker}';
CREATE FUNCTION pg_temp.f() RETURNS text LANGUAGE sql AS $a$ SELECT pg_read_file('/etc/passwd') $a$;
INSERT INTO public.chunk SELECT 7, pg_temp.f();
\\! touch {marker}
--""".encode()
    path.write_bytes(content.replace(old, evil + b"-" * (len(old) - len(evil))))
    with pytest.raises(InputError, match="an INSERT of something else than the literals that pg_dump writes"):
        load(engine, "edited", path)
    inert = evil.replace(b"INSERT INTO public.chunk SELECT 7, pg_temp.f();", b"")
    path.write_bytes(content.replace(old, inert + b"-" * (len(old) - len(inert))))
    assert attacked(engine, "edited", path, marker) == Counts(3)


NAMES = ['a";DROP SCHEMA yarus CASCADE;--', "new\nline\n\\! touch", "%s %(x)s {} :name", "'; COPY", "пол\tе", "x" * 63]


@pytest.mark.parametrize("form", ["-Fc", "-Fp", "--column-inserts"])
def test_names_are_only_names(engine: Engine, production: Production, tmp_path: Path, form: str) -> None:
    quoted = ['"' + name.replace('"', '""') + '"' for name in NAMES]
    url = production(f"names{form.lower().replace('-', '_')}")
    alter(url, "ALTER TABLE chunk RENAME TO " + quoted[0])
    alter(url, *(f"ALTER TABLE {quoted[0]} ADD {name} text DEFAULT 'v'" for name in quoted))
    mapping = {"names": {"chunk": NAMES[0]}, "columns": {"chunk": {"text": NAMES[2], "confluence_url": NAMES[1]}}}
    name = f"names{form.lower().replace('-', '_')}"
    assert load(engine, name, dump(url, tmp_path / "d", form), **mapping).chunks == Counts(3, 3)
    assert rows(engine, f"SELECT text, confluence_url FROM source_{name}.chunk LIMIT 1") == [("v", "v")]


@pytest.mark.parametrize(
    ("written", "message"),
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
def test_what_pg_dump_never_writes_is_refused_in_words(
    engine: Engine, tmp_path: Path, written: str, message: str
) -> None:
    path = tmp_path / "odd.sql"
    path.write_text(f"{written}--\n-- PostgreSQL database dump complete\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load(engine, "odd", path)


def test_a_bomb_is_not_unpacked(
    engine: Engine, production: Production, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of zeros packs 1,000 to 1; the limit is lowered, so that the test is quick."""
    url = production("bomb", "INSERT INTO chunk SELECT n, '', repeat('0', 1000000) FROM generate_series(20, 50) AS n")
    path = dump(url, tmp_path / "d", "-Fc", "--compress=9")
    assert path.stat().st_size < 100_000
    monkeypatch.setattr("yarus.db.importers.dump.LEAST_LIMIT", 1 << 20)
    with pytest.raises(InputError, match=r"unpacks to more than [\d,]+ bytes; nothing was loaded"):
        load(engine, "bomb", path)


@pytest.mark.slow("process: a load that dies")
def test_two_loads_at_once_and_one_that_dies(engine: Engine, production: Production, tmp_path: Path) -> None:
    """The scratch tables are a connection's own, and gone with it."""
    path = dump(production("at_once"), tmp_path / "d", "-Fc")
    source = Source("helpdesk", "loaded", "ru", engine, source_tables(None))
    with unpacked(path, source) as one, unpacked(path, source) as two:
        for there in (one, two):
            with there.engine.connect() as connection:
                assert connection.scalar(text("SELECT count(*) FROM pg_temp.chunk")) == 3
                pid = connection.scalar(text("SELECT pg_backend_pid()"))
        assert load(engine, "at_once", path).chunks == Counts(3, 3)
        rows(engine, f"SELECT pg_terminate_backend({pid}, 10000)")
        with pytest.raises(DatabaseUnavailable), reading(two):
            pytest.fail("it was killed")
    deadline = time.monotonic() + 30  # the server cleans up a moment after the connection is closed
    while rows(engine, LEFT) != [(0,)] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert rows(engine, LEFT) == [(0,)]
