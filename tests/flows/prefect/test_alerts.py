"""Nights that go bad and get well, with Prefect's own server and a receiver of webhooks: one message each way, and one
a night, however many tiers it is about."""

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
from tests.support.processes import until
from yarus import db
from yarus.__main__ import cli
from yarus.db.errors import InputError
from yarus.tasks.config.tiers import TIERS

Message = tuple[str, dict[str, str], Document]
Nights = tuple[list[Document], list[Message], list[list[Document]], set[str]]
SECRET = "t0p-s3cret"
SAMPLE = Path(db.__file__).parent / "sample"
# A retriever that finds what is labelled, unless a file says that it is ill; and nights one after another.
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
# Then two nights over a source that nobody has set up: one bad setting.
NIGHTS = """
import asyncio, json
from pathlib import Path
from yarus import flows
from yarus.flows.nightly import nightly
from yarus.tasks.config.connections import database
from yarus.deployments.alarms.incidents import incidents
from yarus.tasks.config.flow_parameters import Nightly
ill, done = Path("ill"), []
for bad in (True, True, False):
    ill.touch() if bad else ill.unlink(missing_ok=True)
    night = asyncio.run(nightly(Nightly(tiers=["tier1"], limit=60)))
    mine = [one for one in incidents(database()) if (one["tier"], one["source"]) == ("tier1", "sample")]
    done.append((night["evaluations"][0], mine))
before = [one["tier"] for one in incidents(database()) if one["source"] == "production"]
for _ in range(2):
    asyncio.run(nightly(Nightly(source="production"), return_state=True))
print(json.dumps([done, before]))
"""
REPORTS = "http://reports.example"


@pytest.fixture(scope="module")
def received() -> Iterator[tuple[str, list[Message]]]:
    """The address of a receiver, whose last part is secret, and the messages that it has got."""
    messages: list[Message] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            messages.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(500 if "wrong" in self.path else 200)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            """Keeps quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{SECRET}", messages
        server.shutdown()


@pytest.fixture(scope="module")
def nights(
    yarus: CommandLine, home: Path, prefect_server: dict[str, str], received: tuple[str, list[Message]]
) -> Nights:
    """Accepted, bad, as bad, good again: their summaries, what was received, what was open after each; and the
    tiers of production at which nights of other tests had left something open."""
    url, messages = received
    (home / "moody.py").write_text(MOODY.replace("{folder!r}", repr(str(SAMPLE))), encoding="utf-8")
    env = prefect_server | {"YARUS_RETRIEVER": "moody:retrieve", "YARUS_LANGUAGE": "en"}
    env |= {"YARUS_REPORT_URL": REPORTS}

    # It ends what nights of other tests have left open, before anybody is told.
    (first,) = yarus("run", "nightly", "--tiers", "tier1", "--limit", "60", "--json", env=env).json["evaluations"]
    told = yarus("gate", "--accept", first["evaluation_id"], env=env).out
    assert f"{first['evaluation_id']} is accepted as the baseline" in told
    applied = yarus("alerts", "apply", "--webhook", url, "--header", f"X-Key={SECRET}", "--json", env=env)
    assert applied.json["automations"] == {"yarus: incidents": "created", "yarus: dead runs": "created"}
    again = yarus("alerts", "apply", "--json", env=env)
    assert set(again.json["automations"].values()) == {"updated"}
    assert again.json["webhook"] == "kept"
    three = yarus.fork(env=env, script=NIGHTS).ran()
    assert three.code == 0, three.err
    spent, before = three.json
    done = [(first, []), *spent]
    yarus("alerts", "test", env=env)  # comes last, so that nothing else is on its way
    for ran in (applied, again, three):
        assert SECRET not in ran.out + ran.err
    return [night for night, _ in done], messages, [opened for _, opened in done], {*before}


@pytest.mark.slow("prefect: nights on a server of their own")
def test_one_message_when_it_goes_bad_none_while_it_lasts_one_when_it_is_well(
    nights: Nights,
) -> None:
    (_, bad, _, well), messages, *_ = nights
    assert [message["event"] for _, _, message in messages] == [*["yarus.night.changed"] * 3, "yarus.incident.test"]
    assert [message["evaluation"] for _, _, message in messages[:2]] == [bad["evaluation_id"], well["evaluation_id"]]
    path, headers, first = messages[0]
    assert (path, headers["X-Key"], headers["Content-Type"]) == (f"/{SECRET}", SECRET, "application/json")
    assert {change["metric"] for change in first["changes"]} == {"hit_rate@1", "mrr", "ndcg@10"}
    assert first["text"].startswith(
        "Night over sample.\nWorse than the accepted evaluation: retrieval. hit_rate@1 1.000 → 0.000"
    )
    assert "hit_rate@1 1.000 → 0.000 (−1.000): the questions are the same; answered worse −1.000" in first["text"]
    assert first["incident"] == messages[1][2]["incident"] == bad["evaluation_id"]
    closed = messages[1][2]
    assert closed["text"] == f"Night over sample.\nRecovered: retrieval.\n{closed['link']}"
    assert [(one["what"], one["evaluation_id"]) for one in closed["incidents"]] == [("closed", well["evaluation_id"])]


@pytest.mark.slow("prefect: nights on a server of their own")
def test_the_link_leads_to_the_night(nights: Nights, home: Path, prefect_server: dict[str, str]) -> None:
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
def test_one_bad_setting_is_one_message_that_says_its_cause_once(nights: Nights) -> None:
    _, messages, _, before = nights
    message = messages[2][2]
    head, failed, link = message["text"].splitlines()
    assert head == "Night over production."
    assert failed.startswith("Failed: embeddings, retrieval, ")
    assert failed.count("YARUS_SOURCE_URL") == 1
    assert "--resume" not in failed
    assert {one["what"] for one in message["incidents"]} == {"opened"}
    assert sorted(one["tier"] for one in message["incidents"]) == sorted({*TIERS} - before)
    assert link == message["link"] == message["run"]  # there is nothing to report


@pytest.mark.slow("prefect: nights on a server of their own")
def test_what_is_open_is_listed_with_the_accepted_evaluation(
    nights: Nights,
) -> None:
    (good, bad, worse, _), _, opened, _ = nights
    assert [len(some) for some in opened] == [0, 1, 1, 0]
    ((incident,),) = opened[2:3]
    assert (incident["incident"], incident["last"]) == (bad["evaluation_id"], worse["evaluation_id"])
    assert (incident["baseline"], incident["nights"], incident["verdict"]) == (good["evaluation_id"], 2, "regressed")


@pytest.mark.slow("prefect: nights on a server of their own")
def test_every_evaluation_tells_what_it_came_to(nights: Nights, prefect_server: dict[str, str]) -> None:
    (_, bad, worse, well), *_ = nights
    names = {night["evaluation_id"] for night in (bad, worse, well)}

    def events() -> dict[str, list[Document]] | None:
        url = f"{prefect_server['PREFECT_API_URL']}/events/filter"
        wanted = {"filter": {"event": {"prefix": ["yarus.evaluation."]}}, "limit": 50}
        found = httpx.post(url, json=wanted, timeout=30).raise_for_status().json()["events"]
        by_name: dict[str, list[Document]] = {}
        for event in sorted(found, key=lambda event: event["occurred"]):
            by_name.setdefault(event["payload"]["evaluation_id"], []).append(event)
        return by_name if names <= by_name.keys() else None

    told = until("event of each", events)
    kinds = {name: [event["event"].rpartition(".")[2] for event in told[name]] for name in names}
    assert kinds[well["evaluation_id"]] == ["finished"]
    # Both, against the accepted evaluation; one alert all the same.
    assert kinds[bad["evaluation_id"]] == kinds[worse["evaluation_id"]] == ["finished", "regressed"]
    event = told[bad["evaluation_id"]][1]
    assert event["resource"]["prefect.resource.id"] == f"yarus.evaluation.{bad['evaluation_id']}"
    assert event["related"][0]["prefect.resource.id"] == f"prefect.flow-run.{bad['flow_run_id']}"
    assert {change["metric"] for change in event["payload"]["changes"]} == {"hit_rate@1", "mrr", "ndcg@10"}
    assert event["payload"]["verdict"] == "regressed"


@pytest.mark.slow("breadth: another receiver that refuses")
def test_a_receiver_that_refuses_is_named_by_the_test_but_its_address_is_not(
    nights: object, yarus: CommandLine, prefect_server: dict[str, str], received: tuple[str, list[Message]]
) -> None:
    url, _ = received
    yarus("alerts", "apply", "--webhook", f"{url}/wrong", env=prefect_server)
    refused = yarus("alerts", "test", env=prefect_server, ok=False)
    assert (refused.code, "500" in refused.err, SECRET in refused.err) == (2, True, False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--webhook", f"mailto:{SECRET}"), "expected an http(s) address"),
        (("--webhook", f"http://{SECRET}:port"), "expected an http(s) address"),
        (("--webhook", f"http://127.0.0.1/{SECRET}", "--header", SECRET), "expected NAME=VALUE"),
        (("--header", f"X-Key={SECRET}"), "needs --webhook"),
        (("--webhook", f"http://127.0.0.1/{SECRET}"), "PREFECT_API_URL"),  # nobody would be there to send it
    ],
)
def test_what_cannot_be_is_refused_and_not_repeated(at_home: Path, words: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(cli, ["alerts", "apply", *words], standalone_mode=False)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
    assert SECRET not in str(result.exception)
