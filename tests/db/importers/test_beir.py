"""Test BEIR folders in the format of https://github.com/beir-cellar/beir."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.database.dumps import query_rows
from yarus.db.errors import InputError
from yarus.db.importers import beir
from yarus.db.loading.load_rows import LoadCounts, LoadReport, load_rows

CORPUS = [
    {"_id": "d1", "title": "Билет", "text": "Выдают в деканате."},
    {"_id": "d2", "title": "", "text": "Стипендию платят 25 числа."},
    {"_id": "d3", "title": "図書館", "text": "", "metadata": {"url": "https://example.org"}},
]
QUERIES = [
    {"_id": "q1", "text": "где взять билет?"},
    {"_id": "q2", "text": "когда стипендия 🎓?"},
    {"_id": "q3", "text": "вопрос другой части"},
]
TEST_QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td2\t1\n"


def write_folder(
    path: Path, *, corpus: list = CORPUS, queries: list = QUERIES, qrels: dict[str, str] | None = None, bom: str = ""
) -> Path:
    path.mkdir(exist_ok=True)
    for name, objects in (("corpus", corpus), ("queries", queries)):
        lines = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in objects)
        (path / f"{name}.jsonl").write_text(bom + "\n".join(lines) + "\n", encoding="utf-8")
    for split, content in ({"test": TEST_QRELS} if qrels is None else qrels).items():
        (path / "qrels").mkdir(exist_ok=True)
        (path / "qrels" / f"{split}.tsv").write_text(bom + content, encoding="utf-8")
    return path


def load(engine: Engine, name: str, path: Path, split: str | None = None) -> LoadReport:
    return load_rows(engine, name, beir.read_beir(path, split), language="ru", origin="test")


@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_beir_chunks_questions_and_grades_are_loaded(engine: Engine, tmp_path: Path, bom: str) -> None:
    name = f"beir_all{len(bom)}"
    report = load(engine, name, write_folder(tmp_path / "d", bom=bom))
    assert report.chunks == LoadCounts(read=3, added=3)
    assert report.questions == LoadCounts(read=2, added=2)
    assert report.labels == LoadCounts(read=2, added=2)
    assert report.problems == ["queries.jsonl: 1 questions were left out, which this split does not judge"]
    assert query_rows(engine, f"SELECT id, confluence_url, text FROM source_{name}.chunk ORDER BY id") == [
        ("d1", "beir:d1", "Билет Выдают в деканате."),
        ("d2", "beir:d2", "Стипендию платят 25 числа."),
        ("d3", "beir:d3", "図書館"),
    ]
    assert query_rows(
        engine, f"SELECT question_id, relevant_chunk_ids, origin FROM source_{name}.annotation ORDER BY 1"
    ) == [("q1", {"d1": 2, "d2": 0}, "imported"), ("q2", {"d2": 1}, "imported")]


def test_second_load_updates_only_changed_grades(engine: Engine, tmp_path: Path) -> None:
    load(engine, "beir_again", write_folder(tmp_path / "d"))
    second = load(engine, "beir_again", write_folder(tmp_path / "d"))
    assert (second.chunks, second.questions, second.labels) == (LoadCounts(3), LoadCounts(2), LoadCounts(2))
    third = load(
        engine, "beir_again", write_folder(tmp_path / "d", qrels={"test": TEST_QRELS.replace("d2\t1", "d2\t3")})
    )
    assert (third.questions, third.labels) == (LoadCounts(2, updated=1), LoadCounts(2, updated=1))
    assert query_rows(
        engine, "SELECT relevant_chunk_ids FROM source_beir_again.annotation WHERE question_id = 'q2'"
    ) == [({"d2": 3},)]


def test_unusable_judgements_are_skipped_with_their_lines(engine: Engine, tmp_path: Path) -> None:
    qrels = TEST_QRELS + "q9\td1\t1\nq1\td9\t1\nq1\td3\tfive\nq2 d3 1\nq1\td1\t1\n\nq2\td2\t1\nq2\td3\tnan\n"
    report = load(engine, "beir_unknown", write_folder(tmp_path / "d", qrels={"test": qrels}))
    assert report.questions == LoadCounts(read=2, added=2)
    assert report.labels == LoadCounts(read=8, added=2, skipped=6)
    assert sorted(report.problems[1:]) == [
        "qrels/test.tsv:12: skipped, expected query-id, corpus-id, number, parted by tabs; got ['q2', 'd3', 'nan']",
        "qrels/test.tsv:5: skipped, queries.jsonl has no question 'q9'",
        "qrels/test.tsv:6: skipped, corpus.jsonl has no document 'd9'",
        "qrels/test.tsv:7: skipped, expected query-id, corpus-id, number, parted by tabs; got ['q1', 'd3', 'five']",
        "qrels/test.tsv:8: skipped, expected query-id, corpus-id, number, parted by tabs; got ['q2 d3 1']",
        "qrels/test.tsv:9: skipped, 'q1' and 'd1' were judged otherwise at qrels/test.tsv:2",
    ]
    assert query_rows(engine, "SELECT relevant_chunk_ids FROM source_beir_unknown.annotation ORDER BY question_id") == [
        ({"d1": 2, "d2": 0},),
        ({"d2": 1},),
    ]


def test_unusable_beir_rows_are_skipped_with_their_lines(engine: Engine, tmp_path: Path) -> None:
    corpus = [*CORPUS, {"text": "без имени"}, {"_id": "d1", "text": "снова"}, {"_id": "d4", "title": " ", "text": None}]
    queries = [{"_id": "q1", "text": ["no", "text"]}, {"_id": 2, "text": "число"}]
    qrels = {"test": "query-id\tcorpus-id\tscore\nq1\td1\t1\n2\td2\t1\n"}
    report = load(engine, "beir_rows", write_folder(tmp_path / "d", corpus=corpus, queries=queries, qrels=qrels))
    assert report.chunks == LoadCounts(read=6, added=3, skipped=3)
    assert report.questions == LoadCounts(read=2, added=1, skipped=1)
    assert report.labels == LoadCounts(read=2, added=1, skipped=1)
    assert report.problems == [
        "corpus.jsonl:4: skipped, no _id",
        "corpus.jsonl:6: skipped, no text",
        "corpus.jsonl:5: skipped, id 'd1' was already at corpus.jsonl:1",
        "queries.jsonl:1: skipped, text ['no', 'text'] is no text",
        "qrels/test.tsv:2: skipped, queries.jsonl has no question 'q1'",
    ]


@pytest.mark.parametrize(
    ("splits", "requested", "chosen"),
    [
        (("dev", "test", "train"), None, "test"),
        (("dev", "test"), "dev", "dev"),
        (("dev",), None, "dev"),
    ],
)
def test_requested_or_default_split_is_loaded(
    engine: Engine, tmp_path: Path, splits: tuple[str, ...], requested: str | None, chosen: str
) -> None:
    """Give d1 another grade in each split."""
    grades = {split: grade for grade, split in enumerate(splits, start=1)}
    qrels = {split: f"query-id\tcorpus-id\tscore\nq1\td1\t{grade}\n" for split, grade in grades.items()}
    name = f"beir_split_{len(splits)}_{chosen}"
    load(engine, name, write_folder(tmp_path / "d", qrels=qrels), requested)
    assert query_rows(engine, f"SELECT relevant_chunk_ids FROM source_{name}.annotation") == [({"d1": grades[chosen]},)]


def test_all_questions_are_loaded_without_judgements(engine: Engine, tmp_path: Path) -> None:
    report = load(engine, "beir_bare", write_folder(tmp_path / "d", qrels={}))
    assert (report.questions, report.labels) == (LoadCounts(3, 3), LoadCounts())
    assert "no *.tsv, the questions are loaded without labels" in report.problems[0]


@pytest.mark.parametrize(
    ("change", "split", "message"),
    [
        ({"qrels": {"test": TEST_QRELS}}, "tset", "no split in .*qrels: 'tset'; did you mean 'test'?"),
        (
            {"qrels": {"dev": TEST_QRELS, "train": TEST_QRELS}},
            None,
            "several splits, choose one by --split: dev, train",
        ),
        ({"corpus": [CORPUS[0], "{"]}, None, "corpus.jsonl: line 2, column 1: not valid JSON"),
        ({"queries": [QUERIES[0], "[1]"]}, None, "queries.jsonl: line 2: expected an object, got list"),
    ],
)
def test_unreadable_beir_folder_loads_nothing(
    engine: Engine, tmp_path: Path, change: dict, split: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load(engine, "beir_nothing", write_folder(tmp_path / "d", **change), split)
    assert query_rows(engine, "SELECT to_regclass('source_beir_nothing.chunk')") == [(None,)]


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", ""])
def test_read_rejects_incomplete_beir_folder(tmp_path: Path, missing: str) -> None:
    path = write_folder(tmp_path / "d")
    if missing:
        (path / missing).unlink()
    with pytest.raises(InputError, match=f"no {missing or 'folder'}"):
        beir.read_beir(path if missing else tmp_path / "nowhere")


def test_queries_that_are_documents_are_reported(engine: Engine, tmp_path: Path) -> None:
    path = write_folder(
        tmp_path / "d",
        corpus=[
            {"_id": "a1", "title": "Ночь", "text": "Паром ходит ночью."},
            {"_id": "a2", "text": "Ночной паром мешает спать."},
            {"_id": "a3", "text": "Совсем о другом."},
            {"_id": "a4", "text": "Как получить билет?"},
        ],
        queries=[
            {"_id": "a1", "text": "Паром ходит ночью."},
            {"_id": "a2", "text": "Ночной паром мешает спать."},
            {"_id": "a3", "text": "Когда открыта библиотека?"},  # an id that is equal by chance
            {"_id": "a4", "text": "Как получить билет?"},  # relevant to itself
        ],
        qrels={"test": "query-id\tcorpus-id\tscore\na1\ta2\t1\na2\ta1\t1\na3\ta1\t1\na4\ta4\t1\n"},
    )
    assert load(engine, "beir_self", path).problems == [
        "2 questions are documents themselves: their own id is left out of rankings, as BEIR does"
    ]


def test_grades_below_zero_mean_not_judged(engine: Engine, tmp_path: Path) -> None:
    qrels_text = "q1\td1\t1\nq1\td2\t-1\nq1\td3\t0\nq2\td1\t-2\n"
    report = load(engine, "beir_not_judged", write_folder(tmp_path / "d", qrels={"test": qrels_text}))
    assert 'qrels/test.tsv: 2 grades below 0 mean "not judged" and were left out' in report.problems
    assert query_rows(engine, "SELECT question_id, relevant_chunk_ids FROM source_beir_not_judged.annotation") == [
        ("q1", {"d1": 1, "d3": 0})
    ]
    assert report.questions.added == 2
