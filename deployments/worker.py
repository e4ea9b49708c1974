"""Run the worker of `yarus serve`: Prefect's, with a process per flow run, which can be stopped."""

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

from yarus.deployments.registration import load_deployments
from yarus.tasks.config.settings import get_settings


class FlowRunJob(ProcessJobConfiguration):
    """The start of a flow run: as in prefect.yaml, whatever the server has stored since."""

    def prepare_for_flow_run(self, flow_run: FlowRun, deployment: Any = None, *rest: Any, **named: Any) -> None:
        """See `ProcessJobConfiguration`.

        Raises:
            ValueError: the deployment is not one of ours, or was changed to run other steps first.
        """
        variables = {
            declaration["entrypoint"]: declaration["work_pool"]["job_variables"] for declaration in load_deployments()
        }
        entrypoint = deployment and deployment.entrypoint
        if entrypoint not in variables or deployment.pull_steps:
            raise ValueError(f"{entrypoint!r} is not a deployment in prefect.yaml; `yarus serve` runs only those")
        job_variables = variables[entrypoint]
        self.command, self.env, self.working_dir = None, dict(job_variables["env"]), Path(job_variables["working_dir"])
        super().prepare_for_flow_run(flow_run, deployment, *rest, **named)


class YarusWorker(ProcessWorker, ABC):  # ABC, though it can be made: otherwise Prefect registers it as a worker type
    """Worker that knows its own flow runs: when it stops, only these are cancelled."""

    job_configuration = FlowRunJob

    def __init__(self, work_pool_name: str, **named: Any) -> None:
        super().__init__(work_pool_name, **named)
        self.own: set[UUID] = set()

    async def __aenter__(self) -> "YarusWorker":
        """Keep temporary files in the home: Prefect's folder below /tmp belongs to the first user who served."""
        system_tempdir, tempfile.tempdir = tempfile.tempdir, str(get_settings().home.absolute() / "prefect")
        try:
            await super().__aenter__()
        finally:
            tempfile.tempdir = system_tempdir
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
        """Cancel the runs of this worker, as the button in the UI does, and wait until they have stopped."""
        if not self.own:
            return
        run_filter = FlowRunFilter(id=FlowRunFilterId(any_=list(self.own)))
        async with get_client() as client:
            for flow_run in await client.read_flow_runs(flow_run_filter=run_filter):
                if flow_run.state is None or not flow_run.state.is_final():
                    await client.set_flow_run_state(flow_run.id, Cancelling(message="yarus serve was stopped"))
        deadline = time.monotonic() + patience_s
        while self.own and time.monotonic() < deadline:  # noqa: ASYNC110 - a set has no event
            await asyncio.sleep(0.1)
