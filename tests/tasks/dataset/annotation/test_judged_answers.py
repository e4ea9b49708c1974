"""Judged answers drawn at random into a file, filled in, and back: the way there and everything that is refused."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.evaluations import Document
from tests.tasks.dataset.labelling.labelled import RATE, evaluated, good, models
from yarus.db.errors import InputError
from yarus.db.stores.labels import label as table
from yarus.db.stores.labels import labels_of
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.annotation import spreadsheets
from yarus.tasks.dataset.annotation.judged_answers import COLUMNS, export_drawn, import_drawn, of_judged
from yarus.tasks.dataset.labelling.session import Labelling

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def night(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    with models():
        yield evaluated(tmp_path_factory.mktemp("drawn"), "judged_answers", 120)


@pytest.fixture(autouse=True)
def nothing_labelled(night: Document, at_home: Path) -> Iterator[None]:
    yield
    with database().begin() as connection:
        connection.execute(table.delete().where(table.c.source == "judged_answers"))


def drawn(night: Document, path: Path, n: int = 60, **more: Any) -> Rows:
    export_drawn(path, night["evaluation_id"], None, n, **more)
    _, lines = spreadsheets.read(path)
    return [dict(zip(COLUMNS, [cell.text for cell in cells], strict=False)) for _, cells in lines]


def filled(path: Path, rows: list[Mapping[str, str]], *, without: str = "") -> Path:
    header, _ = spreadsheets.read(path)
    kept = [name for name in COLUMNS if name != without]
    headings = [text for text, name in zip(header, COLUMNS, strict=True) if name in kept]
    spreadsheets.write(path, headings, [[row.get(name, "") for name in kept] for row in rows])
    return path


def back(path: Path, annotator: str = "anna") -> Any:
    return import_drawn(path, *spreadsheets.read(path), annotator)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_there_and_back(night: Document, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"drawn{suffix}"
    rows = drawn(night, path)
    assert len(rows) == 60 and of_judged(spreadsheets.read(path)[0])
    assert all(row["label"] == row["note"] == "" for row in rows)
    assert "score" not in COLUMNS  # what the judge has said is told to nobody who labels
    said = [row | {"label": "да" if good(row["question"]) else "нет"} for row in rows]
    said[0] |= {"note": "спорно"}
    said[1]["label"] = ""
    found = back(filled(path, said))
    assert (found["rows"], found["labelled"], found["empty"]) == (60, 59, 1)
    assert found["metrics"] == {"avg_faithfulness": 59}
    kept = {one.case_id: one for one in labels_of(database(), night["evaluation_id"])}
    assert len(kept) == 59
    first = kept[rows[0]["case_id"]]
    assert (first.annotator, first.note, first.metric) == ("anna", "спорно", "avg_faithfulness")
    assert first.probability == float(rows[0]["probability"])
    assert first.value == float(good(rows[0]["question"]))
    one = Labelling(database(), night["evaluation_id"]).progress("anna")["estimate"]
    assert one["value"] == pytest.approx(RATE, abs=0.2)  # four deviations: who is drawn goes by the evaluation's id


def test_the_same_seed_draws_the_same_and_any_first_part_is_a_draw(night: Document, tmp_path: Path) -> None:
    few, many = (drawn(night, tmp_path / f"{n}.csv", n) for n in (20, 60))
    assert [row["case_id"] for row in few] == [row["case_id"] for row in many[:20]]
    other = drawn(night, tmp_path / "other.csv", 20, seed=1)
    assert {row["case_id"] for row in other} != {row["case_id"] for row in few}
    asked = Labelling(database(), night["evaluation_id"]).next("boris")
    assert asked is not None and asked["case_id"] == few[0]["case_id"]  # the page asks in the same order
    assert len(drawn(night, tmp_path / "all.csv", 10_000)) == 120


@pytest.mark.parametrize(
    ("word", "value"),
    [("Да", 1.0), ("no.", 0.0), ("отчасти", 0.5), ("0,25", 0.25), ("0.8", 0.8), ("1", 1.0)],
)
def test_words_and_numbers(night: Document, tmp_path: Path, word: str, value: float) -> None:
    rows = drawn(night, tmp_path / "f.csv", 1)
    back(filled(tmp_path / "f.csv", [rows[0] | {"label": word}]))
    (kept,) = labels_of(database(), night["evaluation_id"])
    assert kept.value == value


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
    "no evaluation": ({"evaluation": ""}, "не сказано, какой оценки"),
    "no such metric": ({"metric": "avg_bleu"}, "no judged metric 'avg_bleu'"),
    "another answer": ({"shown": "0123456789abcdef"}, "уже не тот, что был показан"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_by_row_and_nothing_is_taken(night: Document, tmp_path: Path, name: str) -> None:
    change, words = WRONG[name]
    rows = [row | {"label": "да"} for row in drawn(night, tmp_path / "f.csv", 20)]
    rows[3] |= change
    with pytest.raises(InputError) as raised:
        back(filled(tmp_path / "f.csv", rows))
    assert words in str(raised.value) and "ничего не загружено" in str(raised.value)
    assert ("строка 5" in str(raised.value)) == (name != "a lower probability")  # that is of several rows
    assert labels_of(database(), night["evaluation_id"]) == []


def test_a_case_twice(night: Document, tmp_path: Path) -> None:
    rows = [row | {"label": "да"} for row in drawn(night, tmp_path / "f.csv", 3)]
    with pytest.raises(InputError, match=f"строка 5: случай {rows[0]['case_id']} уже есть выше"):
        back(filled(tmp_path / "f.csv", [*rows, rows[0]]))


def test_the_most_instructive_order_estimates_no_rate(night: Document, tmp_path: Path) -> None:
    """A file without probabilities, as people make who copy the instructive answers into one of their own."""
    rows = [row | {"label": "да"} for row in drawn(night, tmp_path / "f.csv", 20)]
    with pytest.raises(InputError, match="трудные ответы стоят первыми"):
        back(filled(tmp_path / "f.csv", rows, without="probability"))
    assert labels_of(database(), night["evaluation_id"]) == []


def test_two_who_always_disagree_leave_the_middle(night: Document, tmp_path: Path) -> None:
    rows = drawn(night, tmp_path / "f.csv", 40)
    for annotator, word in (("anna", "да"), ("boris", "нет")):
        back(filled(tmp_path / "f.csv", [row | {"label": word} for row in rows]), annotator)
    one = Labelling(database(), night["evaluation_id"]).progress("anna")["estimate"]
    assert (one["value"], one["n_labels"], one["weight"]) == (pytest.approx(0.5), 40, pytest.approx(0))


@pytest.mark.slow("process: three commands")
def test_the_command_line(night: Document, yarus_alone: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "drawn.csv"
    words = ["dataset", "export-annotation", str(path), "--random", "15", "--evaluation", night["evaluation_id"]]
    document = yarus_alone(*words, "--json").json
    assert (document["drawn"], document["cases"], document["metric"]) == (15, 120, "avg_faithfulness")
    assert sum(document["strata"].values()) == 15
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter=";"))
    for row in rows[1:]:
        row[COLUMNS.index("label")] = "да"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    done = yarus_alone("dataset", "import-annotation", str(path), "--annotator", "anna", "--json").json
    assert done["labelled"] == 15
    shown = yarus_alone("show", night["evaluation_id"], "--json").json["metrics"]["avg_faithfulness_corrected"]
    assert (shown["value"], shown["n_labels"]) == (1.0, 15)
    assert yarus_alone(*words, "--limit", "3", ok=False).code == 2
    assert yarus_alone("dataset", "export-annotation", str(path), "--metric", "avg_faithfulness", ok=False).code == 2
