"""Score nuggets: how much of the required content the answer has."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from yarus.metrics.claims import Nuggets, nugget_recall
from yarus.tasks.cases.table import Case, set_columns
from yarus.tasks.cases.vocabulary import ANSWERED_STATUSES
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.repeats import first_repeat_number
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.progress import gather_cases
from yarus.tasks.models.prompts import Prompt, read_prompts
from yarus.tasks.models.verdicts import MissingVerdict, Verdict, ask_for_verdict, describe_failure, get_value
from yarus.tasks.steps.claims.claims import NuggetVerdict, name_claims, parse_nugget_support
from yarus.tasks.steps.judging.judge import add_verdicts
from yarus.tasks.steps.open_models import open_model


async def find_nuggets(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add how much of each nugget the answer has, and the metrics of nuggets, if requested.

    All nuggets of a question are checked in one call. A refusal needs no call: it has none of them. Questions that the
    corpus does not answer have no nuggets to miss. If the judge fails, values are NULL and the case gets the status.
    """
    if run.config.nuggets is None:
        return cases
    configuration, rows = effective_settings(run), cases.to_pylist()
    prompt, repeat = read_prompts(configuration)["nugget_support"], first_repeat_number(run.id, run.parameters)
    async with open_model(run, "judge", configuration) as model:
        results = await gather_cases(
            "find_nuggets", (_ask_for_support(model, prompt, case, repeat) for case in rows), describe_failure
        )
    nuggets_by_case = [_with_support(case, verdict) for case, verdict in zip(rows, results, strict=True)]
    measured = [None if nuggets is None else _to_metric_input(nuggets) for nuggets in nuggets_by_case]
    verdicts: list[Mapping[str, Verdict[Any] | MissingVerdict]] = [
        {} if verdict is None else {"nuggets": verdict} for verdict in results
    ]
    return set_columns(
        add_verdicts(cases, verdicts),
        nuggets=nuggets_by_case,
        nugget_recall=nugget_recall(measured),
        nugget_recall_partial=nugget_recall(measured, partial=True),
        nugget_recall_all=nugget_recall(measured, okay=True),
        nugget_recall_all_partial=nugget_recall(measured, okay=True, partial=True),
    )


async def _ask_for_support(model: Model, prompt: Prompt, case: Case, repeat: int) -> NuggetVerdict | None:
    """Return the judge's verdict; None if the judge is not asked."""
    if case["status"] not in ANSWERED_STATUSES or not case["answer"] or not _has_usable_nuggets(case):
        return None
    nuggets_by_name = name_claims(nugget["nugget"] for nugget in case["nuggets"])
    texts = {"question": case["question"], "answer": case["answer"], "nuggets": nuggets_by_name}
    return await ask_for_verdict(
        model, Call(prompt, texts, repeat), partial(parse_nugget_support, nuggets=nuggets_by_name.keys())
    )


def _with_support(case: Case, verdict: NuggetVerdict | None) -> list[Case] | None:
    """Return the nuggets with how much of each the answer has."""
    if not _has_usable_nuggets(case):
        return None
    refusal_support = 0.0 if case["status"] == "sut_refusal" else None
    by_name, nuggets_by_name = get_value(verdict) or {}, name_claims(row["nugget"] for row in case["nuggets"])
    support = {nugget: by_name.get(name, refusal_support) for name, nugget in nuggets_by_name.items()}
    return [{**row, "support": support[row["nugget"]]} for row in case["nuggets"]]


def _to_metric_input(nuggets: list[Case]) -> Nuggets:
    support = [np.nan if nugget["support"] is None else nugget["support"] for nugget in nuggets]
    return Nuggets(support, [nugget["vital"] for nugget in nuggets])


def _has_usable_nuggets(case: Case) -> bool:
    return bool(case["nuggets"]) and case["answerable"] is not False
