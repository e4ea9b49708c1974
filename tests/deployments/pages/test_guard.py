"""Which requests Prefect's server and the report pages answer, by Host and Origin."""

from base64 import b64encode

import pytest

from yarus.deployments.guard import Lock, names, refusal

EVERYWHERE = "0.0.0.0"  # noqa: S104
OURS = names("127.0.0.1", "")


@pytest.mark.parametrize("host", ["127.0.0.1:4200", "localhost:4200", "LOCALHOST", "[::1]:4200", "192.0.2.1"])
def test_names_and_numbers_of_this_machine_are_answered(host: str) -> None:
    assert refusal(host, None, OURS, "") is None


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
def test_other_names_are_not(host: str | None) -> None:
    assert "YARUS_SERVE_NAMES" in (refusal(host, None, OURS, "") or "")


@pytest.mark.parametrize(
    "origin",
    ["http://127.0.0.1:9999", "http://localhost:4200", "https://evil.example", "null", "", "127.0.0.1:4200", "file://"],
)
def test_pages_of_others_are_not_answered(origin: str) -> None:
    assert "another server" in (refusal("127.0.0.1:4200", origin, OURS, "") or "")


def test_our_own_pages_are() -> None:
    assert refusal("127.0.0.1:4200", "http://127.0.0.1:4200", OURS, "") is None
    assert refusal("localhost", "http://localhost:80", OURS, "") is None


def test_a_proxy_s_name_is_added_by_a_setting() -> None:
    further = "yarus.example, Other.example:8443"
    known = names("127.0.0.1", further)
    assert refusal("yarus.example", "https://yarus.example", known, further) is None
    assert refusal("127.0.0.1:4200", "https://yarus.example", known, further) is None  # it changes Host
    assert refusal("127.0.0.1:4200", "https://other.example:8443", known, further) is None
    assert refusal("127.0.0.1:4200", "https://yarus.example:8443", known, further) is not None


def test_on_all_networks_the_machine_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Night-Watch")
    assert refusal("night-watch:4200", None, names(EVERYWHERE, ""), "") is None
    assert refusal("night-watch:4200", None, OURS, "") is not None


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


def test_pages_open_to_the_password_or_its_cookie() -> None:
    lock = Lock("yarus:s3cret")
    cookie = lock.cookie.partition(";")[0]
    assert lock.open(None, basic("yarus:s3cret"))
    assert lock.open(f"other=1; {cookie}", None)
    assert "s3cret" not in lock.cookie


@pytest.mark.parametrize("cookies", [None, "", "yarus=1", ";;=;", "yarus-\x00", "a" * 5000, "ё=ё"])
@pytest.mark.parametrize(
    "authorization", [None, "", "Basic", "Basic ё", "Basic !", "Bearer yarus:s3cret", basic("a:b")]
)
def test_and_to_nothing_else(cookies: str | None, authorization: str | None) -> None:
    assert not Lock("yarus:s3cret").open(cookies, authorization)


def test_a_cookie_of_another_password_opens_nothing() -> None:
    other = Lock("yarus:old").cookie.partition(";")[0]
    assert not Lock("yarus:s3cret").open(other, None)
    name = Lock("yarus:s3cret").cookie.partition("=")[0]
    assert not Lock("yarus:s3cret").open(f"{name}=ё", None)
