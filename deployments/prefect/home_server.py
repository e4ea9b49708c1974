"""The Prefect server of a home: found where one runs, started where none does, ended when it was long out of use.

Nothing here is heavy: a command starts the server before its own imports, and both get ready at the same time.

    home/prefect/start.lock   mutex: whoever looks for, starts or ends a server holds it
    home/prefect/users.lock   shared lock of every command that uses the server; who gets it alone knows that none does
    home/prefect/address      the newest server of the home; locked by it, so that one that is gone is known for gone
    home/prefect/ending       the same of one that ends and is found no more
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

from yarus.db.home import make, prefect_database
from yarus.deployments.prefect import server_access, server_process
from yarus.deployments.prefect.server_process import SQLITE, STOP_S, ServerUnavailable

DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"
API = "PREFECT_API_URL"
NO_SERVER = "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"
ENDING_S = 0.5
"""From the moment that a process closes the first of its files until it has closed the last, at most."""
Stopped = Literal["stopped", "not running", "in use", "serving"]
_using: dict[Path, int] = {}
"""users.lock by home, held to the end of this process."""


class HomeServer(NamedTuple):
    """A server that runs."""

    api: str
    pid: int
    versions: str
    """Of Prefect and of Yarus."""
    serving: bool
    """Whether it belongs to `yarus serve`, which alone ends it."""
    network: str
    """Where its address and its pid hold: a container may share the home, and neither of them."""


def server_environment(home: Path) -> dict[str, str]:
    """What Prefect's clients and servers at a home go by; what the user has set stays."""
    ours = {
        DATABASE: f"{SQLITE}{prefect_database(home)}",
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "prefect" / "storage"),
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    }
    return {name: value for name, value in ours.items() if name not in os.environ}


def begin() -> None:
    """Has the server of the home start while the caller imports what it needs; whatever is wrong is said by `join`."""
    with suppress(Exception):
        home = Path(server_access.given("YARUS_HOME") or ".yarus").expanduser().absolute()
        if is_wanted(home):
            join(home)


def is_wanted(home: Path) -> bool:
    """Whether commands go by the server of their home: none is named, here, in `.env` or in Prefect's profile."""
    named = any(server_access.given(name) for name in (API, NO_SERVER))
    return not named and API not in _profile() and is_shared(home)


def _profile() -> dict[str, str]:
    """The settings of Prefect's active profile, where there is one."""
    folder = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    with suppress(OSError, tomllib.TOMLDecodeError, KeyError):
        file = Path(os.environ.get("PREFECT_PROFILES_PATH", folder / "profiles.toml"))
        found = tomllib.loads(file.read_text(encoding="utf-8"))
        return dict(found["profiles"][os.environ.get("PREFECT_PROFILE") or found["active"]])
    return {}


def is_shared(home: Path) -> bool:
    """Whether Prefect's database is the one of the home, so that its commands can share a server."""
    return server_access.given(DATABASE) in (None, f"{SQLITE}{prefect_database(home)}")


def running(home: Path) -> HomeServer | None:
    """The newest server of a home that runs, whoever started it; None where there is none that can be reached."""
    with suppress(FileNotFoundError, NotADirectoryError), (home / "prefect" / "address").open(encoding="utf-8") as file:
        if _is_locked(file):
            with suppress(ValueError, TypeError):
                found = HomeServer(**json.load(file))
                return found if found.network == _network() else None
    return None


def join(home: Path) -> HomeServer:
    """Finds or starts the server of a home, which then stays at least as long as this process.

    It may not answer yet; its socket listens already, so that whoever asks waits for the answer.

    Args:
        home: `YARUS_HOME`, absolute.

    Raises:
        ServerUnavailable: there is one of another version and in use, or none can be started.
        OSError: the home cannot be written.
    """
    make(home / "prefect", home)
    with _mutex(home):
        found = running(home)
        if found is not None and not found.serving and found.versions != _versions():
            if _end(home, found) == "in use":
                raise ServerUnavailable(
                    "Prefect's server of {home} was started by another version ({theirs}; this is {ours}) and is in "
                    "use: wait until that command has ended, or use another YARUS_HOME",
                    home=home,
                    theirs=found.versions,
                    ours=_versions(),
                )
            found = None
        _use(home)
        return found or _start(home)


def stop(home: Path) -> Stopped:
    """Ends the server of a home, unless it is in use or belongs to `yarus serve`, and waits until it has ended."""
    if not (home / "prefect").is_dir():
        return "not running"
    with _mutex(home):
        found = running(home)
        stopped: Stopped = "not running" if found is None else _end(home, found)
    with suppress(FileNotFoundError), (home / "prefect" / "ending").open(encoding="utf-8") as file:
        if _is_locked(file) and _is_free_in_time(file):
            return "stopped"
    return stopped


def has_ended(home: Path, api: str) -> bool:
    """Whether the server at that address is no longer the home's, or ends just now: its files close one by one."""
    deadline = time.monotonic() + ENDING_S
    while (found := running(home)) is not None and found.api == api:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def in_use(home: Path) -> bool:
    """Whether a command uses the server of a home."""
    with (home / "prefect" / "users.lock").open("a", encoding="utf-8") as file:
        return _is_locked(file, alone=True)


@contextmanager
def announced(home: Path, api: str) -> Iterator[None]:
    """Tells other commands of this home, while the block lasts, of the server that we run.

    The lock of the file ends with us, even by `kill -9`: whoever takes the port after that is told nothing.
    """
    make(home / "prefect", home)
    with _mutex(home), suppress(OSError):
        if found := running(home):
            _end(home, found)  # one that a command has left behind; one in use goes when it is not
    with _address(home) as file:
        _announce(home, file, HomeServer(api, os.getpid(), _versions(), serving=True, network=_network()))
        try:
            yield
        finally:
            withdraw(home, file.fileno())


def password_of(home: Path, api: str) -> str | None:
    """The password of the server at an address, where it is this home's own and runs; it is sent to no other."""
    found = running(home)
    return server_access.kept(home) if found and server_access.same(found.api, api) else None


def is_announced(home: Path, file: int) -> bool:
    """Whether an open file is the address of the home: not removed with it, nor replaced by another server's."""
    with suppress(OSError):
        return os.path.samestat((home / "prefect" / "address").stat(), os.fstat(file))
    return False


def withdraw(home: Path, file: int) -> None:
    """Lets no further command find the server whose address the open file is."""
    if is_announced(home, file):
        with suppress(FileNotFoundError):
            (home / "prefect" / "address").replace(home / "prefect" / "ending")


@contextmanager
def unused(home: Path) -> Iterator[bool]:
    """Whether nobody uses the server; while the block lasts nobody begins to."""
    with _mutex(home):
        yield not in_use(home)


def _start(home: Path) -> HomeServer:
    log = home / "prefect" / "server.log"
    password = server_access.kept(home)
    with socket.socket() as listener, _address(home) as file:
        listener.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
        given = {name: value for name, value in dotenv_values(".env").items() if name not in os.environ and value}
        protected = server_access.protection(api, password)
        variables = given | server_environment(home) | protected | server_process.SMALL | {"YARUS_HOME": str(home)}
        process = server_process.start(listener, log, variables, address=file.fileno())
        found = HomeServer(api, process.pid, _versions(), serving=False, network=_network())
        try:
            _announce(home, file, found)
        except OSError:
            process.kill()
            process.wait()
            raise
    process.returncode = 0  # it outlives us on purpose: this keeps Popen from warning about it
    return found


def _end(home: Path, found: HomeServer) -> Stopped:
    """Ends a server that a command has left behind."""
    if found.serving:
        return "serving"
    if in_use(home):
        return "in use"
    with (home / "prefect" / "address").open(encoding="utf-8") as file:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.kill(found.pid, number)
            if _is_free_in_time(file):
                return "stopped"
    raise ServerUnavailable(
        "Prefect's server of {home} (process {pid}) does not end: kill it", home=home, pid=found.pid
    )


def _use(home: Path) -> None:
    if home not in _using:
        _using[home] = os.open(home / "prefect" / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(_using[home], fcntl.LOCK_SH)


@contextmanager
def _address(home: Path) -> Iterator[IO[str]]:
    """A new file, locked, that becomes the address of the home when it is announced."""
    path = home / "prefect" / f".address-{os.getpid()}"
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield file
        finally:
            path.unlink(missing_ok=True)


def _announce(home: Path, file: IO[str], server: HomeServer) -> None:
    json.dump(server._asdict(), file)
    file.flush()
    Path(file.name).replace(home / "prefect" / "address")


@contextmanager
def _mutex(home: Path) -> Iterator[None]:
    with (home / "prefect" / "start.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_locked(file: IO[str], *, alone: bool = False) -> bool:
    """Whether others hold a lock on the file; with `alone` a shared one, too."""
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


def _network() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/net").readlink())
    return socket.gethostname()


def _versions() -> str:
    return f"Prefect {version('prefect')}, Yarus {version('yarus')}"
