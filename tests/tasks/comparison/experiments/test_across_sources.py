"""Pairs of the same questions over differently cut corpora, and sources that cannot be compared."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.command_line import ENGLISH, run_here
from tests.support.evaluations import load, make_passages, question
from yarus.db.errors import InputError
from yarus.tasks.comparison.common_cases import match_cases
from yarus.tasks.comparison.experiments.across_sources import (
    match_questions,
    pair_by_question,
    require_common_questions,
)
from yarus.tasks.config.flow_parameters import SweepParameters


def paired_ids(a: list[tuple[str, str]], b: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the ids of the paired questions."""
    keys = match_questions({"a": a, "b": b})
    names_of_b = {key: name for name, key in keys["b"].items()}
    return [(name, names_of_b[key]) for name, key in keys["a"].items() if key in names_of_b]


def test_questions_are_paired_by_id_when_ids_agree() -> None:
    assert paired_ids([("1", "Где?"), ("2", "Где?"), ("3", "Кто?")], [("2", "Где?"), ("1", "где? ")]) == [
        ("1", "1"),
        ("2", "2"),
    ]


def test_equal_ids_of_other_questions_are_not_paired() -> None:
    assert paired_ids([("1", "Где?"), ("2", "Кто?")], [("1", "Где?"), ("2", "Когда?")]) == [("1", "1")]


def test_questions_are_paired_by_unique_normalised_text() -> None:
    a = [("1", "Где  столовая?"), ("2", "Кто?"), ("3", "Сколько?"), ("4", "Сколько?")]
    b = [("x", "где столовая?"), ("2", "Где столовая 2?"), ("y", "КТО?"), ("z", "сколько?")]
    assert paired_ids(a, b) == [("1", "x"), ("2", "y")]


def test_paired_arms_have_common_order() -> None:
    def cases(source: str, rows: dict[str, str]) -> pa.Table:
        names = {"case_id": [f"{source}:{name}" for name in rows], "question_id": list(rows)}
        return pa.table(names | {"question": list(rows.values())})

    tables = {
        "one": cases("a", {"1": "Где?", "2": "Кто?", "3": "Что?"}),
        "two": cases("b", {"9": "что?", "7": "где?"}),
        "three": cases("b", {"7": "где?"}),
    }
    paired = pair_by_question(tables, {"one": "a", "two": "b", "three": "b"})
    first, second = match_cases(paired["one"], paired["two"])
    assert (first["question_id"].to_pylist(), second["question_id"].to_pylist()) == (["1", "3"], ["7", "9"])
    assert len(match_cases(paired["one"], paired["three"]).a) == 1


@pytest.fixture(scope="module")
def sources(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("across")
    questions_by_source: dict[str, list[dict[str, Any]]] = {
        "across_a": [question(number) for number in range(6)],
        "across_same": [question(number) for number in range(6)],
        "across_renamed": [question(number, id=f"q{number}") for number in range(6)],
        "across_others": [question(number, question=f"Другой вопрос {number}?") for number in range(6)],
    }
    for name, rows in questions_by_source.items():
        load(folder, name, rows, make_passages(3))
    file = folder / "none.chunks.jsonl"
    file.write_text(json.dumps(make_passages(1)[0], ensure_ascii=False), encoding="utf-8")
    assert run_here("load", "table", str(file), "--into", "across_none", "--kind", "chunks").code == 0


def find_problem(*names: str, **more: Any) -> str | None:
    try:
        require_common_questions(SweepParameters.model_validate({"sources": names, **more}))
    except InputError as error:
        return str(error)
    return None


def test_comparable_sources_are_accepted(at_home: Path, sources: None) -> None:
    assert find_problem("across_a", "across_same", limit=3) is None
    assert find_problem("across_a", "across_renamed") is None
    assert find_problem("across_others") is None, "there is nothing that it is compared with"


@pytest.mark.parametrize(
    ("other", "more", "message"),
    [
        ("across_others", {}, "'across_a' and 'across_others' have no question in common"),
        ("across_none", {}, "source 'across_none' has no questions"),
        ("across_nowhere", {}, "no source 'across_nowhere'"),
        ("across_renamed", {"limit": 3}, "--limit 3 draws by id"),
    ],
)
def test_incomparable_sources_are_rejected(
    at_home: Path, sources: None, other: str, more: dict[str, Any], message: str
) -> None:
    problem = find_problem("across_a", other, **more)
    assert problem and message in problem
    options = [word for name, value in more.items() for word in (f"--{name}", str(value))]
    run = run_here("sweep", "--tier", "tier1", "--sources", f"across_a,{other}", *options, env=ENGLISH)
    assert (run.code, message in run.err, run.out) == (2, True, ""), run
