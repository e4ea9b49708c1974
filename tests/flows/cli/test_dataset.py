"""Check `yarus dataset` for people and programs, from the sample to a labelled, frozen and evaluated set."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from openpyxl import load_workbook

from tests.support.command_line import ENGLISH, CommandLine, run_here
from tests.support.evaluations import load, question
from tests.support.json_schemas import check_json
from yarus.__main__ import cli
from yarus.db.errors import InputError
from yarus.tasks.dataset.synthesis.generator import KINDS as MADE


def command(*words: str) -> Result:
    """Run the command in this process, on the shared home; raise what `main` turns into an exit code."""
    result = CliRunner().invoke(cli, ["dataset", *words], standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def document(*words: str) -> Any:
    """Return the one document on stdout."""
    return check_json(f"dataset {words[0]}", command(*words, "--json").stdout)


def test_case_set_is_made_labelled_frozen_and_evaluated(
    at_home: Path, yarus: CommandLine, prefect_server: dict[str, str], tmp_path: Path
) -> None:
    """Generate cases from the sample, export, label in a spreadsheet, import, audit, freeze and evaluate them."""
    words = ("dataset", "synthesize", "--source", "sample", "--into", "way", "--n", "12", "--seed", "1")
    generated = check_json("dataset synthesize", yarus(*words, "--json", env=prefect_server).out)
    assert generated["state"] == "completed" and generated["n_accepted"] >= 9
    assert set(generated["kinds"]) == set(MADE) and "no language model" in generated["generator"]

    file = tmp_path / "labels.xlsx"
    exported = document("export-annotation", str(file), "--source", "way", "--limit", "6")
    assert exported["questions"] == 6
    book = load_workbook(file)
    header = {cell.value.partition(":")[0]: cell.column for cell in book.active[1]}
    for row in (2, 3, 4):
        book.active.cell(row, header["вопрос годен"]).value = "нет" if row == 2 else "да"
    book.save(file)
    assert document("import-annotation", str(file), "--annotator", "Анна")["rejected"] == 1
    assert document("agreement", "--source", "way")["annotators"] == {"Анна": 3}

    audit = document("audit", "--source", "way")
    assert {"stale", "duplicates"} < set(audit) and audit["n_questions"] == generated["n_accepted"]
    frozen = document("freeze", "way_1", "--source", "way")
    assert frozen["n_cases"] == generated["n_accepted"] - 1  # the rejected one has left
    ran = yarus("run", "tier1", "--source", "way", "--cases", "way_1", "--json", env=prefect_server).json
    assert ran["cases"] == {"name": "way_1", "sha256": frozen["sha256"]} and ran["n_cases"] == frozen["n_cases"]
    output = yarus("show", ran["evaluation_id"]).out
    assert f"Набор вопросов: way_1 · {frozen['sha256'][:12]}" in output


def test_dataset_output_is_in_chosen_language(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that every command prints a table in the chosen language, with all placeholders filled."""
    rows = [question(i, question=f"What about rule {i}?", created_at=f"2026-0{1 + i % 2}-01") for i in range(6)]
    duplicate = {"id": "77", "question": rows[0]["question"], "score": 1, "answer": "Звоните +7 927 123-45-67"}
    name = load(tmp_path, "readable", [*rows, question(7) | duplicate])
    for number, language in enumerate(("ru", "en")):
        monkeypatch.setenv("YARUS_LANGUAGE", language)
        file = tmp_path / "labels.csv"
        sets = [f"readable_{kind}_{number}" for kind in ("all", "some", "a", "b")]
        results = [
            command("freeze", sets[0], "--source", name),
            command("freeze", sets[1], "--source", name, "--limit", "3"),
            command("list"),
            command("diff", sets[0], sets[1]),
            command("split", sets[0], "--from-date", "2026-02-01", "--into", sets[2], sets[3]),
            command("export-annotation", str(file), "--source", name),
            command("import-annotation", str(file), "--annotator", "a"),
            command("audit", "--source", name),
        ]
        for result in results:
            assert result.stdout.strip() and not re.search(r"\{\w+\}", result.stdout)
            cyrillic = re.search("[а-яё]", re.sub(r"\[.*?\]", "", result.stdout))  # but for pseudonyms
            assert bool(cyrillic) == (language == "ru"), result.stdout
        assert "927" not in re.sub(r"\[.*?\]", "", results[-1].stdout)  # but for the digits of a pseudonym


def test_ragas_test_set_is_imported(at_home: Path, tmp_path: Path) -> None:
    item = {"user_input": "Где?", "reference_contexts": ["Тут."], "reference": "Тут."}
    (tmp_path / "testset.jsonl").write_text(json.dumps(item), encoding="utf-8")
    loaded = document("import", "ragas", str(tmp_path / "testset.jsonl"), "--into", "ragas_set")
    assert (loaded["questions"]["added"], loaded["chunks"]["added"], loaded["problems"]) == (1, 1, [])
    (tmp_path / "items.json").write_text(json.dumps([{"id": "i", "input": "Где?", "expectedOutput": "Тут."}]), "utf-8")
    assert (
        document("import", "langfuse", str(tmp_path / "items.json"), "--into", "ragas_set")["questions"]["added"] == 1
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["freeze", "Bad-Name"], "use a letter"),
        (["freeze", "good", "--source", "nowhere"], "no source 'nowhere'"),
        (["freeze", "good", "--since", "вчера"], "no date"),
        (["diff", "nothing", "nothing"], "no case set 'nothing'"),
        (["split", "nothing", "--from-date", "2026-01-01", "--into", "a", "b"], "no case set 'nothing'"),
        (["audit", "--evaluation", "nothing"], "no evaluation 'nothing'"),
        (["export-annotation", "out.ods"], "имя файла должно кончаться на .csv или .xlsx"),
        (["import-annotation", "gone.csv", "--annotator", "a"], "gone.csv: не прочитать: такого файла или папки нет"),
        (["synthesize", "--into", "sample"], "a source of their own"),
        (["synthesize", "--into", "x", "--kinds", "double"], "'single', 'multi' or 'unanswerable'"),
        (["import", "ragas", "gone.json", "--into", "sample"], "is the bundled one"),
        (["import", "ragas", "gone.json", "--into", "gone"], "nothing was loaded"),
    ],
)
def test_wrong_arguments_are_refused(at_home: Path, words: list[str], message: str) -> None:
    with pytest.raises(Exception, match=re.escape(message)) as raised:
        command(*words)
    assert isinstance(raised.value, InputError) or getattr(raised.value, "exit_code", 0) == 2


def test_unknown_case_set_is_refused_before_start(at_home: Path) -> None:
    ran = run_here("run", "tier1", "--cases", "no_such_set", env=ENGLISH)
    assert (ran.code, ran.out) == (2, "") and "no case set 'no_such_set'" in ran.err
