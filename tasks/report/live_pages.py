"""Report pages of a server, rendered on request and again after changes."""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import Engine

from yarus.db import journal
from yarus.db.errors import InputError, unknown
from yarus.db.stores.last_change import read_change_token
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.listing import fail_orphaned
from yarus.tasks.report.entries import find_newest, load_entries
from yarus.tasks.report.index import INDEX_PATTERN, NEWEST_NAME, list_evaluations, render_index_page
from yarus.tasks.report.render import LivePageState, join_scripts, render_report, render_template

CHOSEN_NAME = "report.html"
"""Page of the evaluations in the address: `report.html?of=A&of=B`."""
MAX_SHOWN = 8
"""Maximum number of evaluations on one page."""
MAX_SUGGESTED = 100
"""Number of newest evaluations from which similar ids are suggested."""
MAX_CACHED_PAGES = 4
"""Maximum number of cached pages; one may have tens of megabytes."""


class LivePages:
    """Pages over Yarus's own database. One page is rendered at a time, and cached until something changes."""

    def __init__(self, engine: Callable[[], Engine], folder: Path) -> None:
        """Initialise without reading anything.

        Args:
            engine: function that returns the engine of Yarus's own database.
            folder: folder of report files, which the index links too.
        """
        self._engine, self._folder = engine, folder
        self._cache: OrderedDict[tuple[str, tuple[str, ...]], tuple[str, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def now(self) -> str:
        """Return a text that changes with the content of the pages."""
        return read_change_token(self._engine())

    def page(self, name: str, requested_ids: Sequence[str]) -> bytes | None:
        """Return a page by its file name, or None if there is no such page.

        Args:
            name: `index.html` and its further pages, `newest.html`, `report.html`, or an evaluation's id with `.html`.
            requested_ids: evaluations in the address, for `report.html`.

        Raises:
            InputError: an evaluation cannot be shown, or there are no evaluations.
            DatabaseUnavailable: the database cannot be reached.
        """
        with self._lock:
            engine = self._engine()
            if INDEX_PATTERN.fullmatch(name):
                fail_orphaned(engine)
                return self._cached(name, (), lambda now: self._index(name, now))
            if name == NEWEST_NAME:
                return self._report(tuple(find_newest(engine)))
            if name == CHOSEN_NAME:
                return self._report(_chosen_evaluations(engine, requested_ids))
            evaluation = name.removesuffix(".html")
            return self._report((evaluation,)) if evaluation != name and _is_finished(engine, evaluation) else None

    def problem(self, reason: str) -> bytes:
        """Return a page with the reason why the requested page is missing."""
        language = get_settings().language
        title = f"{texts('report.page', language)['no page']} · Yarus"
        return _encode(
            render_template("problem.html", language, title=title, why=reason, script=join_scripts(("page.js",)))
        )

    def _index(self, name: str, now: str) -> str | None:
        listed = list_evaluations(self._engine(), self._folder)
        if name not in listed.pages:
            return None
        return render_index_page(
            self._engine(), listed, listed.pages.index(name), get_settings().language, LivePageState(now)
        )

    def _report(self, ids: tuple[str, ...]) -> bytes | None:
        engine, language = self._engine(), get_settings().language
        return self._cached(
            "",
            ids,
            lambda now: render_report(engine, load_entries(engine, [*ids]), language, LivePageState(now, stays=True)),
        )

    def _cached(self, name: str, ids: tuple[str, ...], render_page: Callable[[str], str | None]) -> bytes | None:
        now = self.now()
        cached_state, page = self._cache.pop((name, ids), ("", b""))
        if cached_state != now:
            rendered_page = render_page(now)
            if rendered_page is None:
                return None
            page = _encode(rendered_page)
        self._cache[name, ids] = now, page
        while len(self._cache) > MAX_CACHED_PAGES:
            self._cache.popitem(last=False)
        return page


def _chosen_evaluations(engine: Engine, requested_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the evaluations in the address without repetitions."""
    ids = tuple(dict.fromkeys(requested_ids))
    if not 0 < len(ids) <= MAX_SHOWN:
        raise InputError(
            "{n} evaluations are named; a page shows from 1 to {most}: choose in the list", n=len(ids), most=MAX_SHOWN
        )
    for name in ids:
        if not _is_finished(engine, name):
            finished = [row["id"] for row in journal.list_evaluations(engine, limit=MAX_SUGGESTED)]
            raise unknown("finished evaluation", name, finished)
    return ids


def _is_finished(engine: Engine, name: str) -> bool:
    """Return whether the name is the complete id of a finished evaluation."""
    if not re.fullmatch(r"[\w.-]+", name):
        return False
    try:
        row = journal.find_evaluation(engine, name)
    except InputError:
        return False
    return row["id"] == name and row["state"] in journal.FINISHED_STATES


def _encode(page: str) -> bytes:
    return page.encode("utf-8", errors="replace")
