"""Check sweeps of sources, re-rankers and prompts by one command: arms, shared calls, comparisons, failures."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, CommandResult, run_here
from tests.support.evaluations import PAGE_URL, get_requested_metric, hash_to_unit, load, question, texts
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_completion, make_response, make_score_completion
from yarus.flows.terminal.experiments import print_sweep
from yarus.tasks.comparison.experiments.experiments_schema import Sweep
from yarus.tasks.report.experiment_pages import experiment_pages

pytestmark = pytest.mark.slow("breadth: more axes of a sweep")
Document = dict[str, Any]
QUESTIONS = 8
BROKEN = 5
"""The question for which the re-ranking service fails."""
DEPTH = 50
FUNCTION = """
def longest(question, texts):
    return [len(text) for text in texts]
"""


class Swept(NamedTuple):
    ran: CommandResult
    retriever: FakeLLMServer
    reranker: FakeLLMServer
    models: FakeLLMServer
    env: dict[str, str]
    words: tuple[str, ...]

    @property
    def document(self) -> Document:
        result: Document = self.ran.json
        return result


def answer_as_generator(number: int, request: Document) -> Any:
    """Answer with the first two or four words of the context, depending on the prompt."""
    prompt = request["messages"][0]["content"]
    if get_requested_metric(request) == "generation":
        words = texts(request).get("context", "ничего").split()
        return make_completion(" ".join(words[: 2 if prompt.startswith("Кратко") else 4]), tokens=(100, 10))
    return make_score_completion(round(hash_to_unit(prompt), 1), tokens=(50, 5))


def retrieve(number: int, request: Document) -> bytes:
    """Return all chunks in their order, for any question."""
    results = [{"id": f"c{rank}", "distance": rank} for rank in range(min(int(request["k"]), QUESTIONS))]
    return make_response(200, json.dumps({"results": results}), JSON_HEADER)


def rerank(number: int, request: Document) -> bytes:
    """Rank the chunk of the question's number first."""
    wanted_number = request["query"].split()[3].strip(",")
    if wanted_number == str(BROKEN):
        return make_response(200, '{"results": [{"index": 0, "relevance_score": 1}]}', JSON_HEADER)
    results = [
        {"index": index, "relevance_score": f"Правило {wanted_number} " in text}
        for index, text in enumerate(request["documents"])
    ]
    return make_response(200, json.dumps({"results": results}), JSON_HEADER)


def make_chunks(sentences: int) -> list[Document]:
    """Return one chunk per page, of that many sentences; the ids do not depend on the number."""
    texts = [
        [f"Правило {page} велит сдать книгу.", f"Правило {page} о сроке говорит: книгу {page} сдать до мая."]
        for page in range(QUESTIONS)
    ]
    return [
        {"id": f"c{page}", "confluence_url": PAGE_URL.format(page), "text": " ".join(page_sentences[:sentences])}
        for page, page_sentences in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def files(at_home_for_module: Path) -> None:
    home = at_home_for_module
    pages = [PAGE_URL.format(page) for page in range(QUESTIONS)]
    questions = [
        question(number, confluence_url=page, relevant_chunk_ids=[], relevant_urls=[page])
        for number, page in enumerate(pages)
    ]
    load(home, "swept_whole", questions, make_chunks(2))
    load(home, "swept_halves", questions, make_chunks(1))
    for name, words in (("terse", "Кратко"), ("long", "Подробно")):
        (home / f"swept_{name}.txt").write_text(f"{words} ответь: $question\n$context", encoding="utf-8")
    (home / "swept_reranker.py").write_text(FUNCTION, encoding="utf-8")


@pytest.fixture(scope="module")
def swept(yarus: CommandLine, files: None, prefect_server: dict[str, str]) -> Iterator[Swept]:
    """Sweep two sources, two re-rankers and two prompts: eight arms of tier 3."""
    with (
        FakeLLMServer(script=retrieve) as retriever,
        FakeLLMServer(script=rerank) as reranker,
        FakeLLMServer(script=answer_as_generator) as models,
    ):
        env = prefect_server | {"YARUS_RETRIEVER": retriever.url, "YARUS_RERANKER_MODEL": "big"}
        env |= {f"YARUS_{role}__BASE_URL": models.url for role in ("GENERATOR", "JUDGE")}
        env |= {f"YARUS_{role}__MODEL": f"{role}-{models.own}" for role in ("GENERATOR", "JUDGE")}
        words = ("--sources", "swept_whole,swept_halves", "--rerankers", f"{reranker.url},swept_reranker:longest")
        words += ("--prompts", "swept_terse.txt,swept_long.txt", "--k", "1")
        yield Swept(yarus("sweep", *words, "--json", env=env, ok=False), retriever, reranker, models, env, words)


def arms(swept: Swept, **axes: str) -> list[Document]:
    return [arm for arm in swept.document["variants"] if axes.items() <= arm.items()]


def test_combinations_are_arms_with_evaluations(swept: Swept, at_home: Path) -> None:
    assert len(arms(swept)) == 8
    arm_names = [arm["variant_name"] for arm in arms(swept)]
    assert arm_names[0] == f"source swept_whole, reranker {swept.reranker.url}, prompt swept_terse.txt"
    assert len(set(arm_names)) == 8
    [arm] = arms(swept, source="swept_halves", reranker="swept_reranker:longest", generator_prompt="swept_long.txt")
    document = run_here("show", arm["evaluation_id"], "--json").json
    assert (document["source"], document["system"]["unit"]) == ("swept_halves", "page")
    assert (document["system"]["reranker"], document["system"]["rerank_depth"]) == ("swept_reranker:longest", DEPTH)
    prompt, _, digest = document["system"]["generator_prompt"].partition("|")
    assert (prompt, len(digest)) == ("swept_long.txt", 16)
    [other_arm] = arms(swept, source="swept_halves", reranker=swept.reranker.url, generator_prompt="swept_terse.txt")
    before = run_here("show", other_arm["evaluation_id"], "--json").json
    assert before["system"]["reranker_identity"] == f"{swept.reranker.url}|model:big"
    assert before["comparability_key"] == document["comparability_key"], "factors of the system are no part of the key"


def test_retrieval_is_shared_and_reranking_is_not(swept: Swept) -> None:
    retrieved = Counter((request["question"], request["k"]) for request in swept.retriever.requests)
    assert {k for _, k in retrieved} == {DEPTH}
    assert len(retrieved) == QUESTIONS
    assert set(retrieved.values()) == {2}, "once a source: their chunks bear the same ids"
    scored = Counter((request["query"], *request["documents"]) for request in swept.reranker.requests)
    assert len(scored) == 2 * QUESTIONS
    failed = {key: n for key, n in scored.items() if f"правило {BROKEN}," in key[0]}
    assert list(failed.values()) == [2, 2], "a failure is asked for again by the arm of the other prompt"
    assert {n for key, n in scored.items() if key not in failed} == {1}
    assert {request["model"] for request in swept.reranker.requests} == {"big"}
    generated = Counter(
        request["messages"][0]["content"]
        for request in swept.models.requests
        if get_requested_metric(request) == "generation"
    )
    assert set(generated.values()) == {1}, "what reads the same prompt gets the stored reply"


def test_reranker_failure_fails_only_its_case(swept: Swept, at_home: Path) -> None:
    for source in ("swept_whole", "swept_halves"):
        [arm] = arms(swept, source=source, reranker=swept.reranker.url, generator_prompt="swept_terse.txt")
        assert arm["state"] == "invalid", "one of eight questions has no ranking"
        rows = run_here("cases", arm["evaluation_id"], "--json").json
        rows_by_id = {row["question_id"]: row for row in rows}
        assert rows_by_id[str(BROKEN)]["status"] == "sut_error"
        assert "expected a score for each of" in rows_by_id[str(BROKEN)]["reason"]
        for number in set(range(QUESTIONS)) - {BROKEN}:
            assert rows_by_id[str(number)]["retrieved"] == [PAGE_URL.format(number)]


def test_arms_of_two_sources_share_common_questions(swept: Swept) -> None:
    source = {arm["variant_name"]: arm["source"] for arm in arms(swept)}
    across = [pair for pair in swept.document["pairs"] if source[pair["a"]] != source[pair["b"]]]
    assert len(across) == 4 * 4 * len(swept.document["metrics"])
    assert {pair["n"] + pair["n_missing"] for pair in across} == {QUESTIONS}
    assert {pair["reason"] for pair in across} == {None}


def test_common_questions_are_noted_in_report_and_terminal(
    swept: Swept, engine: Engine, at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures: Document = {}
    (page,) = [page for page in experiment_pages(engine, "swept_halves", figures) if page["key"] == "sweep"]
    lines = [line["text"]["en"] for line in page["blocks"][0]["lines"]]
    assert any("compared on common questions" in line for line in lines)
    assert page["blocks"][0]["rows"][7][0]["ru"].startswith("8. source swept_halves")
    print_sweep(cast(Sweep, swept.document), "en")
    output = " ".join(capsys.readouterr().out.split())
    assert "source swept_halves" in output
    assert "compared on common questions" in output


def test_bad_prompt_is_refused_before_any_call(swept: Swept, at_home: Path) -> None:
    (at_home / "swept_bad.txt").write_text("Ответь по $contekst: $question", encoding="utf-8")
    n_requests = len(swept.models.requests), len(swept.retriever.requests)
    ran = run_here("sweep", "--prompts", "swept_terse.txt,swept_bad.txt", env=swept.env | ENGLISH)
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'context'" in ran.err
    assert (len(swept.models.requests), len(swept.retriever.requests)) == n_requests
