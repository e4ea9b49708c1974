"""Store how long tests took, and report which were left out. Imported by `tests/conftest.py`."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

DURATIONS_FILE = Path(__file__).parents[1] / "durations.json"
"""Seconds of each test that took one or more, without shared fixtures; --keep-durations updates them."""
LONGEST_EVERYDAY_S = 8
KINDS = ("process", "browser", "prefect", "simulation", "model", "wait", "breadth")
COLLECTED = pytest.StashKey[list[pytest.Item]]()


def read_durations() -> dict[str, float]:
    """Return seconds by test."""
    seconds: dict[str, float] = json.loads(DURATIONS_FILE.read_text(encoding="utf-8"))
    return seconds


def get_slow_reasons(item: pytest.Item) -> list[str]:
    """Return why a test runs only in `make test-all`; empty if it runs every day."""
    return [str(mark.args[0]) if mark.args else "" for mark in item.iter_markers("slow")]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-durations", action="store_true", help=f"keep what tests take in {DURATIONS_FILE.name}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember all collected tests before any is deselected."""
    config.stash[COLLECTED] = list(items)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    slow = ["what is marked slow, which make test-all runs"] if config.option.markexpr == "not slow" else []
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    if omitted := slow + [f"{n} tests: {reason}" for reason, n in reasons.items()]:
        terminalreporter.write_line("Left out: " + "; ".join(omitted))
    if config.getoption("--keep-durations"):
        durations = Counter[str]()
        for report in (stat for reports in terminalreporter.stats.values() for stat in reports):
            if getattr(report, "when", None) == "call":
                durations[report.nodeid] += report.duration
        seconds = read_durations() | {test: round(duration, 1) for test, duration in durations.items()}
        long_tests = {test: duration for test, duration in sorted(seconds.items()) if duration >= 1}
        DURATIONS_FILE.write_text(json.dumps(long_tests, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
