"""Resources are made once, taken over from the checks before an evaluation, and closed with it."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from yarus.tasks.evaluation import dask
from yarus.tasks.evaluation.resources import Resources, open_for_checks, share_sources


class Door:
    """A resource that must be closed."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_open_once_opens_once_for_many_threads() -> None:
    resources, barrier = Resources(), threading.Barrier(8)
    made: list[Door] = []

    def make() -> Door:
        made.append(Door())
        return made[-1]

    def ask(_: int) -> Door:
        barrier.wait()
        return resources.open_once("door", make)

    with ThreadPoolExecutor(8) as pool:
        opened = set(pool.map(ask, range(8)))
    assert opened == set(made)
    assert len(made) == 1


def test_open_once_retries_after_failure() -> None:
    resources = Resources()
    with pytest.raises(ZeroDivisionError):
        resources.open_once("door", lambda: 1 // 0)
    assert resources.open_once("door", lambda: 7) == 7


def test_open_once_closes_resource_opened_after_end() -> None:
    resources, late = Resources(), Door()

    def make() -> Door:
        resources.close()  # the evaluation was stopped meanwhile
        return late

    with pytest.raises(RuntimeError, match="the evaluation is over"):
        resources.open_once("door", make)
    assert late.closed


def test_take_over_checked_moves_resources_to_first_evaluation() -> None:
    with open_for_checks() as resources:
        door = resources.open_once("door", Door)
        first, second = Resources.take_over_checked(), Resources.take_over_checked()
        assert first.open_once("door", Door) is door
        assert second.open_once("door", Door) is not door
    assert not door.closed, "it belongs to the evaluation"
    first.close()
    assert door.closed


def test_open_for_checks_closes_unclaimed_resources() -> None:
    with open_for_checks() as resources:
        door = resources.open_once("door", Door)
    assert door.closed


def test_resources_copy_is_empty() -> None:
    resources = Resources()
    resources.open_once("door", threading.Lock)  # locks cannot be pickled
    assert copy.deepcopy(resources).open_once("door", lambda: "new") == "new"


def test_share_ends_with_its_context() -> None:
    with share_sources("sweep-1", rankings=True):
        inside = Resources().shared
        assert inside is Resources().shared
    assert inside is not None
    assert (inside.part_of, inside.rankings, Resources().shared) == ("sweep-1", {}, None)


def test_hold_resources_keeps_busy_and_one_idle_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    worker = SimpleNamespace()
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    doors: dict[str, Door] = {}

    def use(name: str) -> None:
        with dask.hold_resources(name) as resources:
            doors[name] = resources.open_once("door", Door)

    with dask.hold_resources("long") as under_way:
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
