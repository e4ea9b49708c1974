"""The journal: who lives, who died, what is finished and stays so."""

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

from tests.support.command_line import environment
from yarus.db import journal
from yarus.db.errors import InputError

NUMBERS, RUN = count(), token_hex(4)
METRIC = {"metric": "mrr", "stratum": "", "value": 0.5, "n_scored": 2, "n_total": 2, "direction": "higher"}
HOLD = """
import sys
from pathlib import Path
from yarus.db import journal
from yarus.db.engine import own
with journal.alive(own(Path(sys.argv[1]), None), sys.argv[2]):
    print("alive", flush=True)
    sys.stdin.read()
"""


def opened(engine: Engine) -> str:
    name = f"journal-{next(NUMBERS)}-{RUN}"
    journal.open_evaluation(
        engine, {"id": name, "tier": "tier1", "source": "journal", "parameters": {}, "settings": {}, "versions": {}}
    )
    return name


def nothing(tier: str, name: str, started_at: datetime) -> None: ...


def metrics(engine: Engine, name: str) -> list[str]:
    return [row["metric"] for row in journal.metrics_of(engine, name)]


def close(engine: Engine, name: str, state: str) -> bool:
    row = METRIC | {"signature": "mrr"}
    return journal.close(engine, name, state, [row] if state in journal.FINISHED else [], error=state)


def test_it_runs_from_the_start(engine: Engine) -> None:
    row = journal.find(engine, opened(engine))
    assert (row["state"], row["finished_at"]) == ("running", None)
    assert abs((row["started_at"] - datetime.now(UTC)).total_seconds()) < 10


def test_metrics_come_in_one_order_whatever_the_plan(engine: Engine) -> None:
    name = opened(engine)
    written = [("recall@5", "confirmed"), ("recall@5", "all"), ("mrr", "confirmed"), ("mrr", "all")]
    rows = [METRIC | {"metric": metric, "stratum": stratum, "signature": metric} for metric, stratum in written]
    journal.close(engine, name, "completed", rows)
    unindexed = "-c enable_indexscan=off -c enable_bitmapscan=off"  # it then finds them as they were written
    by_scan = create_engine(engine.url, poolclass=NullPool, connect_args={"options": unindexed})
    for plan in (engine, by_scan):
        found = [(row["metric"], row["stratum"]) for row in journal.metrics_of(plan, name)]
        assert found == sorted(written)


@pytest.mark.parametrize("state", ["completed", "invalid"])
@pytest.mark.parametrize("later", ["completed", "failed", "cancelled"])
def test_a_finished_evaluation_is_never_changed(engine: Engine, state: str, later: str) -> None:
    name = opened(engine)
    assert close(engine, name, state)
    before = journal.find(engine, name)
    assert not close(engine, name, later)
    with pytest.raises(InputError, match=f"{name} is finished"):
        journal.reopen(engine, name, "later")
    assert name not in journal.fail_orphaned(engine, nothing)
    assert (journal.find(engine, name), metrics(engine, name)) == (before, ["mrr"])


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_an_unfinished_one_can_be_reopened(engine: Engine, state: str) -> None:
    name = opened(engine)
    close(engine, name, state)
    journal.reopen(engine, name, "later")
    row = journal.find(engine, name)
    assert [row[name] for name in ("state", "error", "finished_at", "flow_run_id")] == ["running", None, None, "later"]
    assert close(engine, name, "completed")


def test_metrics_and_state_come_together_or_not_at_all(engine: Engine) -> None:
    name = opened(engine)
    with pytest.raises(Exception, match="null value"):
        journal.close(engine, name, "completed", [METRIC | {"signature": "mrr"}, METRIC | {"signature": None}])
    assert (journal.find(engine, name)["state"], metrics(engine, name)) == ("running", [])


def test_batches_are_noted_once(engine: Engine) -> None:
    name = opened(engine)
    for batch in (0, 2, 2):
        journal.batch_done(engine, name, batch)
    assert journal.batches_done(engine, name) == {0, 2}


def test_one_process_at_a_time(engine: Engine) -> None:
    name = opened(engine)
    refused = pytest.raises(InputError, match="running in another process")
    with journal.alive(engine, name), refused, journal.alive(engine, name):
        pytest.fail("two at once")
    with journal.alive(engine, name):
        pass


def test_whoever_dies_is_marked_once_and_whoever_lives_is_not(engine: Engine, home: Path) -> None:
    journal.fail_orphaned(engine, nothing)  # those of other tests
    living, dead, stopped = opened(engine), opened(engine), opened(engine)
    close(engine, stopped, "cancelled")
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(home), name],
            env=environment(home),
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in (living, dead)
    ]
    assert [holder.stdout.readline() for holder in holders] == ["alive\n", "alive\n"]
    assert journal.fail_orphaned(engine, nothing) == []
    holders[1].kill()
    holders[1].communicate()
    cleared: list[tuple[str, str]] = []
    marked: list[str] = []
    while not marked:  # the server notices the closed connection within milliseconds
        marked = journal.fail_orphaned(engine, lambda tier, name, started_at: cleared.append((tier, name)))
    assert (marked, cleared) == ([dead], [("tier1", dead)])
    row = journal.find(engine, dead)
    assert row["state"] == "failed"
    assert f"yarus run tier1 --resume {dead}" in row["error"]
    assert journal.find(engine, living)["state"] == "running"
    holders[0].communicate("")
    assert journal.fail_orphaned(engine, nothing) == [living]
    assert journal.find(engine, stopped)["state"] == "cancelled"


def test_who_looks_while_another_marks_a_dead_one_waits_for_the_mark(engine: Engine) -> None:
    journal.fail_orphaned(engine, nothing)
    name, burying = opened(engine), Event()

    def slowly(tier: str, evaluation_id: str, started_at: datetime) -> None:
        burying.set()
        time.sleep(0.5)

    with ThreadPoolExecutor() as threads:
        first = threads.submit(journal.fail_orphaned, engine, slowly)
        assert burying.wait(30)
        assert journal.fail_orphaned(engine, nothing) == []
        assert journal.find(engine, name)["state"] == "failed"
        assert first.result() == [name]


def test_an_evaluation_is_found_by_its_beginning_or_end_or_as_the_last(engine: Engine) -> None:
    name = opened(engine)
    assert journal.find(engine, name.removeprefix("journal"))["id"] == name
    assert journal.find(engine, "last")["id"] == name
    close(engine, name, "failed")
    with pytest.raises(InputError, match="several evaluations 'journal-'"):
        opened(engine)
        journal.find(engine, "journal-")
    with pytest.raises(InputError, match=f"no evaluation '{name}x'.*{name}"):
        journal.find(engine, f"{name}x")


def test_the_list_is_newest_first_and_of_that_length(engine: Engine) -> None:
    older, newer = opened(engine), opened(engine)
    assert [row["id"] for row in journal.listing(engine, limit=2)] == [newer, older]


def test_one_that_finishes_while_orphans_are_looked_for_is_not_marked(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, lock = opened(engine), journal.lock_key

    def finishing(evaluation_id: str) -> object:
        if evaluation_id == name:
            close(engine, name, "completed")
        return lock(evaluation_id)

    monkeypatch.setattr(journal, "lock_key", finishing)
    cleared: list[str] = []
    assert name not in journal.fail_orphaned(engine, lambda tier, dead, started_at: cleared.append(dead))
    assert name not in cleared
    assert journal.find(engine, name)["state"] == "completed"


def test_the_previous_one_is_completed_earlier_and_under_the_same_key(engine: Engine) -> None:
    keys = ("k-1", "k-1", "k-2", "k-1", "k-1", "k-1", None)
    states = ("completed", "completed", "completed", "invalid", "failed", "completed", "completed")
    names = []
    for key, state in zip(keys, states, strict=True):
        names.append(opened(engine))
        journal.describe(engine, names[-1], comparability_key=key)
        close(engine, names[-1], state)
    found = [journal.previous(engine, name) for name in names]
    assert found == [None, names[0], None, names[1], names[1], names[1], None]
    assert journal.previous(engine, "nobody") is None


def test_the_first_valid_one_of_a_key_is_accepted_when_it_ends(engine: Engine) -> None:
    """Not one that is invalid, nor one that had begun before and ends later."""
    late, invalid, first, second = names = [opened(engine) for _ in range(4)]
    for name, state in ((invalid, "invalid"), (first, "completed"), (late, "completed"), (second, "completed")):
        journal.close(engine, name, state, comparability_key="key of accepted ones")
    rows = {name: journal.find(engine, name) for name in names}
    assert [name for name in names if rows[name]["accepted_at"]] == [first]
    assert rows[first]["accepted_at"] == rows[first]["finished_at"]
    assert journal.baseline(engine, second) == first
