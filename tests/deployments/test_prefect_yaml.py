"""Every deployment names a flow that can be imported and parameters that it takes."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect import Flow

from tasks.parameters import FLOWS

FILE = Path(__file__).parents[2] / "deployments" / "prefect.yaml"
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda deployment: deployment["name"])
def test_the_entrypoint_is_a_flow_that_takes_the_parameters(deployment: dict[str, Any]) -> None:
    module, _, name = deployment["entrypoint"].partition(":")
    flow = getattr(import_module(module), name)
    assert isinstance(flow, Flow)
    assert flow.name == deployment["name"]
    FLOWS[name].model_validate(deployment["parameters"]["parameters"])


def test_every_flow_is_deployed_once() -> None:
    assert sorted(deployment["name"] for deployment in DEPLOYMENTS) == sorted(FLOWS)


def test_two_nights_cannot_overlap() -> None:
    [nightly] = [deployment for deployment in DEPLOYMENTS if deployment["name"] == "nightly"]
    assert nightly["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    assert nightly["schedules"][0]["timezone"]
