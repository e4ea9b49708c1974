"""Check `yarus init`: from a user's files, database and service to a source that can be measured."""

import csv
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from tests.support.json_schemas import check_json
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from yarus.__main__ import cli, run_command_line
from yarus.db.errors import InputError, ModelUnavailable
from yarus.tasks.config.settings import get_settings

URL = "https://wiki.example/pages/viewpage.action?pageId={}"
NAMES = ["№", "Дата", "Пользователь", "Вопрос", "Ответ", "Ссылка", "Оценка", "Канал"]
LOG = [
    [n, f"{n + 1:02}.03.2026 10:3{n}", f"u{n % 2}", f"Где взять справку номер {n}?", "Там.", URL.format(n), 5, "vk"]
    for n in range(6)
]  # fmt: skip
REPLY = {"result": {"answer": "В деканате.", "sources": [{"title": "Справки", "url": URL.format(1)}]}, "took": 12}


@pytest.fixture(autouse=True)
def user_folder(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a user's folder, with pages and a log as Excel saves it in Russian."""
    monkeypatch.chdir(tmp_path)
    with Path("журнал.csv").open("w", encoding="cp1251", newline="") as file:
        csv.writer(file, delimiter=";").writerows([NAMES, *LOG])
    with Path("pages.csv").open("w", encoding="utf-8-sig", newline="") as file:
        pages = [[URL.format(n), f"Справка {n}", f"Справку номер {n} выдают в деканате. " * 5] for n in range(5)]
        csv.writer(file).writerows([["url", "title", "content"], *pages])
    monkeypatch.setenv("YARUS_RESULTS", str(tmp_path / "results"))  # without evaluations
    return tmp_path


def init(*words: str) -> Result:
    return CliRunner().invoke(cli, ["init", *words], standalone_mode=False)


def run_init(*words: str) -> Any:
    result = init(*words, "--json")
    if result.exception is not None:
        raise result.exception
    return check_json("init", result.stdout)


def test_init_loads_excel_log_and_pages(engine: Engine) -> None:
    report = run_init("pages.csv", "журнал.csv", "--into", "init_both")
    assert [(entry["kind"], entry["encoding"], entry["unused"]) for entry in report["files"]] == [
        ("questions", "cp1251", {"Канал": "vk"}), ("chunks", "utf-8-sig", {}),
    ]  # fmt: skip
    assert report["files"][0]["mapping"] == {
        "id": "№", "question": "Вопрос", "answer": "Ответ", "confluence_url": "Ссылка", "score": "Оценка",
        "user_id": "Пользователь", "created_at": "Дата",
    }  # fmt: skip
    assert [entry["questions"]["added"] + entry["chunks"]["added"] for entry in report["loaded"]] == [6, 5]
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT id, question, score, created_at::date::text FROM source_init_both.question_answer ORDER BY id")
        ).all()
    assert rows[0] == ("0", "Где взять справку номер 0?", 5, "2026-03-01")
    ready = {entry["tier"]: (entry["questions"], entry["missing"]) for entry in report["readiness"]}
    assert ready == {
        "tier1": (5, None), "real_users": (5, None), "tier2": (5, None), "tier3": (6, None), "ux": (6, None),
        "judge": (5, None), "judge_pipeline": (5, None), "tier0": (0, "one passage per page"),
    }  # fmt: skip  # the page of one question is not among the pages
    assert run_command_line(["run", "tier1", "--source", "init_both", "--dry-run"]) == 0


def test_init_writes_commands_that_load_again() -> None:
    import shlex

    run_init("pages.csv", "журнал.csv", "--into", "init_again")
    commands = [line.removeprefix("# ") for line in Path(".env").read_text().splitlines() if line.startswith("# yarus")]
    assert len(commands) == 2
    for words in map(shlex.split, commands):
        again = CliRunner().invoke(cli, [*words[1:], "--json"], standalone_mode=False)
        assert again.exception is None
        counted = json.loads(again.stdout)
        assert counted["questions"]["added"] == counted["questions"]["updated"] == counted["chunks"]["added"] == 0
        assert counted["questions"]["read"] + counted["chunks"]["read"] > 0


def test_init_dry_run_only_prints(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["init", "журнал.csv", "pages.csv", "--into", "init_dry", "--dry-run"]) == 0
    output = capsys.readouterr().out
    for words in ("cp1251", "question = Вопрос", "created_at = Дата", "не нужны: Канал", "text = content", "init_dry"):
        assert words in output
    assert "Ничего не загружено и не записано" in output.splitlines()[-1]
    assert not Path(".env").exists()
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM yarus.source WHERE name = 'init_dry'")) == 0


def test_init_adds_settings_and_changes_none(service: FakeLLMServer) -> None:
    service.script = lambda number, request: make_response(200, json.dumps(REPLY, ensure_ascii=False), JSON_HEADER)
    Path(".env").write_text("YARUS_SUT_LABEL=v1\nYARUS_SUT_SERVICE__ANSWER=text")  # without a final newline
    address = f"{service.url}/ask"
    report = run_init("журнал.csv", "--into", "init_env", "--sut", address)
    assert report["env"]["kept"] == ["YARUS_SUT_SERVICE__ANSWER"]
    lines = Path(".env").read_text().splitlines()
    assert lines[:2] == ["YARUS_SUT_LABEL=v1", "YARUS_SUT_SERVICE__ANSWER=text"]
    assert lines[3:] == [
        f"YARUS_SUT={address}", "YARUS_SUT_SERVICE__URLS=result.sources[].url", "YARUS_LANGUAGE=ru"
    ]  # fmt: skip
    run_init("журнал.csv", "--into", "init_env", "--sut", address)
    assert Path(".env").read_text().splitlines() == lines
    assert len(service.requests) == 2  # one question each


def test_init_keeps_russian_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    run_init("журнал.csv", "--into", "init_ru")
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    assert (Path(".env").read_text().splitlines()[-1], get_settings().language) == ("YARUS_LANGUAGE=ru", "ru")
    report = run_init("журнал.csv", "--into", "init_ru")
    assert (report["env"]["added"], report["env"]["kept"]) == ([], [])


def test_init_writes_english_for_prompts_of_english_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    Path("log.csv").write_text("question,answer\nWhere is the library?,On the left.\n" * 3)
    (tmp_path / "results" / "tier1").mkdir(parents=True)
    assert run_init("log.csv", "--into", "init_old")["env"]["added"] == [], "their prompts would change"
    (tmp_path / "results" / "tier1").rmdir()
    assert run_init("log.csv", "--into", "init_english")["env"]["added"] == ["YARUS_LANGUAGE=en"]
    assert get_settings().text_language == "en"


def test_init_keeps_chosen_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    report = run_init("журнал.csv", "--into", "init_chosen")
    assert (report["env"]["added"], report["env"]["kept"]) == ([], [])
    assert "YARUS_LANGUAGE" not in Path(".env").read_text()


def test_init_creates_private_settings_file(service: FakeLLMServer) -> None:
    run_init("журнал.csv", "--into", "init_own")
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
def test_init_finds_answer_in_reply(service: FakeLLMServer, reply: Any, settings: dict[str, str]) -> None:
    service.script = lambda number, request: make_response(200, json.dumps(reply, ensure_ascii=False), JSON_HEADER)
    report = run_init("журнал.csv", "--into", "init_reply", "--sut", f"{service.url}/ask", "--dry-run")
    assert report["system"]["settings"] == settings
    assert report["system"]["answer"] in ("там", "В деканате.")


def test_init_finds_question_field(service: FakeLLMServer) -> None:
    service.script = lambda number, request: (
        make_response(200, '{"answer": "там"}', JSON_HEADER)
        if "query" in request
        else make_response(422, '{"detail": "query: missing"}', JSON_HEADER)
    )
    report = run_init("журнал.csv", "--into", "init_asked", "--sut", f"{service.url}/ask", "--dry-run")
    assert report["system"]["settings"] == {"request": '{"query": "$question"}'}
    assert service.requests[-1] == {"query": "Где взять справку номер 0?"}


def test_init_refuses_unusable_service(service: FakeLLMServer) -> None:
    with pytest.raises(InputError, match="only an http"):
        run_init("журнал.csv", "--into", "init_bad", "--sut", "my_bot:answer")
    service.script = lambda number, request: make_response(500, "broken", JSON_HEADER)
    with pytest.raises(ModelUnavailable, match="500: broken"):
        run_init("журнал.csv", "--into", "init_bad", "--sut", f"{service.url}/ask")
    service.script = lambda number, request: make_response(200, '{"one": "a", "two": "b"}', JSON_HEADER)
    with pytest.raises(InputError, match="which part of the reply is the answer: one, two"):
        run_init("журнал.csv", "--into", "init_bad", "--sut", f"{service.url}/ask")
    assert not Path(".env").exists()


def test_init_leaves_out_ambiguous_columns(capsys: pytest.CaptureFixture[str]) -> None:
    Path("thumbs.csv").write_text("вопрос,ответ_системы,ответ_бота,оценка\nГде?,тут,там,1\nКак?,так,эдак,0\n")
    assert run_command_line(["init", "thumbs.csv", "--into", "init_doubtful"]) == 0
    output = capsys.readouterr().out
    assert "answer: ответ_бота, ответ_системы? Не взято" in output
    assert "score: оценка. Не взято" in output
    report = run_init("thumbs.csv", "--into", "init_doubtful", "--map", "answer=ответ_бота")
    assert report["files"][0]["mapping"] == {"question": "вопрос", "answer": "ответ_бота"}
    assert report["files"][0]["unused"] == {"ответ_системы": "тут"}


def test_init_reports_unreadable_cell_and_keeps_rows(capsys: pytest.CaptureFixture[str]) -> None:
    Path("dates.csv").write_text("вопрос,дата\n" + "Как?,2026-03-05 9:05\n" * 20 + "Где?,вчера\n")
    assert run_command_line(["init", "dates.csv", "--into", "init_dates"]) == 0
    output = capsys.readouterr().out
    assert "дата: не прочитано 1 из 21 ('вчера' в dates.csv:22): не дата" in output
    assert "прочитано 21" in output and "добавлено 2," in output


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
def test_init_refuses_unrecognised_columns(content: str, words: tuple[str, ...], message: str) -> None:
    Path("t.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        run_init("t.csv", "--into", "init_none", *words)
    assert not Path(".env").exists()


def test_init_maps_database_by_settings(
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
    report = run_init("--source-url", url)
    assert report["source"] == "production"
    lines = Path(".env").read_text().splitlines()
    assert lines[0].startswith("YARUS_SOURCE_URL=")
    assert {
        "YARUS_SOURCE_TABLES__QUESTION_ANSWER=messages", "YARUS_SOURCE_TABLES__CHUNK=pages",
        "YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__QUESTION=query", "YARUS_SOURCE_COLUMNS__CHUNK__TEXT=body",
    } <= {*lines}  # fmt: skip
    assert {tier["tier"]: tier["questions"] for tier in report["readiness"]}["tier1"] == 1
    languages = []
    for question, page in (("Где?", "Там."), ("Where is it?", "There."), ("?", "...")):
        with create_engine(engine.url.set(database="of_init"), poolclass=NullPool).begin() as connection:
            connection.execute(text("UPDATE messages SET query = :question"), {"question": question})
            connection.execute(text("UPDATE pages SET body = :page"), {"page": page})
        Path(".env").unlink()
        report = run_init("--source-url", url)
        languages.append([line for line in report["env"]["added"] if line.startswith("YARUS_LANGUAGE=")])
    assert languages == [["YARUS_LANGUAGE=ru"], ["YARUS_LANGUAGE=en"], []], "none if the texts have no letters"
