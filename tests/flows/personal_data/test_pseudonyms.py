"""Personal data of a production log is nowhere in what leaves the database, unless it is asked for."""

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

from tests.support.command_line import CommandLine, here
from tests.support.evaluations import texts
from tests.support.llm_server import FakeLLMServer, http
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
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.parameters import RealUsers

async def night(*tiers, **variables):
    os.environ.update(variables)
    state = await nightly(Nightly(source="production", tiers=tiers), return_state=True)
    for name in variables:
        del os.environ[name]
    return await state.aresult(raise_on_failure=False)

async def nights():
    whole = await night("tier3", "real_users", "ux")
    blind = await real_users(RealUsers(source="production", retriever="blind_retriever:nothing"))
    broken = await night("tier2", **json.loads(sys.argv[1]))
    return whole, blind, broken, await night("tier3", YARUS_MASK_SHOWN="false")

print(json.dumps(asyncio.run(nights())))
"""
PARTS = ("artifacts", "logs", "flow_runs", "task_runs", "events")


class Nights(NamedTuple):
    """What was evaluated, and what Prefect's server was told."""

    evaluations: dict[str, str]
    """Name -> id."""
    report: str
    said: Callable[[str], str]
    """All of one kind that the server has."""
    env: dict[str, str]


def planted_in(text: str) -> list[str]:
    return [secret for secret in PLANTED if secret in text or json.dumps(secret)[1:-1] in text]


def packs(page: str) -> str:
    """A report's HTML with what is packed in it."""
    data = re.findall(r'data-pack="(?!plotly)[^"]+">([^<]+)<', page)
    return page + "".join(gzip.decompress(base64.b64decode(one)).decode() for one in data)


@pytest.fixture(scope="module")
def echoing() -> Iterator[FakeLLMServer]:
    """A judge that refuses everything, and repeats the question."""
    with FakeLLMServer(
        lambda number, request: http(401, json.dumps({"error": f"no: {texts(request)['question']}"}))
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
    """A night with the stand-ins, one whose judge is broken, and one evaluation that is shown as it is."""
    (home / "blind_retriever.py").write_text("def nothing(question, k):\n    return []\n", encoding="utf-8")
    began = datetime.now(UTC).isoformat()
    env = prefect_server | {"YARUS_SOURCE_URL": production("shown_production", ROWS)}
    judge = {"YARUS_JUDGE__BASE_URL": echoing.url, "YARUS_JUDGE__MODEL": "echo"}
    process = yarus.start(json.dumps(judge), env=env, script=NIGHTS)
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    whole, blind, broken, bare = json.loads(out)
    assert broken["state"] == "failed" and planted_in(json.dumps(broken)) == [], broken
    evaluations = {one["tier"]: one["evaluation_id"] for one in whole["evaluations"]}
    evaluations |= {"blind": blind["evaluation_id"], "bare": bare["evaluations"][0]["evaluation_id"]}

    def said(kind: str) -> str:
        found, api = [], prefect_server["PREFECT_API_URL"]
        if kind == "events":
            since = {"order": "DESC", "occurred": {"since": began}}
            page = httpx.post(f"{api}/events/filter", json={"limit": 50, "filter": since}).json()
            found += page["events"]
            while page["next_page"]:
                page = httpx.get(page["next_page"]).json()
                found += page["events"]
            return json.dumps(found, ensure_ascii=False)
        while page := httpx.post(f"{api}/{kind}/filter", json={"limit": 200, "offset": len(found)}).json():
            found += page
        return json.dumps(found, ensure_ascii=False)

    return Nights(evaluations, str(whole["report"]), said, env)


@pytest.mark.parametrize("kind", PARTS)
def test_prefect_is_told_no_personal_data(nights: Nights, kind: str) -> None:
    kept = [json.dumps(one, ensure_ascii=False) for one in json.loads(nights.said(kind))]
    shown_as_it_is = [one for one in kept if nights.evaluations["bare"] in one]  # an event holds the artifact again
    told = "".join(one for one in kept if one not in shown_as_it_is)
    assert "production" in told
    assert [secret for secret in PLANTED if secret in told] == []
    if kind == "artifacts":
        assert planted_in("".join(shown_as_it_is)), "false shows them as they are"
        assert NOTE["ru"] in told and NOTE["ru"] not in "".join(shown_as_it_is)


def test_an_incident_and_what_failed_tell_no_personal_data(nights: Nights, at_home: Path) -> None:
    told = nights.said("events")
    assert "yarus.incident.opened" in told and "ModelUnavailable" in told and "[телефон " in told
    listed = here("alerts", "list", "--json").out
    assert "production" in listed and planted_in(listed) == []
    runs = here("runs", "--json", "--limit", "50")
    assert "ModelUnavailable" in runs.out and planted_in(runs.out) == []


def test_the_report_shows_pseudonyms_and_says_so(nights: Nights, at_home: Path, tmp_path: Path) -> None:
    page = packs(Path(nights.report).read_text(encoding="utf-8"))
    assert planted_in(page) == []
    assert "столовая" in page and "[телефон " in page and 'data-page="corpus"' in page
    assert all(text in page for text in NOTE.values())
    both = (nights.evaluations["real_users"], nights.evaluations["blind"])
    for setting, there in (("", []), ("true", []), ("false", list(PLANTED))):
        here("report", *both, "--out", str(tmp_path / "r.html"), env=nights.env | {"YARUS_MASK_SHOWN": setting})
        page = packs((tmp_path / "r.html").read_text(encoding="utf-8"))
        assert 'data-pack="pair-' in page
        assert planted_in(page) == there
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
SILENT: dict[str, tuple[str, ...]] = {
    "show": ("show", "{tier3}", "--json"),
    "show to people": ("show", "{tier3}"),
    "gate": ("gate", "{tier3}", "--json"),
    "trend": ("trend", "avg_e2e_score", "--tier", "tier3", "--source", "production", "--json"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_pseudonyms_unless_they_are_off(nights: Nights, at_home: Path, name: str) -> None:
    words, bare = COMMANDS[name]
    words = tuple(word.format(**nights.evaluations) for word in words)
    masked, plain = (here(*words, env=nights.env | {"YARUS_MASK_SHOWN": setting}) for setting in ("", "false"))
    assert (masked.code, plain.code) == (0, 0), masked.err
    assert planted_in(masked.out) == []
    assert set(planted_in(plain.out)) >= set(bare)
    assert NOTE["ru"] in masked.err and "YARUS_MASK_SHOWN" not in plain.err
    assert "viewpage.action?pageId=4" in masked.out or "viewpage.action?pageId=4" not in plain.out


@pytest.mark.parametrize("name", SILENT)
def test_other_commands_tell_nothing_of_people(nights: Nights, at_home: Path, name: str) -> None:
    ran = here(*(word.format(**nights.evaluations) for word in SILENT[name]), env=nights.env)
    assert planted_in(ran.out + ran.err) == [] and ran.out


def test_exports_have_pseudonyms_and_the_same_figures(nights: Nights, at_home: Path, tmp_path: Path) -> None:
    name = nights.evaluations["tier3"]
    for setting, there in (("", []), ("false", list(PLANTED))):
        env = nights.env | {"YARUS_MASK_SHOWN": setting}
        for suffix in ("csv", "jsonl", "parquet"):
            here("export", name, "--to", str(tmp_path / f"{setting}cases.{suffix}"), env=env)
        texts_of = [(tmp_path / f"{setting}cases.{suffix}").read_text("utf-8-sig") for suffix in ("csv", "jsonl")]
        texts_of.append(str(pq.read_table(tmp_path / f"{setting}cases.parquet").to_pylist()))
        assert [planted_in(text) for text in texts_of] == [there, there, there]
    masked, bare = (pq.read_table(tmp_path / f"{setting}cases.parquet") for setting in ("", "false"))
    assert masked.schema == bare.schema
    same = [one for one in bare.column_names if one not in (*pseudonyms.TEXTS, "group", "dialog")]
    assert masked.select(same).to_pylist() == bare.select(same).to_pylist()
    users = [len(set(table["group"].to_pylist())) for table in (masked, bare)]
    assert users[0] == users[1] > 1, "users stay apart"


def test_sheets_and_the_gate_have_pseudonyms(nights: Nights, at_home: Path, tmp_path: Path) -> None:
    sheet, junit = tmp_path / "a.xlsx", tmp_path / "gate.xml"
    for setting, there in (("", []), ("false", [PHONE, NAME, MAIL])):
        words = ("dataset", "export-annotation", str(sheet), "--source", "production")
        ran = here(*words, env=nights.env | {"YARUS_MASK_SHOWN": setting})
        rows = openpyxl.load_workbook(sheet).active.iter_rows(values_only=True)
        people = [str(row[3:7]) for row in rows]  # the corpus beside them is published
        assert planted_in("".join(people)) == there
        assert (NOTE["ru"] in ran.err) == (setting == "")
    here("gate", nights.evaluations["tier3"], "--junit", str(junit), env=nights.env)
    assert planted_in(junit.read_text(encoding="utf-8")) == []


def test_what_is_kept_is_as_it_was_asked(nights: Nights, at_home: Path, engine: Engine) -> None:
    from yarus.db import journal

    kept = pq.ParquetFile(journal.find(engine, nights.evaluations["tier3"])["parquet"]).read()
    assert planted_in(str(kept.to_pylist())) == list(PLANTED)
