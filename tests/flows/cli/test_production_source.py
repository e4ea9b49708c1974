"""Check unusual production databases: what an evaluation refuses, and how it handles the rest."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.command_line import (
    CLOSED,
    ENGLISH,
    SECRET,
    Command,
    CommandLine,
    CommandResult,
    assert_refused,
    run_here,
    run_in_parallel,
)
from tests.support.evaluations import evaluate
from yarus.db.errors import InputError
from yarus.tasks.evaluation.summary import to_json
from yarus.tasks.models.embedding.embedders import LexicalEmbedder

OTHER_MODEL = "UPDATE chunk SET embedding = (SELECT array_agg((id + n)::real)::vector FROM generate_series(1, {0}) n)"


def make_vectors_statement(ids: str = "8, 9, 10") -> str:
    """Return a statement that stores the lexical embedder's own vectors for chunks."""
    texts = [
        "Библиотека выдаёт книги по студенческому билету.",
        "Общежитие находится рядом с корпусом на улице Ленина.",
        "Стипендия назначается студентам приказом ректора.",
    ]
    rows = ", ".join(
        f"({number}, '{vector.tolist()}'::vector)"
        for number, vector in zip((8, 9, 10), LexicalEmbedder().encode(texts), strict=True)
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
    "NULL embeddings": ((make_vectors_statement("8, 9"),), {}, 0, ()),
    "no vectors at all": ((), {}, 0, ()),
}


FORKED = ("missing table", "vectors of mixed dimension", "mapped")


def evaluate_in_process(env: Mapping[str, str]) -> CommandResult:
    """Run the evaluation's steps in this process; exit codes are those that `main` has for errors."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        try:
            return CommandResult(to_json(evaluate("tier1", source="production")), "", 0)
        except InputError as error:
            return CommandResult("", str(error), 2)


@pytest.fixture(scope="module")
def in_production(
    yarus: CommandLine, at_home_for_module: Path, production: Callable[..., str], locked_out: str
) -> dict[str, CommandResult]:
    words = ("run", "tier1", "--source", "production", "--json")
    variables = {
        name: ENGLISH | {"YARUS_SOURCE_URL": production(f"different_{number}", *statements)} | env
        for number, (name, (statements, env, _, _)) in enumerate(DIFFERENT.items())
    }
    in_process = {name: evaluate_in_process(variables[name]) for name in variables if name not in FORKED}
    refusals = {
        "unreachable": run_here(*words, env=ENGLISH | {"YARUS_SOURCE_URL": CLOSED}),
        "refusing": run_here(*words, env=ENGLISH | {"YARUS_SOURCE_URL": locked_out}),
        "refusing, our own": run_here("runs", env=ENGLISH | {"YARUS_DATABASE_URL": locked_out}),
    }
    return in_process | refusals | run_in_parallel(yarus, {name: Command(words, variables[name]) for name in FORKED})


@pytest.mark.parametrize("name", [name for name, row in DIFFERENT.items() if row[2]])
def test_unusable_production_database_is_refused(in_production: dict[str, CommandResult], name: str) -> None:
    _, _, code, words = DIFFERENT[name]
    assert_refused(in_production[name], code, words)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unreachable", ("127.0.0.1", "someone:***")),
        ("refusing", ("password authentication failed", "locked_out:***")),
        ("refusing, our own", ("password authentication failed", "locked_out:***", "YARUS_DATABASE_URL")),
    ],
)
def test_refusing_database_is_reported(
    in_production: dict[str, CommandResult], name: str, words: tuple[str, ...]
) -> None:
    assert_refused(in_production[name], 3, words)


def test_log_without_annotations_is_evaluated_by_page(in_production: dict[str, CommandResult]) -> None:
    document = in_production["no vectors at all"].json
    assert document["system"]["unit"] == "page"
    assert document["system"]["vectors"] == "computed"
    assert document["statuses"] == {"ok": 3, "unlabelled": 1}  # the fourth's URL is the word None
    assert document["metrics"]["hit_rate@1"]["value"] == 1.0
    assert (document["metrics"]["mrr"]["n_scored"], document["metrics"]["mrr"]["n_total"]) == (3, 4)
    assert any("log" in str(note) for note in document["notes"])


def test_mapped_tables_give_same_evaluation(in_production: dict[str, CommandResult]) -> None:
    mapped, unmapped = in_production["mapped"].json, in_production["no vectors at all"].json
    assert mapped["case_set_hash"] == unmapped["case_set_hash"]
    assert mapped["metrics"]["mrr"] == unmapped["metrics"]["mrr"]


def test_chunks_without_vectors_are_not_found_and_noted(in_production: dict[str, CommandResult]) -> None:
    document = in_production["NULL embeddings"].json
    assert document["system"]["vectors"] == "stored"
    assert "without vector" in str(document["notes"])
    assert document["metrics"]["hit_rate@10"]["value"] == pytest.approx(2 / 3)


def test_secrets_are_not_stored(in_production: dict[str, CommandResult], engine: Engine) -> None:
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT e::text FROM yarus.evaluation e").scalars().all()
    assert any("production" in row for row in rows)
    assert not any(SECRET in row for row in rows)


def test_missing_results_file_is_named(at_home: Path, in_production: dict[str, CommandResult]) -> None:
    document = in_production["mapped"].json
    Path(document["parquet"]).unlink()
    ran = run_here("cases", document["evaluation_id"], env=ENGLISH)
    assert ran.code == 3
    assert f"its file {document['parquet']} cannot be read: No such file" in ran.err
