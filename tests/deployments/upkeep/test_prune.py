"""Retention: what goes, what stays, and that a kill in the middle is finished by the same command."""

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
from sqlalchemy import Engine, insert, select, text, update

from tests.support.command_line import CommandLine
from yarus.db import journal
from yarus.db.engine import own
from yarus.db.errors import InputError
from yarus.db.removal import retention
from yarus.db.stores import corpora
from yarus.db.tables import call, embedding, evaluation
from yarus.deployments.upkeep import prune as pruning
from yarus.deployments.upkeep.prune import plan, prune
from yarus.tasks.evaluation.run import Run

Make = Callable[..., str]
LONG_AGO = timedelta(days=400)


@pytest.fixture(scope="module")
def apart(engine: Engine) -> Iterator[Engine]:
    """A database of their own: what is pruned here must be nobody else's."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE of_prune"))
    made = own(Path("unused"), engine.url.set(database="of_prune").render_as_string(hide_password=False))
    yield made
    made.dispose()


@pytest.fixture
def place(apart: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of their own on that database."""
    for name in [name for name in os.environ if name.startswith("YARUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("YARUS_HOME", str(tmp_path))
    monkeypatch.setenv("YARUS_DATABASE_URL", apart.url.render_as_string(hide_password=False))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def make(place: Path, apart: Engine) -> Make:
    """Makes an evaluation that began so many days ago, with its file and its working folder."""

    def made(name: str, state: str = "completed", *, days: int = 2000, key: str = "k", **more: Any) -> str:
        started_at = datetime.now(UTC) - timedelta(days=days)
        evaluation_id = f"tier1-20200101-000000-{name}"
        path = place / "results" / f"{evaluation_id}.parquet"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"cases")
        (place / "work" / evaluation_id).mkdir(parents=True, exist_ok=True)
        row = {"id": evaluation_id, "tier": "tier1", "state": state, "started_at": started_at, "source": "of_prune"}
        row |= {"parameters": {}, "settings": {}, "versions": {}, "comparability_key": key, "parquet": str(path)}
        row["finished_at"] = started_at
        with apart.begin() as connection:
            connection.execute(insert(evaluation).values(row | more))
            journal.accept_first(connection, evaluation_id)
        return evaluation_id

    with apart.begin() as connection:
        connection.execute(text("DELETE FROM yarus.evaluation"))
    return made


def there(apart: Engine, home: Path) -> dict[str, set[str]]:
    """What is left: rows, files, working folders; by the last four letters of their ids."""
    with apart.connect() as connection:
        rows = connection.scalars(select(evaluation.c.id).where(evaluation.c.source == "of_prune"))
        found = {"rows": {name[-4:] for name in rows}}
    found["files"] = {path.stem[-4:] for path in (home / "results").glob("tier1-20200101-*.parquet")}
    return found | {"folders": {path.name[-4:] for path in (home / "work").glob("tier1-20200101-*")}}


def test_old_ones_go_with_files_and_folders(make: Make, apart: Engine, place: Path) -> None:
    journal.accept(apart, make("cccc", days=1))
    make("aaaa"), make("bbbb", "failed")
    make("dddd", "failed", days=1)
    planned = plan(apart, older_than=LONG_AGO)
    assert {row["id"][-4:] for row in planned.evaluations} == {"aaaa", "bbbb"}
    dry = prune(apart, planned, dry_run=True)
    assert there(apart, place)["files"] == {"aaaa", "bbbb", "cccc", "dddd"}
    done = prune(apart, planned, dry_run=False)
    assert done == dry | {"dry_run": False}
    # cccc is finished: nothing needs its folder; dddd can be resumed.
    assert there(apart, place) == {"rows": {"cccc", "dddd"}, "files": {"cccc", "dddd"}, "folders": {"dddd"}}


def test_versions_of_a_corpus_go_with_the_last_evaluation_that_searched_them(make: Make, apart: Engine) -> None:
    make("0001", days=500, resolved={"corpus": "gone"})
    make("0002", days=1, resolved={"corpus": "searched"})
    for name in ("gone", "searched", "new"):
        corpora.keep(apart, name, b"chunks")
    with apart.begin() as connection:
        old = update(corpora.corpus_version).where(corpora.corpus_version.c.sha256 != "new")
        connection.execute(old.values(at=datetime.now(UTC) - timedelta(days=2)))
    prune(apart, plan(apart, older_than=LONG_AGO, everything=True), dry_run=True)
    assert corpora.known(apart, "gone")
    prune(apart, plan(apart, older_than=LONG_AGO, everything=True), dry_run=False)
    assert [corpora.known(apart, name) for name in ("gone", "searched", "new")] == [False, True, True]


def test_the_last_completed_one_of_a_key_stays_unless_all_go(make: Make, apart: Engine, place: Path) -> None:
    make("eeee", days=2003), make("aaaa", days=2002), make("bbbb", days=2001)
    make("cccc", "invalid"), make("dddd", key="other")
    planned = plan(apart, older_than=LONG_AGO)
    assert {row["id"][-4:] for row in planned.evaluations} == {"aaaa", "cccc"}  # eeee, the first, is the baseline
    assert (planned.kept["last of key"], planned.kept["baseline"]) == (2, 2)
    everything = plan(apart, older_than=LONG_AGO, everything=True)
    assert {row["id"][-4:] for row in everything.evaluations} == {"aaaa", "bbbb", "cccc", "dddd", "eeee"}


def test_arms_and_anchors_do_not_stand_in_for_the_live_history(make: Make, apart: Engine, place: Path) -> None:
    """They may have its comparability key, but nothing live is ever compared with them."""
    live, rejudged = make("aaaa", days=2009), make("bbbb", days=2008, resolved={"answers_of": "x", "anchor": "x"})
    arm = make("cccc", days=2007, resolved={"part_of": "sweep"})
    planned = plan(apart, older_than=LONG_AGO)
    assert [row["id"] for row in planned.evaluations] == [arm]
    later = make("dddd", days=1)
    assert journal.previous(apart, later) == live
    assert journal.previous(apart, make("eeee", days=1, resolved={"answers_of": "x"})) == rejudged


def test_the_accepted_baseline_stays_though_newer_and_older_ones_are_there(
    make: Make, apart: Engine, place: Path
) -> None:
    accepted, newer, older = make("aaaa", days=2001), make("bbbb", days=2000), make("cccc", days=2002)
    journal.accept(apart, accepted)
    planned = plan(apart, older_than=LONG_AGO)
    assert [row["id"] for row in planned.evaluations] == [older]
    assert planned.kept == {"baseline": 1, "last of key": 1}
    assert journal.baseline(apart, make("dddd", days=1)) == accepted != newer


def test_the_newest_stay_whatever_their_age(make: Make, apart: Engine, place: Path) -> None:
    for number, name in enumerate(("aaaa", "bbbb", "cccc", "dddd")):
        make(name, days=2010 - number)
    make("eeee", "failed", days=2000)  # is none of the two that stay
    planned = plan(apart, older_than=LONG_AGO, keep_last=2, everything=True)
    assert {row["id"][-4:] for row in planned.evaluations} == {"aaaa", "bbbb", "eeee"}


def test_a_pinned_baseline_stays_even_if_all_go(
    make: Make, apart: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("aaaa"), make("bbbb")
    gate = tmp_path / "gate.toml"
    gate.write_text('[baseline]\ntier1 = "tier1-20200101-000000-aaaa"\n[[rule]]\nmetric = "mrr"\n')
    planned = plan(apart, older_than=LONG_AGO, gates=[gate], everything=True)
    assert [row["id"][-4:] for row in planned.evaluations] == ["bbbb"]
    assert planned.kept == {"pinned": 1}
    monkeypatch.setenv("YARUS_GATE_FILE", str(gate))
    assert plan(apart, older_than=LONG_AGO, everything=True).kept == {"pinned": 1}
    monkeypatch.delenv("YARUS_GATE_FILE")
    gate.write_text(gate.read_text().replace("aaaa", "zzzz"))
    with pytest.raises(InputError, match="no evaluation 'tier1-20200101-000000-zzzz'"):
        plan(apart, older_than=LONG_AGO, gates=[gate])
    gate.write_text("baseline = ")
    with pytest.raises(InputError, match=r"gate file .*gate\.toml"):
        plan(apart, older_than=LONG_AGO, gates=[gate])


def test_what_runs_or_is_being_resumed_stays(make: Make, apart: Engine, place: Path) -> None:
    running, resumed = make("aaaa", "running"), make("bbbb", "failed")
    planned = plan(apart, older_than=LONG_AGO, everything=True)
    assert planned.kept == {"running": 1}
    with journal.alive(apart, resumed):
        done = prune(apart, planned, dry_run=False)
    assert (done["evaluations"], done["skipped"]) == ([], [resumed])
    assert there(apart, place) == {name: {"aaaa", "bbbb"} for name in ("rows", "files", "folders")}
    assert Run(running, "tier1", None).work.exists()  # type: ignore[arg-type]


def test_a_file_that_is_not_in_our_results_is_somebody_elses(make: Make, apart: Engine, tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    path.write_bytes(b"cases")
    name = make("aaaa", parquet=str(path))
    done = prune(apart, plan(apart, older_than=LONG_AGO, everything=True), dry_run=False)
    assert (done["evaluations"], done["elsewhere"]) == ([], {name: str(path)})
    assert path.exists()


def test_a_kill_between_file_and_row_is_finished_by_the_same_command(
    make: Make, apart: Engine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("aaaa"), make("bbbb")
    planned = plan(apart, older_than=LONG_AGO, everything=True)

    def killed(apart: Engine, evaluation_id: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pruning.retention, "forget", killed)
        prune(apart, planned, dry_run=False)
    assert {name: len(left) for name, left in there(apart, place).items()} == {"rows": 2, "files": 1, "folders": 1}
    prune(apart, plan(apart, older_than=LONG_AGO, everything=True), dry_run=False)
    assert there(apart, place) == {"rows": set(), "files": set(), "folders": set()}


def test_work_in_a_folder_that_others_share_goes_where_it_is_known_to_be_ours(
    make: Make, apart: Engine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever YARUS_WORK was when it was left: in our home, or in the folder that is set now."""
    old, finished, unfinished = make("aaaa"), make("bbbb", days=1), make("cccc", "failed", days=1)
    shared, lost, strange = place / "shared", "tier1-20200101-000000-eeee", "tier1-20200101-000000-ffff"
    for name in (old, finished, unfinished, strange):
        (shared / name).mkdir(parents=True)
    (place / "work" / lost).mkdir()
    monkeypatch.setenv("YARUS_WORK", str(shared))
    planned = plan(apart, older_than=LONG_AGO, everything=True)
    assert planned.folders == [old, finished, lost]
    assert prune(apart, planned, dry_run=False)["folders"] == 3
    assert {path.name for path in shared.iterdir()} == {unfinished, strange}  # another home's, for all that we know
    assert {path.name for path in (place / "work").iterdir()} == {unfinished}


def test_work_that_was_left_on_a_store_goes_too(
    make: Make, apart: Engine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, finished, unfinished = make("aaaa"), make("bbbb", days=1), make("cccc", "failed", days=1)
    strange, store = "tier1-20200101-000000-ffff", fsspec.filesystem("memory")
    for name in (old, finished, unfinished, strange):
        store.pipe(f"/of_prune/{name}/cases.parquet", b"cases")
    shutil.rmtree(place / "work" / finished)
    monkeypatch.setenv("YARUS_WORK", "memory://of_prune")
    planned = plan(apart, older_than=LONG_AGO, everything=True)
    assert planned.folders == [old, finished]
    prune(apart, planned, dry_run=False)
    assert {path.split("/")[2] for path in store.find("/of_prune")} == {unfinished, strange}
    assert there(apart, place)["folders"] == {"cccc"}


def test_old_replies_and_vectors_that_nobody_uses_go_if_wanted(make: Make, apart: Engine, place: Path) -> None:
    make("aaaa", days=1, resolved={"embedder_identity": "used by aaaa|prefix:query: |v:1", "notes": []})
    values = {"role": "judge", "model": "m", "prompt": "p", "reply": "{}", "latency_ms": 1.0}
    old = datetime.now(UTC) - timedelta(days=500)
    with apart.begin() as connection:
        connection.execute(insert(call), [values | {"key": b"old", "created_at": old}])
        connection.execute(insert(call), [values | {"key": b"new"}])
        used = {f"used by aaaa|prefix:{prefix}: |v:1" for prefix in ("query", "passage")}  # of questions, of chunks
        for model in (*used, "used by nobody"):
            connection.execute(insert(embedding), [{"model": model, "text_hash": b"h", "vector": b"v"}])
    without = prune(apart, plan(apart, older_than=LONG_AGO), dry_run=False)
    assert (without["calls"], without["vectors"]) == (0, 0)
    done = prune(apart, plan(apart, older_than=LONG_AGO, with_calls=True), dry_run=False)
    assert done["calls"] == 1
    assert done["vectors"] >= 1
    with apart.begin() as connection:
        assert set(connection.scalars(select(call.c.key).where(call.c.key.in_([b"old", b"new"])))) == {b"new"}
        models = set(connection.scalars(select(embedding.c.model)))
        connection.execute(call.delete().where(call.c.key == b"new"))
        connection.execute(embedding.delete().where(embedding.c.text_hash == b"h"))
    assert used <= models
    assert "used by nobody" not in models


def test_newest_of_their_kind_counts_finished_ones_by_tier_and_source() -> None:
    names = ("id", "tier", "source", "state", "resolved")
    marks = ("again", "anchor", "answers_of", "part_of")
    rows: Any = [
        dict(zip(names, row, strict=True))
        for row in (
            *((mark, "tier1", "a", "completed", {mark: "x"}) for mark in marks),  # nothing new of the system
            ("5", "tier1", "a", "failed", None),
            ("4", "tier1", "a", "completed", {"again": None}),
            ("3", "tier1", "b", "invalid", {}),
            ("2", "tier2", "a", "completed", {}),
            ("1", "tier1", "a", "completed", {}),
        )
    ]
    assert retention.newest_of_their_kind(rows, 1) == {"4", "3", "2"}


def test_from_the_command_line_it_asks_first(make: Make, yarus: CommandLine, apart: Engine, place: Path) -> None:
    make("aaaa")
    words = ("prune", "--older-than", "1000d", "--all")
    variables = {name: os.environ[name] for name in ("YARUS_HOME", "YARUS_DATABASE_URL")} | {"YARUS_LANGUAGE": "en"}
    refused = yarus(*words, ok=False, env=variables)  # nobody answers: stdin is at its end
    assert refused.code == 130
    assert "To be removed:" in refused.out
    assert there(apart, place)["rows"] == {"aaaa"}
    document = yarus(*words, "--yes", "--json", env=variables).json
    assert document["evaluations"] == ["tier1-20200101-000000-aaaa"]
    assert there(apart, place)["rows"] == set()
