"""Frozen case sets: content and hash, differences, splits, and evaluations unaffected by the source."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.support.evaluations import evaluate, get_value, load, question
from yarus.db import case_sets, journal
from yarus.db.errors import InputError
from yarus.tasks.cases.frozen_sets import diff_frozen_sets, find_frozen_set, freeze, list_frozen_sets, split_frozen_set

MONTHS = [f"2026-{month:02d}-15T12:00:00+00:00" for month in range(1, 11)]


@pytest.fixture
def source(at_home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Load ten questions, one per month, into a source of the test's own."""
    name = request.node.name.removeprefix("test_")[:38]
    return load(tmp_path, name, [question(i, created_at=MONTHS[i]) for i in range(10)])


def test_freeze_returns_name_and_hash(source: str) -> None:
    frozen_set = freeze("frozen_all", source)
    assert (frozen_set["n_cases"], frozen_set["rule"], len(frozen_set["sha256"])) == (10, {}, 64)
    assert freeze("frozen_again", source)["sha256"] == frozen_set["sha256"]  # equal content under another name
    assert freeze("frozen_all", source) == frozen_set  # freezing again changes nothing
    sample_set = freeze("frozen_some", source, limit=4, seed=3)
    assert sample_set["n_cases"] == 4 and sample_set["rule"] == {"limit": 4, "seed": 3}
    with pytest.raises(InputError, match=r"'frozen_some' is frozen with other content \(4 cases.*another name"):
        freeze("frozen_some", source, limit=5)
    assert {"frozen_all", "frozen_some"} <= {listed_set["name"] for listed_set in list_frozen_sets()}


def test_freeze_selects_by_time(source: str) -> None:
    march = freeze(
        "frozen_march", source, since=datetime(2026, 3, 1, tzinfo=UTC), until=datetime(2026, 4, 1, tzinfo=UTC)
    )
    assert march["n_cases"] == 1
    with pytest.raises(InputError, match="would be empty"):
        freeze("frozen_nothing", source, since=datetime(2030, 1, 1, tzinfo=UTC))


def test_read_returns_the_frozen_content(engine: Engine, source: str, tmp_path: Path) -> None:
    freeze("frozen_read", source)
    before = case_sets.read_case_set(engine, "frozen_read")
    assert before[3]["created_at"] == datetime(2026, 4, 15, 12, tzinfo=UTC)
    load(tmp_path, source, [question(i, question="Другой вопрос?") for i in range(3)])
    assert case_sets.read_case_set(engine, "frozen_read") == before
    assert case_sets.content_hash(before) == case_sets.find_case_set(engine, "frozen_read").sha256


def test_difference_lists_changes(source: str, tmp_path: Path) -> None:
    freeze("frozen_before", source)
    changed = [question(0, relevant_chunk_ids=["c5"], created_at=MONTHS[0]), question(11)]
    load(tmp_path, source, [*changed, question(1, question="Иначе?", created_at=MONTHS[1])])
    freeze("frozen_after", source)
    changes = diff_frozen_sets("frozen_before", "frozen_after")
    assert (changes["added"], changes["removed"], changes["reworded"]) == (["11"], [], ["1"])
    assert changes["relabelled"] == [
        {"question_id": "0", "labels": {"relevant_chunk_ids": {"before": ["c0"], "after": ["c5"]}}}
    ]
    assert diff_frozen_sets("frozen_after", "frozen_before")["removed"] == ["11"]
    with pytest.raises(InputError, match=r"no case set 'frozen_befor'; did you mean 'frozen_before'"):
        diff_frozen_sets("frozen_befor", "frozen_after")


def test_split_divides_by_time(engine: Engine, source: str) -> None:
    freeze("frozen_whole", source, until=datetime(2026, 10, 30, tzinfo=UTC))
    result = split_frozen_set("frozen_whole", datetime(2026, 7, 1, tzinfo=UTC), ("frozen_train", "frozen_test"))
    assert [half["n_cases"] for half in result["sets"]] == [6, 4]
    edge_result = split_frozen_set("frozen_whole", datetime.fromisoformat(MONTHS[3]), ("frozen_early", "frozen_late"))
    assert [half["n_cases"] for half in edge_result["sets"]] == [3, 7]  # the given time belongs to the second half
    ids = [{row["question_id"] for row in case_sets.read_case_set(engine, half["name"])} for half in result["sets"]]
    assert not ids[0] & ids[1]
    with pytest.raises(InputError, match="no question was asked before"):
        split_frozen_set("frozen_whole", datetime(2020, 1, 1, tzinfo=UTC), ("frozen_a", "frozen_b"))
    with pytest.raises(InputError, match="two names"):
        split_frozen_set("frozen_whole", datetime(2026, 7, 1, tzinfo=UTC), ("frozen_a", "frozen_a"))


def test_split_into_a_taken_name_freezes_nothing(engine: Engine, source: str) -> None:
    freeze("frozen_parted", source)
    taken = freeze("frozen_taken", source, limit=2)
    for into in (("frozen_half", "frozen_taken"), ("frozen_taken", "frozen_half")):
        with pytest.raises(InputError, match="'frozen_taken' is frozen with other content"):
            split_frozen_set("frozen_parted", datetime(2026, 7, 1, tzinfo=UTC), into)
        with pytest.raises(InputError, match="no case set 'frozen_half'"):
            case_sets.find_case_set(engine, "frozen_half")
    assert case_sets.find_case_set(engine, "frozen_taken").sha256 == taken["sha256"]
    halves = [
        split_frozen_set("frozen_parted", datetime(2026, 7, 1, tzinfo=UTC), ("frozen_half", "frozen_rest"))
        for _ in "ab"
    ]
    assert halves[0] == halves[1]  # splitting again changes nothing


def test_evaluation_of_a_frozen_set_is_stable(engine: Engine, source: str, tmp_path: Path) -> None:
    """Later changes of the source do not affect it; the comparability key has name and hash."""
    frozen_set = freeze("frozen_run", source)
    before, rolling = evaluate("tier1", source=source, cases="frozen_run"), evaluate("tier1", source=source)
    wrong = [question(i, relevant_chunk_ids=[f"c{(i + 1) % 10}"], created_at=MONTHS[i]) for i in range(10)]
    load(tmp_path, source, [*wrong, question(12)])
    after, moved = evaluate("tier1", source=source, cases="frozen_run"), evaluate("tier1", source=source)
    assert before["cases"] == {"name": "frozen_run", "sha256": frozen_set["sha256"]}
    assert after["comparability_key"] == before["comparability_key"] != rolling["comparability_key"]
    assert get_value(after, "mrr") == get_value(before, "mrr") and get_value(moved, "mrr") != get_value(rolling, "mrr")
    assert (after["n_cases"], moved["n_cases"]) == (10, 11) and moved["cases"] is None
    parts: dict[str, Any] = journal.find_evaluation(engine, after["evaluation_id"])["comparability"]
    assert parts["cases"] == {"name": "frozen_run", "sha256": frozen_set["sha256"]}
    few = evaluate("tier1", source=source, cases="frozen_run", limit=5)
    assert few["n_cases"] == 5 and few["comparability_key"] != after["comparability_key"]


def test_evaluation_of_a_frozen_production_log(
    engine: Engine, at_home: Path, production: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live log is identified by its source, a frozen copy by its content; the source is not written to."""
    monkeypatch.setenv("YARUS_SOURCE_URL", production("frozen_production"))
    frozen_set = freeze("frozen_production_log", "production")
    assert frozen_set["n_cases"] == 4
    rolling = evaluate("tier1", source="production")
    fixed = evaluate("tier1", source="production", cases="frozen_production_log")
    keys = [journal.find_evaluation(engine, run["evaluation_id"])["comparability"]["cases"] for run in (rolling, fixed)]
    assert keys == [{"source": "production"}, {"name": "frozen_production_log", "sha256": frozen_set["sha256"]}]
    assert get_value(fixed, "mrr") == get_value(rolling, "mrr") and fixed["n_cases"] == rolling["n_cases"]


def test_tier0_of_chunks_ignores_the_case_set(source: str) -> None:
    freeze("frozen_tier0", source)
    assert evaluate("tier0", source=source, cases="frozen_tier0", texts="chunks")["cases"] is None


def test_find_frozen_set_rejects_a_set_of_another_source(at_home: Path, source: str) -> None:
    freeze("frozen_other", source)
    with pytest.raises(InputError, match=rf"frozen from source '{source}', not 'sample'.*--source {source}"):
        find_frozen_set("frozen_other", "sample")


def test_case_set_rows_are_readable_by_sql(engine: Engine, source: str) -> None:
    freeze("frozen_sql", source)
    with engine.connect() as connection:
        statement = (
            "SELECT count(*), count(DISTINCT content->>'question') FROM yarus.case_set_row WHERE name = 'frozen_sql'"
        )
        assert tuple(connection.execute(text(statement)).one()) == (10, 10)
