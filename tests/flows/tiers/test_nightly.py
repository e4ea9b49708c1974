"""All tiers by one command: every metric under its name, none 0 or 1 for want of measurement, one failure alone."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, select

from tests.support.command_line import CommandLine, here
from tests.support.evaluations import passages, question
from tests.support.sources import store
from yarus.db.tables import evaluation
from yarus.flows.before.night_plan import plan_night
from yarus.metrics.table import METRICS, metrics_of
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.guidance import next_step
from yarus.tasks.evaluation.queries import matching, where

Night = dict[str, dict[str, Any]]
# Of the stand-ins, which call nothing and return no probabilities, and with one answer a question.
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
from yarus.tasks.config.flow_parameters import Nightly

async def retried():
    given = Nightly(tiers=["tier0"], limit=20)
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
        await nightly(Nightly(tiers=["tier0"], limit=20, anchor="tier3-nothing"))
    except Exception as error:
        refused = str(error)
    print(json.dumps([name, again, verdict, refused]))

asyncio.run(retried())
"""


def test_every_tier_ran_in_order(night: Night) -> None:
    assert list(night) == list(TIERS)
    assert {summary["state"] for summary in night.values()} == {"completed"}


@pytest.mark.parametrize("tier", TIERS)
def test_every_metric_stands_under_its_name(night: Night, tier: Any) -> None:
    measured = ("", "dialogs")  # the sample has some
    assert set(night[tier]["metrics"]) == {metric.name for metric in metrics_of(tier) if metric.asked in measured}


def test_what_a_night_asks_for_reaches_the_tiers_that_take_it() -> None:
    asking = Nightly(source="sample", claims=True, nuggets=True, citations=True)
    taken = {
        tier: {name for name in ("claims", "nuggets", "citations") if getattr(asking.of(tier), name, False)}
        for tier in TIERS
    }
    asked = {tier: names for tier, names in taken.items() if names}
    assert asked == {"tier2": {"claims", "nuggets"}, "tier3": {"claims", "nuggets", "citations"}}


@pytest.mark.parametrize("tier", TIERS)
def test_what_was_not_measured_is_null_with_a_reason(night: Night, tier: str) -> None:
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


def test_an_interval_holds_its_value(night: Night) -> None:
    for summary in night.values():
        for name, metric in summary["metrics"].items():
            if metric["ci_low"] is not None:
                open_above = metric["ci_high"] is None  # of so few cases none is surely above the 95th percentile
                assert not open_above or name.endswith("_p95"), name
                assert metric["ci_low"] <= metric["value"] <= (math.inf if open_above else metric["ci_high"]), name


@pytest.mark.slow("prefect: a night of its own")
def test_a_tier_that_fails_does_not_stop_the_others(at_home: Path, engine: Engine, yarus: CommandLine) -> None:
    source = store(engine, "without_nuggets", [question(i) for i in range(5)], passages(10))
    words = ("--source", source, "--set", "nuggets=true", "--set", "tiers=tier2,tier1", "--json")
    ran = yarus("run", "nightly", *words, ok=False)
    document = ran.json
    failed, completed = document["evaluations"]
    assert ran.code == 1
    assert document["state"] == "failed"
    assert (failed["tier"], failed["state"], "dataset nuggets" in failed["error"]) == ("tier2", "failed", True)
    assert (completed["tier"], completed["state"]) == ("tier1", "completed")


def test_nightly_skips_what_a_source_cannot_measure(at_home: Path, engine: Engine, yarus: CommandLine) -> None:
    """A tier without cases is not begun and does not fail the night; of an earlier night's tier it is begun."""
    pages = [{"id": f"c{i}", "confluence_url": f"https://a/{i}", "text": f"Правило {i}."} for i in range(3)]
    labelled = [{"question": f"Что велит правило {i}?", "relevant_urls": [f"https://a/{i}"]} for i in range(3)]
    source = store(engine, "skipping", labelled, pages)
    out, err, _ = yarus("run", "nightly", "--source", source, "--set", "tiers=tier0,tier1,tier3", "--json")
    night = json.loads(out)
    assert (night["state"], [of["tier"] for of in night["evaluations"]]) == ("completed", ["tier1"])
    skipped = {tier["tier"]: tier["missing"] for tier in night["skipped"]}
    assert skipped == {"tier0": "one passage per page", "tier3": "references"}
    assert [line for line in err.splitlines() if "tier3" in line and "эталон" in line]
    stray = [row | {"relevant_urls": ["https://b"]} for row in labelled]
    plan = plan_night(Nightly(source=store(engine, source, stray, pages)))
    assert plan.begun == ["tier1"]  # which was measured: that its labels are lost is to be seen


def test_nightly_refuses_a_source_without_anything_to_measure(at_home: Path, engine: Engine) -> None:
    store(engine, "nothing_at_all", [{"question": "Где столовая?"}])
    for more in ((), ("--dry-run",)):
        refused = here("run", "nightly", "--source", "nothing_at_all", *more)
        assert refused.code == 2
        assert "измерять нечего" in refused.err and "yarus load table" in refused.err


@pytest.mark.slow("prefect: a night that is retried as a server does it")
def test_a_retried_night_judges_what_was_completed_and_an_anchor_is_looked_for_first(
    at_home: Path, engine: Engine, yarus: CommandLine, prefect_server: dict[str, str]
) -> None:
    out, err, code = yarus.fork(env=prefect_server, script=RETRIED).ran()
    assert code == 0, err
    name, again, verdict, refused = json.loads(out)
    assert (again, verdict) == (name, "good")
    assert "--anchor tier3-nothing: no evaluation" in refused
    with engine.connect() as connection:
        newest = select(evaluation.c.id).where(evaluation.c.tier == "tier0").order_by(evaluation.c.started_at.desc())
        assert connection.scalar(newest) == name  # with that anchor no tier was begun


def test_no_advice_opens_an_empty_list(night: Night) -> None:
    """What each tier would have read next is there, and is found by the condition that the terminal prints."""
    advised = {}
    for tier, found in night.items():
        advice, condition = next_step(found)  # type: ignore[arg-type]
        assert all(advice.values())
        if condition:
            advised[tier] = len(matching_rows(found["parquet"], where(condition)))
    assert "tier1" in advised and all(advised.values())
    kept = {tier: found["doubtful"] for tier, found in night.items() if "doubtful" in found}
    assert set(kept) == {tier for tier, declared in TIERS.items() if declared.doubtful}
    for tier, n in kept.items():
        assert len(matching_rows(night[tier]["parquet"], where(TIERS[tier].doubtful))) == n


def matching_rows(parquet: str, condition: str) -> Any:
    cases = pq.ParquetFile(parquet).read()
    return cases.filter(matching(cases, condition))
