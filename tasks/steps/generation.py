"""Get answers from the system under test: our own retriever and generator, a service, or a callable."""

import asyncio
from collections.abc import Callable
from itertools import count

import pyarrow as pa
from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.db.messages import Words
from yarus.db.retrieval_sets import page_of_document
from yarus.db.urls import canonical_url
from yarus.tasks.cases.outcomes import CaseOutcome, add_outcomes, mark_failures, refusal_reason, set_failures
from yarus.tasks.cases.own_documents import own_documents
from yarus.tasks.cases.table import column_values, iterate_rows, set_columns
from yarus.tasks.cases.text import CONTEXT_SEPARATOR, join_within_limit, text_offsets
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.repeats import first_repeat_number
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import read_stored_corpus
from yarus.tasks.models.calls import Call, Reply, RoleName
from yarus.tasks.models.prices import compute_cost_usd
from yarus.tasks.models.progress import count_step
from yarus.tasks.models.prompts import Prompt, read_prompts
from yarus.tasks.steps.open_models import open_model, open_system
from yarus.tasks.steps.recorded import has_stored_answers, reuse_answers
from yarus.tasks.steps.search import TIMED_QUESTIONS, rank_results
from yarus.tasks.systems.sut import System, SystemAnswer


async def generate_answers(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add `answer` and its costs; a failed generator makes a `sut_error`, a declined answer a `sut_refusal`."""
    configuration = effective_settings(run)
    prompt = read_prompts(configuration)["generation"]
    parameters = run.parameters
    repeats, logprobs = (parameters.repeats, parameters.logprobs) if isinstance(parameters, Tier2) else (1, False)
    numbers = [number for number, status in enumerate(column_values(cases, "status")) if status == "ok"]
    first = first_repeat_number(run.id, parameters)
    rows = cases.take(pa.array(numbers, pa.int64())).to_pylist()
    requests = [(case, first + repeat) for case in rows for repeat in range(repeats)]
    calls = [_build_call(prompt, case, repeat, logprobs) for case, repeat in requests]
    async with open_model(run, "generator", configuration) as model:
        replies = await model.complete(calls, _count_done("answer_ideal" if run.tier == "tier2" else "answer", repeats))
    by_case = {number: replies[index * repeats : (index + 1) * repeats] for index, number in enumerate(numbers)}
    return _add_answers(cases, by_case, configuration.refusal_phrases)


def _count_done(step: str, repeats: int) -> Callable[[Reply], None]:
    """Return a callback that counts a case as done after its last reply."""
    arrived = count(1)

    def on_reply(reply: Reply) -> None:
        if next(arrived) % repeats == 0:
            count_step(step, None if reply.status == "ok" else reply.reason)

    return on_reply


def sum_usage(replies: list[Reply], before: int | float | None, name: str) -> int | float | None:
    """Sum tokens or money of new replies and the earlier value; None if nothing was counted."""
    new_values = [getattr(reply, name) for reply in replies if not reply.from_store]
    counted = [value for value in (*new_values, before) if value is not None]
    return sum(counted) if counted else None


class RecordedCall(TypedDict):
    """A call as stored in the column `calls` of the table of cases."""

    role: RoleName
    prompt: str
    repeat: int
    model: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_ms: float | None
    stored: bool
    finish_reason: str | None
    reply: str | None


def record_call(role: RoleName, prompt: str, repeat: int, reply: Reply) -> RecordedCall:
    """Return a call as stored in the table of cases; a stand-in's 0 milliseconds are not measured.

    Args:
        role: of the model.
        prompt: its name, or that of the metric that it is asked for.
        repeat: how often the same call was made before.
        reply: what came back.
    """
    has_raw_reply = role == "generator" and reply.status == "ok" and reply.raw.strip() != reply.text.strip()
    return {
        "role": role,
        "prompt": prompt,
        "repeat": repeat,
        "model": reply.served_model or reply.requested_model or None,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "cost_usd": reply.cost_usd,
        "latency_ms": reply.latency_ms or None,
        "stored": reply.from_store,
        "finish_reason": reply.finish_reason,
        "reply": reply.raw if has_raw_reply else None,
    }


def _build_call(prompt: Prompt, case: dict[str, str], repeat: int, logprobs: bool) -> Call:
    return Call(prompt, {"question": case["question"], "context": case["context"] or ""}, repeat, logprobs=logprobs)


def _add_answers(cases: pa.Table, by_case: dict[int, list[Reply]], refusals: list[str]) -> pa.Table:
    outcomes = [
        _outcome_of_reply(by_case[number][0], refusals) if number in by_case else CaseOutcome()
        for number in range(len(cases))
    ]
    first = ((number, replies[0]) for number, replies in by_case.items())
    unasked = (
        (number, reply.status, reply.reason)
        for number, reply in first
        if reply.status != "ok" and reply.status != "error"
    )
    cases = set_failures(add_outcomes(cases, outcomes), unasked)
    replies_by_case = [by_case.get(number, []) for number in range(len(cases))]
    usable_replies = [[reply for reply in replies if reply.status == "ok"] for replies in replies_by_case]
    return set_columns(
        cases,
        answer=[
            replies[0].text if outcome.outcome in ("answered", "refused") else None
            for replies, outcome in zip(replies_by_case, outcomes, strict=True)
        ],
        answers=[[reply.text for reply in replies] if len(replies) > 1 else None for replies in usable_replies],
        logprobs=[replies[0].logprobs if replies else None for replies in replies_by_case],
        latency_ms=[replies[0].latency_ms if replies else None for replies in replies_by_case],
        tokens_in=[sum_usage(replies, None, "tokens_in") for replies in replies_by_case],
        tokens_out=[sum_usage(replies, None, "tokens_out") for replies in replies_by_case],
        cost_usd=[sum_usage(replies, None, "cost_usd") for replies in replies_by_case],
        calls=[
            [record_call("generator", "generation", repeat, reply) for repeat, reply in enumerate(replies)]
            for replies in replies_by_case
        ],
    )


def _outcome_of_reply(reply: Reply, refusals: list[str]) -> CaseOutcome:
    if reply.status == "error":
        return CaseOutcome("failed", reply.reason)
    if reply.status != "ok":  # not asked
        return CaseOutcome()
    if reply.truncated and not reply.text.strip():
        return CaseOutcome("failed", Words("cut off before the answer (YARUS_GENERATOR__MAX_TOKENS)"))
    why = refusal_reason(reply.text, refusals)
    return CaseOutcome("refused", why) if why else CaseOutcome("answered")


async def answer_ideal(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add our generator's answers from the ideal context, or stored answers."""
    if has_stored_answers(run):
        return await asyncio.to_thread(reuse_answers, run, cases)
    return await generate_answers(run, cases)


async def answer(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the system's retrieved results, answers and latencies; its failures make the case `sut_error`."""
    if has_stored_answers(run):
        return await asyncio.to_thread(reuse_answers, run, cases)
    return await (_answer_local if run.config.sut == "local" else _answer_external)(run, cases)


async def _answer_local(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Answer with our retriever over the chunk table, then our generator on the retrieved texts."""
    questions, k = column_values(cases, "question"), run.config.k
    rankings = await asyncio.to_thread(
        rank_results,
        run,
        questions,
        k,
        unit="chunk",
        timed=-(-TIMED_QUESTIONS // run.n_batches),
        own=own_documents(cases),
    )
    texts = await asyncio.to_thread(_chunk_texts, run)
    tokens = run.config.context_tokens
    # An id without text in the corpus cannot be answered from; it stays in the ranking, and is noted at the end.
    passages = [[texts[chunk][0] for chunk in ranking.ids if chunk in texts] for ranking in rankings]
    contexts = [join_within_limit(parts, tokens) for parts in passages]
    is_page_unit = run.config.unit == "page"
    ids = [[_page_of_chunk(texts, chunk) if is_page_unit else chunk for chunk in ranking.ids] for ranking in rankings]
    has_failed = [ranking.error is not None for ranking in rankings]
    errors = {number: ranking.error for number, ranking in enumerate(rankings) if ranking.error is not None}
    cases = set_columns(
        mark_failures(cases, errors),
        retrieved=[None if failed else list(dict.fromkeys(row)) for row, failed in zip(ids, has_failed, strict=True)],
        retrieval_latency_ms=[ranking.latency_ms for ranking in rankings],
        context=[context or None for context, _ in contexts],
        passage_starts=[text_offsets(parts, context) for parts, (context, _) in zip(passages, contexts, strict=True)],
        truncated=[is_cut for _, is_cut in contexts],
    )
    cases = await generate_answers(run, cases)
    latency_pairs = iterate_rows(cases, "retrieval_latency_ms", "latency_ms")
    return set_columns(cases, latency_ms=[None if None in pair else sum(pair) for pair in latency_pairs])


async def _answer_external(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    system = await asyncio.to_thread(_open_system, run)
    dialogs = column_values(cases, "dialog") if "dialog" in cases.column_names else ()
    answers = await system.answers(column_values(cases, "question"), dialogs)
    configuration = effective_settings(run)
    refusals, price = configuration.refusal_phrases, configuration.prices.get(configuration.sut_service.model or "")
    contexts = [CONTEXT_SEPARATOR.join(answer.contexts or ()) for answer in answers]
    if dialogs and run.config.takes_history:
        cases = set_columns(cases, history=[list(answer.history) or None for answer in answers])
    return set_columns(
        add_outcomes(cases, [_outcome_of_answer(answer, refusals) for answer in answers]),
        retrieved=[_named_pages(answer, own) for answer, own in zip(answers, own_documents(cases), strict=True)],
        context=[text or None for text in contexts],
        passage_starts=[
            text_offsets(answer.contexts or [], text) for answer, text in zip(answers, contexts, strict=True)
        ],
        answer=[answer.text for answer in answers],
        path=[answer.path for answer in answers],
        latency_ms=[answer.latency_ms for answer in answers],
        first_token_ms=[answer.first_token_ms for answer in answers],
        tokens_in=[answer.tokens_in for answer in answers],
        tokens_out=[answer.tokens_out for answer in answers],
        cost_usd=[compute_cost_usd(price, answer.tokens_in, answer.tokens_out) for answer in answers],
    )


def _outcome_of_answer(answer: SystemAnswer, refusals: list[str]) -> CaseOutcome:
    if answer.text is None:
        return CaseOutcome("failed", answer.error)
    why = refusal_reason(answer.text, refusals, answer.path)
    return CaseOutcome("refused", why) if why else CaseOutcome("answered")


def _named_pages(answer: SystemAnswer, own: str | None) -> list[str] | None:
    """Return the pages that the system named, best first, without the question itself; None if failed or unknown."""
    if answer.urls is None:
        return None
    pages = dict.fromkeys(page for url in answer.urls if (page := canonical_url(url)))
    return [page for page in pages if own is None or page != page_of_document(own)]


def _chunk_texts(run: EvaluationRun) -> dict[str, tuple[str, str]]:
    """Return text and page of every chunk."""
    corpus = read_stored_corpus(run)
    pages = [canonical_url(url) or chunk for chunk, url in zip(corpus.ids, corpus.urls, strict=True)]
    return dict(zip(corpus.ids, zip(corpus.texts, pages, strict=True), strict=True))


def _page_of_chunk(texts: dict[str, tuple[str, str]], chunk: str) -> str:
    return texts[chunk][1] if chunk in texts else canonical_url(chunk) or chunk


def _open_system(run: EvaluationRun) -> System:
    """Open the system under test, and check that it takes history as it did when the evaluation began."""
    system = open_system(run, run.config.sut, effective_settings(run))
    if run.config.takes_history not in (None, system.takes_history):
        earlier = Words("took no history") if system.takes_history else Words("took history")
        raise InputError(
            "the system {sut!r} {then} when evaluation {evaluation} began, and now it is otherwise: let it be "
            "as it was, or run the tier anew",
            sut=run.config.sut,
            then=earlier,
            evaluation=run.id,
        )
    return system
