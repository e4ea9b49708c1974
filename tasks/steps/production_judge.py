"""The production judge as a classifier: does it show the right answers?"""

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metrics import classification
from metrics.statistics import bootstrap_totals, wilson_interval
from tasks.cases.table import with_columns
from tasks.config.connections import database
from tasks.evaluation.identity import configured
from tasks.evaluation.repeats import first_repeat
from tasks.evaluation.run import Run
from tasks.models.calls import Call, Model
from tasks.models.chat import chat
from tasks.models.verdicts import YesNo, ask_for_yes_no, value_of
from tasks.prompts import Prompt, prompts
from tasks.results.set_metrics import UNKNOWN, Whole, share
from tasks.steps.judge import with_verdicts

RATIOS = {
    "precision": (classification.precision, "true_positives", "false_positives"),
    "recall": (classification.recall, "true_positives", "false_negatives"),
    "specificity": (classification.specificity, "true_negatives", "false_positives"),
}
OVERALL = {"f1_score": classification.f1, "mcc": classification.mcc}


async def decide(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the gate's decision on every logged answer; a reply that is neither yes nor no is no decision."""
    configuration = configured(run)
    prompt = prompts(configuration)["gate"]
    async with chat("gate", configuration, database(), evaluation=run.id) as model:
        repeat = first_repeat(run.id, run.parameters)
        given = await asyncio.gather(*(_case(model, prompt, case, repeat) for case in cases.to_pylist()))
    decisions = [value_of(verdict) for verdict in given]
    right = [
        None if d is None else float(d == shown) for d, shown in zip(decisions, cases["shown"].to_pylist(), strict=True)
    ]
    return with_columns(
        with_verdicts(cases, [{} if verdict is None else {"gate": verdict} for verdict in given]),
        decision=decisions,
        accuracy=right,
        latency_ms=[_latency_ms(verdict) for verdict in given],
    )


def measure_gate(cases: pa.Table, seed: int) -> dict[str, Whole]:
    """What follows from the table of decisions; undefined ratios have no value."""
    rows = [(row["decision"], row["shown"]) for row in cases.select(["decision", "shown"]).to_pylist()]
    known = [(decision, shown) for decision, shown in rows if decision is not None]
    statuses = cases["status"].to_pylist()
    invalid, replies = statuses.count("parse_error"), len(known) + statuses.count("parse_error")
    rate = Whole(invalid / replies if replies else math.nan, wilson_interval(invalid, replies), replies)
    groups = [
        g for g, d in zip(cases["group"].to_pylist(), cases["decision"].to_pylist(), strict=True) if d is not None
    ]
    table = classification.outcomes([decision for decision, _ in known], [shown for _, shown in known])
    counts = classification.counts_of(table.sum(axis=0))
    whole = {
        name: Whole(float(getattr(counts, name)) if known else math.nan, UNKNOWN, len(known))
        for name in classification.OUTCOMES
    }
    columns = dict(zip(classification.OUTCOMES, table.T.astype(bool).tolist(), strict=True))
    for name, (ratio, hit, miss) in RATIOS.items():
        flags = [hits if hits or misses else None for hits, misses in zip(columns[hit], columns[miss], strict=True)]
        whole[name] = share(flags, groups)._replace(value=float(ratio(counts)))
    for name, measure in OVERALL.items():
        of = partial(_of_totals, measure)
        interval = bootstrap_totals(table, of, seed=seed, groups=groups) if len(known) > 1 else UNKNOWN
        whole[name] = Whole(float(measure(counts)), interval, len(known))
    return whole | {"invalid_rate": rate}


async def _case(model: Model, prompt: Prompt, case: dict[str, Any], repeat: int) -> YesNo | None:
    return await ask_for_yes_no(model, Call(prompt, case, repeat)) if case["status"] == "ok" else None


def _latency_ms(verdict: YesNo | None) -> float | None:
    """Of the call; None where it was bought earlier, or nothing was called: the stand-in's 0 is not measured."""
    if verdict is None or verdict.replies[-1].from_store:
        return None
    return verdict.replies[-1].latency_ms or None


def _of_totals(measure: Callable[[classification.Counts], Any], totals: NDArray[np.float64]) -> Any:
    """A measure of the counts of resamples."""
    return measure(classification.counts_of(totals))
