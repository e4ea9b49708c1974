"""The label audit of 100,000 log questions from the command line, near-duplicates and all, against limits."""

import json
import random
from typing import Any

from benchmarks import Row
from benchmarks.home import measured, temporary_home
from yarus.db.importers import sample
from yarus.db.loading.fill import Row as Loaded
from yarus.db.loading.fill import Rows, fill

QUESTIONS = 100_000
LIMIT_S, LIMIT_MB = 120, 2_000


def log() -> Rows:
    """The sample's log many times over: a tenth are repeats, a tenth has a typo, the rest has other words."""
    chance = random.Random(0)
    given = sample.read()
    rows = [row.values for row in given.questions]
    words = sorted({word for row in rows for word in row["question"].lower().split()})
    made: list[dict[str, Any]] = []
    for number in range(QUESTIONS):
        row = chance.choice(rows)
        asked = chance.choice(made)["question"] if made and chance.random() < 0.2 else row["question"]
        if number % 10 < 8:
            asked = " ".join(chance.choice(words) if chance.random() < 0.5 else word for word in f"{asked} уже".split())
        elif number % 10 == 8:
            place = chance.randrange(len(asked))
            asked = asked[:place] + chance.choice("абвгд") + asked[place:]
        made.append(row | {"id": str(number), "question": asked})
    return Rows([Loaded(row["id"], row) for row in made], given.chunks)


def run() -> list[Row]:
    """Time and memory of `yarus dataset audit` in a process of its own."""
    with temporary_home() as (home, engine):
        fill(engine, "log", log(), language="ru", origin="benchmark")
        seconds, memory_mb, printed = measured(home, "dataset", "audit", "--source", "log", "--json")
    found = json.loads(printed)
    assert found["n_questions"] == QUESTIONS and found["near_duplicates"]["count"] > 1000
    return [
        Row(f"audit {QUESTIONS:,} questions", "limit", seconds, LIMIT_S),
        Row("… memory in MB, not seconds", "limit", memory_mb, LIMIT_MB),
    ]
