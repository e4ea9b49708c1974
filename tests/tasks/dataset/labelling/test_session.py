"""Labelling session: order of cases, stored labels and rejected input."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import Document, evaluate, load, question, read_rows
from tests.tasks.dataset.labelling.labelled import evaluate_labelled, judge_score, serve_models
from yarus.db.errors import InputError
from yarus.db.stores.labels import label as table
from yarus.db.stores.labels import read_labels
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.session import LabellingSession


@pytest.fixture(scope="module")
def summary(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    with serve_models():
        yield evaluate_labelled(tmp_path_factory.mktemp("session"), "label_session", 60)


@pytest.fixture
def labelling(summary: Document, at_home: Path) -> Iterator[LabellingSession]:
    """Return a session without labels."""
    yield LabellingSession(database(), summary["evaluation_id"])
    with database().begin() as connection:
        connection.execute(table.delete())


def test_session_continues_from_stored_labels(labelling: LabellingSession, summary: Document) -> None:
    first = labelling.next("anna")
    assert first is not None and first["position"] == 1
    assert first["question"].startswith("Что велит") and first["context"] and first["reference"]
    assert "score" not in str(first)
    score = labelling.save("anna", first["case_id"], 1.0, " ясно ")
    assert score == judge_score(first["question"])
    reopened = LabellingSession(database(), summary["evaluation_id"])
    second = reopened.next("anna")
    assert second is not None and second["position"] == 2
    assert reopened.next(" boris ") == first
    (stored,) = read_labels(database(), summary["evaluation_id"])
    assert (stored.annotator, stored.value, stored.note, stored.metric) == ("anna", 1.0, "ясно", "avg_faithfulness")
    assert (stored.score, stored.source, stored.tier) == (score, "label_session", "tier2")
    assert 0 < stored.probability <= 1 <= stored.stratum_size


def test_session_shows_each_case_once(labelling: LabellingSession, summary: Document) -> None:
    seen = []
    while case := labelling.next("anna"):
        seen.append(case["case_id"])
        labelling.save("anna", case["case_id"], None if len(seen) % 4 == 0 else 1.0)
    assert sorted(seen) == sorted(row["case_id"] for row in read_rows(summary) if row["faithfulness"] is not None)
    progress = labelling.progress("anna")
    assert (progress["own"], progress["passed_over"], progress["cases"]) == (45, 15, 60)
    assert progress["labelled"] == 45
    assert labelling.progress("boris")["own"] == 0


def test_undo_deletes_last_label(labelling: LabellingSession) -> None:
    assert labelling.undo("anna") is None
    for _ in range(3):
        case = labelling.next("anna")
        assert case is not None
        labelling.save("anna", case["case_id"], 0.5, "сомневаюсь")
    labelling.save("boris", case["case_id"], 1.0)
    deleted = labelling.undo("anna")
    assert deleted == case | {"value": 0.5, "note": "сомневаюсь"}
    assert labelling.next("anna") == case
    assert labelling.progress("anna")["own"] == 2
    assert labelling.progress("boris")["own"] == 1


def test_save_replaces_earlier_label_of_same_annotator(labelling: LabellingSession, summary: Document) -> None:
    case = labelling.next("anna")
    assert case is not None
    for value in (1.0, 0.0):
        labelling.save("anna", case["case_id"], value)
    labelling.save("boris", case["case_id"], 1.0)
    labels = {(label.annotator, label.value) for label in read_labels(database(), summary["evaluation_id"])}
    assert labels == {("anna", 0.0), ("boris", 1.0)}
    assert labelling.progress("anna")["estimate"]["n_labels"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": 1.1}, "between 0 and 1, got 1.1"),
        ({"value": float("nan")}, "between 0 and 1, got nan"),
        ({"case_id": "label_session:none"}, "no case 'label_session:none' with a score"),
        ({"annotator": "<b>"}, "no name of an annotator: '<b>'"),
        ({"annotator": "  "}, "no name of an annotator"),
        ({"note": "x" * 2_001}, "at most 2,000 characters, got 2,001"),
    ],
)
def test_save_rejects_invalid_input(
    labelling: LabellingSession, summary: Document, arguments: dict[str, Any], message: str
) -> None:
    case = labelling.next("anna")
    assert case is not None
    with pytest.raises(InputError, match=message):
        labelling.save(**({"annotator": "anna", "case_id": case["case_id"], "value": 1.0} | arguments))
    assert read_labels(database(), summary["evaluation_id"]) == []


def test_session_rejects_evaluations_without_judged_answers(summary: Document, at_home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no judged metric 'avg_faithfullness'; did you mean 'avg_faithfulness'\?"):
        LabellingSession(database(), summary["evaluation_id"], "avg_faithfullness")
    with pytest.raises(InputError, match="no evaluation 'nobody'"):
        LabellingSession(database(), "nobody")
    load(tmp_path, "label_nothing", [question(i) for i in range(3)])
    tier1_summary = evaluate("tier1", source="label_nothing")
    with pytest.raises(InputError, match="no answer that a judge has scored: nothing to label"):
        LabellingSession(database(), tier1_summary["evaluation_id"])


def test_save_handles_concurrent_annotators(labelling: LabellingSession, summary: Document) -> None:
    """Concurrent sessions store their labels and the corrected mean without conflicts."""

    def label_cases(name: str) -> None:
        for _ in range(6):
            case = labelling.next(name)
            assert case is not None
            labelling.save(name, case["case_id"], 1.0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(label_cases, [f"annotator {n}" for n in range(8)]))
    assert len(read_labels(database(), summary["evaluation_id"])) == 48
