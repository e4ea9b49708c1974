"""Show the report pages of this machine in a browser until Ctrl-C: `yarus serve --reports`."""

import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import urlencode

from yarus.db import journal
from yarus.db.home import make_private_folder
from yarus.deployments.pages.report_server import serve_reports
from yarus.deployments.prefect.server_access import login_link, password_for
from yarus.deployments.server import require_free
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.report.live_pages import CHOSEN_NAME

HOST = "127.0.0.1"


def view(evaluations: Sequence[str], port: int, *, browser: bool, ready: Callable[[str, bool], None]) -> None:
    """Serve the pages until Ctrl-C.

    Args:
        evaluations: the evaluations to show first: ids, their beginnings or ends, or `last`; empty: the list of all.
        port: the port to listen on; 0: any free port.
        browser: whether the default browser is opened.
        ready: called with the address when it listens, and whether a browser was opened.

    Raises:
        InputError: an evaluation does not exist.
        ServerUnavailable: the port is taken.
    """
    home = get_settings().home.absolute()
    ids = [journal.find_evaluation(database(), name)["id"] for name in evaluations]
    first = f"/{CHOSEN_NAME}?{urlencode([('of', name) for name in ids])}" if ids else "/"
    require_free(HOST, port, "--port")
    make_private_folder(home / "reports", home)
    password = password_for(home, HOST)
    with serve_reports(home / "reports", HOST, port, password) as server, suppress(KeyboardInterrupt):
        address = f"http://{HOST}:{server.server_port}"
        # Other users see command lines of this machine, so the browser is started with a one-time token.
        opened = browser and _open_browser(login_link(address, server.auth.make_token() if password else None, first))
        ready(login_link(address, password, first), opened)
        threading.Event().wait()


def _open_browser(address: str) -> bool:
    """Open the address in a browser with windows, and return whether one did; terminal browsers are not used."""
    try:
        controller = webbrowser.get()
    except webbrowser.Error:
        return False
    return type(controller) is not webbrowser.GenericBrowser and controller.open(address)
