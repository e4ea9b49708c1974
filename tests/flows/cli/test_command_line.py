"""The command line with bad input: exit code, words that name value, place and way out, never a traceback."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from sqlalchemy import Engine, inspect

from db.errors import DatabaseUnavailable, InputError
from db.sources import loaded
from flows.__main__ import cli
from tasks.models.embedders import Lexical
from tasks.results.summary import as_json
from tests.support.command_line import Command, CommandLine, Ran, environment, here, together
from tests.support.evaluations import evaluate

SECRET = "s3cret"
CLOSED = f"postgresql://someone:{SECRET}@127.0.0.1:1/there"

# What is given, the variables, the exit code, and what the message must hold.
WRONG: dict[str, tuple[tuple[str, ...], dict[str, str], int, tuple[str, ...]]] = {
    "unknown command": (("rnu",), {}, 2, ("rnu",)),
    "unknown tier": (("run", "tier11"), {}, 2, ("no tier 'tier11'", "did you mean 'tier1'?")),
    "unknown source": (
        ("run", "tier1", "--source", "xquad_r"),
        {},
        2,
        ("no source 'xquad_r'", "did you mean 'xquad_ru'?", "yarus load"),
    ),
    "unknown parameter": (("run", "tier1", "--limitt", "5"), {}, 2, ("'limitt'", "did you mean 'limit'?")),
    "unknown parameter by --set": (("run", "tier1", "--set", "uni=page"), {}, 2, ("'uni'", "did you mean 'unit'?")),
    "unknown retriever": (("run", "tier1", "--retriever", "fultext"), {}, 2, ("'fultext'", "'fulltext'")),
    "unknown retriever by setting": (("run", "tier1"), {"YARUS_RETRIEVER": "dens"}, 2, ("'dens'", "'dense'")),
    "value out of range": (("run", "tier1", "--k", "3"), {}, 2, ("k = '3'", "expected 10 or more")),
    "value not a number": (("run", "tier1", "--k", "ten"), {}, 2, ("k = 'ten'", "expected a whole number")),
    "value not among": (("run", "tier1", "--unit", "word"), {}, 2, ("unit = 'word'", "'chunk'", "'page'")),
    "no cases": (("run", "tier1", "--limit", "0"), {}, 2, ("limit", "0")),
    "value missing": (("run", "tier1", "--k"), {}, 2, ("--k", "value is missing")),
    "no equals sign": (("run", "tier1", "--set", "k"), {}, 2, ("--set 'k'", "PARAMETER=VALUE")),
    "stray word": (("run", "tier1", "xquad_ru"), {}, 2, ("'xquad_ru'", "--PARAMETER VALUE")),
    "nothing to resume": (("run", "tier1", "--resume", "tier1-2020"), {}, 2, ("no evaluation 'tier1-2020'",)),
    "unknown evaluation": (("show", "nothing"), {}, 2, ("no evaluation 'nothing'", "there are:")),
    "unknown setting": (("runs",), {"YARUS_RETREIVER": "x"}, 2, ("'YARUS_RETREIVER'", "'YARUS_RETRIEVER'")),
    "setting out of range": (("runs",), {"YARUS_MIN_COVERAGE": "95"}, 2, ("YARUS_MIN_COVERAGE", "95")),
    "setting not among": (("runs",), {"YARUS_LANGUAGE": "fr"}, 2, ("YARUS_LANGUAGE", "'ru' or 'en'")),
    "production without an address": (("run", "tier1", "--source", "production"), {}, 2, ("YARUS_SOURCE_URL=",)),
    "mapping of nothing": (
        ("run", "tier1", "--source", "production"),
        {"YARUS_SOURCE_URL": CLOSED, "YARUS_SOURCE_TABLES__CHUNKS": "x"},
        2,
        ("'chunks'", "did you mean 'chunk'?"),
    ),
    "another database": (("runs",), {"YARUS_DATABASE_URL": "mysql://u@h/d"}, 2, ("'mysql' is not supported",)),
    "no database URL": (("runs",), {"YARUS_DATABASE_URL": f"someone:{SECRET}"}, 2, ("YARUS_DATABASE_URL", "not a")),
    "unreachable database": (("runs",), {"YARUS_DATABASE_URL": CLOSED}, 3, ("127.0.0.1", "someone:***", "password")),
    "password as an option": (
        ("runs",),
        {"YARUS_DATABASE_URL": f"postgresql://127.0.0.1:1/there?user=someone&password={SECRET}"},
        3,
        ("127.0.0.1",),
    ),
    "a home that cannot be": (("runs",), {"YARUS_HOME": "/proc/yarus"}, 3, ("/proc/yarus", "YARUS_HOME")),
    "name that no source can have": (("load", "squad", "x.json", "--into", "a-b"), {}, 2, ("'a-b'", "a-z")),
    "file that is not there": (("load", "squad", "absent.json"), {}, 2, ("absent.json", "nothing was loaded")),
    "truncated file": (("load", "squad", "truncated.json"), {}, 2, ("line 1, column", "nothing was loaded")),
    "file that is not UTF-8": (("load", "squad", "cp1251.json"), {}, 2, ("not UTF-8 at byte 10", "iconv")),
    "file of another kind": (("load", "squad", "other.json"), {}, 2, ("has no 'data'", "not a SQuAD file")),
}


IN_PROCESSES = ("unknown command", "unknown source", "unreachable database", "file that is not UTF-8")


@pytest.fixture(scope="module")
def wrong(yarus: CommandLine, at_home_for_module: Path, xquad_source: str) -> dict[str, Ran]:
    (yarus.home / "truncated.json").write_text('{"data": [{"title": "x", "para', encoding="utf-8")
    (yarus.home / "cp1251.json").write_bytes('{"data": "Привет"}'.encode("cp1251"))
    (yarus.home / "other.json").write_text("{}", encoding="utf-8")
    given = {name: Command(words, env) for name, (words, env, _, _) in WRONG.items()}
    others = {name: here(*given[name].words, env=given[name].env) for name in given if name not in IN_PROCESSES}
    return others | together(yarus, {name: given[name] for name in IN_PROCESSES})


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_the_way_out(wrong: dict[str, Ran], name: str) -> None:
    _, _, code, words = WRONG[name]
    refused(wrong[name], code, words)


def refused(ran: Ran, code: int, words: tuple[str, ...]) -> None:
    assert ran.code == code, ran
    assert ran.out == ""
    for word in words:
        assert word in ran.err
    assert "Traceback" not in ran.err
    assert SECRET not in ran.err


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (RuntimeError(f"a mistake of ours at {CLOSED}"), 3, "Traceback"),
        (InputError(f"not {CLOSED}"), 2, "yarus: not"),
        (DatabaseUnavailable(f"no {CLOSED}"), 3, "yarus: no"),
    ],
)
def test_no_error_looks_like_an_invalid_result(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, code: int, said: str
) -> None:
    def fail() -> None:
        raise problem

    monkeypatch.setitem(cli.commands, "broken", click.Command("broken", callback=fail))
    ran = here("broken")
    assert (ran.code, said in ran.err, SECRET in ran.err) == (code, True, False)


@pytest.mark.parametrize("name", ["truncated", "cp1251", "other", "absent"])
def test_nothing_is_loaded_of_a_broken_file(wrong: dict[str, Ran], engine: Engine, name: str) -> None:
    with pytest.raises(InputError, match="no source"):
        loaded(engine, name)
    assert f"source_{name}" not in inspect(engine).get_schema_names()


# --- a production database: found out by the evaluation itself ---

OTHER_MODEL = "UPDATE chunk SET embedding = (SELECT array_agg((id + n)::real)::vector FROM generate_series(1, {0}) n)"


def stored(ids: str = "8, 9, 10") -> str:
    """A statement that stores the lexical embedder's own vectors for chunks."""
    texts = [
        "Библиотека выдаёт книги по студенческому билету.",
        "Общежитие находится рядом с корпусом на улице Ленина.",
        "Стипендия назначается студентам приказом ректора.",
    ]
    rows = ", ".join(
        f"({number}, '{vector.tolist()}'::vector)"
        for number, vector in zip((8, 9, 10), Lexical().encode(texts), strict=True)
    )
    return f"UPDATE chunk SET embedding = v FROM (VALUES {rows}) AS t (i, v) WHERE id = i AND id IN ({ids})"


DIFFERENT: dict[str, tuple[tuple[str, ...], dict[str, str], int, tuple[str, ...]]] = {
    "missing table": (
        ("ALTER TABLE chunk RENAME TO chunks",),
        {},
        2,
        ("'chunk'", "did you mean 'chunks'?", "YARUS_SOURCE_TABLES__CHUNK=NAME"),
    ),
    "missing column": (
        ("ALTER TABLE question_answer RENAME question TO question_text",),
        {},
        2,
        ("'question'", "did you mean 'question_text'?", "YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__QUESTION=NAME"),
    ),
    "vectors of mixed dimension": (
        (OTHER_MODEL.format(3), OTHER_MODEL.format(2) + " WHERE id = 9"),
        {},
        2,
        ("2 (chunk 9)", "3 (chunk 8)", "--vectors computed"),
    ),
    "vectors of another size": ((OTHER_MODEL.format(3),), {}, 2, ("has 3 dimensions", "gives 2000", "YARUS_EMBEDDER")),
    "vectors of another model": ((OTHER_MODEL.format(2000),), {}, 2, ("cosine", "of different models")),
    "no questions": (("DELETE FROM question_answer",), {}, 2, ("has no questions",)),
    "no chunks": (("DELETE FROM chunk",), {}, 2, ("has no chunks",)),
    "mapped": (
        ("ALTER TABLE chunk RENAME TO passage", "ALTER TABLE passage RENAME text TO body"),
        {"YARUS_SOURCE_TABLES__CHUNK": "passage", "YARUS_SOURCE_COLUMNS__CHUNK__TEXT": "body"},
        0,
        (),
    ),
    "NULL embeddings": ((stored("8, 9"),), {}, 0, ()),
    "no vectors at all": ((), {}, 0, ()),
}


BY_COMMAND = ("missing table", "vectors of mixed dimension", "mapped")


def evaluated(env: Mapping[str, str]) -> Ran:
    """What the evaluation's own steps come to in this process; the exit codes are those that `main` has for errors."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        try:
            return Ran(as_json(evaluate("tier1", source="production")), "", 0)
        except InputError as error:
            return Ran("", str(error), 2)


@pytest.fixture(scope="module")
def in_production(
    yarus: CommandLine, at_home_for_module: Path, production: Callable[..., str], locked_out: str
) -> dict[str, Ran]:
    words = ("run", "tier1", "--source", "production", "--json")
    variables = {
        name: {"YARUS_SOURCE_URL": production(f"different_{number}", *statements)} | env
        for number, (name, (statements, env, _, _)) in enumerate(DIFFERENT.items())
    }
    others = {name: evaluated(variables[name]) for name in variables if name not in BY_COMMAND}
    refusals = {
        "unreachable": here(*words, env={"YARUS_SOURCE_URL": CLOSED}),
        "refusing": here(*words, env={"YARUS_SOURCE_URL": locked_out}),
        "refusing, our own": here("runs", env={"YARUS_DATABASE_URL": locked_out}),
    }
    return others | refusals | together(yarus, {name: Command(words, variables[name]) for name in BY_COMMAND})


@pytest.mark.parametrize("name", [name for name, row in DIFFERENT.items() if row[2]])
def test_a_production_database_that_cannot_be_evaluated(in_production: dict[str, Ran], name: str) -> None:
    _, _, code, words = DIFFERENT[name]
    refused(in_production[name], code, words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unreachable", ("127.0.0.1", "someone:***")),
        ("refusing", ("password authentication failed", "locked_out:***")),
        ("refusing, our own", ("password authentication failed", "locked_out:***", "YARUS_DATABASE_URL")),
    ],
)
def test_a_database_that_refuses(in_production: dict[str, Ran], name: str, words: tuple[str, ...]) -> None:
    refused(in_production[name], 3, words)


def test_a_log_without_annotations_is_evaluated_by_page(in_production: dict[str, Ran]) -> None:
    document = in_production["no vectors at all"].json
    assert document["system"]["unit"] == "page"
    assert document["system"]["vectors"] == "computed"
    assert document["statuses"] == {"ok": 3, "unlabelled": 1}  # the fourth's URL is the word None
    assert document["metrics"]["hit_rate@1"]["value"] == 1.0
    assert (document["metrics"]["mrr"]["n_scored"], document["metrics"]["mrr"]["n_total"]) == (3, 4)
    assert any("log" in str(note) for note in document["notes"])


def test_mapped_tables_give_the_same_evaluation(in_production: dict[str, Ran]) -> None:
    mapped, plain = in_production["mapped"].json, in_production["no vectors at all"].json
    assert mapped["case_set_hash"] == plain["case_set_hash"]
    assert mapped["metrics"]["mrr"] == plain["metrics"]["mrr"]


def test_chunks_without_a_vector_cannot_be_found_and_that_is_said(in_production: dict[str, Ran]) -> None:
    document = in_production["NULL embeddings"].json
    assert document["system"]["vectors"] == "stored"
    assert "without vector" in str(document["notes"])
    assert document["metrics"]["hit_rate@10"]["value"] == pytest.approx(2 / 3)


def test_no_secret_is_kept(in_production: dict[str, Ran], engine: Engine) -> None:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT e::text FROM yarus.evaluation e").scalars().all()
    assert any("production" in row for row in rows)
    assert not any(SECRET in row for row in rows)


# --- the reading commands ---


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("hit_rate@11=0", ("no column 'hit_rate@11'", "did you mean 'hit_rate@1")),
        ("mrr=half", ("'half' is no double",)),
        ("mrr", ("expected COLUMN=VALUE",)),
        ("relevant=x", ("list", "relevant~x")),
    ],
)
def test_a_condition_that_is_none(
    at_home: Path, engine: Engine, by_fulltext: dict[str, Any], condition: str, words: tuple[str, ...]
) -> None:
    from tasks.results.queries import cases_where

    with pytest.raises(InputError) as error:
        cases_where(engine, by_fulltext["evaluation_id"], [condition])
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("conditions", "meets"),
    [
        ([], lambda case: True),
        (["status=ok"], lambda case: case["status"] == "ok"),
        (["status!=ok"], lambda case: case["status"] != "ok"),
        (["reason=null"], lambda case: case["reason"] is None),
        (["hit_rate@1=1"], lambda case: case["hit_rate@1"] == 1),
        (["hit_rate@1=0", "hit_rate@10>0"], lambda case: case["hit_rate@1"] == 0 < case["hit_rate@10"]),
        (["mrr >= 0.5", "mrr<1"], lambda case: 0.5 <= case["mrr"] < 1),
        (["question~СКОЛЬКО"], lambda case: "сколько" in case["question"].lower()),
        (["retrieved~Normans-1"], lambda case: "Normans-1" in case["retrieved"]),
    ],
)
def test_conditions_choose_cases(
    at_home: Path,
    engine: Engine,
    by_fulltext: dict[str, Any],
    conditions: list[str],
    meets: Callable[[dict[str, Any]], bool],
) -> None:
    from tasks.results.queries import cases_where

    name = by_fulltext["evaluation_id"]
    wanted = [case["case_id"] for case in cases_where(engine, name, []).to_pylist() if meets(case)]
    assert cases_where(engine, name, conditions)["case_id"].to_pylist() == wanted


def test_a_file_that_is_gone_is_named_and_no_fault_of_the_user(at_home: Path, in_production: dict[str, Ran]) -> None:
    document = in_production["mapped"].json
    Path(document["parquet"]).unlink()
    ran = here("cases", document["evaluation_id"])
    assert ran.code == 3
    assert f"its file {document['parquet']} cannot be read: No such file" in ran.err


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_reader_that_has_seen_enough_gets_no_complaint(
    yarus: CommandLine, by_fulltext: dict[str, Any], form: tuple[str, ...]
) -> None:
    with yarus.start("cases", by_fulltext["evaluation_id"], "--limit", "1190", *form) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (0, 1)  # click's and rich's


def test_for_programs_there_is_one_document_and_nothing_else(yarus: CommandLine, by_fulltext: dict[str, Any]) -> None:
    name = by_fulltext["evaluation_id"]
    commands = (("runs",), ("show", name), ("cases", name, "--limit", "2"), ("doctor",))
    ran = together(yarus, {words[0]: Command((*words, "--json")) for words in commands})
    worst = max(finding["code"] for finding in ran["doctor"].json)  # of the sources that all tests have left here
    for words in commands:
        assert ran[words[0]].code == (worst if words == ("doctor",) else 0), ran[words[0]]
        assert isinstance(ran[words[0]].json, dict | list)
        assert ran[words[0]].err == ""


def test_help_needs_neither_prefect_nor_numpy(home: Path) -> None:
    heavy = "{'prefect', 'numpy', 'sqlalchemy', 'pyarrow', 'pandas', 'pydantic', 'rich'}"
    script = f"import sys, flows.__main__; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment(home), cwd=home, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_every_command_explains_itself() -> None:
    names = [*cli.commands]
    ran = {name: here(name, "--help") for name in names}
    for name in names:
        assert ran[name].code == 0
        assert "Usage:" in ran[name].out
