"""The annotation round trip: what goes out, what comes back from spreadsheets in any state, and what follows."""

import csv
import io
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from openpyxl import Workbook, load_workbook
from sqlalchemy import Engine, text

from db.errors import InputError
from db.loading.fill import lock
from db.sources import loaded, read_questions, snapshot
from tasks.dataset.annotation import spreadsheets
from tasks.dataset.annotation.columns import COLUMNS, headings
from tasks.dataset.annotation.priority import priority
from tasks.dataset.annotation.reviews import _labels, _majority, _merged, agreement
from tasks.dataset.annotation.round_trip import export, import_
from tests.support.evaluations import evaluate, load, question
from tests.support.evaluations import rows_of as rows_of_file

HEADER = headings("ru")
Make = Callable[..., Path]


@pytest.fixture
def source(at_home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Ten questions about ten pages, in a source of the test's own."""
    name = re.sub(r"\W", "_", request.node.name.lower())[:30].strip("_") + "_an"
    bare = {"ground_truth_answer": None, "relevant_chunk_ids": None, "answerable": None, "origin": None}
    return load(tmp_path, re.sub("^[^a-z]+", "a", name), [question(i, **(bare if i > 4 else {})) for i in range(10)])


@pytest.fixture
def filled(source: str, tmp_path: Path) -> Make:
    """Writes a file with these cells, by row and column; the other cells are empty."""

    def make(*rows: Mapping[str, Any], suffix: str = ".xlsx", encoding: str = "utf-8-sig", sep: str = ";") -> Path:
        path = tmp_path / f"filled{suffix}"
        lines = [[row.get(name, source if name == "source" else None) for name in COLUMNS] for row in rows]
        if suffix == ".xlsx":
            book = Workbook()
            for line in [HEADER, *lines]:
                book.active.append(line)
            book.save(path)
        else:
            text = io.StringIO()
            csv.writer(text, delimiter=sep).writerows([HEADER, *lines])
            path.write_bytes(text.getvalue().encode(encoding))
        return path

    return make


@pytest.fixture
def english(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")


def rows_of(engine: Engine, name: str, *, all_rows: bool = True) -> dict[str, dict[str, Any]]:
    where = loaded(engine, name)
    with snapshot(where) as connection:
        return {row["question_id"]: row for row in read_questions(connection, where, all_rows=all_rows)}


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_the_round_trip(engine: Engine, source: str, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    assert export(path, source)["questions"] == 10
    header, lines = spreadsheets.read(path)
    assert header == HEADER and len(lines) == 10
    empty = import_(path, "анна")
    assert (empty["labelled"], empty["empty"]) == (0, 10)
    at = {name: place for place, name in enumerate(COLUMNS)}
    cells = [[cell.text for cell in row] + [""] * (len(HEADER) - len(row)) for _, row in lines]
    cells[0][at["question_ok"]] = "нет"
    cells[1][at["relevant"]], cells[1][at["show"]] = "c3; c4", "Да"
    spreadsheets.write(path, header, cells)
    document = import_(path, "анна")
    assert (document["labelled"], document["rejected"], document["half_filled"]) == (2, 1, 2)
    rows = rows_of(engine, source)
    first, second = cells[0][at["question_id"]], cells[1][at["question_id"]]
    assert rows[second]["relevant_chunk_ids"] == ["c3", "c4"] and rows[second]["ground_truth_show"] is True
    assert rows[first]["review"]["rejected"] is True
    assert set(rows_of(engine, source, all_rows=False)) == set(rows) - {first}  # it left every evaluation


def test_half_filled_rows_count_as_what_is_filled(engine: Engine, source: str, filled: Make) -> None:
    """A verdict on one thing leaves the log's word on the others as it was."""
    before = rows_of(engine, source)["7"]
    assert import_(filled({"question_id": "7", "show": "нет"}), "a")["half_filled"] == 1
    after = rows_of(engine, source)["7"]
    assert after["ground_truth_show"] is False
    assert after["relevant_urls"] == [before["confluence_url"]]  # what had been the fallback
    assert after["ground_truth_answer"] == before["answer"] and after["origin"] == "manual"
    import_(filled({"question_id": "7", "notes": "дубль", "question_ok": "да"}), "a")
    said = rows_of(engine, source)["7"]["review"]["annotators"]["a"]
    assert (said["show"], said["notes"], said["question_ok"]) == (False, "дубль", True)


def test_an_answer_that_is_found_wrong_is_no_reference(engine: Engine, source: str, filled: Make) -> None:
    rows = [{"question_id": n, "answer_of": "log", "answer_ok": said} for n, said in (("6", "нет"), ("8", "да"))]
    import_(filled(*rows), "a")
    after = rows_of(engine, source)
    assert after["6"]["ground_truth_answer"] is None
    assert after["8"]["ground_truth_answer"] == after["8"]["answer"]


@pytest.mark.parametrize("later", [{"notes": "проверено"}, {"relevant": "c6"}])
def test_a_verdict_stays_with_the_answer_it_is_about(
    engine: Engine, source: str, filled: Make, later: dict[str, str]
) -> None:
    """Who finds an evaluation's answer wrong has said nothing of the log's, whichever file a later word comes in."""
    logged = rows_of(engine, source)["6"]["answer"]
    import_(filled({"question_id": "6", "answer_of": "log", "answer_ok": "да"}), "олег")
    import_(filled({"question_id": "7", "answer_of": "tier3-x", "answer_ok": "нет"}), "анна")
    import_(filled({"question_id": "6", "answer_of": "tier3-x", "answer_ok": "нет"}), "анна")
    import_(filled(*({"question_id": n, "answer_of": "log", **later} for n in "67")), "анна")
    after = rows_of(engine, source)
    assert after["6"]["ground_truth_answer"] == logged
    assert after["7"]["ground_truth_answer"] == after["7"]["answer"]
    assert after["6"]["review"]["annotators"]["анна"]["answer_of"] == "tier3-x"
    import_(filled({"question_id": "6", "answer_of": "log", "answer_ok": "нет"}), "анна")  # now it is about the log's
    assert rows_of(engine, source)["6"]["ground_truth_answer"] is None


def test_no_chunk_is_relevant(engine: Engine, source: str, filled: Make) -> None:
    import_(filled({"question_id": "1", "relevant": "Нет"}), "a")
    after = rows_of(engine, source)["1"]
    assert (after["relevant_chunk_ids"], after["answerable"]) == ([], False)
    import_(filled({"question_id": "1", "relevant": "[c2] https://wiki.example/pages/viewpage.action?pageId=3"}), "a")
    after = rows_of(engine, source)["1"]
    assert after["relevant_chunk_ids"] == ["c2"] and after["answerable"] is True
    assert after["relevant_urls"] == ["https://wiki.example/pages/viewpage.action?pageId=3"]


ODD = {
    "Fresno,_California-0": "squad:Fresno,_California",
    "Normandy-0": "squad:Normandy",
    "https://docs.x/a#1": "https://docs.x/a",
    "doc[1]; part 2": "https://x/a;b",
    "part 2": "https://x/with%20space, and comma?utm_source=feed",
    "7": "https://x/what%3Fnow",
    "8": "https://w.ru/Стипендии, гранты и материальная помощь студентам",
    "0": None,
}
"""Chunk -> page, as corpora have them."""
CELLS: dict[str, tuple[list[str], list[str]]] = {
    "squad:Normandy": ([], ["squad:Normandy"]),
    "https://docs.x/a#1": (["https://docs.x/a#1"], []),
    "https://docs.x/a#2": ([], ["https://docs.x/a"]),
    "https://docs.x/a#2; 7": (["7"], ["https://docs.x/a"]),
    "https://docs.x/a?utm_source=1;7": (["7"], ["https://docs.x/a"]),
    "Fresno,_California-0": (["Fresno,_California-0"], []),
    "[Fresno,_California-0], [Normandy-0]": (["Fresno,_California-0", "Normandy-0"], []),
    "Normandy-0 squad:Fresno,_California;7": (["Normandy-0", "7"], ["squad:Fresno,_California"]),
    "https://x/a;b": ([], ["https://x/a;b"]),
    "HTTPS://X/a;b?utm_source=mail": ([], ["https://x/a;b"]),
    "[https://x/a;b]\n[doc[1]; part 2]\n7": (["doc[1]; part 2", "7"], ["https://x/a;b"]),
    "part 2": (["part 2"], []),
    "https://x/with space, and comma": ([], ["https://x/with space, and comma"]),
    "https://x/with%20space, and comma?utm_source=feed, 7": (["7"], ["https://x/with space, and comma"]),
    "https://x/what?now": ([], ["https://x/what%3Fnow"]),  # as exported; stored so that it is read as the same page
    "https://w.ru/" + quote("Стипендии, гранты и материальная помощь студентам", safe=","): (
        [], ["https://w.ru/Стипендии, гранты и материальная помощь студентам"],
    ),
    "7 7 [7]": (["7"], []),
    "0": (["0"], []),
    "none": ([], []),
}  # fmt: skip


@pytest.fixture
def odd(at_home: Path, tmp_path: Path) -> str:
    """A source whose ids and addresses look like anything; a question for every cell."""
    chunks = [{"id": name, "confluence_url": url, "text": f"О том, что есть {name}."} for name, url in ODD.items()]
    return load(tmp_path, "odd_names", [question(i) for i in range(len(CELLS))], chunks)


def test_what_is_relevant_is_found_in_the_corpus(engine: Engine, odd: str, filled: Make) -> None:
    """No name is taken for what it looks like, nor cut where the corpus has it whole, and tier 1 knows every label."""
    import_(filled(*({"question_id": str(n), "source": odd, "relevant": cell} for n, cell in enumerate(CELLS))), "a")
    rows = rows_of(engine, odd)
    labels = [(rows[str(n)]["relevant_chunk_ids"], rows[str(n)]["relevant_urls"]) for n in range(len(CELLS))]
    assert dict(zip(CELLS, labels, strict=True)) == CELLS
    assert rows[str(len(CELLS) - 1)]["answerable"] is False
    cases = {case["question_id"]: case for case in rows_of_file(evaluate("tier1", source=odd, unit="page"))}
    for number, (chunks, pages) in enumerate(CELLS.values()):
        if pages or set(chunks) - {"0"}:
            assert cases[str(number)]["status"] == "ok", cases[str(number)]["reason"]


def test_every_name_that_is_exported_is_taken_back(odd: str, filled: Make, tmp_path: Path) -> None:
    for unit in ("chunk", "page"):
        ran = evaluate("tier1", source=odd, unit=unit)
        export(tmp_path / "out.csv", odd, [ran["evaluation_id"]])
        _, lines = spreadsheets.read(tmp_path / "out.csv")
        shown = [cells[list(COLUMNS).index("retrieved")].text.split("\n\n") for _, cells in lines]
        names = {chunk.partition(" О том")[0] for of in shown for chunk in of if chunk}
        assert len(names) > 3
        assert import_(filled({"question_id": "1", "source": odd, "relevant": "\n".join(names)}), "a")["relevant"] == 1


@pytest.mark.usefixtures("english")
@pytest.mark.parametrize(("cell", "told"), [("Normandy-0, https://docs.x/b; 7", "https://docs.x/b"), ("part 7", "part"),
                                            ("7,Fresno", "Fresno"), ("https://x/a", "https://x/a")])  # fmt: skip
def test_what_the_corpus_does_not_have_is_refused(odd: str, filled: Make, cell: str, told: str) -> None:
    with pytest.raises(InputError, match=f"no chunk or page '{re.escape(told)}' in the corpus"):
        import_(filled({"question_id": "1", "source": odd, "relevant": cell}), "a")


def test_reviews_with_chunks_and_pages_in_one_list_are_read_on() -> None:
    """As older versions have stored them: what looked like an address was a page."""
    old = {"relevant": ["c1", "https://x/a"], "at": "2026-01-01T00:00:00"}
    row = {"question_id": "1", "confluence_url": None, "answer": None, "score": None}
    labels = _labels(row, {"a": old})
    assert (labels["relevant_chunk_ids"], labels["relevant_urls"]) == (["c1"], ["https://x/a"])
    same = {"relevant": {"pages": ["https://x/a"], "chunks": ["c1"]}, "at": {"relevant": "2026-01-02T00:00:00"}}
    other = {"relevant": {"chunks": [], "pages": []}, "at": {"relevant": "2026-01-03T00:00:00"}}
    assert _majority({"a": old, "b": same, "c": other}, "relevant") == same["relevant"]


@pytest.mark.parametrize(
    ("encoding", "sep"),
    [("utf-8", ","), ("utf-8-sig", ";"), ("cp1251", ";"), ("utf-16", "\t"), ("utf-16-le", "\t"), ("utf-16-be", ";")],
)
def test_what_excel_saves(engine: Engine, source: str, filled: Make, encoding: str, sep: str) -> None:
    row = {"question_id": "3", "show": "ДА", "notes": "Заметка; с «кавычками», запятой\nи строкой"}
    if encoding == "cp1251":
        row["notes"] = "Заметка; простая"
    import_(filled(row, suffix=".csv", encoding=encoding, sep=sep), "a")
    said = rows_of(engine, source)["3"]["review"]["annotators"]["a"]
    assert (said["show"], said["notes"]) == (True, row["notes"])


def test_numbers_and_yes_no_of_a_workbook(engine: Engine, source: str, filled: Make) -> None:
    import_(filled({"question_id": 3, "show": True}, {"question_id": 4.0, "show": 0, "question_ok": "1"}), "a")
    rows = rows_of(engine, source)
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
    before = rows_of(engine, source)
    with pytest.raises(InputError, match=message) as raised:
        import_(filled(*rows), "a")
    assert "nothing was imported" in str(raised.value)
    assert rows_of(engine, source) == before


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
    before = rows_of(engine, source)
    many = [{"question_id": str(n), "show": "?"} for n in range(100, 140)]
    with pytest.raises(InputError) as raised:
        import_(filled({"question_id": "9", "show": "да"}, *many), "a")
    assert len(str(raised.value).splitlines()) == 22  # the head, twenty problems, and how many more
    assert "and 60 more" in str(raised.value)
    assert rows_of(engine, source) == before


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


def test_nothing_is_a_formula(at_home: Path, tmp_path: Path) -> None:
    """Neither in CSV nor in a workbook; ids come back as they were."""
    evil = '=HYPERLINK("http://x.example";"нажми")'
    rows = [question(1, id="=1+1", question=evil), question(2, id="-2", question="@SUM(A1)", answer="+79271234567")]
    name = load(tmp_path, "formulas", rows)
    for suffix in (".csv", ".xlsx"):
        path = tmp_path / f"out{suffix}"
        export(path, name)
        if suffix == ".xlsx":
            cells = [cell for row in load_workbook(path).active.iter_rows() for cell in row if cell.value]
            assert {cell.data_type for cell in cells} == {"s"}
            texts = [cell.value for cell in cells]
        else:
            texts = [
                cell for row in csv.reader(io.StringIO(path.read_text("utf-8-sig")), delimiter=";") for cell in row
            ]
        assert not [one for one in texts if one.startswith(("=", "+", "-", "@"))]
        assert import_(path, "a")["rows"] == 2
        _, lines = spreadsheets.read(path)
        assert {cells[0].text for _, cells in lines} == {"=1+1", "-2"}


def test_exports_have_pseudonyms(at_home: Path, tmp_path: Path) -> None:
    asked = "я Иванов Иван Иванович, тел. +7 927 123-45-67, почта ivan@mail.ru"
    name = load(tmp_path, "private", [question(1, question=asked, answer=f"Записали: {asked}")])
    export(tmp_path / "out.csv", name)
    text = (tmp_path / "out.csv").read_text("utf-8-sig")
    assert not re.search(r"Иванов|927|@", text)
    found = re.findall(r"\[(имя|телефон|почта) ([0-9a-f]{6})\]", text)
    assert len(found) >= 6 and len(set(found)) == 3  # the same person has the same pseudonym in every text
    assert (at_home / "pseudonyms.key").stat().st_mode & 0o777 == 0o600


def test_what_teaches_most_comes_first(source: str, tmp_path: Path) -> None:
    """Questions that an evaluation could not measure stand before those that it found right, with the reason said."""
    name = load(tmp_path, "ranked_first", [question(i, **({"relevant_chunk_ids": None} if i in (4, 8) else {}))
                                           for i in range(10)])  # fmt: skip
    ran = evaluate("tier1", source=name)
    document = export(tmp_path / "out.csv", name, [ran["evaluation_id"]], limit=3)
    _, lines = spreadsheets.read(tmp_path / "out.csv")
    at = {column: place for place, column in enumerate(COLUMNS)}
    assert document["questions"] == 3
    assert [cells[0].text for _, cells in lines] == ["4", "8", "0"]
    assert [cells[at["why"]].text for _, cells in lines] == ["нет разметки 0.5", "нет разметки 0.5", ""]
    assert "[c0] Правило 0 велит" in lines[2][1][at["retrieved"]].text
    with pytest.raises(InputError, match=f"источник этого прогона — '{name}', а не '{source}'"):
        export(tmp_path / "out.csv", source, [ran["evaluation_id"]])


def test_that_nothing_is_relevant_is_a_label(engine: Engine, source: str, filled: Make, tmp_path: Path) -> None:
    """It is counted and compared as any, the case says so, and nobody is asked again for want of a label."""
    out, both = tmp_path / "out.csv", [{"question_id": n, "relevant": said} for n, said in (("8", "нет"), ("9", "c9"))]
    for annotator in ("анна", "олег"):
        document = import_(filled(*both), annotator)
        assert (document["labelled"], document["relevant"], document["empty"]) == (2, 2, 0)
    (relevant,) = (pair for pair in agreement(source)["pairs"] if pair["field"] == "relevant")
    assert (relevant["n"], relevant["agreement"]) == (2, 1.0)
    ran = evaluate("tier1", source=source, unit="chunk")
    reasons = {case["question_id"]: case["reason"] for case in rows_of_file(ran) if case["status"] == "unlabelled"}
    none = "no chunk is labelled relevant"
    assert reasons == dict.fromkeys("567", none) | {"8": f"{none}: it is annotated that the corpus has no answer"}
    export(out, source, [ran["evaluation_id"]])
    asked = {cells[0].text: cells[list(COLUMNS).index("why")].text for _, cells in spreadsheets.read(out)[1]}
    assert {name for name, why in asked.items() if "нет разметки" in why} == {"5", "6", "7"}


def test_priorities() -> None:
    assert priority([{"status": "unlabelled", "relevant": []}], answerable=False) == {}
    assert priority([{"status": "unlabelled", "relevant": []}], answerable=True) == {"unlabelled": 0.5}
    assert priority([{"status": "unlabelled", "shown": None}], answerable=False) == {"unlabelled": 0.5}
    assert priority([]) == {}
    assert priority([{"status": "ok", "faithfulness": 1.0, "hit_rate@10": 1.0}]) == {}
    assert priority([{"status": "ok", "e2e_score": 0.5}]) == {"uncertainty": 1.0}
    apart = priority([{"status": "ok", "e2e_score": 1.0}, {"status": "ok", "e2e_score": 0.0}])
    assert apart == {"disagreement": 1.0, "failure": 1.0}
    assert priority([{"status": "sut_error"}]) == {"failure": 1.0}
    assert priority([{"status": "unlabelled"}]) == {"unlabelled": 0.5}
    assert priority([{"status": "ok", "decision": True, "shown": False}]) == {"disagreement": 1.0}
    assert priority([{"status": "ok", "mean_abs_difference": 0.25}]) == {"disagreement": 0.25}


def test_two_annotators_agree_or_not(engine: Engine, source: str, filled: Make) -> None:
    """Kappa by hand: 10 questions, 8 equal, one says yes 5 times, the other 5: (0.8 - 0.5) / (1 - 0.5) = 0.6."""
    first = ["да"] * 5 + ["нет"] * 5
    second = ["да"] * 4 + ["нет"] * 5 + ["да"]
    with pytest.raises(InputError, match="nobody has labelled it"):
        agreement(source)
    import_(filled(*({"question_id": str(n), "show": said} for n, said in enumerate(first))), "первый")
    assert agreement(source)["pairs"] == []
    import_(filled(*({"question_id": str(n), "show": said} for n, said in enumerate(second))), "второй")
    document = agreement(source)
    assert document["annotators"] == {"второй": 10, "первый": 10}
    (show,) = (pair for pair in document["pairs"] if pair["field"] == "show")
    assert (show["n"], show["agreement"]) == (10, 0.8)
    assert show["kappa"] == pytest.approx(0.6)
    assert show["ci_low"] < 0.6 < show["ci_high"]
    (nothing,) = (pair for pair in document["pairs"] if pair["field"] == "question_ok")
    assert (nothing["n"], nothing["kappa"], nothing["reason"]) == (0, None, "no question in common")


def test_the_majority_decides_and_the_last_word_where_there_is_none(engine: Engine, source: str, filled: Make) -> None:
    for annotator, said in (("a", "да"), ("b", "нет")):
        import_(
            filled({"question_id": "2", "question_ok": said, "relevant": "c5" if said == "да" else "c6"}), annotator
        )
    rows = rows_of(engine, source)
    assert rows["2"]["review"]["rejected"] is True and rows["2"]["relevant_chunk_ids"] == ["c6"]
    import_(filled({"question_id": "2", "question_ok": "да", "relevant": "c5"}), "c")
    rows = rows_of(engine, source)
    assert rows["2"]["review"]["rejected"] is False and rows["2"]["relevant_chunk_ids"] == ["c5"]


def test_who_adds_a_note_does_not_speak_again_of_the_rest(engine: Engine, source: str, filled: Make) -> None:
    for annotator, said in (("a", {"show": "да"}), ("b", {"show": "нет"}), ("a", {"notes": "см. раздел 2"})):
        import_(filled({"question_id": "2"} | said), annotator)
    assert rows_of(engine, source)["2"]["ground_truth_show"] is False
    import_(filled({"question_id": "2", "show": "да"}), "a")
    assert rows_of(engine, source)["2"]["ground_truth_show"] is True


def test_reviews_with_one_time_for_all_are_read_on() -> None:
    """As older versions have stored them: the time counts for each of their fields."""
    old = {"show": True, "notes": "да", "answer_of": "log", "at": "2026-01-01T00:00:00"}
    other = {"show": False, "at": {"show": "2026-02-01T00:00:00"}}
    assert _majority({"a": old, "b": other}, "show") is False
    merged = _merged(old, {"notes": "нет"}, "2026-03-01T00:00:00")
    assert merged["at"] == {"show": "2026-01-01T00:00:00", "notes": "2026-03-01T00:00:00"}
    assert _majority({"a": merged, "b": other}, "show") is False
    assert _majority({"a": _merged(old, {"show": True}, "2026-03-01T00:00:00"), "b": other}, "show") is True


def test_verdicts_on_two_answers_are_not_compared(source: str, filled: Make) -> None:
    """Kappa by hand: the two agree on the log's answers; on the others they were shown different ones."""
    said = [("0", "log", "log", "да", "да"), ("1", "log", "log", "нет", "нет"),
            ("2", "log", "tier3-x", "да", "нет"), ("3", "tier3-x", "log", "да", "нет")]  # fmt: skip
    for annotator, place in (("a", 0), ("b", 1)):
        rows = [{"question_id": row[0], "answer_of": row[1 + place], "answer_ok": row[3 + place]} for row in said]
        import_(filled(*rows), annotator)
    (found,) = (pair for pair in agreement(source)["pairs"] if pair["field"] == "answer_ok")
    assert (found["n"], found["agreement"], found["kappa"]) == (2, 1.0, 1.0)


def test_two_imports_at_once_lose_nothing(engine: Engine, source: str, filled: Make) -> None:
    """Both have begun before either may store: the second builds on what the first has stored."""
    path = filled({"question_id": "2", "show": "да", "question_ok": "нет"})
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with ThreadPoolExecutor(2) as pool:
        with engine.begin() as holding:
            lock(holding, source)
            imports = [pool.submit(import_, path, annotator) for annotator in ("анна", "олег")]
            until = time.monotonic() + 60
            while (held := holding.scalar(waiting)) != 2 and time.monotonic() < until:
                time.sleep(0.05)
        assert [done.result(60)["rejected"] for done in imports] == [1, 1] and held == 2
    assert rows_of(engine, source)["2"]["review"]["annotators"].keys() == {"анна", "олег"}


def test_the_order_in_which_chunks_are_named_does_not_count() -> None:
    said = (["1", "2"], ["2", "1"], ["3"])
    verdicts = {name: {"at": name, "relevant": ids} for name, ids in zip("abc", said, strict=True)}
    assert sorted(_majority(verdicts, "relevant")) == ["1", "2"]


def test_the_source_keeps_its_origin(engine: Engine, source: str, filled: Make) -> None:
    statement = text("SELECT origin FROM yarus.source WHERE name = :name")
    with engine.connect() as connection:
        before = connection.scalar(statement, {"name": source})
    import_(filled({"question_id": "1", "show": "да"}), "a")
    with engine.connect() as connection:
        assert connection.scalar(statement, {"name": source}) == before
