"""People label an evaluation: what comes next, what is kept, what is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import Document, evaluate, load, question, rows_of
from tests.tasks.dataset.labelling.labelled import evaluated, judged, models
from yarus.db.errors import InputError
from yarus.db.stores.labels import label as table
from yarus.db.stores.labels import labels_of
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.session import Labelling


@pytest.fixture(scope="module")
def summary(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    with models():
        yield evaluated(tmp_path_factory.mktemp("session"), "label_session", 60)


@pytest.fixture
def labelling(summary: Document, at_home: Path) -> Iterator[Labelling]:
    """Nothing is labelled yet."""
    yield Labelling(database(), summary["evaluation_id"])
    with database().begin() as connection:
        connection.execute(table.delete())


def test_it_goes_on_where_it_was_left(labelling: Labelling, summary: Document) -> None:
    first = labelling.next("anna")
    assert first is not None and first["position"] == 1
    assert first["question"].startswith("Что велит") and first["context"] and first["reference"]
    assert "score" not in str(first)
    score = labelling.save("anna", first["case_id"], 1.0, " ясно ")
    assert score == judged(first["question"])
    again = Labelling(database(), summary["evaluation_id"])
    second = again.next("anna")
    assert second is not None and second["position"] == 2
    assert again.next(" boris ") == first
    (kept,) = labels_of(database(), summary["evaluation_id"])
    assert (kept.annotator, kept.value, kept.note, kept.metric) == ("anna", 1.0, "ясно", "avg_faithfulness")
    assert (kept.score, kept.source, kept.tier) == (score, "label_session", "tier2")
    assert 0 < kept.probability <= 1 <= kept.stratum_size


def test_all_of_them_once_and_then_no_more(labelling: Labelling, summary: Document) -> None:
    seen = []
    while asked := labelling.next("anna"):
        seen.append(asked["case_id"])
        labelling.save("anna", asked["case_id"], None if len(seen) % 4 == 0 else 1.0)
    assert sorted(seen) == sorted(row["case_id"] for row in rows_of(summary) if row["faithfulness"] is not None)
    progress = labelling.progress("anna")
    assert (progress["own"], progress["passed_over"], progress["cases"]) == (45, 15, 60)
    assert progress["labelled"] == 45
    assert labelling.progress("boris")["own"] == 0


def test_undo_takes_back_what_was_said_last(labelling: Labelling) -> None:
    assert labelling.undo("anna") is None
    for _ in range(3):
        asked = labelling.next("anna")
        assert asked is not None
        labelling.save("anna", asked["case_id"], 0.5, "сомневаюсь")
    labelling.save("boris", asked["case_id"], 1.0)
    gone = labelling.undo("anna")
    assert gone == asked | {"value": 0.5, "note": "сомневаюсь"}
    assert labelling.next("anna") == asked
    assert labelling.progress("anna")["own"] == 2
    assert labelling.progress("boris")["own"] == 1


def test_who_says_it_again_has_changed_their_mind(labelling: Labelling, summary: Document) -> None:
    asked = labelling.next("anna")
    assert asked is not None
    for value in (1.0, 0.0):
        labelling.save("anna", asked["case_id"], value)
    labelling.save("boris", asked["case_id"], 1.0)
    said = {(one.annotator, one.value) for one in labels_of(database(), summary["evaluation_id"])}
    assert said == {("anna", 0.0), ("boris", 1.0)}
    assert labelling.progress("anna")["estimate"]["n_labels"] == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"value": 1.1}, "between 0 and 1, got 1.1"),
        ({"value": float("nan")}, "between 0 and 1, got nan"),
        ({"case_id": "label_session:none"}, "no case 'label_session:none' with a score"),
        ({"annotator": "<b>"}, "no name of an annotator: '<b>'"),
        ({"annotator": "  "}, "no name of an annotator"),
        ({"note": "x" * 2_001}, "at most 2,000 characters, got 2,001"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_kept(
    labelling: Labelling, summary: Document, given: dict[str, Any], words: str
) -> None:
    asked = labelling.next("anna")
    assert asked is not None
    with pytest.raises(InputError, match=words):
        labelling.save(**({"annotator": "anna", "case_id": asked["case_id"], "value": 1.0} | given))
    assert labels_of(database(), summary["evaluation_id"]) == []


def test_nothing_to_label(summary: Document, at_home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no judged metric 'avg_faithfullness'; did you mean 'avg_faithfulness'\?"):
        Labelling(database(), summary["evaluation_id"], "avg_faithfullness")
    with pytest.raises(InputError, match="no evaluation 'nobody'"):
        Labelling(database(), "nobody")
    load(tmp_path, "label_nothing", [question(i) for i in range(3)])
    found = evaluate("tier1", source="label_nothing")
    with pytest.raises(InputError, match="no answer that a judge has scored: nothing to label"):
        Labelling(database(), found["evaluation_id"])


def test_many_who_label_at_once_disturb_nobody(labelling: Labelling, summary: Document) -> None:
    """Each stores the label and the corrected mean; none meets another's row."""

    def label(name: str) -> None:
        for _ in range(6):
            asked = labelling.next(name)
            assert asked is not None
            labelling.save(name, asked["case_id"], 1.0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(label, [f"annotator {n}" for n in range(8)]))
    assert len(labels_of(database(), summary["evaluation_id"])) == 48
