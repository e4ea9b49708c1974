"""Which questions an annotator sees first, and why."""

from pathlib import Path

import pytest

from tests.support.evaluations import evaluate, load, question
from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation import spreadsheets
from yarus.tasks.dataset.annotation.candidates import priority
from yarus.tasks.dataset.annotation.columns import COLUMNS
from yarus.tasks.dataset.annotation.round_trip import export


def test_what_teaches_most_comes_first(source: str, tmp_path: Path) -> None:
    """Questions that an evaluation could not measure stand before those that it found right, with the reason said."""
    name = load(tmp_path, "ranked_first", [question(i, **({"relevant_chunk_ids": None} if i in (4, 8) else {}))
                                           for i in range(10)])  # fmt: skip
    ran = evaluate("tier1", source=name)
    document = export(tmp_path / "out.csv", name, [ran["evaluation_id"]], limit=3)
    _, lines = spreadsheets.read(tmp_path / "out.csv")
    at = {column: place for place, column in enumerate(COLUMNS)}
    assert document["questions"] == 3
    assert [cells[0].text for _, cells in lines] == ["4", "8", "0"]
    assert [cells[at["why"]].text for _, cells in lines] == ["нет разметки 0.5", "нет разметки 0.5", ""]
    assert "[c0] Правило 0 велит" in lines[2][1][at["retrieved"]].text
    with pytest.raises(InputError, match=f"источник этого прогона — '{name}', а не '{source}'"):
        export(tmp_path / "out.csv", source, [ran["evaluation_id"]])


def test_priorities() -> None:
    assert priority([{"status": "unlabelled", "relevant": []}], answerable=False) == {}
    assert priority([{"status": "unlabelled", "relevant": []}], answerable=True) == {"unlabelled": 0.5}
    assert priority([{"status": "unlabelled", "shown": None}], answerable=False) == {"unlabelled": 0.5}
    assert priority([]) == {}
    assert priority([{"status": "ok", "faithfulness": 1.0, "hit_rate@10": 1.0}]) == {}
    assert priority([{"status": "ok", "e2e_score": 0.5}]) == {"uncertainty": 1.0}
    apart = priority([{"status": "ok", "e2e_score": 1.0}, {"status": "ok", "e2e_score": 0.0}])
    assert apart == {"disagreement": 1.0, "failure": 1.0}
    assert priority([{"status": "sut_error"}]) == {"failure": 1.0}
    assert priority([{"status": "unlabelled"}]) == {"unlabelled": 0.5}
    assert priority([{"status": "ok", "decision": True, "shown": False}]) == {"disagreement": 1.0}
    assert priority([{"status": "ok", "mean_abs_difference": 0.25}]) == {"disagreement": 0.25}
