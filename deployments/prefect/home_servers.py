"""The servers that a home keeps running between commands: Prefect's, and the embedded PostgreSQL."""

from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from yarus.db.embedded import server as postgresql
from yarus.db.words import Words
from yarus.deployments.prefect import home_server


class StoppedServers(TypedDict):
    """What became of the servers of a home."""

    prefect: home_server.Stopped
    """`serving`: it belongs to `yarus serve`, which Ctrl-C ends."""
    postgresql: Literal["stopped", "not running", "in use"]


def stop(home: Path) -> StoppedServers:
    """Ends both, unless a command uses them, and waits until they have ended.

    Args:
        home: `YARUS_HOME`, absolute.

    Raises:
        ServerUnavailable: Prefect's server does not end.
        OSError: the files by which they are found cannot be read.
    """
    before = postgresql.is_running(home)
    prefect = home_server.stop(home)  # with it PostgreSQL ends where nobody else uses that
    after = postgresql.stop(home)
    return {"prefect": prefect, "postgresql": "stopped" if before and after == "not running" else after}


def described(home: Path) -> str:
    """What of both runs, in words."""
    found = home_server.running(home)
    if found is None:
        return Words("no server runs; the next run starts one")
    whose = Words("of `yarus serve`") if found.serving else Words("left by an earlier command; `yarus stop` ends it")
    return Words(
        "server {api} (process {pid}, {versions}), {whose}",
        api=found.api,
        pid=found.pid,
        versions=found.versions,
        whose=whose,
    )
