"""Default unit with a few chunk labels among page labels, and the message about it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, question
from yarus.flows.terminal.dataset import describe_label_unit, print_imported
from yarus.tasks.dataset.annotation_tables.round_trip import import_annotation_file

WriteFile = Callable[..., Path]
BARE = {"ground_truth_answer": None, "relevant_chunk_ids": None, "answerable": None, "origin": None}


@pytest.mark.slow("breadth: three evaluations")
def test_few_chunk_labels_keep_page_unit(
    engine: Engine, at_home: Path, tmp_path: Path, write_file: WriteFile, capsys: pytest.CaptureFixture[str]
) -> None:
    name = load(tmp_path, "few_chunk_labels", [question(i, **BARE) for i in range(10)])
    before = evaluate("tier1", source=name)
    first_import = import_annotation_file(
        write_file(*({"question_id": str(n), "source": name, "relevant": f"c{n}"} for n in range(2))), "a"
    )
    unit_fields = {key: first_import[key] for key in ("unit", "unit_before", "n_labelled", "n_chunks")}
    assert unit_fields == {"unit": "page", "unit_before": "page", "n_labelled": 10, "n_chunks": 2}
    after = evaluate("tier1", source=name)
    assert [evaluated["system"]["unit"] for evaluated in (before, after)] == ["page", "page"]
    assert [evaluated["metrics"]["hit_rate@1"]["n_scored"] for evaluated in (before, after)] == [10, 10]
    assert {"note": "chunks as pages", "n": 2, "of": 10} in after["notes"]
    second_import = import_annotation_file(
        write_file(*({"question_id": str(n), "source": name, "relevant": f"c{n}"} for n in range(2, 6))), "a"
    )
    assert (second_import["unit"], second_import["unit_before"], second_import["n_chunks"]) == ("chunk", "page", 6)
    print_imported(second_import, "en")
    text = " ".join(capsys.readouterr().out.split())
    assert "changed from --unit page to --unit chunk" in text
    assert "6 of 10 labelled questions have them. The other 4 have only page labels and are left out" in text
    assert {"note": "pages only", "n": 4, "of": 10} in evaluate("tier1", source=name)["notes"]


def test_unit_text_is_empty_for_labels_of_one_kind() -> None:
    assert describe_label_unit("chunk", 10, 10, "ru") == describe_label_unit("page", 10, 0, "ru") == ""
