"""Check `yarus load` for people and programs: exit codes, one JSON document on stdout, checked source names."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from tests.support.command_line import ENGLISH
from tests.support.database.dumps import dump_database
from yarus.__main__ import cli
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.tasks.config.connections import database

KEYS = ["source", "questions", "chunks", "labels", "problems"]
LOG = "№;Вопрос;Оценка;Время;Страница\n1;где билет?;5;2026-01-01;https://wiki/a\n2;когда стипендия?;пять;;\n"
MAP = ["--map", "id=№", "--map", "question=Вопрос", "--map", "score=Оценка", "--map", "created_at=Время"]
HELPDESK = """
    CREATE TABLE chunk (id int, confluence_url text, text text);
    INSERT INTO chunk VALUES (1, 'https://wiki/a', 'в деканате');
    CREATE TABLE log (
        id int, asked text, answer text, confluence_url text, score int, user_id int, created_at date
    );
    INSERT INTO log VALUES
        (1, 'где?', 'там', 'https://wiki/a', 5, 1, '2026-01-01'), (2, 'как?', NULL, NULL, NULL, 1, '2026-01-02');
"""


def command(*words: str) -> Result:
    """Run the command in this process, on the shared home; raise what `main` turns into an exit code."""
    return CliRunner().invoke(cli, ["load", *words], standalone_mode=False)


def load_json(*words: str) -> dict[str, Any]:
    result = command(*words, "--json")
    if result.exception is not None:
        raise result.exception
    document: dict[str, Any] = json.loads(result.stdout)
    assert list(document) == KEYS
    return document


def counts(read: int, added: int = 0, updated: int = 0, skipped: int = 0) -> dict[str, int]:
    return {"read": read, "added": added, "updated": updated, "skipped": skipped}


@pytest.fixture
def beir_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "Mini BEIR"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Билет", "text": "в деканате"}\n', encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "где билет?"}\n', encoding="utf-8")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t3\nq1\td7\t1\n", encoding="utf-8")
    return folder


def test_load_squad_again_adds_nothing(at_home: Path, xquad_source: str, xquad_ru: Path) -> None:
    document = load_json("squad", str(xquad_ru), "--into", xquad_source)
    assert (document["questions"], document["chunks"]) == (counts(1190), counts(240))
    assert document["problems"] == []


def test_load_beir(at_home: Path, beir_folder: Path) -> None:
    """Check that the name comes from the folder, and that a label without a target is skipped."""
    document = load_json("beir", str(beir_folder))
    assert document == {
        "source": "mini_beir",
        "questions": counts(1, 1),
        "chunks": counts(1, 1),
        "labels": counts(2, 1, 0, 1),
        "problems": ["qrels/dev.tsv:3: skipped, corpus.jsonl has no document 'd7'"],
    }
    with pytest.raises(InputError, match=r"no split in .*'tests'; there are: dev"):
        load_json("beir", str(beir_folder), "--split", "tests")


def test_load_table_of_questions_and_of_chunks(at_home: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(LOG.encode("cp1251"))
    document = load_json("table", str(tmp_path / "log.csv"), "--into", "tables", "--encoding", "cp1251", *MAP)
    assert document["questions"] == counts(2, 2)
    assert document["problems"] == ["Оценка: 1 of 2 not read ('пять' at log.csv:3): no whole number; left empty"]
    (tmp_path / "pages.jsonl").write_text(
        '{"text": "в деканате", "confluence_url": "https://wiki/a"}\n', encoding="utf-8"
    )
    document = load_json("table", str(tmp_path / "pages.jsonl"), "--into", "tables", "--kind", "chunks")
    assert (document["chunks"], document["questions"]) == (counts(1, 1), counts(0))


def test_documentation_example_prints_as_shown(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")  # the documentation is English
    page = (Path(__file__).parents[3] / "docs" / "sources.md").read_text(encoding="utf-8")
    page = page.replace("helpdesk", "doc_desk")  # other examples load a source of that name, too
    file, words, expected = re.findall(r"\$ cat log\.csv\n(.*?)\n\n\$ yarus load (.*?)\n(.*?)\n```", page, re.DOTALL)[0]
    Path("log.csv").write_text(file + "\n", encoding="utf-8")
    result = command(*words.split())
    assert [line.rstrip() for line in result.stdout.splitlines()] == expected.splitlines()


@pytest.mark.parametrize(
    ("log", "pages", "suggested"),
    [
        ("question,created_at\nгде?,2026-01-01\n", None, "yarus run ux --source {name}"),
        ("question,answer,user_id\nгде?,там,7\n", None, "yarus run tier3 --source {name} --sut recorded"),
        (
            "question,confluence_url\nгде?,https://wiki/a\n",
            "text,confluence_url\nтам,https://wiki/a\n",
            "yarus run tier1",
        ),
        ("question\nгде?\n", None, "yarus load table FILE --kind chunks --into {name}"),
        ("question\nгде?\n", "text,page_url\nтам,u\nтут,u\nнет,v\n", "yarus run tier0 --source {name}"),
    ],
    ids=["times only", "answers only", "pages", "questions only", "no labels"],
)
def test_load_suggests_what_can_be_measured(
    at_home: Path, tmp_path: Path, log: str, pages: str | None, suggested: str, request: pytest.FixtureRequest
) -> None:
    name = "ready_" + re.sub(r"\W", "_", request.node.callspec.id)
    (tmp_path / "log.csv").write_text(log)
    (tmp_path / "pages.csv").write_text(pages or "")
    if pages:
        assert command("table", str(tmp_path / "pages.csv"), "--kind", "chunks", "--into", name).exit_code == 0
    result = command("table", str(tmp_path / "log.csv"), "--into", name)
    assert suggested.format(name=name) in result.stdout


def test_recorded_passages_make_answers_judgeable(at_home: Path, tmp_path: Path) -> None:
    from yarus.deployments.upkeep.readiness import read_readiness
    from yarus.tasks.config.connections import open_source

    rows = [
        {"question": "где?", "answer": "там", "contexts": ["Там."], "score": 5},
        {"question": "как?", "answer": "так"},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    load_json("table", str(tmp_path / "t.jsonl"), "--into", "ready_traced")
    ready = {tier.tier: (tier.questions, tier.missing) for tier in read_readiness(open_source("ready_traced"))}
    assert (ready["judge"], ready["judge_pipeline"], ready["tier1"]) == ((1, None), (1, None), (0, "pages"))


def test_load_fails_if_no_row_is_usable(at_home: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("question,score\n,5\n,1\n")
    result = command("table", str(tmp_path / "log.csv"), "--into", "no_row_used")
    assert isinstance(result.exception, InputError)
    assert "0 of 2 rows have a question that can be read" in str(result.exception)
    assert result.stdout == ""


def test_load_exit_code_tells_who_can_fix_it(yarus: Any, tmp_path: Path) -> None:
    """Expect 0 with counts for people, and 2 with place and remedy on stderr and nothing on stdout."""
    (tmp_path / "log.csv").write_bytes(LOG.encode("cp1251"))
    good = yarus(
        "load", "table", str(tmp_path / "log.csv"), "--into", "people", "--encoding", "cp1251", *MAP, env=ENGLISH
    )
    assert "questions  2     2      0        0" in good.out
    assert "Оценка: 1 of 2 not read ('пять' at log.csv:3)" in good.out
    (tmp_path / "short.csv").write_bytes("вопрос\nгде?\n".encode("cp1251"))
    bad = yarus("load", "table", str(tmp_path / "short.csv"), "--into", "people", "--json", env=ENGLISH, ok=False)
    assert (bad.code, bad.out) == (2, "")
    assert "9 letters beyond ASCII are too few to tell its encoding" in bad.err and "--encoding cp1251" in bad.err
    unreachable_url = "postgresql://reader:secret@127.0.0.1:9/helpdesk"
    failed = yarus("load", "postgres", unreachable_url, "--json", ok=False)
    assert (failed.code, failed.out) == (3, "")
    assert "127.0.0.1" in failed.err and "secret" not in failed.err and "Traceback" not in failed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--into", "production"], "is reserved for the database in YARUS_SOURCE_URL"),
        (["--into", "sample"], "source 'sample' is the bundled one"),
        (["--into", "Help-Desk"], "source name 'Help-Desk': use a letter"),
        (["--into", 'a"; DROP SCHEMA yarus'], "use a letter"),
        ([], "'журнал' cannot be a source's name; give one with --into"),
    ],
)
def test_load_checks_source_names(at_home: Path, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "журнал.csv").write_text("question\nа\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_json("table", str(tmp_path / "журнал.csv"), *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table", "log.csv", "--map", "question"], "expected FIELD=COLUMN"),
        (["postgres", "postgresql://h/d", "--since", "вчера"], "--since 'вчера': no date"),
        (["postgres", "postgresql://h/d", "--since", "2026-01-01", "--incremental"], "cannot be combined"),
        (["postgres", "nowhere.dump"], "expected postgresql://.*or the file of a dump that is there"),
    ],
)
def test_load_refuses_wrong_arguments(at_home: Path, words: list[str], message: str) -> None:
    with pytest.raises(Exception, match=message) as raised:
        load_json(*words)
    assert getattr(raised.value, "exit_code", 2) == 2
    assert not isinstance(raised.value, DatabaseUnavailable)


@pytest.fixture
def helpdesk(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Create another database, whose log has its own names, mapped by the settings."""
    monkeypatch.setenv("YARUS_SOURCE_TABLES__QUESTION_ANSWER", "log")
    monkeypatch.setenv("YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__QUESTION", "asked")
    url = engine.url.set(database="helpdesk_commands")
    server = create_engine(engine.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE helpdesk_commands"))
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text(HELPDESK))
    yield url.set(drivername="postgresql", password="secret").render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.execute(text("DROP DATABASE helpdesk_commands WITH (FORCE)"))


def test_load_postgres(at_home: Path, engine: Engine, helpdesk: str) -> None:
    document = load_json("postgres", helpdesk)
    assert document["source"] == "helpdesk_commands"
    assert (document["questions"], document["chunks"]) == (counts(2, 2), counts(1, 1))
    assert len(document["problems"]) == 2 and "loaded without vectors" in document["problems"][0]
    again = load_json("postgres", helpdesk, "--incremental")
    assert (again["questions"], again["chunks"]) == (counts(1), counts(1))
    since = load_json("postgres", helpdesk, "--since", "2026-01-03")
    assert since["questions"] == counts(0)
    with engine.connect() as connection:
        origin = connection.scalar(text("SELECT origin FROM yarus.source WHERE name = 'helpdesk_commands'"))
    assert origin == "postgresql://yarus@/helpdesk_commands"


def test_load_dump(
    at_home: Path, engine: Engine, helpdesk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the settings map a dump's names, whichever database stores the results."""
    path = dump_database(helpdesk.replace(":secret", ""), tmp_path / "help.dump", "-Fc")
    assert load_json("postgres", str(path))["questions"] == counts(2, 2)
    monkeypatch.setenv("YARUS_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    assert load_json("postgres", str(path), "--incremental")["questions"] == counts(1)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT origin FROM yarus.source WHERE name = 'help'")) == "help.dump"
    path.write_bytes(b"PGDMP")
    with pytest.raises(InputError, match=r"help.dump: cannot be read: .*nothing was loaded"):
        load_json("postgres", str(path))
    database().dispose()  # the engine of that address is not the fixture's
