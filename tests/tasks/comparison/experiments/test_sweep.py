"""What a sweep is made of, before anything is evaluated."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import Engine

from yarus.db import analyses
from yarus.db.errors import InputError
from yarus.tasks.comparison.experiments.robustness import arms as probe_arms
from yarus.tasks.comparison.experiments.sweep import MOST_ARMS, arms, combined, with_front
from yarus.tasks.config.flow_parameters import Robustness, Sweep
from yarus.tasks.config.parameters import Tier3
from yarus.tasks.systems.retrievers.protocol import Ranking, reuse_rankings


@pytest.fixture(autouse=True)
def _at_home(at_home: Path) -> None:
    """No test here needs a server of models."""


def names(**given: Any) -> list[str]:
    return [arm.name for arm in arms(Sweep.model_validate(given))]


def test_every_combination_is_an_arm_and_retrieval_changes_last() -> None:
    assert names(retrievers="dense,fulltext", k="1,3") == [
        "retriever dense, k 1",
        "retriever dense, k 3",
        "retriever fulltext, k 1",
        "retriever fulltext, k 3",
    ]
    (only,) = arms(Sweep.model_validate({"limit": 7, "seed": 3}))
    assert isinstance(only.parameters, Tier3)
    assert (only.name, only.parameters.limit, only.parameters.seed, only.parameters.k) == ("—", 7, 3, 1)


def test_what_comes_to_the_same_is_one_arm() -> None:
    found = names(retrievers=["dense", "fulltext"], embedders=["lexical", "other"])
    assert found == ["retriever dense, embedder lexical", "retriever dense, embedder other", "retriever fulltext"]
    assert names(k="1,1,1") == ["—"]


def test_models_are_parameters_of_the_arms_and_judges_are_evaluated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("GENERATOR", "JUDGE"):
        monkeypatch.setenv(f"YARUS_{role}__BASE_URL", "http://127.0.0.1:9/v1")
    found = arms(Sweep.model_validate({"tier": "tier2", "generators": "a,b", "judges": "x,y"}))
    assert [(arm.tier, arm.axes["judge_model"]) for arm in found] == [
        *(("tier2", judge) for _ in "ab" for judge in "xy"),
        ("judge", "x"),
        ("judge", "y"),
    ]
    assert {getattr(arm.parameters, "generator_model", None) for arm in found} == {"a", "b", None}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tier": "tier1", "judges": ["a"]}, "tier1 does not use --judges"),
        ({"tier": "tier2", "k": [1]}, "tier2 does not use --k"),
        ({"tier": "tier1", "k": [3]}, "sweep of tier1: k = 3: expected 10 or more"),
        ({"k": [0]}, "sweep of tier3: k = 0: expected 1 or more"),
        ({"generators": ["a"]}, "YARUS_GENERATOR__BASE_URL"),
        ({"judges": ["a"]}, "YARUS_JUDGE__BASE_URL"),
        ({"retrievers": ["fultext"]}, "did you mean 'fulltext'"),
        ({"tier": "tier1", "prompts": ["a.txt"]}, "tier1 does not use --prompts"),
        ({"tier": "tier2", "rerankers": ["none"]}, "tier2 does not use --rerankers"),
        ({"rerankers": ["none", "nobody/has-it"]}, "no re-ranker 'nobody/has-it'"),
        ({"rerankers": ["http://me:s3cret@h/rerank"]}, "YARUS_RERANKER_SERVICE__HEADERS"),
        ({"prompts": ["a.txt"]}, "YARUS_GENERATOR__BASE_URL"),
        ({"sources": ["a", "b"], "cases": "frozen"}, "is of one source"),
        ({"k": list(range(1, MOST_ARMS + 2))}, "too many"),
    ],
)
def test_what_cannot_be_swept(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        arms(Sweep.model_validate(given))


@pytest.mark.parametrize("given", [{"k": "1,3"}, {"rerankers": "none"}, {"prompts": "a.txt"}, {"sources": "a,b"}])
def test_a_system_that_is_not_ours_decides_its_parts_itself(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.setenv("YARUS_SUT", "https://bot.example/ask")
    with pytest.raises(InputError, match=f"YARUS_SUT.*decides its {next(iter(given))} itself"):
        names(**given)


def test_prompts_are_read_before_anything_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("YARUS_GENERATOR__BASE_URL", "http://127.0.0.1:9/v1")
    files = {
        "good": "$question $context",
        "lacking": "$context",
        "misspelt": "$question $contxt",
        "odd": "$question 5$",
    }
    for name, words in files.items():
        (tmp_path / f"{name}.txt").write_text(words, encoding="utf-8")
    good = tmp_path / "good.txt"
    (tmp_path / "latin.txt").write_bytes("Ответь: $question".encode("cp1251"))
    for name, said in {
        "lacking": "must contain \\$question",
        "misspelt": "did you mean 'context'",
        "odd": "begins no variable",
        "gone": "cannot be read",
        "latin": "not UTF-8",
    }.items():
        for tier in ("tier2", "tier3"):
            with pytest.raises(InputError, match=said):
                names(tier=tier, prompts=[str(good), str(tmp_path / f"{name}.txt")])
    [arm] = arms(Sweep.model_validate({"prompts": [str(good)]}))
    assert (arm.axes["generator_prompt"], getattr(arm.parameters, "generator_prompt", None)) == (str(good),) * 2


def test_over_several_sources_pages_are_found_and_the_sweep_is_filed_under_one() -> None:
    parameters = Sweep.model_validate({"tier": "tier1", "sources": "a, b,a", "rerankers": "none,m:f"})
    assert (parameters.source, parameters.sources) == ("a", ["a", "b"])
    found = arms(parameters)
    assert [arm.name for arm in found] == [
        "source a, reranker none",
        "source a, reranker m:f",
        "source b, reranker none",
        "source b, reranker m:f",
    ]
    assert {(arm.parameters.source, getattr(arm.parameters, "unit", None)) for arm in found} == {
        ("a", "page"),
        ("b", "page"),
    }
    [one] = arms(Sweep.model_validate({"tier": "tier1", "sources": "a"}))
    assert (one.parameters.source, getattr(one.parameters, "unit", None)) == ("a", "auto")
    assert Sweep.model_validate({"source": "b", "sources": "a,b"}).source == "b"
    with pytest.raises(ValidationError, match="--source c is none of them"):
        Sweep.model_validate({"source": "c", "sources": "a,b"})


def test_arms_of_other_questions_do_not_compete() -> None:
    rows = [
        {
            "arm": name,
            "state": "completed",
            "tier": "tier1",
            "judge_model": None,
            "metrics": {"hit_rate@1": {"value": of}},
        }
        for name, of in (("few", 0.9), ("all", 0.7), ("worse", 0.6))
    ]
    taken = {name: {"cost_usd": None, "latency_ms_p50": 1.0} for name in ("few", "all", "worse")}
    asked = {"few": frozenset("ab"), "all": frozenset("abc"), "worse": frozenset("abc")}
    front = {row["arm"]: row["pareto"] for row in with_front(rows, taken, asked)}
    assert front == {"few": True, "all": True, "worse": False}


def test_a_sweep_of_failures_only_is_a_document_too() -> None:
    parameters = Sweep.model_validate({"k": "1,3"})
    lost = dict.fromkeys(("evaluation_id", "flow_run_id", "parquet", "n_cases", "coverage", "judge_model"))
    outcomes = [
        {"arm": arm.name, "tier": "tier3", "state": "failed", "error": "gone", "metrics": {}, **arm.axes, **lost}
        for arm in arms(parameters)
    ]
    found = combined(parameters, outcomes)
    assert (found["state"], found["pairs"], [arm["pareto"] for arm in found["arms"]]) == ("failed", [], [False, False])


def test_an_arm_that_fails_at_the_hard_questions_is_not_on_the_front() -> None:
    rows = [
        {"arm": name, "state": state, "tier": "tier1", "judge_model": None, "metrics": {"hit_rate@1": {"value": value}}}
        for name, state, value in (("whole", "completed", 0.7), ("half", "invalid", 1.0))
    ]
    taken = {name: {"cost_usd": None, "latency_ms_p50": 1.0} for name in ("whole", "half")}
    assert {row["arm"]: row["pareto"] for row in with_front(rows, taken, {})} == {"whole": True, "half": False}


def test_rankings_are_shared_within_a_sweep_only_and_failures_are_asked_again() -> None:
    asked: list[str] = []

    def rank(questions: Any) -> list[Ranking]:
        asked.extend(questions)
        return [
            Ranking([], [], error="lost") if question == "bad" else Ranking([question], [0.0]) for question in questions
        ]

    known: dict[Any, Ranking] = {}
    first = reuse_rankings(known, "here", ["a", "b", "a", "bad"], rank)
    again = reuse_rankings(known, "here", ["b", "bad", "c"], rank)
    reuse_rankings(known, "there", ["a"], rank)
    reuse_rankings(None, "here", ["a"], rank)
    assert asked == ["a", "b", "bad", "bad", "c", "a", "a"]
    assert [ranking.ids for ranking in first] == [["a"], ["b"], ["a"], []]
    assert [ranking.ids for ranking in again] == [["b"], [], ["c"]]


def test_probes_ask_as_it_is_first_and_do_without_a_model() -> None:
    found = probe_arms(Robustness.model_validate({"kinds": "typos,paraphrase", "tiers": "tier1,tier3"}))
    assert [arm.name for arm in found] == ["tier1: as it is", "tier1: typos", "tier3: as it is", "tier3: typos"]


def test_what_ends_early_or_dies_is_written_down(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError), analyses.analysing(engine, "sweep", "some", {}) as failed:
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), analyses.analysing(engine, "sweep", "some", {}) as stopped:
        raise KeyboardInterrupt
    analyses.open_row(engine, "sweep-dead", "sweep", "some", {})  # and nobody holds its lock
    with analyses.analysing(engine, "sweep", "some", {}) as living:
        states = {row["id"]: row["state"] for row in analyses.listing(engine, "sweep", source="some")}
        with pytest.raises(InputError), analyses.analysing(engine, "sweep", "some", {}, resume=living):
            pass
        analyses.keep(engine, living, {"found": 1}, "completed")
    assert states == {failed: "failed", stopped: "cancelled", "sweep-dead": "failed", living: "running"}
    assert analyses.find(engine, "sweep", living)["document"] == {"found": 1}
    with pytest.raises(InputError, match="no sweep 'nothing'; there are"):
        analyses.find(engine, "sweep", "nothing")
