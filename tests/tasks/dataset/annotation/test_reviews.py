"""Reviews of several annotators: what they come to, how far they agree, and two imports at once."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.support.evaluations import questions_of
from yarus.db.errors import InputError
from yarus.db.loading.fill import lock
from yarus.tasks.dataset.annotation.reviews import agreement, labels_of, majority, merged
from yarus.tasks.dataset.annotation.round_trip import import_

Make = Callable[..., Path]


def test_reviews_with_chunks_and_pages_in_one_list_are_read_on() -> None:
    """As older versions have stored them: what looked like an address was a page."""
    old = {"relevant": ["c1", "https://x/a"], "at": "2026-01-01T00:00:00"}
    row = {"question_id": "1", "confluence_url": None, "answer": None, "score": None}
    labels = labels_of(row, {"a": old})
    assert (labels["relevant_chunk_ids"], labels["relevant_urls"]) == (["c1"], ["https://x/a"])
    same = {"relevant": {"pages": ["https://x/a"], "chunks": ["c1"]}, "at": {"relevant": "2026-01-02T00:00:00"}}
    other = {"relevant": {"chunks": [], "pages": []}, "at": {"relevant": "2026-01-03T00:00:00"}}
    assert majority({"a": old, "b": same, "c": other}, "relevant") == same["relevant"]


def test_two_annotators_agree_or_not(engine: Engine, source: str, filled: Make) -> None:
    """Kappa by hand: 10 questions, 8 equal, one says yes 5 times, the other 5: (0.8 - 0.5) / (1 - 0.5) = 0.6."""
    first = ["да"] * 5 + ["нет"] * 5
    second = ["да"] * 4 + ["нет"] * 5 + ["да"]
    with pytest.raises(InputError, match="nobody has labelled it"):
        agreement(source)
    import_(filled(*({"question_id": str(n), "show": said} for n, said in enumerate(first))), "первый")
    assert (agreement(source)["pairs"], agreement(source)["alpha"]) == ([], {})
    import_(filled(*({"question_id": str(n), "show": said} for n, said in enumerate(second))), "второй")
    document = agreement(source)
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


def test_the_majority_decides_and_the_last_word_where_there_is_none(engine: Engine, source: str, filled: Make) -> None:
    for annotator, said in (("a", "да"), ("b", "нет")):
        import_(
            filled({"question_id": "2", "question_ok": said, "relevant": "c5" if said == "да" else "c6"}), annotator
        )
    rows = questions_of(engine, source)
    assert rows["2"]["review"]["rejected"] is True and rows["2"]["relevant_chunk_ids"] == ["c6"]
    import_(filled({"question_id": "2", "question_ok": "да", "relevant": "c5"}), "c")
    rows = questions_of(engine, source)
    assert rows["2"]["review"]["rejected"] is False and rows["2"]["relevant_chunk_ids"] == ["c5"]


def test_who_adds_a_note_does_not_speak_again_of_the_rest(engine: Engine, source: str, filled: Make) -> None:
    for annotator, said in (("a", {"show": "да"}), ("b", {"show": "нет"}), ("a", {"notes": "см. раздел 2"})):
        import_(filled({"question_id": "2"} | said), annotator)
    assert questions_of(engine, source)["2"]["ground_truth_show"] is False
    import_(filled({"question_id": "2", "show": "да"}), "a")
    assert questions_of(engine, source)["2"]["ground_truth_show"] is True


def test_reviews_with_one_time_for_all_are_read_on() -> None:
    """As older versions have stored them: the time counts for each of their fields."""
    old = {"show": True, "notes": "да", "answer_of": "log", "at": "2026-01-01T00:00:00"}
    other = {"show": False, "at": {"show": "2026-02-01T00:00:00"}}
    assert majority({"a": old, "b": other}, "show") is False
    noted = merged(old, {"notes": "нет"}, "2026-03-01T00:00:00")
    assert noted["at"] == {"show": "2026-01-01T00:00:00", "notes": "2026-03-01T00:00:00"}
    assert majority({"a": noted, "b": other}, "show") is False
    assert majority({"a": merged(old, {"show": True}, "2026-03-01T00:00:00"), "b": other}, "show") is True


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
    assert questions_of(engine, source)["2"]["review"]["annotators"].keys() == {"анна", "олег"}


def test_the_order_in_which_chunks_are_named_does_not_count() -> None:
    said = (["1", "2"], ["2", "1"], ["3"])
    verdicts = {name: {"at": name, "relevant": ids} for name, ids in zip("abc", said, strict=True)}
    assert sorted(majority(verdicts, "relevant")) == ["1", "2"]
