"""Manage the Prefect server of a home: find a running one, start one if needed, stop it when it is long unused.

Nothing here is heavy: a command starts the server before its own imports, and both get ready at the same time.

    home/prefect/start.lock   mutex: held to look for, start or stop a server
    home/prefect/users.lock   shared lock of every command that uses the server; an exclusive lock means none does
    home/prefect/address      the newest server of the home, which locks it; without a lock, the server has ended
    home/prefect/ending       the same for a server that is ending and cannot be found any more
"""

import fcntl
import json
import os
import signal
import socket
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, Literal, NamedTuple

from dotenv import dotenv_values

from yarus.db.home import make_prefect_database, make_private_folder
from yarus.deployments.prefect import server_access, server_process
from yarus.deployments.prefect.server_process import SQLITE, STOP_S, ServerUnavailable

DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"
API = "PREFECT_API_URL"
NO_SERVER = "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"
ENDING_S = 0.5
"""Longest time in which a process closes its files, from the first to the last."""
StopResult = Literal["stopped", "not running", "in use", "serving"]
_using: dict[Path, int] = {}
"""The lock users.lock by home, held to the end of this process."""


class HomeServer(NamedTuple):
    """A running server."""

    api: str
    pid: int
    versions: str
    """Versions of Prefect and of Yarus."""
    serving: bool
    """Whether it belongs to `yarus serve`, which alone stops it."""
    network: str
    """Network namespace of its address and pid: a container may share the home, but not these."""


def server_environment(home: Path) -> dict[str, str]:
    """Return the environment of Prefect's clients and servers for a home; values that the user has set stay."""
    defaults = {
        DATABASE: f"{SQLITE}{make_prefect_database(home)}",
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "prefect" / "storage"),
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    }
    return {name: value for name, value in defaults.items() if name not in os.environ}


def start_early() -> None:
    """Start the server of the home while the caller imports modules; `join_server` reports errors."""
    with suppress(Exception):
        home = Path(server_access.read_variable("YARUS_HOME") or ".yarus").expanduser().absolute()
        if is_wanted(home):
            join_server(home)


def is_wanted(home: Path) -> bool:
    """Return whether commands use the home's server: no other is set in variables, `.env` or Prefect's profile."""
    is_named = any(server_access.read_variable(name) for name in (API, NO_SERVER))
    return not is_named and API not in _read_profile() and is_shared(home)


def _read_profile() -> dict[str, str]:
    """Return the settings of Prefect's active profile, if there is one."""
    folder = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    with suppress(OSError, tomllib.TOMLDecodeError, KeyError):
        file = Path(os.environ.get("PREFECT_PROFILES_PATH", folder / "profiles.toml"))
        profiles = tomllib.loads(file.read_text(encoding="utf-8"))
        return dict(profiles["profiles"][os.environ.get("PREFECT_PROFILE") or profiles["active"]])
    return {}


def is_shared(home: Path) -> bool:
    """Return whether Prefect's database is that of the home, so that commands can share a server."""
    return server_access.read_variable(DATABASE) in (None, f"{SQLITE}{make_prefect_database(home)}")


def find_server(home: Path) -> HomeServer | None:
    """Return the newest running server of a home, whoever started it; None if none can be reached."""
    with suppress(FileNotFoundError, NotADirectoryError), (home / "prefect" / "address").open(encoding="utf-8") as file:
        if _is_locked(file):
            with suppress(ValueError, TypeError):
                server = HomeServer(**json.load(file))
                return server if server.network == _host_name() else None
    return None


def join_server(home: Path) -> HomeServer:
    """Find or start the server of a home, which then runs at least as long as this process.

    It may not answer yet; its socket already listens, so that clients wait for the answer.

    Args:
        home: `YARUS_HOME`, absolute.

    Raises:
        ServerUnavailable: one of another version is in use, or none can be started.
        OSError: the home cannot be written.
    """
    make_private_folder(home / "prefect", home)
    with _hold_mutex(home):
        server = find_server(home)
        if server is not None and not server.serving and server.versions != _versions():
            if _end_server(home, server) == "in use":
                raise ServerUnavailable(
                    "Prefect's server of {home} was started by another version ({theirs}; this is {ours}) and is in "
                    "use: wait until that command has ended, or use another YARUS_HOME",
                    home=home,
                    theirs=server.versions,
                    ours=_versions(),
                )
            server = None
        _hold_use_lock(home)
        return server or _start_server(home)


def stop_server(home: Path) -> StopResult:
    """Stop the server of a home, unless it is in use or belongs to `yarus serve`, and wait until it has ended."""
    if not (home / "prefect").is_dir():
        return "not running"
    with _hold_mutex(home):
        server = find_server(home)
        stopped: StopResult = "not running" if server is None else _end_server(home, server)
    with suppress(FileNotFoundError), (home / "prefect" / "ending").open(encoding="utf-8") as file:
        if _is_locked(file) and _is_free_in_time(file):
            return "stopped"
    return stopped


def has_ended(home: Path, api: str) -> bool:
    """Return whether the server at that address is no longer the home's, or ends now: its files close one by one."""
    deadline = time.monotonic() + ENDING_S
    while (server := find_server(home)) is not None and server.api == api:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_in_use(home: Path) -> bool:
    """Return whether a command uses the server of a home."""
    with (home / "prefect" / "users.lock").open("a", encoding="utf-8") as file:
        return _is_locked(file, alone=True)


@contextmanager
def announce_server(home: Path, api: str) -> Iterator[None]:
    """Announce our server to other commands of this home during the block.

    The lock of the file ends with this process, even with `kill -9`: whoever takes the port later is not sent anything.
    """
    make_private_folder(home / "prefect", home)
    with _hold_mutex(home), suppress(OSError):
        if server := find_server(home):
            _end_server(home, server)  # left by a command; one in use ends when it is unused
    with _open_address(home) as file:
        _write_address(home, file, HomeServer(api, os.getpid(), _versions(), serving=True, network=_host_name()))
        try:
            yield
        finally:
            hide_server(home, file.fileno())


def server_password(home: Path, api: str) -> str | None:
    """Return the password of the server at an address if it is this home's and runs; it is sent to no other server."""
    server = find_server(home)
    return server_access.stored_password(home) if server and server_access.is_same_address(server.api, api) else None


def is_announced(home: Path, file: int) -> bool:
    """Return whether an open file is still the address of the home: not removed, nor replaced by another server's."""
    with suppress(OSError):
        return os.path.samestat((home / "prefect" / "address").stat(), os.fstat(file))
    return False


def hide_server(home: Path, file: int) -> None:
    """Hide the server whose address the open file is from further commands."""
    if is_announced(home, file):
        with suppress(FileNotFoundError):
            (home / "prefect" / "address").replace(home / "prefect" / "ending")


@contextmanager
def hold_unused(home: Path) -> Iterator[bool]:
    """Yield whether the server is unused; during the block no command can start to use it."""
    with _hold_mutex(home):
        yield not is_in_use(home)


def _start_server(home: Path) -> HomeServer:
    log = home / "prefect" / "server.log"
    password = server_access.stored_password(home)
    with socket.socket() as listener, _open_address(home) as file:
        listener.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        env = {name: value for name, value in dotenv_values(".env").items() if name not in os.environ and value}
        access = server_access.access_settings(api, password)
        variables = env | server_environment(home) | access | server_process.SMALL_SERVER | {"YARUS_HOME": str(home)}
        process = server_process.start(listener, log, variables, address=file.fileno())
        server = HomeServer(api, process.pid, _versions(), serving=False, network=_host_name())
        try:
            _write_address(home, file, server)
        except OSError:
            process.kill()
            process.wait()
            raise
    process.returncode = 0  # it outlives this process on purpose; this prevents a warning of Popen
    return server


def _end_server(home: Path, server: HomeServer) -> StopResult:
    """Stop a server that a command has left running."""
    if server.serving:
        return "serving"
    if is_in_use(home):
        return "in use"
    with (home / "prefect" / "address").open(encoding="utf-8") as file:
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.kill(server.pid, signal_number)
            if _is_free_in_time(file):
                return "stopped"
    raise ServerUnavailable(
        "Prefect's server of {home} (process {pid}) does not end: kill it", home=home, pid=server.pid
    )


def _hold_use_lock(home: Path) -> None:
    if home not in _using:
        _using[home] = os.open(home / "prefect" / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(_using[home], fcntl.LOCK_SH)


@contextmanager
def _open_address(home: Path) -> Iterator[IO[str]]:
    """Open a new locked file, which becomes the address of the home when it is announced."""
    path = home / "prefect" / f".address-{os.getpid()}"
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield file
        finally:
            path.unlink(missing_ok=True)


def _write_address(home: Path, file: IO[str], server: HomeServer) -> None:
    json.dump(server._asdict(), file)
    file.flush()
    Path(file.name).replace(home / "prefect" / "address")


@contextmanager
def _hold_mutex(home: Path) -> Iterator[None]:
    with (home / "prefect" / "start.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_locked(file: IO[str], *, alone: bool = False) -> bool:
    """Return whether others hold an exclusive lock on the file; with `alone`, any lock."""
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def _is_free_in_time(file: IO[str]) -> bool:
    deadline = time.monotonic() + STOP_S
    while (locked := _is_locked(file)) and time.monotonic() <= deadline:
        time.sleep(0.02)
    return not locked


def _host_name() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/net").readlink())
    return socket.gethostname()


def _versions() -> str:
    return f"Prefect {version('prefect')}, Yarus {version('yarus')}"
