"""The journal: running and dead evaluations, and finished ones, which never change."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from secrets import token_hex
from threading import Event

import pytest
from sqlalchemy import Engine, NullPool, create_engine

from tests.support.command_line import make_environment
from yarus.db import journal
from yarus.db.errors import InputError

NUMBERS, RUN = count(), token_hex(4)
METRIC = {"metric": "mrr", "stratum": "", "value": 0.5, "n_scored": 2, "n_total": 2, "direction": "higher"}
HOLD = """
import sys
from pathlib import Path
from yarus.db import journal
from yarus.db.engine import open_own_database
with journal.hold_evaluation_lock(open_own_database(Path(sys.argv[1]), None), sys.argv[2]):
    print("alive", flush=True)
    sys.stdin.read()
"""


def open_evaluation(engine: Engine) -> str:
    evaluation_id = f"journal-{next(NUMBERS)}-{RUN}"
    journal.open_evaluation(
        engine,
        {"id": evaluation_id, "tier": "tier1", "source": "journal", "parameters": {}, "settings": {}, "versions": {}},
    )
    return evaluation_id


def clear_nothing(tier: str, name: str, started_at: datetime) -> None: ...


def metric_names(engine: Engine, name: str) -> list[str]:
    return [row["metric"] for row in journal.read_metrics(engine, name)]


def close_evaluation(engine: Engine, name: str, state: str) -> bool:
    row = METRIC | {"signature": "mrr"}
    return journal.finish_evaluation(
        engine, name, state, [row] if state in journal.FINISHED_STATES else [], error=state
    )


def test_open_evaluation_sets_state_running(engine: Engine) -> None:
    row = journal.find_evaluation(engine, open_evaluation(engine))
    assert (row["state"], row["finished_at"]) == ("running", None)
    assert abs((row["started_at"] - datetime.now(UTC)).total_seconds()) < 10


def test_read_metrics_sorts_rows_with_any_query_plan(engine: Engine) -> None:
    name = open_evaluation(engine)
    written = [("recall@5", "confirmed"), ("recall@5", "all"), ("mrr", "confirmed"), ("mrr", "all")]
    rows = [METRIC | {"metric": metric, "stratum": stratum, "signature": metric} for metric, stratum in written]
    journal.finish_evaluation(engine, name, "completed", rows)
    unindexed = "-c enable_indexscan=off -c enable_bitmapscan=off"  # then rows come as they were written
    by_scan = create_engine(engine.url, poolclass=NullPool, connect_args={"options": unindexed})
    for planning_engine in (engine, by_scan):
        metric_keys = [(row["metric"], row["stratum"]) for row in journal.read_metrics(planning_engine, name)]
        assert metric_keys == sorted(written)


@pytest.mark.parametrize("state", ["completed", "invalid"])
@pytest.mark.parametrize("later", ["completed", "failed", "cancelled"])
def test_finished_evaluation_never_changes(engine: Engine, state: str, later: str) -> None:
    name = open_evaluation(engine)
    assert close_evaluation(engine, name, state)
    before = journal.find_evaluation(engine, name)
    assert not close_evaluation(engine, name, later)
    with pytest.raises(InputError, match=f"{name} is finished"):
        journal.resume_evaluation(engine, name, "later")
    assert name not in journal.fail_orphaned(engine, clear_nothing)
    assert (journal.find_evaluation(engine, name), metric_names(engine, name)) == (before, ["mrr"])


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_resume_continues_an_unfinished_evaluation(engine: Engine, state: str) -> None:
    name = open_evaluation(engine)
    close_evaluation(engine, name, state)
    journal.resume_evaluation(engine, name, "later")
    row = journal.find_evaluation(engine, name)
    assert [row[name] for name in ("state", "error", "finished_at", "flow_run_id")] == ["running", None, None, "later"]
    assert close_evaluation(engine, name, "completed")


def test_finish_writes_metrics_and_state_in_one_transaction(engine: Engine) -> None:
    name = open_evaluation(engine)
    with pytest.raises(Exception, match="null value"):
        journal.finish_evaluation(
            engine, name, "completed", [METRIC | {"signature": "mrr"}, METRIC | {"signature": None}]
        )
    assert (journal.find_evaluation(engine, name)["state"], metric_names(engine, name)) == ("running", [])


def test_record_batch_records_a_batch_once(engine: Engine) -> None:
    name = open_evaluation(engine)
    for batch in (0, 2, 2):
        journal.record_batch(engine, name, batch)
    assert journal.read_finished_batches(engine, name) == {0, 2}


def test_evaluation_lock_admits_one_process_at_a_time(engine: Engine) -> None:
    name = open_evaluation(engine)
    refused = pytest.raises(InputError, match="running in another process")
    with journal.hold_evaluation_lock(engine, name), refused, journal.hold_evaluation_lock(engine, name):
        pytest.fail("two at once")
    with journal.hold_evaluation_lock(engine, name):
        pass


def test_fail_orphaned_marks_dead_evaluations_once(engine: Engine, home: Path) -> None:
    journal.fail_orphaned(engine, clear_nothing)  # evaluations of other tests
    alive_id, dead_id, cancelled_id = open_evaluation(engine), open_evaluation(engine), open_evaluation(engine)
    close_evaluation(engine, cancelled_id, "cancelled")
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(home), evaluation_id],
            env=make_environment(home),
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for evaluation_id in (alive_id, dead_id)
    ]
    assert [holder.stdout.readline() for holder in holders] == ["alive\n", "alive\n"]
    assert journal.fail_orphaned(engine, clear_nothing) == []
    holders[1].kill()
    holders[1].communicate()
    cleared: list[tuple[str, str]] = []
    failed: list[str] = []
    while not failed:  # the server notices the closed connection within milliseconds
        failed = journal.fail_orphaned(engine, lambda tier, name, started_at: cleared.append((tier, name)))
    assert (failed, cleared) == ([dead_id], [("tier1", dead_id)])
    row = journal.find_evaluation(engine, dead_id)
    assert row["state"] == "failed"
    assert f"yarus run tier1 --resume {dead_id}" in row["error"]
    assert journal.find_evaluation(engine, alive_id)["state"] == "running"
    holders[0].communicate("")
    assert journal.fail_orphaned(engine, clear_nothing) == [alive_id]
    assert journal.find_evaluation(engine, cancelled_id)["state"] == "cancelled"


def test_fail_orphaned_waits_for_a_concurrent_call(engine: Engine) -> None:
    journal.fail_orphaned(engine, clear_nothing)
    name, clearing = open_evaluation(engine), Event()

    def clear_slowly(tier: str, evaluation_id: str, started_at: datetime) -> None:
        clearing.set()
        time.sleep(0.5)

    with ThreadPoolExecutor() as threads:
        first_call = threads.submit(journal.fail_orphaned, engine, clear_slowly)
        assert clearing.wait(30)
        assert journal.fail_orphaned(engine, clear_nothing) == []
        assert journal.find_evaluation(engine, name)["state"] == "failed"
        assert first_call.result() == [name]


def test_find_matches_part_of_the_id_or_last(engine: Engine) -> None:
    name = open_evaluation(engine)
    assert journal.find_evaluation(engine, name.removeprefix("journal"))["id"] == name
    assert journal.find_evaluation(engine, "last")["id"] == name
    close_evaluation(engine, name, "failed")
    with pytest.raises(InputError, match="several evaluations 'journal-'"):
        open_evaluation(engine)
        journal.find_evaluation(engine, "journal-")
    with pytest.raises(InputError, match=f"no evaluation '{name}x'.*{name}"):
        journal.find_evaluation(engine, f"{name}x")


def test_list_evaluations_returns_the_newest_first_up_to_limit(engine: Engine) -> None:
    older, newer = open_evaluation(engine), open_evaluation(engine)
    assert [row["id"] for row in journal.list_evaluations(engine, limit=2)] == [newer, older]


def test_fail_orphaned_skips_one_that_finishes_meanwhile(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    name, original_lock_key = open_evaluation(engine), journal.lock_key

    def finish_and_lock(evaluation_id: str) -> object:
        if evaluation_id == name:
            close_evaluation(engine, name, "completed")
        return original_lock_key(evaluation_id)

    monkeypatch.setattr(journal, "lock_key", finish_and_lock)
    cleared: list[str] = []
    assert name not in journal.fail_orphaned(engine, lambda tier, dead_id, started_at: cleared.append(dead_id))
    assert name not in cleared
    assert journal.find_evaluation(engine, name)["state"] == "completed"


def test_previous_is_completed_earlier_with_the_same_key(engine: Engine) -> None:
    keys = ("k-1", "k-1", "k-2", "k-1", "k-1", "k-1", None)
    states = ("completed", "completed", "completed", "invalid", "failed", "completed", "completed")
    names = []
    for key, state in zip(keys, states, strict=True):
        names.append(open_evaluation(engine))
        journal.update_evaluation(engine, names[-1], comparability_key=key)
        close_evaluation(engine, names[-1], state)
    previous_ids = [journal.find_previous(engine, name) for name in names]
    assert previous_ids == [None, names[0], None, names[1], names[1], names[1], None]
    assert journal.find_previous(engine, "nobody") is None


def test_finish_accepts_the_first_valid_evaluation_of_a_key(engine: Engine) -> None:
    """The first to finish counts; an invalid evaluation does not."""
    late, invalid, first, second = names = [open_evaluation(engine) for _ in range(4)]
    for name, state in ((invalid, "invalid"), (first, "completed"), (late, "completed"), (second, "completed")):
        journal.finish_evaluation(engine, name, state, comparability_key="key of accepted ones")
    rows = {name: journal.find_evaluation(engine, name) for name in names}
    assert [name for name in names if rows[name]["accepted_at"]] == [first]
    assert rows[first]["accepted_at"] == rows[first]["finished_at"]
    assert journal.find_baseline(engine, second) == first
