"""Every stored label is read: changing one changes the cases of some tier."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.sources import store_source
from yarus.db.loading.load_rows import ImportedRows, load_rows
from yarus.db.loading.staging import IncomingRow as StoredRow
from yarus.db.tables import source_tables
from yarus.tasks.cases import frozen_sets
from yarus.tasks.config.parameters import JudgePipeline, Parameters, Tier0, Tier1, Tier2, Tier3, Ux
from yarus.tasks.dataset.annotation_tables.reviews import annotation_from_verdicts
from yarus.tasks.evaluation.result_files import make_folder
from yarus.tasks.evaluation.run import DRY_RUN_PREFIX, EvaluationRun
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.steps.answer_cases import load_end_to_end, load_ideal
from yarus.tasks.steps.logged_cases import load_dialogs, load_logged_answers
from yarus.tasks.steps.retrieval import load, load_texts

Case = dict[str, Any]
URL = "https://wiki.example/{}"
WRONG, RIGHT = "Сдать книгу в июне.", "Сдать книгу до мая."
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAGES = [{"id": f"c{i}", "confluence_url": URL.format(i), "text": f"Правило {i}."} for i in range(3)]
NUGGETS = [{"nugget": "до мая", "vital": True}]
LOADS: dict[str, tuple[str, Any, type[Parameters], dict[str, Any]]] = {
    "topics": ("tier0", load_texts, Tier0, {"texts": "questions"}),
    "rankings": ("tier1", load, Tier1, {}),
    "generation": ("tier2", load_ideal, Tier2, {}),
    "recorded generation": ("tier2", load_ideal, Tier2, {"sut": "recorded"}),
    "answers": ("tier3", load_end_to_end, Tier3, {}),
    "recorded answers": ("tier3", load_end_to_end, Tier3, {"sut": "recorded"}),
    "nuggets": ("tier3", load_end_to_end, Tier3, {"nuggets": True}),
    "gate": ("judge_pipeline", load_logged_answers, JudgePipeline, {}),
    "dialogs": ("ux", load_dialogs, Ux, {}),
}
ASKED = {"generation", "recorded generation", "answers", "recorded answers", "nuggets"}
IN_DIALOGS = {"answers", "recorded answers", "nuggets", "dialogs"}
# Label -> one value per question, and the cases that it changes.
READ_LABELS: dict[str, tuple[tuple[Any, Any], set[str]]] = {
    "ground_truth_answer": ((RIGHT, None), ASKED),
    "relevant_chunk_ids": ((["c2"], None), {"rankings", *ASKED}),
    "relevant_urls": (([URL.format(2)], None), {"rankings", *ASKED}),
    "ground_truth_show": ((False, None), {"gate"}),
    "answerable": ((False, None), {"rankings", *ASKED}),
    "nuggets": ((NUGGETS, None), {"nuggets"}),
    "cluster": (("книги", "столовая"), {"topics", "rankings", *ASKED}),
    "dialog_id": (("d", "d"), IN_DIALOGS),
    "turn": ((2, 1), IN_DIALOGS),
    "origin": (("manual", "manual"), {"topics", "rankings", "generation", "answers", "nuggets", "gate"}),
}


def rows(labels: Mapping[str, tuple[Any, Any]]) -> list[Case]:
    """Return two logged questions whose users were pleased by wrong answers, with labels; and one with nuggets."""
    labelled_questions = [
        {"question": f"Когда сдать книгу {i}?", "answer": WRONG, "score": 5, "confluence_url": URL.format(i),
         "created_at": NOON + timedelta(days=i)} | {name: values[i] for name, values in labels.items()}
        for i in (0, 1)
    ]  # fmt: skip
    return [*labelled_questions, {"question": "Где столовая?", "nuggets": NUGGETS}]


def load_cases(name: str, kind: str, **more: Any) -> list[Case]:
    """Return the cases of a source as a tier loads them."""
    tier, step, parameters, options = LOADS[kind]
    run = EvaluationRun(f"{DRY_RUN_PREFIX}{secrets.token_hex(4)}", tier, parameters(source=name, **options, **more))
    make_folder(run.work)
    cases: list[Case] = read_cases(asyncio.run(step.fn(run))).to_pylist()
    prefix = f"{name}:"
    return sorted(
        (case | {"case_id": case["case_id"].removeprefix(prefix)} for case in cases), key=lambda case: case["case_id"]
    )


@pytest.fixture(scope="module")
def unlabelled(at_home_for_module: object, engine: Engine) -> Callable[[bool], dict[str, list[Case]]]:
    """Return the cases of each load without the labels, with and without a dialog; loaded once."""

    @cache
    def cases(in_dialog: bool) -> dict[str, list[Case]]:
        labels: dict[str, Any] = {"dialog_id": ("d", "d")} if in_dialog else {}
        name = store_source(engine, f"read_without_{in_dialog}".lower(), rows(labels), PAGES)
        return {kind: load_cases(name, kind) for kind in LOADS}

    return cases


@pytest.mark.slow("breadth: every label by itself")
@pytest.mark.parametrize(
    "label", sorted({*source_tables("s")["annotation"].columns.keys()} - {"question_id", "review"})
)
def test_label_alone_changes_cases(
    at_home: object, engine: Engine, unlabelled: Callable[[bool], dict[str, list[Case]]], label: str
) -> None:
    assert label in READ_LABELS, "a label that no test has seen read"
    values, expected = READ_LABELS[label]
    beside: dict[str, Any] = {"dialog_id": ("d", "d")} if label == "turn" else {}
    name = store_source(engine, f"read_{label}", rows(beside | {label: values}), PAGES)
    before = unlabelled(bool(beside))
    assert {kind for kind in LOADS if load_cases(name, kind) != before[kind]} == expected


def test_frozen_set_loads_as_its_source(at_home: object, engine: Engine) -> None:
    """Each label has two questions of its own, so that no other label hides it."""
    labelled_questions = [
        row | {"id": f"{label} {i}", "question": f"{label}: {row['question']}"}
        for label in READ_LABELS
        for i, row in enumerate(rows({label: READ_LABELS[label][0]}))
    ]
    name = store_source(engine, "frozen_labels", labelled_questions, PAGES)
    frozen_sets.freeze("set_of_labels", name)
    for kind in LOADS:
        cases = load_cases(name, kind)
        assert cases, kind
        assert load_cases(name, kind, cases="set_of_labels") == cases, kind


def load_first(engine: Engine, name: str, kind: str, **labels: Any) -> Case:
    """Return the first question with these labels, as it is loaded."""
    stored = store_source(engine, name, rows({label: (value, None) for label, value in labels.items()}), PAGES)
    return load_cases(stored, kind)[0]


ORIGINS = (None, "imported", "manual", "synthetic")


@pytest.mark.slow("breadth: labels of every origin")
@pytest.mark.parametrize("origin", ORIGINS)
def test_reference_counts_with_any_origin(at_home: object, engine: Engine, origin: str | None) -> None:
    for kind in ("answers", "recorded answers", "generation", "recorded generation"):
        case = load_first(engine, f"reference_{origin}".lower(), kind, ground_truth_answer=RIGHT, origin=origin)
        assert (case["reference"], case["answerable"]) == (RIGHT, True), kind


@pytest.mark.parametrize("origin", ORIGINS)
def test_show_counts_with_any_origin(at_home: object, engine: Engine, origin: str | None) -> None:
    assert (
        load_first(engine, f"show_{origin}".lower(), "gate", ground_truth_show=False, origin=origin)["shown"] is False
    )


@pytest.mark.slow("breadth: every label by itself")
@pytest.mark.parametrize(
    ("labels", "reference", "page", "is_shown"),
    [
        ({}, WRONG, URL.format(0), True),
        ({"ground_truth_show": False}, WRONG, URL.format(0), False),
        ({"ground_truth_answer": RIGHT}, RIGHT, URL.format(0), True),
        ({"ground_truth_answer": " "}, WRONG, URL.format(0), True),
        ({"relevant_urls": [URL.format(2)]}, WRONG, URL.format(2), True),
        ({"relevant_chunk_ids": {"c0": 0}}, WRONG, None, True),  # the page was judged as not relevant
        ({"answerable": False}, None, None, True),
        ({"answerable": True}, WRONG, URL.format(0), True),
        ({"origin": "imported", "ground_truth_answer": RIGHT}, RIGHT, URL.format(0), True),
        ({"origin": "imported", "ground_truth_show": False}, WRONG, URL.format(0), False),
        ({"origin": "imported", "relevant_urls": [URL.format(2)]}, None, URL.format(2), None),
        ({"origin": "imported", "answerable": True}, None, None, None),
        ({"origin": "manual", "ground_truth_answer": RIGHT}, RIGHT, None, None),
        ({"origin": "manual"}, None, None, None),
        ({"origin": "synthetic", "relevant_urls": [URL.format(1)]}, None, URL.format(1), None),
    ],
)
def test_log_replaces_only_labels_that_nobody_gave(
    at_home: object,
    engine: Engine,
    labels: dict[str, Any],
    reference: str | None,
    page: str | None,
    is_shown: bool | None,
) -> None:
    name = f"fallback_{secrets.token_hex(4)}"
    answered = load_first(engine, name, "answers", **labels)
    assert answered["reference"] == reference
    assert load_cases(name, "rankings")[0]["page"] == page
    assert load_cases(name, "gate")[0]["shown"] is is_shown


def test_notes_count_only_fallbacks(at_home: object, engine: Engine) -> None:
    name = store_source(engine, "noted", rows({"ground_truth_answer": (RIGHT, None)}), PAGES)
    tier, step, parameters, _ = LOADS["answers"]
    run = EvaluationRun(f"{DRY_RUN_PREFIX}{secrets.token_hex(4)}", tier, parameters(source=name))
    make_folder(run.work)
    notes = {note["note"]: note.get("n") for note in asyncio.run(step.fn(run)).config.notes}
    assert notes["reference from the log"] == 1
    assert notes["page from the log"] == 2


def test_recorded_answer_is_not_its_own_reference(at_home: object, engine: Engine) -> None:
    name = store_source(engine, "itself", rows({"relevant_urls": ([URL.format(1)], None)}), PAGES)
    labelled, bare, _ = load_cases(name, "recorded answers")
    assert (labelled["reference"], bare["reference"]) == (None, None)
    assert (labelled["relevant"], bare["relevant"]) == ([URL.format(1)], [])


def test_references_loaded_later_join_recorded_answers(at_home: object, engine: Engine) -> None:
    """As with traces: the log and its dialogs first, then a file of references for the same ids."""
    turns = [
        {"question": f"Когда сдать книгу {i}?", "answer": WRONG, "dialog_id": "d", "turn": i + 1, "score": 5}
        for i in (0, 1)
    ]
    name = store_source(engine, "traced", turns)
    labels = [StoredRow("reference", {"question_id": "0", "ground_truth_answer": RIGHT})]
    load_rows(engine, name, ImportedRows(annotations=labels), language="ru", origin="references")
    first, second = load_cases(name, "recorded answers")
    assert (first["reference"], first["dialog"], first["turn"]) == (RIGHT, "d", 1)
    assert (second["reference"], second["dialog"], second["turn"]) == (None, "d", 2)


@pytest.mark.parametrize("origin", [None, "imported", "manual"])
def test_review_keeps_labels_of_any_origin(at_home: object, engine: Engine, origin: str | None) -> None:
    """A review of one label keeps the others, whether given or taken from the log."""
    given_labels = {"ground_truth_answer": RIGHT, "ground_truth_show": False, "origin": origin}
    row = {"question_id": "0", "answer": WRONG, "score": 5, "confluence_url": URL.format(0), **given_labels}
    labels = annotation_from_verdicts(row, {})
    assert (labels["ground_truth_answer"], labels["ground_truth_show"]) == (RIGHT, False)
    assert labels["relevant_urls"] == (None if origin == "manual" else [URL.format(0)])
    assert labels["origin"] == "manual"
