"""Erasure through Prefect's API, where the server is not ours: its pages show the worst questions beside case ids."""

from collections.abc import AsyncIterator, Collection, Sequence
from uuid import UUID

from httpx import HTTPError
from prefect.client.orchestration import PrefectClient, get_client
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_URL

from yarus.db.words import Words
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.operations.erasure.erase_prefect import knows

PAGE = 200
"""Artifacts that are read at a time."""


async def on_another_server(case_ids: Collection[str], *, remove: bool) -> tuple[int, list[str]]:
    """How many artifacts on the server of PREFECT_API_URL name one of the cases; they are deleted if that is wanted.

    A server whose database is ours is left to `in_prefect`, which reaches more.

    Returns:
        The number, and what stays there, in words.

    Raises:
        OSError: the server cannot be reached or refuses us.
    """
    api = PREFECT_API_URL.value()
    if not api:
        return 0, []
    marks = [f"`{case_id}`" for case_id in case_ids]
    try:
        async with get_client() as client:
            runs = await client.read_flow_runs(limit=1)
            if not runs or knows(str(runs[0].id)):
                return 0, []
            found = [name async for name in _named(client, marks)]
            for name in found if remove else ():
                await client.delete_artifact(name)
    except (HTTPError, PrefectException, RuntimeError) as error:
        raise OSError(
            Words("Prefect's artifacts cannot be searched: {error}. Nothing was erased; try again", error=error)
        ) from None
    return len(found), [f"{redact_urls(api)}: {EVENTS}"]


EVENTS = (
    "events and logs of Prefect, which its API deletes none of, until its retention removes them (events: "
    "PREFECT_SERVER_EVENTS_RETENTION_PERIOD, 7 days); to erase them now run this command where that server's database "
    "can be reached, with YARUS_PREFECT_DATABASE_URL or its home"
)


async def _named(client: PrefectClient, marks: Sequence[str]) -> AsyncIterator[UUID]:
    offset = 0
    while page := await client.read_artifacts(limit=PAGE, offset=offset):
        offset += len(page)
        for artifact in page:
            if any(mark in str(artifact.data) for mark in marks):
                yield artifact.id
