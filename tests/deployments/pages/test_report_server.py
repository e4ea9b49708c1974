"""The report pages: files of one folder and nothing else."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import find_free_port
from yarus.deployments.pages.report_server import serve_reports


@pytest.fixture(scope="module")
def port(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Serve a folder with a report, a hidden file, and a link to outside."""
    tmp_path = tmp_path_factory.mktemp("pages")
    folder = tmp_path / "reports"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("s3cret")
    (tmp_path / "reports-of-others").mkdir()
    (tmp_path / "reports-of-others" / "secret.html").write_text("s3cret")
    (folder / "night.html").write_text("<h1>Ночь</h1>", encoding="utf-8")
    (folder / ".hidden.html").write_text("s3cret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "out").symlink_to(tmp_path)
    number = find_free_port()
    with serve_reports(folder, "127.0.0.1", number, None):
        yield number


def request(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=False)  # unchanged: a browser would normalise the path
    connection.endheaders()
    reply = connection.getresponse()
    text = reply.read().decode("utf-8")
    connection.close()
    return reply.status, text


def test_report_is_served(port: int) -> None:
    assert request(port, "/night.html") == (200, "<h1>Ночь</h1>")
    assert request(port, "/night.html", "HEAD") == (200, "")


def test_first_page_is_the_index(port: int) -> None:
    status, text = request(port, "/")
    assert (status, "<html" in text) == (200, True)


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "//secret.txt",
        "/../reports-of-others/secret.html",
        "/link.txt",
        "/out/secret.txt",
        "/.hidden.html",
        "/%2ehidden.html",
        "/%2Ehidden.html?x",
        "/nothing.html",
        "/tier1-20000101-000000-0000.html",
    ],
)
def test_other_files_are_not_found(port: int, path: str) -> None:
    status, text = request(port, path)
    assert status == 404
    assert "s3cret" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_write_methods_are_not_implemented(port: int, method: str) -> None:
    assert request(port, "/night.html", method)[0] == 501
