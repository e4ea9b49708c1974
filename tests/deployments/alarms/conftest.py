"""Fixtures for tests of nights."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import NightHistory


@pytest.fixture
def history(engine: Engine, at_home: Path, tmp_path: Path) -> NightHistory:
    return NightHistory(engine, tmp_path)
