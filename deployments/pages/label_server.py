"""The page for labels over HTTP, on the loopback: alone, or beside the report pages."""

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from urllib.parse import urlencode

from yarus.deployments.guard import names
from yarus.deployments.pages.label_pages import LONGEST, PREFIX, SAFE, LabelPages, Reply
from yarus.deployments.server import require_free
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.relevance_session import labelling

HEADERS = ("Host", "Origin", "Sec-Fetch-Site", "Content-Type", "X-Yarus-Page")
HOST = "127.0.0.1"


class LabelHandler(BaseHTTPRequestHandler):
    """Answers with what `LabelPages` says, and nothing else."""

    server: "LabelServer"
    server_version, sys_version = "Yarus", ""
    protocol_version = "HTTP/1.1"
    timeout = 60
    """Seconds that a connection may say nothing."""

    def do_GET(self) -> None:
        """A page, a file of it, or what it asks for."""
        reply(self, self.server.pages)

    def do_POST(self) -> None:
        """What the page has to keep."""
        reply(self, self.server.pages)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the library gives it
        """Says nothing: who labelled what is nobody's business."""


def reply(handler: BaseHTTPRequestHandler, pages: LabelPages) -> None:
    """Has a request answered by the pages for labels."""
    length = handler.headers.get("Content-Length", "0")
    if not length.isdecimal() or int(length) > LONGEST:
        handler.close_connection = True
        found = Reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "application/json", b'{"error": "this is too long"}')
    else:
        body = handler.rfile.read(int(length))
        found = pages.answer(handler.command, handler.path, {name: handler.headers.get(name) for name in HEADERS}, body)
    handler.send_response(found.status)
    handler.send_header("Content-Type", f"{found.kind}; charset=utf-8")
    handler.send_header("Content-Length", str(len(found.body)))
    for name, value in SAFE.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(found.body)


def is_label(path: str) -> bool:
    """Whether a path is one of the pages for labels."""
    return path.startswith(PREFIX)


class LocalServer(ThreadingHTTPServer):
    """A server that asks no name server who it is."""

    daemon_threads = True

    def server_bind(self) -> None:
        """As the library, without the look-up of our own name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


class LabelServer(LocalServer):
    """Listens on the loopback alone."""

    def __init__(self, port: int) -> None:
        """Begins to listen; port 0: any that is free."""
        self.pages = LabelPages(database, names(HOST, ""))
        super().__init__((HOST, port), LabelHandler)

    @property
    def address(self) -> str:
        """The whole address of the page, with its secret."""
        return f"http://{HOST}:{self.server_port}{self.pages.path}"


def serve_until_stopped(port: int, evaluation: str | None, metric: str | None, ready: Callable[[str], None]) -> None:
    """Serves the page until Ctrl-C.

    Args:
        port: where it listens; 0: any that is free.
        evaluation: whose answers are labelled, an id, the beginning or end of one, or `last`; None: chosen on the page.
        metric: which of its judged means; None: chosen on the page.
        ready: called with the address when it listens.

    Raises:
        InputError: nothing to label there, or the port is taken.
    """
    query = ""
    if evaluation is not None:
        of = labelling(database(), evaluation, metric)
        query = "?" + urlencode({"evaluation": of.evaluation_id, "metric": of.metric})
    require_free(HOST, port, "--port")
    with LabelServer(port) as server, suppress(KeyboardInterrupt):
        ready(server.address + query)
        server.serve_forever()
