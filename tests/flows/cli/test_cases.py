"""Check `yarus cases`: which cases its conditions select, and a closed pipe."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine
from yarus.__main__ import run_command_line
from yarus.db.errors import InputError
from yarus.flows.terminal.lists import print_cases
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.process_exit import CLOSED_PIPE_EXIT_CODE


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("hit_rate@11=0", ("no column 'hit_rate@11'", "did you mean 'hit_rate@1")),
        ("mrr=half", ("'half' is not a valid double",)),
        ("mrr", ("expected COLUMN=VALUE",)),
        ("relevant=x", ("list", "relevant~x")),
    ],
)
def test_invalid_condition_is_refused(
    at_home: Path, engine: Engine, by_fulltext: dict[str, Any], condition: str, words: tuple[str, ...]
) -> None:
    from yarus.tasks.evaluation.queries import filter_cases

    with pytest.raises(InputError) as error:
        filter_cases(engine, by_fulltext["evaluation_id"], [condition])
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
def test_conditions_select_cases(
    at_home: Path,
    engine: Engine,
    by_fulltext: dict[str, Any],
    conditions: list[str],
    meets: Callable[[dict[str, Any]], bool],
) -> None:
    from yarus.tasks.evaluation.queries import filter_cases

    evaluation_id = by_fulltext["evaluation_id"]
    expected = [case["case_id"] for case in filter_cases(engine, evaluation_id, []).to_pylist() if meets(case)]
    assert filter_cases(engine, evaluation_id, conditions)["case_id"].to_pylist() == expected


@pytest.mark.parametrize(("form", "codes"), [((), {CLOSED_PIPE_EXIT_CODE}), (("--json",), {0, CLOSED_PIPE_EXIT_CODE})])
def test_closed_pipe_causes_no_complaint(
    yarus: CommandLine, by_fulltext: dict[str, Any], form: tuple[str, ...], codes: set[int]
) -> None:
    with yarus.start("cases", by_fulltext["evaluation_id"], "--limit", "1190", *form) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in codes, "the first line of JSON may be all of it"


def test_chunk_is_printed_with_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = "Читальный зал открыт до 21:00."
    case_table = make_cases(case_id=["sample:1"], status=["ok"], reason=[None], question=[None], text=[text])
    print_cases(case_table, [1], ["ok"], "en")
    assert text in capsys.readouterr().out


def test_repeated_question_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    case_table = make_cases(case_id=["s:1"], status=["ok"], reason=[None], question=["Где столовая?"])
    print_cases(case_table, [3], ["ok"] * 4 + ["unlabelled"] * 3, "en")
    answer, limit, case = capsys.readouterr().out.splitlines()
    assert answer == "7 cases, 4 of them measured. Not measured: no label 3."
    assert limit.startswith("The first 3 are shown.") and "Где столовая? ×3" in case


@pytest.mark.parametrize("language", ["en", "ru"])
def test_first_screen_of_cases_has_a_line_per_case(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [f"s:{n}" for n in range(20)]
    values = {"status": ["ok"] * 20, "reason": [None] * 20, "question": ["Где столовая?"] * 20}
    case_table = make_cases(case_id=ids, **values, relevant=[["c1"]] * 20, retrieved=[["c2"]] * 20)
    print_cases(case_table, [1] * 20, ["ok"] * 20, language)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 21
    assert lines[0] == {"en": "20 cases, 20 of them measured.", "ru": "Вопросов: 20, измерено: 20."}[language]
    print_cases(case_table, [1] * 20, ["ok"] * 20, language, show_all=True)
    assert len(capsys.readouterr().out.splitlines()) == 61
    print_cases(case_table.slice(0, 0), [], [], "en")
    assert capsys.readouterr().out.startswith("No case matches.")


def test_line_has_metric_of_condition_and_failure(
    at_home: Path, by_fulltext: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    case = {"case_id": ["a"], "status": ["ok"], "reason": [None], "question": ["Where?"]}
    print_cases(
        make_cases(**case, **{"hit_rate@1": [0.0], "mrr": [0.5]}), [1], ["ok"], "en", columns=["hit_rate@1", "mrr"]
    )
    assert capsys.readouterr().out.splitlines()[-1] == "a  Where?  ✗ hit_rate@1 0.000  mrr 0.500"
    print_cases(make_cases(**case, failure=["retrieval"]), [1], ["ok"], "en")
    assert capsys.readouterr().out.splitlines()[-1] == "a  Where?  ✗ the right passage was not found"
    assert run_command_line(["cases", by_fulltext["evaluation_id"], "--where", "hit_rate@1=0", "--limit", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("✗ hit_rate@1 0.000")
