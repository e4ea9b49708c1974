"""Remove evaluations, working folders and stored replies by age."""

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
from yarus.tasks.comparison.gate_rules import read_gate_rules
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.result_files import remove_result
from yarus.tasks.evaluation.result_paths import existing_path, result_path
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import delete_upload, list_uploads

UNITS = {"h": "hours", "d": "days", "w": "weeks"}
FOLDER_NAME = re.compile(r"\w+-\d{8}-\d{6}-[0-9a-f]{4}")
"""Names of the working folders of evaluations: their ids."""


class Pruned(TypedDict):
    """Old data that was removed, or would be."""

    evaluations: list[str]
    skipped: list[str]
    """Evaluations that were resumed meanwhile."""
    kept: dict[str, int]
    """Reason -> old evaluations that are kept."""
    outside_results: dict[str, str | None]
    """Evaluation -> its file outside YARUS_RESULTS, which is kept."""
    folders: int
    """Working folders that are no longer needed."""
    calls: int
    """Replies of language models."""
    vectors: int
    dry_run: bool


@dataclass(frozen=True)
class PruningPlan:
    """The evaluations and data to remove, and those that stay although they are old."""

    evaluations: list[RowMapping]
    kept: dict[str, int]
    """Reason -> evaluations that are old and stay."""
    elsewhere: list[RowMapping]
    """Old too, but their files are not in YARUS_RESULTS: perhaps another home's, of which this one is a copy."""
    folders: list[str]
    """Removed or finished evaluations that still have working folders."""
    calls_before: datetime | None
    """Replies of language models older than this are removed too, with unused vectors; None: keep all."""


def plan_pruning(
    engine: Engine,
    *,
    older_than: timedelta | None,
    keep_last: int = 0,
    gates: Sequence[Path] = (),
    with_calls: bool = False,
    everything: bool = False,
) -> PruningPlan:
    """Plan what to remove by age: never a running evaluation, never a pinned baseline.

    Args:
        engine: the engine of Yarus's database.
        older_than: the age since their start; None: all but those that `keep_last` keeps.
        keep_last: how many of the newest finished evaluations of the system stay per tier and source, whatever their
            age.
        gates: gate files whose baselines stay, besides those of YARUS_GATE_FILE.
        with_calls: also remove replies of that age, and vectors of embedders that no remaining evaluation used.
        everything: also remove the last completed evaluation of a comparability key, and its baseline, which trends,
            comparisons, gates and incidents need.

    Raises:
        InputError: a gate file cannot be read, or pins an evaluation that does not exist.
    """
    before = datetime.now(UTC) - (older_than or timedelta())
    own, shared = _list_work_folders()  # before the rows are read: the row of an evaluation exists before its folder
    rows = retention.read_evaluations(engine)
    files = [*gates, *filter(None, [get_settings().gate_file])]
    pinned = {
        journal.find_evaluation(engine, name)["id"]
        for gate in files
        for name in read_gate_rules(gate).baselines.values()
    }
    ids_by_reason = {
        "pinned": pinned,
        "newest": retention.newest_per_tier_and_source(rows, keep_last),
        "baseline": set() if everything else retention.find_baselines(rows),
        "last of key": set() if everything else retention.newest_per_key(rows),
        "running": {row["id"] for row in rows if row["state"] == "running"},
        "anchor": {journal.non_live_marks(row).get("anchor") for row in rows},
    }
    old = [row for row in rows if row["started_at"] < before]
    n_by_reason = {reason: sum(row["id"] in ids for row in old) for reason, ids in ids_by_reason.items()}
    to_remove = [row for row in old if not any(row["id"] in ids for ids in ids_by_reason.values())]
    removed = {row["id"] for row in to_remove}
    needed = {row["id"] for row in rows if row["id"] not in removed and row["state"] not in journal.FINISHED_STATES}
    stale = sorted((own | shared & {row["id"] for row in rows}) - needed)
    root = get_settings().results_root
    outside = [row for row in to_remove if not is_in_results(row, root)]
    outside_ids = {row["id"] for row in outside}
    return PruningPlan(
        [row for row in to_remove if row["id"] not in outside_ids],
        {reason: n for reason, n in n_by_reason.items() if n},
        outside,
        stale,
        before if with_calls else None,
    )


def prune(engine: Engine, pruning: PruningPlan, *, dry_run: bool) -> Pruned:
    """Remove what was planned, the files first, so that after a kill everything left can be found."""
    skipped = [] if dry_run else [row["id"] for row in pruning.evaluations if not _remove_evaluation(engine, row)]
    for evaluation_id in () if dry_run else pruning.folders:
        if evaluation_id not in skipped:
            _remove_work(evaluation_id)
    removed = [row["id"] for row in pruning.evaluations if row["id"] not in skipped]
    document: Pruned = {
        "evaluations": removed,
        "skipped": skipped,
        "kept": pruning.kept,
        "outside_results": {row["id"]: row["parquet"] for row in pruning.elsewhere},
        "folders": len(pruning.folders),
        "calls": 0,
        "vectors": 0,
        "dry_run": dry_run,
    }
    if not dry_run:
        corpora_in_use = (EvaluationConfig.of(row).corpus for row in retention.read_evaluations(engine))
        corpora.prune_corpus_versions(engine, {name for name in corpora_in_use if name})
    if pruning.calls_before is not None:
        remaining = {row["id"] for row in retention.read_evaluations(engine)} - set(removed)
        document["calls"] = retention.count_old_calls(engine, pruning.calls_before, remove=not dry_run)
        document["vectors"] = retention.count_unused_vectors(engine, remaining, remove=not dry_run)
    return document


def is_in_results(row: RowMapping, root: str | None = None) -> bool:
    """Return whether the file of an evaluation is in YARUS_RESULTS, and so ours to change; True without a file.

    Args:
        row: the row of the evaluation.
        root: YARUS_RESULTS, passed by callers that check many rows.
    """
    root = root or get_settings().results_root
    return row["parquet"] is None or existing_path(row["parquet"], root).startswith(f"{root.rstrip('/')}/")


def evaluation_file(row: RowMapping) -> str:
    """Return the path of an evaluation's file, whether it exists or not."""
    return existing_path(
        row["parquet"] or result_path(get_settings().results_root, row["tier"], row["id"], row["started_at"])
    )


def parse_age(text: str) -> timedelta:
    """Parse an age such as `90d`, `12w` or `36h`.

    Raises:
        InputError: it has another form.
    """
    parsed = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if parsed is None:
        raise InputError("--older-than {text!r}: expected a number and h, d or w, for example 90d", text=text)
    return timedelta(**{UNITS[parsed[2]]: int(parsed[1])})


def list_work_folders(evaluation_id: str) -> list[Path]:
    """Return the possible working folders of an evaluation: YARUS_WORK_DIR may have changed since."""
    own, shared = (root / evaluation_id for root in _work_roots())
    return [own] if shared == own else [own, shared]


def _work_roots() -> tuple[Path, Path]:
    """Return the root of working folders in our home, and the current one, which may be shared."""
    return get_settings().home.absolute() / "work", EvaluationRun("any", "tier1", Parameters()).work.parent


def _list_work_folders() -> tuple[set[str], set[str]]:
    """Return the evaluations with a working folder in our home, and those in YARUS_WORK_DIR, which may be shared."""
    own, shared = ({folder.name for folder in root.glob("*/")} for root in _work_roots())
    return {name for name in own if FOLDER_NAME.fullmatch(name)}, shared | list_uploads()


def _remove_work(evaluation_id: str) -> None:
    for folder in list_work_folders(evaluation_id):
        shutil.rmtree(folder, ignore_errors=True)
    delete_upload(evaluation_id)


def _remove_evaluation(engine: Engine, row: RowMapping) -> bool:
    """Remove an evaluation unless it is being resumed, and return whether it was removed."""
    with ExitStack() as stack:
        try:
            stack.enter_context(journal.hold_evaluation_lock(engine, row["id"]))
        except InputError:
            return False
        remove_result(evaluation_file(row))
        _remove_work(row["id"])
        retention.delete_evaluation(engine, row["id"])
    return True
