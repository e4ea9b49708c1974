"""The first step of the tiers that judge the log: what the bot said, and what it said it from."""

import asyncio
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from db.sources import Corpus
from db.urls import canonical_url
from tasks.cases import table
from tasks.judge import judge_identity
from tasks.labels import Row, pages_of, shown_rightly, topic_and_score
from tasks.load import keep_loaded, loaded, read_source, sample
from tasks.load_answers import fit, unchanged
from tasks.parameters import Judging
from tasks.run import Run
from tasks.score_texts import measuring_embedder


@task(task_run_name="load {run.parameters.source}", cache_policy=NO_CACHE)
async def load_answered(run: Run) -> Run:
    """Cases of the tiers `judge` and `judge_pipeline`: logged answers with the text of the page that they came from.

    Raises:
        InputError: the source has no questions or no chunks, or what it needs is missing there.
    """
    return await asyncio.to_thread(_load_answered, run)


@task(task_run_name="load {run.parameters.source}", cache_policy=NO_CACHE)
async def load_dialogs(run: Run) -> Run:
    """Cases of the tier `ux`: the log in the order of time, in dialogs; errors as `load_answered`."""
    return await asyncio.to_thread(_load_dialogs, run)


def _load_answered(run: Run) -> Run:
    if loaded(run):
        return unchanged(run, judge=_identity_of_judge(run, run.resolved["language"]))
    parameters = run.parameters
    if not isinstance(parameters, Judging):
        raise TypeError(f"{run.tier} judges no logged answers")
    where, questions, corpus = read_source(run, vectors=False)
    chosen = [questions[number] for number in sample(run, map(topic_and_score, questions))]
    contexts = _contexts(chosen, corpus, parameters.context_tokens)
    shown = [shown_rightly(question) for question in chosen]
    states = [_state(run.tier, *row) for row in zip(chosen, contexts, shown, strict=True)]
    cases = table(
        **_identity(where.name, chosen),
        status=["ok" if reason is None else status for status, reason in states],
        reason=[reason for _, reason in states],
        context=[text for text, _ in contexts],
        truncated=[cut for _, cut in contexts],
        answer=[question["answer"] for question in chosen],
        shown=shown,
        human_score=[{5: 1.0, 1: 0.0}.get(question["score"] or 0) for question in chosen],
    )
    return keep_loaded(run, where, cases, corpus, [], judge=_identity_of_judge(run, where.language))


def _identity_of_judge(run: Run, language: str) -> dict[str, Any]:
    if run.tier == "judge_pipeline":
        return judge_identity(run.parameters, language, ["gate"], name="gate")
    return judge_identity(run.parameters, language, ["faithfulness"])


def _load_dialogs(run: Run) -> Run:
    if loaded(run):
        return unchanged(run, similarity_embedder=measuring_embedder())
    where, questions, corpus = read_source(run, vectors=False)
    timed = sorted((q for q in questions if q["created_at"] is not None), key=lambda q: q["created_at"])
    timed = [timed[number] for number in sample(run, map(topic_and_score, timed))]
    cases = table(
        **_identity(where.name, timed),
        status=["ok"] * len(timed),
        reason=[None] * len(timed),
        page=[canonical_url(question["confluence_url"]) for question in timed],
        score=[question["score"] for question in timed],
        asked_at=[question["created_at"] for question in timed],
        dialog=dialogs(timed),
    )
    return keep_loaded(
        run, where, cases, corpus, [], batch_size=max(1, len(cases)), similarity_embedder=measuring_embedder()
    )


def dialogs(questions: list[Row], *, minutes: int = 30) -> list[str | None]:
    """The dialog of every question, in the order of time: the annotation's, else one user's questions no more than so
    many minutes apart; None without a user.
    """
    names: list[str | None] = []
    last: dict[Any, tuple[Any, str]] = {}
    for question in questions:
        user, at = question["user_id"], question["created_at"]
        before = last.get(user)
        near = before is not None and (at - before[0]).total_seconds() <= minutes * 60
        name = question.get("dialog_id") or (before[1] if before and near else f"{user}@{at:%Y-%m-%dT%H:%M:%S}")
        names.append(name if user is not None or question.get("dialog_id") else None)
        if user is not None:
            last[user] = (at, name)
    return names


def _identity(source: str, questions: list[Row]) -> dict[str, list[Any]]:
    return {
        "case_id": [f"{source}:{question['question_id']}" for question in questions],
        "question_id": [question["question_id"] for question in questions],
        "question": [question["question"] for question in questions],
        "group": [None if q["user_id"] is None else f"user {q['user_id']}" for q in questions],
    }


def _contexts(questions: list[Row], corpus: Corpus, tokens: int) -> list[tuple[str | None, bool | None]]:
    """The text of the page that each answer came from."""
    by_page: dict[str | None, list[str]] = {}
    for chunk, page in pages_of(corpus).items():
        by_page.setdefault(page, []).append(chunk)
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    pages = [canonical_url(question["confluence_url"]) for question in questions]
    return [
        fit([texts[chunk] for chunk in by_page[page]], tokens) if page in by_page and page else (None, None)
        for page in pages
    ]


def _state(
    tier: str, question: Row, context: tuple[str | None, bool | None], shown: bool | None
) -> tuple[str, str | None]:
    if not (question["answer"] or "").strip():
        return "not_applicable", "the bot gave no answer"
    if context[0] is None:
        return "stale_label", "the page of the answer is not named, or not in the corpus"
    if tier == "judge_pipeline" and shown is None:
        return "unlabelled", "nobody said whether the answer should be shown"
    return "ok", None
