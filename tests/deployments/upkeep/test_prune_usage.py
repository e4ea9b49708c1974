"""The options of `yarus admin prune`: valid ages, and what is refused before anything is removed."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.command_line import run_here
from yarus.db.errors import InputError
from yarus.deployments.upkeep.prune import parse_age


@pytest.mark.parametrize(("text", "days"), [("90d", 90), ("2w", 14), ("36h", 1.5), ("0d", 0)])
def test_age_parses_units(text: str, days: float) -> None:
    assert parse_age(text) == timedelta(days=days)


@pytest.mark.parametrize("text", ["90", "d", "-1d", "1.5d", "90 days", "", "999999d"])
def test_age_rejects_other_texts(text: str) -> None:
    with pytest.raises(InputError, match="for example 90d"):
        parse_age(text)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--user", "1"),
        ("--source", "sample"),
        ("--user", "1", "--source", "sample", "--older-than", "1d"),
        ("--keep-last", "3", "--replies"),
        ("--older-than", "90d", "--json"),
        ("--older-than", "90"),
        ("--older-than", "90d", "--gate", "absent.toml", "--dry-run"),
        ("--user", "1", "--source", "samlpe", "--dry-run"),
    ],
)
def test_prune_refuses_invalid_options(at_home: Path, words: tuple[str, ...]) -> None:
    finished = run_here("admin", "prune", *words)
    assert finished.code == 2
    assert finished.err.strip()
    assert "Traceback" not in finished.err
