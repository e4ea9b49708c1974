"""Bots of the user's code for tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bots import USER_CODES, WriteBot


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteBot]:
    """Return a function that writes a bot into the current folder and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(code: str, name: str = "bot") -> str:
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        return f"{name}:answer"

    yield write
    USER_CODES.close()


@pytest.fixture
def pypy() -> str:
    if (executable := shutil.which("pypy3")) is None:
        pytest.skip("needs another Python: apt-get install pypy3 pypy3-venv")
    return executable
