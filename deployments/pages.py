"""The report pages of a home, over HTTP: files of one folder, read only."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from socketserver import TCPServer
from typing import BinaryIO
from urllib.parse import urlsplit

from db.errors import DatabaseUnavailable, InputError


class Pages(SimpleHTTPRequestHandler):
    """Answers GET and HEAD with a file of the folder; nothing outside of it, whatever the address or a link says."""

    server_version = "Yarus"
    sys_version = ""

    def send_head(self) -> BytesIO | BinaryIO | None:
        """The file behind the address, its headers sent."""
        root = Path(self.directory).resolve()
        asked = Path(self.translate_path(self.path))
        hidden = any(part.startswith(".") for part in Path(urlsplit(self.path).path).parts)
        if hidden or not asked.resolve().is_relative_to(root):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        try:
            _make(asked, root)
        except (DatabaseUnavailable, OSError) as error:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=str(error))
            return None
        return super().send_head()

    def end_headers(self) -> None:
        """A report is made anew under the same name: nobody keeps an old one."""
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the library gives it
        """Says nothing: who looked at what is nobody's business."""


def _make(page: Path, root: Path) -> None:
    """Writes the index anew, and an evaluation's report when it is first asked for: no run has to wait for it."""
    from db import journal
    from tasks.connect import database
    from tasks.pages import INDEX, index, report

    if page.resolve() == root or (page.resolve().parent == root and INDEX.fullmatch(page.name)):
        index(database(), root)
    if page.suffix != ".html" or page.parent.resolve() != root or page.exists():
        return
    with suppress(InputError):  # no such evaluation: a page that is not there
        row = journal.find(database(), page.stem)
        if row["id"] == page.stem and row["state"] in journal.FINISHED:
            report(database(), [row["id"]], page)


class Server(ThreadingHTTPServer):
    """Listens where it is told, by either protocol; asks no name server who it is."""

    daemon_threads = True

    def __init__(self, host: str, port: int, folder: Path) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), partial(Pages, directory=str(folder)))

    def server_bind(self) -> None:
        """As the library, without the look-up of our own name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


@contextmanager
def served(folder: Path, host: str, port: int) -> Iterator[None]:
    """Serves the pages while the block lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    with Server(host, port, folder) as server:
        thread = threading.Thread(target=server.serve_forever, name="reports", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
