"""All tiers by one command: every metric under its name, none 0 or 1 for want of measurement, one failure alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from metrics.table import METRICS, metrics_of
from tasks.parameters import TIERS
from tests.conftest import CommandLine
from tests.judged import load, question

Night = dict[str, dict[str, Any]]
# Of the stand-ins, which call nothing and return no probabilities, and with one answer a question.
NOT_MEASURED = {
    "tier2": {"avg_perplexity", "response_exact_match_rate", "response_semantic_consistency"},
    "judge": {"avg_latency_ms"},
    "judge_pipeline": {"avg_latency_ms"},
}
SOME_TIERS = """
import asyncio, json, sys
from flows.nightly import nightly
from tasks.parameters import Nightly
state = asyncio.run(nightly(Nightly(source=sys.argv[1], tiers=sys.argv[2:]), return_state=True))
print(json.dumps(state.result(raise_on_failure=False)))
"""


def test_every_tier_ran_in_order(night: Night) -> None:
    assert list(night) == list(TIERS)
    assert {summary["state"] for summary in night.values()} == {"completed"}


@pytest.mark.parametrize("tier", TIERS)
def test_every_metric_stands_under_its_name(night: Night, tier: Any) -> None:
    assert set(night[tier]["metrics"]) == {metric.name for metric in metrics_of(tier)}


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
                assert metric["ci_low"] <= metric["value"] <= metric["ci_high"], name


def test_a_tier_that_fails_does_not_stop_the_others(
    at_home: Path, yarus: CommandLine, prefect_server: dict[str, str], tmp_path: Path
) -> None:
    source = load(tmp_path, "timeless", [question(i, created_at=None) for i in range(5)])
    process = yarus.start(source, "ux", "tier1", env=prefect_server, script=SOME_TIERS)
    document = json.loads(process.communicate(timeout=240)[0])
    failed, completed = document["evaluations"]
    assert document["state"] == "failed"
    assert (failed["tier"], failed["state"], "created_at" in failed["error"]) == ("ux", "failed", True)
    assert (completed["tier"], completed["state"]) == ("tier1", "completed")
