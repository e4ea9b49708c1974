"""What a terminal would obey does not reach it: not in results, not in messages, not in what is logged."""

import logging
import unicodedata
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import source_name, with_cases
from yarus.__main__ import exit_code
from yarus.tasks.config.secrets import keep_logs_clean

EVIL = "\x1b[2J\x1b]0;owned\x07\u202etxt\u2066\x9b31m\ud83d\x00"


def obeyed(text: str) -> list[str]:
    return [sign for sign in text if unicodedata.category(sign)[0] == "C" and sign not in "\n\t"]


def test_a_message_about_a_foreign_name(at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["load", "table", f"no {EVIL[:-2]} file.csv", "--into", "nothing"]) == 2
    said = capsys.readouterr().err
    assert "file.csv" in said
    assert not obeyed(said)


def test_cases_and_reasons(engine: Engine, at_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = EVIL[:-2]  # half an emoji is in no file of results, and NUL in no database
    columns = {"question": [f"what {text}?"], "status": ["sut_error"], "reason": [f"it said {text}"], "mrr": [None]}
    name = with_cases(
        engine, tmp_path, source_name(), columns, error=f"ended {text}", sut_label=text, statuses={"ok": 1}
    )
    for command in (["cases", name], ["show", name], ["runs"], ["trend", "mrr"], ["gate", name]):
        exit_code(command)
        said = capsys.readouterr()
        assert said.out + said.err
        assert not obeyed(said.out + said.err), command


def test_what_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    keep_logs_clean()
    with caplog.at_level(logging.WARNING, logger="yarus"):
        logging.getLogger("yarus").warning("the judge said %s", EVIL)
    assert "the judge said" in caplog.text
    assert not obeyed(caplog.text)
