"""Tier 3: our own system, a service and a callable; what refuses, hides or fails; where answers fail first."""

import importlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import paired_cosine_distances

from db.errors import InputError
from tasks.config.settings import SystemService
from tasks.models.embedders import embedder
from tasks.steps.find_failures import failure_of
from tasks.systems.sut import checked, system
from tests.support.command_line import CommandLine
from tests.support.evaluations import (
    PAGE,
    evaluate,
    load,
    metric_of,
    question,
    roles,
    rows_of,
    steady,
    texts,
    use,
    value,
)
from tests.support.llm_server import JSON, Do, FakeLLMServer, http, scores

Document = dict[str, Any]


@pytest.fixture
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A judge on sockets, as `steady` says until told otherwise."""
    server = FakeLLMServer(script=steady)
    server.start()
    use(monkeypatch, roles(server.url, "judge"))
    yield server
    server.stop()


@pytest.fixture
def service(at_home: Path) -> Iterator[FakeLLMServer]:
    """A question-answering service on sockets."""
    server = FakeLLMServer()
    server.start()
    yield server
    server.stop()


def replies(**parts: Any) -> bytes:
    return http(200, json.dumps(parts, ensure_ascii=False), JSON)


def right(request: Document) -> bytes:
    """The right page and answer, from a question of `tests.support.evaluations.question`."""
    which = request["question"].split()[3].strip(",")
    page = PAGE.format(int(which) % 10)
    return replies(answer=f"Сдать книгу {which}.", urls=[page], contexts=[f"Правило {which} велит сдать книгу."])


def test_half_an_emoji_in_a_reply_harms_nobody(judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path) -> None:
    url = PAGE.format(1) + "&title=\ud83d"
    service.script = lambda number, request: http(200, json.dumps({"answer": "Сдать \ud83d.", "urls": [url]}), JSON)
    source = load(tmp_path, "half_an_emoji_3", [question(i) for i in range(3)])
    summary = evaluate("tier3", source=source, sut=f"{service.url}/ask")
    assert summary["state"] == "completed"
    assert {row["answer"] for row in rows_of(summary)} == {"Сдать ?."}


def test_an_id_that_is_not_in_the_corpus_has_no_text_but_its_place(
    judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stranger.py").write_text(STRANGER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    source = load(tmp_path, "strange", [question(i) for i in range(10)])
    summary = evaluate("tier3", source=source, retriever="stranger:retrieve", k=2)
    assert summary["state"] == "completed"
    for row in rows_of(summary):
        assert row["retrieved"] == ["gone", "c1"]
        assert row["context"].startswith("Правило 1 ")
    assert {"note": "unknown ids", "n": 10} in summary["notes"]


STRANGER = """
def retrieve(question, k):
    return [("gone", 0.1), ("c1", 0.2)]
"""

# The sample, with the stand-ins.


@pytest.fixture(scope="module")
def sample_rows(night: dict[str, Document]) -> list[Document]:
    return rows_of(night["tier3"])


def test_semantic_similarity_is_scikit_learns_cosine(
    night: dict[str, Document], sample_rows: list[Document], at_home: Path
) -> None:
    rows = [row for row in sample_rows if row["semantic_similarity"] is not None]
    model = embedder("lexical")
    left, right_side = (model.encode([row[name] for row in rows]) for name in ("answer", "reference"))
    theirs = 1 - paired_cosine_distances(left.astype(np.float64), right_side.astype(np.float64))
    assert [row["semantic_similarity"] for row in rows] == pytest.approx(theirs.tolist(), abs=1e-6)
    assert value(night["tier3"], "avg_semantic_similarity") == pytest.approx(theirs.mean(), abs=1e-6)
    assert len(rows) == sum(bool(row["answer"] and row["reference"]) for row in sample_rows)


def test_the_matrix_of_answerable_and_answered(night: dict[str, Document], sample_rows: list[Document]) -> None:
    cells = Counter(
        (row["answerable"], row["status"] == "sut_refusal") for row in sample_rows if row["answer"] is not None
    )
    names = {(True, False): "answerable_answered", (True, True): "answerable_refused"}
    names |= {(False, False): "unanswerable_answered", (False, True): "unanswerable_refused"}
    assert {cell: value(night["tier3"], name) for cell, name in names.items()} == {c: cells[c] for c in names}
    assert min(cells[cell] for cell in names) > 0
    refused = sum(n for (_, refusal), n in cells.items() if refusal)
    assert value(night["tier3"], "refusal_rate") == pytest.approx(refused / sum(cells.values()))


def test_a_refusal_is_worth_nothing_or_is_right(sample_rows: list[Document]) -> None:
    refused = [row for row in sample_rows if row["status"] == "sut_refusal"]
    assert {row["faithfulness"] for row in refused} == {None}
    assert {row["e2e_score"] for row in refused if row["answerable"]} == {0}
    assert {row["e2e_score"] for row in refused if row["answerable"] is False} == {None}
    assert {row["failure"] for row in refused if row["answerable"] is False} == {None}


def test_retrieval_is_tier_1s_at_the_depth_that_was_used(night: dict[str, Document]) -> None:
    for name in ("hit_rate@1", "precision@1", "recall@1"):
        assert night["tier3"]["metrics"][name]["value"] == night["tier1"]["metrics"][name]["value"]


def test_failures_are_counted_and_the_nearest_named(night: dict[str, Document], sample_rows: list[Document]) -> None:
    found = night["tier3"]["failures"]
    assert found["counts"] == {name: sum(row["failure"] == name for row in sample_rows) for name in found["counts"]}
    assert sum(found["counts"].values()) == sum(row["failure"] is not None for row in sample_rows)
    assert len(found["fix_first"]) == 5
    for row in sample_rows:
        if row["case_id"] in found["fix_first"]:
            assert set(row["relevant"]) & set(row["retrieved"])
            assert row["e2e_score"] == 0


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({}, None),
        ({"e2e_score": 0.59}, "generation"),
        ({"faithfulness": 0.69}, "generation"),
        ({"faithfulness": None}, None),
        ({"retrieved": ["b"], "e2e_score": 0.2}, "retrieval"),
        ({"retrieved": [], "e2e_score": 0.0, "status": "sut_refusal"}, "retrieval"),
        ({"retrieved": ["b"]}, "label"),
        ({"retrieved": ["b"], "path": "hidden", "status": "sut_refusal", "e2e_score": 0.0}, "retrieval"),
        ({"path": "hidden", "status": "sut_refusal", "e2e_score": 0.0}, "gate"),
        ({"status": "sut_refusal", "e2e_score": 0.0, "faithfulness": None}, "refusal"),
        ({"relevant": [], "answerable": False, "e2e_score": None}, "refusal"),
        ({"relevant": [], "answerable": False, "e2e_score": None, "status": "sut_refusal"}, None),
        ({"relevant": [], "e2e_score": 0.1}, "generation"),
        ({"retrieved": None, "e2e_score": 0.1}, "generation"),
        ({"status": "sut_error", "e2e_score": None}, None),
        ({"status": "parse_error", "e2e_score": None}, None),
        ({"status": "unlabelled", "e2e_score": None, "answerable": None}, None),
    ],
)
def test_where_a_case_fails_first(changes: Document, failure: str | None) -> None:
    good = {"status": "ok", "answerable": True, "relevant": ["a"], "retrieved": ["a"], "path": None}
    assert failure_of({**good, "e2e_score": 0.9, "faithfulness": 1.0, **changes}) == failure


def test_failures_are_told_in_words(yarus: CommandLine, night: dict[str, Document]) -> None:
    shown = yarus("show", night["tier3"]["evaluation_id"], env={"YARUS_LANGUAGE": "en"}).out
    assert f"retrieval missed {night['tier3']['failures']['counts']['retrieval']}" in shown
    assert night["tier3"]["failures"]["fix_first"][0] in shown


# A service over HTTP.


def test_a_service_is_asked_and_read_as_the_settings_say(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(number: int, request: Document) -> bytes:
        which = request["messages"][0]["text"].split()[3].strip(",")
        return replies(
            result={"text": f"Сдать книгу {which}."},
            sources=[
                {"url": f"{PAGE.format(which)}#part", "text": "сдать книгу"},
                {"url": PAGE.format(77), "text": ""},
            ],
            path="cache",
            latency_ms=250,
        )

    service.script = script
    use(
        monkeypatch,
        {
            "YARUS_SUT_SERVICE__REQUEST": '{"messages": [{"text": "$question"}], "lang": "ru"}',
            "YARUS_SUT_SERVICE__ANSWER": "result.text",
            "YARUS_SUT_SERVICE__URLS": "sources[].url",
            "YARUS_SUT_SERVICE__CONTEXTS": "sources[].text",
            "YARUS_SUT_SERVICE__HEADERS": '{"authorization": "Bearer s3cret"}',
        },
    )
    source = load(tmp_path, "served", [question(i) for i in range(8)])
    summary = evaluate("tier3", source=source, sut=f"{service.url}/ask")
    rows = rows_of(summary)
    assert summary["state"] == "completed"
    assert (summary["system"]["unit"], value(summary, "hit_rate@1"), value(summary, "mrr")) == ("page", 1, 1)
    assert rows[3]["retrieved"] == [PAGE.format(3), PAGE.format(77)]
    assert (rows[3]["answer"], rows[3]["path"], rows[3]["latency_ms"]) == ("Сдать книгу 3.", "cache", 250)
    assert (value(summary, "latency_ms_p50"), value(summary, "retrieval_latency_ms_p50")) == (250, None)
    assert all("authorization: Bearer s3cret" in head for head in service.headers)
    assert "s3cret" not in json.dumps(summary)


def test_a_service_that_fails_in_every_way_is_never_scored(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: dict[int, bytes | Do] = {
        0: http(200, "<html><body>Технические работы</body></html>", "content-type: text/html"),
        1: http(500, "Internal Server Error"),
        2: Do(b"", after_s=3),
        3: replies(text="shape changed"),
        4: replies(answer=["a", "list"], urls=[], contexts=[]),
        5: replies(answer="Сдать.", urls="https://one", contexts=[]),
        6: Do(b"", then="close"),
        7: replies(answer="Сдать книгу.", urls=[], contexts=[]),
        8: replies(answer="Сдать книгу."),
    }

    def script(number: int, request: Document) -> bytes | Do:
        which = int(request["question"].split()[3].strip(","))
        return ways.get(which) or right(request)

    service.script = script
    use(monkeypatch, {"YARUS_SUT_SERVICE__TIMEOUT_S": "0.7"})
    source = load(tmp_path, "failing", [question(i) for i in range(20)])
    summary = evaluate("tier3", source=source, sut=service.url)
    rows = {int(row["question_id"]): row for row in rows_of(summary)}
    reasons = {0: "no JSON: <html>", 1: "answered 500", 2: "Timeout", 3: "'answer' is None", 4: "'answer' is ['a'"}
    reasons |= {5: "'urls' is 'https://one'", 6: "disconnected"}
    for number, words in reasons.items():
        assert (rows[number]["status"], rows[number]["answer"]) == ("sut_error", None)
        assert words in rows[number]["reason"]
        assert [rows[number][name] for name in ("e2e_score", "bleu", "mrr", "latency_ms", "retrieved")] == [None] * 5
    # An empty ranking is worth 0; a system that does not say what it retrieved is not measured there.
    assert [rows[number]["mrr"] for number in (7, 8, 9)] == [0, None, 1]
    assert [rows[number]["faithfulness"] is None for number in (7, 8, 9)] == [True, True, False]
    assert value(summary, "sut_error_rate") == pytest.approx(7 / 20)
    assert summary["metrics"]["avg_e2e_score"]["n_scored"] == 13
    assert (summary["state"], summary["coverage"]) == ("invalid", 13 / 20)


def test_hidden_empty_and_declined_answers_are_refusals(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path
) -> None:
    ways = {
        0: replies(path="hidden", urls=[PAGE.format(0)], contexts=[]),
        1: replies(answer="", urls=[PAGE.format(1)], contexts=[]),
        2: replies(answer="К сожалению, ОТВЕТ НЕ НАЙДЕН. Позвоните нам.", urls=[PAGE.format(2)], contexts=[]),
        3: replies(answer="Ответ не найден", urls=[], contexts=[]),
    }
    service.script = lambda number, request: ways.get(int(request["question"].split()[3].strip(","))) or right(request)
    nothing = {"answerable": False, "ground_truth_answer": None, "relevant_chunk_ids": None, "confluence_url": None}
    source = load(tmp_path, "refusing", [question(i, **(nothing if i == 3 else {})) for i in range(6)])
    summary = evaluate("tier3", source=source, sut=service.url)
    rows = rows_of(summary)
    assert [row["status"] for row in rows] == [*["sut_refusal"] * 4, "ok", "ok"]
    assert [row["e2e_score"] for row in rows[:4]] == [0, 0, 0, None]
    assert [row["failure"] for row in rows[:4]] == ["gate", "refusal", "refusal", None]
    assert summary["failures"]["counts"]["gate"] == 1
    assert [value(summary, f"{name}_refused") for name in ("answerable", "unanswerable")] == [3, 1]
    assert (value(summary, "refusal_rate"), summary["coverage"]) == (pytest.approx(4 / 6), 1.0)


# A callable.


@pytest.fixture
def module(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of callables, importable from the current folder."""
    (at_home / "my_bot.py").write_text(BOT, encoding="utf-8")
    monkeypatch.syspath_prepend(str(at_home))
    importlib.invalidate_caches()
    yield "my_bot"
    sys.modules.pop("my_bot", None)


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
    return [None, "a text", {"answer": 5}, {"answer": "да", "contexts": [1]}][which - 1] if which < 5 else \\
        {"answer": "Сдать книгу.", "urls": None, "contexts": ("одна", "пара")} if which == 5 else {"answer": "Сдать."}
no_function = 5
"""


def test_a_slow_callable_is_asked_one_question_at_a_time(judge: FakeLLMServer, tmp_path: Path, module: str) -> None:
    source = load(tmp_path, "slow", [question(i) for i in range(102)])  # two batches, which are in flight together
    rows = rows_of(evaluate("tier3", source=source, sut=f"{module}:slow", limit=102))
    assert {row["status"] for row in rows} == {"ok"}
    assert min(row["latency_ms"] for row in rows) >= 10
    assert [row["answer"] for row in rows] == [row["question"] for row in rows]


def test_a_callable_may_need_ten_seconds(judge: FakeLLMServer, tmp_path: Path, module: str) -> None:
    source = load(tmp_path, "ten_seconds", [question(0)])
    [row] = rows_of(evaluate("tier3", source=source, sut=f"{module}:ten_seconds"))
    assert (row["status"], row["answer"]) == ("ok", "Сдать книгу.")
    assert row["latency_ms"] >= 10_000


def test_a_callable_that_raises_or_returns_something_else(judge: FakeLLMServer, tmp_path: Path, module: str) -> None:
    source = load(tmp_path, "sometimes_wrong", [question(i) for i in range(7)])
    rows = rows_of(evaluate("tier3", source=source, sut=f"{module}:mixed"))
    words = ["KeyError", "got NoneType", "got str", "'answer' is 5", "'contexts' is [1]", "'contexts' is ('одна'"]
    assert [row["status"] for row in rows] == ["sut_error"] * 6 + ["ok"]
    assert [word in row["reason"] for word, row in zip(words, rows, strict=False)] == [True] * 6
    assert "s3cret" not in rows[0]["reason"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("my_bot:absent", "absent"), ("no_such_bot:answer", "no_such_bot"), ("my_bot:no_function", "no function"),
     ("locale", "expected 'local'"), (":answer", "YARUS_SUT ':answer'.*expected module:function")],
)  # fmt: skip
def test_a_system_that_is_not_there_is_wrong_usage(at_home: Path, module: str, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        evaluate("tier3", sut=name)


def test_settings_of_a_service_that_cannot_work_are_named() -> None:
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE"):
        system("http://127.0.0.1:1", SystemService(request="{question}"))
    with pytest.raises(InputError, match="YARUS_SUT_SERVICE"):
        system("http://127.0.0.1:1", SystemService(urls="results["))


@pytest.mark.parametrize("latency", [-1, True, "fast", float("nan"), float("inf")])
def test_a_latency_that_is_none_is_an_error(latency: Any) -> None:
    with pytest.raises(ValueError, match="latency_ms"):
        checked({"answer": "да", "latency_ms": latency}, 1.0)


def test_only_our_own_system_has_chunks(at_home: Path) -> None:
    with pytest.raises(InputError, match="leave out --unit"):
        evaluate("tier3", sut="http://127.0.0.1:1", unit="chunk")


def test_stored_answers_are_scored_by_another_judge(
    judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.script = lambda number, request: right(request) if number % 5 else http(500)
    source = load(tmp_path, "replay", [question(i) for i in range(20)])
    monkeypatch.setenv("YARUS_SUT_LABEL", "v1")
    first = evaluate("tier3", source=source, sut=service.url)
    asked = len(service.requests)
    monkeypatch.setenv("YARUS_SUT_LABEL", "v2")
    same = evaluate("tier3", source=source, reuse_answers=first["evaluation_id"])
    judge.script = lambda number, request: scores(1.0)
    use(monkeypatch, {"YARUS_JUDGE__MODEL": "another"})
    other = evaluate("tier3", source=source, reuse_answers=same["evaluation_id"])
    assert len(service.requests) == asked == 20
    assert same["metrics"] == first["metrics"]
    assert (same["comparability_key"], same["sut_label"]) == (first["comparability_key"], "v1")
    assert other["system"]["sut"] == f"answers of {first['evaluation_id']}"
    assert (value(other, "avg_e2e_score"), value(other, "mrr")) == (1.0, value(first, "mrr"))
    assert value(other, "sut_error_rate") == pytest.approx(0.2)
    assert other["comparability_key"] != first["comparability_key"]
    with pytest.raises(InputError, match="its tier is 'tier3', not 'tier2'"):
        evaluate("tier2", source=source, reuse_answers=first["evaluation_id"])
    with pytest.raises(InputError, match="its source is 'replay', not 'sample'"):
        evaluate("tier3", reuse_answers=first["evaluation_id"])


def test_our_own_system_answers_from_what_it_retrieved(
    judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, roles(judge.url, "generator"))
    source = load(tmp_path, "own", [question(i) for i in range(10)])
    summary = evaluate("tier3", source=source, retriever="fulltext", k=2)
    given = [texts(request) for request in judge.requests if metric_of(request) == "generation"]
    assert len(given) == 10
    assert all(len(text["context"].split("\n\n")) <= 2 for text in given)
    rows = rows_of(summary)
    assert all(row["context"].startswith(f"Правило {row['retrieved'][0][1:]} ") for row in rows if row["retrieved"])
    assert summary["state"] == "completed"


def test_a_batch_in_which_nothing_can_be_asked(at_home: Path, tmp_path: Path) -> None:
    rows = [question(i) | ({"answer": None} if i < 100 else {}) for i in range(103)]
    for row in rows[:100]:
        row.pop("ground_truth_answer", None)
    summary = evaluate("tier3", source=load(tmp_path, "sparse", rows))
    assert summary["statuses"] == {"unlabelled": 100, "ok": 3}
