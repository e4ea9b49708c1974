"""The report pages and unusual requests: one reply each, no broken connection, no traceback."""

import http.client
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import find_free_port
from yarus.deployments.pages.report_server import serve_reports

PASSWORD = "yarus:s3cret"
BASIC = b"Basic " + b64encode(PASSWORD.encode())
ENTITLED = {"Authorization": BASIC.decode()}


@pytest.fixture(scope="module")
def port(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Serve a folder with one report and a password."""
    folder = tmp_path_factory.mktemp("pages") / "reports"
    folder.mkdir()
    (folder / "night.html").write_text("<h1>Ночь</h1>", encoding="utf-8")
    number = find_free_port()
    with serve_reports(folder, "127.0.0.1", number, PASSWORD):
        yield number


def send_request(
    port: int, path: str, method: str = "GET", body: bytes = b"", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body or None, headers)
    reply = connection.getresponse()
    reply.text = reply.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return reply


def answer(port: int, request: bytes) -> bytes:
    """Return the reply to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as lines:
            return lines.read()


@pytest.mark.parametrize(
    "path",
    [
        "/%00",
        "/night.html%00",
        "/%00.html",
        f"/{'a' * 300}.html",
        f"/{'a/' * 5000}",
        "/..%2f..%2fetc%2fpasswd",
        "/%",
        "/%zz.html",
        "/%ff.html",
        "/%ed%a0%80.html",
        "/night.html/",
        "/night.html/x.html",
        "/~root",
        "/\\..\\night.html",
        "http://127.0.0.1/nothing.html",
        "//[",
        "*",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_unknown_addresses_are_not_found(port: int, path: str, method: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert send_request(port, path, method, **ENTITLED).status == 404
    assert capfd.readouterr().err == ""


# Long requests exceed limits only slightly: a server that closes with much unread data may lose its answer.
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"401"),
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n" % BASIC, b"404"),
        (b"GET /%s HTTP/1.1\r\n\r\n" % (b"a" * 65_540), b"414"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 110 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 65_540 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"403"),
        (b"GET /night.html HTTP/1.1\r\nHost: localhost\r\nAuthorization: \xff\r\n\r\n", b"401"),
        (b"GET /night.html HTTP/1.1\r\nHost: localhost\r\nCookie: \xff\r\n\r\n", b"401"),
        (b"POST /enter HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"501"),
        (b"POST /enter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000000\r\n\r\n", b"501"),
        (b"POST /enter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nshort", b"403"),
    ],
)
def test_malformed_requests_are_refused(
    port: int, request_: bytes, status: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    assert status in answer(port, request_)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "OPTIONS"])
def test_write_methods_are_not_implemented(port: int, method: str) -> None:
    assert send_request(port, "/night.html", method, b"new", **ENTITLED).status == 501


def test_pages_need_the_password(port: int) -> None:
    refused = send_request(port, "/night.html")
    assert (refused.status, "Ночь" in refused.text) == (401, False)
    assert send_request(port, "/", Authorization="Basic eDp5").status == 401
    assert send_request(port, "/night.html", **ENTITLED).status == 200


def test_login_sets_a_cookie(port: int) -> None:
    assert send_request(port, "/enter").status == 200
    assert send_request(port, "/enter", "POST", b"yarus:guessed").status == 403
    entered = send_request(port, "/enter", "POST", PASSWORD.encode())
    cookie = entered.getheader("Set-Cookie") or ""
    assert (entered.status, "HttpOnly" in cookie, "s3cret" in cookie) == (204, True, False)
    assert send_request(port, "/night.html", Cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_foreign_hosts_and_origins_are_refused(port: int, headers: dict[str, str]) -> None:
    assert send_request(port, "/night.html", **ENTITLED, **headers).status == 403
    assert send_request(port, "/enter", "POST", PASSWORD.encode(), **headers).status == 403


def test_pages_cannot_be_framed_by_others(port: int) -> None:
    assert send_request(port, "/night.html", **ENTITLED).getheader("X-Frame-Options") == "SAMEORIGIN"


def test_label_page_needs_the_password(at_home_for_module: Path, tmp_path: Path) -> None:
    number = find_free_port()
    with serve_reports(tmp_path, "127.0.0.1", number, PASSWORD) as server:
        path = server.labels.path
        assert send_request(number, path).status == 401
        assert send_request(number, f"{path}save", "POST", b"{}").status == 401
        page = send_request(number, path, **ENTITLED)
        assert (page.status, "label.js" in page.text) == (200, True)
        assert send_request(number, "/label/guessed/", **ENTITLED).status == 404
        own = {"Origin": f"http://127.0.0.1:{number}", "Content-Type": "application/json"}
        assert send_request(number, f"{path}save", "POST", b"{}", **ENTITLED, **own).status == 409  # without a version
        assert send_request(number, f"{path}save", "POST", b"{}", **ENTITLED).status == 403  # without an origin
        assert send_request(number, f"{path}save", "POST", b"x" * 20_000, **ENTITLED, **own).status == 413
