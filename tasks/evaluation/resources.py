"""What an evaluation has open: made when it is first asked for, the same for all of its batches, closed with it."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")


@dataclass(eq=False)
class Shared:
    """What the evaluations of a night, a sweep or probes have in common."""

    part_of: str | None = None
    """The sweep or the probes whose arms they are; they stay out of histories."""
    sources: dict[Any, Any] = field(default_factory=dict)
    """What was read, so that all see the same questions and the same corpus."""
    rankings: dict[Any, Any] | None = None
    """By what decides a ranking, and question; None: each evaluation retrieves for itself."""


_SHARED: ContextVar[Shared | None] = ContextVar("what the evaluations of this night share", default=None)
_CHECKED: ContextVar["Resources | None"] = ContextVar("what the checks before an evaluation have opened", default=None)


@contextmanager
def share(part_of: str | None = None, *, rankings: bool = False) -> Iterator[None]:
    """While it lasts, evaluations share the sources that they read.

    Args:
        part_of: the sweep or the probes that they belong to.
        rankings: whether those that retrieve alike take each other's rankings.
    """
    token = _SHARED.set(Shared(part_of, rankings={} if rankings else None))
    try:
        yield
    finally:
        _SHARED.reset(token)


class Resources:
    """What is open. A copy, as on a worker elsewhere, has nothing open."""

    def __init__(self) -> None:
        self.shared = _SHARED.get()
        self._made: dict[Hashable, Any] = {}
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock, self._closed = threading.Lock(), False

    @classmethod
    def take_over_checked(cls) -> "Resources":
        """Return those of an evaluation that begins: it takes over what the checks before it have opened."""
        taken, checked = cls(), _CHECKED.get()
        if checked:
            taken._made, checked._made = checked._made, taken._made
        return taken

    def open_once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is open under a key; made by who asks first, while others who ask for it wait.

        Args:
            key: what decides what it is.
            make: opens it; what has `close` is closed with the evaluation.

        Raises:
            RuntimeError: the evaluation is over.
        """
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key in self._made:
                return cast(T, self._made[key])
            made = make()
            with self._lock:
                if not self._closed:
                    self._made[key] = made
                    return made
            _close(made)  # somebody has stopped the evaluation, and this thread goes on
            raise RuntimeError("the evaluation is over")

    def get(self, kind: type[T]) -> T:
        """Return the one object of a class that all of the evaluation use."""
        return self.open_once(kind.__qualname__, kind)

    def close(self) -> None:
        """Closes what can be closed, and forgets all."""
        with self._lock:
            made, self._made, self._closed = self._made, {}, True
        for one in made.values():
            _close(one)

    def __reduce__(self) -> tuple[type["Resources"], tuple[()]]:
        return Resources, ()


def _close(opened: object) -> None:
    if close := getattr(opened, "close", None):
        close()


@contextmanager
def open_for_checks() -> Iterator[Resources]:
    """While it lasts, the first evaluation that begins takes over what was opened here; else it is closed."""
    opened = Resources()
    token = _CHECKED.set(opened)
    try:
        yield opened
    finally:
        _CHECKED.reset(token)
        opened.close()
