"""Which questions belong together: the places of a log, and what is chosen of it without tearing a dialog apart."""

from datetime import UTC, datetime
from typing import Any

import pytest

from yarus.tasks.cases.dialogs import Place, followed, together, with_what_was_said
from yarus.tasks.cases.table import table
from yarus.tasks.evaluation.work_folder import batch_cuts
from yarus.tasks.steps.source import with_dialogs

A, B = "a", "b"
FOUND = [Place(A, 2), Place(), Place(B, 1), Place(A, 1), Place(A, 3), Place(B, 2), Place()]


def asked(minute: int | None, **more: Any) -> dict[str, Any]:
    at = None if minute is None else datetime(2026, 3, 1, 10, minute, tzinfo=UTC)
    return {"question_id": str(minute), "user_id": None, "created_at": at} | more


def test_places_are_those_of_the_questions_in_whatever_order_they_come() -> None:
    log = [asked(9, user_id=1), asked(3, user_id=2), asked(5, user_id=1), asked(None), asked(1, dialog_id="d", turn=2)]
    log += [asked(2, dialog_id="d", turn=1)]
    found = followed(log)
    assert [(place.dialog is not None, place.turn) for place in found] == [
        (True, 2),
        (True, 1),
        (True, 1),
        (False, None),
        (True, 2),
        (True, 1),
    ]
    assert found[0].dialog == found[2].dialog != found[1].dialog
    assert followed(log[1:2]) == followed([asked(None), asked(None)]) == followed([]) == []


def test_dialogs_are_put_together_where_their_first_question_stands() -> None:
    assert together(range(7), FOUND) == [3, 0, 4, 1, 2, 5, 6]
    assert together([1, 5, 4, 2, 0], FOUND) == [1, 2, 5, 0, 4]


@pytest.mark.parametrize(
    ("rows", "all_of_it"),
    [([4], [0, 3, 4]), ([0, 1], [0, 1, 3]), ([3], [3]), ([1, 6], [1, 6]), ([5, 0], [0, 2, 3, 5]), ([], [])],
)
def test_what_is_asked_again_is_asked_with_what_was_said_before(rows: list[int], all_of_it: list[int]) -> None:
    assert with_what_was_said(rows, FOUND) == all_of_it


def test_a_batch_ends_with_a_dialog() -> None:
    dialogs = ["a", "a", "a", None, None, "b", "b", "c", "d", "d", "d", "d", "d"]
    cases = table(case_id=[str(n) for n in range(13)], dialog=dialogs)
    assert batch_cuts(cases, 2) == [0, 3, 5, 7, 13]
    assert batch_cuts(cases, 100) == [0, 13]
    assert batch_cuts(cases.select(["case_id"]), 5) == [0, 5, 10, 13]


def test_no_group_parts_a_dialog_and_a_larger_one_holds_it() -> None:
    names = ["u", "u", "p", "p", "m", "m", "n", "n", "s", None, "alone"]
    groups = ["user 1", "user 1", "page", "page", "page", "other", None, None, "page", "page", None]
    cases = table(case_id=[str(n) for n in range(11)], group=groups)
    turns = [1, 2, 1, 2, 1, 2, 1, 2, 1, None, 1]
    found = with_dialogs(cases, [Place(name, turn) for name, turn in zip(names, turns, strict=True)])
    kept = ["user 1", "user 1", "page", "page", "dialog m", "dialog m", "dialog n", "dialog n", "page", "page"]
    kept.append(None)  # one question is no dialog that could be parted
    assert found["group"].to_pylist() == kept
    assert (found["dialog"].to_pylist(), found["turn"].to_pylist()) == (names, turns)
