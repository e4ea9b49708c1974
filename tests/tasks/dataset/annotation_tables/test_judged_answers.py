"""Export and import of randomly sampled judged answers, and rejected files."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.evaluations import Document
from tests.support.json_schemas import check_json
from tests.tasks.dataset.labelling.labelled import RATE, evaluate_labelled, is_good, serve_models
from yarus.db.errors import InputError
from yarus.db.stores.labels import label as table
from yarus.db.stores.labels import read_labels
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.annotation_tables import spreadsheets
from yarus.tasks.dataset.annotation_tables.judged_answers import (
    COLUMNS,
    export_label_sample,
    import_label_sample,
    is_label_sample,
)
from yarus.tasks.dataset.labelling.session import LabellingSession

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def night(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    with serve_models():
        yield evaluate_labelled(tmp_path_factory.mktemp("drawn"), "judged_answers", 120)


@pytest.fixture(autouse=True)
def remove_labels(night: Document, at_home: Path) -> Iterator[None]:
    yield
    with database().begin() as connection:
        connection.execute(table.delete().where(table.c.source == "judged_answers"))


def export_rows(night: Document, path: Path, n: int = 60, **more: Any) -> Rows:
    export_label_sample(path, night["evaluation_id"], None, n, **more)
    _, lines = spreadsheets.read_table(path)
    return [dict(zip(COLUMNS, [cell.text for cell in cells], strict=False)) for _, cells in lines]


def write_filled(path: Path, rows: list[Mapping[str, str]], *, without: str = "") -> Path:
    header, _ = spreadsheets.read_table(path)
    columns = [name for name in COLUMNS if name != without]
    headings = [text for text, name in zip(header, COLUMNS, strict=True) if name in columns]
    spreadsheets.write_table(path, headings, [[row.get(name, "") for name in columns] for row in rows])
    return path


def import_file(path: Path, annotator: str = "anna") -> Any:
    return import_label_sample(path, *spreadsheets.read_table(path), annotator)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_label_sample_round_trip(night: Document, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"drawn{suffix}"
    rows = export_rows(night, path)
    assert len(rows) == 60 and is_label_sample(spreadsheets.read_table(path)[0])
    assert all(row["label"] == row["note"] == "" for row in rows)
    assert "score" not in COLUMNS  # annotators do not see the judge's score
    labelled_rows = [row | {"label": "да" if is_good(row["question"]) else "нет"} for row in rows]
    labelled_rows[0] |= {"note": "спорно"}
    labelled_rows[1]["label"] = ""
    imported = import_file(write_filled(path, labelled_rows))
    assert (imported["rows"], imported["labelled"], imported["empty"]) == (60, 59, 1)
    assert imported["metrics"] == {"avg_faithfulness": 59}
    stored = {label.case_id: label for label in read_labels(database(), night["evaluation_id"])}
    assert len(stored) == 59
    first = stored[rows[0]["case_id"]]
    assert (first.annotator, first.note, first.metric) == ("anna", "спорно", "avg_faithfulness")
    assert first.probability == float(rows[0]["probability"])
    assert first.value == float(is_good(rows[0]["question"]))
    corrected = LabellingSession(database(), night["evaluation_id"]).progress("anna")["estimate"]
    # Four standard deviations: the sample depends on the evaluation's id.
    assert corrected["value"] == pytest.approx(RATE, abs=0.2)


def test_label_sample_depends_on_seed_only(night: Document, tmp_path: Path) -> None:
    small_sample, large_sample = (export_rows(night, tmp_path / f"{n}.csv", n) for n in (20, 60))
    assert [row["case_id"] for row in small_sample] == [row["case_id"] for row in large_sample[:20]]
    other_sample = export_rows(night, tmp_path / "other.csv", 20, seed=1)
    assert {row["case_id"] for row in other_sample} != {row["case_id"] for row in small_sample}
    case = LabellingSession(database(), night["evaluation_id"]).next("boris")
    assert case is not None and case["case_id"] == small_sample[0]["case_id"]  # the labelling page has the same order
    assert len(export_rows(night, tmp_path / "all.csv", 10_000)) == 120


@pytest.mark.parametrize(
    ("word", "value"),
    [("Да", 1.0), ("no.", 0.0), ("отчасти", 0.5), ("0,25", 0.25), ("0.8", 0.8), ("1", 1.0)],
)
def test_labels_are_words_or_numbers(night: Document, tmp_path: Path, word: str, value: float) -> None:
    rows = export_rows(night, tmp_path / "f.csv", 1)
    import_file(write_filled(tmp_path / "f.csv", [rows[0] | {"label": word}]))
    (stored,) = read_labels(database(), night["evaluation_id"])
    assert stored.value == value


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "above 1": ({"label": "1.5"}, "'1.5' — не метка"),
    "below 0": ({"label": "-0.2"}, "'-0.2' — не метка"),
    "no number": ({"label": "nan"}, "'nan' — не метка"),
    "a word": ({"label": "может быть"}, "'может быть' — не метка"),
    "no probability": ({"probability": ""}, "вероятность ''"),
    "probability 0": ({"probability": "0"}, "вероятность '0'"),
    "probability above 1": ({"probability": "1.5"}, "вероятность '1.5'"),
    "a lower probability": ({"probability": "0.001"}, "не могли быть в одном отборе"),
    "no such case": ({"case_id": "judged_answers:none"}, "нет ответа 'judged_answers:none'"),
    "no such evaluation": ({"evaluation": "tier2-gone"}, "no evaluation 'tier2-gone'"),
    "no evaluation": ({"evaluation": ""}, "не указано, какого прогона"),
    "no such metric": ({"metric": "avg_bleu"}, "no judged metric 'avg_bleu'"),
    "another answer": ({"shown": "0123456789abcdef"}, "уже не тот, что был показан"),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_rows_are_named_and_nothing_is_imported(night: Document, tmp_path: Path, name: str) -> None:
    change, message = WRONG[name]
    rows = [row | {"label": "да"} for row in export_rows(night, tmp_path / "f.csv", 20)]
    rows[3] |= change
    with pytest.raises(InputError) as raised:
        import_file(write_filled(tmp_path / "f.csv", rows))
    assert message in str(raised.value) and "ничего не загружено" in str(raised.value)
    assert ("строка 5" in str(raised.value)) == (name != "a lower probability")  # this problem concerns several rows
    assert read_labels(database(), night["evaluation_id"]) == []


def test_repeated_case_is_rejected(night: Document, tmp_path: Path) -> None:
    rows = [row | {"label": "да"} for row in export_rows(night, tmp_path / "f.csv", 3)]
    with pytest.raises(InputError, match=f"строка 5: случай {rows[0]['case_id']} уже есть выше"):
        import_file(write_filled(tmp_path / "f.csv", [*rows, rows[0]]))


def test_files_without_probabilities_are_rejected(night: Document, tmp_path: Path) -> None:
    """People create such files when they copy informative answers into their own table."""
    rows = [row | {"label": "да"} for row in export_rows(night, tmp_path / "f.csv", 20)]
    with pytest.raises(InputError, match="начинается с трудных ответов"):
        import_file(write_filled(tmp_path / "f.csv", rows, without="probability"))
    assert read_labels(database(), night["evaluation_id"]) == []


def test_opposite_labels_average_to_one_half(night: Document, tmp_path: Path) -> None:
    rows = export_rows(night, tmp_path / "f.csv", 40)
    for annotator, word in (("anna", "да"), ("boris", "нет")):
        import_file(write_filled(tmp_path / "f.csv", [row | {"label": word} for row in rows]), annotator)
    estimate = LabellingSession(database(), night["evaluation_id"]).progress("anna")["estimate"]
    assert (estimate["value"], estimate["n_labels"], estimate["weight"]) == (pytest.approx(0.5), 40, pytest.approx(0))


@pytest.mark.slow("process: three commands")
def test_label_sample_commands(night: Document, yarus_alone: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "drawn.csv"
    arguments = ["dataset", "export-annotation", str(path), "--random", "15", "--evaluation", night["evaluation_id"]]
    document = check_json("dataset export-annotation --random", yarus_alone(*arguments, "--json").out)
    assert (document["n_sampled"], document["cases"], document["metric"]) == (15, 120, "avg_faithfulness")
    assert sum(document["strata"].values()) == 15
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter=";"))
    for row in rows[1:]:
        row[COLUMNS.index("label")] = "да"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    imported = yarus_alone("dataset", "import-annotation", str(path), "--annotator", "anna", "--json")
    assert check_json("dataset import-annotation --annotator", imported.out)["labelled"] == 15
    corrected = yarus_alone("show", night["evaluation_id"], "--json").json["metrics"]["avg_faithfulness_corrected"]
    assert (corrected["value"], corrected["n_labels"]) == (1.0, 15)
    assert yarus_alone(*arguments, "--limit", "3", ok=False).code == 2
    assert yarus_alone("dataset", "export-annotation", str(path), "--metric", "avg_faithfulness", ok=False).code == 2
