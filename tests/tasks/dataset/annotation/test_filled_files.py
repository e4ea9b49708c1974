"""Filled files in any state: what Excel saves is read, and of a wrong file nothing is imported."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import questions_of
from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation.round_trip import export, import_

Make = Callable[..., Path]


@pytest.mark.parametrize(
    ("encoding", "sep"),
    [("utf-8", ","), ("utf-8-sig", ";"), ("cp1251", ";"), ("utf-16", "\t"), ("utf-16-le", "\t"), ("utf-16-be", ";")],
)
def test_what_excel_saves(engine: Engine, source: str, filled: Make, encoding: str, sep: str) -> None:
    row = {"question_id": "3", "show": "ДА", "notes": "Заметка; с «кавычками», запятой\nи строкой"}
    if encoding == "cp1251":
        row["notes"] = "Заметка; простая"
    import_(filled(row, suffix=".csv", encoding=encoding, sep=sep), "a")
    said = questions_of(engine, source)["3"]["review"]["annotators"]["a"]
    assert (said["show"], said["notes"]) == (True, row["notes"])


def test_numbers_and_yes_no_of_a_workbook(engine: Engine, source: str, filled: Make) -> None:
    import_(filled({"question_id": 3, "show": True}, {"question_id": 4.0, "show": 0, "question_ok": "1"}), "a")
    rows = questions_of(engine, source)
    assert (rows["3"]["ground_truth_show"], rows["4"]["ground_truth_show"]) == (True, False)


WRONG: dict[str, tuple[list[dict[str, Any]], str]] = {
    "an extra row": ([{"question_id": "77", "show": "да"}], r"row 2: the source has no question '77'"),
    "no id": ([{"question_id": "1"}, {"show": "да"}], r"row 3: no question id"),
    "neither yes nor no": ([{"question_id": "1", "show": "ага"}], r"row 2, show: 'ага' is neither yes nor no"),
    "a date for an id": ([{"question_id": datetime(2026, 2, 1), "show": "да"}], r"row 2: the id became the date 2026"),
    "a date for chunks": ([{"question_id": "1", "relevant": datetime(2026, 2, 1)}], r"the ids became the date"),
    "an unknown chunk": ([{"question_id": "1", "relevant": "c1; c77"}], r"row 2, relevant chunks: no chunk .* 'c77'"),
    "two labels for one": (
        [{"question_id": "1", "show": "да"}, {"question_id": "2"}, {"question_id": "1", "show": "нет"}],
        r"row 4: question '1' is labelled twice, in row 2 too",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("english")
@pytest.mark.parametrize("name", WRONG)
def test_nothing_is_written_of_a_wrong_file(engine: Engine, source: str, filled: Make, name: str) -> None:
    rows, message = WRONG[name]
    before = questions_of(engine, source)
    with pytest.raises(InputError, match=message) as raised:
        import_(filled(*rows), "a")
    assert "nothing was imported" in str(raised.value)
    assert questions_of(engine, source) == before


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("language", ["ru", "en"])
def test_problems_name_the_row_of_the_table_in_one_language(
    source: str, filled: Make, monkeypatch: pytest.MonkeyPatch, language: str, suffix: str
) -> None:
    """A cell of three lines is one row, in CSV as in a workbook; what was given is repeated as it is."""
    monkeypatch.setenv("YARUS_LANGUAGE", language)
    rows = [
        {"question_id": "1", "notes": "первая\nвторая\nтретья", "show": "да"},
        {"question_id": "2", "relevant": "#", "show": "?", "question_ok": "?"},
        {"question_id": "!", "show": "да"},
        {"show": "да"},
        {"question_id": "1", "show": "нет"},
    ]
    with pytest.raises(InputError) as raised:
        import_(filled(*rows, suffix=suffix), "a")
    head, *problems = str(raised.value).partition(f"filled{suffix}")[2].splitlines()
    named = [re.match(r" *(?:строка|row) (\d+)", problem) for problem in problems]
    assert [int(row[1]) for row in named if row] == [3, 3, 3, 4, 5, 6]
    alien = "[а-яё]" if language == "en" else "[a-z]{3}"
    assert not [line for line in (head, *problems) if re.search(alien, line, re.IGNORECASE)]


@pytest.mark.usefixtures("english")
def test_a_good_row_does_not_save_a_file_with_a_wrong_one(engine: Engine, source: str, filled: Make) -> None:
    before = questions_of(engine, source)
    many = [{"question_id": str(n), "show": "?"} for n in range(100, 140)]
    with pytest.raises(InputError) as raised:
        import_(filled({"question_id": "9", "show": "да"}, *many), "a")
    assert len(str(raised.value).splitlines()) == 22  # the head, twenty problems, and how many more
    assert "and 60 more" in str(raised.value)
    assert questions_of(engine, source) == before


@pytest.mark.usefixtures("english")
def test_files_that_are_none(source: str, filled: Make, tmp_path: Path) -> None:
    path = filled({"question_id": "1", "show": "да"}, suffix=".csv")
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    path.write_text("\n".join(line.rsplit(";", 2)[0] for line in lines), encoding="utf-8")
    with pytest.raises(InputError, match=r"missing columns: 'show', 'notes'; nothing was"):
        import_(path, "a")
    for name, content, message in (
        ("empty.csv", b"", "empty"),
        ("image.xlsx", b"\x89PNG", "no workbook"),
        ("half.csv", b'id\n"1\n2"\n"3;', "row 3: .* a quotation mark is missing"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            import_(tmp_path / name, "a")
    with pytest.raises(InputError, match=r"gone.csv: cannot be read: there is no such file or folder$"):
        import_(tmp_path / "gone.csv", "a")
    with pytest.raises(InputError, match=r"cannot be read: it is a folder$"):
        import_(tmp_path, "a")
    with pytest.raises(InputError, match=r"ends in \.csv or \.xlsx"):
        export(tmp_path / "out.ods", source)
    with pytest.raises(InputError, match="annotator"):
        import_(filled({"question_id": "1", "show": "да"}), " ")
    with pytest.raises(InputError, match=r"names the sources other, .*--into"):
        import_(filled({"question_id": "1", "show": "да"}, {"question_id": "2", "source": "other", "show": "да"}), "a")
