"""Check that the tests named in docs/security.md exist. Imported by full name."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security.md").read_text(encoding="utf-8")
NAMED_TESTS = sorted(set(re.findall(r"`((?:\w+/)?test_\w+\.py)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("file", "test"), NAMED_TESTS)
def test_named_test_exists(file: str, test: str) -> None:
    paths = list(TESTS.rglob(file))
    assert len(paths) == 1, f"{file} stands in docs/security.md"
    assert not test or f"def {test}(" in paths[0].read_text(encoding="utf-8")
