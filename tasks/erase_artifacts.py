"""Erasure in Prefect: its pages show the worst questions of an evaluation, cut short, beside their case ids."""

import os
from collections.abc import AsyncIterator, Collection, Sequence
from uuid import UUID

from httpx import HTTPError
from prefect.client.orchestration import PrefectClient, get_client
from prefect.exceptions import PrefectException

from tasks.settings import settings

PAGE = 200
"""Artifacts that are read at a time."""


def is_there() -> bool:
    """Whether there is a Prefect to look at: a server that PREFECT_API_URL names, or a database of this home's own."""
    return bool(os.environ.get("PREFECT_API_URL")) or (settings().home / "prefect" / "prefect.db").exists()


async def artifacts_with(case_ids: Collection[str], *, remove: bool) -> int:
    """How many artifacts name one of the cases; they are deleted if that is wanted.

    Raises:
        OSError: Prefect's server cannot be reached or refuses us.
    """
    marks = [f"`{case_id}`" for case_id in case_ids]
    try:
        async with get_client() as client:
            found = [name async for name in _named(client, marks)]
            for name in found if remove else ():
                await client.delete_artifact(name)
    except (HTTPError, PrefectException, RuntimeError) as error:
        raise OSError(f"Prefect's artifacts cannot be searched: {error}. Nothing was erased; try again") from None
    return len(found)


async def _named(client: PrefectClient, marks: Sequence[str]) -> AsyncIterator[UUID]:
    offset = 0
    while page := await client.read_artifacts(limit=PAGE, offset=offset):
        offset += len(page)
        for artifact in page:
            if any(mark in str(artifact.data) for mark in marks):
                yield artifact.id
