"""Re-ranking within retrieval: chunks before pages, errors as statuses, one retrieval for several re-rankers."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.evaluations import PAGE, evaluate, load, passages, question, rows_of
from tests.support.steps import close_opened, opened
from yarus.db.errors import InputError
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.resources import share
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.steps.search import index, rank, retrieve

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
    asked = [question(number) for number in range(10)]
    return load(tmp_path_factory.mktemp("reranked"), "reranked", asked, passages(10))


class Told:
    """How a retriever and re-rankers of somebody's own were asked, wherever they run."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def _of(self, what: str) -> list[tuple[str, int]]:
        rows = map(json.loads, self._log.read_text(encoding="utf-8").splitlines())
        return [(question, n) for name, question, n in rows if name == what]

    @property
    def retrieved(self) -> list[tuple[str, int]]:
        return self._of("retrieved")

    @property
    def scored(self) -> list[tuple[str, int]]:
        return self._of("scored")


@pytest.fixture
def theirs(at_home: Path, source: str) -> Iterator[Told]:
    module, log = at_home / "theirs_of_reranked.py", at_home / "theirs_of_reranked.py.told"
    module.write_text(MODULE, encoding="utf-8")
    log.write_text("", encoding="utf-8")
    yield Told(log)
    close_opened()


RERANKED = {"retriever": "theirs_of_reranked:retrieve", "reranker": "theirs_of_reranked:rerank"}


def test_the_right_chunk_comes_first_and_a_failure_is_its_cases_alone(theirs: Told, source: str) -> None:
    found = evaluate("tier1", source=source, **RERANKED)
    system = found["system"]
    assert (system["reranker"], system["rerank_depth"]) == (RERANKED["reranker"], 50)
    assert system["reranker_identity"] == RERANKED["reranker"]
    rows = {row["question_id"]: row for row in rows_of(found)}
    failed = rows.pop("7")
    assert (failed["status"], failed["retrieved"], failed["hit_rate@1"]) == ("sut_error", None, None)
    assert failed["reason"].startswith("the re-ranker: RuntimeError: index is gone")
    assert "s3cret" not in failed["reason"]
    for number, row in rows.items():
        assert (row["hit_rate@1"], row["retrieved"][0], row["distances"][0]) == (1.0, f"c{number}", -1.0)
        others = [f"c{place}" for place in range(9, -1, -1) if str(place) != number]
        assert row["retrieved"][1:] == others, "equal scores leave the retriever's order"
    assert Counter(found["statuses"]) == {"ok": 9, "sut_error": 1}


def test_only_so_many_are_fetched_and_ordered_as_were_asked_for(theirs: Told, source: str) -> None:
    run = opened(source=source, rerank_depth=3, **RERANKED)
    [ranking] = rank(run, ["правило 8"], 1, unit="chunk", timed=1)
    assert (theirs.retrieved, theirs.scored) == ([("правило 8", 3)], [("правило 8", 3)])
    assert ranking.ids == ["c8"]
    [ranking] = rank(run, ["правило 2"], 1, unit="chunk", timed=1)
    assert ranking.ids == ["c9"], "it is not among the first three"
    [ranking] = rank(run, ["правило 8"], 5, unit="chunk", timed=1)
    assert (ranking.ids, ranking.distances) == (["c8", "c9", "c7", "c6", "c5"], [-1, 0, 0, 0, 0])
    assert ranking.latency_ms


def test_pages_are_made_of_what_was_ordered_anew(theirs: Told, tmp_path: Path) -> None:
    """The crowd of one page fills the first fetch: more is fetched, and each question is scored once."""
    chunks = [
        {**row, "confluence_url": PAGE.format(0 if place > 1 else place + 1)} for place, row in enumerate(passages(10))
    ]
    source = load(tmp_path, "reranked_pages", [question(number, relevant_chunk_ids=[]) for number in range(3)], chunks)
    run = opened(source=source, unit="page", rerank_depth=4, **RERANKED)
    [ranking] = rank(run, ["правило 8"], 2, unit="page", timed=0)
    assert ranking.ids == [PAGE.format(0), PAGE.format(2)]
    assert [k for _, k in theirs.retrieved] == [8, 32]
    assert theirs.scored == [("правило 8", 4)]


def test_re_rankers_share_one_retrieval_and_each_scores_once(theirs: Told, source: str) -> None:
    parameters = {"source": source, "retriever": RERANKED["retriever"]}
    names = ("theirs_of_reranked:rerank", "theirs_of_reranked:backwards")
    with share(rankings=True):
        for name in (*names, *names):
            run = opened(**parameters, reranker=name)
            retrieve(run, read_cases(run))
    assert set(Counter(theirs.retrieved).values()) == {1}
    assert len(theirs.retrieved) == 10
    times = Counter(question for question, _ in theirs.scored)
    assert times.pop("Что велит правило 7, вариант 7?") == 3, "a failure is asked for again, and only that"
    assert set(times.values()) == {2}, "once by each re-ranker"


def test_none_leaves_out_that_of_the_settings(theirs: Told, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_RERANKER", "theirs_of_reranked:backwards")
    run = opened(source=source, retriever=RERANKED["retriever"])
    assert run.config.reranker == "theirs_of_reranked:backwards"
    without = opened(source=source, retriever=RERANKED["retriever"], reranker="none")
    assert without.config.reranker is None
    first = rank(without, ["правило 3"], 2, unit="chunk", timed=0)
    assert (first[0].ids, theirs.scored) == (["c9", "c8"], [])
    assert rank(run, ["правило 3"], 2, unit="chunk", timed=0)[0].ids == ["c0", "c1"]


def test_it_is_a_factor_of_the_system_and_no_part_of_the_key(theirs: Told, source: str) -> None:
    summaries = [evaluate("tier1", source=source, limit=5, reranker=name) for name in (RERANKED["reranker"], "none")]
    assert len({found["comparability_key"] for found in summaries}) == 1


@pytest.mark.parametrize("tier", ["tier3", "real_users"])
def test_other_tiers_that_retrieve_have_it_too(theirs: Told, source: str, tier: str) -> None:
    found = evaluate(tier, source=source, **RERANKED)
    assert found["system"]["reranker"] == RERANKED["reranker"]
    rows = {row["question_id"]: row for row in rows_of(found)}
    assert (rows["7"]["status"], rows["7"]["retrieved"]) == ("sut_error", None)
    assert rows["4"]["retrieved"][0] in ("c4", PAGE.format(4))


def test_a_resumed_evaluation_keeps_its_re_ranker(
    theirs: Told, source: str, monkeypatch: pytest.MonkeyPatch, at_home: Path
) -> None:
    run = opened(source=source, **RERANKED)
    other = opened(source=source, **RERANKED)
    other = replace(other, config=other.config | EvaluationConfig(reranker_identity="another model|files:1"))
    assert asyncio.run(index.fn(run)).config.reranker_identity == RERANKED["reranker"]
    with pytest.raises(InputError, match="was begun with another model"):
        asyncio.run(index.fn(other))


def test_a_system_that_is_not_ours_has_its_own(theirs: Told, source: str) -> None:
    with pytest.raises(InputError, match="needs the system 'local'"):
        evaluate("tier3", source=source, sut="http://127.0.0.1:9/ask", reranker=RERANKED["reranker"])
