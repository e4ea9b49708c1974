"""Register the deployments of `prefect.yaml` with a Prefect server."""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from prefect import Flow
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate, DeploymentUpdate, WorkPoolCreate, WorkPoolUpdate
from prefect.client.schemas.filters import WorkPoolFilter, WorkPoolFilterName
from prefect.client.schemas.objects import ConcurrencyOptions
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.flows import load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from prefect.utilities.templating import apply_values

from yarus.db.tables import JsonObject
from yarus.deployments.form_choices import FormChoices, add_form_choices
from yarus.tasks.config.forms import translate_schema
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.tiers import TIERS

FILE = Path(__file__).with_name("prefect.yaml")
Declaration = JsonObject
"""A deployment as prefect.yaml declares it."""


def load_deployments() -> list[Declaration]:
    """Return the deployments of the file, with environment variables filled in."""
    document = yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]
    deployments: list[Declaration] = apply_values(document, dict(os.environ))
    return deployments


def load_flow(deployment: Declaration) -> Flow[..., Any]:
    """Return the flow of a deployment.

    Raises:
        whatever its module raises on import: a flow that cannot run is not deployed.
    """
    return load_flow_from_entrypoint(deployment["entrypoint"], use_placeholder_flow=False)


async def register_deployments(
    client: PrefectClient, deployments: list[Declaration], choices: FormChoices, *, scheduled: bool
) -> list[str]:
    """Create or update the work pools and the deployments.

    Args:
        client: the client of the server.
        deployments: the deployments of the file.
        choices: the choices in their forms.
        scheduled: whether their schedules are active.

    Returns:
        Names of other deployments of our flows whose former entrypoints, such as `flows.tier0:tier0`, were updated.
    """
    pools = {deployment["work_pool"]["name"]: deployment["work_pool"]["job_variables"] for deployment in deployments}
    for pool, variables in pools.items():
        template = job_template(variables["working_dir"])
        try:
            await client.create_work_pool(WorkPoolCreate(name=pool, type="process", base_job_template=template))
        except ObjectAlreadyExists:  # its other settings belong to its owner
            await client.update_work_pool(pool, WorkPoolUpdate(base_job_template=template))
    for deployment in deployments:
        await _register(client, deployment, choices, scheduled=scheduled)
    return await _rename_entrypoints(client, pools.keys(), {deployment["entrypoint"] for deployment in deployments})


async def _rename_entrypoints(client: PrefectClient, pools: Collection[str], entrypoints: Collection[str]) -> list[str]:
    """Update deployments of our flows that were made before the package was called `yarus.flows`."""
    in_pools = WorkPoolFilter(name=WorkPoolFilterName(any_=[*pools]))
    renamed = []
    offset = 0
    while page := await client.read_deployments(work_pool_filter=in_pools, offset=offset):
        offset += len(page)
        for deployment in page:
            entrypoint = f"yarus.{deployment.entrypoint}"
            if entrypoint in entrypoints:
                await client.update_deployment(deployment.id, DeploymentUpdate(entrypoint=entrypoint))
                renamed.append(deployment.name)
    return renamed


async def update_form_choices(client: PrefectClient, deployments: list[Declaration], choices: FormChoices) -> None:
    """Update the choices in the forms of registered deployments; deleted ones are skipped."""
    for deployment in deployments:
        update = DeploymentUpdate(parameter_openapi_schema=_parameter_schema(deployment, choices))
        with suppress(ObjectNotFound):
            registered = await client.read_deployment_by_name(f"{load_flow(deployment).name}/{deployment['name']}")
            await client.update_deployment(registered.id, update)


def job_template(working_dir: str) -> Declaration:
    """Return the job template of a pool: a run, or its creator, cannot change any of it.

    Prefect's own template takes a command, an environment and a folder from each run, which means any program. An `env`
    here would be merged with that of a run, so the worker sets the variables of our flows.
    """
    no_variables = {"type": "object", "properties": {}, "additionalProperties": False}
    return {"variables": no_variables, "job_configuration": {"working_dir": working_dir, "stream_output": True}}


async def _register(client: PrefectClient, deployment: Declaration, choices: FormChoices, *, scheduled: bool) -> None:
    flow = load_flow(deployment)
    limit = deployment.get("concurrency_limit", {})
    strategy = limit.get("collision_strategy")
    description, tag = _describe_deployment(deployment)
    await client.create_deployment(
        flow_id=await client.create_flow_from_name(flow.name),
        name=deployment["name"],
        version=deployment["version"],
        description=description,
        tags=[tag, *deployment["tags"]],  # the list of deployments shows tags and no descriptions
        entrypoint=deployment["entrypoint"],
        parameters=deployment["parameters"],
        parameter_openapi_schema=_parameter_schema(deployment, choices),
        enforce_parameter_schema=True,
        schedules=[_build_schedule(schedule, scheduled=scheduled) for schedule in deployment.get("schedules", [])],
        concurrency_limit=limit.get("limit"),
        concurrency_options=ConcurrencyOptions(collision_strategy=strategy) if strategy else None,
        work_pool_name=deployment["work_pool"]["name"],
        job_variables={},
        pull_steps=[],
    )


def _parameter_schema(deployment: Declaration, choices: FormChoices) -> Declaration:
    # Without this, Prefect accepts unknown parameters, and the run crashes.
    form = translate_schema(parameter_schema(load_flow(deployment)).model_dump_for_openapi(), get_settings().language)
    return add_form_choices(form | {"additionalProperties": False}, choices)


def _describe_deployment(deployment: Declaration) -> tuple[str, str]:
    """Return the description of a deployment and its tag, in the language of the settings."""
    name, language = deployment["entrypoint"].rpartition(":")[2], get_settings().language
    words = texts("deployments", language)
    if name in TIERS:
        tier = texts(f"tiers.{name}", language)
        return f"{tier['title']}. {tier['question']}", words.get(f"{name} tag", tier["short"])
    return words[name], words[f"{name} tag"]


def _build_schedule(declaration: Declaration, *, scheduled: bool) -> DeploymentScheduleCreate:
    schedule = CronSchedule(cron=declaration["cron"], timezone=declaration["timezone"])
    return DeploymentScheduleCreate(schedule=schedule, active=scheduled and declaration["active"])
