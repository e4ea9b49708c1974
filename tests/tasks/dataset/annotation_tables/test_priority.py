"""Order of questions in an annotation file, and the reasons for it."""

from pathlib import Path

import pytest

from tests.support.evaluations import evaluate, load, question
from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation_tables import spreadsheets
from yarus.tasks.dataset.annotation_tables.candidates import labelling_priority
from yarus.tasks.dataset.annotation_tables.columns import COLUMNS
from yarus.tasks.dataset.annotation_tables.round_trip import export_annotation_file


def test_export_starts_with_unmeasured_questions(source: str, tmp_path: Path) -> None:
    """Questions that an evaluation could not measure come before correct ones, with the reason."""
    name = load(tmp_path, "ranked_first", [question(i, **({"relevant_chunk_ids": None} if i in (4, 8) else {}))
                                           for i in range(10)])  # fmt: skip
    evaluated = evaluate("tier1", source=name)
    document = export_annotation_file(tmp_path / "out.csv", name, [evaluated["evaluation_id"]], limit=3)
    _, lines = spreadsheets.read_table(tmp_path / "out.csv")
    positions = {column: position for position, column in enumerate(COLUMNS)}
    assert document["questions"] == 3
    assert [cells[0].text for _, cells in lines] == ["4", "8", "0"]
    assert [cells[positions["why"]].text for _, cells in lines] == ["нет разметки 0.5", "нет разметки 0.5", ""]
    assert "[c0] Правило 0 велит" in lines[2][1][positions["retrieved"]].text
    with pytest.raises(InputError, match=f"источник этого прогона — '{name}', а не '{source}'"):
        export_annotation_file(tmp_path / "out.csv", source, [evaluated["evaluation_id"]])


def test_labelling_priority_weighs_reasons() -> None:
    assert labelling_priority([{"status": "unlabelled", "relevant": []}], answerable=False) == {}
    assert labelling_priority([{"status": "unlabelled", "relevant": []}], answerable=True) == {"unlabelled": 0.5}
    assert labelling_priority([{"status": "unlabelled", "shown": None}], answerable=False) == {"unlabelled": 0.5}
    assert labelling_priority([]) == {}
    assert labelling_priority([{"status": "ok", "faithfulness": 1.0, "hit_rate@10": 1.0}]) == {}
    assert labelling_priority([{"status": "ok", "e2e_score": 0.5}]) == {"uncertainty": 1.0}
    conflicting_priority = labelling_priority([{"status": "ok", "e2e_score": 1.0}, {"status": "ok", "e2e_score": 0.0}])
    assert conflicting_priority == {"disagreement": 1.0, "failure": 1.0}
    assert labelling_priority([{"status": "sut_error"}]) == {"failure": 1.0}
    assert labelling_priority([{"status": "unlabelled"}]) == {"unlabelled": 0.5}
    assert labelling_priority([{"status": "ok", "decision": True, "shown": False}]) == {"disagreement": 1.0}
    assert labelling_priority([{"status": "ok", "mean_abs_difference": 0.25}]) == {"disagreement": 0.25}
