"""Retention: what is removed, what stays, and completion after a kill."""

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
from yarus.db.engine import open_own_database
from yarus.db.errors import InputError
from yarus.db.removal import retention
from yarus.db.stores import corpora
from yarus.db.tables import call, embedding, evaluation
from yarus.deployments.upkeep import prune as pruning
from yarus.deployments.upkeep.prune import plan_pruning, prune
from yarus.tasks.evaluation.run import EvaluationRun

Make = Callable[..., str]
LONG_AGO = timedelta(days=400)


@pytest.fixture(scope="module")
def own_engine(engine: Engine) -> Iterator[Engine]:
    """Create a separate database, because its data is pruned."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE of_prune"))
    own = open_own_database(Path("unused"), engine.url.set(database="of_prune").render_as_string(hide_password=False))
    yield own
    own.dispose()


@pytest.fixture
def clean_home(own_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a separate home on that database."""
    for name in [name for name in os.environ if name.startswith("YARUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("YARUS_HOME", str(tmp_path))
    monkeypatch.setenv("YARUS_DATABASE_URL", own_engine.url.render_as_string(hide_password=False))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def make(clean_home: Path, own_engine: Engine) -> Make:
    """Return a function that makes an evaluation of some days ago, with its file and its working folder."""

    def make_evaluation(name: str, state: str = "completed", *, days: int = 2000, key: str = "k", **more: Any) -> str:
        started_at = datetime.now(UTC) - timedelta(days=days)
        evaluation_id = f"tier1-20200101-000000-{name}"
        path = clean_home / "results" / f"{evaluation_id}.parquet"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"cases")
        (clean_home / "work" / evaluation_id).mkdir(parents=True, exist_ok=True)
        row = {"id": evaluation_id, "tier": "tier1", "state": state, "started_at": started_at, "source": "of_prune"}
        row |= {"parameters": {}, "settings": {}, "versions": {}, "comparability_key": key, "parquet": str(path)}
        row["finished_at"] = started_at
        with own_engine.begin() as connection:
            connection.execute(insert(evaluation).values(row | more))
            journal.accept_if_first(connection, evaluation_id)
        return evaluation_id

    with own_engine.begin() as connection:
        connection.execute(text("DELETE FROM yarus.evaluation"))
    return make_evaluation


def list_remaining(own_engine: Engine, home: Path) -> dict[str, set[str]]:
    """Return the remaining rows, files and working folders by the last four letters of their ids."""
    with own_engine.connect() as connection:
        rows = connection.scalars(select(evaluation.c.id).where(evaluation.c.source == "of_prune"))
        remaining = {"rows": {name[-4:] for name in rows}}
    remaining["files"] = {path.stem[-4:] for path in (home / "results").glob("tier1-20200101-*.parquet")}
    return remaining | {"folders": {path.name[-4:] for path in (home / "work").glob("tier1-20200101-*")}}


def test_prune_removes_old_evaluations_with_files(make: Make, own_engine: Engine, clean_home: Path) -> None:
    journal.accept_baseline(own_engine, make("cccc", days=1))
    make("aaaa"), make("bbbb", "failed")
    make("dddd", "failed", days=1)
    planned = plan_pruning(own_engine, older_than=LONG_AGO)
    assert {row["id"][-4:] for row in planned.evaluations} == {"aaaa", "bbbb"}
    preview = prune(own_engine, planned, dry_run=True)
    assert list_remaining(own_engine, clean_home)["files"] == {"aaaa", "bbbb", "cccc", "dddd"}
    done = prune(own_engine, planned, dry_run=False)
    assert done == preview | {"dry_run": False}
    # cccc is finished, so its folder is not needed; dddd can be resumed.
    assert list_remaining(own_engine, clean_home) == {
        "rows": {"cccc", "dddd"},
        "files": {"cccc", "dddd"},
        "folders": {"dddd"},
    }


def test_prune_removes_unused_corpus_versions(make: Make, own_engine: Engine) -> None:
    make("0001", days=500, resolved={"corpus": "gone"})
    make("0002", days=1, resolved={"corpus": "searched"})
    for name in ("gone", "searched", "new"):
        corpora.save_corpus_version(own_engine, name, b"chunks")
    with own_engine.begin() as connection:
        old_versions = update(corpora.corpus_version).where(corpora.corpus_version.c.sha256 != "new")
        connection.execute(old_versions.values(at=datetime.now(UTC) - timedelta(days=2)))
    prune(own_engine, plan_pruning(own_engine, older_than=LONG_AGO, everything=True), dry_run=True)
    assert corpora.has_corpus_version(own_engine, "gone")
    prune(own_engine, plan_pruning(own_engine, older_than=LONG_AGO, everything=True), dry_run=False)
    assert [corpora.has_corpus_version(own_engine, name) for name in ("gone", "searched", "new")] == [False, True, True]


def test_plan_keeps_last_of_key_unless_everything(make: Make, own_engine: Engine, clean_home: Path) -> None:
    make("eeee", days=2003), make("aaaa", days=2002), make("bbbb", days=2001)
    make("cccc", "invalid"), make("dddd", key="other")
    planned = plan_pruning(own_engine, older_than=LONG_AGO)
    assert {row["id"][-4:] for row in planned.evaluations} == {"aaaa", "cccc"}  # eeee, the first, is the baseline
    assert (planned.kept["last of key"], planned.kept["baseline"]) == (2, 2)
    everything = plan_pruning(own_engine, older_than=LONG_AGO, everything=True)
    assert {row["id"][-4:] for row in everything.evaluations} == {"aaaa", "bbbb", "cccc", "dddd", "eeee"}


def test_plan_keeps_live_history_besides_arms_and_anchors(make: Make, own_engine: Engine, clean_home: Path) -> None:
    """Plan with arms and anchors of the same key, with which live evaluations are never compared."""
    live, rejudged = make("aaaa", days=2009), make("bbbb", days=2008, resolved={"answers_of": "x", "anchor": "x"})
    arm = make("cccc", days=2007, resolved={"part_of": "sweep"})
    planned = plan_pruning(own_engine, older_than=LONG_AGO)
    assert [row["id"] for row in planned.evaluations] == [arm]
    later = make("dddd", days=1)
    assert journal.find_previous(own_engine, later) == live
    assert journal.find_previous(own_engine, make("eeee", days=1, resolved={"answers_of": "x"})) == rejudged


def test_plan_keeps_the_accepted_baseline(make: Make, own_engine: Engine, clean_home: Path) -> None:
    accepted, newer, older = make("aaaa", days=2001), make("bbbb", days=2000), make("cccc", days=2002)
    journal.accept_baseline(own_engine, accepted)
    planned = plan_pruning(own_engine, older_than=LONG_AGO)
    assert [row["id"] for row in planned.evaluations] == [older]
    assert planned.kept == {"baseline": 1, "last of key": 1}
    assert journal.find_baseline(own_engine, make("dddd", days=1)) == accepted != newer


def test_plan_keeps_the_newest_finished_evaluations(make: Make, own_engine: Engine, clean_home: Path) -> None:
    for number, name in enumerate(("aaaa", "bbbb", "cccc", "dddd")):
        make(name, days=2010 - number)
    make("eeee", "failed", days=2000)  # not one of the two that stay
    planned = plan_pruning(own_engine, older_than=LONG_AGO, keep_last=2, everything=True)
    assert {row["id"][-4:] for row in planned.evaluations} == {"aaaa", "bbbb", "eeee"}


def test_plan_keeps_pinned_baselines(
    make: Make, own_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("aaaa"), make("bbbb")
    gate = tmp_path / "gate.toml"
    gate.write_text('[baseline]\ntier1 = "tier1-20200101-000000-aaaa"\n[[rule]]\nmetric = "mrr"\n')
    planned = plan_pruning(own_engine, older_than=LONG_AGO, gates=[gate], everything=True)
    assert [row["id"][-4:] for row in planned.evaluations] == ["bbbb"]
    assert planned.kept == {"pinned": 1}
    monkeypatch.setenv("YARUS_GATE_FILE", str(gate))
    assert plan_pruning(own_engine, older_than=LONG_AGO, everything=True).kept == {"pinned": 1}
    monkeypatch.delenv("YARUS_GATE_FILE")
    gate.write_text(gate.read_text().replace("aaaa", "zzzz"))
    with pytest.raises(InputError, match="no evaluation 'tier1-20200101-000000-zzzz'"):
        plan_pruning(own_engine, older_than=LONG_AGO, gates=[gate])
    gate.write_text("baseline = ")
    with pytest.raises(InputError, match=r"gate file .*gate\.toml"):
        plan_pruning(own_engine, older_than=LONG_AGO, gates=[gate])


def test_prune_keeps_running_and_resumed_evaluations(make: Make, own_engine: Engine, clean_home: Path) -> None:
    running, resumed = make("aaaa", "running"), make("bbbb", "failed")
    planned = plan_pruning(own_engine, older_than=LONG_AGO, everything=True)
    assert planned.kept == {"running": 1}
    with journal.hold_evaluation_lock(own_engine, resumed):
        done = prune(own_engine, planned, dry_run=False)
    assert (done["evaluations"], done["skipped"]) == ([], [resumed])
    assert list_remaining(own_engine, clean_home) == {name: {"aaaa", "bbbb"} for name in ("rows", "files", "folders")}
    assert EvaluationRun(running, "tier1", None).work.exists()  # type: ignore[arg-type]


def test_prune_keeps_files_outside_of_the_results(make: Make, own_engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "theirs.parquet"
    path.write_bytes(b"cases")
    name = make("aaaa", parquet=str(path))
    done = prune(own_engine, plan_pruning(own_engine, older_than=LONG_AGO, everything=True), dry_run=False)
    assert (done["evaluations"], done["outside_results"]) == ([], {name: str(path)})
    assert path.exists()


def test_prune_completes_after_a_kill(
    make: Make, own_engine: Engine, clean_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("aaaa"), make("bbbb")
    planned = plan_pruning(own_engine, older_than=LONG_AGO, everything=True)

    def kill(own_engine: Engine, evaluation_id: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pruning.retention, "delete_evaluation", kill)
        prune(own_engine, planned, dry_run=False)
    assert {name: len(ids) for name, ids in list_remaining(own_engine, clean_home).items()} == {
        "rows": 2,
        "files": 1,
        "folders": 1,
    }
    prune(own_engine, plan_pruning(own_engine, older_than=LONG_AGO, everything=True), dry_run=False)
    assert list_remaining(own_engine, clean_home) == {"rows": set(), "files": set(), "folders": set()}


def test_prune_removes_only_own_work_from_shared_folders(
    make: Make, own_engine: Engine, clean_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remove work in our home and in the current YARUS_WORK_DIR, whatever that was when the work was left."""
    old, finished, unfinished = make("aaaa"), make("bbbb", days=1), make("cccc", "failed", days=1)
    shared, orphaned, strange = clean_home / "shared", "tier1-20200101-000000-eeee", "tier1-20200101-000000-ffff"
    for name in (old, finished, unfinished, strange):
        (shared / name).mkdir(parents=True)
    (clean_home / "work" / orphaned).mkdir()
    monkeypatch.setenv("YARUS_WORK_DIR", str(shared))
    planned = plan_pruning(own_engine, older_than=LONG_AGO, everything=True)
    assert planned.folders == [old, finished, orphaned]
    assert prune(own_engine, planned, dry_run=False)["folders"] == 3
    assert {path.name for path in shared.iterdir()} == {unfinished, strange}  # perhaps another home's
    assert {path.name for path in (clean_home / "work").iterdir()} == {unfinished}


def test_prune_removes_work_on_a_store(
    make: Make, own_engine: Engine, clean_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, finished, unfinished = make("aaaa"), make("bbbb", days=1), make("cccc", "failed", days=1)
    strange, store = "tier1-20200101-000000-ffff", fsspec.filesystem("memory")
    for name in (old, finished, unfinished, strange):
        store.pipe(f"/of_prune/{name}/cases.parquet", b"cases")
    shutil.rmtree(clean_home / "work" / finished)
    monkeypatch.setenv("YARUS_WORK_DIR", "memory://of_prune")
    planned = plan_pruning(own_engine, older_than=LONG_AGO, everything=True)
    assert planned.folders == [old, finished]
    prune(own_engine, planned, dry_run=False)
    assert {path.split("/")[2] for path in store.find("/of_prune")} == {unfinished, strange}
    assert list_remaining(own_engine, clean_home)["folders"] == {"cccc"}


def test_prune_removes_old_replies_and_unused_vectors(make: Make, own_engine: Engine, clean_home: Path) -> None:
    make("aaaa", days=1, resolved={"embedder_identity": "used by aaaa|prefix:query: |v:1", "notes": []})
    values = {"role": "judge", "model": "m", "prompt": "p", "reply": "{}", "latency_ms": 1.0}
    old = datetime.now(UTC) - timedelta(days=500)
    with own_engine.begin() as connection:
        connection.execute(insert(call), [values | {"key": b"old", "created_at": old}])
        connection.execute(insert(call), [values | {"key": b"new"}])
        used = {f"used by aaaa|prefix:{prefix}: |v:1" for prefix in ("query", "passage")}  # of questions, of chunks
        for model in (*used, "used by nobody"):
            connection.execute(insert(embedding), [{"model": model, "text_hash": b"h", "vector": b"v"}])
    without_calls = prune(own_engine, plan_pruning(own_engine, older_than=LONG_AGO), dry_run=False)
    assert (without_calls["calls"], without_calls["vectors"]) == (0, 0)
    done = prune(own_engine, plan_pruning(own_engine, older_than=LONG_AGO, with_calls=True), dry_run=False)
    assert done["calls"] == 1
    assert done["vectors"] >= 1
    with own_engine.begin() as connection:
        assert set(connection.scalars(select(call.c.key).where(call.c.key.in_([b"old", b"new"])))) == {b"new"}
        models = set(connection.scalars(select(embedding.c.model)))
        connection.execute(call.delete().where(call.c.key == b"new"))
        connection.execute(embedding.delete().where(embedding.c.text_hash == b"h"))
    assert used <= models
    assert "used by nobody" not in models


def test_newest_of_their_kind_counts_per_tier_and_source() -> None:
    names = ("id", "tier", "source", "state", "resolved")
    marks = ("again", "anchor", "answers_of", "part_of")
    rows: Any = [
        dict(zip(names, row, strict=True))
        for row in (
            *((mark, "tier1", "a", "completed", {mark: "x"}) for mark in marks),  # not new measurements of the system
            ("5", "tier1", "a", "failed", None),
            ("4", "tier1", "a", "completed", {"again": None}),
            ("3", "tier1", "b", "invalid", {}),
            ("2", "tier2", "a", "completed", {}),
            ("1", "tier1", "a", "completed", {}),
        )
    ]
    assert retention.newest_per_tier_and_source(rows, 1) == {"4", "3", "2"}


def test_prune_command_asks_first(make: Make, yarus: CommandLine, own_engine: Engine, clean_home: Path) -> None:
    make("aaaa")
    words = ("admin", "prune", "--older-than", "1000d", "--include-baselines")
    variables = {name: os.environ[name] for name in ("YARUS_HOME", "YARUS_DATABASE_URL")} | {"YARUS_LANGUAGE": "en"}
    refused = yarus(*words, ok=False, env=variables)  # no answer: stdin is at its end
    assert refused.code == 130
    assert "To be removed:" in refused.out
    assert list_remaining(own_engine, clean_home)["rows"] == {"aaaa"}
    document = yarus(*words, "--yes", "--json", env=variables).json
    assert document["evaluations"] == ["tier1-20200101-000000-aaaa"]
    assert list_remaining(own_engine, clean_home)["rows"] == set()
