"""Check a sweep by one command: shared calls, single failures, comparability, resuming; and the probes."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, CommandResult, run_here
from tests.support.evaluations import get_requested_metric, hash_to_unit, load, question, texts
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_completion, make_response, make_score_completion
from yarus.db.former_keys import add_former_keys
from yarus.tasks.comparison.experiments.arms import SWEEP_METRICS
from yarus.tasks.comparison.experiments.experiments_schema import list_sweeps
from yarus.tasks.report.experiment_pages import experiment_pages

Document = dict[str, Any]
QUESTIONS = 12
MODELS = ("small", "middle", "large")
MISSING = "absent"
JUDGES = ("strict", "mild")
ARMS = (1 + len(MODELS)) * len(JUDGES)
COMPLETED = len(MODELS) * len(JUDGES)
PRICES = {model: {"input": 2**index, "output": 0, "as_of": "2026-01-01"} for index, model in enumerate(MODELS)}


class Swept(NamedTuple):
    """A sweep, and the servers that it called."""

    ran: CommandResult
    models: FakeLLMServer
    retriever: FakeLLMServer
    env: dict[str, str]

    @property
    def document(self) -> Document:
        result: Document = self.ran.json
        return result


def answer_as_models(number: int, request: Document) -> Any:
    """Answer as models that each answer differently; one of them does not exist."""
    if request["model"] == MISSING:
        return make_response(
            404, json.dumps({"error": {"message": f"The model `{MISSING}` does not exist"}}), JSON_HEADER
        )
    if get_requested_metric(request) == "generation":
        words = texts(request)["context"].split()
        return make_completion(" ".join(words[: 2 * (1 + MODELS.index(request["model"]))]), tokens=(100, 10))
    return make_score_completion(
        round(hash_to_unit(request["model"], request["messages"][0]["content"]), 1), tokens=(50, 5)
    )


def rank(number: int, request: Document) -> bytes:
    """Return the chunk of the question's number, then the next ones."""
    first = int(request["question"].split()[3].strip(","))
    results = [{"id": f"c{(first + i) % 10}", "distance": 0.1 * i} for i in range(int(request["k"]))]
    return make_response(200, json.dumps({"results": results}), JSON_HEADER)


@pytest.fixture(scope="module")
def source(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    questions = [question(i, score=1 if i % 3 else 5) for i in range(QUESTIONS)]
    return load(tmp_path_factory.mktemp("swept"), "swept", questions)


@pytest.fixture(scope="module")
def swept(yarus: CommandLine, source: str, prefect_server: dict[str, str]) -> Iterator[Swept]:
    """Sweep four generators, one of which does not exist, with two judges: eight arms over one retriever."""
    with FakeLLMServer(script=answer_as_models) as models, FakeLLMServer(script=rank) as retriever:
        env = prefect_server | {"YARUS_RETRIEVER": retriever.url, "YARUS_PRICES": json.dumps(PRICES)}
        env |= {f"YARUS_{role}__BASE_URL": models.url for role in ("GENERATOR", "JUDGE")}
        env |= {f"YARUS_{role}__MODEL": "unused" for role in ("GENERATOR", "JUDGE")}
        generators = ",".join((MISSING, *MODELS))
        words = ("--source", source, "--generators", generators, "--judges", ",".join(JUDGES), "--json")
        yield Swept(yarus("sweep", *words, env=env, ok=False), models, retriever, env)


def arms(swept: Swept) -> dict[tuple[str, str], Document]:
    return {(arm["generator_model"], arm["judge_model"]): arm for arm in swept.document["variants"]}


def test_combinations_are_arms_with_evaluations(swept: Swept, at_home: Path) -> None:
    assert len(arms(swept)) == ARMS
    completed_arm = arms(swept)["large", "mild"]
    document = run_here("show", completed_arm["evaluation_id"], "--json").json
    assert (document["state"], document["system"]["generator"], document["system"]["judge"]["model"]) == (
        "completed", "large", "mild",
    )  # fmt: skip
    assert document["system"]["part_of"] == swept.document["sweep_id"]  # so histories leave it out
    stored = {name: metric["value"] for name, metric in document["metrics"].items() if name in SWEEP_METRICS["tier3"]}
    assert {name: metric["value"] for name, metric in completed_arm["metrics"].items()} == stored
    assert completed_arm["metrics"]["avg_e2e_score"]["n_scored"] == QUESTIONS


def test_retrieval_and_generation_are_shared_by_arms(swept: Swept) -> None:
    retrieved = Counter(request["question"] for request in swept.retriever.requests)
    assert len(retrieved) == QUESTIONS
    assert set(retrieved.values()) == {1}
    generated = Counter(
        (request["model"], texts(request)["question"])
        for request in swept.models.requests
        if get_requested_metric(request) == "generation" and request["model"] != MISSING
    )
    assert len(generated) == QUESTIONS * len(MODELS)
    assert set(generated.values()) == {1}


def test_failed_arm_does_not_stop_others(swept: Swept) -> None:
    states = {models: arm["state"] for models, arm in arms(swept).items()}
    assert {models for models, state in states.items() if state != "completed"} == {
        (MISSING, judge) for judge in JUDGES
    }
    failed = arms(swept)[MISSING, "mild"]
    assert MISSING in failed["error"]
    assert failed["metrics"] == {} and failed["cost_usd"] is None and not failed["pareto"]
    assert swept.document["state"] == "failed"
    assert swept.ran.code == 1


def test_different_judges_are_not_compared(swept: Swept) -> None:
    pairs = swept.document["pairs"]
    judge = {arm["variant_name"]: arm["judge_model"] for arm in swept.document["variants"]}
    assert len(pairs) == COMPLETED * (COMPLETED - 1) // 2 * len(SWEEP_METRICS["tier3"])
    for pair in pairs:
        is_judged = pair["metric"] in ("avg_e2e_score", "avg_faithfulness")
        is_incomparable = is_judged and judge[pair["a"]] != judge[pair["b"]]
        assert (pair["reason"] == "judged by different judges") == is_incomparable, pair
        assert (pair["p"] is None) == is_incomparable
    from statsmodels.stats.multitest import multipletests

    compared = [pair for pair in pairs if pair["p"] is not None]
    expected = multipletests([pair["p"] for pair in compared], method="holm")[1]
    assert [pair["p_holm"] for pair in compared] == pytest.approx(expected.tolist())


def test_costs_and_latencies_are_those_of_answers(swept: Swept) -> None:
    # 100 input tokens at 1, 2 and 4 USD per million: 0.1, 0.2 and 0.4 USD for 1,000 answers.
    for index, model in enumerate(MODELS):
        for judge in JUDGES:
            arm = arms(swept)[model, judge]
            assert arm["cost_usd"] == pytest.approx(0.1 * 2**index)
            assert 0 < arm["latency_ms_p50"] <= arm["latency_ms_p95"]


def test_pareto_front_is_per_judge(swept: Swept) -> None:
    for judge in JUDGES:
        peers = [
            arm for arm in swept.document["variants"] if arm["judge_model"] == judge and arm["state"] == "completed"
        ]
        objectives = {arm["variant_name"]: (-_quality(arm), arm["cost_usd"], arm["latency_ms_p50"]) for arm in peers}
        for arm in peers:
            own = objectives[arm["variant_name"]]
            is_dominated = any(
                all(a <= b for a, b in zip(other, own, strict=True)) and other != own for other in objectives.values()
            )
            assert arm["pareto"] is not is_dominated


def _quality(arm: Document) -> float:
    return float(arm["metrics"]["avg_e2e_score"]["value"])


def test_judges_are_compared_with_people(swept: Swept) -> None:
    judges = {judge["judge_model"]: judge for judge in swept.document["judges"]}
    assert set(judges) == {*JUDGES}
    for judge in judges.values():
        assert judge["tier"] == "judge"
        assert judge["metrics"]["user_votes_weighted_kappa"]["n_scored"] == QUESTIONS


def test_sweep_is_stored_for_report(swept: Swept, engine: Engine, at_home: Path) -> None:
    stored = next(document for document in list_sweeps(engine) if document["sweep_id"] == swept.document["sweep_id"])
    printed = add_former_keys(stored)
    assert {name: printed[name] for name in ("variants", "pairs", "judges", "tier", "source")} == {
        name: swept.document[name] for name in ("variants", "pairs", "judges", "tier", "source")
    }


def test_report_has_sweep_page(swept: Swept, engine: Engine, at_home: Path) -> None:
    figures: Document = {}
    (page,) = [page for page in experiment_pages(engine, "swept", figures) if page["key"] == "sweep"]
    table, pairs, judges = page["blocks"]
    arm_labels = [f"{number}. {arm['variant_name']}" for number, arm in enumerate(swept.document["variants"], start=1)]
    assert [row[0]["ru"] for row in table["rows"]] == arm_labels
    assert len([line for line in table["lines"] if line["problem"]]) == len(JUDGES)
    assert pairs["heading"]["en"].startswith("Differences")
    assert len(judges["rows"]) == len(JUDGES)
    front = figures["sweep-cost_usd"]["data"][0]
    assert sorted(set(front["x"])) == pytest.approx([0.1, 0.2, 0.4])
    assert len(front["y"]) == len(front["error_y"]["array"]) == COMPLETED
    assert [arm_labels[int(number) - 1] for number in front["text"]] == front["hovertext"]
    assert {chart["id"] for chart in table["charts"]} == set(figures)


def test_sweep_table_is_an_artifact(swept: Swept) -> None:
    async def artifacts() -> list[Document]:
        async with httpx.AsyncClient(base_url=swept.env["PREFECT_API_URL"]) as client:
            query = {"artifacts": {"key": {"any_": ["sweep"]}}}
            fetched: list[Document] = (await client.post("artifacts/filter", json=query)).json()
            return fetched

    tables = [table for table in asyncio.run(artifacts()) if table["description"] == swept.document["sweep_id"]]
    rows = json.loads(tables[0]["data"])
    assert [row["variant_name"] for row in rows] == [arm["variant_name"] for arm in swept.document["variants"]]


@pytest.mark.slow("prefect: the arms that failed, evaluated")
def test_resumed_sweep_runs_only_missing_arms(swept: Swept, yarus: CommandLine) -> None:
    before = len(swept.models.requests)
    model_names = (*MODELS, MISSING)

    def answer_all(number: int, request: Document) -> Any:
        if get_requested_metric(request) == "generation":
            return make_completion(f"Ответ {model_names.index(request['model'])}.", tokens=(100, 10))
        return answer_as_models(number, request)

    swept.models.script = answer_all
    words = ("sweep", "--resume", swept.document["sweep_id"], "--json")
    document = yarus(*words, env=swept.env).json
    assert document["state"] == "completed"
    assert document["sweep_id"] == swept.document["sweep_id"]
    completed_arms = {
        arm["variant_name"]: arm["evaluation_id"] for arm in swept.document["variants"] if arm["state"] == "completed"
    }
    resumed_arms = {arm["variant_name"]: arm["evaluation_id"] for arm in document["variants"]}
    assert len(resumed_arms) == ARMS and completed_arms.items() <= resumed_arms.items()
    fresh = [request for request in swept.models.requests[before:] if get_requested_metric(request) == "generation"]
    assert Counter(request["model"] for request in fresh) == {MISSING: QUESTIONS}


def test_impossible_sweep_is_refused(at_home: Path) -> None:
    wrong = {("--retrievers", "dense,fultext"): "did you mean 'fulltext'", ("--resume", "none"): "no sweep 'none'"}
    for words, message in wrong.items():
        ran = run_here("sweep", *words, env=ENGLISH)
        assert (ran.code, message in ran.err, ran.out) == (2, True, ""), ran


@pytest.mark.slow("prefect: four evaluations")
def test_robustness_measures_kinds(yarus: CommandLine) -> None:
    words = ("--perturbations", "lower,layout,paraphrase", "--tiers", "tier1", "--limit", "60", "--json")
    document = yarus("robustness", *words).json
    kinds = document["tiers"]["tier1"]
    assert kinds["layout"]["n_changed"] > 50
    assert kinds["layout"]["metrics"]["mrr"]["difference"] < -0.2, "the lexical vectors know no other letters"
    assert kinds["layout"]["metrics"]["mrr"]["verdict"] == "regressed"
    assert kinds["lower"]["n_changed"] < 30, "most users write so anyway"
    assert kinds["lower"]["unchanged_share"]["value"] == 1.0, "the lexical vectors are lower-cased"
    assert kinds["paraphrase"]["state"] == "not_applicable"
    assert "language model" in kinds["paraphrase"]["error"]
    assert document["state"] == "completed"
