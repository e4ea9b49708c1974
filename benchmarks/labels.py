"""People's labels of 10,000 answers: corrected values, and the time to store a label and report on it."""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from benchmarks import Row
from benchmarks.home import store_evaluation, temporary_home
from yarus.metrics.table import get_metric
from yarus.tasks.dataset.labelling.answers import JudgedAnswers
from yarus.tasks.dataset.labelling.estimate import estimate_corrected_mean
from yarus.tasks.dataset.labelling.session import LabellingSession

CASES, LABELS, METRICS, LIMIT_S, KEY_S = 10_000, 500, 20, 1.0, 0.1
JUDGED = "avg_faithfulness"


def run() -> Iterator[Row]:
    """Compare both with their limit."""
    config = {"judge": {"model": "m", "prompts": {"faithfulness": "x"}}}
    with temporary_home() as (home, engine):
        file = home / "tier2-bench.parquet"
        store_evaluation(engine, file, "tier2", _cases(), config)
        labelling, times = LabellingSession(engine, file.stem, JUDGED), []
        for number in range(LABELS):
            task = labelling.next("anna")
            if task is None:
                raise RuntimeError("fewer cases than labels")
            start = time.perf_counter()
            labelling.save("anna", task["case_id"], float(number % 4 > 0))
            labelling.progress("anna")
            labelling.next("anna")
            times.append(time.perf_counter() - start)
        seconds = _time_corrections(labelling)
    what = f"corrected values of {METRICS} metrics, {CASES:,} answers, {LABELS} labels"
    yield Row(what, "limit", seconds, LIMIT_S)
    yield Row(f"a label among {CASES:,} answers, slowest of the last 100", "limit", max(times[-100:]), KEY_S)


def _cases() -> pa.Table:
    rng = np.random.default_rng(0)
    ids = [f"bench:{i}" for i in range(CASES)]
    texts = {name: [f"{name} {i} " * 40 for i in range(CASES)] for name in ("question", "answer", "context")}
    scores = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], CASES)
    groups = [f"user {i // 7}" for i in range(CASES)]
    nothing = pa.nulls(CASES, pa.string())
    return pa.table(
        {"case_id": ids, "status": ["ok"] * CASES, "reason": nothing, "group": groups, **texts, "faithfulness": scores}
    )


def _time_corrections(labelling: LabellingSession) -> float:
    """Return the seconds for all metrics, each of an evaluation that was not read before."""
    labels, start = labelling.said(), time.perf_counter()
    for _ in range(METRICS):
        answers: JudgedAnswers = replace(labelling.answers, metric=get_metric(JUDGED))
        if estimate_corrected_mean(answers, labels)["n_labels"] != LABELS:
            raise RuntimeError("labels were lost")
    return time.perf_counter() - start
