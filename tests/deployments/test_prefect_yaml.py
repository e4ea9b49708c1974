"""Every deployment names a flow that can be imported and parameters that it takes."""

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

from yarus.deployments.registration import declared, flow_of
from yarus.tasks.config.flow_parameters import FLOWS

FILE = Path(__file__).parents[2] / "deployments" / "prefect.yaml"
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda deployment: deployment["name"])
def test_the_entrypoint_is_a_flow_that_takes_the_parameters(deployment: dict[str, Any]) -> None:
    module, _, name = deployment["entrypoint"].partition(":")
    flow = flow_of(deployment)
    assert flow is getattr(import_module(module), name)
    assert isinstance(flow, Flow)
    assert flow.name == deployment["name"]
    FLOWS[name].model_validate(deployment["parameters"]["parameters"])


def test_a_flow_that_does_not_import_is_not_deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefect itself would put another flow in its place, and the run would fail at night."""
    broken = "from prefect import flow\nimport no_such_module\n\n@flow\ndef broken() -> None: ...\n"
    (tmp_path / "broken_flow.py").write_text(broken)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception, match="no_such_module"):
        flow_of({"entrypoint": "broken_flow:broken"})


def test_what_the_environment_says_is_put_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_VERSION", "0.1.0+abc")
    monkeypatch.setenv("PWD", str(tmp_path))
    for deployment in declared():
        assert deployment["version"] == "0.1.0+abc"
        assert deployment["work_pool"]["job_variables"]["working_dir"] == str(tmp_path)


def test_the_night_keeps_its_hour_when_clocks_change() -> None:
    [nightly] = [deployment for deployment in DEPLOYMENTS if deployment["name"] == "nightly"]
    [given] = nightly["schedules"]
    schedule = CronSchedule(cron=given["cron"], timezone="Europe/Berlin")  # Moscow's clocks do not change any more
    for change in (datetime(2027, 3, 26, tzinfo=UTC), datetime(2027, 10, 29, tzinfo=UTC)):
        dates = asyncio.run(schedule.get_dates(n=6, start=change))
        local = [date.astimezone(ZoneInfo("Europe/Berlin")) for date in dates]
        assert [date.hour for date in local] == [3] * 6
        assert [(later.date() - earlier.date()).days for earlier, later in pairwise(local)] == [1] * 5
        assert len({date.utcoffset() for date in local}) == 2


def test_every_flow_is_deployed_once() -> None:
    assert sorted(deployment["name"] for deployment in DEPLOYMENTS) == sorted(FLOWS)


def test_two_nights_cannot_overlap() -> None:
    [nightly] = [deployment for deployment in DEPLOYMENTS if deployment["name"] == "nightly"]
    assert nightly["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    assert nightly["schedules"][0]["timezone"]
