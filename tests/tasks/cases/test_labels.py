"""Labels: their sources, and which questions are evaluated."""

from typing import Any

import pytest

from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus
from yarus.tasks.cases.labels import annotated_cases, count_labels, default_unit, logged_cases, stratum_of_scores
from yarus.tasks.cases.sampling import duplicates_stratum, group_duplicate_questions, question_stratum, question_topics

PAGE = "https://wiki.example/pages/viewpage.action?pageId="
CORPUS = Corpus(["11", "12", "21", "31"], [f"{PAGE}1", f"{PAGE}1", f"{PAGE}2", None], ["a", "b", "c", "d"], None)


def make_row(number: int = 1, text: str = "Где столовая?", **values: Any) -> dict[str, Any]:
    """Return a row of the log as it is read, without an annotation unless given."""
    row = {"question_id": str(number), "question": text, "answer": None, "confluence_url": None, "score": None}
    return row | {"user_id": None} | values


def annotate(number: int = 1, **values: Any) -> dict[str, Any]:
    return make_row(number, **{"origin": "manual", **values})


# labels, unit -> status, relevant, grades
LABELS: list[tuple[dict[str, Any], str, str, list[str], list[float] | None]] = [
    (annotate(relevant_chunk_ids=["11", "21"]), "chunk", "ok", ["11", "21"], None),
    (annotate(relevant_chunk_ids={"11": 3, "21": 1}), "chunk", "ok", ["11", "21"], [3, 1]),
    (annotate(relevant_chunk_ids={"11": 0, "21": 2}), "chunk", "ok", ["21"], [2]),  # 0: judged, not relevant
    (annotate(relevant_chunk_ids={"11": 0}), "chunk", "unlabelled", [], None),
    (annotate(relevant_chunk_ids=["99"]), "chunk", "stale_label", [], None),
    (annotate(relevant_chunk_ids=["99", "11"]), "chunk", "ok", ["11"], None),  # matching labels count
    (annotate(relevant_chunk_ids=[]), "chunk", "unlabelled", [], None),
    (annotate(relevant_chunk_ids=None), "chunk", "unlabelled", [], None),
    (make_row(confluence_url=f"{PAGE}1"), "chunk", "unlabelled", [], None),  # a page does not label a chunk
    (annotate(relevant_chunk_ids=["11", "12"]), "page", "ok", [f"{PAGE}1"], None),
    (annotate(relevant_chunk_ids={"11": 1, "12": 3, "21": 2}), "page", "ok", [f"{PAGE}1", f"{PAGE}2"], [3, 2]),
    (annotate(relevant_chunk_ids=["99"]), "page", "stale_label", [], None),
    (annotate(relevant_chunk_ids=["31"]), "page", "unlabelled", [], None),  # a chunk of no page
    (annotate(relevant_urls=[f"{PAGE}2&preview=x", f"{PAGE}2#top"]), "page", "ok", [f"{PAGE}2"], None),
    (annotate(relevant_urls=[f"{PAGE}9"]), "page", "stale_label", [], None),
    (annotate(confluence_url=f"{PAGE}1"), "page", "unlabelled", [], None),  # reviewed, without a label
    (make_row(confluence_url=f"{PAGE}1&preview=/1/a.png"), "page", "ok", [f"{PAGE}1"], None),
    (make_row(confluence_url=f"{PAGE}9"), "page", "stale_label", [], None),
    (make_row(confluence_url="None"), "page", "unlabelled", [], None),
    (make_row(confluence_url=""), "page", "unlabelled", [], None),
]


@pytest.mark.parametrize(("row", "unit", "status", "relevant", "grades"), LABELS)
def test_annotated_cases(row: Any, unit: Any, status: str, relevant: list[str], grades: list[float] | None) -> None:
    cases, _ = annotated_cases("s", [row], CORPUS, unit)
    [case] = cases.to_pylist()
    assert (case["case_id"], case["status"], case["relevant"], case["grades"]) == ("s:1", status, relevant, grades)
    assert (case["reason"] is None) == (status == "ok")


def test_stale_labels_are_named_and_counted() -> None:
    rows = [annotate(1, relevant_chunk_ids=["99", "11"]), annotate(2, relevant_chunk_ids=["98", "97"])]
    cases, notes = annotated_cases("s", rows, CORPUS, "chunk")
    assert notes == [{"note": "stale labels", "n": 3}]
    assert cases["reason"].to_pylist() == [
        None, "the chunk that is labelled relevant is not in the corpus: 98, 97",
    ]  # fmt: skip


def test_fallback_to_the_logged_page_is_counted() -> None:
    rows = [
        make_row(1, confluence_url=f"{PAGE}1"),
        make_row(2, confluence_url=None),
        make_row(3, confluence_url=f"{PAGE}1", relevant_urls=[f"{PAGE}2"]),  # annotated, without an origin
        annotate(4, confluence_url=f"{PAGE}1"),
        annotate(5, relevant_urls=[f"{PAGE}2"]),
    ]
    assert annotated_cases("s", rows, CORPUS, "page")[1] == [{"note": "page from the log", "n": 1}]
    assert annotated_cases("s", rows, CORPUS, "chunk")[1] == []


@pytest.mark.parametrize("labels", ["11", {"11": None}, {"11": "high"}, 11])
def test_malformed_labels_name_the_question(labels: Any) -> None:
    with pytest.raises(InputError, match=r"annotation.relevant_chunk_ids of question 7: expected a list of ids.*11"):
        annotated_cases("s", [annotate(7, relevant_chunk_ids=labels)], CORPUS, "chunk")


def test_group_is_the_user_or_the_page() -> None:
    rows = [
        annotate(1, user_id="7", relevant_chunk_ids=["11"]),
        annotate(2, relevant_chunk_ids=["12"]),
        annotate(3, relevant_chunk_ids=["99"]),
    ]
    assert annotated_cases("s", rows, CORPUS, "chunk")[0]["group"].to_pylist() == ["user 7", f"{PAGE}1", None]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([5], "confirmed"), ([1], "contradicted"), ([None], "agreement"), ([], "agreement"),
        ([5, 5, None], "confirmed"), ([1, None], "contradicted"), ([5, 1], "agreement"), ([1, 5, 5], "agreement"),
        ([3], "agreement"), ([2, 4], "agreement"), ([5, 3], "confirmed"), ([1, 4], "contradicted"),
    ],
)  # fmt: skip
def test_stratum_of_scores(scores: list[int | None], expected: str) -> None:
    assert stratum_of_scores(scores) == expected


def test_duplicates_become_one_case_with_all_pages() -> None:
    rows = [
        make_row(1, "Где столовая?", confluence_url=f"{PAGE}1", score=5),
        make_row(2, "  где\n СТОЛОВАЯ? ", confluence_url=f"{PAGE}2&preview=x"),
        make_row(3, "Где столовая", confluence_url=f"{PAGE}9", score=1),  # another: no question mark
        make_row(4, "где столовая?", confluence_url=f"{PAGE}1"),
    ]
    cases, notes = logged_cases("s", group_duplicate_questions(rows), CORPUS)
    assert cases.select(["question_id", "relevant", "stratum", "status"]).to_pylist() == [
        {"question_id": "1", "relevant": [f"{PAGE}1", f"{PAGE}2"], "stratum": "confirmed", "status": "ok"},
        {"question_id": "3", "relevant": [], "stratum": "contradicted", "status": "stale_label"},
    ]
    assert notes == [{"note": "stale labels", "n": 1}, {"note": "duplicates merged", "n": 2}]


def test_question_is_never_its_own_label() -> None:
    rows = [make_row(number, f"{number}", confluence_url=f"{PAGE}1", score=5) for number in (11, 12, 21)]
    cases, _ = logged_cases("s", group_duplicate_questions(rows), CORPUS)  # question ids equal chunk ids here
    assert {label for labels in cases["relevant"].to_pylist() for label in labels} == {f"{PAGE}1"}


def test_logged_cases_of_one_row_and_of_none() -> None:
    cases, notes = logged_cases("s", group_duplicate_questions([make_row(confluence_url=f"{PAGE}1", score=5)]), CORPUS)
    assert (len(cases), cases["stratum"].to_pylist(), notes) == (1, ["confirmed"], [])
    assert (group_duplicate_questions([]), logged_cases("s", [], CORPUS)[0].num_rows) == ([], 0)


def test_default_unit_follows_most_labelled_questions() -> None:
    assert default_unit([make_row(), annotate(relevant_chunk_ids=["11"])]) == "chunk"
    assert default_unit([make_row(), annotate(relevant_urls=["x"], relevant_chunk_ids=[])]) == "page"
    assert default_unit([make_row()]) == "page"
    logged = [make_row(number, confluence_url=f"{PAGE}1") for number in range(335)]
    chunk_labelled = [annotate(number, relevant_chunk_ids=["11"]) for number in range(20)]
    assert default_unit([*logged, *chunk_labelled]) == "page"  # of 355 with a label 20 have a chunk's
    cases, _ = annotated_cases("s", [*logged, *chunk_labelled], CORPUS, "page")
    assert set(cases["status"].to_pylist()) == {"ok"}  # a chunk's label also labels its page
    assert default_unit([*logged[:20], *chunk_labelled]) == "chunk"
    assert default_unit([*logged[:21], *chunk_labelled]) == "page"


def test_count_labels_notes_labels_left_out() -> None:
    rows = [make_row(1, confluence_url=f"{PAGE}1"), annotate(2, relevant_chunk_ids=["11"]), make_row(3)]
    counts = count_labels(rows)
    assert (counts.labelled, counts.chunks, counts.unit) == (2, 1, "chunk")
    assert counts.note("chunk") == [{"note": "pages only", "n": 1, "of": 2}]
    assert counts.note("page") == [{"note": "chunks as pages", "n": 1, "of": 2}]
    assert count_labels(rows[1:]).note("chunk") == count_labels(rows[:1]).note("page") == []


def test_topics_fall_back_to_the_shown_page() -> None:
    rows = [
        annotate(1, cluster="Общежитие", confluence_url=f"{PAGE}1"),
        annotate(2, cluster=None, confluence_url=f"{PAGE}1"),
        make_row(3, confluence_url=f"{PAGE}1&preview=x"),
        make_row(4, confluence_url="null"),
    ]
    assert question_topics(rows) == (["Общежитие", None, f"{PAGE}1", None], [{"note": "topic from the log", "n": 1}])


def test_strata_of_questions_for_sampling() -> None:
    assert question_stratum(annotate(cluster="Wi-Fi", score=5)) == "Wi-Fi|5"
    assert question_stratum(make_row(confluence_url=f"{PAGE}1&preview=x")) == f"{PAGE}1|None"
    assert duplicates_stratum([make_row(confluence_url=f"{PAGE}1", score=5), make_row(score=1)]) == f"{PAGE}1|agreement"


def test_duplicates_share_labels_and_the_best_grade() -> None:
    rows = [annotate(1, relevant_chunk_ids={"11": 1, "21": 2}), annotate(2, relevant_chunk_ids={"12": 0, "31": 1})]
    cases, _ = annotated_cases("s", rows, CORPUS, "chunk", {"11": "11", "21": "11", "12": "12", "31": "12"})
    first, second = cases.to_pylist()
    assert dict(zip(first["relevant"], first["grades"], strict=True)) == {"11": 2, "21": 2}
    assert (first["labelled"], first["irrelevant"]) == (["11=1", "21=2"], [])
    assert (second["relevant"], second["irrelevant"]) == (["31", "12"], [])  # one of the duplicates is relevant
    assert cases["case_id"].to_pylist() == ["s:1", "s:2"]


def test_irrelevant_labels_are_separate() -> None:
    row = annotate(relevant_chunk_ids={"11": 0, "21": 2}, relevant_urls={f"{PAGE}1": 0, f"{PAGE}2": 1})
    [case] = annotated_cases("s", [row], CORPUS, "chunk")[0].to_pylist()
    assert (case["relevant"], case["irrelevant"], case["labelled"]) == (["21"], ["11"], ["11=0", "21=2"])
    [case] = annotated_cases("s", [row], CORPUS, "page")[0].to_pylist()
    assert (case["relevant"], case["irrelevant"]) == ([f"{PAGE}2"], [f"{PAGE}1"])
    [case] = annotated_cases("s", [annotate(relevant_chunk_ids={"11": 0, "99": 0})], CORPUS, "chunk")[0].to_pylist()
    assert case["status"] == "unlabelled" and case["reason"].endswith("what was judged (2) is not relevant")
