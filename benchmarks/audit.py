"""The label audit of 100,000 log questions from the command line, near-duplicates and all, against limits."""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import Row
from db.embedded import server as embedded
from db.engine import own
from db.importers import sample
from db.loading.fill import Row as Loaded
from db.loading.fill import Rows, fill

QUESTIONS = 100_000
LIMIT_S, LIMIT_GB = 120, 2


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
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        embedded.running(home)
        engine = own(home, None)
        try:
            fill(engine, "log", log(), language="ru", origin="benchmark")
            command = [sys.executable, "-m", "flows", "dataset", "audit", "--source", "log", "--json"]
            start = time.perf_counter()
            done = subprocess.run(
                command, env=os.environ | {"YARUS_HOME": str(home)}, cwd=home, check=True, capture_output=True
            )
            seconds = time.perf_counter() - start
        finally:
            engine.dispose()
            embedded.release(home)
    found = json.loads(done.stdout)
    assert found["n_questions"] == QUESTIONS and found["near_duplicates"]["count"] > 1000
    memory_gb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return [
        Row(f"audit {QUESTIONS:,} questions", "limit", seconds, LIMIT_S, 1, "at most"),
        Row("its peak memory, in GB for seconds", "limit", memory_gb, LIMIT_GB, 1, "at most"),
    ]
