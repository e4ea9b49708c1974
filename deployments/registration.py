"""The deployments that `prefect.yaml` declares, made known to a Prefect server."""

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

from yarus.db.tables import Json
from yarus.deployments.choices import Offered, with_choices
from yarus.tasks.config.forms import in_language
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.tiers import TIERS

FILE = Path(__file__).with_name("prefect.yaml")
Declared = Json
"""A deployment as prefect.yaml declares it."""


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


async def register(client: PrefectClient, deployments: list[Declared], found: Offered, *, scheduled: bool) -> list[str]:
    """Creates the work pools and the deployments, or brings those that are there up to date.

    Args:
        client: of the server.
        deployments: as the file declares them.
        found: what their forms offer.
        scheduled: whether their schedules are active.

    Returns:
        Names of other deployments of our flows whose former entrypoints, such as `flows.tier0:tier0`, were updated.
    """
    pools = {deployment["work_pool"]["name"]: deployment["work_pool"]["job_variables"] for deployment in deployments}
    for pool, variables in pools.items():
        template = job_template(variables["working_dir"])
        try:
            await client.create_work_pool(WorkPoolCreate(name=pool, type="process", base_job_template=template))
        except ObjectAlreadyExists:  # its other settings are its owner's
            await client.update_work_pool(pool, WorkPoolUpdate(base_job_template=template))
    for deployment in deployments:
        await _register(client, deployment, found, scheduled=scheduled)
    return await _rename_entrypoints(client, pools.keys(), {deployment["entrypoint"] for deployment in deployments})


async def _rename_entrypoints(client: PrefectClient, pools: Collection[str], entrypoints: Collection[str]) -> list[str]:
    """Update the deployments of our flows that were made before these were imported as `yarus.flows`."""
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


async def offer(client: PrefectClient, deployments: list[Declared], found: Offered) -> None:
    """Has the forms of registered deployments offer what exists now; one that was deleted meanwhile stays so."""
    for deployment in deployments:
        update = DeploymentUpdate(parameter_openapi_schema=_schema(deployment, found))
        with suppress(ObjectNotFound):
            known = await client.read_deployment_by_name(f"{flow_of(deployment).name}/{deployment['name']}")
            await client.update_deployment(known.id, update)


def job_template(working_dir: str) -> Declared:
    """What a pool's runs are started by: nothing that a run, or whoever makes one, has a say in.

    Prefect's own template takes a command, an environment and a folder from each run, which is to take a program.
    An `env` here would be merged with a run's: the variables that ours need, our worker puts in.
    """
    nothing = {"type": "object", "properties": {}, "additionalProperties": False}
    return {"variables": nothing, "job_configuration": {"working_dir": working_dir, "stream_output": True}}


async def _register(client: PrefectClient, deployment: Declared, found: Offered, *, scheduled: bool) -> None:
    flow = flow_of(deployment)
    limit = deployment.get("concurrency_limit", {})
    strategy = limit.get("collision_strategy")
    description, tag = _told(deployment)
    await client.create_deployment(
        flow_id=await client.create_flow_from_name(flow.name),
        name=deployment["name"],
        version=deployment["version"],
        description=description,
        tags=[tag, *deployment["tags"]],  # the list of deployments shows tags and no descriptions
        entrypoint=deployment["entrypoint"],
        parameters=deployment["parameters"],
        parameter_openapi_schema=_schema(deployment, found),
        enforce_parameter_schema=True,
        schedules=[_schedule(given, scheduled=scheduled) for given in deployment.get("schedules", [])],
        concurrency_limit=limit.get("limit"),
        concurrency_options=ConcurrencyOptions(collision_strategy=strategy) if strategy else None,
        work_pool_name=deployment["work_pool"]["name"],
        job_variables={},
        pull_steps=[],
    )


def _schema(deployment: Declared, found: Offered) -> Declared:
    # Without this Prefect takes a parameter that there is none of, and the run crashes.
    form = in_language(parameter_schema(flow_of(deployment)).model_dump_for_openapi(), settings().language)
    return with_choices(form | {"additionalProperties": False}, found)


def _told(deployment: Declared) -> tuple[str, str]:
    """What a deployment is for, in a sentence and in a word, in the language of the settings."""
    name, language = deployment["entrypoint"].rpartition(":")[2], settings().language
    words = texts("deployments", language)
    if name in TIERS:
        tier = texts(f"tiers.{name}", language)
        return f"{tier['title']}. {tier['question']}", words.get(f"{name} tag", tier["short"])
    return words[name], words[f"{name} tag"]


def _schedule(given: Declared, *, scheduled: bool) -> DeploymentScheduleCreate:
    schedule = CronSchedule(cron=given["cron"], timezone=given["timezone"])
    return DeploymentScheduleCreate(schedule=schedule, active=scheduled and given["active"])
