"""`yarus init`: from files, a database and a service of somebody's to a source that can be measured."""

import csv
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pydantic import TypeAdapter
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from tests.support.llm_server import JSON, FakeLLMServer, http
from yarus.__main__ import cli, exit_code
from yarus.db.errors import InputError, ModelUnavailable
from yarus.flows.cli.shell.documents import DOCUMENTS

URL = "https://wiki.example/pages/viewpage.action?pageId={}"
NAMES = ["№", "Дата", "Пользователь", "Вопрос", "Ответ", "Ссылка", "Оценка", "Канал"]
LOG = [
    [n, f"{n + 1:02}.03.2026 10:3{n}", f"u{n % 2}", f"Где взять справку номер {n}?", "Там.", URL.format(n), 5, "vk"]
    for n in range(6)
]  # fmt: skip
REPLY = {"result": {"answer": "В деканате.", "sources": [{"title": "Справки", "url": URL.format(1)}]}, "took": 12}


@pytest.fixture(autouse=True)
def own(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of somebody's, with a log as Excel saves it in Russian, and pages."""
    monkeypatch.chdir(tmp_path)
    with Path("журнал.csv").open("w", encoding="cp1251", newline="") as file:
        csv.writer(file, delimiter=";").writerows([NAMES, *LOG])
    with Path("pages.csv").open("w", encoding="utf-8-sig", newline="") as file:
        pages = [[URL.format(n), f"Справка {n}", f"Справку номер {n} выдают в деканате. " * 5] for n in range(5)]
        csv.writer(file).writerows([["url", "title", "content"], *pages])
    return tmp_path


def init(*words: str) -> Result:
    return CliRunner().invoke(cli, ["init", *words], standalone_mode=False)


def begun(*words: str) -> Any:
    result = init(*words, "--json")
    if result.exception is not None:
        raise result.exception
    TypeAdapter(DOCUMENTS["init"]).validate_json(result.stdout)
    return json.loads(result.stdout)


def test_a_log_of_excel_and_pages_are_loaded_by_one_command(engine: Engine) -> None:
    found = begun("pages.csv", "журнал.csv", "--into", "init_both")
    assert [(one["kind"], one["encoding"], one["unused"]) for one in found["files"]] == [
        ("questions", "cp1251", {"Канал": "vk"}), ("chunks", "utf-8-sig", {}),
    ]  # fmt: skip
    assert found["files"][0]["mapping"] == {
        "id": "№", "question": "Вопрос", "answer": "Ответ", "confluence_url": "Ссылка", "score": "Оценка",
        "user_id": "Пользователь", "created_at": "Дата",
    }  # fmt: skip
    assert [one["questions"]["added"] + one["chunks"]["added"] for one in found["loaded"]] == [6, 5]
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT id, question, score, created_at::date::text FROM source_init_both.question_answer ORDER BY id")
        ).all()
    assert rows[0] == ("0", "Где взять справку номер 0?", 5, "2026-03-01")
    ready = {one["tier"]: (one["questions"], one["missing"]) for one in found["readiness"]}
    assert ready == {
        "tier1": (5, None), "real_users": (5, None), "tier2": (5, None), "tier3": (6, None), "ux": (6, None),
        "judge": (5, None), "judge_pipeline": (5, None), "tier0": (0, "one passage per page"),
    }  # fmt: skip  # the page of one question is not among the pages
    assert exit_code(["run", "tier1", "--source", "init_both", "--dry-run"]) == 0


def test_what_it_loads_can_be_loaded_again_by_the_commands_that_it_leaves() -> None:
    import shlex

    begun("pages.csv", "журнал.csv", "--into", "init_again")
    commands = [line.removeprefix("# ") for line in Path(".env").read_text().splitlines() if line.startswith("# yarus")]
    assert len(commands) == 2
    for words in map(shlex.split, commands):
        again = CliRunner().invoke(cli, [*words[1:], "--json"], standalone_mode=False)
        assert again.exception is None
        counted = json.loads(again.stdout)
        assert counted["questions"]["added"] == counted["questions"]["updated"] == counted["chunks"]["added"] == 0
        assert counted["questions"]["read"] + counted["chunks"]["read"] > 0


def test_nothing_is_done_before_it_is_said(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["init", "журнал.csv", "pages.csv", "--into", "init_dry", "--dry-run"]) == 0
    said = capsys.readouterr().out
    for words in ("cp1251", "question = Вопрос", "created_at = Дата", "не нужны: Канал", "text = content", "init_dry"):
        assert words in said
    assert not Path(".env").exists()
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM yarus.source WHERE name = 'init_dry'")) == 0


def test_settings_are_added_and_none_is_changed(service: FakeLLMServer) -> None:
    service.script = lambda number, request: http(200, json.dumps(REPLY, ensure_ascii=False), JSON)
    Path(".env").write_text("YARUS_SUT_LABEL=v1\nYARUS_SUT_SERVICE__ANSWER=text")  # without an end of the line
    address = f"{service.url}/ask"
    found = begun("журнал.csv", "--into", "init_env", "--sut", address)
    assert found["env"]["kept"] == ["YARUS_SUT_SERVICE__ANSWER"]
    lines = Path(".env").read_text().splitlines()
    assert lines[:2] == ["YARUS_SUT_LABEL=v1", "YARUS_SUT_SERVICE__ANSWER=text"]
    assert lines[3:] == [f"YARUS_SUT={address}", "YARUS_SUT_SERVICE__URLS=result.sources[].url"]
    begun("журнал.csv", "--into", "init_env", "--sut", address)
    assert Path(".env").read_text().splitlines() == lines
    assert len(service.requests) == 2  # one question each


def test_a_new_file_of_settings_is_its_owners(service: FakeLLMServer) -> None:
    begun("журнал.csv", "--into", "init_own")
    assert stat.S_IMODE(Path(".env").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("reply", "settings"),
    [
        ({"answer": "там", "urls": [URL]}, {}),
        (REPLY, {"answer": "result.answer", "urls": "result.sources[].url"}),
        ({"response": "там", "model": "m"}, {"answer": "response"}),
        ({"data": {"text": "там"}}, {"answer": "data.text"}),
        ({"ответ": "там"}, {"answer": '"ответ"'}),
        ({"choices": [{"message": {"content": "там"}}]}, {}),
    ],
)
def test_where_the_answer_stands_in_a_reply(service: FakeLLMServer, reply: Any, settings: dict[str, str]) -> None:
    service.script = lambda number, request: http(200, json.dumps(reply, ensure_ascii=False), JSON)
    found = begun("журнал.csv", "--into", "init_reply", "--sut", f"{service.url}/ask", "--dry-run")
    assert found["system"]["settings"] == settings
    assert found["system"]["answer"] in ("там", "В деканате.")


def test_by_which_name_a_service_takes_the_question(service: FakeLLMServer) -> None:
    service.script = lambda number, request: (
        http(200, '{"answer": "там"}', JSON) if "query" in request else http(422, '{"detail": "query: missing"}', JSON)
    )
    found = begun("журнал.csv", "--into", "init_asked", "--sut", f"{service.url}/ask", "--dry-run")
    assert found["system"]["settings"] == {"request": '{"query": "$question"}'}
    assert service.requests[-1] == {"query": "Где взять справку номер 0?"}


def test_a_service_that_cannot_be_asked(service: FakeLLMServer) -> None:
    with pytest.raises(InputError, match="only an http"):
        begun("журнал.csv", "--into", "init_bad", "--sut", "my_bot:answer")
    service.script = lambda number, request: http(500, "broken", JSON)
    with pytest.raises(ModelUnavailable, match="500: broken"):
        begun("журнал.csv", "--into", "init_bad", "--sut", f"{service.url}/ask")
    service.script = lambda number, request: http(200, '{"one": "a", "two": "b"}', JSON)
    with pytest.raises(InputError, match="which part of the reply is the answer: one, two"):
        begun("журнал.csv", "--into", "init_bad", "--sut", f"{service.url}/ask")
    assert not Path(".env").exists()


def test_what_is_doubtful_is_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("thumbs.csv").write_text("вопрос,ответ_системы,ответ_бота,оценка\nГде?,тут,там,1\nКак?,так,эдак,0\n")
    assert exit_code(["init", "thumbs.csv", "--into", "init_doubtful"]) == 0
    said = capsys.readouterr().out
    assert "answer: ответ_бота, ответ_системы? Не взято" in said
    assert "score: оценка. Не взято" in said
    found = begun("thumbs.csv", "--into", "init_doubtful", "--map", "answer=ответ_бота")
    assert found["files"][0]["mapping"] == {"question": "вопрос", "answer": "ответ_бота"}
    assert found["files"][0]["unused"] == {"ответ_системы": "тут"}


def test_a_cell_that_cannot_be_read_is_told_in_russian_and_costs_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    Path("dates.csv").write_text("вопрос,дата\n" + "Как?,2026-03-05 9:05\n" * 20 + "Где?,вчера\n")
    assert exit_code(["init", "dates.csv", "--into", "init_dates"]) == 0
    said = capsys.readouterr().out
    assert "дата: не прочитано 1 из 21 ('вчера' в dates.csv:22): не дата" in said
    assert "прочитано 21" in said and "добавлено 2," in said


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("a,b\n1,2\n", (), r"neither questions nor texts of pages by its columns: a \(1\), b \(2\)"),
        ("вопрос,ответ\n", (), "no row; expected names of columns"),
        ("question,запрос\n", (), "no row; expected names of columns"),
        ("вопрос,запрос\nx,y\n", (), r"which column is the question: вопрос \(x\), запрос \(y\)\?"),
        ("вопрос\nx\n", ("--map", "answer=ответ"), "no column in t.csv: 'ответ'"),
        ("вопрос\nx\n", ("--map", "anwser=вопрос"), "did you mean 'answer'"),
    ],
)
def test_what_cannot_be_told(content: str, words: tuple[str, ...], message: str) -> None:
    Path("t.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        begun("t.csv", "--into", "init_none", *words)
    assert not Path(".env").exists()


def test_a_database_is_mapped_by_settings_and_stays_where_it_is(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = engine.url.set(database="of_init", drivername="postgresql").render_as_string(hide_password=False)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE IF EXISTS of_init"))
        connection.execute(text("CREATE DATABASE of_init"))
    with create_engine(engine.url.set(database="of_init"), poolclass=NullPool).begin() as connection:
        connection.execute(
            text("""
            CREATE TABLE messages (msg_id int, query text, reply text, page_url text, rating int, client_id int,
                                   created timestamptz);
            CREATE TABLE pages (page_id int, url text, body text);
            CREATE TABLE accounts (id int, secret text);
            INSERT INTO messages VALUES (1, 'Где?', 'там', 'https://wiki/a', 5, 7, now()),
                                        (2, 'Как?', NULL, NULL, 1, 7, now());
            INSERT INTO pages VALUES (1, 'https://wiki/a', 'Там.');
        """)
        )
    found = begun("--source-url", url)
    assert found["source"] == "production"
    lines = Path(".env").read_text().splitlines()
    assert lines[0].startswith("YARUS_SOURCE_URL=")
    assert {
        "YARUS_SOURCE_TABLES__QUESTION_ANSWER=messages", "YARUS_SOURCE_TABLES__CHUNK=pages",
        "YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__QUESTION=query", "YARUS_SOURCE_COLUMNS__CHUNK__TEXT=body",
    } <= {*lines}  # fmt: skip
    assert {one["tier"]: one["questions"] for one in found["readiness"]}["tier1"] == 1
