"""A user's data in dialogs: what others asked after them in one was answered with their words, and goes too."""

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.support.evaluations import evaluate, load, question, rows_of
from yarus.deployments.upkeep.erasure.erase import erase, find
from yarus.tasks.config.connections import database

USER, MARK = "9100", "МЕТКА пересдачи"
BOT = """
def answer(question, history):
    return {"answer": " ".join(message["content"] for message in history) + " Сдать книгу.", "urls": []}
"""


def test_a_dialog_goes_with_the_user_who_spoke_in_it(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE of_erase_dialogs"))  # what is erased here must be nobody else's
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
    found = evaluate("tier3", source=source, sut="bot_of_dialogs:answer")
    held = [row["question_id"] for row in rows_of(found) if MARK in str(row)]
    assert held == ["3", "4", "5"]
    apart = database()
    erase(apart, find(apart, USER, source), dry_run=False)
    apart.dispose()
    left = rows_of(found)
    assert MARK not in str(left) and [row["question_id"] for row in left] == ["0", "1", "2", "6", "7", "8"]
