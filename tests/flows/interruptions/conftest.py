"""A slow evaluation that can be interrupted, and its undisturbed result."""

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, Document
from tests.support.interrupted import Server, add_delay

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
    """Return the arguments of an evaluation whose retriever takes SLUGGISH_S per question."""
    (home / "sluggish.py").write_text(SLUGGISH, encoding="utf-8")
    return ("run", "tier1", *SAMPLE, "--retriever", "sluggish:retrieve", "--json")


@pytest.fixture(scope="session")
def undisturbed(yarus: CommandLine, sluggish: tuple[str, ...], prefect_server: Server) -> Document:
    return yarus(*sluggish, env=add_delay(prefect_server)).json
