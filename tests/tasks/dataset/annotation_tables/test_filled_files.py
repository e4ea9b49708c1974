"""Filled files in any state: files saved by Excel are imported, invalid files are rejected as a whole."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import read_questions_by_id
from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation_tables.round_trip import export_annotation_file, import_annotation_file

WriteFile = Callable[..., Path]


@pytest.mark.parametrize(
    ("encoding", "sep"),
    [("utf-8", ","), ("utf-8-sig", ";"), ("cp1251", ";"), ("utf-16", "\t"), ("utf-16-le", "\t"), ("utf-16-be", ";")],
)
def test_files_saved_by_excel_are_imported(
    engine: Engine, source: str, write_file: WriteFile, encoding: str, sep: str
) -> None:
    row = {"question_id": "3", "show": "ДА", "notes": "Заметка; с «кавычками», запятой\nи строкой"}
    if encoding == "cp1251":
        row["notes"] = "Заметка; простая"
    import_annotation_file(write_file(row, suffix=".csv", encoding=encoding, sep=sep), "a")
    verdict = read_questions_by_id(engine, source)["3"]["review"]["annotators"]["a"]
    assert (verdict["show"], verdict["notes"]) == (True, row["notes"])


def test_numbers_and_booleans_of_workbooks_are_imported(engine: Engine, source: str, write_file: WriteFile) -> None:
    import_annotation_file(
        write_file({"question_id": 3, "show": True}, {"question_id": 4.0, "show": 0, "question_ok": "1"}), "a"
    )
    rows = read_questions_by_id(engine, source)
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
def test_invalid_files_change_nothing(engine: Engine, source: str, write_file: WriteFile, name: str) -> None:
    rows, message = WRONG[name]
    before = read_questions_by_id(engine, source)
    with pytest.raises(InputError, match=message) as raised:
        import_annotation_file(write_file(*rows), "a")
    assert "nothing was imported" in str(raised.value)
    assert read_questions_by_id(engine, source) == before


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("language", ["ru", "en"])
def test_problems_have_row_numbers_in_one_language(
    source: str, write_file: WriteFile, monkeypatch: pytest.MonkeyPatch, language: str, suffix: str
) -> None:
    """A cell of three lines counts as one row in CSV and workbooks; messages repeat the given values."""
    monkeypatch.setenv("YARUS_LANGUAGE", language)
    rows = [
        {"question_id": "1", "notes": "первая\nвторая\nтретья", "show": "да"},
        {"question_id": "2", "relevant": "#", "show": "?", "question_ok": "?"},
        {"question_id": "!", "show": "да"},
        {"show": "да"},
        {"question_id": "1", "show": "нет"},
    ]
    with pytest.raises(InputError) as raised:
        import_annotation_file(write_file(*rows, suffix=suffix), "a")
    head, *problems = str(raised.value).partition(f"filled{suffix}")[2].splitlines()
    matches = [re.match(r" *(?:строка|row) (\d+)", problem) for problem in problems]
    assert [int(match[1]) for match in matches if match] == [3, 3, 3, 4, 5, 6]
    other_alphabet = "[а-яё]" if language == "en" else "[a-z]{3}"
    assert not [line for line in (head, *problems) if re.search(other_alphabet, line, re.IGNORECASE)]


@pytest.mark.usefixtures("english")
def test_valid_row_is_not_imported_with_invalid_rows(engine: Engine, source: str, write_file: WriteFile) -> None:
    before = read_questions_by_id(engine, source)
    invalid_rows = [{"question_id": str(n), "show": "?"} for n in range(100, 140)]
    with pytest.raises(InputError) as raised:
        import_annotation_file(write_file({"question_id": "9", "show": "да"}, *invalid_rows), "a")
    assert len(str(raised.value).splitlines()) == 22  # the head, twenty problems, and the number of others
    assert "and 60 more" in str(raised.value)
    assert read_questions_by_id(engine, source) == before


@pytest.mark.usefixtures("english")
def test_unreadable_files_are_rejected(source: str, write_file: WriteFile, tmp_path: Path) -> None:
    path = write_file({"question_id": "1", "show": "да"}, suffix=".csv")
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    path.write_text("\n".join(line.rsplit(";", 2)[0] for line in lines), encoding="utf-8")
    with pytest.raises(InputError, match=r"missing columns: 'show', 'notes'; nothing was"):
        import_annotation_file(path, "a")
    for name, content, message in (
        ("empty.csv", b"", "empty"),
        ("image.xlsx", b"\x89PNG", "not a workbook"),
        ("half.csv", b'id\n"1\n2"\n"3;', "row 3: .* a quotation mark is missing"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            import_annotation_file(tmp_path / name, "a")
    with pytest.raises(InputError, match=r"gone.csv: cannot be read: file or folder not found$"):
        import_annotation_file(tmp_path / "gone.csv", "a")
    with pytest.raises(InputError, match=r"cannot be read: it is a folder$"):
        import_annotation_file(tmp_path, "a")
    with pytest.raises(InputError, match=r"ends in \.csv or \.xlsx"):
        export_annotation_file(tmp_path / "out.ods", source)
    with pytest.raises(InputError, match="annotator"):
        import_annotation_file(write_file({"question_id": "1", "show": "да"}), " ")
    with pytest.raises(InputError, match=r"names the sources other, .*--into"):
        import_annotation_file(
            write_file({"question_id": "1", "show": "да"}, {"question_id": "2", "source": "other", "show": "да"}), "a"
        )
