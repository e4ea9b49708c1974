"""What tests of nights share."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluation_history import History


@pytest.fixture
def history(engine: Engine, at_home: Path, tmp_path: Path) -> History:
    return History(engine, tmp_path)
