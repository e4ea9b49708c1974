"""A retriever that is somebody else's function: what it may return, and whatever goes wrong."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.bots import CODES
from yarus.db.errors import InputError
from yarus.tasks.systems.retrievers.external import Outside, checked
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
    """The name of a module in the current folder that needs another one there."""
    name = f"theirs_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MODULE.format(name=name), encoding="utf-8")
    (tmp_path / f"{name}_helper.py").write_text("PREFIX = 'chunk '", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield name
    CODES.close()


def ranked(name: str, questions: list[str], k: int) -> list[Ranking]:
    code = CODES.get(name, "--retriever", "ranking")
    retriever = Outside(lambda question, k: code.call(question, k)[0], concurrency=code.concurrency)
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
def test_a_callable(module: str, function: str, ids: list[str], error: str | None) -> None:
    first, second = ranked(f"{module}:{function}", ["?", "!"], 3)
    assert (first.ids, first.error) == (second.ids, second.error) == (ids, error and error.format(module=module))
    assert (first.latency_ms is None) == (error is not None)


def test_a_callable_of_other_arguments_is_refused(module: str) -> None:
    with pytest.raises(InputError, match=r"wrong_arguments' takes \(question\); expected retrieve\(question, k\)"):
        ranked(f"{module}:wrong_arguments", ["?"], 3)


def test_a_callable_is_never_called_twice_at_once() -> None:
    inside, most = [0], [0]

    def ask(question: str, k: int) -> list[tuple[object, float]]:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        inside[0] -= 1
        return []

    retriever = Outside(ask, concurrency=1)
    batches = [
        threading.Thread(target=retriever.retrieve, args=(["?"] * 10, None, 5), kwargs={"timed": 0}) for _ in range(3)
    ]
    for batch in batches:
        batch.start()
    for batch in batches:
        batch.join()
    assert most == [1]


@pytest.mark.parametrize(
    ("suffix", "message"),
    [(":absent", "absent"), (":number", "is no function but int"), ("_absent:f", "No module named")],
)
def test_a_callable_that_is_not_there_is_refused(module: str, suffix: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CODES.get(module + suffix, "--retriever", "ranking")


def test_a_module_that_does_not_parse_is_refused(module: str) -> None:
    Path(f"{module}_broken.py").write_text("def f(:", encoding="utf-8")
    with pytest.raises(InputError, match=r"SyntaxError: .*broken\.py:1\)"):
        CODES.get(f"{module}_broken:f", "--retriever", "ranking")


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
def test_a_module_that_fails_on_import_is_refused(module: str, code: str, words: str) -> None:
    """With its name, the error and the setting; without the secrets that the error names."""
    name = f"{module}_fails_{words.partition(':')[0]}"
    Path(f"{name}.py").write_text(code, encoding="utf-8")
    with pytest.raises(InputError) as refused, ThreadPoolExecutor() as pool:  # as in a run, where Ctrl-C cannot come
        pool.submit(CODES.get, f"{name}:f", "YARUS_SUT", "answer").result()
    assert f"YARUS_SUT '{name}:f': module '{name}': {words}" in str(refused.value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("name", [":answer", ".:answer", "..a:answer"])
def test_a_callable_without_a_module_is_refused(module: str, name: str) -> None:
    with pytest.raises(InputError, match=r"YARUS_SUT .*expected module:function"):
        CODES.get(name, "YARUS_SUT", "answer")


def test_equal_distances_and_more_than_k_are_a_ranking() -> None:
    assert checked([(1, 0.5), ("b", 0.5), ("b", 0.1)], 2) == (["1", "b"], [0.5, 0.5])
