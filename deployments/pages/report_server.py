"""Serve the report pages of a home over HTTP: made from the journal on request, and files of one folder."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qs, unquote

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.deployments.pages.label_pages import LabelPages
from yarus.deployments.pages.label_server import LocalServer, answer_label_request, is_label_path
from yarus.deployments.prefect.server_access import LOGIN_PATH
from yarus.deployments.request_guard import (
    LOGIN_PAGE,
    MAX_PASSWORD_BYTES,
    SECURITY_HEADERS,
    PageAuth,
    allowed_hosts,
    refusal_reason,
)
from yarus.tasks.config.connections import database
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts.messages import told
from yarus.tasks.report.index import INDEX_NAME
from yarus.tasks.report.live_pages import LivePages

NOW_PATH = "/now"
"""The path that an open page requests, to learn whether something has changed."""


class ReportHandler(SimpleHTTPRequestHandler):
    """Handler of GET and HEAD with pages from the journal and files of the folder.

    Files outside of the folder are never served, whatever the address or a link contains.
    """

    server: "ReportServer"
    server_version = "Yarus"
    sys_version = ""
    timeout = 60
    """Longest silence of a connection in seconds."""

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Send the headers, and return the page or file at the address."""
        if reason := self._check_refusal():
            self.send_error(HTTPStatus.FORBIDDEN, explain=reason)
            return None
        if self.path == LOGIN_PATH:
            return self._send_text(LOGIN_PAGE.encode())
        if not self._require_password():
            return None
        try:
            if page := self._make_page():
                return self._send_text(page)
        except InputError as error:
            return self._send_text(
                self.server.pages.problem(redact_urls(told(error, get_settings().language))),
                status=HTTPStatus.NOT_FOUND,
            )
        except (DatabaseUnavailable, OSError) as error:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=redact_urls(told(error, get_settings().language)))
            return None
        if self._find_file(Path(self.directory).resolve()) is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def do_GET(self) -> None:
        """Send a file of the folder, or the page for labels."""
        if is_label_path(self.path) and self._require_password():
            answer_label_request(self, self.server.labels)
        elif not is_label_path(self.path):
            super().do_GET()

    def do_POST(self) -> None:
        """Store labels, or check the password from the log-in page and set a cookie."""
        if is_label_path(self.path):
            if self._require_password():
                answer_label_request(self, self.server.labels)
            return
        length = self.headers.get("Content-Length", "")
        if self.path != LOGIN_PATH or not (length.isdecimal() and int(length) <= MAX_PASSWORD_BYTES):
            self.send_error(HTTPStatus.NOT_IMPLEMENTED, "Unsupported method ('POST')")
        elif self._check_refusal() or not self.server.auth.accepts(self.rfile.read(int(length))):
            self.send_error(HTTPStatus.FORBIDDEN)
        else:
            self.send_response(HTTPStatus.NO_CONTENT)
            self.send_header("Set-Cookie", self.server.auth.cookie)
            self.end_headers()

    def _check_refusal(self) -> str | None:
        return refusal_reason(
            self.headers.get("Host"), self.headers.get("Origin"), self.server.names, self.server.further
        )

    def _find_file(self, root: Path) -> Path | None:
        """Return the file at the address; None if it is not valid, outside of the folder, or hidden."""
        try:
            requested = Path(self.translate_path(self.path))
            is_hidden = any(part.startswith(".") for part in requested.relative_to(self.directory).parts)
            requested.stat(follow_symlinks=False)
        except FileNotFoundError:
            pass  # it may be created later
        except (OSError, ValueError):  # too long, a file as a folder, a NUL, or half of a character
            return None
        return None if is_hidden or not requested.resolve().is_relative_to(root) else requested

    def _require_password(self) -> bool:
        """Return whether the browser has the password; request it otherwise."""
        if self.server.auth.allows(self.headers.get("Cookie"), self.headers.get("Authorization")):
            return True
        self.send_response(HTTPStatus.UNAUTHORIZED)
        self.send_header("WWW-Authenticate", 'Basic realm="Yarus", charset="UTF-8"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def _make_page(self) -> bytes | None:
        """Return a page that is made on request, or the text that changes with the content of the pages."""
        path, _, query = self.path.partition("?")
        if path == NOW_PATH:
            return self.server.pages.now().encode()
        name = unquote(path.removeprefix("/")) or INDEX_NAME
        return self.server.pages.page(name, parse_qs(query).get("of", []))

    def _send_text(self, text: bytes, status: HTTPStatus = HTTPStatus.OK) -> BytesIO:
        self.send_response(status)
        subtype = "plain" if self.path == NOW_PATH else "html"
        self.send_header("Content-Type", f"text/{subtype}; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        return BytesIO(text)

    def end_headers(self) -> None:
        """Send headers that forbid caching, because reports are updated under the same name."""
        self.send_header("Cache-Control", "no-cache")
        for name, value in SECURITY_HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the library gives it
        """Log nothing, to protect the privacy of readers."""


class ReportServer(LocalServer):
    """Server of the report pages, for IPv4 or IPv6."""

    def __init__(self, host: str, port: int, folder: Path, password: str | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.further = get_settings().serve_allowed_hosts
        self.names, self.auth = allowed_hosts(host, self.further), PageAuth(password)
        self.pages = LivePages(database, folder)
        self.labels = LabelPages(database, self.names, self.further)
        super().__init__((host, port), partial(ReportHandler, directory=str(folder)))


@contextmanager
def serve_reports(folder: Path, host: str, port: int, password: str | None) -> Iterator[ReportServer]:
    """Serve the pages during the block to those who have the password; None: to everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    with ReportServer(host, port, folder, password) as server:
        thread = threading.Thread(target=server.serve_forever, name="reports", daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
