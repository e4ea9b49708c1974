"""Fill labels: the judge grades unlabelled results among the first k; each pair is paid for only once."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from yarus.tasks.cases.outcomes import mark_failures
from yarus.tasks.cases.own_documents import own_documents
from yarus.tasks.cases.rankings import Pool, PooledResult, grades_by_id, merge_duplicates, needs_judgement
from yarus.tasks.cases.table import column_values, set_columns
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import read_duplicates, read_texts
from yarus.tasks.models.calls import Call
from yarus.tasks.models.progress import gather_cases
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.verdicts import Score, ask_for_score, describe_failure, get_value
from yarus.tasks.steps.judging.judge import add_verdicts
from yarus.tasks.steps.open_models import open_model
from yarus.tasks.steps.search import rank_results


async def fill(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add `pooled` and `passages`, the judge's raw replies and their costs, if labels are to be filled.

    Raises:
        ModelUnavailable: the judge's server refuses every call.
    """
    if run.config.pool is None:
        return cases
    texts = await asyncio.to_thread(read_texts, run)
    cases, pools = await asyncio.to_thread(_build_pools, run, cases, texts)
    configuration = effective_settings(run)
    prompt = read_prompts(configuration)["relevance"]
    async with open_model(run, "judge", configuration) as model:

        async def grade_pool(question: str, pool: Pool) -> dict[str, Score]:
            to_grade = [result for result in pool if needs_judgement(result)]
            calls = [Call(prompt, {"question": question, "passage": texts[result["result"]]}) for result in to_grade]
            scores = await asyncio.gather(*(ask_for_score(model, call) for call in calls))
            for result, score in zip(to_grade, scores, strict=True):
                grade = get_value(score)
                result["grade"] = None if grade is None else int(grade)
            return {f"relevance#{number}": score for number, score in enumerate(scores)}

        rows = zip(column_values(cases, "question"), pools, strict=True)
        verdicts = await gather_cases(
            "fill",
            (grade_pool(question, pool or []) for question, pool in rows),
            lambda scores_by_name: describe_failure(*scores_by_name.values()),
        )
    graded_passages = [
        None if pool is None else [texts[result["result"]] if needs_judgement(result) else None for result in pool]
        for pool in pools
    ]
    return set_columns(add_verdicts(cases, verdicts), pooled=pools, passages=graded_passages)


def _build_pools(run: EvaluationRun, cases: pa.Table, texts: Mapping[str, str]) -> tuple[pa.Table, list[Pool | None]]:
    """Return the pool of each measurable case; a failed retriever of the pool leaves the case unmeasured."""
    twins = read_duplicates(run)
    own_rankings = [ranking and merge_duplicates(ranking, twins) for ranking in column_values(cases, "retrieved")]
    cases, others = _rank_with_others(run, cases)
    judged = grades_by_id(cases, twins)
    pools: list[Pool | None] = []
    for row, status in enumerate(column_values(cases, "status")):
        ranking = own_rankings[row]
        if status != "ok" or ranking is None:
            pools.append(None)
            continue
        ranks = {name: rank for rank, name in enumerate(ranking, start=1)}
        pooled = dict.fromkeys([*ranking, *(name for other in others for name in merge_duplicates(other[row], twins))])
        labels = {name: False for name in pooled if name not in texts}  # not in the corpus
        labels |= {str(name): grade > 0 for name, grade in judged[row].items()}
        unranked = [name for name, is_relevant in labels.items() if is_relevant and name not in pooled]
        pools.append([_pooled_result(name, ranks.get(name), labels.get(name)) for name in [*pooled, *unranked]])
    return cases, pools


def _pooled_result(name: str, rank: int | None, label: bool | None) -> PooledResult:
    return {"result": name, "rank": rank, "label": label, "grade": None}


def _rank_with_others(run: EvaluationRun, cases: pa.Table) -> tuple[pa.Table, list[list[list[str]]]]:
    """Return the results of the other retrievers of the pool, by retriever and case."""
    failures: dict[int, str] = {}
    questions = column_values(cases, "question")
    if "asked" in cases.column_names:  # the whole pool gets the changed question
        questions = [text or question for text, question in zip(column_values(cases, "asked"), questions, strict=True)]
    rankings_by_retriever: list[list[list[str]]] = []
    for name in run.config.pool or ():
        if name == run.config.retriever:
            continue
        variant = replace(run, config=run.config | EvaluationConfig(retriever=name))
        rankings = rank_results(
            variant,
            questions,
            run.config.k,
            unit=run.config.unit,
            timed=0,
            twins=read_duplicates(run),
            own=own_documents(cases),
        )
        for number, ranking in enumerate(rankings):
            if ranking.error is not None:
                failures.setdefault(number, f"{name} of the pool: {ranking.error}")
        rankings_by_retriever.append([list(ranking.ids) for ranking in rankings])
    return mark_failures(cases, failures), rankings_by_retriever
