"""The report pages of a home, over HTTP: made from the journal when they are asked for, and files of one folder."""

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
from yarus.deployments.guard import CONFINED, LONGEST, PAGE, Lock, names, refusal
from yarus.deployments.pages.label_pages import LabelPages
from yarus.deployments.pages.label_server import LocalServer, is_label, reply
from yarus.deployments.prefect.server_access import ENTER
from yarus.tasks.config.connections import database
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts.messages import told
from yarus.tasks.report.index import NAME
from yarus.tasks.report.live_pages import LivePages

NOW = "/now"
"""What an open page asks for, to learn whether something has changed."""


class Pages(SimpleHTTPRequestHandler):
    """Answers GET and HEAD with a page over the journal, or a file of the folder; nothing outside of it, whatever the
    address or a link says.
    """

    server: "Server"
    server_version = "Yarus"
    sys_version = ""
    timeout = 60
    """Seconds that a connection may say nothing."""

    def send_head(self) -> BytesIO | BinaryIO | None:
        """The file behind the address, its headers sent."""
        if why := self._refused():
            self.send_error(HTTPStatus.FORBIDDEN, explain=why)
            return None
        if self.path == ENTER:
            return self._text(PAGE.encode())
        if not self._let_in():
            return None
        try:
            if page := self._made():
                return self._text(page)
        except InputError as error:
            return self._text(
                self.server.pages.problem(redact_urls(told(error, settings().language))), status=HTTPStatus.NOT_FOUND
            )
        except (DatabaseUnavailable, OSError) as error:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=redact_urls(told(error, settings().language)))
            return None
        if self._asked(Path(self.directory).resolve()) is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def do_GET(self) -> None:
        """A file of the folder, or the page for labels."""
        if is_label(self.path) and self._let_in():
            reply(self, self.server.labels)
        elif not is_label(self.path):
            super().do_GET()

    def do_POST(self) -> None:
        """Takes labels; or the password from the page that a link leads to, and gives a cookie for it."""
        if is_label(self.path):
            if self._let_in():
                reply(self, self.server.labels)
            return
        length = self.headers.get("Content-Length", "")
        if self.path != ENTER or not (length.isdecimal() and int(length) <= LONGEST):
            self.send_error(HTTPStatus.NOT_IMPLEMENTED, "Unsupported method ('POST')")
        elif self._refused() or not self.server.lock.opened_by(self.rfile.read(int(length))):
            self.send_error(HTTPStatus.FORBIDDEN)
        else:
            self.send_response(HTTPStatus.NO_CONTENT)
            self.send_header("Set-Cookie", self.server.lock.cookie)
            self.end_headers()

    def _refused(self) -> str | None:
        return refusal(self.headers.get("Host"), self.headers.get("Origin"), self.server.names, self.server.further)

    def _asked(self, root: Path) -> Path | None:
        """The file that the address names; None where it can name none, or is outside of the folder, or hidden."""
        try:
            asked = Path(self.translate_path(self.path))
            hidden = any(part.startswith(".") for part in asked.relative_to(self.directory).parts)
            asked.stat(follow_symlinks=False)
        except FileNotFoundError:
            pass  # it may be made yet
        except (OSError, ValueError):  # too long, a part of it a file, a NUL, half of a character
            return None
        return None if hidden or not asked.resolve().is_relative_to(root) else asked

    def _let_in(self) -> bool:
        """Whether a browser has the password; it is asked for it where it has not."""
        if self.server.lock.open(self.headers.get("Cookie"), self.headers.get("Authorization")):
            return True
        self.send_response(HTTPStatus.UNAUTHORIZED)
        self.send_header("WWW-Authenticate", 'Basic realm="Yarus", charset="UTF-8"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def _made(self) -> bytes | None:
        """What is made when it is asked for: a page, or the text that changes with what the pages show."""
        path, _, query = self.path.partition("?")
        if path == NOW:
            return self.server.pages.now().encode()
        name = unquote(path.removeprefix("/")) or NAME
        return self.server.pages.page(name, parse_qs(query).get("of", []))

    def _text(self, text: bytes, status: HTTPStatus = HTTPStatus.OK) -> BytesIO:
        self.send_response(status)
        kind = "plain" if self.path == NOW else "html"
        self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        return BytesIO(text)

    def end_headers(self) -> None:
        """A report is made anew under the same name: nobody keeps an old one."""
        self.send_header("Cache-Control", "no-cache")
        for name, value in CONFINED.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the library gives it
        """Says nothing: who looked at what is nobody's business."""


class Server(LocalServer):
    """Listens where it is told, by either protocol."""

    def __init__(self, host: str, port: int, folder: Path, password: str | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.further = settings().serve_names
        self.names, self.lock = names(host, self.further), Lock(password)
        self.pages = LivePages(database, folder)
        self.labels = LabelPages(database, self.names, self.further)
        super().__init__((host, port), partial(Pages, directory=str(folder)))


@contextmanager
def serving(folder: Path, host: str, port: int, password: str | None) -> Iterator[Server]:
    """Serves the pages while the block lasts, to those who have the password; None lets everybody in."""
    folder.mkdir(parents=True, exist_ok=True)
    with Server(host, port, folder, password) as server:
        thread = threading.Thread(target=server.serve_forever, name="reports", daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
