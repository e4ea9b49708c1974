"""Check that incidents open once and close once, and that a run whose process died is marked as crashed."""

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, delete, select
from sqlalchemy.dialects.postgresql import insert

from tests.support.prefect_servers import get_state
from tests.support.processes import wait_for
from tests.support.texts.docs_pages import ROOT, read_blocks
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import evaluation, nightly_verdict
from yarus.deployments.alarms import incidents
from yarus.deployments.alarms.incidents import accept_evaluation
from yarus.deployments.alarms.night_message import format_night
from yarus.deployments.automations import load_automations

SOURCE = "source of incidents"
NIGHT = count()


@pytest.fixture(autouse=True)
def clean(engine: Engine) -> Iterator[None]:
    yield
    with engine.begin() as connection:
        connection.execute(delete(evaluation).where(evaluation.c.source == SOURCE))


def write_night(engine: Engine, state: str, key: str | None = "of incidents", **more: Any) -> str:
    """Write an evaluation of the next night, judge it twice like a retried night, and return its id."""
    number = next(NIGHT)
    row = {
        "id": f"tier1-incident-{number}",
        "tier": "tier1",
        "source": SOURCE,
        "state": state,
        "flow_run_id": str(uuid.uuid4()),
    }
    row |= {"started_at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number), "comparability_key": key}
    row |= {"parameters": {}, "settings": {}, "versions": {}, "error": f"reason {number}"} | more
    with engine.begin() as connection:
        connection.execute(insert(evaluation).values(row | {"finished_at": row["started_at"]}))
        journal.accept_if_first(connection, str(row["id"]))
    for _ in range(2):
        incidents.follow_run(engine, str(row["flow_run_id"]))
    return str(row["id"])


def list_open(engine: Engine) -> list[tuple[str, str, int]]:
    """Return (first evaluation, verdict, nights) of the open incidents."""
    rows = incidents.list_incidents(engine)
    return [(row["incident_id"], row["verdict"], row["nights"]) for row in rows if row["source"] == SOURCE]


def list_messages(caplog: Any) -> list[str]:
    """Return the logged messages about incidents."""
    return [text for record in caplog.records if (text := record.getMessage()).startswith("Ночной прогон, ")]


def list_verdicts(engine: Engine) -> list[str]:
    verdicts = select(nightly_verdict.c.verdict).join(evaluation).where(evaluation.c.source == SOURCE)
    with engine.connect() as connection:
        return list(connection.scalars(verdicts.order_by(evaluation.c.started_at)))


def test_invalid_night_opens_incident_and_valid_closes_it(engine: Engine, caplog: Any) -> None:
    first = write_night(engine, "invalid")
    assert list_open(engine) == [(first, "invalid", 1)]
    write_night(engine, "invalid")
    assert list_open(engine) == [(first, "invalid", 2)]
    write_night(engine, "completed")
    assert list_open(engine) == []
    assert list_verdicts(engine) == ["invalid", "invalid", "good"]
    logged = [record.getMessage() for record in caplog.records if record.name == "yarus"]
    assert len(logged) == 2  # one message each way
    assert "недействителен: reason" in logged[0]
    assert f"снова в порядке, после {first}" in logged[1]


def test_failing_nights_are_one_incident(engine: Engine, caplog: Any) -> None:
    write_night(engine, "completed")
    first = write_night(engine, "failed", key=None)
    write_night(engine, "failed", key=None)
    assert list_open(engine) == [(first, "failed", 2)]
    write_night(engine, "invalid")  # it closes the first incident, and opens another one
    assert [verdict for _, verdict, _ in list_open(engine)] == ["invalid"]
    assert len([record for record in caplog.records if record.name == "yarus"]) == 3


def test_failure_after_good_night_is_new_incident(engine: Engine) -> None:
    write_night(engine, "failed", key=None)
    write_night(engine, "completed")
    second = write_night(engine, "failed", key=None)
    assert list_open(engine) == [(second, "failed", 1)]


def test_retried_night_closes_incident(engine: Engine, caplog: Any) -> None:
    write_night(engine, "completed")
    failed = write_night(engine, "failed", key=None)
    assert list_open(engine) == [(failed, "failed", 1)]
    flow_run_id = str(uuid.uuid4())  # Prefect's retry makes a new run of the tier
    retried = {"state": "completed", "comparability_key": "another of incidents", "flow_run_id": flow_run_id}
    with engine.begin() as connection:
        connection.execute(evaluation.update().where(evaluation.c.id == failed).values(retried))
        journal.accept_if_first(connection, failed)
    assert list_open(engine) == []
    for _ in range(2):
        incidents.follow_run(engine, flow_run_id)
    assert (list_open(engine), list_verdicts(engine)) == ([], ["good", "good"])
    write_night(engine, "completed", key="a third of incidents")
    logged = [record.getMessage() for record in caplog.records if record.name == "yarus"]
    assert len(logged) == 2  # one message each way
    assert f"снова в порядке, после {failed}" in logged[1]


def test_retry_repeats_opening_message(engine: Engine, at_home: object) -> None:
    """Check that a retry sends the message again, because the earlier attempt may have died first."""
    first, second = (write_night(engine, "failed", key=None) for _ in range(2))

    def follow_night(name: str) -> list[tuple[str, str]]:
        received: list[Any] = []
        run = uuid.UUID(journal.find_evaluation(engine, name)["flow_run_id"])
        asyncio.run(incidents.follow_flow_run(run, fail_if_called, received.append))
        return [(incident["what"], incident["incident"]) for incident in received]

    assert follow_night(first) == [("opened", first)]
    assert follow_night(second) == []  # its incident was already open
    write_night(engine, "completed")
    assert follow_night(first) == []


async def fail_if_called(parameters: Any, *, return_state: bool) -> None:
    raise AssertionError(f"{parameters} {return_state}")


def make_incident(what: str, tier: str, **more: Any) -> dict[str, Any]:
    return {"what": what, "tier": tier, "verdict": "good", "why": "", "error": "", "anchor": None} | more


def test_message_tells_each_cause_once() -> None:
    down = {"verdict": "failed", "error": "OSError: {0} is down; continue with: yarus run {1} --resume {1}-1"}
    worse = {"verdict": "regressed", "why": "mrr 0.900 → 0.500."}
    night_incidents = [
        make_incident("opened", "tier1", verdict="failed", error=down["error"].format("the database", "tier1")),
        make_incident("opened", "tier2", **worse),
        make_incident("opened", "tier0", verdict="failed", error=down["error"].format("the database", "tier0")),
        make_incident("opened", "tier0", verdict="failed", error=down["error"].format("the judge", "tier0")),
        make_incident("closed", "ux"),
        make_incident("closed", "tier3"),
        make_incident("closed", "tier3"),  # of another key
        make_incident("closed", "tier3", anchor="tier3-1"),
    ]
    assert format_night("sample", night_incidents, "en").splitlines() == [
        "[sample] Failed: retrieval, embeddings. Cause: OSError: the database is down",
        "Worse than the accepted evaluation: generation. mrr 0.900 → 0.500.",
        "Failed: embeddings. Cause: OSError: the judge is down",
        "Recovered: the whole system, the whole system on stored answers, cache and dialogs.",
    ]


def test_message_begins_with_what_users_notice() -> None:
    night_incidents = [
        make_incident("opened", "tier0", verdict="regressed", why="silhouette_score 0.500 → 0.100."),
        make_incident("closed", "tier1"),
        make_incident("opened", "tier3", verdict="regressed", why="avg_e2e_score 0.900 → 0.500."),
    ]
    message = format_night("sample", night_incidents, "en")
    assert message.splitlines() == [
        "[sample] Worse than the accepted evaluation: the whole system. avg_e2e_score 0.900 → 0.500.",
        "Worse than the accepted evaluation: embeddings. silhouette_score 0.500 → 0.100.",
        "Recovered: retrieval.",
    ]
    (example,) = [block.text for block in read_blocks(ROOT / "docs" / "alerts.md") if block.kind == "text"]
    assert example == f"{message}\n"


def test_another_key_is_another_incident(engine: Engine) -> None:
    first = write_night(engine, "invalid", key="one judge")
    second = write_night(engine, "invalid", key="another judge")
    assert {name for name, _, _ in list_open(engine)} == {first, second}


def test_good_night_closes_incident_of_other_key(engine: Engine, caplog: Any) -> None:
    write_night(engine, "completed", key="one judge")
    first = write_night(engine, "invalid", key="one judge")
    second = write_night(engine, "invalid", key="another judge")
    assert len(list_messages(caplog)) == 2
    write_night(engine, "completed", key="another judge")
    assert list_open(engine) == []
    assert len(list_messages(caplog)) == 4
    for incident, message in zip((second, first), list_messages(caplog)[2:], strict=True):
        assert f"снова в порядке, после {incident}" in message
    again = write_night(engine, "invalid", key="one judge")  # a new incident
    assert list_open(engine) == [(again, "invalid", 1)]
    assert "недействителен" in list_messages(caplog)[4]
    write_night(engine, "completed", key="a third judge")
    assert (list_open(engine), len(list_messages(caplog))) == ([], 6)


def test_unreadable_anchor_is_one_incident(engine: Engine, caplog: Any) -> None:
    """Check that good nights of the live tier do not close it, even if it failed before it was resolved."""
    root = write_night(engine, "completed")
    anchor = write_night(engine, "completed", parameters={"anchor": root}, resolved={"answers_of": root})
    failed = []
    for _ in range(3):
        write_night(engine, "completed", resolved={})
        failed.append(write_night(engine, "failed", key=None, parameters={"anchor": anchor, "reuse_answers": anchor}))
    assert list_open(engine) == [(failed[0], "failed", 3)]
    assert len(list_messages(caplog)) == 1
    write_night(engine, "completed", parameters={"anchor": anchor}, resolved={"answers_of": root})
    assert (list_open(engine), len(list_messages(caplog))) == ([], 2)


@pytest.mark.parametrize("state", ["cancelled", "running"])
def test_stopped_evaluation_is_not_judged(engine: Engine, state: str) -> None:
    write_night(engine, state)
    assert list_verdicts(engine) == []


def test_level_is_accepted_if_comparable(engine: Engine, at_home: object) -> None:
    bad = write_night(engine, "invalid")
    with pytest.raises(InputError, match="is invalid: it cannot be a baseline"):
        accept_evaluation(engine, bad)
    good = write_night(engine, "completed")
    with engine.begin() as connection:
        is_of_evaluation = nightly_verdict.c.evaluation_id == good
        connection.execute(nightly_verdict.update().where(is_of_evaluation).values(verdict="regressed"))
    assert [verdict for _, verdict, _ in list_open(engine)] == ["regressed"]
    assert accept_evaluation(engine, good) == {"evaluation_id": good, "verdict": "accepted"}
    assert list_open(engine) == []
    with engine.begin() as connection:
        connection.execute(delete(nightly_verdict).where(nightly_verdict.c.evaluation_id == good))
    assert accept_evaluation(engine, good) == {"evaluation_id": good, "verdict": "accepted"}  # without a night


@pytest.mark.slow("wait: Prefect takes no shorter limit than ten seconds")
def test_run_without_heartbeat_is_marked_crashed(prefect_server: dict[str, str]) -> None:
    url = prefect_server["PREFECT_API_URL"]
    (automation,) = [entry for entry in load_automations()["automations"] if entry["name"] == "yarus: dead runs"]
    prompt = automation | {"name": "dead at once", "trigger": automation["trigger"] | {"within": 10}}
    with httpx.Client(base_url=url, timeout=30) as client:
        client.post("/automations/", json=prompt).raise_for_status()
        flow = client.post("/flows/", json={"name": "dies"}).raise_for_status().json()["id"]
        running = {"flow_id": flow, "state": {"type": "RUNNING", "name": "Running"}}
        run = client.post("/flow_runs/", json=running).raise_for_status().json()["id"]
        event = {
            "id": str(uuid.uuid4()),
            "occurred": datetime.now(UTC).isoformat(),
            "event": "prefect.flow-run.heartbeat",
            "resource": {"prefect.resource.id": f"prefect.flow-run.{run}"},
        }
        client.post("/events", json=[event]).raise_for_status()
        wait_for("crash", lambda: get_state(prefect_server, run) == "CRASHED")
