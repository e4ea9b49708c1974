"""The deployments of prefect.yaml: flows that can be imported, and parameters that they accept."""

import asyncio
from datetime import UTC, datetime
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from prefect import Flow
from prefect.server.schemas.schedules import CronSchedule

from yarus.deployments.registration import load_deployments, load_flow
from yarus.tasks.config.flow_parameters import FLOWS

FILE = Path(__file__).parents[2] / "deployments" / "prefect.yaml"
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda deployment: deployment["name"])
def test_entrypoint_is_a_flow_with_these_parameters(deployment: dict[str, Any]) -> None:
    module, _, name = deployment["entrypoint"].partition(":")
    flow = load_flow(deployment)
    assert flow is getattr(import_module(module), name)
    assert isinstance(flow, Flow)
    assert flow.name == deployment["name"]
    FLOWS[name].model_validate(deployment["parameters"]["parameters"])


def test_load_flow_raises_when_import_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a broken flow: Prefect would replace it, and the run would fail at night."""
    broken = "from prefect import flow\nimport no_such_module\n\n@flow\ndef broken() -> None: ...\n"
    (tmp_path / "broken_flow.py").write_text(broken)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception, match="no_such_module"):
        load_flow({"entrypoint": "broken_flow:broken"})


def test_load_deployments_fills_in_environment_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_VERSION", "0.1.0+abc")
    monkeypatch.setenv("PWD", str(tmp_path))
    for deployment in load_deployments():
        assert deployment["version"] == "0.1.0+abc"
        assert deployment["work_pool"]["job_variables"]["working_dir"] == str(tmp_path)


def test_nightly_hour_stays_when_clocks_change() -> None:
    [nightly] = [deployment for deployment in DEPLOYMENTS if deployment["name"] == "nightly"]
    [declaration] = nightly["schedules"]
    # Moscow's clocks do not change any more.
    schedule = CronSchedule(cron=declaration["cron"], timezone="Europe/Berlin")
    for change in (datetime(2027, 3, 26, tzinfo=UTC), datetime(2027, 10, 29, tzinfo=UTC)):
        dates = asyncio.run(schedule.get_dates(n=6, start=change))
        local = [date.astimezone(ZoneInfo("Europe/Berlin")) for date in dates]
        assert [date.hour for date in local] == [3] * 6
        assert [(later.date() - earlier.date()).days for earlier, later in pairwise(local)] == [1] * 5
        assert len({date.utcoffset() for date in local}) == 2


def test_each_flow_has_one_deployment() -> None:
    assert sorted(deployment["name"] for deployment in DEPLOYMENTS) == sorted(FLOWS)


def test_nights_cannot_overlap() -> None:
    [nightly] = [deployment for deployment in DEPLOYMENTS if deployment["name"] == "nightly"]
    assert nightly["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    assert nightly["schedules"][0]["timezone"]
