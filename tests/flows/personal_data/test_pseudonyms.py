"""Check that personal data of a production log never leaves the database, unless requested."""

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import openpyxl
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, run_here
from tests.support.evaluations import texts
from tests.support.llm_server import FakeLLMServer, make_response
from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.config.texts import translations

pytestmark = pytest.mark.slow("process: four nights, and all that is shown of them")
Document = dict[str, Any]
NOTE = translations("pseudonyms", "note")
PHONE, NAME, MAIL, USER = "+7 927 555-41-42", "Кузнецов Аркадий Львович", "arkady.k@mail.example", "47110815"
PLANTED = (PHONE, NAME, MAIL, USER)
ROWS = f"""
INSERT INTO chunk (id, confluence_url, text) VALUES
    (20, 'https://c.example/pages/viewpage.action?pageId=4', 'Столовая открыта с девяти, телефон {PHONE}.');
INSERT INTO question_answer (id, question, answer, confluence_url, score, user_id, created_at) VALUES
    (11, 'Я {NAME}, до скольки столовая? Звоните {PHONE}', 'До пяти, {NAME}, пишите {MAIL}',
     'https://c.example/pages/viewpage.action?pageId=4', 5, {USER}, now()),
    (12, 'Это {NAME}, почта {MAIL}: где столовая?', 'В корпусе, позвоните {PHONE}',
     'https://c.example/pages/viewpage.action?pageId=4', 5, {USER}, now() + interval '1 minute');
UPDATE question_answer SET question = question || ' ' || '{PHONE}' WHERE id < 10;
"""
NIGHTS = """
import asyncio, json, os, sys
from yarus.flows.nightly import nightly
from yarus.flows.real_users import real_users
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.parameters import RealUsers

async def night(*tiers, **variables):
    os.environ.update(variables)
    state = await nightly(NightlyParameters(source="production", tiers=tiers), return_state=True)
    for name in variables:
        del os.environ[name]
    return await state.aresult(raise_on_failure=False)

async def nights():
    whole = await night("tier3", "real_users", "ux")
    blind = await real_users(RealUsers(source="production", retriever="blind_retriever:nothing"))
    broken = await night("tier2", **json.loads(sys.argv[1]))
    return whole, blind, broken, await night("tier3", YARUS_MASK_OUTPUT="false")

print(json.dumps(asyncio.run(nights())))
"""
KINDS = ("artifacts", "logs", "flow_runs", "task_runs", "events")


class Nights(NamedTuple):
    """Ids of the evaluations, and access to what Prefect's server has."""

    evaluations: dict[str, str]
    """Name -> id."""
    report: str
    fetch: Callable[[str], str]
    """Returns everything of one kind that the server has."""
    env: dict[str, str]


def find_planted(text: str) -> list[str]:
    return [secret for secret in PLANTED if secret in text or json.dumps(secret)[1:-1] in text]


def unpack_page(page: str) -> str:
    """Return a report's HTML with its packed data."""
    data = re.findall(r'data-pack="(?!plotly)[^"]+">([^<]+)<', page)
    return page + "".join(gzip.decompress(base64.b64decode(packed)).decode() for packed in data)


@pytest.fixture(scope="module")
def echoing() -> Iterator[FakeLLMServer]:
    """Serve a judge that refuses everything, and repeats the question."""
    with FakeLLMServer(
        lambda number, request: make_response(401, json.dumps({"error": f"no: {texts(request)['question']}"}))
    ) as server:
        yield server


@pytest.fixture(scope="module")
def nights(
    yarus: CommandLine,
    home: Path,
    prefect_server: dict[str, str],
    production: Callable[..., str],
    echoing: FakeLLMServer,
) -> Nights:
    """Run a night with the stand-ins, one with a broken judge, and one evaluation without masking."""
    (home / "blind_retriever.py").write_text("def nothing(question, k):\n    return []\n", encoding="utf-8")
    began = datetime.now(UTC).isoformat()
    env = prefect_server | {"YARUS_SOURCE_URL": production("shown_production", ROWS)}
    judge = {"YARUS_JUDGE__BASE_URL": echoing.url, "YARUS_JUDGE__MODEL": "echo"}
    process = yarus.start(json.dumps(judge), env=env, script=NIGHTS)
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    full_night, blind, broken, unmasked = json.loads(out)
    assert broken["state"] == "failed" and find_planted(json.dumps(broken)) == [], broken
    evaluations = {summary["tier"]: summary["evaluation_id"] for summary in full_night["evaluations"]}
    evaluations |= {"blind": blind["evaluation_id"], "bare": unmasked["evaluations"][0]["evaluation_id"]}

    def fetch_all(kind: str) -> str:
        items, api = [], prefect_server["PREFECT_API_URL"]
        if kind == "events":
            since = {"order": "DESC", "occurred": {"since": began}}
            page = httpx.post(f"{api}/events/filter", json={"limit": 50, "filter": since}).json()
            items += page["events"]
            while page["next_page"]:
                page = httpx.get(page["next_page"]).json()
                items += page["events"]
            return json.dumps(items, ensure_ascii=False)
        while page := httpx.post(f"{api}/{kind}/filter", json={"limit": 200, "offset": len(items)}).json():
            items += page
        return json.dumps(items, ensure_ascii=False)

    return Nights(evaluations, str(full_night["report"]), fetch_all, env)


@pytest.mark.parametrize("kind", KINDS)
def test_prefect_gets_no_personal_data(nights: Nights, kind: str) -> None:
    entries = [json.dumps(entry, ensure_ascii=False) for entry in json.loads(nights.fetch(kind))]
    unmasked = [entry for entry in entries if nights.evaluations["bare"] in entry]  # an event contains it, too
    masked_text = "".join(entry for entry in entries if entry not in unmasked)
    assert "production" in masked_text
    assert [secret for secret in PLANTED if secret in masked_text] == []
    if kind == "artifacts":
        assert find_planted("".join(unmasked)), "false shows them as they are"
        assert NOTE["ru"] in masked_text and NOTE["ru"] not in "".join(unmasked)


def test_incidents_and_errors_have_no_personal_data(nights: Nights, at_home: Path) -> None:
    events = nights.fetch("events")
    assert "yarus.incident.opened" in events and "ModelUnavailable" in events and "[телефон " in events
    listed = run_here("alerts", "list", "--json").out
    assert "production" in listed and find_planted(listed) == []
    runs = run_here("runs", "--json", "--limit", "50")
    assert "ModelUnavailable" in runs.out and find_planted(runs.out) == []


def test_report_shows_pseudonyms_and_note(nights: Nights, at_home: Path, tmp_path: Path) -> None:
    page = unpack_page(Path(nights.report).read_text(encoding="utf-8"))
    assert find_planted(page) == []
    assert "столовая" in page and "[телефон " in page and 'data-page="corpus"' in page
    assert all(text in page for text in NOTE.values())
    ids = (nights.evaluations["real_users"], nights.evaluations["blind"])
    for setting, expected in (("", []), ("true", []), ("false", list(PLANTED))):
        run_here("report", *ids, "--out", str(tmp_path / "r.html"), env=nights.env | {"YARUS_MASK_OUTPUT": setting})
        page = unpack_page((tmp_path / "r.html").read_text(encoding="utf-8"))
        assert 'data-pack="pair-' in page
        assert find_planted(page) == expected
        assert (NOTE["en"] in page) == (setting != "false")


COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cases": (("cases", "{tier3}"), (PHONE, NAME, MAIL)),
    "cases of a phone": (("cases", "{tier3}", "--where", f"question~{PHONE}", "--json"), PLANTED),
    "cases of dialogs": (("cases", "{ux}", "--json"), PLANTED),
    "compare": (("compare", "{real_users}", "{blind}", "--force"), (PHONE, NAME)),
    "compare for programs": (("compare", "{real_users}", "{blind}", "--force", "--json"), (PHONE, NAME, MAIL)),
    "corpus": (("corpus", "--source", "production"), (PHONE,)),
    "corpus for programs": (("corpus", "--source", "production", "--json"), (PHONE, NAME, MAIL)),
    "audit": (("dataset", "audit", "--source", "production", "--json"), (PHONE, NAME, MAIL)),
}
COMMANDS_WITHOUT_TEXTS: dict[str, tuple[str, ...]] = {
    "show": ("show", "{tier3}", "--json"),
    "show to people": ("show", "{tier3}"),
    "gate": ("gate", "{tier3}", "--json"),
    "trend": ("trend", "avg_e2e_score", "--tier", "tier3", "--source", "production", "--json"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_shows_pseudonyms_unless_off(nights: Nights, at_home: Path, name: str) -> None:
    words, expected = COMMANDS[name]
    words = tuple(word.format(**nights.evaluations) for word in words)
    masked, unmasked = (run_here(*words, env=nights.env | {"YARUS_MASK_OUTPUT": setting}) for setting in ("", "false"))
    assert (masked.code, unmasked.code) == (0, 0), masked.err
    assert find_planted(masked.out) == []
    assert set(find_planted(unmasked.out)) >= set(expected)
    assert NOTE["ru"] in masked.err and "YARUS_MASK_OUTPUT" not in unmasked.err
    assert "viewpage.action?pageId=4" in masked.out or "viewpage.action?pageId=4" not in unmasked.out


@pytest.mark.parametrize("name", COMMANDS_WITHOUT_TEXTS)
def test_other_commands_print_no_personal_data(nights: Nights, at_home: Path, name: str) -> None:
    ran = run_here(*(word.format(**nights.evaluations) for word in COMMANDS_WITHOUT_TEXTS[name]), env=nights.env)
    assert find_planted(ran.out + ran.err) == [] and ran.out


def test_exports_have_pseudonyms_and_same_figures(nights: Nights, at_home: Path, tmp_path: Path) -> None:
    name = nights.evaluations["tier3"]
    for setting, expected in (("", []), ("false", list(PLANTED))):
        env = nights.env | {"YARUS_MASK_OUTPUT": setting}
        for suffix in ("csv", "jsonl", "parquet"):
            run_here("export", name, "--to", str(tmp_path / f"{setting}cases.{suffix}"), env=env)
        texts_of = [(tmp_path / f"{setting}cases.{suffix}").read_text("utf-8-sig") for suffix in ("csv", "jsonl")]
        texts_of.append(str(pq.read_table(tmp_path / f"{setting}cases.parquet").to_pylist()))
        assert [find_planted(text) for text in texts_of] == [expected, expected, expected]
    masked, unmasked = (pq.read_table(tmp_path / f"{setting}cases.parquet") for setting in ("", "false"))
    assert masked.schema == unmasked.schema
    columns = [column for column in unmasked.column_names if column not in (*pseudonyms.TEXT_KEYS, "group", "dialog")]
    assert masked.select(columns).to_pylist() == unmasked.select(columns).to_pylist()
    users = [len(set(table["group"].to_pylist())) for table in (masked, unmasked)]
    assert users[0] == users[1] > 1, "users stay apart"


def test_spreadsheets_and_gate_have_pseudonyms(nights: Nights, at_home: Path, tmp_path: Path) -> None:
    sheet, junit = tmp_path / "a.xlsx", tmp_path / "gate.xml"
    for setting, expected in (("", []), ("false", [PHONE, NAME, MAIL])):
        words = ("dataset", "export-annotation", str(sheet), "--source", "production")
        ran = run_here(*words, env=nights.env | {"YARUS_MASK_OUTPUT": setting})
        rows = openpyxl.load_workbook(sheet).active.iter_rows(values_only=True)
        people = [str(row[3:7]) for row in rows]  # the corpus columns are public
        assert find_planted("".join(people)) == expected
        assert (NOTE["ru"] in ran.err) == (setting == "")
    run_here("gate", nights.evaluations["tier3"], "--junit", str(junit), env=nights.env)
    assert find_planted(junit.read_text(encoding="utf-8")) == []


def test_stored_cases_keep_original_texts(nights: Nights, at_home: Path, engine: Engine) -> None:
    from yarus.db import journal

    stored = pq.ParquetFile(journal.find_evaluation(engine, nights.evaluations["tier3"])["parquet"]).read()
    assert find_planted(str(stored.to_pylist())) == list(PLANTED)
