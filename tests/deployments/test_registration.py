"""Registration of deployments, and the refusal of changes by runs."""

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

from tests.support.prefect_servers import ServeProcess
from yarus.deployments.registration import job_template, load_deployments, register_deployments
from yarus.deployments.worker import FlowRunJob

TAKEN = {"command": "touch marker", "env": {"PYTHONPATH": "/tmp"}, "working_dir": "/tmp", "name": "x"}  # noqa: S108


@pytest.fixture(scope="module")
def refused(prefect_server: dict[str, str]) -> dict[str, str]:
    """Return the server's replies to runs with own settings, in a pool that an earlier Yarus has made."""

    async def request_runs() -> dict[str, str]:
        deployments = [declaration for declaration in load_deployments() if declaration["name"] == "tier0"]
        for deployment in deployments:
            deployment["work_pool"] = deployment["work_pool"] | {"name": "of_test_declared"}
            deployment["name"] = "of_test_declared"
        replies = {}
        async with PrefectClient(prefect_server["PREFECT_API_URL"]) as client:
            template = ProcessWorker.get_default_base_job_template()
            earlier = WorkPoolCreate(name="of_test_declared", type="process", base_job_template=template)
            await client.create_work_pool(earlier.model_copy(update={"concurrency_limit": 7}))
            for _ in range(2):  # it can be repeated
                await register_deployments(client, deployments, {}, scheduled=False)
            pool = await client.read_work_pool("of_test_declared")
            assert (pool.concurrency_limit, pool.base_job_template["variables"]["properties"]) == (7, {})
            deployment = await client.read_deployment_by_name("tier0/of_test_declared")
            assert deployment.job_variables == {}
            await client.create_flow_run_from_deployment(deployment.id)
            for name, value in TAKEN.items():
                try:
                    await client.create_flow_run_from_deployment(deployment.id, job_variables={name: value})
                except PrefectHTTPStatusError as error:
                    replies[name] = error.response.text
        return replies

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_VERSION", "0.1.0")
        patch.setenv("PWD", str(Path.cwd()))
        return asyncio.run(request_runs())


def test_register_renames_former_entrypoints(prefect_server: dict[str, str], working_folder: Path) -> None:
    """Register again over deployments that people have made of our flows, and of other flows."""
    [declaration] = [deployment for deployment in load_deployments() if deployment["name"] == "tier0"]
    declaration |= {"name": "of_test_renames", "work_pool": declaration["work_pool"] | {"name": "of_test_renames"}}
    old_entrypoints = {"mine": "flows.tier0:tier0", "others": "flows.bot:ask"}

    async def entrypoints() -> dict[str, str | None]:
        async with PrefectClient(prefect_server["PREFECT_API_URL"]) as client:
            await client.create_work_pool(WorkPoolCreate(name="of_test_renames", type="process"))
            flow_id = await client.create_flow_from_name("of_test_renames")
            ids = {}
            for name, entrypoint in old_entrypoints.items():
                ids[name] = await client.create_deployment(
                    flow_id,
                    name,
                    entrypoint=entrypoint,
                    work_pool_name="of_test_renames",
                    tags=["kept"],
                    parameters={"parameters": {"limit": 3}},
                )
            assert await register_deployments(client, [declaration], {}, scheduled=False) == ["mine"]
            assert await register_deployments(client, [declaration], {}, scheduled=False) == []
            deployments_by_name = {name: await client.read_deployment(number) for name, number in ids.items()}
            for deployment in deployments_by_name.values():
                assert (deployment.tags, deployment.parameters) == (["kept"], {"parameters": {"limit": 3}})
            return {name: deployment.entrypoint for name, deployment in deployments_by_name.items()}

    assert asyncio.run(entrypoints()) == {"mine": "yarus.flows.tier0:tier0", "others": "flows.bot:ask"}


@pytest.mark.slow("prefect: a server that is started twice")
def test_serve_runs_deployments_of_an_earlier_version(own_home: Path) -> None:
    """Serve our deployment and a custom one, both with the former entrypoint; the custom one is named."""
    before = ServeProcess(own_home, "--no-schedule")
    try:
        before.said("Ctrl-C")
        own_deployment = before.deployment("tier0")
        former = {"entrypoint": "flows.tier0:tier0"}
        before.client.patch(f"/deployments/{own_deployment['id']}", json=former).raise_for_status()
        custom = {"name": "mine", "flow_id": own_deployment["flow_id"], "work_pool_name": "yarus", "tags": ["kept"]}
        mine = before.post("/deployments/", custom | former | {"parameters": {"parameters": {"limit": 20}}})["id"]
    finally:
        before.close()
        before.stop()
    after = ServeProcess(own_home, "--no-schedule")
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
def test_run_with_job_variables_is_refused(refused: dict[str, str], name: str) -> None:
    assert name in refused[name]
    assert "Additional properties are not allowed" in refused[name]


def prepare_job(template: dict[str, Any], values: dict[str, Any], **changed: Any) -> FlowRunJob:
    """Return the job with which our worker would start a run of tier 0."""
    deployment = SimpleNamespace(
        id=uuid4(), name="tier0", entrypoint="yarus.flows.tier0:tier0", pull_steps=[], updated=None
    )
    job = asyncio.run(FlowRunJob.from_template_and_values(template, values, client=object()))
    flow_run = FlowRun(id=uuid4(), flow_id=uuid4(), name="of_test_declared")
    job.prepare_for_flow_run(flow_run, SimpleNamespace(**vars(deployment) | changed))
    return job


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setenv("GIT_VERSION", "0.1.0")
    return tmp_path


@pytest.mark.parametrize("template", [ProcessWorker.get_default_base_job_template(), job_template("/srv/yarus")])
def test_worker_ignores_programs_of_the_pool(working_folder: Path, template: dict[str, Any]) -> None:
    job = prepare_job(template, TAKEN)
    assert job.command is not None
    assert job.command.endswith("-m prefect.engine")
    assert job.env.get("PYTHONPATH") != TAKEN["env"]["PYTHONPATH"]  # type: ignore[index]
    assert job.env["PREFECT_LOGGING_EXTRA_LOGGERS"] == "yarus"
    assert job.working_dir == working_folder


@pytest.mark.parametrize(
    "changed",
    [
        {"entrypoint": "os:system"},
        {"entrypoint": None},
        {"pull_steps": [{"prefect.deployments.steps.run_shell_script": {"script": "touch marker"}}]},
    ],
)
def test_worker_runs_only_declared_deployments(working_folder: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is not a deployment in prefect\.yaml"):
        prepare_job(job_template(str(working_folder)), {}, **changed)
