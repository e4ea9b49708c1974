"""What recorded answers found and failed at: pages of passages that are named by id, errors after a beginning."""

from pathlib import Path

from tests.support.evaluations import PAGE, evaluate, load, question, rows_of


def test_a_passage_is_of_the_page_that_it_has_in_the_corpus(at_home: Path, tmp_path: Path) -> None:
    """One without a page there is no page that could have been found."""
    chunks = [
        {"id": "k0", "text": "Правило 0 велит сдать книгу.", "confluence_url": PAGE.format(0)},
        {"id": "k1", "text": "Ничья заметка.", "confluence_url": None},
    ]
    labels = {"relevant_chunk_ids": [], "relevant_urls": [PAGE.format(0)]}
    asked = question(0, answer="Сдать книгу.", contexts=[{"id": "k1"}, {"id": "k0"}], **labels)
    [row] = rows_of(evaluate("tier3", source=load(tmp_path, "recorded_named_by_id", [asked], chunks), sut="recorded"))
    assert (row["retrieved"], row["hit_rate@1"]) == ([PAGE.format(0)], 1.0)
    assert row["context"] == "Ничья заметка.\n\nПравило 0 велит сдать книгу."


def test_an_answer_that_broke_off_is_none(at_home: Path, tmp_path: Path) -> None:
    asked = [question(0, answer="Сдать", error="stream broke"), question(1, answer="Сдать книгу.")]
    broken, whole = rows_of(evaluate("tier3", source=load(tmp_path, "recorded_broken_off", asked), sut="recorded"))
    assert (broken["status"], broken["e2e_score"]) == ("sut_error", None)
    assert broken["reason"] == "stream broke; until then it had said 'Сдать'"
    assert whole["status"] == "ok"
