"""Access to the Prefect server of a home: its password, and where it is sent."""

import os
import threading
from pathlib import Path

import pytest

from yarus.db.errors import InputError
from yarus.deployments.prefect.server_access import bypass_proxies, login_link, password_for, stored_password

EVERYWHERE = "0.0.0.0"  # noqa: S104
API = "http://127.0.0.1:4200/api"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove this machine's variables, and use no `.env`."""
    monkeypatch.chdir(tmp_path)
    for name in ("PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_password_for_creates_a_private_password(tmp_path: Path) -> None:
    password = password_for(tmp_path, "127.0.0.1")
    assert password is not None
    assert len(password) > 40
    assert password_for(tmp_path, EVERYWHERE) == password
    [file] = (tmp_path / "prefect").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_stored_password_closes_a_readable_file(tmp_path: Path) -> None:
    stored_password(tmp_path)
    (tmp_path / "prefect" / "password").chmod(0o644)
    stored_password(tmp_path)
    assert (tmp_path / "prefect" / "password").stat().st_mode & 0o777 == 0o600


def test_stored_password_is_one_across_threads(tmp_path: Path) -> None:
    passwords: list[str] = []
    threads = [threading.Thread(target=lambda: passwords.append(stored_password(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(passwords), len(set(passwords))) == (8, 1)


def test_stored_password_names_an_empty_file(tmp_path: Path) -> None:
    stored_password(tmp_path)
    (tmp_path / "prefect" / "password").write_text("\n")
    with pytest.raises(InputError, match="remove it"):
        stored_password(tmp_path)


def test_password_for_prefers_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PREFECT_SERVER_API_AUTH_STRING=me:mine\n")
    assert password_for(tmp_path, EVERYWHERE) == "me:mine"
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "me:other")
    assert password_for(tmp_path, EVERYWHERE) == "me:other"
    assert not (tmp_path / "prefect").exists()


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.0.2.1", "yarus.example"])
def test_password_for_rejects_open_hosts_without_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "")
    with pytest.raises(InputError, match=f"--host {host}"):
        password_for(tmp_path, host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_password_for_may_be_none_on_the_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "")
    assert password_for(tmp_path, host) is None


def test_login_link_has_the_password_in_its_fragment() -> None:
    assert login_link("http://127.0.0.1:4200", "me:a b#c") == "http://127.0.0.1:4200/enter#me:a%20b%23c"
    assert login_link("http://127.0.0.1:4200", None) == "http://127.0.0.1:4200"


def test_bypass_proxies_excludes_servers_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "intranet.example")
    for _ in range(2):
        bypass_proxies(API)
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "intranet.example,127.0.0.1:4200"
    bypass_proxies("http://prefect.example:4200/api")
    assert "prefect" not in os.environ["no_proxy"]
