"""Erasure of a user's data in dialogs, including later turns that were answered with the user's words."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.support.evaluations import evaluate, load, question, read_rows
from yarus.deployments.upkeep.erasure.erase import erase_user_data, find_user_data
from yarus.tasks.config.connections import database

USER, MARK = "9100", "МЕТКА пересдачи"
BOT = """
def answer(question, history):
    return {"answer": " ".join(message["content"] for message in history) + " Сдать книгу.", "urls": []}
"""


def test_erase_removes_dialogs_of_the_user(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE of_erase_dialogs"))  # a separate database, because its data is erased
    monkeypatch.setenv("YARUS_HOME", str(tmp_path))
    monkeypatch.setenv(
        "YARUS_DATABASE_URL", engine.url.set(database="of_erase_dialogs").render_as_string(hide_password=False)
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "bot_of_dialogs.py").write_text(BOT, encoding="utf-8")
    rows = [question(i, user_id=str(i), dialog_id=f"d{i // 3}", turn=1 + i % 3) for i in range(9)]
    rows[3] |= {"user_id": USER, "question": f"{MARK}: когда?"}
    source = load(tmp_path, "spoken", rows)
    evaluation = evaluate("tier3", source=source, sut="bot_of_dialogs:answer")
    question_ids = [row["question_id"] for row in read_rows(evaluation) if MARK in str(row)]
    assert question_ids == ["3", "4", "5"]
    erase_engine = database()
    erase_user_data(erase_engine, find_user_data(erase_engine, USER, source), dry_run=False)
    erase_engine.dispose()
    remaining = read_rows(evaluation)
    assert MARK not in str(remaining) and [row["question_id"] for row in remaining] == ["0", "1", "2", "6", "7", "8"]
