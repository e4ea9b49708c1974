"""The same questions over corpora that are cut otherwise: which are the same, and which sources will not do."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.command_line import ENGLISH, here
from tests.support.evaluations import load, passages, question
from yarus.db.errors import InputError
from yarus.tasks.comparison.common_cases import common
from yarus.tasks.comparison.experiments.across_sources import (
    paired_by_question,
    require_common_questions,
    same_questions,
)
from yarus.tasks.config.flow_parameters import Sweep


def pairs(a: list[tuple[str, str]], b: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The ids of the questions that are paired."""
    keys = same_questions({"a": a, "b": b})
    other = {key: name for name, key in keys["b"].items()}
    return [(name, other[key]) for name, key in keys["a"].items() if key in other]


def test_questions_are_paired_by_id_where_the_ids_agree() -> None:
    assert pairs([("1", "Где?"), ("2", "Где?"), ("3", "Кто?")], [("2", "Где?"), ("1", "где? ")]) == [
        ("1", "1"),
        ("2", "2"),
    ]


def test_an_id_that_means_another_question_pairs_nothing() -> None:
    assert pairs([("1", "Где?"), ("2", "Кто?")], [("1", "Где?"), ("2", "Когда?")]) == [("1", "1")]


def test_else_by_the_text_without_case_and_white_space_and_never_by_one_that_comes_twice() -> None:
    a = [("1", "Где  столовая?"), ("2", "Кто?"), ("3", "Сколько?"), ("4", "Сколько?")]
    b = [("x", "где столовая?"), ("2", "Где столовая 2?"), ("y", "КТО?"), ("z", "сколько?")]
    assert pairs(a, b) == [("1", "x"), ("2", "y")]


def test_cases_of_arms_come_together_in_one_order() -> None:
    def cases(source: str, rows: dict[str, str]) -> pa.Table:
        names = {"case_id": [f"{source}:{name}" for name in rows], "question_id": list(rows)}
        return pa.table(names | {"question": list(rows.values())})

    tables = {
        "one": cases("a", {"1": "Где?", "2": "Кто?", "3": "Что?"}),
        "two": cases("b", {"9": "что?", "7": "где?"}),
        "three": cases("b", {"7": "где?"}),
    }
    found = paired_by_question(tables, {"one": "a", "two": "b", "three": "b"})
    one, other = common(found["one"], found["two"])
    assert (one["question_id"].to_pylist(), other["question_id"].to_pylist()) == (["1", "3"], ["7", "9"])
    assert len(common(found["one"], found["three"]).a) == 1


@pytest.fixture(scope="module")
def sources(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("across")
    of: dict[str, list[dict[str, Any]]] = {
        "across_a": [question(number) for number in range(6)],
        "across_same": [question(number) for number in range(6)],
        "across_renamed": [question(number, id=f"q{number}") for number in range(6)],
        "across_others": [question(number, question=f"Другой вопрос {number}?") for number in range(6)],
    }
    for name, asked in of.items():
        load(folder, name, asked, passages(3))
    file = folder / "none.chunks.jsonl"
    file.write_text(json.dumps(passages(1)[0], ensure_ascii=False), encoding="utf-8")
    assert here("load", "table", str(file), "--into", "across_none", "--kind", "chunks").code == 0


def problem(*names: str, **more: Any) -> str | None:
    try:
        require_common_questions(Sweep.model_validate({"sources": names, **more}))
    except InputError as error:
        return str(error)
    return None


def test_sources_that_can_be_compared(at_home: Path, sources: None) -> None:
    assert problem("across_a", "across_same", limit=3) is None
    assert problem("across_a", "across_renamed") is None
    assert problem("across_others") is None, "there is nothing that it is compared with"


@pytest.mark.parametrize(
    ("other", "more", "said"),
    [
        ("across_others", {}, "'across_a' and 'across_others' have no question in common"),
        ("across_none", {}, "source 'across_none' has no questions"),
        ("across_nowhere", {}, "no source 'across_nowhere'"),
        ("across_renamed", {"limit": 3}, "--limit 3 draws by id"),
    ],
)
def test_sources_that_cannot(at_home: Path, sources: None, other: str, more: dict[str, Any], said: str) -> None:
    found = problem("across_a", other, **more)
    assert found and said in found
    options = [word for name, value in more.items() for word in (f"--{name}", str(value))]
    ran = here("sweep", "--tier", "tier1", "--sources", f"across_a,{other}", *options, env=ENGLISH)
    assert (ran.code, said in ran.err, ran.out) == (2, True, ""), ran
