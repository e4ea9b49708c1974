"""The guard: which requests are answered, by Host and Origin, and passwords."""

from base64 import b64encode

import pytest

from yarus.deployments.request_guard import PageAuth, allowed_hosts, refusal_reason

EVERYWHERE = "0.0.0.0"  # noqa: S104
LOOPBACK_NAMES = allowed_hosts("127.0.0.1", "")


@pytest.mark.parametrize("host", ["127.0.0.1:4200", "localhost:4200", "LOCALHOST", "[::1]:4200", "192.0.2.1"])
def test_refusal_allows_names_of_this_machine(host: str) -> None:
    assert refusal_reason(host, None, LOOPBACK_NAMES, "") is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "evil.example:4200",
        "localhost.evil.example",
        "localhost@evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1x",
        "[::1",
        "[::1].evil.example",
        "a" * 70_000,
        "\x00",
    ],
)
def test_refusal_rejects_other_names(host: str | None) -> None:
    assert "YARUS_SERVE_ALLOWED_HOSTS" in (refusal_reason(host, None, LOOPBACK_NAMES, "") or "")


@pytest.mark.parametrize(
    "origin",
    ["http://127.0.0.1:9999", "http://localhost:4200", "https://evil.example", "null", "", "127.0.0.1:4200", "file://"],
)
def test_refusal_rejects_other_origins(origin: str) -> None:
    assert "another server" in (refusal_reason("127.0.0.1:4200", origin, LOOPBACK_NAMES, "") or "")


def test_refusal_allows_our_own_pages() -> None:
    assert refusal_reason("127.0.0.1:4200", "http://127.0.0.1:4200", LOOPBACK_NAMES, "") is None
    assert refusal_reason("localhost", "http://localhost:80", LOOPBACK_NAMES, "") is None


def test_refusal_allows_names_of_a_proxy() -> None:
    further = "yarus.example, Other.example:8443"
    allowed = allowed_hosts("127.0.0.1", further)
    assert refusal_reason("yarus.example", "https://yarus.example", allowed, further) is None
    assert refusal_reason("127.0.0.1:4200", "https://yarus.example", allowed, further) is None  # it changes Host
    assert refusal_reason("127.0.0.1:4200", "https://other.example:8443", allowed, further) is None
    assert refusal_reason("127.0.0.1:4200", "https://yarus.example:8443", allowed, further) is not None


def test_allowed_hosts_include_hostname_on_all_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Night-Watch")
    assert refusal_reason("night-watch:4200", None, allowed_hosts(EVERYWHERE, ""), "") is None
    assert refusal_reason("night-watch:4200", None, LOOPBACK_NAMES, "") is not None


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


def test_page_auth_allows_password_or_cookie() -> None:
    auth = PageAuth("yarus:s3cret")
    cookie = auth.cookie.partition(";")[0]
    assert auth.allows(None, basic("yarus:s3cret"))
    assert auth.allows(f"other=1; {cookie}", None)
    assert "s3cret" not in auth.cookie


@pytest.mark.parametrize("cookies", [None, "", "yarus=1", ";;=;", "yarus-\x00", "a" * 5000, "ё=ё"])
@pytest.mark.parametrize(
    "authorization", [None, "", "Basic", "Basic ё", "Basic !", "Bearer yarus:s3cret", basic("a:b")]
)
def test_page_auth_rejects_other_credentials(cookies: str | None, authorization: str | None) -> None:
    assert not PageAuth("yarus:s3cret").allows(cookies, authorization)


def test_page_auth_rejects_cookie_of_another_password() -> None:
    other_cookie = PageAuth("yarus:old").cookie.partition(";")[0]
    assert not PageAuth("yarus:s3cret").allows(other_cookie, None)
    name = PageAuth("yarus:s3cret").cookie.partition("=")[0]
    assert not PageAuth("yarus:s3cret").allows(f"{name}=ё", None)
