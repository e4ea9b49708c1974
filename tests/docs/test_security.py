"""docs/security.md names a test for each promise: they are there. Imported by full name."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:\w+/)?test_\w+\.py)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_named_test_is_there(file: str, test: str) -> None:
    found = list(TESTS.rglob(file))
    assert len(found) == 1, f"{file} stands in docs/security.md"
    assert not test or f"def {test}(" in found[0].read_text(encoding="utf-8")
