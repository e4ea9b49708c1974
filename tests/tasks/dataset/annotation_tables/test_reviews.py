"""Reviews of several annotators: resulting labels, agreement, and concurrent imports."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.support.evaluations import read_questions_by_id
from yarus.db.errors import InputError
from yarus.db.loading.load_rows import lock_source
from yarus.tasks.dataset.annotation_tables.reviews import (
    annotation_from_verdicts,
    annotator_agreement,
    majority_verdict,
    merge_verdict,
)
from yarus.tasks.dataset.annotation_tables.round_trip import import_annotation_file

WriteFile = Callable[..., Path]


def test_reviews_with_one_list_of_names_are_supported() -> None:
    """Older versions stored one list, in which URLs are pages."""
    old = {"relevant": ["c1", "https://x/a"], "at": "2026-01-01T00:00:00"}
    row = {"question_id": "1", "confluence_url": None, "answer": None, "score": None}
    labels = annotation_from_verdicts(row, {"a": old})
    assert (labels["relevant_chunk_ids"], labels["relevant_urls"]) == (["c1"], ["https://x/a"])
    equal = {"relevant": {"pages": ["https://x/a"], "chunks": ["c1"]}, "at": {"relevant": "2026-01-02T00:00:00"}}
    empty = {"relevant": {"chunks": [], "pages": []}, "at": {"relevant": "2026-01-03T00:00:00"}}
    assert majority_verdict({"a": old, "b": equal, "c": empty}, "relevant") == equal["relevant"]


def test_agreement_of_two_annotators(engine: Engine, source: str, write_file: WriteFile) -> None:
    """Kappa by hand: 10 questions, 8 equal, both say yes 5 times: (0.8 - 0.5) / (1 - 0.5) = 0.6."""
    first = ["да"] * 5 + ["нет"] * 5
    second = ["да"] * 4 + ["нет"] * 5 + ["да"]
    with pytest.raises(InputError, match="nobody has labelled it"):
        annotator_agreement(source)
    import_annotation_file(
        write_file(*({"question_id": str(n), "show": word} for n, word in enumerate(first))), "первый"
    )
    assert (annotator_agreement(source)["pairs"], annotator_agreement(source)["alpha"]) == ([], {})
    import_annotation_file(
        write_file(*({"question_id": str(n), "show": word} for n, word in enumerate(second))), "второй"
    )
    document = annotator_agreement(source)
    assert document["annotators"] == {"второй": 10, "первый": 10}
    (show,) = (pair for pair in document["pairs"] if pair["field"] == "show")
    assert (show["n"], show["agreement"]) == (10, 0.8)
    assert show["kappa"] == pytest.approx(0.6)
    assert show["ci_low"] < 0.6 < show["ci_high"]
    alpha = document["alpha"]["show"]
    assert alpha["n"] == 10 and alpha["alpha"] == pytest.approx(1 - 0.2 / (200 / 380))  # 2 of 10 differ; 10 yes of 20
    assert alpha["ci_low"] < alpha["alpha"] < alpha["ci_high"]
    assert document["alpha"]["question_ok"]["reason"] == "no question in common"
    (nothing,) = (pair for pair in document["pairs"] if pair["field"] == "question_ok")
    assert (nothing["n"], nothing["kappa"], nothing["reason"]) == (0, None, "no question in common")


def test_majority_decides_and_latest_verdict_in_ties(engine: Engine, source: str, write_file: WriteFile) -> None:
    for annotator, word in (("a", "да"), ("b", "нет")):
        import_annotation_file(
            write_file({"question_id": "2", "question_ok": word, "relevant": "c5" if word == "да" else "c6"}), annotator
        )
    rows = read_questions_by_id(engine, source)
    assert rows["2"]["review"]["rejected"] is True and rows["2"]["relevant_chunk_ids"] == ["c6"]
    import_annotation_file(write_file({"question_id": "2", "question_ok": "да", "relevant": "c5"}), "c")
    rows = read_questions_by_id(engine, source)
    assert rows["2"]["review"]["rejected"] is False and rows["2"]["relevant_chunk_ids"] == ["c5"]


def test_note_does_not_renew_earlier_verdicts(engine: Engine, source: str, write_file: WriteFile) -> None:
    for annotator, cells in (("a", {"show": "да"}), ("b", {"show": "нет"}), ("a", {"notes": "см. раздел 2"})):
        import_annotation_file(write_file({"question_id": "2"} | cells), annotator)
    assert read_questions_by_id(engine, source)["2"]["ground_truth_show"] is False
    import_annotation_file(write_file({"question_id": "2", "show": "да"}), "a")
    assert read_questions_by_id(engine, source)["2"]["ground_truth_show"] is True


def test_reviews_with_one_time_are_supported() -> None:
    """Older versions stored one time, which applies to each field."""
    old = {"show": True, "notes": "да", "answer_of": "log", "at": "2026-01-01T00:00:00"}
    later = {"show": False, "at": {"show": "2026-02-01T00:00:00"}}
    assert majority_verdict({"a": old, "b": later}, "show") is False
    noted = merge_verdict(old, {"notes": "нет"}, "2026-03-01T00:00:00")
    assert noted["at"] == {"show": "2026-01-01T00:00:00", "notes": "2026-03-01T00:00:00"}
    assert majority_verdict({"a": noted, "b": later}, "show") is False
    assert (
        majority_verdict({"a": merge_verdict(old, {"show": True}, "2026-03-01T00:00:00"), "b": later}, "show") is True
    )


def test_verdicts_on_different_answers_are_ignored(source: str, write_file: WriteFile) -> None:
    """Kappa by hand: the annotators agree on the log's answers; for the others they saw different answers."""
    verdicts = [("0", "log", "log", "да", "да"), ("1", "log", "log", "нет", "нет"),
            ("2", "log", "tier3-x", "да", "нет"), ("3", "tier3-x", "log", "да", "нет")]  # fmt: skip
    for annotator, offset in (("a", 0), ("b", 1)):
        rows = [{"question_id": row[0], "answer_of": row[1 + offset], "answer_ok": row[3 + offset]} for row in verdicts]
        import_annotation_file(write_file(*rows), annotator)
    (agreement_row,) = (pair for pair in annotator_agreement(source)["pairs"] if pair["field"] == "answer_ok")
    assert (agreement_row["n"], agreement_row["agreement"], agreement_row["kappa"]) == (2, 1.0, 1.0)


def test_concurrent_imports_keep_all_verdicts(engine: Engine, source: str, write_file: WriteFile) -> None:
    """Both imports start before either may store; the second builds on the stored result of the first."""
    path = write_file({"question_id": "2", "show": "да", "question_ok": "нет"})
    statement = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with ThreadPoolExecutor(2) as pool:
        with engine.begin() as connection:
            lock_source(connection, source)
            imports = [pool.submit(import_annotation_file, path, annotator) for annotator in ("анна", "олег")]
            deadline = time.monotonic() + 60
            while (n_waiting := connection.scalar(statement)) != 2 and time.monotonic() < deadline:
                time.sleep(0.05)
        assert [result.result(60)["rejected"] for result in imports] == [1, 1] and n_waiting == 2
    assert read_questions_by_id(engine, source)["2"]["review"]["annotators"].keys() == {"анна", "олег"}


def test_majority_ignores_order_of_chunks() -> None:
    named_chunks = (["1", "2"], ["2", "1"], ["3"])
    verdicts = {name: {"at": name, "relevant": ids} for name, ids in zip("abc", named_chunks, strict=True)}
    assert sorted(majority_verdict(verdicts, "relevant")) == ["1", "2"]
