"""Dialogs: turns of a log's questions, and selections that keep dialogs together."""

from datetime import UTC, datetime
from typing import Any

import pytest

from yarus.tasks.cases.dialogs import DialogTurn, dialog_turns_if_any, group_by_dialog, with_earlier_turns
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.work_folder import batch_cuts
from yarus.tasks.steps.source import add_dialogs

A, B = "a", "b"
TURNS = [DialogTurn(A, 2), DialogTurn(), DialogTurn(B, 1), DialogTurn(A, 1)]
TURNS += [DialogTurn(A, 3), DialogTurn(B, 2), DialogTurn()]


def make_question(minute: int | None, **values: Any) -> dict[str, Any]:
    asked_at = None if minute is None else datetime(2026, 3, 1, 10, minute, tzinfo=UTC)
    return {"question_id": str(minute), "user_id": None, "created_at": asked_at} | values


def test_dialog_turns_are_in_any_order() -> None:
    log = [make_question(9, user_id=1), make_question(3, user_id=2), make_question(5, user_id=1), make_question(None)]
    log += [make_question(1, dialog_id="d", turn=2), make_question(2, dialog_id="d", turn=1)]
    turns = dialog_turns_if_any(log)
    assert [(turn.dialog is not None, turn.turn) for turn in turns] == [
        (True, 2),
        (True, 1),
        (True, 1),
        (False, None),
        (True, 2),
        (True, 1),
    ]
    assert turns[0].dialog == turns[2].dialog != turns[1].dialog
    assert (
        dialog_turns_if_any(log[1:2])
        == dialog_turns_if_any([make_question(None), make_question(None)])
        == dialog_turns_if_any([])
        == []
    )


def test_group_by_dialog_keeps_the_first_position() -> None:
    assert group_by_dialog(range(7), TURNS) == [3, 0, 4, 1, 2, 5, 6]
    assert group_by_dialog([1, 5, 4, 2, 0], TURNS) == [1, 2, 5, 0, 4]


@pytest.mark.parametrize(
    ("rows", "all_of_it"),
    [([4], [0, 3, 4]), ([0, 1], [0, 1, 3]), ([3], [3]), ([1, 6], [1, 6]), ([5, 0], [0, 2, 3, 5]), ([], [])],
)
def test_with_earlier_turns_adds_them(rows: list[int], all_of_it: list[int]) -> None:
    assert with_earlier_turns(rows, TURNS) == all_of_it


def test_batch_cuts_fall_between_dialogs() -> None:
    dialogs = ["a", "a", "a", None, None, "b", "b", "c", "d", "d", "d", "d", "d"]
    cases = make_cases(case_id=[str(n) for n in range(13)], dialog=dialogs)
    assert batch_cuts(cases, 2) == [0, 3, 5, 7, 13]
    assert batch_cuts(cases, 100) == [0, 13]
    assert batch_cuts(cases.select(["case_id"]), 5) == [0, 5, 10, 13]


def test_add_dialogs_keeps_dialogs_in_one_group() -> None:
    names = ["u", "u", "p", "p", "m", "m", "n", "n", "s", None, "alone"]
    groups = ["user 1", "user 1", "page", "page", "page", "other", None, None, "page", "page", None]
    cases = make_cases(case_id=[str(n) for n in range(11)], group=groups)
    turns = [1, 2, 1, 2, 1, 2, 1, 2, 1, None, 1]
    with_groups = add_dialogs(cases, [DialogTurn(name, turn) for name, turn in zip(names, turns, strict=True)])
    expected = [
        "user 1",
        "user 1",
        "page",
        "page",
        "dialog m",
        "dialog m",
        "dialog n",
        "dialog n",
        "page",
        "page",
    ]
    expected.append(None)  # a single question cannot be split
    assert with_groups["group"].to_pylist() == expected
    assert (with_groups["dialog"].to_pylist(), with_groups["turn"].to_pylist()) == (names, turns)
