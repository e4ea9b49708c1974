"""A fixture that fails a test if an evaluation does not pass its gate; pytest finds this plugin by itself."""

import os
from collections.abc import Callable

import pytest

import yarus


def assert_gate(
    evaluation: str = "last",
    *,
    baseline: str | None = None,
    file: str | os.PathLike[str] | None = None,
    strict: bool = False,
) -> None:
    """Fail if `yarus gate` would, and report every rule with the reasons of its verdict.

    Args:
        evaluation: its id, the beginning or end of it, its name, or `last`.
        baseline: in place of the accepted one; `previous` for the evaluation before.
        file: with the rules; default: gate.toml in the current folder, else the rules that hold without one.
        strict: fail also if too few cases were measured to decide.

    Raises:
        AssertionError: the gate is not passed.
        pytest.fail.Exception: no such evaluation, baseline or file.
    """
    __tracebackhide__ = True
    from yarus.db.errors import InputError
    from yarus.flows.terminal.comparisons.gate import list_gate_lines, should_fail
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts.messages import told

    try:
        result = yarus.gate(evaluation, baseline=baseline, file=file)
    except InputError as error:
        pytest.fail(f"yarus gate: {told(error, get_settings().language)}", pytrace=False)
    if should_fail(result, strict=strict):
        raise AssertionError("\n".join(list_gate_lines(result, get_settings().language)))


@pytest.fixture(name="assert_gate", scope="session")
def _assert_gate() -> Callable[..., None]:
    """Fail a test if an evaluation does not pass its gate: `assert_gate("last", strict=True)`."""
    return assert_gate
