"""Stop and describe the servers that a home keeps running between commands: Prefect's and the embedded PostgreSQL."""

from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from yarus.db.embedded import server as postgresql
from yarus.db.messages import Words
from yarus.deployments.prefect import home_server


class StoppedServers(TypedDict):
    """State of a home's servers after they were stopped."""

    prefect: home_server.StopResult
    """`serving`: it belongs to `yarus serve`, which Ctrl-C ends."""
    postgresql: Literal["stopped", "not running", "in use"]


def stop_servers(home: Path) -> StoppedServers:
    """Stop both servers, unless a command uses them, and wait until they have ended.

    Args:
        home: `YARUS_HOME`, absolute.

    Raises:
        ServerUnavailable: Prefect's server does not end.
        OSError: the files with their addresses cannot be read.
    """
    before = postgresql.is_running(home)
    prefect = home_server.stop_server(home)  # this also stops PostgreSQL if it is otherwise unused
    after = postgresql.stop_server(home)
    return {"prefect": prefect, "postgresql": "stopped" if before and after == "not running" else after}


def describe_server(home: Path) -> str:
    """Describe the running Prefect server in words."""
    server = home_server.find_server(home)
    if server is None:
        return Words("no server runs; the next run starts one")
    owner = (
        Words("of `yarus serve`") if server.serving else Words("left by an earlier command; `yarus admin stop` ends it")
    )
    return Words(
        "server {api} (process {pid}, {versions}), {whose}",
        api=server.api,
        pid=server.pid,
        versions=server.versions,
        whose=owner,
    )
