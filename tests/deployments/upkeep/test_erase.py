"""Erasure: afterwards a user's questions are nowhere; the same command completes it after a kill."""

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
from tests.support.evaluations import PAGE_URL, evaluate, load, question, read_rows
from tests.support.steps import evaluate_real_users, evaluate_tier0
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.stores.labels import label
from yarus.db.stores.vectors import store_vectors
from yarus.db.tables import analysis, call, evaluation
from yarus.deployments.upkeep.erasure import erase as erasing
from yarus.deployments.upkeep.erasure.erase import erase_user_data, find_user_data
from yarus.tasks.cases.frozen_sets import freeze
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.result_files import EVALUATION_ID_KEY

MARK = "Тайна пользователя"
USER = "4711"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def variables(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Create a separate home and database, because their data is erased."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE DATABASE of_erase"))
    url = engine.url.set(database="of_erase").render_as_string(hide_password=False)
    return {"YARUS_HOME": str(tmp_path_factory.mktemp("erase")), "YARUS_DATABASE_URL": url}


@pytest.fixture(scope="module")
def own_engine(variables: dict[str, str]) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        separate_engine = database()
    yield separate_engine
    separate_engine.dispose()


@pytest.fixture(autouse=True)
def clean_home(variables: dict[str, str], own_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set and empty that home."""
    for name in [name for name in os.environ if name.startswith("YARUS_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    home = Path(variables["YARUS_HOME"])
    monkeypatch.chdir(home)
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with own_engine.begin() as connection:
        for table in ("evaluation", "call", "embedding", "case_set", "analysis", "label"):
            connection.execute(text(f"DELETE FROM yarus.{table}"))
    return home


@pytest.fixture
def stored(clean_home: Path, own_engine: Engine) -> dict[str, Document]:
    """Store the texts in evaluations, a frozen set, a reply, a vector, an analysis, a report and a working folder."""
    rows = [question(i, user_id=USER if i in (2, 5) else str(i % 3)) for i in range(12)]
    rows[2]["question"], rows[5]["question"] = f"{MARK}: первая?", f"{MARK}: вторая?"
    load(clean_home, "logged", rows)
    runs = {
        "real_users": evaluate_real_users(source="logged"),
        "tier0": evaluate_tier0(source="logged", texts="questions"),
    }
    freeze("frozen", "logged")
    reply = {"key": b"theirs", "role": "judge", "model": "m", "prompt": "p", "latency_ms": 1.0}
    reply |= {"evaluation_id": runs["real_users"]["evaluation_id"], "reply": f"{MARK} …"}
    values = {"id": "corpus-1", "kind": "corpus", "source": "logged", "state": "completed", "parameters": {}}
    values |= {"started_at": runs["tier0"]["started_at"], "document": {"examples": [rows[2]["question"]]}}
    with own_engine.begin() as connection:
        connection.execute(insert(call).values(reply))
        connection.execute(insert(analysis).values(values))
        connection.execute(
            text("INSERT INTO source_logged.annotation (question_id, ground_truth_answer) VALUES ('2', :said) "
                 "ON CONFLICT (question_id) DO UPDATE SET ground_truth_answer = :said"), {"said": MARK}
        )  # fmt: skip
    row = {"evaluation_id": runs["real_users"]["evaluation_id"], "metric": "avg_faithfulness", "source": "logged"}
    row |= {"value": 1.0, "score": 0.5, "stratum": "middle ok", "stratum_size": 12, "probability": 0.5, "tier": "tier2"}
    row |= {"shown_sha256": "x", "judge_key": "k", "annotator": "anna"}
    labels = [{"case_id": "logged:2", "case_group": None, "note": MARK}, {"case_id": "x", "case_group": f"user {USER}"}]
    with own_engine.begin() as connection:
        for owner in (*labels, {"case_id": "logged:3", "case_group": "user 0"}):
            connection.execute(insert(label).values(row | owner))
    store_vectors(own_engine, "m", {hashlib.sha256(row["question"].encode()).digest(): b"v" for row in rows})
    work = clean_home / "work" / "tier1-20260101-000000-dead"
    work.mkdir(parents=True)
    (work / "cases.parquet").write_text(MARK)
    with own_engine.begin() as connection:
        dead = {"id": work.name, "tier": "tier1", "state": "failed", "source": "logged", "parameters": {}}
        dead |= {"started_at": runs["tier0"]["started_at"], "settings": {}, "versions": {}}
        dead["error"] = f"ValueError: {rows[2]['question']}; continue with: …"
        connection.execute(insert(evaluation).values(dead))
    (clean_home / "reports").mkdir()
    (clean_home / "reports" / "night.html").write_text(f"<h1>{runs['tier0']['evaluation_id']}</h1>{MARK}")
    (clean_home / "reports" / "other.html").write_text("<h1>tier1-20200101-000000-0000</h1>")
    for file in clean_home.glob("logged.*.jsonl"):
        file.unlink()  # loaded files are not Yarus's
    return runs


def find_mark(engine: Engine, home: Path) -> list[str]:
    """Return where the mark is found: tables of ours and of the source, files at home."""
    locations = []
    with engine.connect() as connection:
        for schema in ("yarus", "source_logged"):
            for name in inspect(engine).get_table_names(schema=schema):
                rows = connection.execute(text(f"SELECT t::text FROM {schema}.{name} t"))
                locations += [f"{schema}.{name}" for (row,) in rows if MARK in row]
    for path in sorted(home.rglob("*")):
        if path.suffix == ".parquet" and path.is_file() and path.read_bytes()[:4] == b"PAR1":
            content = str(pq.ParquetFile(path).read().to_pylist())
        else:
            content = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        locations += [path.name] if MARK in content else []
    return locations


def test_erase_removes_all_texts_and_keeps_metrics(
    stored: dict[str, Document], own_engine: Engine, clean_home: Path
) -> None:
    assert len(find_mark(own_engine, clean_home)) >= 10
    before = {tier: journal.read_metrics(own_engine, result["evaluation_id"]) for tier, result in stored.items()}
    planned = erase_user_data(own_engine, find_user_data(own_engine, USER, "logged"), dry_run=True)
    assert len(find_mark(own_engine, clean_home)) >= 10
    done = erase_user_data(own_engine, find_user_data(own_engine, USER, "logged"), dry_run=False)
    assert done == planned | {"dry_run": False}
    assert find_mark(own_engine, clean_home) == []
    assert done["evaluations"] == {result["evaluation_id"]: 2 for result in stored.values()}
    counted = {name: done[name] for name in ("calls", "vectors", "analyses", "case_set_rows", "folders", "labels")}
    assert counted == {"calls": 1, "vectors": 2, "analyses": 1, "case_set_rows": 2, "folders": 1, "labels": 2}
    assert done["questions"] == 2
    with own_engine.connect() as connection:
        assert connection.scalars(select(label.c.case_id)).all() == ["logged:3"]
    assert [path.name for path in (clean_home / "reports").iterdir()] == ["other.html"]
    for tier, result in stored.items():
        remaining = pq.ParquetFile(result["parquet"]).read()
        assert (len(remaining), USER in str(remaining["group"].to_pylist())) == (10, False)
        assert remaining.schema.metadata[EVALUATION_ID_KEY].decode() == result["evaluation_id"]
        assert journal.read_metrics(own_engine, result["evaluation_id"]) == before[tier]
        notes = journal.find_evaluation(own_engine, result["evaluation_id"])["resolved"]["notes"]
        assert {"note": "cases erased", "n": 2} in notes


def test_erase_changes_the_hash_of_frozen_sets(stored: dict[str, Document], own_engine: Engine) -> None:
    from yarus.db import case_sets

    before = case_sets.find_case_set(own_engine, "frozen")
    erase_user_data(own_engine, find_user_data(own_engine, USER, "logged"), dry_run=False)
    after = case_sets.find_case_set(own_engine, "frozen")
    assert (before.n_cases, after.n_cases) == (12, 10)
    assert after.sha256 == case_sets.content_hash(case_sets.read_case_set(own_engine, "frozen")) != before.sha256


@pytest.mark.slow("breadth: every moment and every name")
@pytest.mark.parametrize("step", ["record_erasure", "count_questions", "count_frozen_questions", "publish_file"])
def test_erase_completes_after_a_kill(
    stored: dict[str, Document], own_engine: Engine, clean_home: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    module = erasing.result_files if step == "publish_file" else erasing.retention

    def kill(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    user_data = find_user_data(own_engine, USER, "logged")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, step, kill)
        erase_user_data(own_engine, user_data, dry_run=False)
    for result in stored.values():
        assert len(pq.ParquetFile(result["parquet"]).read()) in (10, 12)  # complete, before or after
    erase_user_data(own_engine, find_user_data(own_engine, USER, "logged"), dry_run=False)
    assert find_mark(own_engine, clean_home) == []
    for result in stored.values():
        notes = journal.find_evaluation(own_engine, result["evaluation_id"])["resolved"]["notes"]
        assert [note for note in notes if note["note"] == "cases erased"] == [{"note": "cases erased", "n": 2}]


def test_find_uses_evaluations_when_source_lost_rows(
    stored: dict[str, Document], own_engine: Engine, clean_home: Path
) -> None:
    with own_engine.begin() as connection:
        connection.execute(text("DELETE FROM source_logged.question_answer WHERE user_id = :user"), {"user": USER})
        connection.execute(text("DELETE FROM yarus.case_set"))
        connection.execute(text("DELETE FROM source_logged.annotation"))
    done = erase_user_data(own_engine, find_user_data(own_engine, USER, "logged"), dry_run=False)
    assert done["evaluations"][stored["real_users"]["evaluation_id"]] == 2
    assert find_mark(own_engine, clean_home) == []


@pytest.mark.slow("breadth: every moment and every name")
@pytest.mark.parametrize("user", ["nobody", "", "None", "%", "'; --"])
def test_erase_of_unknown_user_changes_nothing(stored: dict[str, Document], own_engine: Engine, user: str) -> None:
    with own_engine.begin() as connection:
        connection.execute(text("UPDATE source_logged.question_answer SET user_id = NULL WHERE id = '1'"))
    done = erase_user_data(own_engine, find_user_data(own_engine, user, "logged"), dry_run=False)
    assert (done["evaluations"], done["questions"], done["calls"], done["vectors"]) == ({}, 0, 0, 0)
    with own_engine.connect() as connection:
        assert connection.scalar(select(call.c.key)) == b"theirs"


def test_find_stops_at_unreadable_files(stored: dict[str, Document], own_engine: Engine, clean_home: Path) -> None:
    Path(stored["tier0"]["parquet"]).write_bytes(b"PAR0 no more")
    with pytest.raises(OSError, match="Nothing was erased"):
        find_user_data(own_engine, USER, "logged")
    assert len(find_mark(own_engine, clean_home)) >= 9


def test_erase_reports_files_of_another_home(
    stored: dict[str, Document], own_engine: Engine, clean_home: Path, yarus: CommandLine, variables: dict[str, str]
) -> None:
    moved = variables | {"YARUS_RESULTS": str(clean_home / "new"), "YARUS_LANGUAGE": "en"}
    finished = yarus("admin", "prune", "--user", USER, "--source", "logged", "--yes", env=moved, ok=False)
    assert finished.code == 1
    assert "not in YARUS_RESULTS" in finished.out
    assert "questions in the source" not in finished.out
    assert len(pq.ParquetFile(stored["tier0"]["parquet"]).read()) == 12
    erase_user_data(own_engine, find_user_data(own_engine, USER, "logged"), dry_run=False)
    assert find_mark(own_engine, clean_home) == []


def test_erase_never_writes_production(
    own_engine: Engine, production: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", production("erase_production"))
    result = evaluate_real_users(source="production")
    done = erase_user_data(own_engine, find_user_data(own_engine, "7", "production"), dry_run=False)
    assert (done["evaluations"], done["questions"]) == ({result["evaluation_id"]: 2}, 0)
    assert "user 7" not in pq.ParquetFile(result["parquet"]).read()["group"].to_pylist()
    assert len(find_user_data(own_engine, "7", "production").question_ids) == 2


def test_find_rejects_running_evaluations(stored: dict[str, Document], own_engine: Engine) -> None:
    name = "tier1-20260101-000000-dead"
    with journal.hold_evaluation_lock(own_engine, name):
        journal.resume_evaluation(own_engine, name, None)
        with pytest.raises(InputError, match="is running over logged"):
            find_user_data(own_engine, USER, "logged")


@pytest.mark.slow("prefect: what its server keeps")
def test_erase_removes_artifacts_of_prefect(
    yarus: CommandLine, variables: dict[str, str], clean_home: Path, own_engine: Engine, prefect_server: dict[str, str]
) -> None:
    rows = [question(i, user_id=USER if i == 2 else "1") for i in range(6)]
    rows[2] |= {"question": f"{MARK} о погоде?", "relevant_chunk_ids": ["c9"]}  # never retrieved: among the worst cases
    load(clean_home, "logged_prefect", rows)
    with_server = variables | prefect_server
    yarus("run", "tier1", "--source", "logged_prefect", env=with_server)

    def read_pages() -> list[str]:
        url, newest = f"{prefect_server['PREFECT_API_URL']}/artifacts/filter", {"sort": "CREATED_DESC"}  # of 200
        page_texts = [str(page["data"]) for page in httpx.post(url, json=newest).json()]
        return [page for page in page_texts if "logged_prefect" in page]

    assert any(MARK in page for page in read_pages())
    words = ("admin", "prune", "--user", USER, "--source", "logged_prefect", "--json")
    done = yarus(*words, "--yes", env=with_server).json
    assert (done["artifacts"], done["questions"], len(done["evaluations"])) == (1, 1, 1)
    assert not any(MARK in page for page in read_pages())


def test_erase_removes_working_files_on_a_store(
    stored: dict[str, Document], own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_WORK_DIR", "memory://of_erase")
    store = fsspec.filesystem("memory")
    for name in ("tier1-20260101-000000-dead", "tier1-20260101-000000-0000"):  # the second is of another source
        store.pipe(f"/of_erase/{name}/cases.parquet", MARK.encode())
    erase_user_data(own_engine, find_user_data(own_engine, USER, "logged"), dry_run=False)
    assert store.find("/of_erase") == ["/of_erase/tier1-20260101-000000-0000/cases.parquet"]


def test_erase_removes_borrowed_exam_answers(clean_home: Path, own_engine: Engine) -> None:
    colours = ["красный", "синий", "зелёный", "белый", "чёрный", "жёлтый", "серый", "розовый"]
    rows = [
        question(i, user_id=str(i), confluence_url=PAGE_URL.format(0), relevant_chunk_ids=["c0"],
                 ground_truth_answer=f"Шкаф {word} стоит этажом выше, возле {word}ого окна.")
        for i, word in enumerate(colours)
    ]  # fmt: skip
    rows[2] |= {"user_id": USER, "ground_truth_answer": f"{MARK} хранит ключ от нижнего подвала."}
    load(clean_home, "logged", rows)
    judged = evaluate("judge", source="logged", bias_probes=False)
    borrowed = [row for row in read_rows(judged) if any(item["of"] == "2" for item in row["exam"] or ())]
    assert borrowed and USER not in {row["group"] for row in borrowed}
    erase_user_data(own_engine, find_user_data(own_engine, USER, "logged"), dry_run=False)
    assert not [row for row in read_rows(judged) if MARK in str(row)]
    assert {row["question_id"] for row in read_rows(judged)} == {
        str(i) for i in range(len(rows)) if i != 2 and str(i) not in {row["question_id"] for row in borrowed}
    }
