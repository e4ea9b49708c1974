"""Open resources of an evaluation: made at first use, shared by all of its batches, closed with it."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")


@dataclass(eq=False)
class SharedResources:
    """Data that the evaluations of a night, a sweep or probes share."""

    part_of: str | None = None
    """The sweep or the probes that they belong to; they stay out of histories."""
    sources: dict[Any, Any] = field(default_factory=dict)
    """Sources read so far, so that all evaluations see the same questions and corpus."""
    rankings: dict[Any, Any] | None = None
    """Rankings by settings and question; None if each evaluation retrieves for itself."""


_SHARED: ContextVar[SharedResources | None] = ContextVar("what the evaluations of this night share", default=None)
_CHECKED: ContextVar["Resources | None"] = ContextVar("what the checks before an evaluation have opened", default=None)


@contextmanager
def share_sources(part_of: str | None = None, *, rankings: bool = False) -> Iterator[None]:
    """Let evaluations share the sources that they read, within the context.

    Args:
        part_of: the sweep or the probes that they belong to.
        rankings: whether evaluations that retrieve alike share rankings.
    """
    token = _SHARED.set(SharedResources(part_of, rankings={} if rankings else None))
    try:
        yield
    finally:
        _SHARED.reset(token)


class Resources:
    """Open resources by key. A copy, such as that on a worker elsewhere, has nothing open."""

    def __init__(self) -> None:
        self.shared = _SHARED.get()
        self._made: dict[Hashable, Any] = {}
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock, self._closed = threading.Lock(), False

    @classmethod
    def take_over_checked(cls) -> "Resources":
        """Return the resources of a new evaluation, with those that the checks before it have opened."""
        resources, checked = cls(), _CHECKED.get()
        if checked:
            resources._made, checked._made = checked._made, resources._made
        return resources

    def open_once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the resource of a key; the first caller makes it, others who ask for it wait.

        Args:
            key: identifies the resource.
            make: opens it; a resource with `close` is closed with the evaluation.

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
            _close(made)  # the evaluation was stopped, but this thread goes on
            raise RuntimeError("the evaluation is over")

    def get(self, kind: type[T]) -> T:
        """Return the single instance of a class that the evaluation uses."""
        return self.open_once(kind.__qualname__, kind)

    def close(self) -> None:
        """Close all resources that can be closed, and forget them."""
        with self._lock:
            made, self._made, self._closed = self._made, {}, True
        for resource in made.values():
            _close(resource)

    def __reduce__(self) -> tuple[type["Resources"], tuple[()]]:
        return Resources, ()


def _close(resource: object) -> None:
    if close := getattr(resource, "close", None):
        close()


@contextmanager
def open_for_checks() -> Iterator[Resources]:
    """Open resources that the first evaluation takes over; close them if none does."""
    resources = Resources()
    token = _CHECKED.set(resources)
    try:
        yield resources
    finally:
        _CHECKED.reset(token)
        resources.close()
