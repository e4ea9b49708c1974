"""Re-ranking within retrieval: chunks before pages, errors as statuses, one retrieval for several re-rankers."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.evaluations import PAGE_URL, evaluate, load, make_passages, question, read_rows
from tests.support.steps import close_opened_runs, open_run
from yarus.db.errors import InputError
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.resources import share_sources
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.steps.search import index, rank_results, retrieve

MODULE = """
import json, re

def told(what, question, n):
    with open(__file__ + ".told", "a", encoding="utf-8") as file:
        print(json.dumps([what, question, n]), file=file)

def retrieve(question, k):  # chunks by their number, the highest first
    told("retrieved", question, k)
    return [("c" + str(number), 9 - number) for number in range(9, -1, -1)][:k]

def rerank(question, texts):  # the chunk of the question's number first
    told("scored", question, len(texts))
    wanted = re.search(r"правило (\\d+)", question).group(1)
    if wanted == "7":
        raise RuntimeError("index\\n  is gone at postgresql://bot:s3cret@db/x")
    return [1.0 if " " + wanted + " " in text else 0.0 for text in texts]

def backwards(question, texts):
    told("scored", question, len(texts))
    return range(len(texts))
"""


@pytest.fixture(scope="module")
def source(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    questions = [question(number) for number in range(10)]
    return load(tmp_path_factory.mktemp("reranked"), "reranked", questions, make_passages(10))


class CallLog:
    """Calls of a user's own retriever and re-rankers, wherever they run."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def _of(self, event: str) -> list[tuple[str, int]]:
        rows = map(json.loads, self._log.read_text(encoding="utf-8").splitlines())
        return [(question, n) for name, question, n in rows if name == event]

    @property
    def retrieved(self) -> list[tuple[str, int]]:
        return self._of("retrieved")

    @property
    def scored(self) -> list[tuple[str, int]]:
        return self._of("scored")


@pytest.fixture
def call_log(at_home: Path, source: str) -> Iterator[CallLog]:
    module, log = at_home / "theirs_of_reranked.py", at_home / "theirs_of_reranked.py.told"
    module.write_text(MODULE, encoding="utf-8")
    log.write_text("", encoding="utf-8")
    yield CallLog(log)
    close_opened_runs()


RERANKED = {"retriever": "theirs_of_reranked:retrieve", "reranker": "theirs_of_reranked:rerank"}


def test_rerank_orders_chunks_and_isolates_failures(call_log: CallLog, source: str) -> None:
    summary = evaluate("tier1", source=source, **RERANKED)
    system = summary["system"]
    assert (system["reranker"], system["rerank_depth"]) == (RERANKED["reranker"], 50)
    assert system["reranker_identity"] == RERANKED["reranker"]
    rows = {row["question_id"]: row for row in read_rows(summary)}
    failed = rows.pop("7")
    assert (failed["status"], failed["retrieved"], failed["hit_rate@1"]) == ("sut_error", None, None)
    assert failed["reason"].startswith("the re-ranker: RuntimeError: index is gone")
    assert "s3cret" not in failed["reason"]
    for number, row in rows.items():
        assert (row["hit_rate@1"], row["retrieved"][0], row["distances"][0]) == (1.0, f"c{number}", -1.0)
        other_chunks = [f"c{position}" for position in range(9, -1, -1) if str(position) != number]
        assert row["retrieved"][1:] == other_chunks, "equal scores leave the retriever's order"
    assert Counter(summary["statuses"]) == {"ok": 9, "sut_error": 1}


def test_rerank_depth_limits_fetched_chunks(call_log: CallLog, source: str) -> None:
    run = open_run(source=source, rerank_depth=3, **RERANKED)
    [ranking] = rank_results(run, ["правило 8"], 1, unit="chunk", timed=1)
    assert (call_log.retrieved, call_log.scored) == ([("правило 8", 3)], [("правило 8", 3)])
    assert ranking.ids == ["c8"]
    [ranking] = rank_results(run, ["правило 2"], 1, unit="chunk", timed=1)
    assert ranking.ids == ["c9"], "it is not among the first three"
    [ranking] = rank_results(run, ["правило 8"], 5, unit="chunk", timed=1)
    assert (ranking.ids, ranking.distances) == (["c8", "c9", "c7", "c6", "c5"], [-1, 0, 0, 0, 0])
    assert ranking.latency_ms


def test_rerank_orders_chunks_before_pages(call_log: CallLog, tmp_path: Path) -> None:
    """Many chunks of one page fill the first fetch: more is fetched, and each question is scored once."""
    chunks = [
        {**row, "confluence_url": PAGE_URL.format(0 if position > 1 else position + 1)}
        for position, row in enumerate(make_passages(10))
    ]
    source = load(tmp_path, "reranked_pages", [question(number, relevant_chunk_ids=[]) for number in range(3)], chunks)
    run = open_run(source=source, unit="page", rerank_depth=4, **RERANKED)
    [ranking] = rank_results(run, ["правило 8"], 2, unit="page", timed=0)
    assert ranking.ids == [PAGE_URL.format(0), PAGE_URL.format(2)]
    assert [k for _, k in call_log.retrieved] == [8, 32]
    assert call_log.scored == [("правило 8", 4)]


def test_rerankers_share_one_retrieval(call_log: CallLog, source: str) -> None:
    parameters = {"source": source, "retriever": RERANKED["retriever"]}
    names = ("theirs_of_reranked:rerank", "theirs_of_reranked:backwards")
    with share_sources(rankings=True):
        for name in (*names, *names):
            run = open_run(**parameters, reranker=name)
            retrieve(run, read_cases(run))
    assert set(Counter(call_log.retrieved).values()) == {1}
    assert len(call_log.retrieved) == 10
    times = Counter(question for question, _ in call_log.scored)
    assert times.pop("Что велит правило 7, вариант 7?") == 3, "a failure is asked for again, and only that"
    assert set(times.values()) == {2}, "once by each re-ranker"


def test_reranker_none_overrides_settings(call_log: CallLog, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_RERANKER", "theirs_of_reranked:backwards")
    run = open_run(source=source, retriever=RERANKED["retriever"])
    assert run.config.reranker == "theirs_of_reranked:backwards"
    without = open_run(source=source, retriever=RERANKED["retriever"], reranker="none")
    assert without.config.reranker is None
    first = rank_results(without, ["правило 3"], 2, unit="chunk", timed=0)
    assert (first[0].ids, call_log.scored) == (["c9", "c8"], [])
    assert rank_results(run, ["правило 3"], 2, unit="chunk", timed=0)[0].ids == ["c0", "c1"]


def test_reranker_is_not_in_the_comparability_key(call_log: CallLog, source: str) -> None:
    summaries = [evaluate("tier1", source=source, limit=5, reranker=name) for name in (RERANKED["reranker"], "none")]
    assert len({summary["comparability_key"] for summary in summaries}) == 1


@pytest.mark.parametrize("tier", ["tier3", "real_users"])
def test_reranker_works_in_other_retrieving_tiers(call_log: CallLog, source: str, tier: str) -> None:
    summary = evaluate(tier, source=source, **RERANKED)
    assert summary["system"]["reranker"] == RERANKED["reranker"]
    rows = {row["question_id"]: row for row in read_rows(summary)}
    assert (rows["7"]["status"], rows["7"]["retrieved"]) == ("sut_error", None)
    assert rows["4"]["retrieved"][0] in ("c4", PAGE_URL.format(4))


def test_resumed_evaluation_refuses_another_reranker(
    call_log: CallLog, source: str, monkeypatch: pytest.MonkeyPatch, at_home: Path
) -> None:
    run = open_run(source=source, **RERANKED)
    other = open_run(source=source, **RERANKED)
    other = replace(other, config=other.config | EvaluationConfig(reranker_identity="another model|files:1"))
    assert asyncio.run(index.fn(run)).config.reranker_identity == RERANKED["reranker"]
    with pytest.raises(InputError, match="was started with another model"):
        asyncio.run(index.fn(other))


def test_external_system_refuses_reranker(call_log: CallLog, source: str) -> None:
    with pytest.raises(InputError, match="needs the system 'local'"):
        evaluate("tier3", source=source, sut="http://127.0.0.1:9/ask", reranker=RERANKED["reranker"])
