"""The worker of `yarus serve`: Prefect's, which runs every flow run in a process of its own, and can be stopped."""

import asyncio
import tempfile
import time
from abc import ABC
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelling
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker, ProcessWorkerResult

from yarus.deployments.registration import declared
from yarus.tasks.config.settings import settings


class Job(ProcessJobConfiguration):
    """How a run is started: as prefect.yaml says, whatever the server has been told since."""

    def prepare_for_flow_run(self, flow_run: FlowRun, deployment: Any = None, *rest: Any, **named: Any) -> None:
        """See `ProcessJobConfiguration`.

        Raises:
            ValueError: the deployment is none of ours, or was changed to do something first.
        """
        ours = {found["entrypoint"]: found["work_pool"]["job_variables"] for found in declared()}
        entrypoint = deployment and deployment.entrypoint
        if entrypoint not in ours or deployment.pull_steps:
            raise ValueError(f"{entrypoint!r} is not a deployment in prefect.yaml; `yarus serve` runs only those")
        variables = ours[entrypoint]
        self.command, self.env, self.working_dir = None, dict(variables["env"]), Path(variables["working_dir"])
        super().prepare_for_flow_run(flow_run, deployment, *rest, **named)


class Worker(ProcessWorker, ABC):  # ABC, though it can be made: otherwise Prefect enters it as a type of worker
    """Knows which flow runs are its own: those are cancelled when it stops, and no other worker's."""

    job_configuration = Job

    def __init__(self, work_pool_name: str, **named: Any) -> None:
        super().__init__(work_pool_name, **named)
        self.own: set[UUID] = set()

    async def __aenter__(self) -> "Worker":
        """See `ProcessWorker`. Prefect's folder below /tmp belongs to whoever served first, and keeps others out."""
        shared, tempfile.tempdir = tempfile.tempdir, str(settings().home.absolute() / "prefect")
        try:
            await super().__aenter__()
        finally:
            tempfile.tempdir = shared
        return self

    async def run(
        self, flow_run: FlowRun, configuration: ProcessJobConfiguration, task_status: Any = None
    ) -> ProcessWorkerResult:
        """See `ProcessWorker`."""
        self.own.add(flow_run.id)
        try:
            return await super().run(flow_run, configuration, task_status)
        finally:
            self.own.discard(flow_run.id)

    async def cancel_runs(self, patience_s: float) -> None:
        """Cancels what runs here, as the button in the UI does, and waits until it has stopped."""
        if not self.own:
            return
        wanted = FlowRunFilter(id=FlowRunFilterId(any_=list(self.own)))
        async with get_client() as client:
            for flow_run in await client.read_flow_runs(flow_run_filter=wanted):
                if flow_run.state is None or not flow_run.state.is_final():
                    await client.set_flow_run_state(flow_run.id, Cancelling(message="yarus serve was stopped"))
        deadline = time.monotonic() + patience_s
        while self.own and time.monotonic() < deadline:  # noqa: ASYNC110 - a set has no event
            await asyncio.sleep(0.1)
