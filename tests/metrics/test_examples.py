"""Every public function of metrics/ has examples that run, and names the rows of the table that it computes."""

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.support.examples import for_all
from yarus import metrics
from yarus.metrics.table import METRICS, Metric

MODULES = [importlib.import_module(name) for _, name, _ in pkgutil.walk_packages(metrics.__path__, "yarus.metrics.")]
FUNCTIONS = sorted({row.function for row in METRICS.values() if row.function})

SIMULATES = "yarus.metrics.statistics.change_detection.expectation"


def public_functions(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """Yield the public functions defined in the module."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            yield value


def stored_as(function: Callable[..., Any]) -> tuple[list[str], str] | None:
    """Return the rows that a docstring names, and their file."""
    match = re.search(
        r"^Stored as: (.*?)\((metrics/table/[\w/]+\.py)\)\.$", inspect.getdoc(function) or "", re.M | re.S
    )
    return (re.findall(r"`([^`]+)`", match[1]), match[2]) if match else None


@for_all("module", [module for module in MODULES if module.__name__ != SIMULATES])
def test_examples_run(module: ModuleType) -> None:
    _check_examples(module)


@pytest.mark.slow("simulation: what to expect of alarms is tried out")
def test_simulating_examples_run() -> None:
    _check_examples(importlib.import_module(SIMULATES))


def _check_examples(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0
    without = [function.__name__ for function in public_functions(module) if ">>> " not in (function.__doc__ or "")]
    assert not without, "a public function needs an example"


@for_all("name", FUNCTIONS)
def test_functions_and_rows_name_each_other(name: str) -> None:
    module, function = name.split(".")
    rows = [row.name for row in METRICS.values() if row.function == name]
    stored = stored_as(getattr(importlib.import_module(f"yarus.metrics.{module}"), function))
    assert stored, f"the docstring of yarus.metrics.{name} needs a line 'Stored as: {', '.join(rows)}'"
    names, path = stored
    assert names == rows
    table = vars(importlib.import_module(f"yarus.{path.removesuffix('.py').replace('/', '.')}"))
    tuples = (value for value in table.values() if isinstance(value, tuple))
    assert set(rows) <= {row.name for family in tuples for row in family if isinstance(row, Metric)}


def test_no_other_function_names_rows() -> None:
    naming = [function.__name__ for module in MODULES for function in public_functions(module) if stored_as(function)]
    assert sorted(naming) == sorted(name.split(".")[1] for name in FUNCTIONS)
