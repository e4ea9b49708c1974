"""Check user experience: what a cache could have served per question, and how coherent dialogs are."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.evaluations import PAGE_URL, evaluate, get_value, load, question, read_rows
from yarus.db.errors import InputError
from yarus.tasks.models.embedding.embedders import get_embedder

Document = dict[str, Any]
THRESHOLDS = {"": 0.85, "@0.8": 0.8, "@0.9": 0.9, "@0.95": 0.95}


@pytest.fixture(scope="module")
def sample(night: dict[str, Document]) -> tuple[list[Document], np.ndarray]:
    rows = read_rows(night["ux"])
    vectors = get_embedder("lexical").encode([row["question"] for row in rows]).astype(np.float64)
    return rows, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_cache_hits_match_plain_loop(night: dict[str, Document], sample: tuple[list[Document], np.ndarray]) -> None:
    rows, unit = sample
    nearest: list[tuple[float, Document] | None] = []
    for position, row in enumerate(rows):
        earlier = [i for i, other in enumerate(rows) if other["score"] == 5 and other["asked_at"] < row["asked_at"]]
        best = max(earlier, key=lambda i: round(float(unit[position] @ unit[i]), 9), default=None)
        nearest.append(None if best is None else (float(unit[position] @ unit[best]), rows[best]))
    for suffix, threshold in THRESHOLDS.items():
        hits = [near is not None and near[0] > threshold for near in nearest]
        is_wrong = [
            near[1]["page"] != row["page"]
            for row, near, hit in zip(rows, nearest, hits, strict=True)
            if hit and near and row["page"] and near[1]["page"]
        ]
        assert get_value(night["ux"], f"cache_hit_rate{suffix}") == pytest.approx(np.mean(hits), abs=1e-12)
        assert get_value(night["ux"], f"cache_wrong_hit_rate{suffix}") == pytest.approx(np.mean(is_wrong), abs=1e-12)
        assert night["ux"]["metrics"][f"cache_wrong_hit_rate{suffix}"]["n_scored"] == len(is_wrong) > 0


def test_dialog_metrics_average_over_dialogs(
    night: dict[str, Document], sample: tuple[list[Document], np.ndarray]
) -> None:
    rows, unit = sample
    turns: dict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        if row["dialog"] is not None:
            turns[row["dialog"]].append(position)
    dialogs = [unit[position] for position in turns.values() if len(position) > 1]
    consecutive = [np.mean([a @ b for a, b in pairwise(dialog)]) for dialog in dialogs]
    pairs = [np.mean(np.maximum(dialog @ dialog.T, 0)[np.triu_indices(len(dialog), 1)]) for dialog in dialogs]
    assert get_value(night["ux"], "context_preservation") == pytest.approx(np.mean(consecutive), abs=1e-7)
    assert get_value(night["ux"], "multi_turn_consistency") == pytest.approx(np.mean(pairs), abs=1e-7)
    assert night["ux"]["metrics"]["context_preservation"]["n_scored"] == len(dialogs) > 20


def ask_at(i: int, text: str, clock: str, **more: Any) -> Document:
    return question(i, question=text, created_at=f"2026-03-01T{clock}:00Z", user_id=i) | more


def test_cache_has_only_earlier_good_answers(at_home: Path, tmp_path: Path) -> None:
    text = "Когда пересдача экзамена?"
    rows = [
        ask_at(1, text, "10:00", score=1),  # nothing is earlier
        ask_at(2, text, "10:00", score=5),  # at the same time: not earlier
        ask_at(3, text, "10:01", score=None, confluence_url=PAGE_URL.format(2)),  # finds 2, of the same page
        ask_at(4, text, "10:02", score=None, confluence_url=PAGE_URL.format(7)),  # finds 2, of another page
        ask_at(5, "Где столовая?", "10:03", score=5),  # another question
        question(7, question=text, created_at=None),  # without a time
    ]
    summary = evaluate("ux", source=load(tmp_path, "cached", rows))
    rows_by_id = {row["question_id"]: row for row in read_rows(summary)}
    assert {key: row["cache_hit_rate"] for key, row in rows_by_id.items()} == {
        "1": 0, "2": 0, "3": 1, "4": 1, "5": 0, "7": None
    }  # fmt: skip
    assert [rows_by_id[key]["cache_wrong_hit_rate"] for key in "1345"] == [None, 0, 1, None]
    assert rows_by_id["3"]["nearest_earlier"] == "cached:2"
    assert (get_value(summary, "cache_hit_rate"), get_value(summary, "cache_wrong_hit_rate")) == (0.4, 0.5)


def test_single_turn_dialogs_are_not_measured(at_home: Path, tmp_path: Path) -> None:
    rows = [ask_at(i, text, f"1{i}:00") for i, text in enumerate(["Где столовая?", "Кто ректор?", "Как взять книгу?"])]
    summary = evaluate("ux", source=load(tmp_path, "single_turns", rows))
    assert get_value(summary, "cache_hit_rate") == 0  # measured, although no earlier question was near
    assert summary["metrics"]["cache_wrong_hit_rate"]["reason"] == "no question hits the cache"
    for name in ("context_preservation", "multi_turn_consistency"):
        assert get_value(summary, name) is None
        assert summary["metrics"][name]["reason"].startswith("undefined: no dialog of two questions or more")
    assert summary["state"] == "completed"


@pytest.mark.parametrize("scores", [(None, None, None), (1, 1, 2), (None, None, 5)])
def test_cache_is_not_measured_without_earlier_rated_answer(
    at_home: Path, tmp_path: Path, scores: tuple[int | None, ...]
) -> None:
    rows = [ask_at(i, "Где столовая?", f"1{i}:00", score=score) for i, score in enumerate(scores)]
    summary = evaluate("ux", source=load(tmp_path, "never_rated", rows))
    for name in (f"cache_{kind}{suffix}" for kind in ("hit_rate", "wrong_hit_rate") for suffix in THRESHOLDS):
        metric = summary["metrics"][name]
        assert (metric["value"], metric["reason"]) == (None, "no earlier question was rated 5"), name
    assert {row["cache_hit_rate"] for row in read_rows(summary)} == {None}
    assert summary["state"] == "completed"


def test_long_pause_ends_dialog(at_home: Path, tmp_path: Path) -> None:
    times = ["10:00", "10:30", "11:01", "11:02"]
    rows = [ask_at(i, "Когда пересдача экзамена?", clock, user_id=9) for i, clock in enumerate(times)]
    rows.append(ask_at(8, "Когда пересдача?", "10:10", user_id=None))
    rows_of_log = read_rows(evaluate("ux", source=load(tmp_path, "paused", rows)))
    by_id = {row["question_id"]: row["dialog"] for row in rows_of_log}
    assert by_id["0"] == by_id["1"] != by_id["2"] == by_id["3"]
    assert by_id["8"] is None


TURNS = (
    "Как получить стипендию?",
    "Какие документы нужны, чтобы получить стипендию?",
    "Какие документы нужны для общежития?",
    "Когда заселяют в общежитие?",
)


def make_turn(i: int, dialog: str | None, turn: int | None, clock: str | None = None, **more: Any) -> Document:
    """Return a question of an annotated dialog; without a user, so that only the annotation makes it a dialog."""
    created_at = clock and f"2026-03-01T{clock}:00Z"
    return question(i, created_at=created_at, user_id=None, dialog_id=dialog, turn=turn) | more


def compute_preservation(texts: Sequence[str]) -> float:
    vectors = get_embedder("lexical").encode(list(texts)).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return float(np.mean([a @ b for a, b in pairwise(unit)]))


@pytest.mark.parametrize("at", ["10:00", None])
def test_dialog_is_ordered_by_turns(at_home: Path, tmp_path: Path, at: str | None) -> None:
    ids = (10, 2, 11, 3)  # sorted as text or by time, the order differs
    rows = [make_turn(i, "d", turn, at, question=TURNS[turn - 1]) for turn, i in enumerate(ids, start=1)]
    summary = evaluate("ux", source=load(tmp_path, "in_turn" if at else "in_turn_without_times", rows[::-1]))
    assert {row["question_id"]: row["turn"] for row in read_rows(summary)} == {"10": 1, "2": 2, "11": 3, "3": 4}
    assert get_value(summary, "context_preservation") == pytest.approx(compute_preservation(TURNS), abs=1e-6)
    assert get_value(summary, "context_preservation") > compute_preservation([TURNS[i] for i in (0, 2, 1, 3)]) + 0.1


def test_dialogs_are_measured_without_times(at_home: Path, tmp_path: Path) -> None:
    rows = [make_turn(i, "d", i, question=text) for i, text in enumerate(TURNS, start=1)]
    rows += [make_turn(8, None, None), make_turn(9, "unordered", None), make_turn(7, "unordered", 1)]
    summary = evaluate("ux", source=load(tmp_path, "without_times", rows))
    assert (summary["state"], summary["statuses"]) == ("completed", {"ok": 4, "not_applicable": 3})
    assert get_value(summary, "context_preservation") == pytest.approx(compute_preservation(TURNS), abs=1e-6)
    assert summary["metrics"]["context_preservation"]["n_scored"] == 1
    assert summary["metrics"]["cache_hit_rate"]["value"] is None
    assert "no question with a time" in summary["metrics"]["cache_hit_rate"]["reason"]
    assert {"note": "no time", "n": 7} in summary["notes"]


def test_log_without_times_and_dialogs_is_refused(at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "nothing_to_say", [make_turn(1, "a", 1), make_turn(2, "b", 1), make_turn(3, None, None)])
    with pytest.raises(InputError, match=r"no question has created_at.*no dialog of two"):
        evaluate("ux", source=source)


def test_sample_has_whole_dialogs_and_full_log(night: dict[str, Document], at_home: Path) -> None:
    rows_of_full_log = {row["case_id"]: row for row in read_rows(night["ux"])}
    summary = evaluate("ux", limit=60)
    rows = read_rows(summary)
    assert 55 <= len(rows) <= 65
    long_dialogs = [dialog for dialog, n in Counter(row["dialog"] for row in rows).items() if dialog and n > 1]
    assert summary["metrics"]["context_preservation"]["n_scored"] == len(long_dialogs) >= 3
    turns_by_dialog = Counter(row["dialog"] for row in rows_of_full_log.values())
    assert all(n == turns_by_dialog[dialog] for dialog, n in Counter(row["dialog"] for row in rows).items())
    for row in rows:
        assert row == rows_of_full_log[row["case_id"]], "a question's values do not depend on what else was drawn"
    assert {row["nearest_earlier"] for row in rows} - {row["case_id"] for row in rows}
    assert summary["case_set_hash"] != night["ux"]["case_set_hash"]


def test_case_set_hash_includes_order_and_scores(at_home: Path, tmp_path: Path) -> None:
    rows = [make_turn(i, "d", i, "10:00", question=text) for i, text in enumerate(TURNS, start=1)]
    turned = [row | {"turn": 5 - row["turn"]} for row in rows]
    rated = [row | {"score": row["turn"]} for row in rows]
    moved = [row | {"confluence_url": None} for row in rows]
    variants = (rows, rows, turned, rated, moved)
    summaries = [evaluate("ux", source=load(tmp_path, "the_case_set", variant)) for variant in variants]
    first, repeated_hash, *other_hashes = [summary["case_set_hash"] for summary in summaries]
    assert first == repeated_hash
    assert len({first, *other_hashes}) == 4


def test_case_set_hash_of_sample_includes_log(at_home: Path, tmp_path: Path) -> None:
    rows = [ask_at(i, f"Вопрос о правиле {i}?", f"10:{i:02}") for i in range(20)]
    first = evaluate("ux", source=load(tmp_path, "searched", rows), limit=5)
    drawn = {row["question_id"] for row in read_rows(first)}
    other_rows = [row if row["id"] in drawn else row | {"question": f"Что-то другое {row['id']}"} for row in rows]
    second = evaluate("ux", source=load(tmp_path, "searched", other_rows), limit=5)
    assert drawn == {row["question_id"] for row in read_rows(second)}
    assert first["case_set_hash"] != second["case_set_hash"]


def test_sample_takes_beginning_of_long_dialog(at_home: Path, tmp_path: Path) -> None:
    rows = [question(i, created_at=f"2026-03-01T10:{i:02}:00Z", user_id=1) for i in range(40)]
    summary = evaluate("ux", source=load(tmp_path, "endless", rows), limit=10)
    assert sorted(row["turn"] for row in read_rows(summary)) == list(range(1, 11))
