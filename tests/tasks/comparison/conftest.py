"""Fixtures that store evaluations."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from yarus.db import journal
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.result_files import write_batches

NUMBERS = count()
Plant = Callable[..., str]
N = 60


@pytest.fixture
def plant(engine: Engine, tmp_path: Path) -> Plant:
    """Return a function that writes a finished evaluation into the journal; other columns of the cases are made up."""

    def planted(tier: str = "tier1", n: int = N, **more: Any) -> str:
        name = f"compare-{tmp_path.name}-{next(NUMBERS)}"
        row = {"id": name, "tier": tier, "source": more.pop("source", "planted"), "parameters": {}, "settings": {}}
        journal.open_evaluation(engine, row | {"versions": {}, "sut_label": more.pop("sut_label", None)})
        parts = {"tier": tier, "cases": {"sha256": "c"}, "metrics": [f"mrr|{tier}"]} | more.pop("comparability", {})
        columns = {
            "case_id": [f"planted:{i}" for i in range(n)],
            "question_id": [str(i) for i in range(n)],
            "question": [f"Когда сдают книгу {i}?" for i in range(n)],
            "status": ["ok"] * n,
            "reason": [None] * n,
            "group": [None] * n,
        } | more
        file = tmp_path / f"{name}.parquet"
        write_batches([make_cases(**columns)], file)
        key = json.dumps(parts, sort_keys=True)
        journal.finish_evaluation(
            engine, name, "completed", comparability_key=key, comparability=parts, parquet=str(file)
        )  # type: ignore[arg-type]
        return name

    return planted
