"""`yarus view`: the report pages of this machine, in a browser, until Ctrl-C."""

import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import urlencode

from yarus.db import journal
from yarus.db.home import make
from yarus.deployments.pages.report_server import serving
from yarus.deployments.prefect.server_access import link, password_for
from yarus.deployments.server import require_free
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.report.live_pages import CHOSEN

HOST = "127.0.0.1"


def view(evaluations: Sequence[str], port: int, *, browser: bool, ready: Callable[[str, bool], None]) -> None:
    """Serves the pages until Ctrl-C.

    Args:
        evaluations: what is shown first, by ids, the beginnings or ends of them, or `last`; none: the list of all.
        port: where it listens; 0: any that is free.
        browser: whether the default browser is opened.
        ready: called with the address when it listens, and with whether a browser has taken it.

    Raises:
        InputError: no such evaluation.
        ServerUnavailable: the port is taken.
    """
    home = settings().home.absolute()
    ids = [journal.find(database(), name)["id"] for name in evaluations]
    first = f"/{CHOSEN}?{urlencode([('of', name) for name in ids])}" if ids else "/"
    require_free(HOST, port, "--port")
    make(home / "reports", home)
    password = password_for(home, HOST)
    with serving(home / "reports", HOST, port, password) as server, suppress(KeyboardInterrupt):
        address = f"http://{HOST}:{server.server_port}"
        # Others see the command lines of this machine: what a browser is started with opens the pages once.
        opened = browser and _open(link(address, server.lock.once() if password else None, first))
        ready(link(address, password, first), opened)
        threading.Event().wait()


def _open(address: str) -> bool:
    """Whether a browser with windows has taken the address; one that runs in the terminal would take that."""
    try:
        chosen = webbrowser.get()
    except webbrowser.Error:
        return False
    return type(chosen) is not webbrowser.GenericBrowser and chosen.open(address)
