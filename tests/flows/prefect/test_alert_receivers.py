"""Check webhook receivers that redirect, send without end or never finish, with Prefect's own server."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.command_line import ENGLISH, CommandLine
from tests.support.odd_servers import OK_HEAD, OVERSIZED_FEEDS, make_json_feed, make_slow_feed, open_odd_server, whole
from yarus.tasks.models.transport import MAX_REPLY_BYTES

RECEIVERS = {
    "a body without end": (OVERSIZED_FEEDS["a body without end"], "larger than"),
    "a gzip bomb": (OVERSIZED_FEEDS["a gzip bomb"], "larger than"),
    "a byte now and then": (
        make_slow_feed(OK_HEAD + b"content-length: 1000\r\n\r\n" + b" " * 1_000),
        "no reply within 20 s",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _remove_automations(prefect_server: dict[str, str]) -> Iterator[None]:
    """Remove all automations, because other tests share the server and the receivers are gone."""
    yield
    api = prefect_server["PREFECT_API_URL"]
    for automation in httpx.post(f"{api}/automations/filter", json={}, timeout=30).json():
        httpx.delete(f"{api}/automations/{automation['id']}", timeout=30).raise_for_status()


@pytest.mark.slow("prefect: what a receiver may do to its server")
@pytest.mark.parametrize(
    "name",
    [
        "a body without end",
        pytest.param("a gzip bomb", marks=pytest.mark.slow("breadth: another way to say too much")),
        pytest.param("a byte now and then", marks=pytest.mark.slow("wait: for the limit of a call")),
    ],
)
def test_oversized_reply_is_given_up(name: str, yarus: CommandLine, prefect_server: dict[str, str]) -> None:
    feed, reason = RECEIVERS[name]
    with open_odd_server(feed) as receiver:
        yarus("alerts", "apply", "--webhook", receiver.url, env=prefect_server)
        refusal = yarus("alerts", "test", env=prefect_server | ENGLISH, ok=False)
    assert (refusal.code, reason in refusal.err) == (2, True), refusal.err
    assert receiver.sent < 4 * MAX_REPLY_BYTES


def test_redirect_is_not_followed(yarus: CommandLine, prefect_server: dict[str, str]) -> None:
    with open_odd_server(make_json_feed("thank you")) as target:
        moved = b"HTTP/1.1 307 Moved\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n" % target.url.encode()
        with open_odd_server(lambda: iter([moved])) as receiver:
            yarus("alerts", "apply", "--webhook", receiver.url, "--header", "X-Key=t0p-s3cret", env=prefect_server)
            refusal = yarus("alerts", "test", env=prefect_server | ENGLISH, ok=False)
    assert (refusal.code, "307; redirects are not followed" in refusal.err) == (2, True), refusal.err
    assert (len(receiver.heads), target.heads) == (1, [])


@pytest.mark.slow("prefect: what a receiver may do to its server")
def test_receiver_reply_is_not_stored(yarus: CommandLine, prefect_server: dict[str, str]) -> None:
    """Check that a reply that repeats a secret is not stored."""
    with open_odd_server(lambda: iter([whole(b"your key is t0p-s3cret", b"x-key: t0p-s3cret")])) as receiver:
        yarus("alerts", "apply", "--webhook", receiver.url, "--header", "X-Key=t0p-s3cret", env=prefect_server)
        assert "200" in yarus("alerts", "test", env=prefect_server).out
    events = httpx.post(f"{prefect_server['PREFECT_API_URL']}/events/filter", json={"limit": 50}, timeout=30)
    assert "call-webhook" in events.text
    assert "s3cret" not in events.text
