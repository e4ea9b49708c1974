"""Run many examples in one test: drawn by Hypothesis, or written down."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings

EVERYDAY = "everyday"
"""Hypothesis profile that draws a quarter of the examples of make test-all."""


def get_example_count(thorough: int) -> int:
    """Return how many examples to draw now, given the number for make test-all."""
    return thorough // 4 if settings.get_current_profile_name() == EVERYDAY else thorough


def for_all(names: str, examples: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrise a test like `pytest.mark.parametrize`, but run all examples in one test.

    pytest-xdist needs 3 ms per test. All failures are raised together.

    Example:
        >>> @for_all("number, square", [(2, 4), (3, 9)])
        ... def test_square(number: int, square: int) -> None:
        ...     assert number**2 == square
        >>> test_square()
    """
    parameters = names.split(", ")
    cases = [dict(zip(parameters, case if len(parameters) > 1 else [case], strict=True)) for case in examples]
    assert cases, f"no examples of {names}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for case in cases:
                try:
                    test(**case, **fixtures)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - raised below
                    failure.add_note(f"with {case}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} examples", failures)

        signature = inspect.signature(test)
        fixtures_only = [parameter for name, parameter in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=fixtures_only)  # type: ignore[attr-defined]
        return run

    return decorate
