"""A few labels of chunks among labels of pages: what is counted stays, and what follows from them is said."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, question
from yarus.flows.terminal.dataset import print_imported, unit_text
from yarus.tasks.dataset.annotation.round_trip import import_

Make = Callable[..., Path]
BARE = {"ground_truth_answer": None, "relevant_chunk_ids": None, "answerable": None, "origin": None}


@pytest.mark.slow("breadth: three evaluations")
def test_a_few_labels_of_chunks_do_not_flip_the_unit(
    engine: Engine, at_home: Path, tmp_path: Path, filled: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    name = load(tmp_path, "few_chunk_labels", [question(i, **BARE) for i in range(10)])
    before = evaluate("tier1", source=name)
    few = import_(filled(*({"question_id": str(n), "source": name, "relevant": f"c{n}"} for n in range(2))), "a")
    told = {key: few[key] for key in ("unit", "unit_before", "n_labelled", "n_chunks")}
    assert told == {"unit": "page", "unit_before": "page", "n_labelled": 10, "n_chunks": 2}
    after = evaluate("tier1", source=name)
    assert [one["system"]["unit"] for one in (before, after)] == ["page", "page"]
    assert [one["metrics"]["hit_rate@1"]["n_scored"] for one in (before, after)] == [10, 10]
    assert {"note": "chunks as pages", "n": 2, "of": 10} in after["notes"]
    most = import_(filled(*({"question_id": str(n), "source": name, "relevant": f"c{n}"} for n in range(2, 6))), "a")
    assert (most["unit"], most["unit_before"], most["n_chunks"]) == ("chunk", "page", 6)
    print_imported(most, "en")
    said = " ".join(capsys.readouterr().out.split())
    assert "it was --unit page and is --unit chunk now" in said
    assert "6 of 10 labelled questions have them. The other 4, of which only a page is labelled, are left out" in said
    assert {"note": "pages only", "n": 4, "of": 10} in evaluate("tier1", source=name)["notes"]


def test_nothing_is_said_where_labels_are_of_one_kind() -> None:
    assert unit_text("chunk", 10, 10, "ru") == unit_text("page", 10, 0, "ru") == ""
