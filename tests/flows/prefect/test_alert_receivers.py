"""Receivers of webhooks that redirect, send without end or never come to an end, with Prefect's own server."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.command_line import ENGLISH, CommandLine
from tests.support.odd_servers import FLOODS, OK, dripping, says, stranger, whole
from yarus.tasks.models.transport import LARGEST_BYTES

RECEIVERS = {
    "a body without end": (FLOODS["a body without end"], "larger than"),
    "a gzip bomb": (FLOODS["a gzip bomb"], "larger than"),
    "a byte now and then": (dripping(OK + b"content-length: 1000\r\n\r\n" + b" " * 1_000), "no reply within 20 s"),
}


@pytest.fixture(scope="module", autouse=True)
def _leaves_nothing(prefect_server: dict[str, str]) -> Iterator[None]:
    """The server is others' too: no automation calls receivers that are gone."""
    yield
    api = prefect_server["PREFECT_API_URL"]
    for made in httpx.post(f"{api}/automations/filter", json={}, timeout=30).json():
        httpx.delete(f"{api}/automations/{made['id']}", timeout=30).raise_for_status()


@pytest.mark.slow("prefect: what a receiver may do to its server")
@pytest.mark.parametrize(
    "name",
    [
        "a body without end",
        pytest.param("a gzip bomb", marks=pytest.mark.slow("breadth: another way to say too much")),
        pytest.param("a byte now and then", marks=pytest.mark.slow("wait: for the limit of a call")),
    ],
)
def test_a_receiver_that_says_too_much_is_given_up(
    name: str, yarus: CommandLine, prefect_server: dict[str, str]
) -> None:
    feed, reason = RECEIVERS[name]
    with stranger(feed) as receiver:
        yarus("alerts", "apply", "--webhook", receiver.url, env=prefect_server)
        refused = yarus("alerts", "test", env=prefect_server | ENGLISH, ok=False)
    assert (refused.code, reason in refused.err) == (2, True), refused.err
    assert receiver.sent < 4 * LARGEST_BYTES


def test_a_receiver_that_redirects_has_got_nothing(yarus: CommandLine, prefect_server: dict[str, str]) -> None:
    with stranger(says("thank you")) as elsewhere:
        moved = b"HTTP/1.1 307 Moved\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n" % elsewhere.url.encode()
        with stranger(lambda: iter([moved])) as receiver:
            yarus("alerts", "apply", "--webhook", receiver.url, "--header", "X-Key=t0p-s3cret", env=prefect_server)
            refused = yarus("alerts", "test", env=prefect_server | ENGLISH, ok=False)
    assert (refused.code, "307; redirects are not followed" in refused.err) == (2, True), refused.err
    assert (len(receiver.heads), elsewhere.heads) == (1, [])


@pytest.mark.slow("prefect: what a receiver may do to its server")
def test_what_a_receiver_says_is_not_kept(yarus: CommandLine, prefect_server: dict[str, str]) -> None:
    """It may repeat what it was sent, with its secret."""
    with stranger(lambda: iter([whole(b"your key is t0p-s3cret", b"x-key: t0p-s3cret")])) as receiver:
        yarus("alerts", "apply", "--webhook", receiver.url, "--header", "X-Key=t0p-s3cret", env=prefect_server)
        assert "200" in yarus("alerts", "test", env=prefect_server).out
    events = httpx.post(f"{prefect_server['PREFECT_API_URL']}/events/filter", json={"limit": 50}, timeout=30)
    assert "call-webhook" in events.text
    assert "s3cret" not in events.text
