"""User experience: what a cache could have served, question by question, and how dialogs hang together."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.models.embedders import embedder
from tests.judged import PAGE, evaluate, load, question, rows_of, value

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
        "1": 0, "2": 0, "3": 1, "4": 1, "5": 0
    }  # fmt: skip
    assert [found[key]["cache_wrong_hit_rate"] for key in "1345"] == [None, 0, 1, None]
    assert found["3"]["nearest_earlier"] == "cached:2"
    assert (value(summary, "cache_hit_rate"), value(summary, "cache_wrong_hit_rate")) == (0.4, 0.5)


def test_dialogs_of_one_turn_and_no_hits_are_not_measured(at_home: Path, tmp_path: Path) -> None:
    rows = [asked(i, text, f"1{i}:00") for i, text in enumerate(["Где столовая?", "Кто ректор?", "Как взять книгу?"])]
    summary = evaluate("ux", source=load(tmp_path, "single_turns", rows))
    assert value(summary, "cache_hit_rate") == 0  # measured: nothing was near
    for name in ("cache_wrong_hit_rate", "context_preservation", "multi_turn_consistency"):
        assert value(summary, name) is None
        assert summary["metrics"][name]["reason"].startswith("undefined")
    assert summary["state"] == "completed"


def test_a_pause_of_more_than_half_an_hour_ends_a_dialog(at_home: Path, tmp_path: Path) -> None:
    times = ["10:00", "10:30", "11:01", "11:02"]
    rows = [asked(i, "Когда пересдача экзамена?", at, user_id=9) for i, at in enumerate(times)]
    rows.append(asked(8, "Когда пересдача?", "10:10", user_id=None))
    found = rows_of(evaluate("ux", source=load(tmp_path, "paused", rows)))
    by_id = {row["question_id"]: row["dialog"] for row in found}
    assert by_id["0"] == by_id["1"] != by_id["2"] == by_id["3"]
    assert by_id["8"] is None
