"""What a run may say about how it is started: nothing, whoever made it."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import PrefectHTTPStatusError
from prefect.workers.process import ProcessWorker

from tests.support.prefect_servers import Serve
from yarus.deployments.registration import declared, job_template, register
from yarus.deployments.worker import Job

TAKEN = {"command": "touch marker", "env": {"PYTHONPATH": "/tmp"}, "working_dir": "/tmp", "name": "x"}  # noqa: S108


@pytest.fixture(scope="module")
def refused(prefect_server: dict[str, str]) -> dict[str, str]:
    """What the server says to runs that bring something along, in a pool that an earlier Yarus has made."""

    async def asked() -> dict[str, str]:
        deployments = [found for found in declared() if found["name"] == "tier0"]
        for deployment in deployments:
            deployment["work_pool"] = deployment["work_pool"] | {"name": "of_test_declared"}
            deployment["name"] = "of_test_declared"
        said = {}
        async with PrefectClient(prefect_server["PREFECT_API_URL"]) as client:
            template = ProcessWorker.get_default_base_job_template()
            earlier = WorkPoolCreate(name="of_test_declared", type="process", base_job_template=template)
            await client.create_work_pool(earlier.model_copy(update={"concurrency_limit": 7}))
            for _ in range(2):  # as often as one likes
                await register(client, deployments, {}, scheduled=False)
            pool = await client.read_work_pool("of_test_declared")
            assert (pool.concurrency_limit, pool.base_job_template["variables"]["properties"]) == (7, {})
            deployment = await client.read_deployment_by_name("tier0/of_test_declared")
            assert deployment.job_variables == {}
            await client.create_flow_run_from_deployment(deployment.id)
            for name, value in TAKEN.items():
                try:
                    await client.create_flow_run_from_deployment(deployment.id, job_variables={name: value})
                except PrefectHTTPStatusError as error:
                    said[name] = error.response.text
        return said

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_VERSION", "0.1.0")
        patch.setenv("PWD", str(Path.cwd()))
        return asyncio.run(asked())


def test_register_renames_former_entrypoints(prefect_server: dict[str, str], at: Path) -> None:
    """Of deployments that people have made of our flows, which keep all else; those of others are left alone."""
    [declaration] = [found for found in declared() if found["name"] == "tier0"]
    declaration |= {"name": "of_test_renames", "work_pool": declaration["work_pool"] | {"name": "of_test_renames"}}
    made = {"mine": "flows.tier0:tier0", "others": "flows.bot:ask"}

    async def entrypoints() -> dict[str, str | None]:
        async with PrefectClient(prefect_server["PREFECT_API_URL"]) as client:
            await client.create_work_pool(WorkPoolCreate(name="of_test_renames", type="process"))
            flow_id = await client.create_flow_from_name("of_test_renames")
            ids = {}
            for name, entrypoint in made.items():
                ids[name] = await client.create_deployment(
                    flow_id,
                    name,
                    entrypoint=entrypoint,
                    work_pool_name="of_test_renames",
                    tags=["kept"],
                    parameters={"parameters": {"limit": 3}},
                )
            assert await register(client, [declaration], {}, scheduled=False) == ["mine"]
            assert await register(client, [declaration], {}, scheduled=False) == []
            found = {name: await client.read_deployment(number) for name, number in ids.items()}
            for deployment in found.values():
                assert (deployment.tags, deployment.parameters) == (["kept"], {"parameters": {"limit": 3}})
            return {name: deployment.entrypoint for name, deployment in found.items()}

    assert asyncio.run(entrypoints()) == {"mine": "yarus.flows.tier0:tier0", "others": "flows.bot:ask"}


@pytest.mark.slow("prefect: a server that is started twice")
def test_serve_runs_deployments_of_an_earlier_version(own_home: Path) -> None:
    """Ours, and one that somebody has made, both with the former entrypoint; the latter is named."""
    before = Serve(own_home, "--no-schedule")
    try:
        before.said("Ctrl-C")
        ours = before.deployment("tier0")
        former = {"entrypoint": "flows.tier0:tier0"}
        before.client.patch(f"/deployments/{ours['id']}", json=former).raise_for_status()
        theirs = {"name": "mine", "flow_id": ours["flow_id"], "work_pool_name": "yarus", "tags": ["kept"]}
        mine = before.post("/deployments/", theirs | former | {"parameters": {"parameters": {"limit": 20}}})["id"]
    finally:
        before.close()
        before.stop()
    after = Serve(own_home, "--no-schedule")
    try:
        assert ["mine" in line for line in after.said("Ctrl-C")].count(True) == 1
        runs = [after.trigger("tier0", limit=20), after.post(f"/deployments/{mine}/create_flow_run")["id"]]
        assert [after.ended(run)["state_name"] for run in runs] == ["Completed", "Completed"]
        assert after.client.get(f"/deployments/{mine}").json()["tags"] == ["kept"]
    finally:
        after.close()
        after.stop()


@pytest.mark.slow("prefect: a worker of its own")
@pytest.mark.parametrize("name", TAKEN)
def test_a_run_that_brings_a_program_along_is_refused(refused: dict[str, str], name: str) -> None:
    assert name in refused[name]
    assert "Additional properties are not allowed" in refused[name]


def prepared(template: dict[str, Any], values: dict[str, Any], **changed: Any) -> Job:
    """How our worker would start a run of tier 0."""
    deployment = SimpleNamespace(
        id=uuid4(), name="tier0", entrypoint="yarus.flows.tier0:tier0", pull_steps=[], updated=None
    )
    job = asyncio.run(Job.from_template_and_values(template, values, client=object()))
    flow_run = FlowRun(id=uuid4(), flow_id=uuid4(), name="of_test_declared")
    job.prepare_for_flow_run(flow_run, SimpleNamespace(**vars(deployment) | changed))
    return job


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setenv("GIT_VERSION", "0.1.0")
    return tmp_path


@pytest.mark.parametrize("template", [ProcessWorker.get_default_base_job_template(), job_template("/srv/yarus")])
def test_our_worker_takes_no_program_whatever_the_pool_says(at: Path, template: dict[str, Any]) -> None:
    job = prepared(template, TAKEN)
    assert job.command is not None
    assert job.command.endswith("-m prefect.engine")
    assert job.env.get("PYTHONPATH") != TAKEN["env"]["PYTHONPATH"]  # type: ignore[index]
    assert job.env["PREFECT_LOGGING_EXTRA_LOGGERS"] == "yarus"
    assert job.working_dir == at


@pytest.mark.parametrize(
    "changed",
    [
        {"entrypoint": "os:system"},
        {"entrypoint": None},
        {"pull_steps": [{"prefect.deployments.steps.run_shell_script": {"script": "touch marker"}}]},
    ],
)
def test_our_worker_runs_only_what_prefect_yaml_declares(at: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is not a deployment in prefect\.yaml"):
        prepared(job_template(str(at)), {}, **changed)
