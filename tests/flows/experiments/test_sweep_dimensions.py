"""Sources, re-rankers and prompts swept by one command: every arm, what is shared, compared, and goes wrong."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, Ran, here
from tests.support.evaluations import PAGE, chance, load, metric_of, question, texts
from tests.support.llm_server import JSON, FakeLLMServer, http, says, scores
from yarus.flows.terminal.experiments import print_sweep
from yarus.tasks.comparison.experiments.experiments_schema import Sweep
from yarus.tasks.report.experiment_pages import pages

pytestmark = pytest.mark.slow("breadth: more axes of a sweep")
Document = dict[str, Any]
QUESTIONS = 8
BROKEN = 5
"""The question that the re-ranking service fails at."""
DEPTH = 50
FUNCTION = """
def longest(question, texts):
    return [len(text) for text in texts]
"""


class Swept(NamedTuple):
    ran: Ran
    retriever: FakeLLMServer
    reranker: FakeLLMServer
    models: FakeLLMServer
    env: dict[str, str]
    words: tuple[str, ...]

    @property
    def document(self) -> Document:
        found: Document = self.ran.json
        return found


def models_say(number: int, request: Document) -> Any:
    """The generator says the first words of the context, two or four of them by the prompt."""
    prompt = request["messages"][0]["content"]
    if metric_of(request) == "generation":
        words = texts(request).get("context", "ничего").split()
        return says(" ".join(words[: 2 if prompt.startswith("Кратко") else 4]), tokens=(100, 10))
    return scores(round(chance(prompt), 1), tokens=(50, 5))


def retrieve(number: int, request: Document) -> bytes:
    """Every chunk in its order, whatever was asked."""
    found = [{"id": f"c{place}", "distance": place} for place in range(min(int(request["k"]), QUESTIONS))]
    return http(200, json.dumps({"results": found}), JSON)


def rerank(number: int, request: Document) -> bytes:
    """The chunk of the question's number first."""
    wanted = request["query"].split()[3].strip(",")
    if wanted == str(BROKEN):
        return http(200, '{"results": [{"index": 0, "relevance_score": 1}]}', JSON)
    found = [
        {"index": place, "relevance_score": f"Правило {wanted} " in text}
        for place, text in enumerate(request["documents"])
    ]
    return http(200, json.dumps({"results": found}), JSON)


def cut(sentences: int) -> list[Document]:
    """A chunk of so many sentences a page; the ids say nothing of the cut."""
    texts = [
        [f"Правило {page} велит сдать книгу.", f"Правило {page} о сроке говорит: книгу {page} сдать до мая."]
        for page in range(QUESTIONS)
    ]
    return [
        {"id": f"c{page}", "confluence_url": PAGE.format(page), "text": " ".join(of[:sentences])}
        for page, of in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def files(at_home_for_module: Path) -> None:
    home = at_home_for_module
    pages = [PAGE.format(page) for page in range(QUESTIONS)]
    asked = [
        question(number, confluence_url=page, relevant_chunk_ids=[], relevant_urls=[page])
        for number, page in enumerate(pages)
    ]
    load(home, "swept_whole", asked, cut(2))
    load(home, "swept_halves", asked, cut(1))
    for name, words in (("terse", "Кратко"), ("long", "Подробно")):
        (home / f"swept_{name}.txt").write_text(f"{words} ответь: $question\n$context", encoding="utf-8")
    (home / "swept_reranker.py").write_text(FUNCTION, encoding="utf-8")


@pytest.fixture(scope="module")
def swept(yarus: CommandLine, files: None, prefect_server: dict[str, str]) -> Iterator[Swept]:
    """Two sources, two re-rankers and two prompts: eight arms of tier 3."""
    with (
        FakeLLMServer(script=retrieve) as retriever,
        FakeLLMServer(script=rerank) as reranker,
        FakeLLMServer(script=models_say) as models,
    ):
        env = prefect_server | {"YARUS_RETRIEVER": retriever.url, "YARUS_RERANKER_MODEL": "big"}
        env |= {f"YARUS_{role}__BASE_URL": models.url for role in ("GENERATOR", "JUDGE")}
        env |= {f"YARUS_{role}__MODEL": f"{role}-{models.own}" for role in ("GENERATOR", "JUDGE")}
        words = ("--sources", "swept_whole,swept_halves", "--rerankers", f"{reranker.url},swept_reranker:longest")
        words += ("--prompts", "swept_terse.txt,swept_long.txt", "--k", "1")
        yield Swept(yarus("sweep", *words, "--json", env=env, ok=False), retriever, reranker, models, env, words)


def arms(swept: Swept, **axes: str) -> list[Document]:
    return [arm for arm in swept.document["arms"] if axes.items() <= arm.items()]


def test_every_combination_is_an_arm_and_an_ordinary_evaluation(swept: Swept, at_home: Path) -> None:
    assert len(arms(swept)) == 8
    named = [arm["arm"] for arm in arms(swept)]
    assert named[0] == f"source swept_whole, reranker {swept.reranker.url}, prompt swept_terse.txt"
    assert len(set(named)) == 8
    [arm] = arms(swept, source="swept_halves", reranker="swept_reranker:longest", generator_prompt="swept_long.txt")
    shown = here("show", arm["evaluation_id"], "--json").json
    assert (shown["source"], shown["system"]["unit"]) == ("swept_halves", "page")
    assert (shown["system"]["reranker"], shown["system"]["rerank_depth"]) == ("swept_reranker:longest", DEPTH)
    prompt, _, digest = shown["system"]["generator_prompt"].partition("|")
    assert (prompt, len(digest)) == ("swept_long.txt", 16)
    [other] = arms(swept, source="swept_halves", reranker=swept.reranker.url, generator_prompt="swept_terse.txt")
    before = here("show", other["evaluation_id"], "--json").json
    assert before["system"]["reranker_identity"] == f"{swept.reranker.url}|model:big"
    assert before["comparability_key"] == shown["comparability_key"], "factors of the system are no part of the key"


def test_a_question_is_retrieved_once_a_source_and_scored_once_a_re_ranker(swept: Swept) -> None:
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
        request["messages"][0]["content"] for request in swept.models.requests if metric_of(request) == "generation"
    )
    assert set(generated.values()) == {1}, "what reads the same prompt gets the stored reply"


def test_re_ranking_decides_what_is_found_and_its_failure_is_its_cases_alone(swept: Swept, at_home: Path) -> None:
    for source in ("swept_whole", "swept_halves"):
        [arm] = arms(swept, source=source, reranker=swept.reranker.url, generator_prompt="swept_terse.txt")
        assert arm["state"] == "invalid", "one of eight questions has no ranking"
        rows = here("cases", arm["evaluation_id"], "--json").json
        found = {row["question_id"]: row for row in rows}
        assert found[str(BROKEN)]["status"] == "sut_error"
        assert "expected a score for each of" in found[str(BROKEN)]["reason"]
        for number in set(range(QUESTIONS)) - {BROKEN}:
            assert found[str(number)]["retrieved"] == [PAGE.format(number)]


def test_arms_of_two_sources_are_compared_on_their_common_questions(swept: Swept) -> None:
    source = {arm["arm"]: arm["source"] for arm in arms(swept)}
    across = [pair for pair in swept.document["pairs"] if source[pair["a"]] != source[pair["b"]]]
    assert len(across) == 4 * 4 * len(swept.document["metrics"])
    assert {pair["n"] + pair["n_missing"] for pair in across} == {QUESTIONS}
    assert {pair["reason"] for pair in across} == {None}


def test_it_is_told_in_the_report_and_in_the_terminal(
    swept: Swept, engine: Engine, at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures: Document = {}
    (page,) = [page for page in pages(engine, "swept_halves", figures) if page["key"] == "sweep"]
    lines = [line["text"]["en"] for line in page["blocks"][0]["lines"]]
    assert any("questions that they have in common" in line for line in lines)
    assert page["blocks"][0]["rows"][7][0]["ru"].startswith("8. source swept_halves")
    print_sweep(cast(Sweep, swept.document), "en")
    said = " ".join(capsys.readouterr().out.split())
    assert "source swept_halves" in said
    assert "questions that they have in common" in said


def test_a_bad_prompt_ends_it_before_any_model_is_asked(swept: Swept, at_home: Path) -> None:
    (at_home / "swept_bad.txt").write_text("Ответь по $contekst: $question", encoding="utf-8")
    asked = len(swept.models.requests), len(swept.retriever.requests)
    ran = here("sweep", "--prompts", "swept_terse.txt,swept_bad.txt", env=swept.env | ENGLISH)
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'context'" in ran.err
    assert (len(swept.models.requests), len(swept.retriever.requests)) == asked
