"""Serve the page for labels over HTTP on the loopback: alone, or with the report pages."""

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from urllib.parse import urlencode

from yarus.deployments.pages.label_pages import LABEL_PAGE_HEADERS, MAX_BODY_BYTES, PREFIX, HttpReply, LabelPages
from yarus.deployments.request_guard import allowed_hosts
from yarus.deployments.server import require_free
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.relevance_session import open_session

HEADERS = ("Host", "Origin", "Sec-Fetch-Site", "Content-Type", "X-Yarus-Page")
HOST = "127.0.0.1"


class LabelHandler(BaseHTTPRequestHandler):
    """Handler that sends the replies of `LabelPages`."""

    server: "LabelServer"
    server_version, sys_version = "Yarus", ""
    protocol_version = "HTTP/1.1"
    timeout = 60
    """Longest silence of a connection in seconds."""

    def do_GET(self) -> None:
        """Send a page, one of its files, or its data."""
        answer_label_request(self, self.server.pages)

    def do_POST(self) -> None:
        """Store data of the page."""
        answer_label_request(self, self.server.pages)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the library gives it
        """Log nothing, to protect the privacy of annotators."""


def answer_label_request(handler: BaseHTTPRequestHandler, pages: LabelPages) -> None:
    """Answer a request with the pages for labels."""
    length = handler.headers.get("Content-Length", "0")
    if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
        handler.close_connection = True
        reply = HttpReply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "application/json", b'{"error": "this is too long"}')
    else:
        body = handler.rfile.read(int(length))
        reply = pages.answer(handler.command, handler.path, {name: handler.headers.get(name) for name in HEADERS}, body)
    handler.send_response(reply.status)
    handler.send_header("Content-Type", f"{reply.kind}; charset=utf-8")
    handler.send_header("Content-Length", str(len(reply.body)))
    for name, value in LABEL_PAGE_HEADERS.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(reply.body)


def is_label_path(path: str) -> bool:
    """Return whether a path is one of the pages for labels."""
    return path.startswith(PREFIX)


class LocalServer(ThreadingHTTPServer):
    """Server that starts without looking up its own name."""

    daemon_threads = True

    def server_bind(self) -> None:
        """Bind as the library does, without the look-up of our own name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


class LabelServer(LocalServer):
    """Server of the pages for labels, on the loopback only."""

    def __init__(self, port: int) -> None:
        """Start to listen; port 0: any free port."""
        self.pages = LabelPages(database, allowed_hosts(HOST, ""))
        super().__init__((HOST, port), LabelHandler)

    @property
    def address(self) -> str:
        """Return the full address of the page, with its secret."""
        return f"http://{HOST}:{self.server_port}{self.pages.path}"


def serve_until_stopped(port: int, evaluation: str | None, metric: str | None, ready: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C.

    Args:
        port: the port to listen on; 0: any free port.
        evaluation: the evaluation to label: an id, its beginning or end, or `last`; None: chosen on the page.
        metric: one of its judged means; None: chosen on the page.
        ready: called with the address when it listens.

    Raises:
        InputError: there is nothing to label, or the port is taken.
    """
    query = ""
    if evaluation is not None:
        session = open_session(database(), evaluation, metric)
        query = "?" + urlencode({"evaluation": session.evaluation_id, "metric": session.metric})
    require_free(HOST, port, "--port")
    with LabelServer(port) as server, suppress(KeyboardInterrupt):
        ready(server.address + query)
        server.serve_forever()
