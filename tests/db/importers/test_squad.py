"""Test SQuAD files: their rows, and the rejection of broken files."""

import json
from pathlib import Path
from typing import Any

import pytest

from yarus.db.errors import InputError
from yarus.db.importers import squad


def article(title: str | None = "Нормандцы", **paragraph: Any) -> dict[str, Any]:
    paragraphs = [{"context": "Нормандцы жили на севере Франции.", "qas": [], **paragraph}]
    return {"paragraphs": paragraphs} | ({} if title is None else {"title": title})


def question(**values: Any) -> dict[str, Any]:
    answers = [{"text": "на севере Франции", "answer_start": 15}, {"text": "во Франции", "answer_start": 24}]
    return {"id": "q1", "question": "Где жили нормандцы?", "answers": answers, **values}


def write_squad(folder: Path, document: Any) -> Path:
    path = folder / "squad.json"
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    return path


def test_squad_paragraph_becomes_chunk_and_article_page(tmp_path: Path) -> None:
    rows = squad.read_squad(write_squad(tmp_path, {"version": "1.1", "data": [article(qas=[question()])]}))
    assert [row.values for row in rows.chunks] == [
        {"id": "Нормандцы-0", "confluence_url": "squad:Нормандцы", "text": "Нормандцы жили на севере Франции."}
    ]
    assert [row.values for row in rows.questions] == [{"id": "q1", "question": "Где жили нормандцы?"}]
    assert [row.values for row in rows.annotations] == [
        {
            "question_id": "q1",
            "ground_truth_answer": "на севере Франции",
            "relevant_chunk_ids": ["Нормандцы-0"],
            "relevant_urls": ["squad:Нормандцы"],
            "answerable": True,
            "cluster": "Нормандцы",
            "origin": "imported",
        }
    ]
    assert rows.questions[0].place == "data[0].paragraphs[0].qas[0]"


def test_impossible_question_has_no_answer_and_labels(tmp_path: Path) -> None:
    impossible = question(id="q2", is_impossible=True, answers=[])
    rows = squad.read_squad(write_squad(tmp_path, {"data": [article(qas=[impossible])]}))
    labels = rows.annotations[0].values
    assert labels["answerable"] is False
    assert (labels["ground_truth_answer"], labels["relevant_chunk_ids"], labels["relevant_urls"]) == (None, None, None)


def test_articles_with_same_title_share_a_page(tmp_path: Path) -> None:
    second = article(context="Викинги были их предками.", qas=[question(id="q2")])
    rows = squad.read_squad(write_squad(tmp_path, {"data": [article(qas=[question()]), second]}))
    assert [row.values["id"] for row in rows.chunks] == ["Нормандцы-0", "Нормандцы-1"]
    assert [row.values["relevant_chunk_ids"] for row in rows.annotations] == [["Нормандцы-0"], ["Нормандцы-1"]]


def test_article_without_title_gets_one(tmp_path: Path) -> None:
    rows = squad.read_squad(write_squad(tmp_path, {"data": [article(), article(title=None)]}))
    assert [row.values["id"] for row in rows.chunks] == ["Нормандцы-0", "article-1-0"]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "line 1, column 1"),
        (b'{"data": [{"title": "x"', "line 1, column 24"),  # truncated
        (b"\xff\xfe{\x00}\x00", "not UTF-8 at byte 0"),  # UTF-16
        ('{"data": []}\n"Привет"'.encode(), "line 2, column 1"),
        ('{"data": "Привет'.encode("cp1251"), "not UTF-8 at byte 10"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"data": ' + b"1" * 5_001 + b"}", "thousands of digits"),
        (b"[1, 2]", "has no 'data'"),
        (b'{"version": "1.1"}', "has no 'data'"),
        (b'{"data": {}}', "'data' of"),
        (b'{"data": ["x"]}', "data[0] has no"),
        (b'{"data": [{"title": "x"}]}', "data[0] has no 'paragraphs'"),
        (b'{"data": [{"paragraphs": [{"qas": []}]}]}', "data[0].paragraphs[0] has no 'context'"),
        (b'{"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "?"}]}]}]}', "qas[0] has no 'id'"),
        (b'{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": 1, "question": "?"}]}]}]}', "has no 'answers'"),
    ],
)
def test_broken_squad_is_rejected_with_place(tmp_path: Path, content: bytes, place: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="nothing was loaded") as raised:
        squad.read_squad(path)
    assert str(path) in str(raised.value)
    assert place in str(raised.value)


@pytest.mark.parametrize("path", ["absent.json", "."])
def test_unreadable_squad_is_rejected(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match="nothing was loaded"):
        squad.read_squad(tmp_path / path)


def test_squad_accepts_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "bom.json"
    path.write_text(json.dumps({"data": [article()]}), encoding="utf-8-sig")
    assert len(squad.read_squad(path).chunks) == 1


def test_xquad_has_documented_counts(xquad_ru: Path) -> None:
    rows = squad.read_squad(xquad_ru)
    assert (len(rows.questions), len(rows.chunks), len(rows.annotations)) == (1190, 240, 1190)
    assert len({row.values["confluence_url"] for row in rows.chunks}) == 48
    assert not rows.problems
