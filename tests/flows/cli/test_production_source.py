"""A production database as it may be found: what the evaluation itself refuses, and what it makes of the rest."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CLOSED, ENGLISH, SECRET, Command, CommandLine, Ran, here, refused, together
from tests.support.evaluations import evaluate
from yarus.db.errors import InputError
from yarus.tasks.evaluation.summary import as_json
from yarus.tasks.models.embedding.embedders import Lexical

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
        name: ENGLISH | {"YARUS_SOURCE_URL": production(f"different_{number}", *statements)} | env
        for number, (name, (statements, env, _, _)) in enumerate(DIFFERENT.items())
    }
    others = {name: evaluated(variables[name]) for name in variables if name not in BY_COMMAND}
    refusals = {
        "unreachable": here(*words, env=ENGLISH | {"YARUS_SOURCE_URL": CLOSED}),
        "refusing": here(*words, env=ENGLISH | {"YARUS_SOURCE_URL": locked_out}),
        "refusing, our own": here("runs", env=ENGLISH | {"YARUS_DATABASE_URL": locked_out}),
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


def test_a_file_that_is_gone_is_named_and_no_fault_of_the_user(at_home: Path, in_production: dict[str, Ran]) -> None:
    document = in_production["mapped"].json
    Path(document["parquet"]).unlink()
    ran = here("cases", document["evaluation_id"], env=ENGLISH)
    assert ran.code == 3
    assert f"its file {document['parquet']} cannot be read: No such file" in ran.err
