"""Erasure: after it, a user's question is nowhere; a kill in the middle is finished by the same command."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import httpx
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, insert, inspect, select, text

from tests.support.command_line import CommandLine
from tests.support.evaluations import PAGE, evaluate, load, question, rows_of
from tests.support.steps import real_users, tier0
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.stores.labels import label
from yarus.db.stores.vectors import store_vectors
from yarus.db.tables import analysis, call, evaluation
from yarus.deployments.upkeep.erasure import erase as erasing
from yarus.deployments.upkeep.erasure.erase import erase, find
from yarus.tasks.cases.frozen_sets import freeze
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.result_files import EVALUATION

MARK = "Тайна пользователя"
USER = "4711"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def variables(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home and a database of their own: what is erased here must be nobody else's."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE of_erase"))
    url = engine.url.set(database="of_erase").render_as_string(hide_password=False)
    return {"YARUS_HOME": str(tmp_path_factory.mktemp("erase")), "YARUS_DATABASE_URL": url}


@pytest.fixture(scope="module")
def apart(variables: dict[str, str]) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        made = database()
    yield made
    made.dispose()


@pytest.fixture(autouse=True)
def place(variables: dict[str, str], apart: Engine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That home, set and emptied."""
    for name in [name for name in os.environ if name.startswith("YARUS_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    home = Path(variables["YARUS_HOME"])
    monkeypatch.chdir(home)
    for left in home.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    with apart.begin() as connection:
        for table in ("evaluation", "call", "embedding", "case_set", "analysis", "label"):
            connection.execute(text(f"DELETE FROM yarus.{table}"))
    return home


@pytest.fixture
def kept(place: Path, apart: Engine) -> dict[str, Document]:
    """Two evaluations, a frozen set, a reply, a vector, an analysis, a report and a working folder that hold it all."""
    rows = [question(i, user_id=USER if i in (2, 5) else str(i % 3)) for i in range(12)]
    rows[2]["question"], rows[5]["question"] = f"{MARK}: первая?", f"{MARK}: вторая?"
    load(place, "logged", rows)
    found = {"real_users": real_users(source="logged"), "tier0": tier0(source="logged", texts="questions")}
    freeze("frozen", "logged")
    paid = {"key": b"theirs", "role": "judge", "model": "m", "prompt": "p", "latency_ms": 1.0}
    paid |= {"evaluation_id": found["real_users"]["evaluation_id"], "reply": f"{MARK} …"}
    about = {"id": "corpus-1", "kind": "corpus", "source": "logged", "state": "completed", "parameters": {}}
    about |= {"started_at": found["tier0"]["started_at"], "document": {"examples": [rows[2]["question"]]}}
    with apart.begin() as connection:
        connection.execute(insert(call).values(paid))
        connection.execute(insert(analysis).values(about))
        connection.execute(
            text("INSERT INTO source_logged.annotation (question_id, ground_truth_answer) VALUES ('2', :said) "
                 "ON CONFLICT (question_id) DO UPDATE SET ground_truth_answer = :said"), {"said": MARK}
        )  # fmt: skip
    of = {"evaluation_id": found["real_users"]["evaluation_id"], "metric": "avg_faithfulness", "source": "logged"}
    of |= {"value": 1.0, "score": 0.5, "stratum": "middle ok", "stratum_size": 12, "probability": 0.5, "tier": "tier2"}
    of |= {"shown_sha256": "x", "judge_key": "k", "annotator": "anna"}
    labels = [{"case_id": "logged:2", "case_group": None, "note": MARK}, {"case_id": "x", "case_group": f"user {USER}"}]
    with apart.begin() as connection:
        for theirs in (*labels, {"case_id": "logged:3", "case_group": "user 0"}):
            connection.execute(insert(label).values(of | theirs))
    store_vectors(apart, "m", {hashlib.sha256(row["question"].encode()).digest(): b"v" for row in rows})
    work = place / "work" / "tier1-20260101-000000-dead"
    work.mkdir(parents=True)
    (work / "cases.parquet").write_text(MARK)
    with apart.begin() as connection:
        dead = {"id": work.name, "tier": "tier1", "state": "failed", "source": "logged", "parameters": {}}
        dead |= {"started_at": found["tier0"]["started_at"], "settings": {}, "versions": {}}
        dead["error"] = f"ValueError: {rows[2]['question']}; continue with: …"
        connection.execute(insert(evaluation).values(dead))
    (place / "reports").mkdir()
    (place / "reports" / "night.html").write_text(f"<h1>{found['tier0']['evaluation_id']}</h1>{MARK}")
    (place / "reports" / "other.html").write_text("<h1>tier1-20200101-000000-0000</h1>")
    for file in place.glob("logged.*.jsonl"):
        file.unlink()  # what the user of Yarus loaded from is not ours
    return found


def everywhere(engine: Engine, home: Path) -> list[str]:
    """Where the mark stands: tables of ours and of the source, files at home."""
    places = []
    with engine.connect() as connection:
        for schema in ("yarus", "source_logged"):
            for name in inspect(engine).get_table_names(schema=schema):
                rows = connection.execute(text(f"SELECT t::text FROM {schema}.{name} t"))
                places += [f"{schema}.{name}" for (row,) in rows if MARK in row]
    for path in sorted(home.rglob("*")):
        if path.suffix == ".parquet" and path.is_file() and path.read_bytes()[:4] == b"PAR1":
            said = str(pq.ParquetFile(path).read().to_pylist())
        else:
            said = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        places += [path.name] if MARK in said else []
    return places


def test_nothing_of_them_is_anywhere_and_the_figures_stay(
    kept: dict[str, Document], apart: Engine, place: Path
) -> None:
    assert len(everywhere(apart, place)) >= 10
    before = {tier: journal.metrics_of(apart, made["evaluation_id"]) for tier, made in kept.items()}
    dry = erase(apart, find(apart, USER, "logged"), dry_run=True)
    assert len(everywhere(apart, place)) >= 10
    done = erase(apart, find(apart, USER, "logged"), dry_run=False)
    assert done == dry | {"dry_run": False}
    assert everywhere(apart, place) == []
    assert done["evaluations"] == {made["evaluation_id"]: 2 for made in kept.values()}
    counted = {name: done[name] for name in ("calls", "vectors", "analyses", "case_set_rows", "folders", "labels")}
    assert counted == {"calls": 1, "vectors": 2, "analyses": 1, "case_set_rows": 2, "folders": 1, "labels": 2}
    assert done["questions"] == 2
    with apart.connect() as connection:
        assert connection.scalars(select(label.c.case_id)).all() == ["logged:3"]
    assert [path.name for path in (place / "reports").iterdir()] == ["other.html"]
    for tier, made in kept.items():
        left = pq.ParquetFile(made["parquet"]).read()
        assert (len(left), USER in str(left["group"].to_pylist())) == (10, False)
        assert left.schema.metadata[EVALUATION].decode() == made["evaluation_id"]
        assert journal.metrics_of(apart, made["evaluation_id"]) == before[tier]
        notes = journal.find(apart, made["evaluation_id"])["resolved"]["notes"]
        assert {"note": "cases erased", "n": 2} in notes


def test_a_frozen_set_that_lost_cases_is_another(kept: dict[str, Document], apart: Engine) -> None:
    from yarus.db import case_sets

    before = case_sets.find(apart, "frozen")
    erase(apart, find(apart, USER, "logged"), dry_run=False)
    after = case_sets.find(apart, "frozen")
    assert (before.n_cases, after.n_cases) == (12, 10)
    assert after.sha256 == case_sets.content_hash(case_sets.read(apart, "frozen")) != before.sha256


@pytest.mark.slow("breadth: every moment and every name")
@pytest.mark.parametrize("step", ["note_erased", "questions_of", "frozen_with", "publish"])
def test_a_kill_is_finished_by_the_same_command(
    kept: dict[str, Document], apart: Engine, place: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    module = erasing.result_files if step == "publish" else erasing.retention

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    found = find(apart, USER, "logged")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, step, killed)
        erase(apart, found, dry_run=False)
    for made in kept.values():
        assert len(pq.ParquetFile(made["parquet"]).read()) in (10, 12)  # whole, before or after
    erase(apart, find(apart, USER, "logged"), dry_run=False)
    assert everywhere(apart, place) == []
    for made in kept.values():
        notes = journal.find(apart, made["evaluation_id"])["resolved"]["notes"]
        assert [note for note in notes if note["note"] == "cases erased"] == [{"note": "cases erased", "n": 2}]


def test_rows_are_found_though_the_source_has_lost_the_question(
    kept: dict[str, Document], apart: Engine, place: Path
) -> None:
    with apart.begin() as connection:
        connection.execute(text("DELETE FROM source_logged.question_answer WHERE user_id = :user"), {"user": USER})
        connection.execute(text("DELETE FROM yarus.case_set"))
        connection.execute(text("DELETE FROM source_logged.annotation"))
    done = erase(apart, find(apart, USER, "logged"), dry_run=False)
    assert done["evaluations"][kept["real_users"]["evaluation_id"]] == 2
    assert everywhere(apart, place) == []


@pytest.mark.slow("breadth: every moment and every name")
@pytest.mark.parametrize("user", ["nobody", "", "None", "%", "'; --"])
def test_an_unknown_user_changes_nothing(kept: dict[str, Document], apart: Engine, user: str) -> None:
    with apart.begin() as connection:
        connection.execute(text("UPDATE source_logged.question_answer SET user_id = NULL WHERE id = '1'"))
    done = erase(apart, find(apart, user, "logged"), dry_run=False)
    assert (done["evaluations"], done["questions"], done["calls"], done["vectors"]) == ({}, 0, 0, 0)
    with apart.connect() as connection:
        assert connection.scalar(select(call.c.key)) == b"theirs"


def test_a_file_that_cannot_be_read_stops_it_before_anything_is_erased(
    kept: dict[str, Document], apart: Engine, place: Path
) -> None:
    Path(kept["tier0"]["parquet"]).write_bytes(b"PAR0 no more")
    with pytest.raises(OSError, match="Nothing was erased"):
        find(apart, USER, "logged")
    assert len(everywhere(apart, place)) >= 9


def test_files_of_another_home_keep_their_rows_and_it_is_said(
    kept: dict[str, Document], apart: Engine, place: Path, yarus: CommandLine, variables: dict[str, str]
) -> None:
    moved = variables | {"YARUS_RESULTS": str(place / "new"), "YARUS_LANGUAGE": "en"}
    ran = yarus("prune", "--user", USER, "--source", "logged", "--yes", env=moved, ok=False)
    assert ran.code == 1
    assert "not in YARUS_RESULTS" in ran.out
    assert "questions in the source" not in ran.out
    assert len(pq.ParquetFile(kept["tier0"]["parquet"]).read()) == 12
    erase(apart, find(apart, USER, "logged"), dry_run=False)
    assert everywhere(apart, place) == []


def test_production_is_not_written(
    apart: Engine, production: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", production("erase_production"))
    made = real_users(source="production")
    done = erase(apart, find(apart, "7", "production"), dry_run=False)
    assert (done["evaluations"], done["questions"]) == ({made["evaluation_id"]: 2}, 0)
    assert "user 7" not in pq.ParquetFile(made["parquet"]).read()["group"].to_pylist()
    assert len(find(apart, "7", "production").question_ids) == 2


def test_while_an_evaluation_runs_it_waits(kept: dict[str, Document], apart: Engine) -> None:
    name = "tier1-20260101-000000-dead"
    with journal.alive(apart, name):
        journal.reopen(apart, name, None)
        with pytest.raises(InputError, match="is running over logged"):
            find(apart, USER, "logged")


@pytest.mark.slow("prefect: what its server keeps")
def test_pages_of_prefect_go_too(
    yarus: CommandLine, variables: dict[str, str], place: Path, apart: Engine, prefect_server: dict[str, str]
) -> None:
    rows = [question(i, user_id=USER if i == 2 else "1") for i in range(6)]
    rows[2] |= {"question": f"{MARK} о погоде?", "relevant_chunk_ids": ["c9"]}  # never found: among the worst
    load(place, "logged_prefect", rows)
    with_server = variables | prefect_server
    yarus("run", "tier1", "--source", "logged_prefect", env=with_server)

    def pages() -> list[str]:
        url, newest = f"{prefect_server['PREFECT_API_URL']}/artifacts/filter", {"sort": "CREATED_DESC"}  # of 200
        found = [str(page["data"]) for page in httpx.post(url, json=newest).json()]
        return [page for page in found if "logged_prefect" in page]

    assert any(MARK in page for page in pages())
    words = ("prune", "--user", USER, "--source", "logged_prefect", "--json")
    done = yarus(*words, "--yes", env=with_server).json
    assert (done["artifacts"], done["questions"], len(done["evaluations"])) == (1, 1, 1)
    assert not any(MARK in page for page in pages())


def test_half_done_work_on_a_store_goes_too(
    kept: dict[str, Document], apart: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_WORK", "memory://of_erase")
    there = fsspec.filesystem("memory")
    for name in ("tier1-20260101-000000-dead", "tier1-20260101-000000-0000"):  # the second is of another source
        there.pipe(f"/of_erase/{name}/cases.parquet", MARK.encode())
    erase(apart, find(apart, USER, "logged"), dry_run=False)
    assert there.find("/of_erase") == ["/of_erase/tier1-20260101-000000-0000/cases.parquet"]


def test_an_answer_that_others_were_examined_with_goes_too(place: Path, apart: Engine) -> None:
    said = ["красный", "синий", "зелёный", "белый", "чёрный", "жёлтый", "серый", "розовый"]
    rows = [
        question(i, user_id=str(i), confluence_url=PAGE.format(0), relevant_chunk_ids=["c0"],
                 ground_truth_answer=f"Шкаф {word} стоит этажом выше, возле {word}ого окна.")
        for i, word in enumerate(said)
    ]  # fmt: skip
    rows[2] |= {"user_id": USER, "ground_truth_answer": f"{MARK} хранит ключ от нижнего подвала."}
    load(place, "logged", rows)
    found = evaluate("judge", source="logged", probes=False)
    borrowed = [row for row in rows_of(found) if any(item["of"] == "2" for item in row["exam"] or ())]
    assert borrowed and USER not in {row["group"] for row in borrowed}
    erase(apart, find(apart, USER, "logged"), dry_run=False)
    assert not [row for row in rows_of(found) if MARK in str(row)]
    assert {row["question_id"] for row in rows_of(found)} == {
        str(i) for i in range(len(rows)) if i != 2 and str(i) not in {row["question_id"] for row in borrowed}
    }
