"""A sweep by one command: what is shared, what fails alone, what is comparable, how it is resumed; and the probes."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, Ran, here
from tests.support.evaluations import chance, load, metric_of, question, texts
from tests.support.llm_server import JSON, FakeLLMServer, http, says, scores
from yarus.tasks.comparison.experiments.arms import SWEEP_METRICS
from yarus.tasks.comparison.experiments.experiments_schema import sweeps
from yarus.tasks.report.experiment_pages import pages

Document = dict[str, Any]
QUESTIONS = 12
MODELS = ("small", "middle", "large")
MISSING = "absent"
JUDGES = ("strict", "mild")
ARMS = (1 + len(MODELS)) * len(JUDGES)
COMPLETED = len(MODELS) * len(JUDGES)
PRICES = {model: {"input": 2**place, "output": 0, "as_of": "2026-01-01"} for place, model in enumerate(MODELS)}


class Swept(NamedTuple):
    """A sweep and the servers that it asked."""

    ran: Ran
    models: FakeLLMServer
    retriever: FakeLLMServer
    env: dict[str, str]

    @property
    def document(self) -> Document:
        found: Document = self.ran.json
        return found


def models_say(number: int, request: Document) -> Any:
    """Models that answer each in its way; one of them is not there."""
    if request["model"] == MISSING:
        return http(404, json.dumps({"error": {"message": f"The model `{MISSING}` does not exist"}}), JSON)
    if metric_of(request) == "generation":
        words = texts(request)["context"].split()
        return says(" ".join(words[: 2 * (1 + MODELS.index(request["model"]))]), tokens=(100, 10))
    return scores(round(chance(request["model"], request["messages"][0]["content"]), 1), tokens=(50, 5))


def rank(number: int, request: Document) -> bytes:
    """The chunk of the question's number, then the next ones."""
    first = int(request["question"].split()[3].strip(","))
    found = [{"id": f"c{(first + place) % 10}", "distance": 0.1 * place} for place in range(int(request["k"]))]
    return http(200, json.dumps({"results": found}), JSON)


@pytest.fixture(scope="module")
def source(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    questions = [question(i, score=1 if i % 3 else 5) for i in range(QUESTIONS)]
    return load(tmp_path_factory.mktemp("swept"), "swept", questions)


@pytest.fixture(scope="module")
def swept(yarus: CommandLine, source: str, prefect_server: dict[str, str]) -> Iterator[Swept]:
    """Four generators, one of which is not there, by two judges: eight arms, over one retriever on sockets."""
    with FakeLLMServer(script=models_say) as models, FakeLLMServer(script=rank) as retriever:
        env = prefect_server | {"YARUS_RETRIEVER": retriever.url, "YARUS_PRICES": json.dumps(PRICES)}
        env |= {f"YARUS_{role}__BASE_URL": models.url for role in ("GENERATOR", "JUDGE")}
        env |= {f"YARUS_{role}__MODEL": "unused" for role in ("GENERATOR", "JUDGE")}
        generators = ",".join((MISSING, *MODELS))
        words = ("--source", source, "--generators", generators, "--judges", ",".join(JUDGES), "--json")
        yield Swept(yarus("sweep", *words, env=env, ok=False), models, retriever, env)


def arms(swept: Swept) -> dict[tuple[str, str], Document]:
    return {(arm["generator_model"], arm["judge_model"]): arm for arm in swept.document["arms"]}


def test_every_combination_is_an_arm_with_an_ordinary_evaluation(swept: Swept, at_home: Path) -> None:
    assert len(arms(swept)) == ARMS
    whole = arms(swept)["large", "mild"]
    shown = here("show", whole["evaluation_id"], "--json").json
    assert (shown["state"], shown["system"]["generator"], shown["system"]["judge"]["model"]) == (
        "completed", "large", "mild",
    )  # fmt: skip
    assert shown["system"]["part_of"] == swept.document["sweep_id"]  # histories leave it out
    kept = {name: metric["value"] for name, metric in shown["metrics"].items() if name in SWEEP_METRICS["tier3"]}
    assert {name: metric["value"] for name, metric in whole["metrics"].items()} == kept
    assert whole["metrics"]["avg_e2e_score"]["n_scored"] == QUESTIONS


def test_each_retrieval_and_each_generation_is_made_once(swept: Swept) -> None:
    asked = Counter(request["question"] for request in swept.retriever.requests)
    assert len(asked) == QUESTIONS
    assert set(asked.values()) == {1}
    generated = Counter(
        (request["model"], texts(request)["question"])
        for request in swept.models.requests
        if metric_of(request) == "generation" and request["model"] != MISSING
    )
    assert len(generated) == QUESTIONS * len(MODELS)
    assert set(generated.values()) == {1}


def test_an_arm_that_fails_does_not_stop_the_others_and_says_why(swept: Swept) -> None:
    states = {models: arm["state"] for models, arm in arms(swept).items()}
    assert {models for models, state in states.items() if state != "completed"} == {
        (MISSING, judge) for judge in JUDGES
    }
    failed = arms(swept)[MISSING, "mild"]
    assert MISSING in failed["error"]
    assert failed["metrics"] == {} and failed["cost_usd"] is None and not failed["pareto"]
    assert swept.document["state"] == "failed"
    assert swept.ran.code == 1


def test_scores_of_different_judges_are_not_compared_and_p_is_holms(swept: Swept) -> None:
    pairs = swept.document["pairs"]
    judge = {arm["arm"]: arm["judge_model"] for arm in swept.document["arms"]}
    assert len(pairs) == COMPLETED * (COMPLETED - 1) // 2 * len(SWEEP_METRICS["tier3"])
    for pair in pairs:
        judged = pair["metric"] in ("avg_e2e_score", "avg_faithfulness")
        untold = judged and judge[pair["a"]] != judge[pair["b"]]
        assert (pair["reason"] == "judged by different judges") == untold, pair
        assert (pair["p"] is None) == untold
    from statsmodels.stats.multitest import multipletests

    told = [pair for pair in pairs if pair["p"] is not None]
    theirs = multipletests([pair["p"] for pair in told], method="holm")[1]
    assert [pair["p_holm"] for pair in told] == pytest.approx(theirs.tolist())


def test_cost_is_of_the_answers_whoever_paid_and_latency_of_the_system(swept: Swept) -> None:
    # 100 tokens read at 1, 2 and 4 USD a million: 0.1, 0.2 and 0.4 USD for 1,000 answers.
    for place, model in enumerate(MODELS):
        for judge in JUDGES:
            arm = arms(swept)[model, judge]
            assert arm["cost_usd"] == pytest.approx(0.1 * 2**place)
            assert 0 < arm["latency_ms_p50"] <= arm["latency_ms_p95"]


def test_the_front_is_of_arms_of_one_judge(swept: Swept) -> None:
    for judge in JUDGES:
        some = [arm for arm in swept.document["arms"] if arm["judge_model"] == judge and arm["state"] == "completed"]
        place = {arm["arm"]: (-_quality(arm), arm["cost_usd"], arm["latency_ms_p50"]) for arm in some}
        for arm in some:
            mine = place[arm["arm"]]
            beaten = any(
                all(a <= b for a, b in zip(other, mine, strict=True)) and other != mine for other in place.values()
            )
            assert arm["pareto"] is not beaten


def _quality(arm: Document) -> float:
    return float(arm["metrics"]["avg_e2e_score"]["value"])


def test_judges_are_compared_with_people(swept: Swept) -> None:
    judges = {said["judge_model"]: said for said in swept.document["judges"]}
    assert set(judges) == {*JUDGES}
    for said in judges.values():
        assert said["tier"] == "judge"
        assert said["metrics"]["user_votes_weighted_kappa"]["n_scored"] == QUESTIONS


def test_it_is_stored_for_the_report(swept: Swept, engine: Engine, at_home: Path) -> None:
    stored = next(found for found in sweeps(engine) if found["sweep_id"] == swept.document["sweep_id"])
    assert {name: stored[name] for name in ("arms", "pairs", "judges", "tier", "source")} == {
        name: swept.document[name] for name in ("arms", "pairs", "judges", "tier", "source")
    }


def test_the_report_has_its_page(swept: Swept, engine: Engine, at_home: Path) -> None:
    figures: Document = {}
    (page,) = [page for page in pages(engine, "swept", figures) if page["key"] == "sweep"]
    table, pairs, judges = page["blocks"]
    named = [f"{number}. {arm['arm']}" for number, arm in enumerate(swept.document["arms"], start=1)]
    assert [row[0]["ru"] for row in table["rows"]] == named
    assert len([line for line in table["lines"] if line["problem"]]) == len(JUDGES)
    assert pairs["heading"]["en"].startswith("Differences")
    assert len(judges["rows"]) == len(JUDGES)
    front = figures["sweep-cost_usd"]["data"][0]
    assert sorted(set(front["x"])) == pytest.approx([0.1, 0.2, 0.4])
    assert len(front["y"]) == len(front["error_y"]["array"]) == COMPLETED
    assert [named[int(number) - 1] for number in front["text"]] == front["hovertext"]
    assert {chart["id"] for chart in table["charts"]} == set(figures)


def test_the_table_is_an_artifact(swept: Swept) -> None:
    async def artifacts() -> list[Document]:
        async with httpx.AsyncClient(base_url=swept.env["PREFECT_API_URL"]) as client:
            asked = {"artifacts": {"key": {"any_": ["sweep"]}}}
            found: list[Document] = (await client.post("artifacts/filter", json=asked)).json()
            return found

    shown = [one for one in asyncio.run(artifacts()) if one["description"] == swept.document["sweep_id"]]
    rows = json.loads(shown[0]["data"])
    assert [row["arm"] for row in rows] == [arm["arm"] for arm in swept.document["arms"]]


@pytest.mark.slow("prefect: the arms that failed, evaluated")
def test_resumed_it_makes_what_is_missing_and_no_call_twice(swept: Swept, yarus: CommandLine) -> None:
    before = len(swept.models.requests)
    known = (*MODELS, MISSING)

    def grown(number: int, request: Document) -> Any:
        if metric_of(request) == "generation":
            return says(f"Ответ {known.index(request['model'])}.", tokens=(100, 10))
        return models_say(number, request)

    swept.models.script = grown
    words = ("sweep", "--resume", swept.document["sweep_id"], "--json")
    found = yarus(*words, env=swept.env).json
    assert found["state"] == "completed"
    assert found["sweep_id"] == swept.document["sweep_id"]
    kept = {arm["arm"]: arm["evaluation_id"] for arm in swept.document["arms"] if arm["state"] == "completed"}
    now = {arm["arm"]: arm["evaluation_id"] for arm in found["arms"]}
    assert len(now) == ARMS and kept.items() <= now.items()
    fresh = [request for request in swept.models.requests[before:] if metric_of(request) == "generation"]
    assert Counter(request["model"] for request in fresh) == {MISSING: QUESTIONS}


def test_what_cannot_be_swept_is_said_at_once(at_home: Path) -> None:
    wrong = {("--retrievers", "dense,fultext"): "did you mean 'fulltext'", ("--resume", "none"): "no sweep 'none'"}
    for words, said in wrong.items():
        ran = here("sweep", *words, env=ENGLISH)
        assert (ran.code, said in ran.err, ran.out) == (2, True, ""), ran


@pytest.mark.slow("prefect: four evaluations")
def test_robustness_by_one_command(yarus: CommandLine) -> None:
    words = ("--kinds", "lower,layout,paraphrase", "--tiers", "tier1", "--limit", "60", "--json")
    found = yarus("robustness", *words).json
    kinds = found["tiers"]["tier1"]
    assert kinds["layout"]["n_changed"] > 50
    assert kinds["layout"]["metrics"]["mrr"]["difference"] < -0.2, "the lexical vectors know no other letters"
    assert kinds["layout"]["metrics"]["mrr"]["verdict"] == "regressed"
    assert kinds["lower"]["n_changed"] < 30, "most users write so anyway"
    assert kinds["lower"]["same"]["value"] == 1.0, "the lexical vectors are lower-cased"
    assert kinds["paraphrase"]["state"] == "not_applicable"
    assert "language model" in kinds["paraphrase"]["error"]
    assert found["state"] == "completed"
