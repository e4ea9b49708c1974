"""Looking for nuggets: how much of what a good answer must contain does the answer have?"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from yarus.metrics.claims import Nuggets, nugget_recall
from yarus.tasks.cases.table import Case, with_columns
from yarus.tasks.cases.vocabulary import SAID
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.repeats import first_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.progress import gathered
from yarus.tasks.models.prompts import Prompt, prompts
from yarus.tasks.models.verdicts import NoVerdict, Verdict, ask_for, failure, value_of
from yarus.tasks.steps.claims.claims import Had, names, read_had
from yarus.tasks.steps.judging.judge import with_verdicts
from yarus.tasks.steps.opened import open_model


async def find_nuggets(run: Run, cases: pa.Table) -> pa.Table:
    """Adds how much of each nugget the answer has, and the metrics of nuggets, where they were asked for.

    All nuggets of a question are held against the answer in one call. Of a refusal it takes none: it has none of them.
    A question that the corpus does not answer has no nuggets that an answer could miss. What the judge fails at is NULL
    and makes the case's status.
    """
    if run.config.nuggets is None:
        return cases
    configuration, rows = configured(run), cases.to_pylist()
    prompt, repeat = prompts(configuration)["nugget_support"], first_repeat(run.id, run.parameters)
    async with open_model(run, "judge", configuration) as model:
        given = await gathered("find_nuggets", (_had(model, prompt, case, repeat) for case in rows), failure)
    found = [_supported(case, had) for case, had in zip(rows, given, strict=True)]
    measured = [None if of is None else _measured(of) for of in found]
    verdicts: list[Mapping[str, Verdict[Any] | NoVerdict]] = [{} if had is None else {"nuggets": had} for had in given]
    return with_columns(
        with_verdicts(cases, verdicts),
        nuggets=found,
        nugget_recall=nugget_recall(measured),
        nugget_recall_partial=nugget_recall(measured, partial=True),
        nugget_recall_all=nugget_recall(measured, okay=True),
        nugget_recall_all_partial=nugget_recall(measured, okay=True, partial=True),
    )


async def _had(model: Model, prompt: Prompt, case: Case, repeat: int) -> Had | None:
    """What the judge says; None where he is not asked."""
    if case["status"] not in SAID or not case["answer"] or not _wanted(case):
        return None
    named = names(one["nugget"] for one in case["nuggets"])
    texts = {"question": case["question"], "answer": case["answer"], "nuggets": named}
    return await ask_for(model, Call(prompt, texts, repeat), partial(read_had, nuggets=named.keys()))


def _supported(case: Case, had: Had | None) -> list[Case] | None:
    """The nuggets with what the answer has of each."""
    if not _wanted(case):
        return None
    refused = 0.0 if case["status"] == "sut_refusal" else None
    by_name, named = value_of(had) or {}, names(one["nugget"] for one in case["nuggets"])
    worth = {nugget: by_name.get(name, refused) for name, nugget in named.items()}
    return [{**one, "support": worth[one["nugget"]]} for one in case["nuggets"]]


def _measured(nuggets: list[Case]) -> Nuggets:
    support = [np.nan if one["support"] is None else one["support"] for one in nuggets]
    return Nuggets(support, [one["vital"] for one in nuggets])


def _wanted(case: Case) -> bool:
    return bool(case["nuggets"]) and case["answerable"] is not False
