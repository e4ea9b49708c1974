"""`yarus serve` from nothing to its end: deployments, runs by the command line and the API, schedules, stopping."""

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
from tests.support.forked import Forked
from tests.support.prefect_servers import PATIENCE_S, Serve, table_of
from tests.support.processes import until
from yarus.db.tables import evaluation
from yarus.deployments.prefect.server_process import STOP_S
from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.texts import texts
from yarus.tasks.config.tiers import TIERS

RUN = ("run", "tier0", "--limit", "20", "--json")
UNREACHABLE = "http://127.0.0.1:9/nothing-listens-here"


@pytest.fixture(scope="module")
def early(starting: Serve) -> list[Forked]:
    """Runs by the command line, begun when the server was announced: it answers later."""
    until("address", lambda: (starting.home / "prefect" / "address").exists())
    return [CommandLine(starting.home).fork(*RUN) for _ in range(2)]


@pytest.fixture(scope="module")
def tier1_run(served: Serve) -> dict[str, Any]:
    return served.ended(served.trigger("tier1", limit=60))


@pytest.fixture(scope="module")
def night(served: Serve) -> tuple[dict[str, Any], dict[str, Any]]:
    """A night, and another that was started while it ran."""
    first = served.trigger("nightly", source="sample", limit=40)
    while served.run(first)["state_type"] in ("SCHEDULED", "PENDING"):
        time.sleep(0.1)
    second = served.trigger("nightly", source="sample", limit=40)
    return served.ended(first), served.ended(second)


def rows_of(engine: Engine, *flow_run_ids: str) -> list[Any]:
    with engine.connect() as connection:
        wanted = select(evaluation).where(evaluation.c.flow_run_id.in_(flow_run_ids))
        return list(connection.execute(wanted.order_by(evaluation.c.started_at)).mappings())


@pytest.mark.slow("process: three more runs")
def test_runs_of_the_command_line_appear_there(early: list[Forked], served: Serve) -> None:
    yarus = CommandLine(served.home)
    for run in [*(one.ran() for one in early), yarus(*RUN)]:
        assert run.code == 0, run.err
        assert served.run(run.json["flow_run_id"])["state_type"] == "COMPLETED"
    assert set(yarus("alerts", "apply", "--json").json["automations"].values()) == {"created"}
    assert yarus("stop", "--json").json == {"prefect": "serving", "postgresql": "in use"}


def test_it_says_where_everything_is(served: Serve) -> None:
    for address in (served.url, served.reports, f"{served.url}/api"):
        assert address in served.first_words
    assert httpx.get(served.url, follow_redirects=True).status_code == 200


def test_it_needs_no_folder_that_another_account_may_have_made(served: Serve) -> None:
    assert len(list((served.home / "prefect" / "runner_storage").iterdir())) == 1


def test_every_flow_is_deployed_with_all_that_the_ui_shows(served: Serve) -> None:
    deployed = {found["name"]: found for found in served.post("/deployments/filter")}
    assert set(deployed) == set(FLOWS)
    for name, found in deployed.items():
        assert found["description"], name
        word, *rest = found["tags"]  # the list of deployments shows no descriptions
        assert word in (
            texts(f"tiers.{name}", "ru")["short"] if name in TIERS else "",
            *texts("deployments", "ru").values(),
        )
        assert rest == ["yarus", name]
        assert re.match(r"\d+\.\d+\.\d+", found["version"]), name
        assert found["work_pool_name"] == "yarus"
        assert found["enforce_parameter_schema"] is True
    nightly = deployed["nightly"]
    assert nightly["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
    [schedule] = nightly["schedules"]
    assert schedule["schedule"]["timezone"] == "Europe/Moscow"
    # There is no production database here: at 03:00 it would be too late to say so.
    assert schedule["active"] is False
    assert "Ночного прогона не будет (источник production)" in served.first_words
    assert "YARUS_SOURCE_URL" in served.first_words


def test_a_run_through_the_api_leaves_its_results(served: Serve, tier1_run: dict[str, Any], journal_of: Engine) -> None:
    assert tier1_run["state_name"] == "Completed", tier1_run["state"]["message"]
    assert tier1_run["name"] == "tier1 sample · 60"
    [row] = rows_of(journal_of, tier1_run["id"])
    assert (row["state"], row["n_cases"]) == ("completed", 60)
    assert len(pq.read_table(row["parquet"])) == 60
    assert served.log_line(tier1_run["id"], "sample: вопросов 60")


def test_the_artifacts_say_what_it_came_to(served: Serve, tier1_run: dict[str, Any], journal_of: Engine) -> None:
    shown = served.artifacts(tier1_run["id"])
    assert set(shown) == {"tier1-sample-metrics", "tier1-sample-verdict", "tier1-sample-report"}
    rows = {row["Метрика"]: row for row in table_of(shown["tier1-sample-metrics"])}
    assert re.fullmatch(r"0\.\d{3}", rows["hit_rate@1"]["Значение"])
    assert re.fullmatch(r"0\.\d{3} – [01]\.\d{3}", rows["hit_rate@1"]["95 % интервал"])
    assert set(rows["hit_rate@1"]["Оценка"].split(" – ")) <= {"Отлично", "Хорошо", "Требует внимания"}
    text = shown["tier1-sample-verdict"]["data"]
    assert text.split("\n")[0].count(". ") >= 2  # three sentences
    assert text.count("`sample:") == 10
    [row] = rows_of(journal_of, tier1_run["id"])
    link = re.search(r"\((http://\S+)\)", text)
    assert link is not None
    page = served.page(link[1])
    assert (page.status_code, row["id"] in page.text) == (200, True)
    assert shown["tier1-sample-report"]["data"] == f"[Отчёт]({link[1]})"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"parameters": {"limitt": 5}}, "limitt"),
        ({"parameter": {}}, "parameter"),
        ({"parameters": {"limit": 0}}, "limit"),
        ({"parameters": {"unit": "word"}}, "unit"),
    ],
)
def test_nonsense_is_refused_before_it_runs(served: Serve, body: dict[str, Any], named: str) -> None:
    path = f"/deployments/{served.deployment('tier1')['id']}/create_flow_run"
    refused = served.client.post(path, json={"parameters": body})
    assert refused.status_code == 409
    assert named in refused.json()["detail"]


@pytest.mark.slow("breadth: another run, after a valid one")
def test_an_invalid_evaluation_is_seen(served: Serve, journal_of: Engine) -> None:
    run = served.ended(served.trigger("tier1", limit=20, retriever=UNREACHABLE))
    assert run["state_name"] == "Invalid"
    assert "YARUS_MIN_COVERAGE" in run["state"]["message"]
    assert rows_of(journal_of, run["id"])[0]["state"] == "invalid"
    assert "недействителен" in served.artifacts(run["id"])["tier1-sample-verdict"]["data"]


@pytest.mark.slow("prefect: a night of every tier")
def test_a_night_evaluates_every_tier(served: Serve, night: tuple[dict[str, Any], ...], journal_of: Engine) -> None:
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
def test_a_second_night_is_refused_while_one_runs(night: tuple[dict[str, Any], ...]) -> None:
    _, second = night
    assert second["state_name"] == "Cancelled"
    assert "concurrency limit" in second["state"]["message"]


@pytest.mark.slow("wait: for a schedule")
def test_a_schedule_fires_and_an_overlapping_run_is_refused(served: Serve, journal_of: Engine) -> None:
    nightly = served.deployment("nightly")["id"]
    short = {
        "active": True,
        "schedule": {"interval": 3.0, "anchor_date": "2026-01-01T00:00:00+00:00"},
        "parameters": {"parameters": {"source": "sample", "limit": 20, "tiers": ["tier0"]}},
    }
    [made] = served.client.post(f"/deployments/{nightly}/schedules", json=[short]).json()
    wanted = {"flow_runs": {"deployment_id": {"any_": [nightly]}}, "sort": "EXPECTED_START_TIME_ASC"}

    def fired(state: str) -> list[Any]:
        return [
            run
            for run in served.post("/flow_runs/filter", wanted)
            if run["auto_scheduled"] and run["state_name"] == state
        ]

    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not all(map(fired, ("Completed", "Cancelled", "Running"))):
        time.sleep(0.5)
    served.client.delete(f"/deployments/{nightly}/schedules/{made['id']}").raise_for_status()  # two will do
    while time.monotonic() < deadline and fired("Running"):
        time.sleep(0.5)
    completed, refused = fired("Completed"), fired("Cancelled")
    assert len(completed) >= 2
    assert "concurrency limit" in refused[0]["state"]["message"]
    times = sorted((run["start_time"], run["end_time"]) for run in completed)
    assert all(end <= start for (_, end), (start, _) in pairwise(times))  # one after another, never two at once


def test_the_server_met_no_trouble(served: Serve, tier1_run: dict[str, Any]) -> None:
    no_trouble(served)


@pytest.mark.slow("prefect: needs that night")
def test_the_server_met_no_trouble_at_night_either(served: Serve, night: tuple[dict[str, Any], ...]) -> None:
    no_trouble(served)


def no_trouble(served: Serve) -> None:
    """That its log has none of what failed before."""
    words = (served.home / "prefect" / "server.log").read_text(encoding="utf-8")
    assert "database is locked" not in words
    assert "Traceback" not in words


SLOW_BOT = """
import pathlib
import time

def answer(question):
    while pathlib.Path(__file__).with_name("wait").exists():
        time.sleep(0.1)
    return {"answer": "Справку выдаёт деканат.", "urls": [], "contexts": []}
"""


@pytest.mark.slow("process: a run that is stopped and resumed")
def test_stopped_it_leaves_nothing_running_and_what_ran_can_be_resumed(
    served: Serve, journal_of: Engine, own_home: Path
) -> None:
    (own_home / "slow_bot.py").write_text(SLOW_BOT, encoding="utf-8")
    (own_home / "wait").touch()
    flow_run = served.trigger("tier3", sut="slow_bot:answer", limit=40)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and not [row for row in rows_of(journal_of, flow_run) if row["n_cases"]]:
        time.sleep(0.05)
    started = [process for process in served.processes() if "postgres" not in process.name()]
    assert len(started) >= 2  # server and flow run
    words = served.stop()
    assert served.process.returncode == 0, words
    _, alive = psutil.wait_procs(started, timeout=2 * STOP_S)
    assert alive == []
    [row] = rows_of(journal_of, flow_run)
    assert row["state"] == "cancelled", row["error"]
    assert f"yarus run tier3 --resume {row['id']}" in row["error"]
    assert row["parquet"] is None
    (own_home / "wait").unlink()
    resumed = CommandLine(own_home)("run", "tier3", "--resume", row["id"], "--json").json
    assert (resumed["evaluation_id"], resumed["state"]) == (row["id"], "completed")
