"""Check tier 3 of a callable: one question at a time, enough time, and errors instead of scores if it fails."""

from pathlib import Path

import pytest

from tests.support.evaluations import evaluate, load, question, read_rows
from tests.support.llm_server import FakeLLMServer
from yarus.db.errors import InputError


@pytest.fixture
def module(at_home: Path) -> str:
    """Return the name of a module of callables, importable from the current folder."""
    (at_home / "my_bot.py").write_text(BOT, encoding="utf-8")
    return "my_bot"


BOT = """
import threading, time
inside = threading.Lock()
def slow(question):
    assert inside.acquire(blocking=False), "two at once"
    time.sleep(0.01)
    inside.release()
    return {"answer": question, "urls": [], "contexts": [question]}
def ten_seconds(question):
    time.sleep(10)
    return {"answer": "Сдать книгу."}
def mixed(question):
    which = int(question.split()[3].strip(","))
    if which == 0:
        raise KeyError("no index at postgresql://bot:s3cret@db/x")
    return [None, ["a text"], {"answer": 5}, {"answer": "да", "contexts": [1]}][which - 1] if which < 5 else \\
        {"answer": "Сдать книгу.", "urls": None, "contexts": ("одна", "пара")} if which == 5 else {"answer": "Сдать."}
no_function = 5
"""


@pytest.mark.slow("wait: a slow callable")
def test_slow_callable_gets_one_question_at_a_time(judge: FakeLLMServer, tmp_path: Path, module: str) -> None:
    source = load(tmp_path, "slow", [question(i) for i in range(102)])  # two batches, which are in flight together
    rows = read_rows(evaluate("tier3", source=source, sut=f"{module}:slow", limit=102))
    assert {row["status"] for row in rows} == {"ok"}
    assert min(row["latency_ms"] for row in rows) >= 10
    assert [row["answer"] for row in rows] == [row["question"] for row in rows]


@pytest.mark.slow("wait: ten seconds")
def test_callable_may_take_ten_seconds(judge: FakeLLMServer, tmp_path: Path, module: str) -> None:
    source = load(tmp_path, "ten_seconds", [question(0)])
    [row] = read_rows(evaluate("tier3", source=source, sut=f"{module}:ten_seconds"))
    assert (row["status"], row["answer"]) == ("ok", "Сдать книгу.")
    assert row["latency_ms"] >= 10_000


def test_faulty_callable_gives_errors(judge: FakeLLMServer, tmp_path: Path, module: str) -> None:
    source = load(tmp_path, "sometimes_wrong", [question(i) for i in range(7)])
    rows = read_rows(evaluate("tier3", source=source, sut=f"{module}:mixed"))
    words = ["KeyError", "got NoneType", "got list", "'answer' is 5", "'contexts' is [1]"]
    assert [row["status"] for row in rows] == ["sut_error"] * 5 + ["ok"] * 2
    assert [word in row["reason"] for word, row in zip(words, rows, strict=False)] == [True] * 5
    assert rows[5]["context"] == "одна\n\nпара"
    assert "s3cret" not in rows[0]["reason"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("my_bot:absent", "absent"), ("no_such_bot:answer", "no_such_bot"), ("my_bot:no_function", "no function"),
     ("locale", "expected 'local'"), (":answer", "YARUS_SUT ':answer'.*expected module:function")],
)  # fmt: skip
def test_missing_callable_is_refused(at_home: Path, module: str, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        evaluate("tier3", sut=name)
