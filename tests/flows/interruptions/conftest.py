"""An evaluation that takes its time, so that it can be interrupted, and what it comes to undisturbed."""

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, Document
from tests.support.interrupted import Server, variables

SAMPLE = ("--limit", "150")
SLUGGISH = """
import os, time, zlib
def retrieve(question, k):
    time.sleep(float(os.environ["SLUGGISH_S"]))
    start = zlib.crc32(question.encode()) % 90
    return [(str(number), rank) for rank, number in enumerate(range(start, start + k))]
"""


@pytest.fixture(scope="session")
def sluggish(home: Path) -> tuple[str, ...]:
    """Words of an evaluation by a retriever that takes SLUGGISH_S for a question."""
    (home / "sluggish.py").write_text(SLUGGISH, encoding="utf-8")
    return ("run", "tier1", *SAMPLE, "--retriever", "sluggish:retrieve", "--json")


@pytest.fixture(scope="session")
def undisturbed(yarus: CommandLine, sluggish: tuple[str, ...], prefect_server: Server) -> Document:
    return yarus(*sluggish, env=variables(prefect_server)).json
