"""`yarus prune` as it is typed: what is an age, and what is refused before anything goes."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.command_line import here
from yarus.db.errors import InputError
from yarus.deployments.upkeep.prune import age


@pytest.mark.parametrize(("given", "days"), [("90d", 90), ("2w", 14), ("36h", 1.5), ("0d", 0)])
def test_ages(given: str, days: float) -> None:
    assert age(given) == timedelta(days=days)


@pytest.mark.parametrize("given", ["90", "d", "-1d", "1.5d", "90 days", "", "999999d"])
def test_what_is_no_age(given: str) -> None:
    with pytest.raises(InputError, match="for example 90d"):
        age(given)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--user", "1"),
        ("--source", "sample"),
        ("--user", "1", "--source", "sample", "--older-than", "1d"),
        ("--keep-last", "3", "--calls"),
        ("--older-than", "90d", "--json"),
        ("--older-than", "90"),
        ("--older-than", "90d", "--gate", "absent.toml", "--dry-run"),
        ("--user", "1", "--source", "samlpe", "--dry-run"),
    ],
)
def test_what_it_refuses(at_home: Path, words: tuple[str, ...]) -> None:
    ran = here("prune", *words)
    assert ran.code == 2
    assert ran.err.strip()
    assert "Traceback" not in ran.err
