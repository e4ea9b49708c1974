"""A foreign function as retriever: valid rankings, and every failure."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.bots import USER_CODES
from yarus.db.errors import InputError
from yarus.tasks.systems.retrievers.external import ExternalRetriever, validate_ranking
from yarus.tasks.systems.retrievers.protocol import Ranking

MODULE = """
import {name}_helper  # beside it, in the current folder

def good(question, k):
    return [({name}_helper.PREFIX + str(number), number / 10) for number in range(k + 5)]

def raises(question, k):
    raise RuntimeError("index\\n  corrupt at postgresql://bot:s3cret@db/x")

def twice(question, k): return [("a", 0.1), ("b", 0.2), ("a", 0.3)]
def unsorted(question, k): return [("a", 0.2), ("b", 0.1)]
def nan(question, k): return [("a", float("nan"))]
def few(question, k): return [("a", 0.2)]
def nothing(question, k): return []
def none(question, k): return None
def bare(question, k): return ["first", "second"]
def generator(question, k): yield from [("a", 0), ("b", 0)]
def endless(question, k):
    number = 0
    while True:
        yield (str(number), number)
        number += 1
def huge(question, k): return [("x" * 4_000_001, 0)]
def wrong_arguments(question): return []
number = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Write a module into the current folder that imports another module there, and return its name."""
    name = f"theirs_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MODULE.format(name=name), encoding="utf-8")
    (tmp_path / f"{name}_helper.py").write_text("PREFIX = 'chunk '", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield name
    USER_CODES.close()


def rank_questions(name: str, questions: list[str], k: int) -> list[Ranking]:
    code = USER_CODES.get(name, "--retriever", "ranking")
    retriever = ExternalRetriever(lambda question, k: code.call(question, k)[0], concurrency=code.concurrency)
    return retriever.retrieve(questions, None, k, timed=0)


@pytest.mark.parametrize(
    ("function", "ids", "error"),
    [
        ("good", ["chunk 0", "chunk 1", "chunk 2"], None),
        ("few", ["a"], None),
        ("nothing", [], None),
        ("generator", ["a", "b"], None),
        ("endless", ["0", "1", "2"], None),
        (
            "huge",
            [],
            "ValueError: the ids of the ranking: 4,000,001 characters; at most 4,000,000 are taken. Return less",
        ),
        ("raises", [], "RuntimeError: index corrupt at postgresql://bot:***@db/x ({module}.py:8)"),
        ("twice", [], "ValueError: id 'a' was returned twice"),
        ("unsorted", [], "ValueError: distances do not ascend: 0.2 at rank 1, then 0.1; return the nearest first"),
        ("nan", [], "ValueError: distances do not ascend: -inf at rank 0, then nan; return the nearest first"),
        ("none", [], "ValueError: expected pairs of id and distance, nearest first, not None"),
        ("bare", [], "ValueError: expected pairs of id and distance, nearest first, not ['first', 'second']"),
    ],
)
def test_callable_ranks_or_fails(module: str, function: str, ids: list[str], error: str | None) -> None:
    first, second = rank_questions(f"{module}:{function}", ["?", "!"], 3)
    assert (first.ids, first.error) == (second.ids, second.error) == (ids, error and error.format(module=module))
    assert (first.latency_ms is None) == (error is not None)


def test_callable_with_other_arguments_is_rejected(module: str) -> None:
    with pytest.raises(InputError, match=r"wrong_arguments' takes \(question\); expected retrieve\(question, k\)"):
        rank_questions(f"{module}:wrong_arguments", ["?"], 3)


def test_callable_is_not_called_concurrently() -> None:
    n_running, max_running = [0], [0]

    def ask(question: str, k: int) -> list[tuple[object, float]]:
        n_running[0] += 1
        max_running[0] = max(max_running[0], n_running[0])
        time.sleep(0.002)
        n_running[0] -= 1
        return []

    retriever = ExternalRetriever(ask, concurrency=1)
    batches = [
        threading.Thread(target=retriever.retrieve, args=(["?"] * 10, None, 5), kwargs={"timed": 0}) for _ in range(3)
    ]
    for batch in batches:
        batch.start()
    for batch in batches:
        batch.join()
    assert max_running == [1]


@pytest.mark.parametrize(
    ("suffix", "message"),
    [(":absent", "absent"), (":number", "is no function but int"), ("_absent:f", "No module named")],
)
def test_missing_callable_is_rejected(module: str, suffix: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        USER_CODES.get(module + suffix, "--retriever", "ranking")


def test_module_with_syntax_error_is_rejected(module: str) -> None:
    Path(f"{module}_broken.py").write_text("def f(:", encoding="utf-8")
    with pytest.raises(InputError, match=r"SyntaxError: .*broken\.py:1\)"):
        USER_CODES.get(f"{module}_broken:f", "--retriever", "ranking")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.environ['NO_SUCH_TOKEN']", "KeyError: 'NO_SUCH_TOKEN'"),
        (
            "raise RuntimeError('no index at postgresql://bot:s3cret@db/x')",
            "RuntimeError: no index at postgresql://bot",
        ),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: "),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError: "),
    ],
)
def test_module_that_fails_on_import_is_rejected(module: str, code: str, words: str) -> None:
    """The message has the name, the error and the setting, but no secrets."""
    name = f"{module}_fails_{words.partition(':')[0]}"
    Path(f"{name}.py").write_text(code, encoding="utf-8")
    with pytest.raises(InputError) as raised, ThreadPoolExecutor() as pool:  # in a thread, which Ctrl-C does not reach
        pool.submit(USER_CODES.get, f"{name}:f", "YARUS_SUT", "answer").result()
    assert f"YARUS_SUT '{name}:f': module '{name}': {words}" in str(raised.value)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("name", [":answer", ".:answer", "..a:answer"])
def test_callable_without_module_is_rejected(module: str, name: str) -> None:
    with pytest.raises(InputError, match=r"YARUS_SUT .*expected module:function"):
        USER_CODES.get(name, "YARUS_SUT", "answer")


def test_validate_ranking_accepts_ties_and_surplus_pairs() -> None:
    assert validate_ranking([(1, 0.5), ("b", 0.5), ("b", 0.1)], 2) == (["1", "b"], [0.5, 0.5])
