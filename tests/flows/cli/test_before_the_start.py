"""Check that detectable problems are reported before anything is started, and that nothing is left to resume."""

import socket
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select

from yarus.__main__ import run_command_line
from yarus.db.tables import evaluation
from yarus.tasks.evaluation.resources import Resources

NO_MODEL = {"YARUS_JUDGE__BASE_URL": "http://127.0.0.1:9/v1"}
JUDGE = NO_MODEL | {"YARUS_JUDGE__MODEL": "m"}
E5 = "intfloat/no-such-model"
WRONG: dict[str, tuple[dict[str, str], str, int, str]] = {
    "a judge without a model": (NO_MODEL, "tier2", 2, "YARUS_JUDGE__MODEL"),
    "a judge without a model, at night": (NO_MODEL, "nightly", 2, "YARUS_JUDGE__MODEL"),
    "a production judge without a model": (
        {"YARUS_PRODUCTION_JUDGE__BASE_URL": "http://127.0.0.1:9/v1"},
        "judge_pipeline",
        2,
        "YARUS_PRODUCTION_JUDGE__",
    ),
    "a generator without a model": ({"YARUS_GENERATOR__BASE_URL": "http://x/v1"}, "tier3", 2, "YARUS_GENERATOR__"),
    "a budget without a price": (JUDGE | {"YARUS_BUDGET_USD": "1"}, "tier2", 2, "YARUS_PRICES has no price for 'm'"),
    "no folder of rubrics": ({"YARUS_RUBRICS": "/nowhere"}, "tier2", 2, "/nowhere: no such folder"),
    "a prompt without the answer": (JUDGE | {"YARUS_JUDGE__PROMPT": "faithfulness.txt"}, "tier3", 2, "$answer"),
    "no such retriever": ({"YARUS_RETRIEVER": "desne"}, "tier1", 2, "did you mean 'dense'?"),
    "no such system": ({"YARUS_SUT": "lokal"}, "tier3", 2, "no system under test 'lokal'"),
    "a request without a question": ({"YARUS_SUT": "http://x/", "YARUS_SUT_SERVICE__REQUEST": "{}"}, "tier3", 2, "$qu"),
    "a judge that is not there": (JUDGE, "tier2", 3, "judge 'm' at http://127.0.0.1:9/v1: nothing answers there"),
    "a judge of an unknown host": (
        NO_MODEL | {"YARUS_JUDGE__BASE_URL": "http://judge.invalid/v1", "YARUS_JUDGE__MODEL": "m"},
        "judge", 3, "correct YARUS_JUDGE__BASE_URL",
    ),
    "a system that is not there": ({"YARUS_SUT": "http://127.0.0.1:9/ask"}, "tier3", 3, "correct YARUS_SUT or --sut"),
    "a retriever that is not there": ({"YARUS_RETRIEVER": "http://127.0.0.1:9/"}, "tier1", 3, "YARUS_RETRIEVER or"),
    "an embedder that is not there": ({"YARUS_EMBEDDER": "http://127.0.0.1:9/v1#m"}, "tier1", 3, "YARUS_EMBEDDER"),
    "a model and no network": ({"YARUS_EMBEDDER": E5, "HF_ENDPOINT": "http://127.0.0.1:9"}, "tier0", 2, "download"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_reported_before_start(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variables, tier, code, words = WRONG[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faithfulness.txt").write_text("Верен ли ответ?")
    monkeypatch.setenv("YARUS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("YARUS_DATABASE_URL", raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    assert run_command_line(["run", tier]) == code
    stderr = capsys.readouterr().err
    assert words in stderr
    assert "--resume" not in stderr
    assert "starting" not in stderr
    assert not (tmp_path / "home").exists()  # no database was made, and no server


def test_nightly_warns_if_a_model_is_unreachable(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from yarus.flows.cli.runner import check_evaluation, parse_parameters

    for variable, value in JUDGE.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    check_evaluation(parse_parameters("nightly", {}, (), ()), Resources())
    assert [text for text in caplog.messages if "nothing answers" in text] == [
        "judge 'm' at http://127.0.0.1:9/v1: nothing answers there (Connection refused). Start it, or correct "
        "YARUS_JUDGE__BASE_URL; what does not need it goes on"
    ]


def test_listening_address_is_not_refused(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from yarus.flows.cli.runner import check_evaluation, parse_parameters

    with socket.create_server(("127.0.0.1", 0)) as listener:  # it never answers
        monkeypatch.setenv("YARUS_JUDGE__BASE_URL", f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        monkeypatch.setenv("YARUS_JUDGE__MODEL", "m")
        check_evaluation(parse_parameters("tier2", {}, (), ()), Resources())


def test_source_without_chunks_starts_nothing(
    at_home: Path, engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.csv").write_text("question,answer,created_at\nГде справка?,В деканате.,2026-03-05\n")
    assert run_command_line(["load", "table", str(tmp_path / "log.csv"), "--into", "without_chunks"]) == 0
    with engine.connect() as connection:
        before = connection.scalar(select(func.count()).select_from(evaluation))
    for tier in ("tier1", "tier3", "real_users"):
        assert run_command_line(["run", tier, "--source", "without_chunks"]) == 2
        stderr = capsys.readouterr().err
        assert ("нет страниц для поиска" if tier == "tier3" else "нет нужного: фрагменты; загрузите") in stderr
        assert "Prefect" not in stderr
    with engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(evaluation)) == before


def test_missing_function_starts_nothing(at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["run", "tier3", "--sut", "no_bot:answer"]) == 2
    stderr = capsys.readouterr().err
    assert "No module named 'no_bot'" in stderr
    assert "Prefect" not in stderr
