"""The report pages and requests that no browser makes: an answer each, no broken connection, no traceback."""

import http.client
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import free_port
from yarus.deployments.pages.report_server import serving

PASSWORD = "yarus:s3cret"
BASIC = b"Basic " + b64encode(PASSWORD.encode())
ENTITLED = {"Authorization": BASIC.decode()}


@pytest.fixture(scope="module")
def port(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Pages of a folder with one report, that ask for a password."""
    folder = tmp_path_factory.mktemp("pages") / "reports"
    folder.mkdir()
    (folder / "night.html").write_text("<h1>Ночь</h1>", encoding="utf-8")
    number = free_port()
    with serving(folder, "127.0.0.1", number, PASSWORD):
        yield number


def asked(port: int, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body or None, headers)
    reply = connection.getresponse()
    reply.text = reply.read().decode()  # type: ignore[attr-defined]
    connection.close()
    return reply


def answer(port: int, request: bytes) -> bytes:
    """What comes back for these bytes."""
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
def test_an_address_that_names_nothing_is_not_found(
    port: int, path: str, method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert asked(port, path, method, **ENTITLED).status == 404
    assert capfd.readouterr().err == ""


# Those that are too long are so by little: where a server closes with much unread, its answer may be lost on the way.
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
def test_odd_requests_are_refused_in_words(
    port: int, request_: bytes, status: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    assert status in answer(port, request_)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "OPTIONS"])
def test_nothing_is_written(port: int, method: str) -> None:
    assert asked(port, "/night.html", method, b"new", **ENTITLED).status == 501


def test_pages_are_shown_to_those_who_have_the_password(port: int) -> None:
    refused = asked(port, "/night.html")
    assert (refused.status, "Ночь" in refused.text) == (401, False)
    assert asked(port, "/", Authorization="Basic eDp5").status == 401
    assert asked(port, "/night.html", **ENTITLED).status == 200


def test_the_link_gives_a_cookie_for_the_password(port: int) -> None:
    assert asked(port, "/enter").status == 200
    assert asked(port, "/enter", "POST", b"yarus:guessed").status == 403
    entered = asked(port, "/enter", "POST", PASSWORD.encode())
    cookie = entered.getheader("Set-Cookie") or ""
    assert (entered.status, "HttpOnly" in cookie, "s3cret" in cookie) == (204, True, False)
    assert asked(port, "/night.html", Cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_pages_of_others_get_nothing(port: int, headers: dict[str, str]) -> None:
    assert asked(port, "/night.html", **ENTITLED, **headers).status == 403
    assert asked(port, "/enter", "POST", PASSWORD.encode(), **headers).status == 403


def test_no_page_of_others_shows_ours_as_its_own(port: int) -> None:
    assert asked(port, "/night.html", **ENTITLED).getheader("X-Frame-Options") == "SAMEORIGIN"


def test_the_page_for_labels_is_behind_the_password_too(at_home_for_module: Path, tmp_path: Path) -> None:
    number = free_port()
    with serving(tmp_path, "127.0.0.1", number, PASSWORD) as server:
        path = server.labels.path
        assert asked(number, path).status == 401
        assert asked(number, f"{path}save", "POST", b"{}").status == 401
        page = asked(number, path, **ENTITLED)
        assert (page.status, "label.js" in page.text) == (200, True)
        assert asked(number, "/label/guessed/", **ENTITLED).status == 404
        own = {"Origin": f"http://127.0.0.1:{number}", "Content-Type": "application/json"}
        assert asked(number, f"{path}save", "POST", b"{}", **ENTITLED, **own).status == 409  # of no version
        assert asked(number, f"{path}save", "POST", b"{}", **ENTITLED).status == 403  # of no page
        assert asked(number, f"{path}save", "POST", b"x" * 20_000, **ENTITLED, **own).status == 413
