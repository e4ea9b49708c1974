"""Check the pages and failures of recorded answers: passages named by id, errors after a beginning."""

from pathlib import Path

from tests.support.evaluations import PAGE_URL, evaluate, load, question, read_rows


def test_passage_takes_page_of_corpus(at_home: Path, tmp_path: Path) -> None:
    """Ignore a passage without a page, because no page could have been found."""
    chunks = [
        {"id": "k0", "text": "Правило 0 велит сдать книгу.", "confluence_url": PAGE_URL.format(0)},
        {"id": "k1", "text": "Ничья заметка.", "confluence_url": None},
    ]
    labels = {"relevant_chunk_ids": [], "relevant_urls": [PAGE_URL.format(0)]}
    entry = question(0, answer="Сдать книгу.", contexts=[{"id": "k1"}, {"id": "k0"}], **labels)
    [row] = read_rows(evaluate("tier3", source=load(tmp_path, "recorded_named_by_id", [entry], chunks), sut="recorded"))
    assert (row["retrieved"], row["hit_rate@1"]) == ([PAGE_URL.format(0)], 1.0)
    assert row["context"] == "Ничья заметка.\n\nПравило 0 велит сдать книгу."


def test_broken_off_answer_is_an_error(at_home: Path, tmp_path: Path) -> None:
    rows = [question(0, answer="Сдать", error="stream broke"), question(1, answer="Сдать книгу.")]
    broken, complete = read_rows(evaluate("tier3", source=load(tmp_path, "recorded_broken_off", rows), sut="recorded"))
    assert (broken["status"], broken["e2e_score"]) == ("sut_error", None)
    assert broken["reason"] == "stream broke; until then it had said 'Сдать'"
    assert complete["status"] == "ok"
