"""The report pages: files of one folder and nothing else, whoever asks how."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import free_port
from yarus.deployments.pages.report_server import serving


@pytest.fixture(scope="module")
def port(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Pages of a folder that has a report, a hidden file, and a link that leads out."""
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
    number = free_port()
    with serving(folder, "127.0.0.1", number, None):
        yield number


def asked(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=False)  # as it is: a browser would tidy up the path
    connection.endheaders()
    reply = connection.getresponse()
    text = reply.read().decode("utf-8")
    connection.close()
    return reply.status, text


def test_a_report_is_served(port: int) -> None:
    assert asked(port, "/night.html") == (200, "<h1>Ночь</h1>")
    assert asked(port, "/night.html", "HEAD") == (200, "")


def test_the_first_page_is_the_index_of_all_evaluations(port: int) -> None:
    status, text = asked(port, "/")
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
def test_nothing_else_is(port: int, path: str) -> None:
    status, text = asked(port, path)
    assert status == 404
    assert "s3cret" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_written(port: int, method: str) -> None:
    assert asked(port, "/night.html", method)[0] == 501
