"""What tests took, kept in a file, and which were left out. Imported by `tests/conftest.py`."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

KEPT = Path(__file__).parents[1] / "durations.json"
"""Seconds of each test that took one or more, without what it shares with others, when --keep-durations was given."""
LONGEST_EVERYDAY_S = 8
KINDS = ("process", "browser", "prefect", "simulation", "model", "wait", "breadth")
COLLECTED = pytest.StashKey[list[pytest.Item]]()


def kept() -> dict[str, float]:
    """Seconds by test."""
    seconds: dict[str, float] = json.loads(KEPT.read_text(encoding="utf-8"))
    return seconds


def whys_of(item: pytest.Item) -> list[str]:
    """Why a test is left to `make test-all`; empty for a test of every day."""
    return [str(mark.args[0]) if mark.args else "" for mark in item.iter_markers("slow")]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-durations", action="store_true", help=f"keep what tests take in {KEPT.name}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps what is collected before any is left out."""
    config.stash[COLLECTED] = list(items)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    slow = ["what is marked slow, which make test-all runs"] if config.option.markexpr == "not slow" else []
    whys = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    if left_out := slow + [f"{n} tests: {why}" for why, n in whys.items()]:
        terminalreporter.write_line("Left out: " + "; ".join(left_out))
    if config.getoption("--keep-durations"):
        taken = Counter[str]()
        for report in (one for some in terminalreporter.stats.values() for one in some):
            if getattr(report, "when", None) == "call":
                taken[report.nodeid] += report.duration
        seconds = kept() | {test: round(took, 1) for test, took in taken.items()}
        lasting = {test: took for test, took in sorted(seconds.items()) if took >= 1}
        KEPT.write_text(json.dumps(lasting, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
