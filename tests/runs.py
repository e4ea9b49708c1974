"""Evaluations up to the point where a retriever can be asked, without Prefect; tests import it by its full name."""

import asyncio
import secrets
from typing import Any

from tasks.load import load
from tasks.parameters import Tier1
from tasks.retrieve import index
from tasks.run import Run


def opened(**parameters: Any) -> Run:
    """A tier 1 evaluation whose cases are loaded and whose corpus is searchable."""
    run = Run(f"tier1-test-{secrets.token_hex(4)}", "tier1", Tier1.model_validate(parameters))
    run.work.mkdir(parents=True)

    async def steps() -> Run:
        return await index.fn(await load.fn(run))

    return asyncio.run(steps())
