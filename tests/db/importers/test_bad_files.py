"""Test defective files: the message has place, value and fix, and memory stays bounded."""

import gzip
import json
import random
import resource
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import Workbook

from tests.support.processes import get_peak_kb
from yarus.db.errors import InputError
from yarus.db.importers import table
from yarus.db.importers.corpus_names import CorpusNames
from yarus.db.importers.files import parse_json, read_json
from yarus.db.importers.lines import read_lines
from yarus.db.importers.reader import recognise_source, report_unmatched_labels


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "rows.json"
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return path


def read_questions(path: Path, **options: Any) -> tuple[list[dict[str, Any]], list[str]]:
    stream = table.read_table(path, **options)
    return [row.values for row in stream.questions], stream.problems  # type: ignore[union-attr]


def test_parquet_that_unpacks_to_gigabytes_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    text = pa.array(["x" * (4 << 20)])
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 1_750, pa.int32()), text)
    pq.write_table(pa.table({"question": pa.array([f"q{n}" for n in range(1_750)]), "answer": repeated}), path)
    assert path.stat().st_size < 5 << 20  # unpacks to 7 GB
    peak_before = get_peak_kb()
    with pytest.raises(InputError, match=r"unpack to more than 1,073,741,824 bytes"):
        table.read_table(path)
    assert get_peak_kb() - peak_before < 1 << 20


@pytest.mark.slow("breadth: gigabytes are packed")
def test_workbook_that_unpacks_to_gigabytes_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("xl/worksheets/sheet1.xml", "w") as member:
            for _ in range(1_100):
                member.write(b" " * (1 << 20))
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(InputError, match=r"bytes that unpack to 1,153,43\d,\d+; at most 1,073,741,824 are read"):
        table.read_table(path)


def test_zip_that_is_not_a_workbook_is_rejected(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.csv", "w") as archive:
        archive.writestr("log.csv", "question\na\n")
    with pytest.raises(InputError, match="a zip file; unpack it"):
        table.read_table(tmp_path / "log.csv")


def test_external_entities_of_a_workbook_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP SECRET", encoding="utf-8")
    path = tmp_path / "entities.xlsx"
    book = Workbook()
    book.active.append(["question"])
    book.active.append(["what?"])
    book.save(path)
    hostile_path = tmp_path / "harmed.xlsx"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(hostile_path, "w") as target:
        for member in source.infolist():
            content = source.read(member)
            if member.filename == "xl/sharedStrings.xml":
                doctype = f'<!DOCTYPE sst [<!ENTITY x SYSTEM "file://{secret}">]>'.encode()
                content = content.replace(b"<sst", doctype + b"<sst", 1).replace(b"what?", b"&x;")
            target.writestr(member, content)
    try:
        rows, _ = read_questions(hostile_path)
    except InputError:
        return
    assert "TOP SECRET" not in str(rows)


def test_elided_numpy_list_is_empty_and_reported(tmp_path: Path) -> None:
    rows = [
        {"question": f"q{n}", "answer": "a", "user_id": "u", "contexts": "['one text' 'another text']"}
        for n in range(5)
    ]
    rows[3]["contexts"] = "['one text' ... 'the last text']"
    values, problems = read_questions(write_rows(tmp_path, rows))
    assert [len(row["recorded"]["contexts"]) if row["recorded"] else None for row in values] == [2, 2, 2, None, 2]
    assert problems == [
        "contexts: 1 of 5 not read (\"['one text' ... 'the last text']\" at rows.json: item 4): numpy has left out the "
        "middle of the list (...); save it as JSON or Parquet; left empty"
    ]


def test_column_with_a_fifth_of_bad_cells_is_not_used(tmp_path: Path) -> None:
    rows_with_few_faults = [{"question": f"q{n}", "created_at": "2026-01-01" if n else "never"} for n in range(4)]
    values, problems = read_questions(write_rows(tmp_path, rows_with_few_faults))
    assert [row["created_at"] is None for row in values] == [True, False, False, False]
    assert problems == [
        "created_at: 1 of 4 not read ('never' at rows.json: item 1): no date; write it like 2026-03-05T10:30:00+03:00; "
        "left empty"
    ]
    rows_with_many_faults = [{"question": f"q{n}", "created_at": "2026-01-01" if n % 3 else "never"} for n in range(12)]
    values, problems = read_questions(write_rows(tmp_path, rows_with_many_faults))
    assert "created_at" not in values[0] and len(values) == 12
    assert "created_at: 4 of 12 cannot be read as created_at ('never' at rows.json: item 1)" in problems[0]
    values, _ = read_questions(write_rows(tmp_path, rows_with_many_faults), mapping={"created_at": "created_at"})
    assert [row["created_at"] is None for row in values].count(True) == 4


def test_nan_and_infinity_in_json_become_null(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    rows = ",".join(f'{{"question": "q{n}", "user_id": "u", "latency_ms": {value}}}' for n, value in
                    enumerate(["1", "NaN", "Infinity", "2", "3", "4", "5", "6", "7"]))  # fmt: skip
    path.write_text(f"[{rows}]", encoding="utf-8")
    values, problems = read_questions(path)
    assert [(row["recorded"] or {}).get("latency_ms") for row in values[:4]] == [1, None, None, 2]
    assert problems == ["latency_ms: 1 of 8 not read ('inf' at t.json: item 3): no number from 0; left empty"]


def test_two_question_columns_are_rejected_with_examples(tmp_path: Path) -> None:
    path = write_rows(tmp_path, [{"question_text": "Where?", "user_query": "where", "answer": "there"}])
    with pytest.raises(
        InputError, match=r"which column is the question: user_query \(where\), question_text \(Where\?\)"
    ):
        table.read_table(path)


def test_table_with_few_questions_is_rejected(tmp_path: Path) -> None:
    path = write_rows(tmp_path, [{"question": "Where?" if n == 0 else None, "answer": "there"} for n in range(3)])
    with pytest.raises(InputError, match=r"1 of 3 rows have a question that can be read \(question\)"):
        table.read_table(path)


def test_several_rows_per_question_are_rejected(tmp_path: Path) -> None:
    rows = [{"question": f"q{n}", "answer": f"{bot}{n}", "вариант": bot} for n in range(5) for bot in ("А", "Б")]
    path = write_rows(tmp_path, rows)
    with pytest.raises(InputError, match=r"each question stands 2 times, told apart by 'вариант' \(А, Б\).*вариант=А"):
        table.inspect_table(path)
    assert table.inspect_table(path, where={"вариант": "Б"}).survey.rows == 5
    with pytest.raises(InputError, match="no row is left"):
        table.inspect_table(path, where={"вариант": "В"})


def test_log_with_repeated_questions_is_loaded(tmp_path: Path) -> None:
    rows = [
        {"question": f"q{n}", "answer": "a", "user_id": f"u{user_number}", "model": f"m{(n + user_number) // 2}"}
        for n in range(5)
        for user_number in range(2)
    ]
    assert table.inspect_table(write_rows(tmp_path, rows)).survey.usable == 10


def test_labels_that_match_no_page_are_rejected_with_examples(tmp_path: Path) -> None:
    rows = [{"question": f"q{n}", "reference": "r", "expected_source": f"page{n}.md"} for n in range(5)]
    recognised = recognise_source(write_rows(tmp_path, rows))
    corpus = CorpusNames()
    for n in range(5):
        corpus.add(f"c{n}", f"https://wiki.example/{n}", f"text {n}")
    with pytest.raises(InputError) as raised:
        report_unmatched_labels([recognised], corpus)
    assert "page0.md, page1.md, page2.md" in str(raised.value)
    assert "https://wiki.example/0, https://wiki.example/1, https://wiki.example/2" in str(raised.value)
    corpus.add("c9", "https://wiki.example/docs/page3.md", "text 9")
    (note,) = report_unmatched_labels([recognised], corpus)
    assert "names of relevant pages that name no page, or several: 4 (page0.md, page1.md, page2.md)" in note


def test_page_names_match_by_address_file_or_id(tmp_path: Path) -> None:
    labels = ["HTTPS://wiki.example/a#top", "rules.md", ["docs/rules.md", 7], "7", "nowhere.md"]
    rows = [{"question": f"q{n}", "reference": "r", "expected_pages": label} for n, label in enumerate(labels)]
    corpus = CorpusNames()
    corpus.add("1", "https://wiki.example/a", "a")
    corpus.add("2", "https://wiki.example/rules", "b", ["docs/rules.md"])
    corpus.add("3", "handbook/rules.md", "c")
    corpus.add("7", None, "d")
    stream = table.inspect_table(write_rows(tmp_path, rows)).stream(corpus)
    list(stream.questions)
    matched_labels = [(row.values["relevant_urls"], row.values["relevant_chunk_ids"]) for row in stream.annotations]  # type: ignore[union-attr]
    assert matched_labels == [
        (["https://wiki.example/a"], None),
        (["handbook/rules.md"], None),
        (["https://wiki.example/rules"], ["7"]),
        ([], ["7"]),
        (["nowhere.md"], None),
    ]


def test_merged_headers_formulas_and_day_numbers_are_read(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    sheet.append(["Обращение", None, "Ответ бота"])
    sheet.merge_cells("A1:B1")
    sheet.append(["Дата", "Вопрос", "Ответ", "Оценка"])
    for n in range(4):
        sheet.append([46_000 + n, f"Вопрос {n}?", f"Ответ {n}", "=5*1"])
    path = tmp_path / "merged.xlsx"
    book.save(path)
    values, problems = read_questions(path)
    assert [row["question"] for row in values] == [f"Вопрос {n}?" for n in range(4)]
    assert any("header in row 2" in problem for problem in problems)
    assert any(problem.startswith("created_at: Дата by its name, but not by its values") for problem in problems)


def test_repeated_column_names_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "jira.csv"
    path.write_text("question,answer,user_id,Watchers,Watchers\na,b,u,c,d\n", encoding="utf-8")
    values, problems = read_questions(path)
    assert values[0]["question"] == "a"
    assert problems[0] == "jira.csv: columns that stand twice in the header: Watchers; the first of each is read"


def test_nested_yaml_aliases_need_little_memory(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    path = tmp_path / "laughs.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    peak_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=r"no list of objects in it|no row"):
        table.read_table(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_before < 200 << 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a" * (3 << 20) + "\nгде".encode("cp1251"), r"byte 3145729 \(0xe3\), line 2; .* iconv -f cp1251"),
        ("где ".encode() * 400_000 + b"\xff ok", r"byte 2800000 \(0xff\), line 1; .* correct this byte"),
        ("где".encode()[:-1], r"byte 4 \(0xd0\), line 1; .* truncated"),
        ("где".encode("utf-16"), r"byte 0 \(0xff\), line 1; .* iconv -f utf-16"),
    ],
    ids=["cp1251", "one byte", "cut off", "utf-16"],
)
def test_wrong_encoding_is_reported_with_byte_and_line(content: bytes, message: str, tmp_path: Path) -> None:
    (path := tmp_path / "a.json").write_bytes(content)
    for read_file in (read_json, lambda path: list(read_lines(path))):
        with pytest.raises(InputError, match=f"not UTF-8 at {message}"):
            read_file(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [('[{"a": 1}, {"b', "truncated"), ('[{"a": 1},', "truncated"), ("[{'a': 1}]", "single quotes"), ("[1,]", "comma")],
)
def test_invalid_json_is_reported_with_reason(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        parse_json(tmp_path / "a.json", content)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_truncated_gzip_is_rejected(suffix: str, tmp_path: Path) -> None:
    generator = random.Random(0)
    rows = [{"question": f"{generator.getrandbits(2_000):x}?"} for _ in range(1_000)]  # the first 64 KB are complete
    texts = [json.dumps(row) if suffix == ".jsonl" else row["question"] for row in rows]
    text = json.dumps(rows) if suffix == ".json" else "\n".join(["question", *texts] if suffix == ".csv" else texts)
    (path := tmp_path / f"rows{suffix}.gz").write_bytes(gzip.compress(text.encode())[:-1_000])
    with pytest.raises(InputError, match=r"damaged gzip .* truncated"):
        table.read_table(path)
