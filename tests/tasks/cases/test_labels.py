"""What counts as relevant, from where, and which questions are evaluated."""

from typing import Any

import pytest

from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus
from yarus.tasks.cases.labels import annotated_cases, default_unit, labels_of, logged_cases, stratum
from yarus.tasks.cases.sampling import merged, page_and_stratum, topic_and_score, topics

PAGE = "https://wiki.example/pages/viewpage.action?pageId="
CORPUS = Corpus(["11", "12", "21", "31"], [f"{PAGE}1", f"{PAGE}1", f"{PAGE}2", None], ["a", "b", "c", "d"], None)


def question(number: int = 1, asked: str = "Где столовая?", **values: Any) -> dict[str, Any]:
    """A row of the log as it is read: without an annotation, unless one is given."""
    row = {"question_id": str(number), "question": asked, "answer": None, "confluence_url": None, "score": None}
    return row | {"user_id": None} | values


def annotated(number: int = 1, **values: Any) -> dict[str, Any]:
    return question(number, **{"origin": "manual", **values})


# labels, unit -> status, relevant, grades
LABELS: list[tuple[dict[str, Any], str, str, list[str], list[float] | None]] = [
    (annotated(relevant_chunk_ids=["11", "21"]), "chunk", "ok", ["11", "21"], None),
    (annotated(relevant_chunk_ids={"11": 3, "21": 1}), "chunk", "ok", ["11", "21"], [3, 1]),
    (annotated(relevant_chunk_ids={"11": 0, "21": 2}), "chunk", "ok", ["21"], [2]),  # 0: judged, not relevant
    (annotated(relevant_chunk_ids={"11": 0}), "chunk", "unlabelled", [], None),
    (annotated(relevant_chunk_ids=["99"]), "chunk", "stale_label", [], None),
    (annotated(relevant_chunk_ids=["99", "11"]), "chunk", "ok", ["11"], None),  # what is left counts
    (annotated(relevant_chunk_ids=[]), "chunk", "unlabelled", [], None),
    (annotated(relevant_chunk_ids=None), "chunk", "unlabelled", [], None),
    (question(confluence_url=f"{PAGE}1"), "chunk", "unlabelled", [], None),  # a page is no chunk
    (annotated(relevant_chunk_ids=["11", "12"]), "page", "ok", [f"{PAGE}1"], None),
    (annotated(relevant_chunk_ids={"11": 1, "12": 3, "21": 2}), "page", "ok", [f"{PAGE}1", f"{PAGE}2"], [3, 2]),
    (annotated(relevant_chunk_ids=["99"]), "page", "stale_label", [], None),
    (annotated(relevant_chunk_ids=["31"]), "page", "unlabelled", [], None),  # a chunk of no page
    (annotated(relevant_urls=[f"{PAGE}2&preview=x", f"{PAGE}2#top"]), "page", "ok", [f"{PAGE}2"], None),
    (annotated(relevant_urls=[f"{PAGE}9"]), "page", "stale_label", [], None),
    (annotated(confluence_url=f"{PAGE}1"), "page", "unlabelled", [], None),  # somebody looked, and named none
    (question(confluence_url=f"{PAGE}1&preview=/1/a.png"), "page", "ok", [f"{PAGE}1"], None),
    (question(confluence_url=f"{PAGE}9"), "page", "stale_label", [], None),
    (question(confluence_url="None"), "page", "unlabelled", [], None),
    (question(confluence_url=""), "page", "unlabelled", [], None),
]


@pytest.mark.parametrize(("row", "unit", "status", "relevant", "grades"), LABELS)
def test_labels(row: Any, unit: Any, status: str, relevant: list[str], grades: list[float] | None) -> None:
    cases, _ = annotated_cases("s", [row], CORPUS, unit)
    [case] = cases.to_pylist()
    assert (case["case_id"], case["status"], case["relevant"], case["grades"]) == ("s:1", status, relevant, grades)
    assert (case["reason"] is None) == (status == "ok")


def test_a_label_that_names_nothing_is_told_by_name_and_counted() -> None:
    rows = [annotated(1, relevant_chunk_ids=["99", "11"]), annotated(2, relevant_chunk_ids=["98", "97"])]
    cases, notes = annotated_cases("s", rows, CORPUS, "chunk")
    assert notes == [{"note": "stale labels", "n": 3}]
    assert cases["reason"].to_pylist() == [
        None, "the chunk that is labelled relevant is not in the corpus: 98, 97",
    ]  # fmt: skip


def test_the_fallback_to_the_log_is_counted_where_it_was_used() -> None:
    rows = [
        question(1, confluence_url=f"{PAGE}1"),
        question(2, confluence_url=None),
        question(3, confluence_url=f"{PAGE}1", relevant_urls=[f"{PAGE}2"]),  # annotated, if by an unknown hand
        annotated(4, confluence_url=f"{PAGE}1"),
        annotated(5, relevant_urls=[f"{PAGE}2"]),
    ]
    assert annotated_cases("s", rows, CORPUS, "page")[1] == [{"note": "page from the log", "n": 1}]
    assert annotated_cases("s", rows, CORPUS, "chunk")[1] == []


@pytest.mark.parametrize("labels", ["11", {"11": None}, {"11": "high"}, 11])
def test_labels_that_cannot_be_read_name_the_question(labels: Any) -> None:
    with pytest.raises(InputError, match=r"annotation.relevant_chunk_ids of question 7: expected a list of ids.*11"):
        annotated_cases("s", [annotated(7, relevant_chunk_ids=labels)], CORPUS, "chunk")


def test_questions_of_one_user_or_about_one_page_are_one_group() -> None:
    rows = [
        annotated(1, user_id="7", relevant_chunk_ids=["11"]),
        annotated(2, relevant_chunk_ids=["12"]),
        annotated(3, relevant_chunk_ids=["99"]),
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
def test_conflicting_scores_and_2_to_4_say_nothing(scores: list[int | None], expected: str) -> None:
    assert stratum(scores) == expected


def test_duplicates_are_one_case_with_the_pages_of_all() -> None:
    rows = [
        question(1, "Где столовая?", confluence_url=f"{PAGE}1", score=5),
        question(2, "  где\n СТОЛОВАЯ? ", confluence_url=f"{PAGE}2&preview=x"),
        question(3, "Где столовая", confluence_url=f"{PAGE}9", score=1),  # another question: no question mark
        question(4, "где столовая?", confluence_url=f"{PAGE}1"),
    ]
    cases, notes = logged_cases("s", merged(rows), CORPUS)
    assert cases.select(["question_id", "relevant", "stratum", "status"]).to_pylist() == [
        {"question_id": "1", "relevant": [f"{PAGE}1", f"{PAGE}2"], "stratum": "confirmed", "status": "ok"},
        {"question_id": "3", "relevant": [], "stratum": "contradicted", "status": "stale_label"},
    ]
    assert notes == [{"note": "stale labels", "n": 1}, {"note": "duplicates merged", "n": 2}]


def test_a_question_is_never_its_own_label() -> None:
    rows = [question(number, f"{number}", confluence_url=f"{PAGE}1", score=5) for number in (11, 12, 21)]
    cases, _ = logged_cases("s", merged(rows), CORPUS)  # ids of questions that are ids of chunks, too
    assert {label for labels in cases["relevant"].to_pylist() for label in labels} == {f"{PAGE}1"}


def test_a_log_of_one_row_and_of_none() -> None:
    cases, notes = logged_cases("s", merged([question(confluence_url=f"{PAGE}1", score=5)]), CORPUS)
    assert (len(cases), cases["stratum"].to_pylist(), notes) == (1, ["confirmed"], [])
    assert (merged([]), logged_cases("s", [], CORPUS)[0].num_rows) == ([], 0)


def test_the_unit_is_what_most_labelled_questions_have() -> None:
    assert default_unit([question(), annotated(relevant_chunk_ids=["11"])]) == "chunk"
    assert default_unit([question(), annotated(relevant_urls=["x"], relevant_chunk_ids=[])]) == "page"
    assert default_unit([question()]) == "page"
    shown = [question(number, confluence_url=f"{PAGE}1") for number in range(335)]
    few = [annotated(number, relevant_chunk_ids=["11"]) for number in range(20)]
    assert default_unit([*shown, *few]) == "page"  # of 355 with a label 20 have a chunk's
    cases, _ = annotated_cases("s", [*shown, *few], CORPUS, "page")
    assert set(cases["status"].to_pylist()) == {"ok"}  # and a chunk's label is one of its page
    assert default_unit([*shown[:20], *few]) == "chunk"
    assert default_unit([*shown[:21], *few]) == "page"


def test_what_a_unit_leaves_out_is_noted() -> None:
    rows = [question(1, confluence_url=f"{PAGE}1"), annotated(2, relevant_chunk_ids=["11"]), question(3)]
    found = labels_of(rows)
    assert (found.labelled, found.chunks, found.unit) == (2, 1, "chunk")
    assert found.note("chunk") == [{"note": "pages only", "n": 1, "of": 2}]
    assert found.note("page") == [{"note": "chunks as pages", "n": 1, "of": 2}]
    assert labels_of(rows[1:]).note("chunk") == labels_of(rows[:1]).note("page") == []


def test_the_topic_is_the_annotated_one_else_the_page_that_was_shown() -> None:
    rows = [
        annotated(1, cluster="Общежитие", confluence_url=f"{PAGE}1"),
        annotated(2, cluster=None, confluence_url=f"{PAGE}1"),
        question(3, confluence_url=f"{PAGE}1&preview=x"),
        question(4, confluence_url="null"),
    ]
    assert topics(rows) == (["Общежитие", None, f"{PAGE}1", None], [{"note": "topic from the log", "n": 1}])


def test_what_a_sample_is_stratified_by() -> None:
    assert topic_and_score(annotated(cluster="Wi-Fi", score=5)) == "Wi-Fi|5"
    assert topic_and_score(question(confluence_url=f"{PAGE}1&preview=x")) == f"{PAGE}1|None"
    assert page_and_stratum([question(confluence_url=f"{PAGE}1", score=5), question(score=1)]) == f"{PAGE}1|agreement"


def test_a_label_on_one_twin_is_a_label_on_all_and_the_best_grade_counts() -> None:
    rows = [annotated(1, relevant_chunk_ids={"11": 1, "21": 2}), annotated(2, relevant_chunk_ids={"12": 0, "31": 1})]
    cases, _ = annotated_cases("s", rows, CORPUS, "chunk", {"11": "11", "21": "11", "12": "12", "31": "12"})
    first, second = cases.to_pylist()
    assert dict(zip(first["relevant"], first["grades"], strict=True)) == {"11": 2, "21": 2}
    assert (first["labelled"], first["irrelevant"]) == (["11=1", "21=2"], [])
    assert (second["relevant"], second["irrelevant"]) == (["31", "12"], [])  # one of them was called relevant
    assert cases["case_id"].to_pylist() == ["s:1", "s:2"]


def test_what_was_judged_not_relevant_is_kept_apart() -> None:
    row = annotated(relevant_chunk_ids={"11": 0, "21": 2}, relevant_urls={f"{PAGE}1": 0, f"{PAGE}2": 1})
    [case] = annotated_cases("s", [row], CORPUS, "chunk")[0].to_pylist()
    assert (case["relevant"], case["irrelevant"], case["labelled"]) == (["21"], ["11"], ["11=0", "21=2"])
    [case] = annotated_cases("s", [row], CORPUS, "page")[0].to_pylist()
    assert (case["relevant"], case["irrelevant"]) == ([f"{PAGE}2"], [f"{PAGE}1"])
    [case] = annotated_cases("s", [annotated(relevant_chunk_ids={"11": 0, "99": 0})], CORPUS, "chunk")[0].to_pylist()
    assert case["status"] == "unlabelled" and case["reason"].endswith("what was judged (2) is not relevant")
