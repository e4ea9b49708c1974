"""Who is let into the Prefect server of a home: the password, and where it is sent."""

import os
import threading
from pathlib import Path

import pytest

from yarus.db.errors import InputError
from yarus.deployments.prefect.server_access import kept, link, password_for, past_proxies

EVERYWHERE = "0.0.0.0"  # noqa: S104
API = "http://127.0.0.1:4200/api"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of this machine, and no `.env`."""
    monkeypatch.chdir(tmp_path)
    for name in ("PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_password_is_made_once_and_read_by_its_owner_only(tmp_path: Path) -> None:
    made = password_for(tmp_path, "127.0.0.1")
    assert made is not None
    assert len(made) > 40
    assert password_for(tmp_path, EVERYWHERE) == made
    [file] = (tmp_path / "prefect").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_others_could_read_is_closed(tmp_path: Path) -> None:
    kept(tmp_path)
    (tmp_path / "prefect" / "password").chmod(0o644)
    kept(tmp_path)
    assert (tmp_path / "prefect" / "password").stat().st_mode & 0o777 == 0o600


def test_starts_at_once_agree_on_one_password(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(kept(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found))) == (8, 1)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    kept(tmp_path)
    (tmp_path / "prefect" / "password").write_text("\n")
    with pytest.raises(InputError, match="remove it"):
        kept(tmp_path)


def test_the_password_of_ones_own_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PREFECT_SERVER_API_AUTH_STRING=me:mine\n")
    assert password_for(tmp_path, EVERYWHERE) == "me:mine"
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "me:other")
    assert password_for(tmp_path, EVERYWHERE) == "me:other"
    assert not (tmp_path / "prefect").exists()


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.0.2.1", "yarus.example"])
def test_nobody_serves_others_without_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "")
    with pytest.raises(InputError, match=f"--host {host}"):
        password_for(tmp_path, host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_on_the_loopback_one_may_go_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "")
    assert password_for(tmp_path, host) is None


def test_a_link_keeps_the_password_from_servers_and_logs() -> None:
    assert link("http://127.0.0.1:4200", "me:a b#c") == "http://127.0.0.1:4200/enter#me:a%20b%23c"
    assert link("http://127.0.0.1:4200", None) == "http://127.0.0.1:4200"


def test_our_own_server_is_not_reached_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "intranet.example")
    for _ in range(2):
        past_proxies(API)
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "intranet.example,127.0.0.1:4200"
    past_proxies("http://prefect.example:4200/api")
    assert "prefect" not in os.environ["no_proxy"]
