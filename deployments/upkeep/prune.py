"""Retention: evaluations, working folders and stores that are old enough to go."""

import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.removal import retention
from yarus.db.stores import corpora
from yarus.tasks.comparison.gate_rules import read_policy
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.result_files import remove
from yarus.tasks.evaluation.result_paths import existing_path, result_path
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import delete, uploaded

UNITS = {"h": "hours", "d": "days", "w": "weeks"}
FOLDER = re.compile(r"\w+-\d{8}-\d{6}-[0-9a-f]{4}")
"""Of the working folder of an evaluation: its id."""


class Pruned(TypedDict):
    """What went by age, or would go."""

    evaluations: list[str]
    skipped: list[str]
    """Resumed meanwhile."""
    kept: dict[str, int]
    """Why -> evaluations that are old and stay."""
    elsewhere: dict[str, str | None]
    """Evaluation -> its file, which is not in YARUS_RESULTS and stays."""
    folders: int
    """Of work that nobody needs."""
    calls: int
    """Replies of language models."""
    vectors: int
    dry_run: bool


@dataclass(frozen=True)
class Plan:
    """What is to be removed, and what stays although it is old."""

    evaluations: list[RowMapping]
    kept: dict[str, int]
    """Reason -> evaluations that are old and stay."""
    elsewhere: list[RowMapping]
    """Old too, but their files are not in YARUS_RESULTS: another home's, of which this one may be a copy."""
    folders: list[str]
    """Evaluations that are gone or finished and whose working folders are there."""
    calls_before: datetime | None
    """Replies of language models older than this go too, with vectors that nobody uses; None: none."""


def plan(
    engine: Engine,
    *,
    older_than: timedelta | None,
    keep_last: int = 0,
    gates: Sequence[Path] = (),
    with_calls: bool = False,
    everything: bool = False,
) -> Plan:
    """What goes by age. Never one that is running; never a pinned baseline.

    Args:
        engine: of our own database.
        older_than: by their start; None: all but those that `keep_last` keeps.
        keep_last: of every tier and source the newest finished ones that say something new of the system stay,
            whatever their age.
        gates: gate files whose baselines stay, beside those of YARUS_GATE_FILE.
        with_calls: replies in the call store that are as old, and vectors of embedders that no evaluation left used.
        everything: also the last completed evaluation of a comparability key, and its baseline, which trends,
            comparisons, gates and incidents need.

    Raises:
        InputError: a gate file cannot be read, or pins an evaluation that there is none of.
    """
    before = datetime.now(UTC) - (older_than or timedelta())
    here, elsewhere = _working()  # before the rows: the row of an evaluation is there before its folder
    rows = retention.evaluations(engine)
    known = [*gates, *filter(None, [settings().gate_file])]
    pinned = {journal.find(engine, name)["id"] for gate in known for name in read_policy(gate).baselines.values()}
    staying = {
        "pinned": pinned,
        "newest": retention.newest_of_their_kind(rows, keep_last),
        "baseline": set() if everything else retention.baselines(rows),
        "last of key": set() if everything else retention.last_of_their_keys(rows),
        "running": {row["id"] for row in rows if row["state"] == "running"},
        "anchor": {journal.marks(row).get("anchor") for row in rows},
    }
    old = [row for row in rows if row["started_at"] < before]
    kept = {why: sum(row["id"] in ids for row in old) for why, ids in staying.items()}
    going = [row for row in old if not any(row["id"] in ids for ids in staying.values())]
    gone = {row["id"] for row in going}
    needed = {row["id"] for row in rows if row["id"] not in gone and row["state"] not in journal.FINISHED}
    stale = sorted((here | elsewhere & {row["id"] for row in rows}) - needed)
    root = settings().results_root
    away = [row for row in going if not in_results(row, root)]
    others = {row["id"] for row in away}
    return Plan(
        [row for row in going if row["id"] not in others],
        {why: n for why, n in kept.items() if n},
        away,
        stale,
        before if with_calls else None,
    )


def prune(engine: Engine, chosen: Plan, *, dry_run: bool) -> Pruned:
    """Removes what was planned: of each evaluation the file first, so that a kill leaves nothing that is not found."""
    skipped = [] if dry_run else [row["id"] for row in chosen.evaluations if not _removed(engine, row)]
    for evaluation_id in () if dry_run else chosen.folders:
        if evaluation_id not in skipped:
            _remove_work(evaluation_id)
    going = [row["id"] for row in chosen.evaluations if row["id"] not in skipped]
    document: Pruned = {
        "evaluations": going,
        "skipped": skipped,
        "kept": chosen.kept,
        "elsewhere": {row["id"]: row["parquet"] for row in chosen.elsewhere},
        "folders": len(chosen.folders),
        "calls": 0,
        "vectors": 0,
        "dry_run": dry_run,
    }
    if not dry_run:
        named = (EvaluationConfig.of(row).corpus for row in retention.evaluations(engine))
        corpora.forget_all_but(engine, {name for name in named if name})
    if chosen.calls_before is not None:
        left = {row["id"] for row in retention.evaluations(engine)} - set(going)
        document["calls"] = retention.old_calls(engine, chosen.calls_before, remove=not dry_run)
        document["vectors"] = retention.unused_vectors(engine, left, remove=not dry_run)
    return document


def in_results(row: RowMapping, root: str | None = None) -> bool:
    """Whether the file of an evaluation is in YARUS_RESULTS, and so ours to change; without one, yes.

    Args:
        row: of the evaluation.
        root: YARUS_RESULTS, from who asks for many.
    """
    root = root or settings().results_root
    return row["parquet"] is None or existing_path(row["parquet"], root).startswith(f"{root.rstrip('/')}/")


def file_of(row: RowMapping) -> str:
    """Where the file of an evaluation is, or was to be."""
    return existing_path(
        row["parquet"] or result_path(settings().results_root, row["tier"], row["id"], row["started_at"])
    )


def age(text: str) -> timedelta:
    """The time in `90d`, `12w`, `36h`.

    Raises:
        InputError: it is of another form.
    """
    parsed = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if parsed is None:
        raise InputError("--older-than {text!r}: expected a number and h, d or w, for example 90d", text=text)
    return timedelta(**{UNITS[parsed[2]]: int(parsed[1])})


def work_folders(evaluation_id: str) -> list[Path]:
    """Where the working folder of an evaluation may be, there or not: YARUS_WORK need not be what it was then."""
    home, now = (root / evaluation_id for root in _roots())
    return [home] if now == home else [home, now]


def _roots() -> tuple[Path, Path]:
    """The folder of working folders in our home, and the one that is in use now: the same, or one that others share."""
    return settings().home.absolute() / "work", Run("any", "tier1", Parameters()).work.parent


def _working() -> tuple[set[str], set[str]]:
    """The evaluations that have a working folder in our home; and those in YARUS_WORK, which may be others' too."""
    home, now = ({folder.name for folder in root.glob("*/")} for root in _roots())
    return {name for name in home if FOLDER.fullmatch(name)}, now | uploaded()


def _remove_work(evaluation_id: str) -> None:
    for folder in work_folders(evaluation_id):
        shutil.rmtree(folder, ignore_errors=True)
    delete(evaluation_id)


def _removed(engine: Engine, row: RowMapping) -> bool:
    """Removes an evaluation, unless somebody is resuming it."""
    with ExitStack() as held:
        try:
            held.enter_context(journal.alive(engine, row["id"]))
        except InputError:
            return False
        remove(file_of(row))
        _remove_work(row["id"])
        retention.forget(engine, row["id"])
    return True
