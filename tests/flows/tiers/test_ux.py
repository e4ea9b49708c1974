"""User experience: what a cache could have served, question by question, and how dialogs hang together."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.evaluations import PAGE, evaluate, load, question, rows_of, value
from yarus.db.errors import InputError
from yarus.tasks.models.embedding.embedders import embedder

Document = dict[str, Any]
THRESHOLDS = {"": 0.85, "@0.8": 0.8, "@0.9": 0.9, "@0.95": 0.95}


@pytest.fixture(scope="module")
def sample(night: dict[str, Document]) -> tuple[list[Document], np.ndarray]:
    rows = rows_of(night["ux"])
    vectors = embedder("lexical").encode([row["question"] for row in rows]).astype(np.float64)
    return rows, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_hits_are_those_of_a_plain_loop(night: dict[str, Document], sample: tuple[list[Document], np.ndarray]) -> None:
    rows, unit = sample
    nearest: list[tuple[float, Document] | None] = []
    for at, row in enumerate(rows):
        earlier = [i for i, other in enumerate(rows) if other["score"] == 5 and other["asked_at"] < row["asked_at"]]
        best = max(earlier, key=lambda i: round(float(unit[at] @ unit[i]), 9), default=None)
        nearest.append(None if best is None else (float(unit[at] @ unit[best]), rows[best]))
    for suffix, threshold in THRESHOLDS.items():
        hits = [found is not None and found[0] > threshold for found in nearest]
        known = [
            found[1]["page"] != row["page"]
            for row, found, hit in zip(rows, nearest, hits, strict=True)
            if hit and found and row["page"] and found[1]["page"]
        ]
        assert value(night["ux"], f"cache_hit_rate{suffix}") == pytest.approx(np.mean(hits), abs=1e-12)
        assert value(night["ux"], f"cache_wrong_hit_rate{suffix}") == pytest.approx(np.mean(known), abs=1e-12)
        assert night["ux"]["metrics"][f"cache_wrong_hit_rate{suffix}"]["n_scored"] == len(known) > 0


def test_dialogs_are_averaged_over_dialogs(
    night: dict[str, Document], sample: tuple[list[Document], np.ndarray]
) -> None:
    rows, unit = sample
    turns: dict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if row["dialog"] is not None:
            turns[row["dialog"]].append(at)
    several = [unit[at] for at in turns.values() if len(at) > 1]
    consecutive = [np.mean([a @ b for a, b in pairwise(some)]) for some in several]
    pairs = [np.mean(np.maximum(some @ some.T, 0)[np.triu_indices(len(some), 1)]) for some in several]
    assert value(night["ux"], "context_preservation") == pytest.approx(np.mean(consecutive), abs=1e-7)
    assert value(night["ux"], "multi_turn_consistency") == pytest.approx(np.mean(pairs), abs=1e-7)
    assert night["ux"]["metrics"]["context_preservation"]["n_scored"] == len(several) > 20


def asked(i: int, text: str, at: str, **more: Any) -> Document:
    return question(i, question=text, created_at=f"2026-03-01T{at}:00Z", user_id=i) | more


def test_only_earlier_good_answers_are_in_the_cache(at_home: Path, tmp_path: Path) -> None:
    text = "Когда пересдача экзамена?"
    rows = [
        asked(1, text, "10:00", score=1),  # nothing is earlier
        asked(2, text, "10:00", score=5),  # at the same time: not earlier
        asked(3, text, "10:01", score=None, confluence_url=PAGE.format(2)),  # finds 2, of the same page
        asked(4, text, "10:02", score=None, confluence_url=PAGE.format(7)),  # finds 2, of another page
        asked(5, "Где столовая?", "10:03", score=5),  # another question
        question(7, question=text, created_at=None),  # without a time
    ]
    summary = evaluate("ux", source=load(tmp_path, "cached", rows))
    found = {row["question_id"]: row for row in rows_of(summary)}
    assert {key: row["cache_hit_rate"] for key, row in found.items()} == {
        "1": 0, "2": 0, "3": 1, "4": 1, "5": 0, "7": None
    }  # fmt: skip
    assert [found[key]["cache_wrong_hit_rate"] for key in "1345"] == [None, 0, 1, None]
    assert found["3"]["nearest_earlier"] == "cached:2"
    assert (value(summary, "cache_hit_rate"), value(summary, "cache_wrong_hit_rate")) == (0.4, 0.5)


def test_dialogs_of_one_turn_and_no_hits_are_not_measured(at_home: Path, tmp_path: Path) -> None:
    rows = [asked(i, text, f"1{i}:00") for i, text in enumerate(["Где столовая?", "Кто ректор?", "Как взять книгу?"])]
    summary = evaluate("ux", source=load(tmp_path, "single_turns", rows))
    assert value(summary, "cache_hit_rate") == 0  # measured: nothing was near
    assert summary["metrics"]["cache_wrong_hit_rate"]["reason"] == "no question hits the cache"
    for name in ("context_preservation", "multi_turn_consistency"):
        assert value(summary, name) is None
        assert summary["metrics"][name]["reason"].startswith("undefined: no dialog of two questions or more")
    assert summary["state"] == "completed"


@pytest.mark.parametrize("scores", [(None, None, None), (1, 1, 2), (None, None, 5)])
def test_cache_is_not_measured_when_none_is_rated_5_earlier(
    at_home: Path, tmp_path: Path, scores: tuple[int | None, ...]
) -> None:
    rows = [asked(i, "Где столовая?", f"1{i}:00", score=score) for i, score in enumerate(scores)]
    summary = evaluate("ux", source=load(tmp_path, "never_rated", rows))
    for name in (f"cache_{kind}{suffix}" for kind in ("hit_rate", "wrong_hit_rate") for suffix in THRESHOLDS):
        metric = summary["metrics"][name]
        assert (metric["value"], metric["reason"]) == (None, "no earlier question was rated 5"), name
    assert {row["cache_hit_rate"] for row in rows_of(summary)} == {None}
    assert summary["state"] == "completed"


def test_a_pause_of_more_than_half_an_hour_ends_a_dialog(at_home: Path, tmp_path: Path) -> None:
    times = ["10:00", "10:30", "11:01", "11:02"]
    rows = [asked(i, "Когда пересдача экзамена?", at, user_id=9) for i, at in enumerate(times)]
    rows.append(asked(8, "Когда пересдача?", "10:10", user_id=None))
    found = rows_of(evaluate("ux", source=load(tmp_path, "paused", rows)))
    by_id = {row["question_id"]: row["dialog"] for row in found}
    assert by_id["0"] == by_id["1"] != by_id["2"] == by_id["3"]
    assert by_id["8"] is None


TURNS = (
    "Как получить стипендию?",
    "Какие документы нужны, чтобы получить стипендию?",
    "Какие документы нужны для общежития?",
    "Когда заселяют в общежитие?",
)


def annotated(i: int, dialog: str | None, turn: int | None, at: str | None = None, **more: Any) -> Document:
    """A question of an annotated dialog; without a user, so that nothing else makes a dialog of it."""
    when = at and f"2026-03-01T{at}:00Z"
    return question(i, created_at=when, user_id=None, dialog_id=dialog, turn=turn) | more


def consecutive(texts: Sequence[str]) -> float:
    vectors = embedder("lexical").encode(list(texts)).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return float(np.mean([a @ b for a, b in pairwise(unit)]))


@pytest.mark.parametrize("at", ["10:00", None])
def test_a_dialog_is_in_the_order_of_its_turns(at_home: Path, tmp_path: Path, at: str | None) -> None:
    ids = (10, 2, 11, 3)  # as text, and as time has it, another order
    rows = [annotated(i, "d", turn, at, question=TURNS[turn - 1]) for turn, i in enumerate(ids, start=1)]
    summary = evaluate("ux", source=load(tmp_path, "in_turn" if at else "in_turn_without_times", rows[::-1]))
    assert {row["question_id"]: row["turn"] for row in rows_of(summary)} == {"10": 1, "2": 2, "11": 3, "3": 4}
    assert value(summary, "context_preservation") == pytest.approx(consecutive(TURNS), abs=1e-6)
    assert value(summary, "context_preservation") > consecutive([TURNS[turn] for turn in (0, 2, 1, 3)]) + 0.1


def test_without_times_dialogs_are_measured_and_the_cache_is_not(at_home: Path, tmp_path: Path) -> None:
    rows = [annotated(i, "d", i, question=text) for i, text in enumerate(TURNS, start=1)]
    rows += [annotated(8, None, None), annotated(9, "unordered", None), annotated(7, "unordered", 1)]
    summary = evaluate("ux", source=load(tmp_path, "without_times", rows))
    assert (summary["state"], summary["statuses"]) == ("completed", {"ok": 4, "not_applicable": 3})
    assert value(summary, "context_preservation") == pytest.approx(consecutive(TURNS), abs=1e-6)
    assert summary["metrics"]["context_preservation"]["n_scored"] == 1
    assert summary["metrics"]["cache_hit_rate"]["value"] is None
    assert "no question with a time" in summary["metrics"]["cache_hit_rate"]["reason"]
    assert {"note": "no time", "n": 7} in summary["notes"]


def test_a_log_with_neither_times_nor_dialogs_is_refused(at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "nothing_to_say", [annotated(1, "a", 1), annotated(2, "b", 1), annotated(3, None, None)])
    with pytest.raises(InputError, match=r"no question has created_at.*no dialog of two"):
        evaluate("ux", source=source)


def test_a_sample_is_of_whole_dialogs_and_searches_the_whole_log(night: dict[str, Document], at_home: Path) -> None:
    whole = {row["case_id"]: row for row in rows_of(night["ux"])}
    summary = evaluate("ux", limit=60)
    rows = rows_of(summary)
    assert 55 <= len(rows) <= 65
    several = [dialog for dialog, n in Counter(row["dialog"] for row in rows).items() if dialog and n > 1]
    assert summary["metrics"]["context_preservation"]["n_scored"] == len(several) >= 3
    of_all = Counter(row["dialog"] for row in whole.values())
    assert all(n == of_all[dialog] for dialog, n in Counter(row["dialog"] for row in rows).items())
    for row in rows:
        assert row == whole[row["case_id"]], "a question's values do not depend on what else was drawn"
    assert {row["nearest_earlier"] for row in rows} - {row["case_id"] for row in rows}
    assert summary["case_set_hash"] != night["ux"]["case_set_hash"]


def test_the_case_set_knows_the_order_and_the_scores(at_home: Path, tmp_path: Path) -> None:
    rows = [annotated(i, "d", i, "10:00", question=text) for i, text in enumerate(TURNS, start=1)]
    turned = [row | {"turn": 5 - row["turn"]} for row in rows]
    rated = [row | {"score": row["turn"]} for row in rows]
    moved = [row | {"confluence_url": None} for row in rows]
    changed = (rows, rows, turned, rated, moved)
    found = [evaluate("ux", source=load(tmp_path, "the_case_set", some)) for some in changed]
    first, same, *others = [summary["case_set_hash"] for summary in found]
    assert first == same
    assert len({first, *others}) == 4


def test_the_case_set_of_a_sample_knows_what_it_is_searched_in(at_home: Path, tmp_path: Path) -> None:
    rows = [asked(i, f"Вопрос о правиле {i}?", f"10:{i:02}") for i in range(20)]
    first = evaluate("ux", source=load(tmp_path, "searched", rows), limit=5)
    drawn = {row["question_id"] for row in rows_of(first)}
    other = [row if row["id"] in drawn else row | {"question": f"Что-то другое {row['id']}"} for row in rows]
    second = evaluate("ux", source=load(tmp_path, "searched", other), limit=5)
    assert drawn == {row["question_id"] for row in rows_of(second)}
    assert first["case_set_hash"] != second["case_set_hash"]


def test_a_sample_takes_the_beginning_of_a_dialog_that_is_longer_than_it(at_home: Path, tmp_path: Path) -> None:
    rows = [question(i, created_at=f"2026-03-01T10:{i:02}:00Z", user_id=1) for i in range(40)]
    summary = evaluate("ux", source=load(tmp_path, "endless", rows), limit=10)
    assert sorted(row["turn"] for row in rows_of(summary)) == list(range(1, 11))
