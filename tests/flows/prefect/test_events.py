"""Incidents begin once and end once, whatever nights bring; a run whose process died is marked as crashed."""

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

from tests.support.prefect_servers import state_of
from tests.support.processes import until
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import evaluation, nightly_verdict
from yarus.deployments.alarms import incidents
from yarus.deployments.alarms.incidents import accept
from yarus.deployments.alarms.night_message import night_text
from yarus.deployments.automations import declared

SOURCE = "source of incidents"
NIGHT = count()


@pytest.fixture(autouse=True)
def clean(engine: Engine) -> Iterator[None]:
    yield
    with engine.begin() as connection:
        connection.execute(delete(evaluation).where(evaluation.c.source == SOURCE))


def night(engine: Engine, state: str, key: str | None = "of incidents", **more: Any) -> str:
    """An evaluation of the next night, judged twice, as when a night is retried; its id."""
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
        journal.accept_first(connection, str(row["id"]))
    for _ in range(2):
        incidents.follow_run(engine, str(row["flow_run_id"]))
    return str(row["id"])


def opened(engine: Engine) -> list[tuple[str, str, int]]:
    """(the evaluation that it began with, verdict, nights) of what goes on."""
    found = incidents.incidents(engine)
    return [(one["incident"], one["verdict"], one["nights"]) for one in found if one["source"] == SOURCE]


def messages(caplog: Any) -> list[str]:
    """What was told of incidents."""
    return [text for record in caplog.records if (text := record.getMessage()).startswith("Ночь")]


def said(engine: Engine) -> list[str]:
    verdicts = select(nightly_verdict.c.verdict).join(evaluation).where(evaluation.c.source == SOURCE)
    with engine.connect() as connection:
        return list(connection.scalars(verdicts.order_by(evaluation.c.started_at)))


def test_an_invalid_night_begins_an_incident_and_a_valid_one_ends_it(engine: Engine, caplog: Any) -> None:
    first = night(engine, "invalid")
    assert opened(engine) == [(first, "invalid", 1)]
    night(engine, "invalid")
    assert opened(engine) == [(first, "invalid", 2)]
    night(engine, "completed")
    assert opened(engine) == []
    assert said(engine) == ["invalid", "invalid", "good"]
    told = [record.getMessage() for record in caplog.records if record.name == "yarus"]
    assert len(told) == 2  # one message each way
    assert "недействителен: reason" in told[0]
    assert f"снова в порядке, после {first}" in told[1]


def test_nights_that_fail_are_one_incident_too(engine: Engine, caplog: Any) -> None:
    night(engine, "completed")
    first = night(engine, "failed", key=None)
    night(engine, "failed", key=None)
    assert opened(engine) == [(first, "failed", 2)]
    night(engine, "invalid")  # it ends the first incident, and begins another one
    assert [verdict for _, verdict, _ in opened(engine)] == ["invalid"]
    assert len([record for record in caplog.records if record.name == "yarus"]) == 3


def test_a_failure_after_good_nights_is_no_part_of_an_old_incident(engine: Engine) -> None:
    night(engine, "failed", key=None)
    night(engine, "completed")
    second = night(engine, "failed", key=None)
    assert opened(engine) == [(second, "failed", 1)]


def test_what_a_retry_of_the_night_brings_to_its_end_ends_the_incident(engine: Engine, caplog: Any) -> None:
    night(engine, "completed")
    failed = night(engine, "failed", key=None)
    assert opened(engine) == [(failed, "failed", 1)]
    flow_run_id = str(uuid.uuid4())  # Prefect's retry makes a new run of the tier
    brought = {"state": "completed", "comparability_key": "another of incidents", "flow_run_id": flow_run_id}
    with engine.begin() as connection:
        connection.execute(evaluation.update().where(evaluation.c.id == failed).values(brought))
        journal.accept_first(connection, failed)
    assert opened(engine) == []
    for _ in range(2):
        incidents.follow_run(engine, flow_run_id)
    assert (opened(engine), said(engine)) == ([], ["good", "good"])
    night(engine, "completed", key="a third of incidents")
    told = [record.getMessage() for record in caplog.records if record.name == "yarus"]
    assert len(told) == 2  # one message each way
    assert f"снова в порядке, после {failed}" in told[1]


def test_a_retry_has_its_message_say_again_what_the_night_has_begun(engine: Engine, at_home: object) -> None:
    """The try before may have been killed before it sent its own."""
    first, second = (night(engine, "failed", key=None) for _ in range(2))

    def told(name: str) -> list[tuple[str, str]]:
        found: list[Any] = []
        run = uuid.UUID(journal.find(engine, name)["flow_run_id"])
        asyncio.run(incidents.follow(run, nobody_is_asked, found.append))
        return [(one["what"], one["incident"]) for one in found]

    assert told(first) == [("opened", first)]
    assert told(second) == []  # it went on
    night(engine, "completed")
    assert told(first) == []


async def nobody_is_asked(parameters: Any, *, return_state: bool) -> None:
    raise AssertionError(f"{parameters} {return_state}")


def of_a_night(what: str, tier: str, **more: Any) -> dict[str, Any]:
    return {"what": what, "tier": tier, "verdict": "good", "why": "", "error": "", "anchor": None} | more


def test_a_message_says_each_cause_once() -> None:
    down = {"verdict": "failed", "error": "OSError: {0} is down; continue with: yarus run {1} --resume {1}-1"}
    worse = {"verdict": "regressed", "why": "mrr 0.900 → 0.500."}
    found = [
        of_a_night("opened", "tier1", verdict="failed", error=down["error"].format("the database", "tier1")),
        of_a_night("opened", "tier2", **worse),
        of_a_night("opened", "tier0", verdict="failed", error=down["error"].format("the database", "tier0")),
        of_a_night("opened", "tier0", verdict="failed", error=down["error"].format("the judge", "tier0")),
        of_a_night("closed", "ux"),
        of_a_night("closed", "tier3"),
        of_a_night("closed", "tier3"),  # of another key
        of_a_night("closed", "tier3", anchor="tier3-1"),
    ]
    assert night_text("sample", found, "en").splitlines() == [
        "Night over sample.",
        "Failed: retrieval, embeddings. Cause: OSError: the database is down",
        "Worse than the accepted evaluation: generation. mrr 0.900 → 0.500.",
        "Failed: embeddings. Cause: OSError: the judge is down",
        "Recovered: cache and dialogs, the whole system, the whole system on stored answers.",
    ]


def test_another_comparability_key_is_another_incident(engine: Engine) -> None:
    first = night(engine, "invalid", key="one judge")
    second = night(engine, "invalid", key="another judge")
    assert {name for name, _, _ in opened(engine)} == {first, second}


def test_a_good_night_ends_what_went_on_under_another_key(engine: Engine, caplog: Any) -> None:
    night(engine, "completed", key="one judge")
    first = night(engine, "invalid", key="one judge")
    second = night(engine, "invalid", key="another judge")
    assert len(messages(caplog)) == 2
    night(engine, "completed", key="another judge")
    assert opened(engine) == []
    assert len(messages(caplog)) == 4
    for incident, told in zip((second, first), messages(caplog)[2:], strict=True):
        assert f"снова в порядке, после {incident}" in told
    again = night(engine, "invalid", key="one judge")  # an outbreak of its own
    assert opened(engine) == [(again, "invalid", 1)]
    assert "недействителен" in messages(caplog)[4]
    night(engine, "completed", key="a third judge")
    assert (opened(engine), len(messages(caplog))) == ([], 6)


def test_an_anchor_that_cannot_be_read_is_one_incident(engine: Engine, caplog: Any) -> None:
    """It is no night of the live tier, whose good nights do not end it, also where it failed before it was resolved."""
    root = night(engine, "completed")
    anchor = night(engine, "completed", parameters={"anchor": root}, resolved={"answers_of": root})
    failed = []
    for _ in range(3):
        night(engine, "completed", resolved={})
        failed.append(night(engine, "failed", key=None, parameters={"anchor": anchor, "reuse_answers": anchor}))
    assert opened(engine) == [(failed[0], "failed", 3)]
    assert len(messages(caplog)) == 1
    night(engine, "completed", parameters={"anchor": anchor}, resolved={"answers_of": root})
    assert (opened(engine), len(messages(caplog))) == ([], 2)


@pytest.mark.parametrize("state", ["cancelled", "running"])
def test_what_somebody_stopped_is_not_judged(engine: Engine, state: str) -> None:
    night(engine, state)
    assert said(engine) == []


def test_a_level_is_accepted_if_it_can_be_compared_with(engine: Engine, at_home: object) -> None:
    bad = night(engine, "invalid")
    with pytest.raises(InputError, match="is invalid: it cannot be a baseline"):
        accept(engine, bad)
    good = night(engine, "completed")
    with engine.begin() as connection:
        judged = nightly_verdict.c.evaluation_id == good
        connection.execute(nightly_verdict.update().where(judged).values(verdict="regressed"))
    assert [verdict for _, verdict, _ in opened(engine)] == ["regressed"]
    assert accept(engine, good) == {"evaluation_id": good, "verdict": "accepted"}
    assert opened(engine) == []
    with engine.begin() as connection:
        connection.execute(delete(nightly_verdict).where(nightly_verdict.c.evaluation_id == good))
    assert accept(engine, good) == {"evaluation_id": good, "verdict": "accepted"}  # of no night


@pytest.mark.slow("wait: Prefect takes no shorter limit than ten seconds")
def test_a_run_without_a_heartbeat_is_marked_as_crashed(prefect_server: dict[str, str]) -> None:
    url = prefect_server["PREFECT_API_URL"]
    (automation,) = [one for one in declared()["automations"] if one["name"] == "yarus: dead runs"]
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
        until("crash", lambda: state_of(prefect_server, run) == "CRASHED")
