"""The deployments that `prefect.yaml` declares, made known to a Prefect server."""

import os
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from prefect import Flow
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyOptions
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectAlreadyExists
from prefect.flows import load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from prefect.utilities.templating import apply_values
from prefect.workers.process import ProcessWorker

FILE = Path(__file__).with_name("prefect.yaml")
Declared = dict[str, Any]


def declared() -> list[Declared]:
    """The deployments of the file, with the variables of the environment put in."""
    found = yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]
    deployments: list[Declared] = apply_values(found, dict(os.environ))
    return deployments


def flow_of(deployment: Declared) -> Flow[..., Any]:
    """The flow of a deployment.

    Raises:
        whatever its module raises on import: a flow that cannot run is not deployed.
    """
    return load_flow_from_entrypoint(deployment["entrypoint"], use_placeholder_flow=False)


async def register(client: PrefectClient, deployments: list[Declared], *, scheduled: bool) -> None:
    """Creates the work pools and the deployments, or brings those that are there up to date.

    Args:
        client: of the server.
        deployments: as the file declares them.
        scheduled: whether their schedules are active.
    """
    for pool in {deployment["work_pool"]["name"] for deployment in deployments}:
        try:
            template = ProcessWorker.get_default_base_job_template()
            await client.create_work_pool(WorkPoolCreate(name=pool, type="process", base_job_template=template))
        except ObjectAlreadyExists:
            pass  # with the settings that its owner has given it
    for deployment in deployments:
        await _register(client, deployment, scheduled=scheduled)


async def _register(client: PrefectClient, deployment: Declared, *, scheduled: bool) -> None:
    flow = flow_of(deployment)
    limit = deployment.get("concurrency_limit", {})
    strategy = limit.get("collision_strategy")
    # Without this Prefect takes a parameter that there is none of, and the run crashes.
    schema = parameter_schema(flow).model_dump_for_openapi() | {"additionalProperties": False}
    await client.create_deployment(
        flow_id=await client.create_flow_from_name(flow.name),
        name=deployment["name"],
        version=deployment["version"],
        description=deployment["description"],
        tags=deployment["tags"],
        entrypoint=deployment["entrypoint"],
        parameters=deployment["parameters"],
        parameter_openapi_schema=schema,
        enforce_parameter_schema=True,
        schedules=[_schedule(given, scheduled=scheduled) for given in deployment.get("schedules", [])],
        concurrency_limit=limit.get("limit"),
        concurrency_options=ConcurrencyOptions(collision_strategy=strategy) if strategy else None,
        work_pool_name=deployment["work_pool"]["name"],
        job_variables=deployment["work_pool"].get("job_variables", {}),
        pull_steps=[],
    )


def _schedule(given: Declared, *, scheduled: bool) -> DeploymentScheduleCreate:
    schedule = CronSchedule(cron=given["cron"], timezone=given["timezone"])
    return DeploymentScheduleCreate(schedule=schedule, active=scheduled and given["active"])
