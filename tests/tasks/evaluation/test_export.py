"""Exports, read back by the programs that will read them."""

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, make_environment, run_here
from tests.support.evaluations import load, question, read_cases
from tests.support.json_schemas import check_json
from tests.support.steps import evaluate_real_users
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation import export as exports
from yarus.tasks.evaluation.export import export_file, log_to_mlflow, mlflow_name, write_csv, write_jsonl
from yarus.tasks.evaluation.number_format import replace_non_finite
from yarus.tasks.evaluation.summary import to_json

Document = dict[str, Any]
NASTY = ["=1+1", "+7 900", "-5", "@all", "\tтаб", 'обычный, с «кавычками» и "двойными"', "строка\nещё", "\0нуль", ""]


@pytest.fixture(scope="module")
def evaluated(home: Path, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Return a small evaluation of the log; the first question looks like a formula."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        patch.setenv("YARUS_SUT_LABEL", "версия 7")
        rows = [question(i, user_id=str(i % 3)) for i in range(12)]
        rows[0] |= {"question": '=HYPERLINK("http://evil") или как?'}
        load(tmp_path_factory.mktemp("export"), "of_export", rows)
        return evaluate_real_users(source="of_export")


def test_csv_has_bom_and_no_formulas(evaluated: Document, engine: Engine, tmp_path: Path) -> None:
    target = tmp_path / "вопросы.csv"
    assert export_file(engine, evaluated["evaluation_id"], target) == 12
    assert target.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(target.read_bytes().decode("utf-8-sig"), newline="")))
    cases = read_cases(evaluated).to_pylist()
    assert [row["question"].removeprefix("'") for row in rows] == [case["question"] for case in cases]
    assert rows[0]["question"].startswith("'=HYPERLINK")
    assert json.loads(rows[0]["retrieved"]) == cases[0]["retrieved"]
    assert [float(row["mrr"]) for row in rows] == [case["mrr"] for case in cases]
    assert not list(tmp_path.glob(".*"))


def test_csv_quotes_texts_only(tmp_path: Path) -> None:
    n = len(NASTY)
    cases = make_cases(question=NASTY, latency_ms=[-1.5] * n, retrieved=[["=a", "б"]] * n, reason=[None] * n)
    write_csv(cases, tmp_path / "a.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "a.csv").read_bytes().decode("utf-8-sig"), newline="")))[1:]
    assert [row[0] for row in rows] == [
        *(f"'{text}" for text in NASTY[:5]), NASTY[5], NASTY[6], "нуль", ""
    ]  # fmt: skip
    assert {tuple(row[1:]) for row in rows} == {("-1.5", '["=a", "б"]', "")}
    sheet = openpyxl.Workbook().active
    for row in rows:
        sheet.append(row)
    assert "f" not in {cell.data_type for cell in sheet["A"]}, "a spreadsheet takes a cell for a formula"


def test_parquet_export_equals_cases(evaluated: Document, engine: Engine, tmp_path: Path) -> None:
    export_file(engine, evaluated["evaluation_id"], tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(read_cases(evaluated))


def test_jsonl_export_equals_cases(evaluated: Document, engine: Engine, tmp_path: Path) -> None:
    export_file(engine, evaluated["evaluation_id"], tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == read_cases(evaluated).to_pylist()


def test_exports_write_non_finite_numbers_as_null(tmp_path: Path) -> None:
    far = [[0.5, math.inf], [math.nan], None]
    cases = make_cases(retrieved=[["a", "b"], ["c"], None], distances=far, latency_ms=[math.inf, 1.5, 2.5])
    write_jsonl(cases, tmp_path / "a.jsonl")
    rows = [json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [row["distances"] for row in rows] == [[0.5, None], [None], None]
    assert [row["latency_ms"] for row in rows] == [None, 1.5, 2.5]
    write_csv(cases, tmp_path / "a.csv")
    read = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8-sig"))))
    assert [(row["distances"], row["latency_ms"]) for row in read] == [
        ("[0.5, null]", ""),
        ("[null]", "1.5"),
        ("", "2.5"),
    ]
    assert json.loads(to_json(replace_non_finite(cases.to_pylist())), parse_constant=pytest.fail) == rows


def test_as_json_refuses_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"mrr": math.nan})


def test_metric_export_has_one_row_per_stratum(evaluated: Document, engine: Engine, tmp_path: Path) -> None:
    export_file(engine, evaluated["evaluation_id"], tmp_path / "m.csv", metrics=True)
    frame = pd.read_csv(tmp_path / "m.csv", keep_default_na=False, na_values=[""])
    overall = frame[(frame.stratum == "all") & (frame.metric == "mrr")].iloc[0]
    assert overall.value == evaluated["strata"]["all"]["mrr"]["value"]
    assert (overall.sut_label, overall.n_total, overall.source) == ("версия 7", 12, "of_export")
    assert set(frame.stratum) == set(evaluated["strata"])


def test_export_failure_keeps_existing_file(
    evaluated: Document, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.csv"
    target.write_text("прежнее", encoding="utf-8")
    with pytest.raises(InputError, match="already exists"):
        export_file(engine, evaluated["evaluation_id"], target)

    def raise_disk_full(value: Any, is_text: bool) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exports, "_format_cell", raise_disk_full)
    with pytest.raises(OSError, match="No space"):
        export_file(engine, evaluated["evaluation_id"], target, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert target.read_text(encoding="utf-8") == "прежнее"


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.csv.gz"])
def test_export_names_supported_suffixes(evaluated: Document, engine: Engine, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"ends in \.csv, \.jsonl, \.parquet"):
        export_file(engine, evaluated["evaluation_id"], tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_export_reports_missing_result_file(engine: Engine, tmp_path: Path, at_home: Path) -> None:
    load(tmp_path, "of_export_lost", [question(i) for i in range(3)])
    evaluated_without_file = evaluate_real_users(source="of_export_lost")
    Path(evaluated_without_file["parquet"]).unlink()
    with pytest.raises(ResultsUnavailable, match="cannot be read"):
        export_file(engine, evaluated_without_file["evaluation_id"], tmp_path / "a.csv")


def test_mlflow_name_replaces_at_sign() -> None:
    assert mlflow_name("hit_rate@10") == "hit_rate_at_10"
    assert mlflow_name("consistency_score@0.125", "all") == "all/consistency_score_at_0.125"


@pytest.mark.slow("process: MLflow itself")
def test_to_mlflow_logs_metrics_and_parameters_once(evaluated: Document, yarus: CommandLine, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    words = ("export", evaluated["evaluation_id"], "--mlflow", "--tracking-uri", uri, "--json")
    done = check_json("export --mlflow", yarus(*words).out)
    code = (
        "import sys, json, mlflow; run = mlflow.MlflowClient(sys.argv[1]).get_run(sys.argv[2]);"
        "print(json.dumps([run.data.metrics, run.data.params, run.data.tags, run.info.status, run.info.run_name]))"
    )
    variables = make_environment(tmp_path) | {"MLFLOW_DISABLE_TELEMETRY": "true"}
    command = [sys.executable, "-c", code, uri, done["run_id"]]
    result = subprocess.run(command, env=variables, text=True, capture_output=True, cwd=tmp_path, check=True)
    metrics, params, tags, status, name = json.loads(result.stdout)
    for stratum, measured in evaluated["strata"].items():
        for metric, row in measured.items():
            assert metrics.get(mlflow_name(metric, stratum)) == row["value"]
    assert metrics["mrr_ci_low"] == evaluated["metrics"]["mrr"]["ci_low"]
    assert (params["retriever"], params["unit"]) == ("dense", "page")
    assert tags["yarus.comparability_key"] == evaluated["comparability_key"]
    assert (status, name, done["experiment"]) == ("FINISHED", evaluated["evaluation_id"], "yarus/real_users")
    again = yarus(*words, ok=False)
    assert again.code == 2
    assert done["run_id"] in again.err


def test_to_mlflow_names_missing_package(evaluated: Document, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)  # as Python marks a missing package
    with pytest.raises(InputError, match=r"pip install 'yarus\[mlflow\]'"):
        log_to_mlflow(engine, evaluated["evaluation_id"], None)


@pytest.mark.parametrize(
    "words",
    [(), ("--to", "a.csv", "--mlflow"), ("--mlflow", "--metrics"), ("--to", "a.csv", "--tracking-uri", "x")],
)
def test_export_refuses_contradicting_options(at_home: Path, words: tuple[str, ...]) -> None:
    result = run_here("export", "last", *words)
    assert result.code == 2
    assert "--" in result.err
