"""Check alerts with Prefect's own server and a webhook receiver: one message per change and per night."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from tests.support.command_line import CommandLine, Document
from tests.support.json_schemas import check_json
from tests.support.processes import wait_for
from yarus import db
from yarus.__main__ import cli
from yarus.db.errors import InputError
from yarus.tasks.config.tiers import TIERS

Message = tuple[str, dict[str, str], Document]
Nights = tuple[list[Document], list[Message], list[list[Document]], set[str]]
SECRET = "t0p-s3cret"
SAMPLE = Path(db.__file__).parent / "sample"
# A retriever that finds the labelled chunks, unless a file named "ill" exists; and several nights.
MOODY = """
import json
from pathlib import Path
folder = Path({folder!r})
rows = lambda name: map(json.loads, (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
questions = {row["id"]: row["question"] for row in rows("question_answer")}
relevant = {questions[row["question_id"]]: list(row["relevant_chunk_ids"] or []) for row in rows("annotation")}
def retrieve(question, k):
    found = [str(chunk) for chunk in relevant.get(question, [])]
    if Path("ill").exists():
        found = []
    return [(chunk, rank) for rank, chunk in enumerate(dict.fromkeys([*found, *(f"x{n}" for n in range(k))]))][:k]
"""
# Then two nights over a source that is not configured: one bad setting.
NIGHTS = """
import asyncio, json
from pathlib import Path
from yarus import flows
from yarus.flows.nightly import nightly
from yarus.tasks.config.connections import database
from yarus.deployments.alarms.incidents import list_incidents
from yarus.tasks.config.flow_parameters import NightlyParameters
ill, done = Path("ill"), []
for bad in (True, True, False):
    ill.touch() if bad else ill.unlink(missing_ok=True)
    night = asyncio.run(nightly(NightlyParameters(tiers=["tier1"], limit=60)))
    mine = [one for one in list_incidents(database()) if (one["tier"], one["source"]) == ("tier1", "sample")]
    done.append((night["evaluations"][0], mine))
before = [one["tier"] for one in list_incidents(database()) if one["source"] == "production"]
for _ in range(2):
    asyncio.run(nightly(NightlyParameters(source="production"), return_state=True))
print(json.dumps([done, before]))
"""
REPORTS = "http://reports.example"


@pytest.fixture(scope="module")
def received() -> Iterator[tuple[str, list[Message]]]:
    """Run a receiver, and yield its address, whose last part is secret, and the received messages."""
    messages: list[Message] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            messages.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(500 if "wrong" in self.path else 200)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{SECRET}", messages
        server.shutdown()


@pytest.fixture(scope="module")
def nights(
    yarus: CommandLine, home: Path, prefect_server: dict[str, str], received: tuple[str, list[Message]]
) -> Nights:
    """Run four nights: accepted, bad, still bad, good again.

    Return their summaries, the received messages, the incidents after each, and the tiers of production with older
    incidents.
    """
    url, messages = received
    (home / "moody.py").write_text(MOODY.replace("{folder!r}", repr(str(SAMPLE))), encoding="utf-8")
    env = prefect_server | {"YARUS_RETRIEVER": "moody:retrieve", "YARUS_LANGUAGE": "en"}
    env |= {"YARUS_REPORT_URL": REPORTS}

    # It closes incidents of other tests' nights before the receiver is configured.
    (first,) = yarus("run", "nightly", "--tiers", "tier1", "--limit", "60", "--json", env=env).json["evaluations"]
    output = yarus("gate", "--accept", first["evaluation_id"], env=env).out
    assert f"{first['evaluation_id']} is accepted as the baseline" in output
    applied = yarus("alerts", "apply", "--webhook", url, "--header", f"X-Key={SECRET}", "--json", env=env)
    assert check_json("alerts apply", applied.out)["automations"] == {
        "yarus: incidents": "created",
        "yarus: dead runs": "created",
    }
    again = yarus("alerts", "apply", "--json", env=env)
    assert set(again.json["automations"].values()) == {"updated"}
    assert again.json["webhook"] == "kept"
    three_nights = yarus.fork(env=env, script=NIGHTS).ran()
    assert three_nights.code == 0, three_nights.err
    further_nights, open_tiers = three_nights.json
    results = [(first, []), *further_nights]
    yarus("alerts", "test", env=env)  # sent last, so that no other message is still on its way
    for ran in (applied, again, three_nights):
        assert SECRET not in ran.out + ran.err
    return [night for night, _ in results], messages, [opened for _, opened in results], {*open_tiers}


@pytest.mark.slow("prefect: nights on a server of their own")
def test_message_is_sent_when_night_falls_and_recovers(
    nights: Nights,
) -> None:
    (_, bad, _, recovered), messages, *_ = nights
    assert [message["event"] for _, _, message in messages] == [*["yarus.night.changed"] * 3, "yarus.incident.test"]
    assert [body["evaluation"] for _, _, body in messages[:2]] == [bad["evaluation_id"], recovered["evaluation_id"]]
    path, headers, first = messages[0]
    assert (path, headers["X-Key"], headers["Content-Type"]) == (f"/{SECRET}", SECRET, "application/json")
    assert {change["metric"] for change in first["changes"]} == {"hit_rate@1", "mrr", "ndcg@10"}
    assert first["text"].startswith("[sample] Worse than the accepted evaluation: retrieval. hit_rate@1 1.000 → 0.000")
    assert "hit_rate@1 1.000 → 0.000 (−1.000): the questions are the same; answered worse −1.000" in first["text"]
    assert first["incident"] == messages[1][2]["incident"] == bad["evaluation_id"]
    closing_message = messages[1][2]
    assert closing_message["text"] == f"[sample] Recovered: retrieval.\n{closing_message['link']}"
    assert [(incident["what"], incident["evaluation_id"]) for incident in closing_message["incidents"]] == [
        ("closed", recovered["evaluation_id"])
    ]


@pytest.mark.slow("prefect: nights on a server of their own")
def test_message_links_to_night(nights: Nights, home: Path, prefect_server: dict[str, str]) -> None:
    (_, bad, _, _), messages, *_ = nights
    message = messages[0][2]
    assert message["text"].endswith(message["link"])
    assert message["link"] == f"{REPORTS}/{bad['evaluation_id']}.html"
    assert (home / "reports" / f"{bad['evaluation_id']}.html").exists()
    night = message["run"].rpartition("/")[2]
    assert message["run"].startswith(prefect_server["PREFECT_API_URL"].removesuffix("/api"))
    run = httpx.get(f"{prefect_server['PREFECT_API_URL']}/flow_runs/{night}", timeout=30).raise_for_status().json()
    assert run["name"] == "nightly sample"


@pytest.mark.slow("prefect: nights on a server of their own")
def test_bad_setting_gives_one_message_with_one_cause(nights: Nights) -> None:
    _, messages, _, open_tiers = nights
    message = messages[2][2]
    failed, link = message["text"].splitlines()
    assert failed.startswith("[production] Failed: the whole system, retrieval for real users, retrieval, ")
    assert failed.count("YARUS_SOURCE_URL") == 1
    assert "--resume" not in failed
    assert {incident["what"] for incident in message["incidents"]} == {"opened"}
    assert sorted(incident["tier"] for incident in message["incidents"]) == sorted({*TIERS} - open_tiers)
    assert link == message["link"] == message["run"]  # no evaluation was started, so there is no report


@pytest.mark.slow("prefect: nights on a server of their own")
def test_open_incident_names_accepted_evaluation(
    nights: Nights,
) -> None:
    (good, bad, worse, _), _, opened, _ = nights
    assert [len(open_incidents) for open_incidents in opened] == [0, 1, 1, 0]
    ((incident,),) = opened[2:3]
    assert (incident["incident_id"], incident["latest_evaluation_id"]) == (bad["evaluation_id"], worse["evaluation_id"])
    assert (incident["baseline"], incident["nights"], incident["verdict"]) == (good["evaluation_id"], 2, "regressed")


@pytest.mark.slow("prefect: nights on a server of their own")
def test_evaluations_emit_outcome_events(nights: Nights, prefect_server: dict[str, str]) -> None:
    (_, bad, worse, recovered), *_ = nights
    names = {night["evaluation_id"] for night in (bad, worse, recovered)}

    def events() -> dict[str, list[Document]] | None:
        url = f"{prefect_server['PREFECT_API_URL']}/events/filter"
        query = {"filter": {"event": {"prefix": ["yarus.evaluation."]}}, "limit": 50}
        fetched = httpx.post(url, json=query, timeout=30).raise_for_status().json()["events"]
        by_name: dict[str, list[Document]] = {}
        for event in sorted(fetched, key=lambda event: event["occurred"]):
            by_name.setdefault(event["payload"]["evaluation_id"], []).append(event)
        return by_name if names <= by_name.keys() else None

    events_by_id = wait_for("event of each", events)
    kinds = {name: [event["event"].rpartition(".")[2] for event in events_by_id[name]] for name in names}
    assert kinds[recovered["evaluation_id"]] == ["finished"]
    # Both are compared with the accepted evaluation, but only one alert is sent.
    assert kinds[bad["evaluation_id"]] == kinds[worse["evaluation_id"]] == ["finished", "regressed"]
    event = events_by_id[bad["evaluation_id"]][1]
    assert event["resource"]["prefect.resource.id"] == f"yarus.evaluation.{bad['evaluation_id']}"
    assert event["related"][0]["prefect.resource.id"] == f"prefect.flow-run.{bad['flow_run_id']}"
    assert {change["metric"] for change in event["payload"]["changes"]} == {"hit_rate@1", "mrr", "ndcg@10"}
    assert event["payload"]["verdict"] == "regressed"


@pytest.mark.slow("breadth: another receiver that refuses")
def test_refusing_receiver_is_reported_without_address(
    nights: object, yarus: CommandLine, prefect_server: dict[str, str], received: tuple[str, list[Message]]
) -> None:
    url, _ = received
    yarus("alerts", "apply", "--webhook", f"{url}/wrong", env=prefect_server)
    refusal = yarus("alerts", "test", env=prefect_server, ok=False)
    assert (refusal.code, "500" in refusal.err, SECRET in refusal.err) == (2, True, False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--webhook", f"mailto:{SECRET}"), "expected an http(s) address"),
        (("--webhook", f"http://{SECRET}:port"), "expected an http(s) address"),
        (("--webhook", f"http://127.0.0.1/{SECRET}", "--header", SECRET), "expected NAME=VALUE"),
        (("--header", f"X-Key={SECRET}"), "needs --webhook"),
        (("--webhook", f"http://127.0.0.1/{SECRET}"), "PREFECT_API_URL"),  # without a server, nothing would send it
    ],
)
def test_wrong_arguments_are_refused_without_secrets(at_home: Path, words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(cli, ["alerts", "apply", *words], standalone_mode=False)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert SECRET not in str(result.exception)
