"""Check that control characters do not reach the terminal: not in results, messages or logs."""

import logging
import unicodedata
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from yarus.__main__ import run_command_line
from yarus.tasks.config.secrets import install_log_redaction

EVIL = "\x1b[2J\x1b]0;owned\x07\u202etxt\u2066\x9b31m\ud83d\x00"


def find_control_characters(text: str) -> list[str]:
    return [character for character in text if unicodedata.category(character)[0] == "C" and character not in "\n\t"]


def test_message_escapes_foreign_name(at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["load", "table", f"no {EVIL[:-2]} file.csv", "--into", "nothing"]) == 2
    stderr = capsys.readouterr().err
    assert "file.csv" in stderr
    assert not find_control_characters(stderr)


def test_output_escapes_cases_and_reasons(
    engine: Engine, at_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = EVIL[:-2]  # results files cannot store half an emoji, and databases no NUL
    columns = {"question": [f"what {text}?"], "status": ["sut_error"], "reason": [f"it said {text}"], "mrr": [None]}
    name = write_evaluation_with_cases(
        engine, tmp_path, make_source_name(), columns, error=f"ended {text}", sut_label=text, statuses={"ok": 1}
    )
    for command in (["cases", name], ["show", name], ["runs"], ["trend", "mrr"], ["gate", name]):
        run_command_line(command)
        captured = capsys.readouterr()
        assert captured.out + captured.err
        assert not find_control_characters(captured.out + captured.err), command


def test_log_escapes_control_characters(caplog: pytest.LogCaptureFixture) -> None:
    install_log_redaction()
    with caplog.at_level(logging.WARNING, logger="yarus"):
        logging.getLogger("yarus").warning("the judge said %s", EVIL)
    assert "the judge said" in caplog.text
    assert not find_control_characters(caplog.text)
