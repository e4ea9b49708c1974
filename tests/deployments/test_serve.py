"""`yarus serve` from start to stop: deployments, runs by command line and API, schedules, stopping."""

import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, select

from tests.support.command_line import CommandLine
from tests.support.forked import ForkedCommand
from tests.support.prefect_servers import PATIENCE_S, ServeProcess, parse_table_artifact
from tests.support.processes import wait_for
from yarus.db.tables import evaluation
from yarus.deployments.prefect.server_process import STOP_S
from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.texts import texts
from yarus.tasks.config.tiers import TIERS

RUN = ("run", "tier0", "--limit", "20", "--json")
UNREACHABLE = "http://127.0.0.1:9/nothing-listens-here"


@pytest.fixture(scope="module")
def early(starting: ServeProcess) -> list[ForkedCommand]:
    """Start runs by the command line when the server is announced, before it answers."""
    wait_for("address", lambda: (starting.home / "prefect" / "address").exists())
    return [CommandLine(starting.home).fork(*RUN) for _ in range(2)]


@pytest.fixture(scope="module")
def tier1_run(served: ServeProcess) -> dict[str, Any]:
    return served.ended(served.trigger("tier1", limit=60))


@pytest.fixture(scope="module")
def night(served: ServeProcess) -> tuple[dict[str, Any], dict[str, Any]]:
    """Start a night, and another one while it runs."""
    first_id = served.trigger("nightly", source="sample", limit=40)
    while served.run(first_id)["state_type"] in ("SCHEDULED", "PENDING"):
        time.sleep(0.1)
    second_id = served.trigger("nightly", source="sample", limit=40)
    return served.ended(first_id), served.ended(second_id)


def rows_of(engine: Engine, *flow_run_ids: str) -> list[Any]:
    with engine.connect() as connection:
        statement = select(evaluation).where(evaluation.c.flow_run_id.in_(flow_run_ids))
        return list(connection.execute(statement.order_by(evaluation.c.started_at)).mappings())


@pytest.mark.slow("process: three more runs")
def test_serve_lists_runs_of_the_command_line(early: list[ForkedCommand], served: ServeProcess) -> None:
    yarus = CommandLine(served.home)
    for run in [*(forked.ran() for forked in early), yarus(*RUN)]:
        assert run.code == 0, run.err
        assert served.run(run.json["flow_run_id"])["state_type"] == "COMPLETED"
    assert set(yarus("alerts", "apply", "--json").json["automations"].values()) == {"created"}
    assert yarus("admin", "stop", "--json").json == {"prefect": "serving", "postgresql": "in use"}


def test_serve_prints_its_addresses(served: ServeProcess) -> None:
    for address in (served.url, served.reports, f"{served.url}/api"):
        assert address in served.first_words
    assert httpx.get(served.url, follow_redirects=True).status_code == 200


def test_serve_keeps_runner_storage_in_the_home(served: ServeProcess) -> None:
    assert len(list((served.home / "prefect" / "runner_storage").iterdir())) == 1


def test_serve_deploys_flows_with_descriptions(served: ServeProcess) -> None:
    deployed = {deployment["name"]: deployment for deployment in served.post("/deployments/filter")}
    assert set(deployed) == set(FLOWS)
    for name, deployment in deployed.items():
        assert deployment["description"], name
        word, *rest = deployment["tags"]  # the list of deployments shows tags instead of descriptions
        assert word in (
            texts(f"tiers.{name}", "ru")["short"] if name in TIERS else "",
            *texts("deployments", "ru").values(),
        )
        assert rest == ["yarus", name]
        assert re.match(r"\d+\.\d+\.\d+", deployment["version"]), name
        assert deployment["work_pool_name"] == "yarus"
        assert deployment["enforce_parameter_schema"] is True
    nightly = deployed["nightly"]
    assert nightly["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
    [schedule] = nightly["schedules"]
    assert schedule["schedule"]["timezone"] == "Europe/Moscow"
    # There is no production database here, and at 03:00 it would be too late to report it.
    assert schedule["active"] is False
    assert "Ночного прогона не будет (источник production)" in served.first_words
    assert "YARUS_SOURCE_URL" in served.first_words


def test_api_run_stores_its_results(served: ServeProcess, tier1_run: dict[str, Any], journal_of: Engine) -> None:
    assert tier1_run["state_name"] == "Completed", tier1_run["state"]["message"]
    assert tier1_run["name"] == "tier1 sample · 60"
    [row] = rows_of(journal_of, tier1_run["id"])
    assert (row["state"], row["n_cases"]) == ("completed", 60)
    assert len(pq.read_table(row["parquet"])) == 60
    assert served.log_line(tier1_run["id"], "sample: вопросов 60")


def test_artifacts_show_results(served: ServeProcess, tier1_run: dict[str, Any], journal_of: Engine) -> None:
    artifacts = served.artifacts(tier1_run["id"])
    assert set(artifacts) == {"tier1-sample-metrics", "tier1-sample-verdict", "tier1-sample-report"}
    rows = {row["Метрика"]: row for row in parse_table_artifact(artifacts["tier1-sample-metrics"])}
    assert re.fullmatch(r"0\.\d{3}", rows["hit_rate@1"]["Значение"])
    assert re.fullmatch(r"0\.\d{3} – [01]\.\d{3}", rows["hit_rate@1"]["95 % интервал"])
    assert set(rows["hit_rate@1"]["Оценка"].split(" – ")) <= {"Отлично", "Хорошо", "Требует внимания"}
    text = artifacts["tier1-sample-verdict"]["data"]
    assert text.split("\n")[0].count(". ") >= 2  # three sentences
    assert text.count("`sample:") == 10
    [row] = rows_of(journal_of, tier1_run["id"])
    link = re.search(r"\((http://\S+)\)", text)
    assert link is not None
    page = served.page(link[1])
    assert (page.status_code, row["id"] in page.text) == (200, True)
    assert artifacts["tier1-sample-report"]["data"] == f"[Отчёт]({link[1]})"


@pytest.mark.parametrize(
    ("body", "field_name"),
    [
        ({"parameters": {"limitt": 5}}, "limitt"),
        ({"parameter": {}}, "parameter"),
        ({"parameters": {"limit": 0}}, "limit"),
        ({"parameters": {"unit": "word"}}, "unit"),
    ],
)
def test_invalid_parameters_are_refused(served: ServeProcess, body: dict[str, Any], field_name: str) -> None:
    path = f"/deployments/{served.deployment('tier1')['id']}/create_flow_run"
    refused = served.client.post(path, json={"parameters": body})
    assert refused.status_code == 409
    assert field_name in refused.json()["detail"]


@pytest.mark.slow("breadth: another run, after a valid one")
def test_invalid_evaluation_is_visible(served: ServeProcess, journal_of: Engine) -> None:
    run = served.ended(served.trigger("tier1", limit=20, retriever=UNREACHABLE))
    assert run["state_name"] == "Invalid"
    assert "YARUS_MIN_COVERAGE" in run["state"]["message"]
    assert rows_of(journal_of, run["id"])[0]["state"] == "invalid"
    assert "недействителен" in served.artifacts(run["id"])["tier1-sample-verdict"]["data"]


@pytest.mark.slow("prefect: a night of every tier")
def test_night_evaluates_every_tier(
    served: ServeProcess, night: tuple[dict[str, Any], ...], journal_of: Engine
) -> None:
    run, _ = night
    assert run["state_name"] == "Completed", run["state"]["message"]
    tiers = served.post("/flow_runs/filter", {"flow_runs": {"parent_flow_run_id": {"any_": [run["id"]]}}})
    rows = rows_of(journal_of, *(tier["id"] for tier in tiers))
    assert [row["tier"] for row in rows] == list(TIERS)
    assert {row["state"] for row in rows} <= {"completed", "invalid"}
    assert all(Path(row["parquet"]).exists() for row in rows)
    text = served.artifacts(run["id"])["nightly-sample-summary"]["data"]
    for name in ("silhouette_score", "hit_rate@1", "avg_e2e_score", "f1_score", "cache_hit_rate"):
        assert f"| {name} |" in text
    report = re.search(r"http://\S+\.html", text)
    assert report is not None
    assert served.page(report[0]).status_code == 200
    assert report[0] in served.artifacts(run["id"])["nightly-sample-report"]["data"]


@pytest.mark.slow("prefect: needs that night")
def test_second_night_is_refused_while_one_runs(night: tuple[dict[str, Any], ...]) -> None:
    _, second = night
    assert second["state_name"] == "Cancelled"
    assert "concurrency limit" in second["state"]["message"]


@pytest.mark.slow("wait: for a schedule")
def test_schedule_fires_without_overlapping_runs(served: ServeProcess, journal_of: Engine) -> None:
    nightly = served.deployment("nightly")["id"]
    short = {
        "active": True,
        "schedule": {"interval": 3.0, "anchor_date": "2026-01-01T00:00:00+00:00"},
        "parameters": {"parameters": {"source": "sample", "limit": 20, "tiers": ["tier0"]}},
    }
    [schedule] = served.client.post(f"/deployments/{nightly}/schedules", json=[short]).json()
    run_filter = {"flow_runs": {"deployment_id": {"any_": [nightly]}}, "sort": "EXPECTED_START_TIME_ASC"}

    def find_scheduled(state: str) -> list[Any]:
        return [
            run
            for run in served.post("/flow_runs/filter", run_filter)
            if run["auto_scheduled"] and run["state_name"] == state
        ]

    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not all(map(find_scheduled, ("Completed", "Cancelled", "Running"))):
        time.sleep(0.5)
    served.client.delete(f"/deployments/{nightly}/schedules/{schedule['id']}").raise_for_status()  # two are enough
    while time.monotonic() < deadline and find_scheduled("Running"):
        time.sleep(0.5)
    completed, refused = find_scheduled("Completed"), find_scheduled("Cancelled")
    assert len(completed) >= 2
    assert "concurrency limit" in refused[0]["state"]["message"]
    times = sorted((run["start_time"], run["end_time"]) for run in completed)
    assert all(end <= start for (_, end), (start, _) in pairwise(times))  # one after another, never two at once


def test_server_log_has_no_errors(served: ServeProcess, tier1_run: dict[str, Any]) -> None:
    check_server_log(served)


@pytest.mark.slow("prefect: needs that night")
def test_server_log_has_no_errors_after_a_night(served: ServeProcess, night: tuple[dict[str, Any], ...]) -> None:
    check_server_log(served)


def check_server_log(served: ServeProcess) -> None:
    """Check that the server's log has no errors."""
    log_text = (served.home / "prefect" / "server.log").read_text(encoding="utf-8")
    assert "database is locked" not in log_text
    assert "Traceback" not in log_text


SLOW_BOT = """
import pathlib
import time

def answer(question):
    while pathlib.Path(__file__).with_name("wait").exists():
        time.sleep(0.1)
    return {"answer": "Справку выдаёт деканат.", "urls": [], "contexts": []}
"""


@pytest.mark.slow("process: a run that is stopped and resumed")
def test_stop_leaves_no_process_and_runs_can_be_resumed(
    served: ServeProcess, journal_of: Engine, own_home: Path
) -> None:
    (own_home / "slow_bot.py").write_text(SLOW_BOT, encoding="utf-8")
    (own_home / "wait").touch()
    flow_run = served.trigger("tier3", sut="slow_bot:answer", limit=40)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not [row for row in rows_of(journal_of, flow_run) if row["n_cases"]]:
        time.sleep(0.05)
    started = [process for process in served.processes() if "postgres" not in process.name()]
    assert len(started) >= 2  # server and flow run
    output = served.stop()
    assert served.process.returncode == 0, output
    _, alive = psutil.wait_procs(started, timeout=2 * STOP_S)
    assert alive == []
    [row] = rows_of(journal_of, flow_run)
    assert row["state"] == "cancelled", row["error"]
    assert f"yarus run tier3 --resume {row['id']}" in row["error"]
    assert row["parquet"] is None
    (own_home / "wait").unlink()
    resumed = CommandLine(own_home)("run", "tier3", "--resume", row["id"], "--json").json
    assert (resumed["evaluation_id"], resumed["state"]) == (row["id"], "completed")
