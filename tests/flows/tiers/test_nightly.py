"""Check all tiers by one command: declared metric names, null for unmeasured ones, and isolated failures."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, select

from tests.support.command_line import CommandLine, run_here
from tests.support.evaluations import make_passages, question
from tests.support.sources import store_source
from yarus.db.tables import evaluation
from yarus.flows.preflight.night_plan import plan_night
from yarus.metrics.table import METRICS, metrics_for_tier
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.guidance import advise_next_step
from yarus.tasks.evaluation.queries import format_conditions, match_condition

Night = dict[str, dict[str, Any]]
# With the stand-ins, which call nothing and return no probabilities, and with one answer per question.
NOT_MEASURED = {
    "tier2": {"avg_perplexity", "response_exact_match_rate", "response_semantic_consistency"},
    "judge": {"avg_latency_ms", "bias_language"},
    "judge_pipeline": {"avg_latency_ms"},
}
RETRIED = """
import asyncio, json
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow_async
from prefect.states import AwaitingRetry
from sqlalchemy import delete, select
from yarus.db.tables import nightly_verdict
from yarus.flows.nightly import nightly
from yarus.tasks.config.connections import database
from yarus.tasks.config.flow_parameters import NightlyParameters

async def retried():
    given = NightlyParameters(tiers=["tier0"], limit=20)
    state = await nightly(given, return_state=True)
    name = (await state.aresult())["evaluations"][0]["evaluation_id"]
    with database().begin() as connection:  # as if it had been killed before
        assert connection.execute(delete(nightly_verdict).where(nightly_verdict.c.evaluation_id == name)).rowcount == 1
    async with get_client() as client:
        await client.set_flow_run_state(state.state_details.flow_run_id, AwaitingRetry(), force=True)
        run = await client.read_flow_run(state.state_details.flow_run_id)
    state = await run_flow_async(nightly, flow_run=run, parameters={"parameters": given}, return_type="state")
    again = (await state.aresult())["evaluations"][0]["evaluation_id"]
    with database().connect() as connection:
        kept = select(nightly_verdict.c.verdict).where(nightly_verdict.c.evaluation_id == name)
        verdict = connection.scalar(kept)
    try:
        await nightly(NightlyParameters(tiers=["tier0"], limit=20, anchor="tier3-nothing"))
    except Exception as error:
        refused = str(error)
    print(json.dumps([name, again, verdict, refused]))

asyncio.run(retried())
"""


def test_every_tier_ran_in_order(night: Night) -> None:
    assert list(night) == list(TIERS)
    assert {summary["state"] for summary in night.values()} == {"completed"}


@pytest.mark.parametrize("tier", TIERS)
def test_metrics_have_declared_names(night: Night, tier: Any) -> None:
    measured = ("", "dialogs")  # the sample has dialogs
    assert set(night[tier]["metrics"]) == {metric.name for metric in metrics_for_tier(tier) if metric.asked in measured}


def test_night_parameters_reach_tiers() -> None:
    parameters = NightlyParameters(source="sample", claims=True, nuggets=True, citations=True)
    accepted = {
        tier: {name for name in ("claims", "nuggets", "citations") if getattr(parameters.of(tier), name, False)}
        for tier in TIERS
    }
    names_by_tier = {tier: names for tier, names in accepted.items() if names}
    assert names_by_tier == {"tier2": {"claims", "nuggets"}, "tier3": {"claims", "nuggets", "citations"}}


@pytest.mark.parametrize("tier", TIERS)
def test_unmeasured_metrics_are_null_with_reason(night: Night, tier: str) -> None:
    metrics = night[tier]["metrics"]
    assert {name for name, metric in metrics.items() if metric["value"] is None} == NOT_MEASURED.get(tier, set())
    for name, metric in metrics.items():
        declared = METRICS[name]
        if metric["value"] is None:
            assert metric["n_scored"] == 0, name
            assert metric["reason"].startswith("undefined: "), name
        else:
            assert metric["n_scored"] > 0, name
            assert declared.low <= metric["value"] <= declared.high, name
        assert metric["n_scored"] <= metric["n_total"], name


def test_intervals_contain_values(night: Night) -> None:
    for summary in night.values():
        for name, metric in summary["metrics"].items():
            if metric["ci_low"] is not None:
                is_open_above = metric["ci_high"] is None  # with few cases, the 95th percentile has no upper bound
                assert not is_open_above or name.endswith("_p95"), name
                assert metric["ci_low"] <= metric["value"] <= (math.inf if is_open_above else metric["ci_high"]), name


@pytest.mark.slow("prefect: a night of its own")
def test_failed_tier_does_not_stop_others(at_home: Path, engine: Engine, yarus: CommandLine) -> None:
    source = store_source(engine, "without_nuggets", [question(i) for i in range(5)], make_passages(10))
    words = ("--source", source, "--set", "nuggets=true", "--set", "tiers=tier2,tier1", "--json")
    ran = yarus("run", "nightly", *words, ok=False)
    document = ran.json
    failed, completed = document["evaluations"]
    assert ran.code == 1
    assert document["state"] == "failed"
    assert (failed["tier"], failed["state"], "dataset nuggets" in failed["error"]) == ("tier2", "failed", True)
    assert (completed["tier"], completed["state"]) == ("tier1", "completed")


def test_nightly_skips_unmeasurable_tiers(at_home: Path, engine: Engine, yarus: CommandLine) -> None:
    """Skip tiers without cases and complete; start a tier that an earlier night has measured."""
    pages = [{"id": f"c{i}", "confluence_url": f"https://a/{i}", "text": f"Правило {i}."} for i in range(3)]
    labelled = [{"question": f"Что велит правило {i}?", "relevant_urls": [f"https://a/{i}"]} for i in range(3)]
    source = store_source(engine, "skipping", labelled, pages)
    out, err, _ = yarus("run", "nightly", "--source", source, "--set", "tiers=tier0,tier1,tier3", "--json")
    night = json.loads(out)
    assert (night["state"], [summary["tier"] for summary in night["evaluations"]]) == ("completed", ["tier1"])
    skipped = {tier["tier"]: tier["missing"] for tier in night["skipped"]}
    assert skipped == {"tier0": "one passage per page", "tier3": "references"}
    assert [line for line in err.splitlines() if "tier3" in line and "эталон" in line]
    stray = [row | {"relevant_urls": ["https://b"]} for row in labelled]
    plan = plan_night(NightlyParameters(source=store_source(engine, source, stray, pages)))
    assert plan.begun == ["tier1"]  # it was measured before, so the loss of its labels must be visible


def test_nightly_refuses_source_without_data(at_home: Path, engine: Engine) -> None:
    store_source(engine, "nothing_at_all", [{"question": "Где столовая?"}])
    for more in ((), ("--dry-run",)):
        refused = run_here("run", "nightly", "--source", "nothing_at_all", *more)
        assert refused.code == 2
        assert "измерять нечего" in refused.err and "yarus load table" in refused.err


@pytest.mark.slow("prefect: a night that is retried as a server does it")
def test_retried_night_judges_completed_tiers(
    at_home: Path, engine: Engine, yarus: CommandLine, prefect_server: dict[str, str]
) -> None:
    out, err, code = yarus.fork(env=prefect_server, script=RETRIED).ran()
    assert code == 0, err
    name, again, verdict, refused = json.loads(out)
    assert (again, verdict) == (name, "good")
    assert "--anchor tier3-nothing: no evaluation" in refused
    with engine.connect() as connection:
        newest = select(evaluation.c.id).where(evaluation.c.tier == "tier0").order_by(evaluation.c.started_at.desc())
        assert connection.scalar(newest) == name  # with that anchor no tier was started


def test_advised_conditions_select_cases(night: Night) -> None:
    """Check that the condition printed with each advice selects cases."""
    advised = {}
    for tier, summary in night.items():
        advice, condition = advise_next_step(summary)  # type: ignore[arg-type]
        assert all(advice.values())
        if condition:
            advised[tier] = len(select_rows(summary["parquet"], format_conditions(condition)))
    assert "tier1" in advised and all(advised.values())
    metrics = night["tier1"]["metrics"]
    not_first = (metrics["hit_rate@10"]["value"] - metrics["hit_rate@1"]["value"]) * metrics["hit_rate@1"]["n_scored"]
    assert advised["tier1"] == round(not_first), "the sentence and the command are about the same cases"
    doubtful_counts = {tier: summary["doubtful"] for tier, summary in night.items() if "doubtful" in summary}
    assert set(doubtful_counts) == {tier for tier, declared in TIERS.items() if declared.doubtful}
    for tier, n in doubtful_counts.items():
        assert len(select_rows(night[tier]["parquet"], format_conditions(TIERS[tier].doubtful))) == n


def select_rows(parquet: str, conditions: list[str]) -> Any:
    cases = pq.ParquetFile(parquet).read()
    for condition in conditions:
        cases = cases.filter(match_condition(cases, condition))
    return cases
