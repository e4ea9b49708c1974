"""Commands in processes that are forked from one which has imported everything: each saves seconds of imports.

They are processes like others: with streams, signals and exit codes of their own. What they cannot show is how Python
starts. Imported by full name.
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
LONGEST_S = 240
WITHOUT_PREFECT = {"runs", "show", "cases", "compare", "gate", "trend", "report", "export", "load"}
"""Commands that use no Prefect, as `tests/flows/cli/shell/test_imports.py` sees."""
FLOWS = {"run", "sweep", "robustness"}
"""Commands that read Prefect's settings themselves, which takes 0.15 s."""


class Ran(NamedTuple):
    """What a command left: its streams and its exit code."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


class Forked:
    """`yarus`, at work."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        script: str | None = None,
        streams: Sequence[int] = (),
    ) -> None:
        self._kept = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]  # noqa: SIM115 - `ran` closes them
        context = multiprocessing.get_context("forkserver")
        with pytest.MonkeyPatch.context() as patch:  # what is imported there heeds neither this test nor its folder
            patch.chdir(ROOT)
            for name in [name for name in os.environ if name.startswith(("YARUS_", "PREFECT_", "PG"))]:
                patch.delenv(name)
            forkserver.set_forkserver_preload([PRELOADED])
            forkserver.ensure_running()
        numbers = streams or [file.fileno() for file in self._kept]
        passed = [
            Connection(os.dup(number)) for number in numbers
        ]  # which multiprocessing hands on, as files it does not
        given = (passed, list(words), dict(environment), str(folder), script)
        self._process = context.Process(target=_run, args=given)
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    def is_running(self) -> bool:
        return self._process.is_alive()

    def signal(self, number: int) -> None:
        """Sends it a signal, if it is still there."""
        if self.is_running():
            os.kill(self.pid, number)

    def ran(self) -> Ran:
        """Waits for its end, at most so long."""
        try:
            self._process.join(LONGEST_S)
        finally:
            code = self._process.exitcode
            self._process.kill()
            self._process.join()
        texts = []
        for file in self._kept:
            with file:
                file.seek(0)
                texts.append(file.read())
        out, err = texts
        assert code is not None, f"no end after {LONGEST_S} s\n{err}\n{out}"
        return Ran(out, err, code)


def _run(
    streams: list[Any], words: list[str], environment: dict[str, str], folder: str, script: str | None
) -> NoReturn:
    """As `python -m yarus`, or `python -c` that script, does, but for the imports."""
    for number, stream in enumerate(streams, 1):
        os.dup2(stream.fileno(), number)
        stream.close()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["yarus", *words]
    assert PRELOADED in sys.modules
    importlib.reload(flows)  # which puts into the environment what Prefect is to find there
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
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
