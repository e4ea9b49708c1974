"""Report pages as a server makes them: when they are asked for, and anew when something has changed since."""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.errors import InputError, unknown
from yarus.db.stores.last_change import last_change
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.listing import fail_orphaned
from yarus.tasks.report.entries import entries, newest
from yarus.tasks.report.index import INDEX, NEWEST, index_page, listing
from yarus.tasks.report.render import Live, render, rendered, script

CHOSEN = "report.html"
"""Where the evaluations are shown that an address names: `report.html?of=A&of=B`."""
TOGETHER = 8
"""Evaluations on one page, at most."""
NEAR = 100
"""Evaluations among which the nearest is looked for, where one is not there."""
KEPT = 4
"""Pages that are kept while nothing changes; one may be tens of megabytes."""


class LivePages:
    """The pages over our journal. One is made at a time; what nobody has changed is not made twice."""

    def __init__(self, engine: Callable[[], Engine], folder: Path) -> None:
        """Reads nothing yet.

        Args:
            engine: gives our own database.
            folder: of the reports that were written as files, which the index links too.
        """
        self._engine, self._folder = engine, folder
        self._made: OrderedDict[tuple[str, tuple[str, ...]], tuple[str, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def now(self) -> str:
        """A text that changes with what the pages show."""
        return last_change(self._engine())

    def page(self, name: str, asked: Sequence[str]) -> bytes | None:
        """A page by its file name; None where there is none of that name.

        Args:
            name: `index.html` and those after it, `newest.html`, `report.html`, or an evaluation's id with `.html`.
            asked: the evaluations that the address names, for `report.html`.

        Raises:
            InputError: evaluations that cannot be shown, or nothing is there yet.
            DatabaseUnavailable: the database cannot be reached.
        """
        with self._lock:
            engine = self._engine()
            if INDEX.fullmatch(name):
                fail_orphaned(engine)
                return self._kept(name, (), lambda now: self._index(name, now))
            if name == NEWEST:
                return self._report(tuple(newest(engine)))
            if name == CHOSEN:
                return self._report(_chosen(engine, asked))
            of = name.removesuffix(".html")
            return self._report((of,)) if of != name and _finished(engine, of) else None

    def problem(self, why: str) -> bytes:
        """A page that says why there is no other."""
        language = settings().language
        title = f"{texts('report.page', language)['no page']} · Yarus"
        return _encoded(rendered("problem.html", language, title=title, why=why, script=script(("page.js",))))

    def _index(self, name: str, now: str) -> str | None:
        listed = listing(self._engine(), self._folder)
        if name not in listed.pages:
            return None
        return index_page(self._engine(), listed, listed.pages.index(name), settings().language, Live(now))

    def _report(self, ids: tuple[str, ...]) -> bytes | None:
        engine, language = self._engine(), settings().language
        return self._kept("", ids, lambda now: render(engine, entries(engine, [*ids]), language, Live(now, stays=True)))

    def _kept(self, name: str, ids: tuple[str, ...], make: Callable[[str], str | None]) -> bytes | None:
        now = self.now()
        before, page = self._made.pop((name, ids), ("", b""))
        if before != now:
            made = make(now)
            if made is None:
                return None
            page = _encoded(made)
        self._made[name, ids] = now, page
        while len(self._made) > KEPT:
            self._made.popitem(last=False)
        return page


def _chosen(engine: Engine, asked: Sequence[str]) -> tuple[str, ...]:
    """The evaluations that an address names, each once."""
    ids = tuple(dict.fromkeys(asked))
    if not 0 < len(ids) <= TOGETHER:
        raise InputError(
            "{n} evaluations are named; a page shows from 1 to {most}: choose in the list", n=len(ids), most=TOGETHER
        )
    for name in ids:
        if not _finished(engine, name):
            finished = [row["id"] for row in journal.listing(engine, limit=NEAR)]
            raise unknown("finished evaluation", name, finished)
    return ids


def _finished(engine: Engine, name: str) -> bool:
    """Whether it is the whole id of an evaluation that has numbers."""
    if not re.fullmatch(r"[\w.-]+", name):
        return False
    try:
        row = journal.find(engine, name)
    except InputError:
        return False
    return row["id"] == name and row["state"] in journal.FINISHED


def _encoded(page: str) -> bytes:
    return page.encode("utf-8", errors="replace")
