"""Filling: what nobody has judged among the first k results is graded by the judge, each pair bought once for all."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from yarus.tasks.cases.outcomes import with_failures
from yarus.tasks.cases.own_documents import own_of
from yarus.tasks.cases.rankings import Pool, Pooled, distinct, judgements, to_judge
from yarus.tasks.cases.table import values_of, with_columns
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_texts, read_twins
from yarus.tasks.models.calls import Call
from yarus.tasks.models.progress import gathered
from yarus.tasks.models.prompts import prompts
from yarus.tasks.models.verdicts import Score, ask_for_score, failure, value_of
from yarus.tasks.steps.judging.judge import with_verdicts
from yarus.tasks.steps.opened import open_model
from yarus.tasks.steps.search import rank


async def fill(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `pooled` and `passages`, the judge's replies as received and their cost, where labels are to be filled up.

    Raises:
        ModelUnavailable: the judge's server refuses every call.
    """
    if run.config.pool is None:
        return cases
    texts = await asyncio.to_thread(read_texts, run)
    cases, pools = await asyncio.to_thread(_pooled, run, cases, texts)
    configuration = configured(run)
    prompt = prompts(configuration)["relevance"]
    async with open_model(run, "judge", configuration) as model:

        async def graded(question: str, pool: Pool) -> dict[str, Score]:
            asked = [one for one in pool if to_judge(one)]
            calls = [Call(prompt, {"question": question, "passage": texts[one["result"]]}) for one in asked]
            scores = await asyncio.gather(*(ask_for_score(model, call) for call in calls))
            for one, score in zip(asked, scores, strict=True):
                grade = value_of(score)
                one["grade"] = None if grade is None else int(grade)
            return {f"relevance#{number}": score for number, score in enumerate(scores)}

        rows = zip(values_of(cases, "question"), pools, strict=True)
        verdicts = await gathered(
            "fill", (graded(question, pool or []) for question, pool in rows), lambda of: failure(*of.values())
        )
    shown = [
        None if pool is None else [texts[one["result"]] if to_judge(one) else None for one in pool] for pool in pools
    ]
    return with_columns(with_verdicts(cases, verdicts), pooled=pools, passages=shown)


def _pooled(run: Run, cases: pa.Table, texts: Mapping[str, str]) -> tuple[pa.Table, list[Pool | None]]:
    """The pool of each case that can be measured; a retriever of the pool that fails leaves the case unmeasured."""
    twins = read_twins(run)
    own = [ranking and distinct(ranking, twins) for ranking in values_of(cases, "retrieved")]
    cases, others = _others(run, cases)
    known = judgements(cases, twins)
    pools: list[Pool | None] = []
    for number, status in enumerate(values_of(cases, "status")):
        ranking = own[number]
        if status != "ok" or ranking is None:
            pools.append(None)
            continue
        places = {name: place for place, name in enumerate(ranking, start=1)}
        found = dict.fromkeys([*ranking, *(name for one in others for name in distinct(one[number], twins))])
        labels = {name: False for name in found if name not in texts}  # the corpus does not have it
        labels |= {str(name): grade > 0 for name, grade in known[number].items()}
        missed = [name for name, yes in labels.items() if yes and name not in found]
        pools.append([_entry(name, places.get(name), labels.get(name)) for name in [*found, *missed]])
    return cases, pools


def _entry(name: str, rank: int | None, label: bool | None) -> Pooled:
    return {"result": name, "rank": rank, "label": label, "grade": None}


def _others(run: Run, cases: pa.Table) -> tuple[pa.Table, list[list[list[str]]]]:
    """What the other retrievers of the pool have found: by retriever and case."""
    failures: dict[int, str] = {}
    asked = values_of(cases, "question")
    if "asked" in cases.column_names:  # a changed question is put to all of the pool alike
        asked = [other or question for other, question in zip(values_of(cases, "asked"), asked, strict=True)]
    found: list[list[list[str]]] = []
    for name in run.config.pool or ():
        if name == run.config.retriever:
            continue
        other = replace(run, config=run.config | EvaluationConfig(retriever=name))
        rankings = rank(
            other,
            asked,
            run.config.k,
            unit=run.config.unit,
            timed=0,
            twins=read_twins(run),
            own=own_of(cases),
        )
        for number, ranking in enumerate(rankings):
            if ranking.error is not None:
                failures.setdefault(number, f"{name} of the pool: {ranking.error}")
        found.append([list(ranking.ids) for ranking in rankings])
    return with_failures(cases, failures), found
