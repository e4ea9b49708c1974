"""Files as people have them: each comes to what `expected.json` beside it says, by the command that stands there."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, text

from db.errors import InputError
from flows.__main__ import cli
from tests.support.evaluations import evaluate
from tests.support.processes import answers, free_port, until
from tests.support.promises import check_promises

CASES = Path(__file__).parents[4] / "shared" / "cases"
EXPECTED: dict[str, dict[str, Any]] = (
    json.loads((CASES / "expected.json").read_text(encoding="utf-8")) if CASES.is_dir() else {}
)
LOADED = {name: case for name, case in EXPECTED.items() if case["level"] != "stop" and "11_" not in name}
SCORED = {name: case for name, case in LOADED.items() if "numbers" in case and name[:2] not in ("35", "36")}
COUNTS = {
    "questions": "SELECT count(*) FROM {}.question_answer",
    "answers": "SELECT count(answer) FROM {}.question_answer",
    "with_contexts": "SELECT count(*) FROM {}.question_answer WHERE recorded -> 'contexts' IS NOT NULL",
    "users": "SELECT count(DISTINCT user_id) FROM {}.question_answer",
    "times": "SELECT count(created_at) FROM {}.question_answer",
    "references": "SELECT count(ground_truth_answer) FROM {}.annotation",
    "dialogs": "SELECT count(DISTINCT dialog_id) FROM {}.annotation",
    "unanswerable": "SELECT count(*) FROM {}.annotation WHERE NOT answerable",
    "labelled": "SELECT count(*) FROM {}.annotation WHERE coalesce(relevant_chunk_ids, relevant_urls, '[]') <> '[]' "
    "OR coalesce(relevant_urls, '[]') <> '[]'",
    "chunks": "SELECT count(DISTINCT text) FROM {}.chunk",
    "latency_ms": "SELECT array_agg((recorded ->> 'latency_ms')::float) FROM {}.question_answer",
    "tokens_in": "SELECT array_agg((recorded ->> 'tokens_in')::int) FROM {}.question_answer",
    "references_by_score": "SELECT count(*) FROM {}.question_answer WHERE score = 5",
}  # fmt: skip

pytestmark = pytest.mark.skipif(not EXPECTED, reason="../shared/cases is not there")


@pytest.fixture(scope="module", autouse=True)
def at_home(at_home_for_module: Path) -> Path:
    return at_home_for_module


def source_of(name: str) -> str:
    return f"case_{name.partition('.')[0]}"


def init(name: str, *more: str) -> dict[str, Any]:
    """What `yarus init` says of a case, in this process, in the folder of the cases."""
    words = [word for word in EXPECTED[name]["command"].split()[2:] if not word.startswith(("--sut", "http"))]
    words = ["36_beir_self"] if "beir" in words else words
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.chdir(CASES)
        patch.setattr("flows.cli.init.ENV", Path(folder) / ".env")
        result = CliRunner().invoke(
            cli, ["init", *words, "--into", source_of(name), "--yes", "--json", *more], standalone_mode=False
        )
    if result.exception is not None:
        raise result.exception
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(scope="module")
def begun() -> dict[str, dict[str, Any]]:
    """What was loaded, case by case, each once."""
    return {}


def loaded(name: str, begun: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if name not in begun:
        begun[name] = init(name)
    return begun[name]


def counted(engine: Engine, name: str, what: str) -> Any:
    with engine.connect() as connection:
        return connection.scalar(text(COUNTS[what].format(f"source_{source_of(name)}")))


@pytest.mark.parametrize("name", LOADED)
def test_a_file_comes_to_what_it_holds(name: str, begun: dict[str, dict[str, Any]], engine: Engine) -> None:
    case, document = LOADED[name], loaded(name, begun)
    assert {what: counted(engine, name, what) for what in COUNTS if what in case} == {
        what: case[what] for what in COUNTS if what in case
    }
    for ours, theirs in case.get("mapping", {}).items():
        named = {one["mapping"][ours] for one in document["files"] if ours in one["mapping"]}
        is_column = ours.isidentifier() and theirs.isidentifier() and any(one["mapping"] for one in document["files"])
        assert not is_column or theirs in named, ours
    ignored = {column for one in document["files"] for column in one["unused"]}
    assert set(case.get("ignored", ())) <= ignored


@pytest.mark.parametrize("name", LOADED)
def test_what_is_promised_is_measured(name: str, begun: dict[str, dict[str, Any]]) -> None:
    """Each tier that `init` promises completes with the promised cases; the answers are held against the references."""
    document = loaded(name, begun)
    summaries = check_promises(source_of(name))
    promised = {one["tier"]: one["questions"] for one in document["readiness"] if one["missing"] is None}
    assert promised.keys() == summaries.keys()
    if name not in SCORED:
        return
    numbers = SCORED[name]["numbers"]
    summary = evaluate("tier3", source=source_of(name), sut="recorded")
    metric = summary["metrics"]["avg_rouge1_f"]
    assert (round(metric["value"], 4), metric["n_scored"]) == (numbers["avg_rouge1_f"], numbers["n_scored"])
    assert summary["state"] == "completed"


@pytest.mark.parametrize(("provider", "rouge"), [("bot-a", 0.4923), ("bot-b", 1.0)])
def test_answers_of_several_providers_are_chosen(provider: str, rouge: float, engine: Engine) -> None:
    name = "11_promptfoo_results.json"
    with pytest.raises(InputError, match=r"each question stands 2 times, .*--where provider.label=bot-a"):
        init(name)
    with engine.connect() as connection:
        assert connection.scalar(text(f"SELECT to_regclass('source_{source_of(name)}.question_answer')")) is None
    source = f"case_11_{provider.replace('-', '_')}"
    init(name, "--where", f"provider.label={provider}", "--into", source)
    summary = evaluate("tier3", source=source, sut="recorded")
    assert round(summary["metrics"]["avg_rouge1_f"]["value"], 4) == rouge
    assert summary["metrics"]["avg_rouge1_f"]["n_scored"] == 6


def test_a_file_of_nothing_known_is_refused_with_its_columns(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"foo \(0\), bar \(xxxxx\), baz .*--map question=NAME") as refused:
        init("38_unknown.jsonl")
    assert "nothing was loaded" in str(refused.value)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT to_regclass('source_case_38_unknown.question_answer')")) is None


@contextmanager
def stub_bot() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, str(CASES / "stub_bot.py"), str(port)])
    try:
        until("the bot listens", lambda: answers(port))
        yield f"http://127.0.0.1:{port}/ask"
    finally:
        process.kill()
        process.wait()


def test_a_bot_without_pages_is_measured(begun: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    name = "35_blackbox.csv"
    with stub_bot() as address:
        document = init(name, "--sut", address)
        ready = {one["tier"]: one["questions"] for one in document["readiness"] if one["missing"] is None}
        monkeypatch.setenv("YARUS_SUT", address)
        summary = evaluate("tier3", source=source_of(name))
    assert (summary["state"], ready.get("tier3")) == ("completed", 6)
    metric = summary["metrics"]["avg_rouge1_f"]
    assert (round(metric["value"], 4), metric["n_scored"]) == (0.4923, 6)


def test_what_is_said_of_single_cells(begun: dict[str, dict[str, Any]]) -> None:
    notes = " ".join(note for one in loaded("30_one_bad_cell.csv", begun)["files"] for note in one["notes"])
    for column, value in (
        ("score", "пять"),
        ("score", "4.5"),
        ("created_at", "вчера"),
        ("latency_ms", "0,3 с"),
        ("contexts", "нет"),
    ):
        assert column in notes and value in notes
    (sheet,) = loaded("31_support.xlsx", begun)["files"]
    assert "'Обращения', header in row 4" in " ".join(sheet["notes"])
    assert "Как заполнять, Справочник" in " ".join(sheet["notes"])
    assert any("Итого" in problem for problem in loaded("31_support.xlsx", begun)["loaded"][0]["problems"])


def test_values_that_go_wrong_in_silence(begun: dict[str, dict[str, Any]], engine: Engine) -> None:
    def rows(name: str, statement: str) -> list[tuple[Any, ...]]:
        loaded(name, begun)
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement.format(f"source_{source_of(name)}")))]

    ids = [row[0] for row in rows("33_nan_ids.csv", "SELECT id FROM {}.question_answer")]
    assert sum(one.isdigit() for one in ids) == 7 and "1001" in ids
    assert rows(
        "13_langfuse_observations.jsonl", "SELECT question, answer FROM {}.question_answer ORDER BY id LIMIT 1"
    ) == [("How do I renew my ferry pass?", "You can renew the pass at the harbour kiosk.")]
    assert rows("29_several_pages.csv", "SELECT count(*) FROM {}.question_answer WHERE confluence_url LIKE '%,%'") == [
        (0,)
    ]
    assert rows(
        "09_promptfoo_tests.csv", "SELECT count(*) FROM {}.annotation WHERE ground_truth_answer LIKE '%lower%'"
    ) == [(0,)]
    assert rows("31_support.xlsx", "SELECT count(*) FROM {}.question_answer WHERE question = 'Итого'") == [(0,)]
    (first,) = rows("31_support.xlsx", "SELECT question, created_at::text FROM {}.question_answer WHERE id = '1'")
    assert first[0] == "Как продлить читательский билет?" and first[1].startswith("2026-03-02 09:15")
    assert rows("39_golden_set.yaml", "SELECT relevant_urls FROM {}.annotation WHERE question_id = 'r9'") == [([],)]
    assert rows(
        "01_ragas02_results.csv", "SELECT count(*) FROM {}.question_answer WHERE recorded -> 'contexts' = '[]'"
    ) == [(1,)]
    assert rows(
        "27_golden_and_pages", "SELECT jsonb_array_length(relevant_urls) FROM {}.annotation WHERE question_id = 'r3'"
    ) == [(2,)]


def test_labels_find_pages_that_come_later(begun: dict[str, dict[str, Any]], engine: Engine) -> None:
    loaded("27_golden_and_pages", begun)
    folder, source = CASES / "27_golden_and_pages", "case_27_in_turn"
    for words in ([str(folder / "golden_set.json")], [str(folder / "pages")]):
        result = CliRunner().invoke(cli, ["load", "table", *words, "--into", source, "--json"], standalone_mode=False)
        assert result.exception is None
    statement = "SELECT relevant_urls FROM {}.annotation ORDER BY question_id"
    with engine.connect() as connection:
        in_turn = connection.execute(text(statement.format(f"source_{source}"))).all()
        together = connection.execute(text(statement.format("source_case_27_golden_and_pages"))).all()
    assert in_turn == together and any("://" in page for row in in_turn for page in row[0])


def test_nothing_is_said_of_pages_where_no_passage_names_one(begun: dict[str, dict[str, Any]]) -> None:
    name = "30_one_bad_cell.csv"
    loaded(name, begun)
    summary = evaluate("tier3", source=source_of(name))
    assert (summary["production"] or {"page": None})["page"] is None
    assert not [note for note in summary["notes"] if note["note"] == "unknown ids"]
