"""Plans of sweeps, before anything is evaluated."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import Engine

from yarus.db import analyses
from yarus.db.errors import InputError
from yarus.tasks.comparison.experiments.robustness import plan_arms as probe_arms
from yarus.tasks.comparison.experiments.sweep import MOST_ARMS, add_front, combine_outcomes, open_sweep, plan_arms
from yarus.tasks.config.flow_parameters import RobustnessParameters, SweepParameters
from yarus.tasks.config.parameters import Tier3
from yarus.tasks.systems.retrievers.protocol import Ranking, reuse_rankings


@pytest.fixture(autouse=True)
def _at_home(at_home: Path) -> None:
    """Use an empty home: no test here needs a model server."""


def arm_names(**parameters: Any) -> list[str]:
    return [arm.name for arm in plan_arms(SweepParameters.model_validate(parameters))]


def test_arms_are_all_combinations_in_retrieval_order() -> None:
    assert arm_names(retrievers="dense,fulltext", k="1,3") == [
        "retriever dense, k 1",
        "retriever dense, k 3",
        "retriever fulltext, k 1",
        "retriever fulltext, k 3",
    ]
    (only,) = plan_arms(SweepParameters.model_validate({"limit": 7, "seed": 3}))
    assert isinstance(only.parameters, Tier3)
    assert (only.name, only.parameters.limit, only.parameters.seed, only.parameters.k) == ("—", 7, 3, 1)


def test_equal_combinations_are_one_arm() -> None:
    swept = arm_names(retrievers=["dense", "fulltext"], embedders=["lexical", "other"])
    assert swept == ["retriever dense, embedder lexical", "retriever dense, embedder other", "retriever fulltext"]
    assert arm_names(k="1,1,1") == ["—"]


def test_arms_have_models_and_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("GENERATOR", "JUDGE"):
        monkeypatch.setenv(f"YARUS_{role}__BASE_URL", "http://127.0.0.1:9/v1")
    planned = plan_arms(SweepParameters.model_validate({"tier": "tier2", "generators": "a,b", "judges": "x,y"}))
    assert [(arm.tier, arm.axes["judge_model"]) for arm in planned] == [
        *(("tier2", judge) for _ in "ab" for judge in "xy"),
        ("judge", "x"),
        ("judge", "y"),
    ]
    assert {getattr(arm.parameters, "generator_model", None) for arm in planned} == {"a", "b", None}


@pytest.mark.parametrize(
    ("parameters", "message"),
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
def test_arms_rejects_invalid_sweeps(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_arms(SweepParameters.model_validate(parameters))


@pytest.mark.parametrize("parameters", [{"k": "1,3"}, {"rerankers": "none"}, {"prompts": "a.txt"}, {"sources": "a,b"}])
def test_arms_rejects_axes_of_external_systems(monkeypatch: pytest.MonkeyPatch, parameters: dict[str, str]) -> None:
    monkeypatch.setenv("YARUS_SUT", "https://bot.example/ask")
    with pytest.raises(InputError, match=f"YARUS_SUT.*decides its {next(iter(parameters))} itself"):
        arm_names(**parameters)


def test_arms_checks_prompt_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("YARUS_GENERATOR__BASE_URL", "http://127.0.0.1:9/v1")
    files = {
        "good": "$question $context",
        "lacking": "$context",
        "misspelt": "$question $contxt",
        "odd": "$question 5$",
    }
    for name, content in files.items():
        (tmp_path / f"{name}.txt").write_text(content, encoding="utf-8")
    good = tmp_path / "good.txt"
    (tmp_path / "latin.txt").write_bytes("Ответь: $question".encode("cp1251"))
    for name, message in {
        "lacking": "must contain \\$question",
        "misspelt": "did you mean 'context'",
        "odd": "begins no variable",
        "gone": "cannot be read",
        "latin": "not UTF-8",
    }.items():
        for tier in ("tier2", "tier3"):
            with pytest.raises(InputError, match=message):
                arm_names(tier=tier, prompts=[str(good), str(tmp_path / f"{name}.txt")])
    [arm] = plan_arms(SweepParameters.model_validate({"prompts": [str(good)]}))
    assert (arm.axes["generator_prompt"], getattr(arm.parameters, "generator_prompt", None)) == (str(good),) * 2


def test_arms_of_several_sources_use_page_units() -> None:
    parameters = SweepParameters.model_validate({"tier": "tier1", "sources": "a, b,a", "rerankers": "none,m:f"})
    assert (parameters.source, parameters.sources) == ("a", ["a", "b"])
    planned = plan_arms(parameters)
    assert [arm.name for arm in planned] == [
        "source a, reranker none",
        "source a, reranker m:f",
        "source b, reranker none",
        "source b, reranker m:f",
    ]
    assert {(arm.parameters.source, getattr(arm.parameters, "unit", None)) for arm in planned} == {
        ("a", "page"),
        ("b", "page"),
    }
    [single_arm] = plan_arms(SweepParameters.model_validate({"tier": "tier1", "sources": "a"}))
    assert (single_arm.parameters.source, getattr(single_arm.parameters, "unit", None)) == ("a", "auto")
    assert SweepParameters.model_validate({"source": "b", "sources": "a,b"}).source == "b"
    with pytest.raises(ValidationError, match="--source c is none of them"):
        SweepParameters.model_validate({"source": "c", "sources": "a,b"})


def test_front_separates_arms_of_other_questions() -> None:
    rows = [
        {
            "variant_name": name,
            "state": "completed",
            "tier": "tier1",
            "judge_model": None,
            "metrics": {"hit_rate@1": {"value": value}},
        }
        for name, value in (("few", 0.9), ("all", 0.7), ("worse", 0.6))
    ]
    costs = {name: {"cost_usd": None, "latency_ms_p50": 1.0} for name in ("few", "all", "worse")}
    question_sets = {"few": frozenset("ab"), "all": frozenset("abc"), "worse": frozenset("abc")}
    front = {row["variant_name"]: row["pareto"] for row in add_front(rows, costs, question_sets)}
    assert front == {"few": True, "all": True, "worse": False}


def test_combined_accepts_failures_only() -> None:
    parameters = SweepParameters.model_validate({"k": "1,3"})
    missing = dict.fromkeys(("evaluation_id", "flow_run_id", "parquet", "n_cases", "coverage", "judge_model"))
    outcomes = [
        {
            "variant_name": arm.name,
            "tier": "tier3",
            "state": "failed",
            "error": "gone",
            "metrics": {},
            **arm.axes,
            **missing,
        }
        for arm in plan_arms(parameters)
    ]
    sweep = combine_outcomes(parameters, outcomes)
    assert (sweep["state"], sweep["pairs"], [arm["pareto"] for arm in sweep["variants"]]) == (
        "failed",
        [],
        [False, False],
    )


def test_front_excludes_invalid_arms() -> None:
    rows = [
        {
            "variant_name": name,
            "state": state,
            "tier": "tier1",
            "judge_model": None,
            "metrics": {"hit_rate@1": {"value": value}},
        }
        for name, state, value in (("whole", "completed", 0.7), ("half", "invalid", 1.0))
    ]
    costs = {name: {"cost_usd": None, "latency_ms_p50": 1.0} for name in ("whole", "half")}
    assert {row["variant_name"]: row["pareto"] for row in add_front(rows, costs, {})} == {"whole": True, "half": False}


def test_reuse_rankings_shares_successes_within_a_key() -> None:
    requested: list[str] = []

    def rank(questions: Any) -> list[Ranking]:
        requested.extend(questions)
        return [
            Ranking([], [], error="lost") if question == "bad" else Ranking([question], [0.0]) for question in questions
        ]

    stored: dict[Any, Ranking] = {}
    first = reuse_rankings(stored, "here", ["a", "b", "a", "bad"], rank)
    again = reuse_rankings(stored, "here", ["b", "bad", "c"], rank)
    reuse_rankings(stored, "there", ["a"], rank)
    reuse_rankings(None, "here", ["a"], rank)
    assert requested == ["a", "b", "bad", "bad", "c", "a", "a"]
    assert [ranking.ids for ranking in first] == [["a"], ["b"], ["a"], []]
    assert [ranking.ids for ranking in again] == [["b"], [], ["c"]]


def test_probe_arms_start_unchanged_and_skip_paraphrase() -> None:
    planned = probe_arms(
        RobustnessParameters.model_validate({"perturbations": "typos,paraphrase", "tiers": "tier1,tier3"})
    )
    assert [arm.name for arm in planned] == ["tier1: as it is", "tier1: typos", "tier3: as it is", "tier3: typos"]


def test_sweep_stores_and_reads_its_parameters(engine: Engine) -> None:
    parameters = SweepParameters(tier="tier1", k=[10, 20], limit=7)
    with open_sweep(parameters) as started:
        pass
    assert analyses.find_analysis(engine, "sweep", started.id)["parameters"] == parameters.stored()
    with open_sweep(SweepParameters(resume=started.id)) as resumed:
        assert resumed.parameters == parameters.model_copy(update={"resume": started.id})


def test_analyses_store_states_of_interrupted_sweeps(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError), analyses.open_analysis(engine, "sweep", "some", {}) as failed:
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), analyses.open_analysis(engine, "sweep", "some", {}) as stopped:
        raise KeyboardInterrupt
    analyses.insert_analysis(engine, "sweep-dead", "sweep", "some", {})  # its lock is not held
    with analyses.open_analysis(engine, "sweep", "some", {}) as living:
        states = {row["id"]: row["state"] for row in analyses.list_analyses(engine, "sweep", source="some")}
        with pytest.raises(InputError), analyses.open_analysis(engine, "sweep", "some", {}, resume=living):
            pass
        analyses.save_analysis(engine, living, {"found": 1}, "completed")
    assert states == {failed: "failed", stopped: "cancelled", "sweep-dead": "failed", living: "running"}
    assert analyses.find_analysis(engine, "sweep", living)["document"] == {"found": 1}
    with pytest.raises(InputError, match="no sweep 'nothing'; there are"):
        analyses.find_analysis(engine, "sweep", "nothing")
