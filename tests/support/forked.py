"""Fork commands from a process that has imported everything, which saves seconds of imports per command.

They have streams, signals and exit codes of their own. They cannot show how Python starts. Imported by full name.
"""

import atexit
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from yarus import flows

ROOT = Path(__file__).parents[2]
PRELOADED = "tests.support.preloaded"
MAX_WAIT_S = 240
WITHOUT_PREFECT = {"runs", "show", "cases", "compare", "gate", "trend", "report", "export", "load"}
"""Commands that do not use Prefect, as `tests/flows/cli/framework/test_imports.py` checks."""
FLOWS = {"run", "sweep", "robustness"}
"""Commands that read Prefect's settings themselves, which takes 0.15 s."""


class CommandResult(NamedTuple):
    """Streams and exit code of a finished command."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Any:
        """Return the one document on stdout."""
        return json.loads(self.out)


class ForkedCommand:
    """A running `yarus` command."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        script: str | None = None,
        streams: Sequence[int] = (),
    ) -> None:
        self._files = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]  # noqa: SIM115 - `ran` closes them
        context = multiprocessing.get_context("forkserver")
        with pytest.MonkeyPatch.context() as patch:  # imports there must not depend on this test or its folder
            patch.chdir(ROOT)
            for name in [name for name in os.environ if name.startswith(("YARUS_", "PREFECT_", "PG"))]:
                patch.delenv(name)
            forkserver.set_forkserver_preload([PRELOADED])
            forkserver.ensure_running()
        descriptors = streams or [file.fileno() for file in self._files]
        connections = [
            Connection(os.dup(descriptor)) for descriptor in descriptors
        ]  # multiprocessing passes connections on, but not files
        arguments = (connections, list(words), dict(environment), str(folder), script)
        self._process = context.Process(target=_run, args=arguments)
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    def is_running(self) -> bool:
        return self._process.is_alive()

    def signal(self, number: int) -> None:
        """Send a signal, if the process still runs."""
        if self.is_running():
            os.kill(self.pid, number)

    def ran(self) -> CommandResult:
        """Wait for the end, at most MAX_WAIT_S, and return the result."""
        try:
            self._process.join(MAX_WAIT_S)
        finally:
            code = self._process.exitcode
            self._process.kill()
            self._process.join()
        texts = []
        for file in self._files:
            with file:
                file.seek(0)
                texts.append(file.read())
        out, err = texts
        assert code is not None, f"no end after {MAX_WAIT_S} s\n{err}\n{out}"
        return CommandResult(out, err, code)


def _run(
    streams: list[Any], words: list[str], environment: dict[str, str], folder: str, script: str | None
) -> NoReturn:
    """Run as `python -m yarus`, or `python -c` with that script, except for the imports."""
    for number, stream in enumerate(streams, 1):
        os.dup2(stream.fileno(), number)
        stream.close()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["yarus", *words]
    assert PRELOADED in sys.modules
    importlib.reload(flows)  # sets the variables that Prefect reads
    from prefect.context import refresh_global_settings_context

    from yarus.__main__ import main

    if not words or words[0] not in WITHOUT_PREFECT | FLOWS:
        refresh_global_settings_context()
    code = 1
    try:
        if script is None:
            main()
        else:
            exec(script, {"__name__": "__main__"})  # noqa: S102 - as `python -c` does
        code = 0
    except SystemExit as exit_request:
        code = exit_request.code if isinstance(exit_request.code, int) else int(exit_request.code is not None)
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
