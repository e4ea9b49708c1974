"""What a run from the command line waits for at its end."""

import asyncio
import logging
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from flows.cli.runner import until_recorded

PAGE = 200
"""Task runs that a Prefect server gives at once."""


async def flow_runs(api: str, names: list[list[str]], state: str = "COMPLETED") -> list[str]:
    """Flow runs with task runs of those names, in their order, as the server has them after evaluations; their ids."""
    async with httpx.AsyncClient(base_url=api, timeout=60) as client:

        async def made(path: str, **body: Any) -> str:
            return str((await client.post(path, json=body)).raise_for_status().json()["id"])

        flow_id = await made("/flows/", name="of_test_ad_hoc")
        runs = [await made("/flow_runs/", flow_id=flow_id, state={"type": "COMPLETED"}) for _ in names]
        for run, of_run in zip(runs, names, strict=True):
            for number, name in enumerate(of_run):
                key = {"flow_run_id": run, "task_key": name, "dynamic_key": str(number)}
                key["id"] = str(UUID(int=uuid4().int >> (name == "finish") * 32))  # on the last page: greatest id first
                await made("/task_runs/", **key, name=name, state={"type": state})
    return runs


def waited(api: str, runs: list[str], caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is said after the wait for those flow runs."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: api}), caplog.at_level(logging.WARNING, "yarus"):
        asyncio.run(until_recorded(runs))
    return [record.getMessage() for record in caplog.records if record.name == "yarus"]


def test_nothing_is_waited_for_after_more_task_runs_than_the_server_gives_at_once(
    prefect_server: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    api = prefect_server["PREFECT_API_URL"]
    runs = asyncio.run(flow_runs(api, [["finish"], [*["evaluate_batch"] * PAGE, "finish"]]))
    assert waited(api, runs, caplog) == []


@pytest.mark.parametrize(("name", "state"), [("evaluate_batch", "COMPLETED"), ("finish", "RUNNING")])
def test_what_is_not_recorded_is_said(
    prefect_server: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    state: str,
) -> None:
    monkeypatch.setattr("flows.cli.runner.RECORDING_TRIES", 2)
    api = prefect_server["PREFECT_API_URL"]
    (said,) = waited(api, asyncio.run(flow_runs(api, [[name]], state)), caplog)
    assert "has not recorded all task runs" in said
