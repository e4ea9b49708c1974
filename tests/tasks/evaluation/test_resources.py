"""What an evaluation has open: made once, taken over from the checks before it, closed with it."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from yarus.tasks.evaluation import dask
from yarus.tasks.evaluation.resources import Resources, open_for_checks, share


class Door:
    """Something that is to be closed."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_of_many_who_ask_at_once_one_opens() -> None:
    resources, asked = Resources(), threading.Barrier(8)
    made: list[Door] = []

    def make() -> Door:
        made.append(Door())
        return made[-1]

    def ask(_: int) -> Door:
        asked.wait()
        return resources.open_once("door", make)

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ask, range(8)))
    assert found == set(made)
    assert len(made) == 1


def test_what_fails_to_open_is_tried_again() -> None:
    resources = Resources()
    with pytest.raises(ZeroDivisionError):
        resources.open_once("door", lambda: 1 // 0)
    assert resources.open_once("door", lambda: 7) == 7


def test_what_opens_after_the_end_is_closed() -> None:
    resources, late = Resources(), Door()

    def make() -> Door:
        resources.close()  # somebody has stopped the evaluation meanwhile
        return late

    with pytest.raises(RuntimeError, match="the evaluation is over"):
        resources.open_once("door", make)
    assert late.closed


def test_only_the_first_evaluation_takes_over_what_the_checks_opened() -> None:
    with open_for_checks() as opened:
        door = opened.open_once("door", Door)
        first, second = Resources.take_over_checked(), Resources.take_over_checked()
        assert first.open_once("door", Door) is door
        assert second.open_once("door", Door) is not door
    assert not door.closed, "it belongs to the evaluation"
    first.close()
    assert door.closed


def test_what_no_evaluation_takes_over_is_closed() -> None:
    with open_for_checks() as opened:
        door = opened.open_once("door", Door)
    assert door.closed


def test_a_copy_has_nothing_open() -> None:
    resources = Resources()
    resources.open_once("door", threading.Lock)  # which cannot be pickled
    assert copy.deepcopy(resources).open_once("door", lambda: "new") == "new"


def test_evaluations_share_only_while_it_lasts() -> None:
    with share("sweep-1", rankings=True):
        inside = Resources().shared
        assert inside is Resources().shared
    assert inside is not None
    assert (inside.part_of, inside.rankings, Resources().shared) == ("sweep-1", {}, None)


def test_a_worker_keeps_what_batches_use_and_one_idle_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    worker = SimpleNamespace()
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    doors: dict[str, Door] = {}

    def use(name: str) -> None:
        with dask.held_here(name) as resources:
            doors[name] = resources.open_once("door", Door)

    with dask.held_here("long") as under_way:
        doors["long"] = under_way.open_once("door", Door)
        for name in ("a", "b", "a", "c", "d"):
            use(name)
    assert {name: door.closed for name, door in doors.items()} == {
        "long": False,
        "a": True,
        "b": True,
        "c": False,
        "d": False,
    }
